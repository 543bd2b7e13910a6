#!/bin/sh
# The example server and client, linked with the shared library: each request has all its marks, in order.
set -eu
dir=$(mktemp -d /tmp/stealscope-test-XXXXXX)  # a short path: the name of a socket has at most 107 bytes
server=
trap 'test -z "$server" || kill "$server" 2>/dev/null; rm -rf "$dir"' EXIT
LD_LIBRARY_PATH=.${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
export LD_LIBRARY_PATH
: >"$dir/marks"
STEALSCOPE_MARKER=$dir/marks tests/mark_server "$dir/socket" 24 &
server=$!
tests/mark_client "$dir/socket" 24 3 4 >"$dir/latencies"
wait $server
server=
test "$(wc -l <"$dir/latencies")" -eq 24
awk '
	NF != 3 || $1 != "srbn" { print "not a mark: " $0; bad = 1; next }
	{ n[$2]++; seen[$3] = seen[$3] substr($2, 1, 1) }
	END {
		# start, yield; then four slices with a pause between each two
		for (r in seen)
			if (seen[r] != "syryryryre") { print r ": " seen[r]; bad = 1 }
		if (n["start"] != 24 || n["end"] != 24) { print "starts " n["start"] ", ends " n["end"]; bad = 1 }
		exit bad
	}' "$dir/marks"
# Requests of one burst are processed in turns: at least two are open at the same time.
awk '{ if ($2 == "start") open++; if ($2 == "end") open--; if (open > most) most = open } END { exit most < 2 }' "$dir/marks"
# Without a tracer no file is written, and the service works.
STEALSCOPE_MARKER=$dir/nowhere tests/mark_server "$dir/socket" 3 &
server=$!
tests/mark_client "$dir/socket" 3 3 1 >/dev/null
wait $server
server=
test ! -e "$dir/nowhere"
