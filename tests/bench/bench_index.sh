#!/bin/sh
# The whole loader: `stealscope index` with one worker and with two, phase by phase, beside its peer, `babeltrace2 -o
# dummy`, and beside itself with libbabeltrace2 as its reader.  Interleaved, the best of the rounds for each figure
# (machines are noisy).
# Traces: the folders given, else a simulated one of two million events.
set -eu
builddir=${builddir:-.}
rounds=${ROUNDS:-5}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT INT TERM

took() {  # NAME command...: "NAME<tab>ms" of one run, its output in $tmp/out
	name=$1
	shift
	begin=$(date +%s%N)
	"$@" >"$tmp/out" 2>/dev/null
	printf '%s\t%s\n' "$name" $(( ($(date +%s%N) - begin) / 1000 )) | awk -F '\t' '{ print $1 "\t" $2 / 1000 }'
}
index() {  # TRACES WORKERS: its phases, and all of it
	rm -f "$tmp/out.steal"  # to replace a file takes longer than to make one
	took "$2 wall" "$builddir/stealscope" index "$1" -j "$2" -o "$tmp/out.steal" --timing
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
			took peer babeltrace2 -o dummy "$traces"
			took other "$builddir/stealscope" index "$traces" -j 2 -o "$tmp/out.steal" --reader babeltrace
		fi
	done >"$tmp/times"
	awk -F '\t' '
		!($1 in best) { order[++n] = $1 }
		!($1 in best) || $2 < best[$1] { best[$1] = $2 }
		function row(phase, one, two) { printf "%-22s %10.1f %10.1f %9.2fx\n", phase, one, two, (two > 0 ? one / two : 0) }
		END {
			printf "%-22s %10s %10s %10s\n", "phase", "1 worker", "2 workers", "as fast"
			for (i = 1; i <= n; i++) {
				if (order[i] !~ /^1 / || order[i] == "1 wall") continue
				phase = substr(order[i], 3)
				row(phase, best[order[i]], best["2 " phase])
				one += best[order[i]]; two += best["2 " phase]
			}
			row("sum of the phases", one, two)
			row("wall (target 1.8x)", best["1 wall"], best["2 wall"])
			if ("peer" in best) {
				printf "babeltrace2 -o dummy %.1f ms: index takes %.2f of it with 1 worker (target 0.40), ",
					best["peer"], best["1 wall"] / best["peer"]
				printf "%.2f with 2 (target 0.25)\n", best["2 wall"] / best["peer"]
				printf "--reader babeltrace, 2 workers: %.1f ms\n", best["other"]
			}
		}' "$tmp/times"
done
