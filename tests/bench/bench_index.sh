#!/bin/sh
# The whole loader beside its peer: `stealscope index` with two workers and with one against `babeltrace2 -o dummy`,
# interleaved, the best of the rounds (machines are noisy); and where the time goes.
# Traces: the folders given, else a simulated one of a million events.
set -eu
builddir=${builddir:-.}
rounds=${ROUNDS:-5}
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT INT TERM

seconds() {  # command...: wall seconds of one run
	begin=$(date +%s%N)
	"$@" >/dev/null 2>&1
	echo $(( $(date +%s%N) - begin ))
}
least() { sort -n "$1" | head -n 1; }

if [ $# = 0 ]; then
	"$builddir/stealscope-sim" overcommit 4 --events 1M --no-truth -o "$tmp/traces" >/dev/null 2>&1
	set -- "$tmp/traces"
fi
for traces in "$@"; do
	echo "$traces"
	for i in $(seq "$rounds"); do
		: "$i"
		seconds "$builddir/stealscope" index "$traces" -j 2 -o "$tmp/two.steal" >>"$tmp/two"
		seconds "$builddir/stealscope" index "$traces" -j 1 -o "$tmp/one.steal" >>"$tmp/one"
		if command -v babeltrace2 >/dev/null; then
			seconds babeltrace2 -o dummy "$traces" >>"$tmp/peer"
		fi
	done
	"$builddir/stealscope" index "$traces" -j 2 -o "$tmp/two.steal" --timing | sed 1d
	awk -v two="$(least "$tmp/two")" -v one="$(least "$tmp/one")" -v peer="$([ ! -f "$tmp/peer" ] || least "$tmp/peer")" \
		'BEGIN { printf "index, 2 workers %.0f ms, 1 worker %.0f ms", two / 1e6, one / 1e6
			if (peer) printf ", babeltrace2 -o dummy %.0f ms: %.2f of the peer (target 1.0)", peer / 1e6, two / peer
			print "" }'
	rm -f "$tmp/one" "$tmp/two" "$tmp/peer"
done
