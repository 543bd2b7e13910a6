# Records a guest: the host sends this script to the standard input of a shell in the guest, after a line that assigns the
# variables below. Needs a POSIX shell, cat, dd and tracefs. Removes its tracefs instance and mount whenever and however it
# ends.
#
#   key        begins every frame
#   task       trace, check or clean
#   root       "", or a directory that replaces /
#   events     requested events, "system/name ..."
#   clocks     names of trace clocks, best first
#   hold       seconds of trace that the buffers should hold
#   overwrite  1: the buffers overwrite their oldest data (flight recording)
#   limit      seconds without a command after which the host is considered dead
#   max_kb     maximum size of a CPU's buffer, KiB
#   steal      1: define probes that read the steal clock of KVM
#   programs   names of the programs with requests to record, " nginx postgres"
#   paths      files and patterns of such programs, which also apply if none runs
#
# Output: frames "KEY NAME BYTES", a line break, the bytes. Input: commands, one per line: go, stop, send, more
# (keep-alive), and those of record_requests; the end of the input ends the script.
# shellcheck shell=sh disable=SC2154

# Functions for this shell and for the watchdog, which is a separate shell.
shared='
# Prints the start time of a process in ticks since boot; nothing if it has ended, even if its parent has not noticed.
start_time() {
	line=
	read -r line 2>/dev/null <"$root/proc/$1/stat" || return
	line=${line##*) }
	set -- $line
	[ "$1" = Z ] || echo "${20}"
}
# Returns true if the process that created an instance lives: the name is stealscope-guest-PID-START.
is_alive() {
	owner=${1##*stealscope-guest-}
	[ "$(start_time "${owner%-*}")" = "${owner#*-}" ]
}
# Returns true if the instance was removed.
remove_instance() {
	echo 0 >"$1/tracing_on"
	rmdir "$1"
} 2>/dev/null
add_removed() {
	case " $removed " in *" $1 "*) ;; *) removed="$removed $1" ;; esac
}
# Prints the group of the probes of the script with this instance: "stealscope_PID_START".
probe_group() {  # name of the instance
	owner=${1##*stealscope-guest-}
	echo "stealscope_${owner%-*}_${owner#*-}"
}
# Removes the probes of a group. Returns true if none remains. No instance may use them.
remove_probes() {  # tracefs, group
	for probe in "$1/events/$2"/* "$1/events/$2"_[cr]*/*; do
		[ -d "$probe" ] || continue
		echo "-:${probe#"$1/events/"}" >>"$1/dynamic_events" || echo "-:${probe#"$1/events/"}" >>"$1/uprobe_events"
	done
	for probe in "$1/events/$2"/* "$1/events/$2"_[cr]*/*; do
		[ ! -d "$probe" ] || return 1
	done
} 2>/dev/null
# Returns true if the topmost file system mounted at a path has this name.
is_top_mount() {  # name, path
	top=
	while read -r mounted at _; do
		[ "$at" != "$2" ] || top=$mounted
	done <"$root/proc/mounts"
	[ "$top" = "$1" ]
}
# Unmounts tracefs if it was mounted by this script, or by one that has ended; other mounts at the same path stay. The name
# of the mount is that of the instance.
unmount() {  # name of the own mount; "": none
	while read -r name mount_path _; do
		case $name in stealscope-guest-*) ;; *) continue ;; esac
		[ "$mount_path" = "$root/sys/kernel/tracing" ] || continue
		[ "$name" = "$1" ] || ! is_alive "$name" || continue
		for _ in 1 2 3 4 5; do
			is_top_mount "$name" "$mount_path" || continue 2
			umount "$mount_path" && add_removed "$name" && continue 2
			sleep 1  # a process still uses it
		done 2>/dev/null
		failed=$((failed + 1))
	done <"$root/proc/mounts"
}
'

# Kills the script if no command arrives for `limit` seconds; removes the instance after the script has ended.
watchdog='
trap "remaining=$limit" USR1
remaining=$limit
kill -USR2 "$main"
while [ "$remaining" -gt 0 ] && is_alive "$instance"; do
	sleep 3  # rarely: each sleep costs the guest a process
	remaining=$((remaining - 3))
