#!/bin/sh
# Runs a test, and appends to its log how long it took and how much time of the CPUs it used.  A test that hangs fails after 15
# minutes, takes what it has started along, and its log says so (-v) behind what it has said.
up_10ms() {
	read -r up _ 2>/dev/null </proc/uptime || up=0.00
	echo "${up%.*}${up#*.}"
}

begin=$(up_10ms)
timeout -v -k 10 900 "$@"
status=$?
took=$(($(up_10ms) - begin))
# behind the name: the times of what has ended are the fields 14 and 15, in 10 ms
read -r line 2>/dev/null </proc/$$/stat || line=
# shellcheck disable=SC2086  # words
set -- ${line##*) }
cpu=$((${14-0} + ${15-0}))
printf 'duration: %d.%02d s, CPU %d.%02d s\n' $((took / 100)) $((took % 100)) $((cpu / 100)) $((cpu % 100))
exit $status
