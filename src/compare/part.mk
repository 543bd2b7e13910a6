# compare: two histories, or two windows of one, held against each other
noinst_LIBRARIES += src/libcompare.a
COMPARE_LIBS = src/libcompare.a $(LATENCY_LIBS)
src_libcompare_a_SOURCES = \
	src/compare/advise.c \
	src/compare/apply.c src/compare/apply.h \
	src/compare/calibrate.c src/compare/calibrate.h \
	src/compare/chance.c \
	src/compare/change.c \
	src/compare/compare.h \
	src/compare/contests.c src/compare/contests.h \
	src/compare/diff.c \
	src/compare/estimate.c src/compare/estimate.h \
	src/compare/groups.c src/compare/groups.h \
	src/compare/ledger.c src/compare/ledger.h \
	src/compare/outlook.c src/compare/outlook.h \
	src/compare/rates.c \
	src/compare/replay.c src/compare/replay.h \
	src/compare/request_kinds.c \
	src/compare/served.c src/compare/served.h \
	src/compare/sides.c \
	src/compare/thieves.c \
	src/compare/wants.c \
	src/compare/whatif.c src/compare/whatif.h \
	src/compare/words.c

if HAVE_CMOCKA
check_PROGRAMS += tests/test_compare
tests_test_compare_SOURCES = tests/test_compare.c tests/test.h
tests_test_compare_LDADD = $(COMPARE_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += tests/test_replay
tests_test_replay_SOURCES = tests/test_replay.c tests/test.h
tests_test_replay_LDADD = $(COMPARE_LIBS) $(CMOCKA_LIBS)
endif