done
is_alive "$instance" && kill -KILL "$main"
remaining=900
until remove_instance "$instance" || [ ! -d "$instance" ] || [ "$remaining" = 0 ]; do
	grep -l "$instance" /proc/[0-9]*/cmdline | while IFS=/ read -r _ _ process _; do
		[ "$process" = $$ ] || kill -KILL "$process"  # an open reader prevents the removal
	done
	sleep 1
	remaining=$((remaining - 1))
done
remove_probes "${instance%/instances/*}" "$(probe_group "$instance")"
unmount
'

frame() {  # name, text
	printf '%s %s %s\n%s' "$key" "$1" "${#2}" "$2" >&4
}

# Reports why the guest cannot be recorded (codes in guest.c), and ends.
refuse() {  # code, details
	frame refuse "$*"
	exit 1
}

# Runs a program in the background without our descriptors and directory, so that nothing waits for their release.
exec_detached() {
	cd /
	exec "$@" </dev/null >/dev/null 2>&1 3<&- 4>&-
}

# Sleeps until the time is over or a trapped signal arrives. If the signal arrived before the wait and has set `stop`, does
# not wait. The sleep is killed by SIGKILL: a new child of bash still has our traps, so another signal could run end() in
# it.
interruptible_sleep() {  # seconds
	exec_detached sleep "$1" &
	sleeper=$!
	[ -n "$stop" ] || wait "$sleeper" || kill -KILL "$sleeper"
	sleeper=
}

# Prints the threads of the guest: "TID PROCESS NAME".
threads() {
	for process in "$root"/proc/[0-9]*; do
		for thread in "$process"/task/[0-9]*; do
			read -r name <"$thread/comm" && echo "${thread##*/} ${process##*/} $name"
		done
	done
} 2>/dev/null

find_tracefs() {
	tracing=
	for path in "$root/sys/kernel/tracing" "$root/sys/kernel/debug/tracing"; do
		[ -z "$tracing" ] && [ -f "$path/trace_clock" ] && tracing=$path
	done
	[ -z "$tracing" ] || return
	path=$root/sys/kernel/tracing
	[ -d "$path" ] || refuse tracefs
	mount -t tracefs "$self" "$path" 2>/dev/null || refuse mount
	tracing=$path
}

# Removes the remains of scripts that were killed together with their watchdogs.
clean() {
	removed='' failed=0
	for old in "$tracing"/instances/stealscope-guest-*; do
		if [ -d "$old" ] && ! is_alive "$old"; then
			if remove_instance "$old"; then add_removed "${old##*/}"; else failed=$((failed + 1)); fi
		fi
	done
	for old in "$tracing"/events/stealscope_*; do
		owner=${old##*/stealscope_}
		start=${owner#*_}
		group=stealscope_${owner%%_*}_${start%%_*}
		[ ! -d "$old" ] || is_alive "stealscope-guest-${owner%%_*}-${start%%_*}" && continue
		if remove_probes "$tracing" "$group"; then add_removed "$group"; else failed=$((failed + 1)); fi
	done
	[ "$task" != clean ] || unmount  # other tasks use tracefs
	# shellcheck disable=SC2086
	set -- $removed
	frame cleaned "removed $#
failed $failed"
}

end() {
	trap '' EXIT USR1 USR2 HUP INT QUIT TERM PIPE
	cd /
	if [ -n "$instance" ]; then
		tries=0
		until [ ! -d "$instance" ] || remove_instance "$instance" || [ "$tries" = 3 ]; do
			sleep 1
			tries=$((tries + 1))
		done
		[ -d "$instance" ] && return  # the watchdog continues
		kill -KILL "$watchdog_pid"
		remove_probes "$tracing" "$(probe_group "$self")"
	fi
	unmount "$self"
} 2>/dev/null

# Starts the watchdog, then creates the instance.
create_instance() {
	instance=$tracing/instances/$self
	main=$$ watchdog_ready=''
	export instance main limit root
	trap 'watchdog_ready=1' USR2
	# shellcheck disable=SC2046
	exec_detached $(command -v setsid) sh -c "$shared$watchdog" &
	watchdog_pid=$!
	for _ in 1 2 3 4 5; do
		[ -n "$watchdog_ready" ] || interruptible_sleep 1
	done
	[ -n "$watchdog_ready" ] || refuse watchdog
	mkdir "$instance" 2>/dev/null || refuse instance
}

choose_clock() {
	read -r available <"$tracing/trace_clock"
	for clock in $clocks; do
		case " $available " in *" $clock "* | *"[$clock]"*) return ;; esac
	done
	refuse clock "$available"
}

choose_events() {
	recorded=
	for event in $events; do
		[ -f "$tracing/events/$event/format" ] && recorded="$recorded $event"
	done
	case $recorded in *sched/sched_switch*) ;; *) refuse events ;; esac
}

