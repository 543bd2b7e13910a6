# What runs in a guest while it is recorded: sent behind some assignments to the standard input of its shell.  It needs a
# POSIX shell, cat, dd and tracefs, and leaves nothing behind, however it ends.
#
#   key      begins every frame        root     "", or a folder that stands for /
#   task     trace, check or clean     events   "system/name ..." that are wanted
#   clocks   trace clocks, best first  hold     seconds that the buffers should hold
#   turn     1: they turn over         limit    seconds without a word after which nobody is listening any more
#   ceiling  KiB of a CPU's buffer, at most
#
# Frames go to the standard output: "KEY NAME BYTES", a line break, the bytes.  Words come as lines: go, stop, send, more
# (somebody is listening still); the end of the input is the end.
# shellcheck shell=sh disable=SC2154

# Both here and in the watchdog, which is a shell of its own.
shared='
# When a process began, in ticks since boot; nothing when there is none.
begun() {
	line=
	read -r line 2>/dev/null <"$root/proc/$1/stat" || return
	line=${line##*) }
	set -- $line
	echo "${20}"
}
# An instance is called after the process whose it is.
is_alive() {
	owner=${1##*stealscope-guest-}
	[ "$(begun "${owner%-*}")" = "${owner#*-}" ]
}
erase() {
	echo 0 >"$1/tracing_on"
	rmdir "$1"
} 2>/dev/null
went() {
	case " $gone " in *" $1 "*) ;; *) gone="$gone $1" ;; esac
}
# What is mounted somewhere is seen there unless something was mounted over it.
is_seen() {  # name, place
	seen=
	while read -r mounted at _; do
		[ "$at" != "$2" ] || seen=$mounted
	done <"$root/proc/mounts"
	[ "$seen" = "$1" ]
}
# So is what was mounted: it goes with its process, or after it; what somebody else mounts there at once stays.
unmount() {  # own name, if any
	while read -r name place _; do
		case $name in stealscope-guest-*) ;; *) continue ;; esac
		[ "$place" = "$root/sys/kernel/tracing" ] || continue
		[ "$name" = "$1" ] || ! is_alive "$name" || continue
		for _ in 1 2 3 4 5; do
			is_seen "$name" "$place" || continue 2
			umount "$place" && went "$name" && continue 2
			sleep 1  # somebody is there still
		done 2>/dev/null
		left=$((left + 1))
	done <"$root/proc/mounts"
}
'

watchdog='
trap "left=$limit" USR1
left=$limit
kill -USR2 "$main"
while [ "$left" -gt 0 ] && is_alive "$instance"; do
	sleep 3  # it costs the guest a process each time
	left=$((left - 3))
done
is_alive "$instance" && kill -KILL "$main"
left=900
until erase "$instance" || [ ! -d "$instance" ] || [ "$left" = 0 ]; do
	grep -l "$instance" /proc/[0-9]*/cmdline | while IFS=/ read -r _ _ process _; do
		[ "$process" = $$ ] || kill -KILL "$process"  # a reader would keep it
	done
	sleep 1
	left=$((left - 1))
done
unmount
'

frame() {  # name, text
	printf '%s %s %s\n%s' "$key" "$1" "${#2}" "$2" >&4
}

refuse() {  # code, more
	frame refuse "$*"
	exit 1
}

# For the background: nobody waits for the end of what it holds open, nor for where it is.
apart() {
	cd /
	exec "$@" </dev/null >/dev/null 2>&1 3<&- 4>&-
}

# A signal that is trapped cuts it short; what sets stop, also one that comes before the wait.  One that can be trapped
# would find our traps in bash's children, as long as these are young: end() would run in one of them.
doze() {  # seconds
	apart sleep "$1" &
	nap=$!
	[ -n "$stop" ] || wait "$nap" || kill -KILL "$nap"
	nap=
}

# Its threads: TID, process, name.
threads() {
	for process in "$root"/proc/[0-9]*; do
		for thread in "$process"/task/[0-9]*; do
			read -r name <"$thread/comm" && echo "${thread##*/} ${process##*/} $name"
		done
	done
} 2>/dev/null

find_tracefs() {
	tracing=
	for place in "$root/sys/kernel/tracing" "$root/sys/kernel/debug/tracing"; do
		[ -z "$tracing" ] && [ -f "$place/trace_clock" ] && tracing=$place
	done
	[ -z "$tracing" ] || return
	place=$root/sys/kernel/tracing
	[ -d "$place" ] || refuse tracefs
	mount -t tracefs "$self" "$place" 2>/dev/null || refuse mount
	tracing=$place
}

