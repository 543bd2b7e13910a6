#!/bin/sh
# Compares `stealscope index` with one and two workers, per phase, and with `babeltrace2 -o dummy`.
# The runs alternate.  Each figure is the median of the rounds, and so is the speedup of two workers: other load of the
# machine slows two workers down more than one, so that a ratio of the best times would be unfair.
# Traces: the directories given as arguments, or a simulated one with two million events.
set -eu
builddir=${builddir:-.}
rounds=${ROUNDS:-7}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT INT TERM

time_command() {  # NAME command...: prints "NAME<tab>ms" of one run; its output is in $tmp/out
	name=$1
	shift
	begin=$(date +%s%N)
	"$@" >"$tmp/out" 2>/dev/null
	printf '%s\t%s\n' "$name" $(( ($(date +%s%N) - begin) / 1000 )) | awk -F '\t' '{ print $1 "\t" $2 / 1000 }'
}
index() {  # TRACES WORKERS: prints the times of all and of each phase
	rm -f "$tmp/out.steal"  # replacing a file takes longer than creating one
	time_command "$2 wall" "$builddir/stealscope" index "$1" -j "$2" -o "$tmp/out.steal" --timing
	awk -F '  +' -v workers="$2" 'BEGIN { unit["s"] = 1000; unit["ms"] = 1; unit["us"] = 0.001 }
		FNR > 2 && NF > 1 { split($2, time, " "); print workers " " $1 "\t" time[1] * unit[time[2]] }' "$tmp/out"
}

if [ $# = 0 ]; then
	"$builddir/stealscope-sim" overcommit 4 --events 2M --no-truth -o "$tmp/traces" >/dev/null 2>&1
	set -- "$tmp/traces"
fi
for traces in "$@"; do
	echo "$traces"
	for i in $(seq "$rounds"); do
		: "$i"
		index "$traces" 1
		index "$traces" 2
		if command -v babeltrace2 >/dev/null; then
			time_command peer babeltrace2 -o dummy "$traces"
		fi
	done >"$tmp/times"
	awk -F '\t' '
		!($1 in runs) { order[++n] = $1 }
		{ ms[$1, ++runs[$1]] = $2 }
		function middle(x, many,   i, k, t) {  # sorts x
			for (i = 2; i <= many; i++)
				for (k = i; k > 1 && x[k] < x[k - 1]; k--) { t = x[k]; x[k] = x[k - 1]; x[k - 1] = t }
			return many % 2 ? x[(many + 1) / 2] : (x[many / 2] + x[many / 2 + 1]) / 2
		}
		function median(name,   i, x) {
			for (i = 1; i <= runs[name]; i++) x[i] = ms[name, i]
			return middle(x, runs[name])
		}
		function ratio(one, two,   i, x) {
			for (i = 1; i <= runs[one]; i++) x[i] = ms[two, i] > 0 ? ms[one, i] / ms[two, i] : 0
			return middle(x, runs[one])
		}
		function row(phase, one, two) {
			printf "%-22s %10.1f %10.1f %9.2fx\n", phase, median(one), median(two), ratio(one, two)
		}
		END {
			printf "%-22s %10s %10s %10s\n", "phase", "1 worker", "2 workers", "speedup"
			for (i = 1; i <= n; i++) {
				if (order[i] !~ /^1 / || order[i] == "1 wall") continue
				phase = substr(order[i], 3)
				row(phase, order[i], "2 " phase)
			}
			row("wall (target 1.8x)", "1 wall", "2 wall")
			if ("peer" in runs) {
				printf "babeltrace2 -o dummy %.1f ms: index takes %.2f of it with 1 worker (target 0.40), ",
					median("peer"), ratio("1 wall", "peer")
				printf "%.2f with 2 (target 0.25)\n", ratio("2 wall", "peer")
			}
		}' "$tmp/times"
done
