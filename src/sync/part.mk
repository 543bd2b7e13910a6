# sync: clocks
noinst_LIBRARIES += src/libsync.a
SYNC_LIBS = src/libsync.a $(TRACE_LIBS)
src_libsync_a_SOURCES = \
	src/sync/clock.c \
	src/sync/compose.c \
	src/sync/sync.c src/sync/sync.h \
	src/sync/seen/activity.c src/sync/seen/activity.h \
	src/sync/seen/copies.c src/sync/seen/copies.h \
	src/sync/seen/cursor_ahead.c src/sync/seen/cursor_ahead.h \
	src/sync/seen/host_view.c src/sync/seen/host_view.h \
	src/sync/seen/seen.h \
	src/sync/seen/slices.h \
	src/sync/seen/lives.c src/sync/seen/lives.h \
	src/sync/seen/mark_list.c src/sync/seen/mark_list.h \
	src/sync/seen/mark_log.c src/sync/seen/mark_log.h \
	src/sync/seen/moves.c \
	src/sync/seen/spans.c \
	src/sync/seen/vm_view.c src/sync/seen/vm_view.h \
	src/sync/estimate/corridor.c src/sync/estimate/corridor.h \
	src/sync/estimate/fit.c src/sync/estimate/fit.h \
	src/sync/estimate/hull.c src/sync/estimate/hull.h \
	src/sync/estimate/outline.c \
	src/sync/estimate/pairing.c src/sync/estimate/pairing.h \
	src/sync/estimate/pairs.c src/sync/estimate/pairs.h \
	src/sync/estimate/tsc.c src/sync/estimate/tsc.h \
	src/sync/search/coarse.c src/sync/search/coarse.h \
	src/sync/search/fft.c src/sync/search/fft.h \
	src/sync/search/guess.c src/sync/search/guess.h \
	src/sync/search/hypothesis.c src/sync/search/hypothesis.h \
	src/sync/search/jump.c src/sync/search/jump.h \
	src/sync/search/reach.c src/sync/search/reach.h \
	src/sync/search/steady.c src/sync/search/steady.h \
	src/sync/search/narrow.c \
	src/sync/search/rivals.c src/sync/search/rivals.h \
	src/sync/search/search.c src/sync/search/search.h \
	src/sync/search/guess_nowhere.c \
	src/sync/search/guess_sweep.c \
	src/sync/decide/candidates.c \
	src/sync/decide/contain.c src/sync/decide/contain.h \
	src/sync/decide/delays.c src/sync/decide/delays.h \
	src/sync/decide/match.c src/sync/decide/match.h \
	src/sync/decide/number.c src/sync/decide/number.h \
	src/sync/decide/result.c \
	src/sync/decide/run.h \
	src/sync/decide/winners.c

if HAVE_CMOCKA
check_PROGRAMS += tests/test_sync_hull
tests_test_sync_hull_SOURCES = tests/test_sync_hull.c tests/test.h
tests_test_sync_hull_LDADD = $(SYNC_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += tests/test_sync_compose
tests_test_sync_compose_SOURCES = tests/test_sync_compose.c tests/test.h
tests_test_sync_compose_LDADD = $(SYNC_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += tests/test_sync_parts
tests_test_sync_parts_SOURCES = tests/test_sync_parts.c tests/sync_sim.c tests/sync_sim.h tests/test.h
tests_test_sync_parts_LDADD = $(SYNC_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += tests/test_sync_seen
tests_test_sync_seen_SOURCES = tests/test_sync_seen.c tests/sync_sim.c tests/sync_sim.h tests/test.h
tests_test_sync_seen_LDADD = $(SYNC_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += tests/test_sync_decide
tests_test_sync_decide_SOURCES = tests/test_sync_decide.c tests/test.h
tests_test_sync_decide_LDADD = $(SYNC_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += tests/test_sync_inside
tests_test_sync_inside_SOURCES = tests/test_sync_inside.c tests/test.h
tests_test_sync_inside_LDADD = $(SYNC_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += tests/test_sync_winners
tests_test_sync_winners_SOURCES = tests/test_sync_winners.c tests/test.h
tests_test_sync_winners_LDADD = $(SYNC_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += tests/test_sync_narrow
tests_test_sync_narrow_SOURCES = tests/test_sync_narrow.c tests/test.h
tests_test_sync_narrow_LDADD = $(SYNC_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += tests/test_sync_coarse
tests_test_sync_coarse_SOURCES = tests/test_sync_coarse.c tests/sync_sim.c tests/sync_sim.h tests/sync_world.h tests/test.h
tests_test_sync_coarse_LDADD = $(SYNC_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += tests/test_sync_few
tests_test_sync_few_SOURCES = tests/test_sync_few.c tests/sync_sim.c tests/sync_sim.h tests/test.h
tests_test_sync_few_LDADD = $(SYNC_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += tests/test_sync_sim
tests_test_sync_sim_SOURCES = tests/test_sync_sim.c tests/sync_sim.c tests/sync_sim.h tests/test.h
tests_test_sync_sim_LDADD = $(SYNC_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += tests/test_sync_rivals
tests_test_sync_rivals_SOURCES = tests/test_sync_rivals.c tests/slice.h tests/sync_sim.c tests/sync_sim.h tests/sync_world.h \
	tests/test.h
tests_test_sync_rivals_LDADD = $(SYNC_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += tests/test_sync_long
tests_test_sync_long_SOURCES = tests/test_sync_long.c tests/slice.h tests/sync_sim.c tests/sync_sim.h tests/sync_world.h \
	tests/test.h
tests_test_sync_long_LDADD = $(SYNC_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += tests/test_sync_traces
tests_test_sync_traces_SOURCES = tests/test_sync_traces.c tests/slice.h tests/test.h
tests_test_sync_traces_LDADD = $(SYNC_LIBS) $(JSON_LIBS) $(CMOCKA_LIBS)
LONG_TESTS += tests/test_sync_sim tests/test_sync_rivals tests/test_sync_long
# The same with limits so small that every one of them is reached: the files that have them come before the library's.
check_PROGRAMS += tests/test_sync_tiny
tests_test_sync_tiny_SOURCES = tests/test_sync_tiny.c tests/sync_sim.c tests/sync_sim.h tests/test.h \
	src/sync/seen/activity.c src/sync/seen/host_view.c src/sync/seen/mark_list.c
tests_test_sync_tiny_CPPFLAGS = $(AM_CPPFLAGS) -DWINDOWS_MAX=20000 -DACTIVITY_MAX=20000 -DMARKS_MAX=4000
tests_test_sync_tiny_LDADD = $(SYNC_LIBS) $(CMOCKA_LIBS)
endif

BENCHES += tests/bench/bench_sync
tests_bench_bench_sync_SOURCES = tests/bench/bench_sync.c
tests_bench_bench_sync_LDADD = $(SYNC_LIBS)
