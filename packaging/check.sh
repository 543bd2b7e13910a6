#!/bin/sh
# usage: packaging/check.sh BUILD-DIR [BARE-ROOT]      from the top of the sources; prints each check, exits 1 at the first one
# that fails
#
# Checks that the tarball is reproducible, that `make uninstall` leaves no file, that the Debian packages build without remarks
# of lintian, and that the RPM has the same files.  As root, with the directory of a bare Debian: installs the packages in a copy
# of it, runs their tests (debian/tests), purges them, and checks that no file is left.
set -eu
build=$(cd "$1" && pwd)
bare=${2-}
top=$PWD
temp=$(mktemp -d)
clean_up() {
	! mountpoint -q "$temp/bare/proc" || umount "$temp/bare/proc"
	rm -rf --one-file-system "$temp"
}
trap clean_up EXIT
trap 'exit 1' INT TERM

say() { printf 'ok   %s\n' "$*"; }
die() { printf 'FAIL %s\n' "$*"; exit 1; }
try() { "$@" >"$temp/log" 2>&1 || die "$*: $(tail -n 20 "$temp/log")"; }
all_files() { (cd "$1" && find . -xdev | LC_ALL=C sort); }

# ---- The tarball: made twice, and made from itself in another directory, with another umask, in another time zone

try make -C "$build" dist
tarball=$(ls "$build"/stealscope-*.tar.xz)
version=${tarball##*/stealscope-}
version=${version%.tar.xz}
mv "$tarball" "$temp/stealscope_$version.orig.tar.xz"
try make -C "$build" dist
cmp "$tarball" "$temp/stealscope_$version.orig.tar.xz" || die 'two tarballs of the same tree differ'
mv "$tarball" "$temp/"
mkdir "$temp/elsewhere" "$temp/tree"
(
	umask 077
	export TZ=Pacific/Kiritimati LC_ALL=C
	cd "$temp/elsewhere"
	tar --no-same-permissions -xf "../stealscope-$version.tar.xz"
	mkdir "stealscope-$version/b"
	cd "stealscope-$version/b"
	../configure && make dist
) >"$temp/log" 2>&1 || die "make dist in another directory: $(tail -n 20 "$temp/log")"
cmp "$temp/elsewhere/stealscope-$version/b/stealscope-$version.tar.xz" "$temp/stealscope-$version.tar.xz" ||
	die 'a tarball that was made from a tarball differs'
rm -rf "$temp/elsewhere"
say "make dist gives the same bytes, in another directory too: stealscope-$version.tar.xz"

try make -C "$build" install DESTDIR="$temp/tree"
installed=$(find "$temp/tree" ! -type d | wc -l)
try make -C "$build" uninstall DESTDIR="$temp/tree"
[ -z "$(find "$temp/tree" ! -type d)" ] || die "make uninstall leaves $(find "$temp/tree" ! -type d)"
[ -z "$(find "$temp/tree" -name '*stealscope*')" ] || die "make uninstall leaves $(find "$temp/tree" -name '*stealscope*')"
say "make uninstall leaves nothing of $installed files"

# ---- The packages

cd "$temp"
tar xf "stealscope-$version.tar.xz"
cp -a "$top/debian" "stealscope-$version/"
(cd "stealscope-$version" && DEB_BUILD_OPTIONS=nocheck try dpkg-buildpackage -us -uc)
say 'the Debian packages build'
lintian --allow-root --fail-on error,warning,info,pedantic --suppress-tags no-homepage-field,debian-watch-file-is-missing \
	stealscope_*.changes || die 'lintian has remarks'
say 'lintian has no remarks'
for p in *.deb; do
	case $p in *dbgsym*) ;; *) dpkg-deb -c "$p" ;; esac
done | awk '$6 !~ /\/$/ { sub(/^\./, "", $6); print $6 }' | grep -v '^/usr/share/doc/' |
	sed 's|^/lib/systemd/|/usr/lib/systemd/|' |
	sed 's|/usr/lib/[^/]*-linux-gnu[^/]*/|/usr/lib/|; s|/zsh/vendor-completions/|/zsh/site-functions/|; s/\.gz$//' |
	sort >debian.files

