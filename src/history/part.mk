# history: the state history file
noinst_LIBRARIES += src/libhistory.a
HISTORY_LIBS = src/libhistory.a $(BASE_LIBS)
src_libhistory_a_SOURCES = \
	src/history/attr.c \
	src/history/builder.c src/history/builder.h \
	src/history/chunk.c src/history/chunk.h \
	src/history/column.c src/history/column.h \
	src/history/crc32c.c src/history/crc32c.h \
	src/history/linked_attributes.c \
	src/history/file.c src/history/file.h \
	src/history/finish.c \
	src/history/format.h \
	src/history/history.h \
	src/history/lookup.c \
	src/history/state_search.c \
	src/history/attribute_order.c \
	src/history/output_file.c src/history/output_file.h \
	src/history/paged_table.c src/history/paged_table.h \
	src/history/interval_pool.c src/history/interval_pool.h \
	src/history/query.c \
	src/history/sums.c \
	src/history/tree.c src/history/tree.h
dist_man_MANS += man/stealscope-history.5

if HAVE_CMOCKA
check_PROGRAMS += tests/test_history tests/test_history_stream tests/test_history_damage tests/test_history_crash \
	tests/test_history_rules tests/test_history_watch
tests_test_history_SOURCES = tests/test_history.c tests/history_walk.c
tests_test_history_LDADD = $(HISTORY_LIBS) $(CMOCKA_LIBS)
tests_test_history_stream_SOURCES = tests/test_history_stream.c tests/bench/stream_history.c
tests_test_history_stream_LDADD = $(HISTORY_LIBS) $(CMOCKA_LIBS)
tests_test_history_damage_SOURCES = tests/test_history_damage.c tests/history_walk.c
tests_test_history_damage_LDADD = $(HISTORY_LIBS) $(CMOCKA_LIBS)
tests_test_history_crash_SOURCES = tests/test_history_crash.c tests/bench/stream_history.c
tests_test_history_crash_LDADD = $(HISTORY_LIBS) $(CMOCKA_LIBS)
tests_test_history_rules_LDADD = $(HISTORY_LIBS) $(CMOCKA_LIBS)
tests_test_history_watch_LDADD = $(HISTORY_LIBS) $(CMOCKA_LIBS)
if HAVE_PYTHON
TESTS += tests/test_history_format.py
endif
endif
EXTRA_DIST += tests/history_reader.py tests/test_history_format.py
CLEANFILES += test_history_format.tmp test_history_rules.tmp test_history.tmp test_history_stream.tmp test_history_damage.tmp \
	test_history_broken.tmp test_history_watch.tmp test_history_watch_part.tmp

check_PROGRAMS += tests/fuzz/fuzz_history
tests_fuzz_fuzz_history_SOURCES = tests/fuzz/fuzz_history.c tests/fuzz/fuzz_replay.c tests/history_walk.c
tests_fuzz_fuzz_history_LDADD = $(HISTORY_LIBS) $(FUZZ_ENGINE)
EXTRA_DIST += tests/fuzz/corpus-history

BENCHES += tests/bench/bench_history
tests_bench_bench_history_SOURCES = tests/bench/bench_history.c tests/bench/stream_history.c
tests_bench_bench_history_LDADD = $(HISTORY_LIBS)
CLEANFILES += bench_history.tmp