# Defines a pair of event probes: at a thread switch and at a timer. Returns false if the kernel refuses them.
define_probes() {  # group, fields
	echo "e:$1/steal_switch sched.sched_switch$2" >>"$tracing/dynamic_events" || return
	echo "e:$1/steal_timer timer.hrtimer_expire_entry$2" >>"$tracing/dynamic_events" || return
	probes="$probes $1/steal_switch $1/steal_timer"
} 2>/dev/null

# Sets `offset` to the address of the steal clock in the area of a CPU, "+0x33080" or "-0x...". Returns false if unknown.
find_steal_clock() {
	offset='' symbols=$(grep -E ' (steal_time|__per_cpu_offset)$' "$root/proc/kallsyms" 2>/dev/null)
	case $symbols in *__per_cpu_offset*) ;; *) return 1 ;; esac
	# shellcheck disable=SC2086
	set -- $symbols
	while [ $# -ge 3 ] && [ -z "$offset" ]; do
		case $3/$1 in
		steal_time/0000000000000000) return 1 ;;  # addresses are hidden
		steal_time/00000000*) offset=+0x${1#00000000} ;;
		steal_time/ffffffff*) offset=-0x$(printf %x $((0x100000000 - 0x${1#ffffffff}))) ;;
		esac
		shift 3
	done
	[ -n "$offset" ]
}

# Chooses the source of stolen time; the task trace defines its probes and adds their events to `recorded`. The host uses the
# clock to check its own trace, so it is no failure if there is none.
choose_steal_clock() {
	steal_source=none probes=''
	[ "$steal" = 1 ] && [ "$(uname -m)" = x86_64 ] && grep -q -F ' e[:[' "$tracing/README" && find_steal_clock || return
	set -- "$tracing"/per_cpu/cpu*
	[ $# -le 64 ] || return
	[ "$task" = check ] && steal_source=event_probes && return
	group=$(probe_group "$self") fields=''
	for cpu; do
		cpu=${cpu##*/cpu}
		field=" cpu$cpu=$offset(@__per_cpu_offset+$((8 * cpu))):u64"
		fields=$fields$field
		[ $# -le 4 ] || define_probes "${group}_c$cpu" "$field" || return
	done
	[ $# -gt 4 ] || define_probes "$group" "$fields" || return
	for probe in $probes; do
		[ -f "$tracing/events/$probe/format" ] || return
	done
	steal_source=event_probes recorded=$recorded$probes
}

# Adds a program, once per file, to the list for the host, "PID BYTES PATH"; PID 0: it does not run.
add_program() {  # PID, file to open, path
	case $3 in *[[:space:]]*) return ;; esac
	[ -f "$2" ] && [ -r "$2" ] && [ "$count" -lt 8 ] && id=$(stat -L -c %d:%i "$2") || return
	case " $ids " in *" $id "*) return ;; esac
	size=$(($(wc -c <"$2")))
	[ "$size" -gt 0 ] || return
	count=$((count + 1)) ids="$ids $id" files="$files $2" sizes="$sizes $size" list="$list$1 $size $3
"
} 2>/dev/null

find_programs() {
	count=0 ids='' files='' sizes='' list=''
	for process in "$root"/proc/[0-9]*; do
		path=$(readlink "$process/exe" 2>/dev/null) || continue
		path=${path% (deleted)}
		case " $programs " in *" ${path##*/} "*) add_program "${process##*/}" "$process/exe" "$path" ;; esac
	done
	for path in $paths; do
		add_program 0 "$path" "$path"
	done
}

# Prints a word of a list.
word() {  # number, words
	shift "$1"
	echo "$1"
}

# Sends blocks of 4 KiB of a program.
send_program() {  # number, first block, blocks
	# shellcheck disable=SC2086
	file=$(word "$1" $files) size=$(word "$1" $sizes)
	size=$((size - $2 * 4096))
	[ "$size" -lt $(($3 * 4096)) ] || size=$(($3 * 4096))
	[ "$size" -gt 0 ] || exit
	printf '%s program %s\n' "$key" "$size" >&4
	dd if="$file" bs=4096 skip="$2" count="$3" 2>/dev/null >&4 3<&- || exit
}

define_request() {  # number of the program, p or r, end of the name, offset and arguments
	# shellcheck disable=SC2086
	file=$(word "$1" $files) name=$(probe_group "$self")$3
	if echo "$2:$name $file:$4" >>"$tracing/uprobe_events"; then batch="$batch $name"; else refused=$((refused + 1)); fi
} 2>/dev/null

# Keeps the probes of a batch if all could be defined.
commit_requests() {
	if [ "$refused" = 0 ]; then
		recorded=$recorded$batch
	else
		for name in $batch; do
			echo "-:$name" >>"$tracing/uprobe_events"
		done
	fi 2>/dev/null
	frame defined "failed $refused"
	batch='' refused=0
}

# Lets the host read programs and define probes for their requests.
record_requests() {
	find_programs
	frame programs "$list"
	batch='' refused=0
	while read -r command number a b place <&3; do
		kill -USR1 "$watchdog_pid"
		case $command in
		read) send_program "$number" "$a" "$b" ;;
		probe) define_request "$number" "$a" "$b" "$place" ;;
		commit) commit_requests ;;
		more) ;;
		requests_end) return ;;
		*) break ;;
		esac
	done
	exit
}

