#!/bin/sh
# usage: tests/cross/check.sh BUILD-FOLDER ARCH ROOT [TEST...]      from the top of the sources
#
# Builds for another architecture (Debian's name: arm64, s390x) with Debian's cross compiler in ROOT, the root of a Debian 12,
# which mmdebstrap creates if it is missing; compares histories and reports with those of this machine, byte for byte; and
# runs the test suite, or the named tests ("none": none), under qemu-user.  Needs root, mmdebstrap, qemu-user-static and the
# network.  Prints one line per check, exits with status 1 at the first failure, and with 77 if tools are missing.
set -eu
build=$(cd "$1" && pwd)
arch=$2
root=$3
shift 3

say() { printf 'ok   %s\n' "$*"; }
die() { printf 'FAIL %s\n' "$*"; exit 1; }
skip() { printf 'skipped: %s\n' "$*"; exit 77; }

[ "$(id -u)" = 0 ] || skip 'be root'
command -v mmdebstrap >/dev/null || skip 'mmdebstrap is not installed'
case $arch in
arm64) cpu=aarch64 ;;
*) cpu=$arch ;;
esac
[ -e /proc/sys/fs/binfmt_misc/register ] || mount -t binfmt_misc binfmt_misc /proc/sys/fs/binfmt_misc || skip 'no binfmt_misc'
[ -e "/proc/sys/fs/binfmt_misc/qemu-$cpu" ] || cat "/usr/lib/binfmt.d/qemu-$cpu.conf" >/proc/sys/fs/binfmt_misc/register ||
	skip "qemu-user-static is not installed"

make_root() {
	# Packages of ./bootstrap: libraries of the other architecture, tools of this one.
	list=crossbuild-essential-$arch
	for package in $(sed -n "s/^\(build\|check\)_packages='\(.*\)'/\2/p" bootstrap); do
		case $package in
		gcc | libc6-dev) ;;
		*-dev) list=$list,$package:$arch ;;
		*) list=$list,$package ;;
		esac
	done
	# Without the security suite: it has fewer architectures, and both must have the same version of a library.
	mmdebstrap --mode=root --variant=apt --architectures="$(dpkg --print-architecture),$arch" --include="$list" bookworm "$root" \
		'deb http://deb.debian.org/debian bookworm main' >"$root.log" 2>&1 || die "mmdebstrap: $(tail -n 5 "$root.log")"
}

# The files of C.UTF-8 depend on the byte order; a root has only those of this machine.
foreign_locale() {
	cp /etc/resolv.conf "$root/etc/"
	chroot "$root" /bin/sh -c "apt-get -qq update && cd /tmp && apt-get -qq download libc-bin:$arch &&
		dpkg-deb -x libc-bin_*_$arch.deb /foreign" >"$root.log" 2>&1 || die "libc-bin:$arch: $(tail -n 5 "$root.log")"
}

[ -d "$root/usr" ] || make_root
[ -d "$root/foreign" ] || foreign_locale
QEMU_SET_ENV=LOCPATH=/foreign/usr/lib/locale
export QEMU_SET_ENV
triplet=$cpu-linux-gnu
for place in proc dev dev/pts; do
	mountpoint -q "$root/$place" || mount --bind "/$place" "$root/$place"
done
trap 'umount "$root/dev/pts" "$root/dev" "$root/proc"' EXIT INT TERM

# Builds a copy of the distributed files, so that the tree may change.
rm -rf "$root/stealscope"
cp "$build/stealscope" "$build/stealscope-sim" "$root/tmp/"
make -C "$build" distdir distdir="$root/stealscope" >"$root.log" 2>&1 || die "make distdir: $(tail -n 5 "$root.log")"
inside() { chroot "$root" /bin/sh -c "cd /stealscope && $1"; }
inside "PKG_CONFIG_LIBDIR=/usr/lib/$triplet/pkgconfig:/usr/share/pkgconfig ./configure --host=$triplet --enable-werror" \
	>"$root.log" 2>&1 || die "configure: $(tail -n 5 "$root.log")"
inside 'make -j"$(nproc)" && make -j"$(nproc)" check TESTS=' >"$root.log" 2>&1 || die "make: $(tail -n 5 "$root.log")"
say "it builds for $arch without warnings"

# Indexes the same relative paths with both programs and compares the bytes.
mkdir "$root/stealscope/same"
cp -R tests/data/fibonacci "$root/stealscope/same/"
for scenario in 'overcommit 2' nested requests 'random --containers' 'churn --lost 0.1'; do
	# shellcheck disable=SC2086  # a scenario and its options are words
	"$root/tmp/stealscope-sim" $scenario --duration 1s --no-truth -o "$root/stealscope/same/${scenario%% *}" 2>/dev/null
done
cat >"$root/stealscope/same/ask.sh" <<'END'
# usage: sh ask.sh PROGRAM OUT
for traces in fibonacci overcommit nested requests random churn; do
	"$1" index $traces -o history.steal >/dev/null 2>&1 || exit
	for report in info sync summary threads gaps steal exits waits; do
		"$1" $report history.steal --format json || exit
		"$1" $report history.steal || exit
	done >$2.$traces.reports
	"$1" export history.steal --to csv:$2.$traces.csv >/dev/null || exit
	mv history.steal $2.$traces.history
done
END
inside 'cd same && sh ask.sh ../stealscope there' || die "the program of $arch"
(cd "$root/stealscope/same" && sh ask.sh "$root/tmp/stealscope" here) || die 'the program of this machine'
cd "$root/stealscope/same"
for here in here.*; do
	diff -r "$here" "there.${here#here.}" >&2 || die "$here differs on $arch"
done
say "$(find here.* -type f | wc -l) files (histories, reports, exports) are the same, byte for byte"
if [ "${1-}" = none ]; then
	exit 0
fi
# shellcheck disable=SC2016  # expanded by the shell inside
patiently='PATIENCE=20 PYTHONPATH=$PWD/tests/cross make -k -j"$(nproc)" check'
if [ $# -gt 0 ]; then
	inside "$patiently TESTS='$*'" || die 'tests'
else
	inside "$patiently" || die 'tests'
fi
say "the tests pass on $arch"