if command -v rpmbuild >/dev/null; then
	try rpmbuild --nodeps -bb --define "_sourcedir $temp" --define "_topdir $temp/rpm" "$top/packaging/stealscope.spec"
	find rpm -name '*.rpm' -exec rpm -qlp {} + | grep -vE '^/usr/share/(doc|licenses)/|^\(|/\.build-id' |
		sed 's|/usr/lib64/|/usr/lib/|; s/\.gz$//' | sort -u >rpm.all
	# rpm lists directories too
	grep -vxE "$(sed 's|/[^/]*$||' rpm.all | sort -u | paste -sd '|')" rpm.all >rpm.files
	diff debian.files rpm.files || die 'the RPM has other files'
	say "the RPM has the same $(wc -l <rpm.files) files"
fi

# ---- A bare machine

[ -n "$bare" ] || exit 0
cp -a "$bare" bare
cp /etc/resolv.conf bare/etc/
mount -t proc proc bare/proc
inside() { env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin DEBIAN_FRONTEND=noninteractive chroot bare sh -ec "$1"; }
try inside 'apt-get -qq update'
mkdir bare/debs bare/source
cp -- *.deb bare/debs/
rm -f bare/debs/*dbgsym*
cp -R "stealscope-$version/tests" "stealscope-$version/debian" bare/source/
# Installs the dependencies first, so that the difference shows the files of the packages alone.
depends=$(for p in bare/debs/*.deb; do dpkg-deb -f "$p" Depends; done | sed 's/([^)]*)//g; s/|[^,]*//g' | tr ',' '\n' |
	sed 's/ //g' | grep -v stealscope | sort -u | tr '\n' ' ')
try inside "apt-get -qq -y --no-install-recommends install $depends gcc libc6-dev pkg-config"
all_files bare/usr >before
all_files bare/etc >>before
try inside 'apt-get -qq -y --no-install-recommends install /debs/*.deb'
for t in bare/source/debian/tests/*; do
	name=${t##*/}
	[ "$name" = control ] || try inside "cd /source && mkdir /tmp/$name && AUTOPKGTEST_TMP=/tmp/$name sh debian/tests/$name"
done
try inside 'ls /lib/systemd/system/stealscope-monitor.service /lib/systemd/system/stealscope-record.service \
	/lib/systemd/system/stealscope-record.timer && ! ls /etc/systemd/system/*.wants/stealscope*'
try inside 'ls /usr/share/bash-completion/completions/stealscope.bash /usr/share/zsh/vendor-completions/_stealscope \
	/usr/share/fish/vendor_completions.d/stealscope.fish'
# shellcheck disable=SC2016  # the shell in the root expands these variables
try inside 'for command in $(stealscope --__complete "" | sed -n "s/^\([a-z]*\)\t.*/\1/p"); do
	ls "/usr/share/man/man1/stealscope-$command.1.gz"
done >/tmp/pages && grep -c . /tmp/pages'
try inside 'ls /usr/share/man/man3/stealscope-mark.3.gz /usr/share/man/man5/stealscope-tables.5.gz /usr/share/man/man7/stealscope.7.gz'
mkdir -p bare/var/lib/stealscope
try inside 'apt-get -qq -y purge stealscope libstealscope-mark1 libstealscope-mark-dev'
all_files bare/usr >after
all_files bare/etc >>after
diff before after || die 'purged packages leave files'
[ ! -e bare/var/lib/stealscope ] || die 'purged packages leave /var/lib/stealscope'
[ -z "$(find bare/var/lib -xdev -name '*stealscope*' ! -path '*/apt/*' ! -path '*/dpkg/*')" ] || die 'purged packages leave state'
say 'in a bare root they install, their tests pass, and purged they leave nothing'

[ -d rpm ] || exit 0
plain_files() { (cd bare && find usr etc -xdev ! -type d | LC_ALL=C sort); }  # rpm leaves directories of other packages
plain_files >before
rm -rf bare/tmp/demo
try rpm -i --force-debian --nodeps --root "$temp/bare" --dbpath /var/lib/rpm rpm/RPMS/*/*.rpm
try inside 'cd /source && mkdir /tmp/demo && AUTOPKGTEST_TMP=/tmp/demo sh debian/tests/demo'
[ -e bare/usr/lib/systemd/system/stealscope-monitor.service ] || die 'the RPM has no units'
try rpm -e --force-debian --nodeps --root "$temp/bare" --dbpath /var/lib/rpm stealscope libstealscope-mark libstealscope-mark-devel
plain_files >after
diff before after || die 'removed RPMs leave files'
say 'the RPMs install in it, the program runs, and removed they leave nothing'
