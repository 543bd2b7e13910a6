# sync: clocks
noinst_LIBRARIES += src/libsync.a
SYNC_LIBS = src/libsync.a $(TRACE_LIBS)
src_libsync_a_SOURCES = \
	src/sync/clock.c \
	src/sync/compose.c \
	src/sync/confidence.h \
	src/sync/reason_table.h \
	src/sync/sync.c src/sync/sync.h \
	src/sync/evidence/activity.c src/sync/evidence/activity.h \
	src/sync/evidence/duplicate_traces.c src/sync/evidence/duplicate_traces.h \
	src/sync/evidence/prefetch_cursor.c src/sync/evidence/prefetch_cursor.h \
	src/sync/evidence/host_timeline.c src/sync/evidence/host_timeline.h \
	src/sync/evidence/evidence.h src/sync/evidence/interval.h \
	src/sync/evidence/work_budget.h \
	src/sync/evidence/window_cursor.h \
	src/sync/evidence/time_sampling.h \
	src/sync/evidence/thread_lifetimes.c src/sync/evidence/thread_lifetimes.h \
	src/sync/evidence/sync_event_set.c src/sync/evidence/sync_event_set.h \
	src/sync/evidence/sync_event_file.c src/sync/evidence/sync_event_file.h \
	src/sync/evidence/live_migration.c \
	src/sync/evidence/guest_mode_windows.c \
	src/sync/evidence/vm_candidates.c src/sync/evidence/vm_candidates.h \
	src/sync/fit/error_bounds.c src/sync/fit/error_bounds.h \
	src/sync/fit/piecewise_fit.c src/sync/fit/piecewise_fit.h \
	src/sync/fit/tsc_rate.c src/sync/fit/tsc_rate.h \
	src/sync/fit/hull.c src/sync/fit/hull.h \
	src/sync/fit/feasible_lines.c \
	src/sync/fit/stream_matching.c src/sync/fit/stream_matching.h \
	src/sync/fit/pairs.c src/sync/fit/pairs.h \
	src/sync/fit/tsc.c src/sync/fit/tsc.h \
	src/sync/search/cross_correlation.c src/sync/search/cross_correlation.h \
	src/sync/search/fft.c src/sync/search/fft.h \
	src/sync/search/initial_offsets.c src/sync/search/initial_offsets.h \
	src/sync/search/clock_candidate.c src/sync/search/clock_candidate.h \
	src/sync/search/step_placement.c src/sync/search/step_placement.h \
	src/sync/search/confidence_range.c src/sync/search/confidence_range.h \
	src/sync/search/step_check.c src/sync/search/step_check.h \
	src/sync/search/containment_fit.c \
	src/sync/search/ambiguity_check.c src/sync/search/ambiguity_check.h \
	src/sync/search/search.c src/sync/search/search.h \
	src/sync/search/offset_bins.c src/sync/search/offset_bins.h \
	src/sync/search/offset_precheck.c \
	src/sync/search/offset_refinement.c \
	src/sync/assign/match_scoring.c \
	src/sync/assign/containment.c src/sync/assign/containment.h \
	src/sync/assign/pair_delays.c src/sync/assign/pair_delays.h \
	src/sync/assign/guest_vm_match.c src/sync/assign/guest_vm_match.h \
	src/sync/assign/vcpu_numbering.c src/sync/assign/vcpu_numbering.h \
	src/sync/assign/sync_result.c \
	src/sync/assign/sync_context.h \
	src/sync/assign/vm_assignment.c

if HAVE_CMOCKA
check_PROGRAMS += tests/test_sync_hull tests/test_sync_compose tests/test_sync_fit tests/test_sync_evidence \
	tests/test_sync_assign tests/test_sync_confidence_range tests/test_sync_inside tests/test_sync_vm_assignment \
	tests/test_sync_containment_fit tests/test_sync_cross_correlation tests/test_sync_early_rejection \
	tests/test_sync_sim tests/test_sync_ambiguity tests/test_sync_long tests/test_sync_traces tests/test_sync_tiny
tests_test_sync_hull_LDADD = $(SYNC_LIBS) $(CMOCKA_LIBS)
tests_test_sync_compose_LDADD = $(SYNC_LIBS) $(CMOCKA_LIBS)
tests_test_sync_fit_SOURCES = tests/test_sync_fit.c tests/sync_sim.c
tests_test_sync_fit_LDADD = $(SYNC_LIBS) $(CMOCKA_LIBS)
tests_test_sync_evidence_SOURCES = tests/test_sync_evidence.c tests/sync_sim.c
tests_test_sync_evidence_LDADD = $(SYNC_LIBS) $(CMOCKA_LIBS)
tests_test_sync_assign_LDADD = $(SYNC_LIBS) $(CMOCKA_LIBS)
tests_test_sync_confidence_range_SOURCES = tests/test_sync_confidence_range.c tests/sync_sim.c
tests_test_sync_confidence_range_LDADD = $(SYNC_LIBS) $(CMOCKA_LIBS)
tests_test_sync_inside_LDADD = $(SYNC_LIBS) $(CMOCKA_LIBS)
tests_test_sync_vm_assignment_LDADD = $(SYNC_LIBS) $(CMOCKA_LIBS)
tests_test_sync_containment_fit_SOURCES = tests/test_sync_containment_fit.c tests/sync_sim.c
tests_test_sync_containment_fit_LDADD = $(SYNC_LIBS) $(CMOCKA_LIBS)
tests_test_sync_cross_correlation_SOURCES = tests/test_sync_cross_correlation.c tests/sync_sim.c
tests_test_sync_cross_correlation_LDADD = $(SYNC_LIBS) $(CMOCKA_LIBS)
tests_test_sync_early_rejection_SOURCES = tests/test_sync_early_rejection.c tests/sync_sim.c
tests_test_sync_early_rejection_LDADD = $(SYNC_LIBS) $(CMOCKA_LIBS)
tests_test_sync_sim_SOURCES = tests/test_sync_sim.c tests/sync_sim.c
tests_test_sync_sim_LDADD = $(SYNC_LIBS) $(CMOCKA_LIBS)
tests_test_sync_ambiguity_SOURCES = tests/test_sync_ambiguity.c tests/sync_sim.c
tests_test_sync_ambiguity_LDADD = $(SYNC_LIBS) $(CMOCKA_LIBS)
tests_test_sync_long_SOURCES = tests/test_sync_long.c tests/sync_sim.c
tests_test_sync_long_LDADD = $(SYNC_LIBS) $(CMOCKA_LIBS)
tests_test_sync_traces_LDADD = $(SYNC_LIBS) $(JSON_LIBS) $(CMOCKA_LIBS)
LONG_TESTS += tests/test_sync_sim tests/test_sync_ambiguity tests/test_sync_long
# The same with limits so small that every one of them is reached: the files that have them come before the library's.
tests_test_sync_tiny_SOURCES = tests/test_sync_tiny.c tests/sync_sim.c src/sync/evidence/activity.c \
	src/sync/evidence/host_timeline.c src/sync/evidence/sync_event_set.c
tests_test_sync_tiny_CPPFLAGS = $(AM_CPPFLAGS) -DWINDOWS_MAX=20000 -DACTIVITY_MAX=20000 -DSYNC_EVENTS_MAX=4000
tests_test_sync_tiny_LDADD = $(SYNC_LIBS) $(CMOCKA_LIBS)
endif

BENCHES += tests/bench/bench_sync
tests_bench_bench_sync_LDADD = $(SYNC_LIBS)
