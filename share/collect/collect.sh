#!/bin/sh
# usage: collect.sh TARGET HOST...
#
# Records on many hosts through ssh, eight at a time, fetches the histories and exports them from this machine: the hosts
# need no access to the database.  TARGET is one of `stealscope export --targets`.  A host that fails is reported; the
# others are exported.  Histories stay in ./collected/HOST.steal; exporting one again changes nothing in the database.
#   TIME=10s      how long each host records
#   SIDE=8        hosts at the same time
#   LIMIT=4096    largest history that a host may send, MiB
set -u
umask 077  # histories contain the names of all threads
is_host_name() {  # refuses options of ssh, paths, and special characters of shells
	case $1 in -* | .* | *[!A-Za-z0-9._@:%+-]* | '') return 1 ;; esac
}
if [ "${1-}" != one ]; then
	[ $# -ge 2 ] || { sed -n 's/^# usage: /usage: /p' "$0" >&2; exit 1; }
	target=$1
	shift
	mkdir -p collected || exit
	case ${TIME:-10s} in *[!0-9a-z.]*) echo "TIME: not a duration" >&2; exit 1 ;; esac
	rc=0
	for host; do
		is_host_name "$host" && continue
		printf '%s: failed\n' "$host" | tr -c '[:print:]\n' '?' >&2
		rc=1
	done
	for host; do
		is_host_name "$host" && printf '%s\n' "$host"
	done | TARGET=$target xargs -P "${SIDE:-8}" -n 1 sh "$0" one || exit
	exit "$rc"
fi
host=$2
file=collected/$host.steal
# shellcheck disable=SC2016  # the shell on the host expands these variables
(
	ulimit -f $((${LIMIT:-4096} * 2048))
	exec ssh -n -o BatchMode=yes "$host" "TIME='${TIME:-10s}'"'; d=$(mktemp -d) && trap "rm -rf $d" EXIT && cd "$d" &&
		stealscope record -t "$TIME" -o r --no-index >&2 && stealscope index r -o h.steal >&2 && cat h.steal'
) >"$file.part" &&
	stealscope info "$file.part" >/dev/null && mv "$file.part" "$file" &&
	stealscope export "$file" --to "${TARGET?}" --only run,machine,steal,steal_total,gap,clock,loss >/dev/null && exit
rm -f "$file.part"
printf '%s: failed\n' "$host" >&2
exit 1
