#!/bin/sh
# usage: packaging/check.sh BUILD-FOLDER      from the top of the sources; prints what it checked, exits 1 at the first that does not hold
#
# The tarball is reproducible, Debian's packages build and lintian has nothing to say, the RPM has the same files.
set -eu
build=$1
top=$PWD
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT INT TERM

say() { printf 'ok   %s\n' "$*"; }
die() { printf 'FAIL %s\n' "$*"; exit 1; }

make -C "$build" dist >"$work/log" 2>&1 || die "make dist: $(tail -n 5 "$work/log")"
tarball=$(ls "$build"/stealscope-*.tar.xz)
version=${tarball##*/stealscope-}
version=${version%.tar.xz}
cp "$tarball" "$work/stealscope_$version.orig.tar.xz"
cp "$tarball" "$work/"
sleep 1
make -C "$build" dist >"$work/log" 2>&1
cmp "$tarball" "$work/stealscope_$version.orig.tar.xz" || die 'two tarballs differ'
rm -f "$tarball"
say "make dist gives the same bytes twice: stealscope-$version.tar.xz"

cd "$work"
tar xf "stealscope-$version.tar.xz"
cp -a "$top/debian" "stealscope-$version/"
(cd "stealscope-$version" && DEB_BUILD_OPTIONS=nocheck dpkg-buildpackage -us -uc >"$work/log" 2>&1) || die "$(tail -n 20 "$work/log")"
say 'the Debian packages build'
lintian --allow-root --fail-on error,warning,info,pedantic --suppress-tags no-homepage-field,debian-watch-file-is-missing \
	stealscope_*.changes || die 'lintian has remarks'
say 'lintian has no remarks'
for p in *.deb; do
	case $p in *dbgsym*) ;; *) dpkg-deb -c "$p" ;; esac
done | awk '$6 !~ /\/$/ { sub(/^\./, "", $6); print $6 }' | grep -v '^/usr/share/doc/' |
	sed 's|/usr/lib/[^/]*-linux-gnu[^/]*/|/usr/lib/|; s/\.gz$//' | sort >debian.files

if command -v rpmbuild >/dev/null; then
	rpmbuild --nodeps -bb --define "_sourcedir $work" --define "_topdir $work/rpm" "$top/packaging/stealscope.spec" >"$work/log" 2>&1 ||
		die "$(tail -n 20 "$work/log")"
	find rpm -name '*.rpm' -exec rpm -qlp {} + | grep -vE '^/usr/share/(doc|licenses)/|^\(|/\.build-id' |
		sed 's|/usr/lib64/|/usr/lib/|; s/\.gz$//' | sort -u >rpm.all
	# rpm lists folders, too
	grep -vxE "$(sed 's|/[^/]*$||' rpm.all | sort -u | paste -sd '|')" rpm.all >rpm.files
	diff debian.files rpm.files || die 'the RPM has other files'
	say 'the RPM has the same files'
fi