send_about() {
	for file in osrelease version hostname; do
		read -r line <"$root/proc/sys/kernel/$file"
		about="$about$file $line
"
	done
	frame about "${about}machine $(uname -m)
clock $clock
steal $steal_source
events$recorded"
}

send_formats() {
	frame header_page "$(cat "$tracing/events/header_page")"
	frame header_event "$(cat "$tracing/events/header_event")"
	frame formats "$(for event in $recorded; do cat "$tracing/events/$event/format"; done)"
	frame threads "$(threads)"
}

set_up() {
	cd "$instance" || refuse instance
	echo 0 >tracing_on
	echo "$clock" >trace_clock || refuse clock "$clock"
	echo 1 >options/overwrite  # pages mark lost events only in this mode
	echo 1 >options/record-tgid
	for event in $recorded; do
		case $event in stealscope_*_c*/steal_*)
			cpu=${event##*_c}
			echo "CPU == ${cpu%%/*}" >"events/$event/filter" ;;
		esac
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

# Measures the event rate in a short test, and sizes the buffers for `hold` seconds at four times the rate (overwrite:
# twice), limited by max_kb and 1/4 of the free memory. The interval of reading (`pause`) grows with the buffers: 1 s per
# MiB, so that a CPU may record at least 1/2 MiB/s before a buffer is half full.
size_buffers() {
	page=4096 busiest=0 kilobytes=1024 free=65536
	while read -r line; do
		case $line in *"char data;"*) line=${line#*offset:} page=${line##*size:} page=$((${page%%;*} + ${line%%;*})) ;; esac
	done <"$tracing/events/header_page"
	while read -r label value _; do
		[ "$label" = MemAvailable: ] && free=$value
	done <"$root/proc/meminfo"
	tenths=3
	echo 1 >tracing_on
	sleep 0.3 2>/dev/null || { tenths=10 && sleep 1; }
	echo 0 >tracing_on
	cpus=0
	for cpu in per_cpu/cpu*; do
		read_stats "${cpu#*/}"
		[ "$entries" = 0 ] || bytes=$((bytes + bytes / entries * overrun))
		[ "$bytes" -gt "$busiest" ] && busiest=$bytes
		cpus=$((cpus + 1))
	done
	rate=$((busiest * 10 / tenths / 1024 + 1)) limit_kb=$((free / 4 / cpus))
	[ "$limit_kb" -gt "$max_kb" ] && limit_kb=$max_kb
	kilobytes=$((rate * hold * 4))
	[ "$overwrite" = 0 ] || kilobytes=$((rate * hold * 2))
	[ "$kilobytes" -lt 4096 ] && kilobytes=4096
	[ "$kilobytes" -gt "$limit_kb" ] && kilobytes=$limit_kb
	until echo "$kilobytes" >buffer_size_kb; do
		kilobytes=$((kilobytes / 2))
		[ "$kilobytes" -gt 64 ] || refuse memory
	done 2>/dev/null
	: >trace
	pause=$((kilobytes / 1024)) max_pause=$((kilobytes / rate / 4))
	[ "$pause" -gt "$max_pause" ] && pause=$max_pause
	[ "$pause" -gt 8 ] && pause=8
	[ "$pause" -lt 1 ] && pause=1
	frame ready "kilobytes $kilobytes rate $rate page $page"
}

# Sends the pages of a CPU except the last `keep`. Requests only as many pages as the buffer holds, so that reading cannot
# block.
send_pages() {  # cpuN, keep
	while read_stats "$1" && [ "$entries" -gt 0 ]; do
		pages=$((bytes / (page - 16) - $2))
		[ "$pages" -gt $((kilobytes * 1024 / page + 1)) ] && pages=1  # some kernels report a negative number of bytes
		[ "$pages" -gt 256 ] && pages=256
		if [ "$pages" -lt 1 ]; then
			[ "$2" = 0 ] || return
			pages=1
		fi
		printf '%s pages/%s %s\n' "$key" "$1" $((pages * page)) >&4
		dd if="$instance/per_cpu/$1/trace_pipe_raw" bs=$page count=$pages 2>/dev/null >&4 3<&- || exit
		kill -USR1 "$watchdog_pid"
	done
}

# Sends pages of buffers that are more than half full.
send_full_buffers() {
	for cpu in per_cpu/cpu*; do
		read_stats "${cpu#*/}"
		[ "$((bytes / 512))" -gt "$kilobytes" ] && [ "$((bytes / 1024))" -le "$kilobytes" ] && send_pages "${cpu#*/}" 2
	done
}

# Sends realtime and trace clock.
send_clock_sample() {
	frame "$1" "realtime $(date +%s%N)
$(cat per_cpu/cpu0/stats)
realtime_after $(date +%s%N)"
}

# Waits for a command other than `more`, or the end of the input, then sends SIGUSR1 to the script.
watch_commands() {
	cd /
	while read -r command && [ "$command" = more ]; do
		kill -USR1 "$watchdog_pid"
	done
	is_alive "$instance" && kill -USR1 "$main"
}

record() {
	stop='' sleeper=
	trap 'stop=1; [ -z "$sleeper" ] || kill -KILL "$sleeper"' USR1
	kill -USR1 "$watchdog_pid"
	echo 1 >tracing_on
	send_clock_sample started
	watch_commands <&3 >/dev/null 2>&1 3<&- 4>&- &
	while [ -z "$stop" ]; do
		interruptible_sleep "$pause"
		[ "$overwrite" = 1 ] || send_full_buffers
	done
	echo 0 >tracing_on
	send_clock_sample stopped
	kill -USR1 "$watchdog_pid"
}

send() {
	for cpu in per_cpu/cpu*; do
		send_pages "${cpu#*/}" 0
		frame "stats/${cpu#*/}" "$(cat "$cpu/stats")"
	done
	frame saved_cmdlines "$(cat "$tracing/saved_cmdlines")"
	frame saved_tgids "$(cat "$tracing/saved_tgids" 2>/dev/null)"
	frame threads "$(threads)"
	frame end ''
	: >trace
}

send_end() {
	frame end ''
	exit
}

stealscope_guest() {
	LC_ALL=C PATH=$PATH:/usr/sbin:/usr/bin:/sbin:/bin
	instance='' about='' stop=''
	umask 077
	exec 3<&0 4>&1 </dev/null >/dev/null 2>&1
	eval "$shared"
	self=stealscope-guest-$$-$(start_time $$)
	trap end EXIT
	trap 'exit 1' HUP INT QUIT TERM PIPE
	echo >&4  # ends a line that a login shell may have printed
	[ -n "$root" ] || [ "$(id -u)" = 0 ] || refuse root "$(id -u)"
	find_tracefs
	[ -d "$tracing/instances" ] || refuse instance
	clean
	[ "$task" = clean ] && send_end
	choose_clock
	choose_events
	[ "$task" = check ] || create_instance  # its watchdog removes the probes, too
	choose_steal_clock
	[ "$task" != trace ] || [ -z "$programs$paths" ] || record_requests
	send_about
	[ "$task" = check ] && send_end
	send_formats
	set_up
	size_buffers
	while read -r command <&3; do
		case $command in
		go) record ;;
		send) send ;;
		more) kill -USR1 "$watchdog_pid" ;;
		*) break ;;
		esac
	done
	exit
}
stealscope_guest