# What shells left that were killed, and their watchdogs too.
clean() {
	gone='' left=0
	for old in "$tracing"/instances/stealscope-guest-*; do
		if [ -d "$old" ] && ! is_alive "$old"; then
			if erase "$old"; then went "${old##*/}"; else left=$((left + 1)); fi
		fi
	done
	[ "$task" != clean ] || unmount  # any other task needs it
	# shellcheck disable=SC2086
	set -- $gone
	frame cleaned "erased $#
left $left"
}

end() {
	trap '' EXIT USR1 USR2 HUP INT QUIT TERM PIPE
	cd /
	if [ -n "$instance" ]; then
		tries=0
		until [ ! -d "$instance" ] || erase "$instance" || [ "$tries" = 3 ]; do
			sleep 1
			tries=$((tries + 1))
		done
		[ -d "$instance" ] && return  # the watchdog goes on
		kill -KILL "$dog"
	fi
	unmount "$self"
} 2>/dev/null

begin() {
	instance=$tracing/instances/$self
	main=$$ watched=''
	export instance main limit root
	trap 'watched=1' USR2
	# shellcheck disable=SC2046
	apart $(command -v setsid) sh -c "$shared$watchdog" &
	dog=$!
	for _ in 1 2 3 4 5; do
		[ -n "$watched" ] || doze 1
	done
	[ -n "$watched" ] || refuse watchdog
	mkdir "$instance" 2>/dev/null || refuse instance
}

choose_clock() {
	read -r known <"$tracing/trace_clock"
	for clock in $clocks; do
		case " $known " in *" $clock "* | *"[$clock]"*) return ;; esac
	done
	refuse clock "$known"
}

choose_events() {
	chosen=
	for event in $events; do
		[ -f "$tracing/events/$event/format" ] && chosen="$chosen $event"
	done
	case $chosen in *sched/sched_switch*) ;; *) refuse events ;; esac
}

hello() {
	for file in osrelease version hostname; do
		read -r line <"$root/proc/sys/kernel/$file"
		about="$about$file $line
"
	done
	frame about "${about}machine $(uname -m)
clock $clock
events$chosen"
}

describe() {
	frame header_page "$(cat "$tracing/events/header_page")"
	frame header_event "$(cat "$tracing/events/header_event")"
	frame formats "$(for event in $chosen; do cat "$tracing/events/$event/format"; done)"
	frame threads "$(threads)"
}

set_up() {
	cd "$instance" || refuse instance
	echo 0 >tracing_on
	echo "$clock" >trace_clock || refuse clock "$clock"
	echo 1 >options/overwrite  # only then a page says that events before it are lost
	echo 1 >options/record-tgid
	for event in $chosen; do
		echo 1 >"events/$event/enable"
	done
} 2>/dev/null

read_stats() {  # cpuN
	entries=0 bytes=0 overrun=0
	while read -r label value _; do
		case $label in
		entries:) entries=$value ;;
		overrun:) overrun=$value ;;
		bytes:) bytes=$value ;;
		esac
	done <"per_cpu/$1/stats"
}

# Buffers that hold what a short look saw, four times over: the whole time if memory has room, else some seconds of it.
# The larger they are, the more seldom need be looked after them: half a MiB/s of a CPU is always provided for.
size_buffers() {
	page=4096 most=0 kilobytes=1024 free=65536
	while read -r line; do
		case $line in *"char data;"*) line=${line#*offset:} page=${line##*size:} page=$((${page%%;*} + ${line%%;*})) ;; esac
	done <"$tracing/events/header_page"
	while read -r label value _; do
		[ "$label" = MemAvailable: ] && free=$value
	done <"$root/proc/meminfo"
	look=3
	echo 1 >tracing_on
	sleep 0.3 2>/dev/null || { look=10 && sleep 1; }
	echo 0 >tracing_on
	cpus=0
	for cpu in per_cpu/cpu*; do
		read_stats "${cpu#*/}"
		[ "$entries" = 0 ] || bytes=$((bytes + bytes / entries * overrun))
		[ "$bytes" -gt "$most" ] && most=$bytes
		cpus=$((cpus + 1))
	done
	rate=$((most * 10 / look / 1024 + 1)) room=$((free / 4 / cpus))
	[ "$room" -gt "$ceiling" ] && room=$ceiling
	kilobytes=$((rate * hold * 4))
	[ "$turn" = 0 ] || kilobytes=$((rate * hold * 2))
	[ "$kilobytes" -lt 4096 ] && kilobytes=4096
	[ "$kilobytes" -gt "$room" ] && kilobytes=$room
	until echo "$kilobytes" >buffer_size_kb; do
		kilobytes=$((kilobytes / 2))
		[ "$kilobytes" -gt 64 ] || refuse memory
	done 2>/dev/null
	: >trace
	pause=$((kilobytes / 1024)) most=$((kilobytes / rate / 4))
	[ "$pause" -gt "$most" ] && pause=$most
	[ "$pause" -gt 8 ] && pause=8
	[ "$pause" -lt 1 ] && pause=1
	frame ready "kilobytes $kilobytes rate $rate page $page"
}

