#!/bin/sh
# Lets libFuzzer try targets: `make fuzz T=5m [TARGETS='ipc tracecmd']`.  T is the time for each, or 200000x as many executions;
# what is new in a corpus, and what crashed, stays in build-fuzz/.
# For speed, temporary files are kept in memory, and of allocations only short stacks.
#
#   run.sh BUILD TIME TARGETS PROGRAM...     BUILD/tree is what would be distributed; no TARGETS: all fuzz_* of the programs
set -eu
build=$1 time=$2 targets=$3
shift 3
case $time in
*x) limit=-runs=${time%x} ;;
*m) limit=-max_total_time=$((${time%m} * 60)) ;;
*h) limit=-max_total_time=$((${time%h} * 3600)) ;;
*) limit=-max_total_time=${time%s} ;;
esac
[ -w /dev/shm ] && export TMPDIR="${TMPDIR:-/dev/shm}"
export ASAN_OPTIONS="${ASAN_OPTIONS:-malloc_context_size=2:quarantine_size_mb=1}"
if [ -z "$targets" ]; then
	for program; do
		case $program in tests/fuzz/fuzz_*) targets="$targets ${program#tests/fuzz/fuzz_}" ;; esac
	done
fi

# Where a target's first inputs are, beside its corpus.
seeds() {
	case $1 in
	yaml) echo "src/trace/layouts themes" ;;
	tracecmd) echo tests/data/beacon ;;
	esac
}

programs=
for name in $targets; do
	programs="$programs tests/fuzz/fuzz_$name"
done
flags='-O1 -g -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -DFUZZ_LIBFUZZER'
(
	cd "$build/tree"
	./configure --disable-hardening CC="${FUZZ_CC:-clang}" CFLAGS="$flags" LDFLAGS='-fsanitize=address,undefined' >../configure.log
	# shellcheck disable=SC2086  # a list of words
	"${MAKE:-make}" FUZZ_ENGINE=-fsanitize=fuzzer $programs >../build.log
)

failed=0
printf '%-12s %14s %10s %8s %8s\n' target executions per-second edges corpus
for name in $targets; do
	log=$build/$name.log found=$build/found/$name
	mkdir -p "$found"
	[ -d "tests/fuzz/corpus-$name" ] && own="tests/fuzz/corpus-$name" || own=
	# shellcheck disable=SC2046,SC2086  # lists of words
	nice -n 15 "$build/tree/tests/fuzz/fuzz_$name" "$limit" -timeout=20 -rss_limit_mb=2048 -max_len=65536 \
		-print_final_stats=1 -artifact_prefix="$build/crash-$name-" "$found" $own $(seeds "$name") >"$log" 2>&1 || failed=1
	count=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
	edges=$(sed -n 's/.* cov: \([0-9]*\) .*/\1/p' "$log" | tail -n 1)
	rate=$(sed -n 's/^stat::average_exec_per_sec: *//p' "$log")
	printf '%-12s %14s %10s %8s %8s\n' "$name" "${count:-?}" "${rate:-?}" "${edges:-?}" \
		"$(find "$found" -type f | wc -l)"
	grep -E 'ERROR: |SUMMARY: |Test unit written to' "$log" || true
done
exit $failed
