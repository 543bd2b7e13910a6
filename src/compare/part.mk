# compare: two histories, or two windows of one, held against each other
noinst_LIBRARIES += src/libcompare.a
COMPARE_LIBS = src/libcompare.a $(LATENCY_LIBS)
src_libcompare_a_SOURCES = \
	src/compare/whatif/advise.c \
	src/compare/whatif/apply_changes.c src/compare/whatif/apply_changes.h \
	src/compare/whatif/calibrate.c src/compare/whatif/calibrate.h \
	src/compare/diff/random_variation.c \
	src/compare/whatif/change_parser.c \
	src/compare/compare.h \
	src/compare/whatif/wait_graph.c src/compare/whatif/wait_graph.h \
	src/compare/diff/diff.c \
	src/compare/diff/bootstrap.c src/compare/diff/bootstrap.h \
	src/compare/whatif/cgroup_weights.c src/compare/whatif/cgroup_weights.h \
	src/compare/diff/ledger.c src/compare/diff/ledger.h \
	src/compare/whatif/whatif_report.c src/compare/whatif/whatif_report.h \
	src/compare/diff/rates.c \
	src/compare/whatif/sibling_notes.c \
	src/compare/whatif/scheduler_replay.c src/compare/whatif/scheduler_replay.h \
	src/compare/diff/request_kinds.c \
	src/compare/whatif/request_replay.c src/compare/whatif/request_replay.h \
	src/compare/diff/comparability.c \
	src/compare/diff/culprit_changes.c \
	src/compare/whatif/thread_demand.c \
	src/compare/whatif/whatif.c src/compare/whatif/whatif.h \
	src/compare/diff/verdict_text.c

if HAVE_CMOCKA
check_PROGRAMS += tests/test_compare tests/test_replay
tests_test_compare_LDADD = $(COMPARE_LIBS) $(CMOCKA_LIBS)
tests_test_replay_LDADD = $(COMPARE_LIBS) $(CMOCKA_LIBS)
endif
