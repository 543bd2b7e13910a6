#!/bin/sh
# The simulator: the same seed gives the same bytes; the truth conserves time; babeltrace2 reads every trace and counts the
# same records as the simulator; records of guests lie in guest mode.
#
# awk computes with doubles, so the first six digits of times are cut off (they are constant during a run).
set -eu
sim=$PWD/${builddir:-.}/stealscope-sim
case ${builddir:-.} in /*) sim=$builddir/stealscope-sim ;; esac
tmp=$(mktemp -d "${TMPDIR:-/tmp}/test_sim.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM
failed=0
bt=$(command -v babeltrace2 || true)

fail() { echo "FAIL: $*"; failed=1; }

# Every CPU attribute and every pCPU's owner has a value at every ns (those of vCPUs only while they are plugged); a thread's
# attributes never overlap; the RUNNING time of a thread equals the time for which CPUs have it as current thread.
conserved() {
	partial='Threads|Interrupt|Out By'
	case $2 in *hotplug*) partial='Threads|Interrupt|Out By|^/Virtual' ;; esac
	awk -F, -v what="$2" -v partial="$partial" '
	function t(s) { return substr(s, 7) + 0 }
	FNR == 1 { file++; next }
	file == 1 { if ($1 == "begin") begin = t($2); if ($1 == "end") end = t($2); next }
	file == 2 {
		if (t($2) > t($3)) bad("backward " $0)
		if ($1 in last) {
			if (t($2) <= last[$1]) bad("overlap " $0)
			if ($1 !~ partial && t($2) != last[$1] + 1) bad("gap before " $0)
			if (t($2) == last[$1] + 1 && $4 == value[$1]) bad("not maximal " $0)
		} else if ($1 !~ partial && t($2) != begin) bad("late start " $0)
		last[$1] = t($3); value[$1] = $4; n = t($3) - t($2) + 1; total++
		if ($1 ~ /^\/Host\/CPUs.*Current Thread$/ && $4 != 0) on["/Host/Threads/" $4 "/Status"] += n
		if ($1 ~ /^\/Host\/Threads.*Status$/ && $4 == "RUNNING") ran[$1] += n
		if ($1 ~ /^\/Virtual.*CPUs.*Status$/) { split($1, part, "/"); state[part[3], $4] += n; states[part[3] "," $4] = 1 }
		next
	}
	file == 3 {
		if (($1 in wlast) ? t($2) != wlast[$1] + 1 : t($2) != begin) bad("pcpus: gap before " $0)
		wlast[$1] = t($3); n = t($3) - t($2) + 1
		if ($6 == "guest") who[$4, $5 == 0 ? "IDLE-in" : "RUNNING"] += n
		if ($6 == "hypervisor") who[$4, "VMM"] += n
	}
	function bad(s) { if (errors++ < 5) print what ": " s }
	END {
		for (p in last) if (p !~ partial && last[p] != end) bad("early end " p)
		for (p in wlast) if (wlast[p] != end) bad("early end of pCPU " p)
		for (p in ran) if (ran[p] != on[p]) bad(p " runs " ran[p] " but is current for " on[p])
		for (p in on) if (ran[p] != on[p]) bad(p " runs " ran[p] " but is current for " on[p])
		for (s in states) { split(s, q, ","); if (q[2] == "RUNNING" || q[2] == "VMM")
			if (state[q[1], q[2]] != who[q[1], q[2]]) bad(s " " state[q[1], q[2]] " but on pCPUs " who[q[1], q[2]]) }
		if (total < 20) bad("only " total " intervals")
		exit errors > 0
	}' "$1/truth/info.csv" "$1/truth/intervals.csv" "$1/truth/pcpus.csv" || fail "$2: time is not conserved"
}

# Exactly the written records are read back.
counted() {
	[ -n "$bt" ] || return 0
	for d in "$1"/host "$1"/guest-*; do
		[ -d "$d" ] || continue
		"$bt" --fields=all --names=none "$d" 2>>"$tmp/stderr" || fail "$2: babeltrace2 $d"
	done >"$tmp/text"
	[ ! -s "$tmp/stderr" ] || { head -n 3 "$tmp/stderr"; fail "$2: babeltrace2 prints errors"; }
	awk -F'[ ,:]+' -v what="$2" '
	FNR == NR { if ($1 == "records" && NF == 3) want[$2] = $3; next }
	{ for (i = 1; i <= 12; i++) if ($i in want) { got[$i]++; break } }
	END { for (k in want) if (want[k] != got[k]) { print what ": " k ": " want[k] " written, " got[k] + 0 " read"; e = 1 }
	      exit e }' "$1/truth/info.csv" "$tmp/text" || fail "$2: records"
}

# With perfect clocks each guest record of a VM with one vCPU lies between a kvm_entry and the next kvm_exit.
contained() {
	[ -n "$bt" ] || return 0
	"$bt" --clock-seconds --no-delta "$1/host" "$1/guest-Debian" 2>/dev/null | awk -v what="$2" '
	/^\[[0-9.]+\] hypervisor kvm_x86_entry/ { inside = 1 }
	/^\[[0-9.]+\] hypervisor kvm_x86_exit/ { inside = 0 }
	/^\[[0-9.]+\] Debian / { n++; if (!inside) { if (e++ < 3) print what ": outside guest mode: " substr($0, 1, 100) } }
	END { exit e > 0 || n < 100 }' || fail "$2: guest records outside guest mode"
}

for s in "tenant --plant mix" "tenant --plant hotplug" "tenant --plant migration --steal-clock tick" \
		pulse fibonacci critical_task residual_timer "overcommit 5" churn requests "idle --duration 30s"; do
	# shellcheck disable=SC2086
	"$sim" $s --duration 900ms --seed 7 -o "$tmp/a" 2>/dev/null || fail "$s: exit $?"
	conserved "$tmp/a" "$s"
	counted "$tmp/a" "$s"
	rm -rf "$tmp/a"
done
for seed in 1 2 3 4 5 6 7 8; do
	for more in "" "--hotplug --containers"; do
		# shellcheck disable=SC2086
		"$sim" random --seed $seed --duration 300ms $more -o "$tmp/a" 2>/dev/null || fail "random $seed $more: exit $?"
		conserved "$tmp/a" "random $seed $more"
		counted "$tmp/a" "random $seed $more"
		rm -rf "$tmp/a"
	done
done

"$sim" pulse --perfect-clocks --duration 2s -o "$tmp/p" 2>/dev/null || fail "pulse: exit $?"
contained "$tmp/p" pulse

# The same seed gives the same bytes, another seed others; faults change records, but not the simulation.
"$sim" random --seed 5 -o "$tmp/x" 2>/dev/null
"$sim" random --seed 5 -o "$tmp/y" 2>/dev/null
"$sim" random --seed 6 -o "$tmp/z" 2>/dev/null
"$sim" random --seed 5 --lost 0.05 -o "$tmp/l" 2>/dev/null
diff -r "$tmp/x" "$tmp/y" >/dev/null || fail "same seed, different bytes"
! diff -r "$tmp/x" "$tmp/z" >/dev/null 2>&1 || fail "different seed, same bytes"
! cmp -s "$tmp/x/host/kernel/ch_0" "$tmp/l/host/kernel/ch_0" || fail "--lost loses nothing"
head -n 1000 "$tmp/x/truth/pcpus.csv" | sed 1,8d >"$tmp/simulation"
grep -q -x -F -f "$tmp/simulation" "$tmp/l/truth/pcpus.csv" || fail "--lost changes the simulation"

# --clock-step-at is a share of the scenario's duration, also with --events.
"$sim" overcommit 1 --events 20k --clock-step 3ms --clock-step-at 0.01 -o "$tmp/s" 2>/dev/null || fail "step: exit $?"
[ "$(grep -c '^vm00,1795152652' "$tmp/s/truth/clocks.csv")" = 2 ] || fail "the clock does not step"

# Errors are one line, with exit status 1.
for bad in "nonsense -o $tmp/q" "pulse" "pulse -o $tmp/q --lost 2" "pulse -o $tmp/q --duration never" "overcommit 0 -o $tmp/q"; do
	# shellcheck disable=SC2086
	if "$sim" $bad 2>"$tmp/err"; then fail "accepted: $bad"; elif [ $? -ne 1 ]; then fail "exit status: $bad"; fi
	[ "$(wc -l <"$tmp/err")" -eq 1 ] || fail "not one line: $bad"
done
exit $failed