# All pages of a CPU but the last `keep`.  As long as there are bytes for so many whole pages, reading them cannot block.
drain() {  # cpuN, keep
	while read_stats "$1" && [ "$entries" -gt 0 ]; do
		pages=$((bytes / (page - 16) - $2))
		[ "$pages" -gt $((kilobytes * 1024 / page + 1)) ] && pages=1  # some kernels count below 0
		[ "$pages" -gt 256 ] && pages=256
		if [ "$pages" -lt 1 ]; then
			[ "$2" = 0 ] || return
			pages=1
		fi
		printf '%s pages/%s %s\n' "$key" "$1" $((pages * page)) >&4
		dd if="$instance/per_cpu/$1/trace_pipe_raw" bs=$page count=$pages 2>/dev/null >&4 3<&- || exit
		kill -USR1 "$dog"
	done
}

# What is more than half full.
relieve() {
	for cpu in per_cpu/cpu*; do
		read_stats "${cpu#*/}"
		[ "$((bytes / 512))" -gt "$kilobytes" ] && [ "$((bytes / 1024))" -le "$kilobytes" ] && drain "${cpu#*/}" 2
	done
}

now() {
	frame "$1" "realtime $(date +%s%N)
$(cat per_cpu/cpu0/stats)"
}

listen() {
	cd /
	while read -r word && [ "$word" = more ]; do
		kill -USR1 "$dog"
	done
	is_alive "$instance" && kill -USR1 "$main"
}

record() {
	stop='' nap=
	trap 'stop=1; [ -z "$nap" ] || kill -KILL "$nap"' USR1
	kill -USR1 "$dog"
	echo 1 >tracing_on
	now started
	listen <&3 >/dev/null 2>&1 3<&- 4>&- &
	while [ -z "$stop" ]; do
		doze "$pause"
		[ "$turn" = 1 ] || relieve
	done
	echo 0 >tracing_on
	now stopped
	kill -USR1 "$dog"
}

send() {
	for cpu in per_cpu/cpu*; do
		drain "${cpu#*/}" 0
		frame "stats/${cpu#*/}" "$(cat "$cpu/stats")"
	done
	frame saved_cmdlines "$(cat "$tracing/saved_cmdlines")"
	frame saved_tgids "$(cat "$tracing/saved_tgids" 2>/dev/null)"
	frame threads "$(threads)"
	frame end ''
	: >trace
}

farewell() {
	frame end ''
	exit
}

stealscope_guest() {
	LC_ALL=C PATH=$PATH:/usr/sbin:/usr/bin:/sbin:/bin
	instance='' about='' stop=''
	umask 077
	exec 3<&0 4>&1 </dev/null >/dev/null 2>&1
	eval "$shared"
	self=stealscope-guest-$$-$(begun $$)
	trap end EXIT
	trap 'exit 1' HUP INT QUIT TERM PIPE
	echo >&4  # behind what a login shell may have said
	[ -n "$root" ] || [ "$(id -u)" = 0 ] || refuse root "$(id -u)"
	find_tracefs
	[ -d "$tracing/instances" ] || refuse instance
	clean
	[ "$task" = clean ] && farewell
	choose_clock
	choose_events
	hello
	[ "$task" = check ] && farewell
	begin
	describe
	set_up
	size_buffers
	while read -r word <&3; do
		case $word in
		go) record ;;
		send) send ;;
		more) kill -USR1 "$dog" ;;
		*) break ;;
		esac
	done
	exit
}
stealscope_guest
