# index: traces -> a history, and its provenance
noinst_LIBRARIES += src/libindex.a
src_libindex_a_CPPFLAGS = $(AM_CPPFLAGS) $(LIBARCHIVE_CFLAGS)
src_libindex_a_SOURCES = \
	src/index/name_alias.c src/index/name_alias.h \
	src/index/archive.c src/index/archive.h \
	src/index/cache.c \
	src/index/cut.c \
	src/index/fingerprint.c src/index/fingerprint.h \
	src/index/index.c src/index/index.h \
	src/index/input.c src/index/input.h \
	src/index/raw_events.c src/index/recordings.c \
	src/index/offset_editor.c \
	src/index/packed_input.c \
	src/index/provenance.c src/index/provenance.h \
	src/index/provenance_cut.c \
	src/index/recorded_reads.c src/index/recorded_reads.h \
	src/index/session.c src/index/session.h \
	src/index/session_write.c \
	src/index/tsc_rates.c src/index/tsc_rates.h
dist_man_MANS += man/stealscope-session.5

if HAVE_CMOCKA
check_PROGRAMS += tests/test_name_alias tests/test_index
tests_test_name_alias_LDADD = src/libindex.a src/libquery.a $(MODEL_LIBS) $(JSON_LIBS) $(CMOCKA_LIBS)
tests_test_index_SOURCES = tests/test_index.c tests/trace_files.c
tests_test_index_LDADD = src/libindex.a src/libquery.a $(MODEL_LIBS) $(JSON_LIBS) $(CMOCKA_LIBS)
endif

check_PROGRAMS += tests/fuzz/fuzz_session tests/fuzz/fuzz_text
tests_fuzz_fuzz_session_SOURCES = tests/fuzz/fuzz_session.c $(FUZZ_MAIN)
tests_fuzz_fuzz_session_LDADD = src/libindex.a src/libquery.a $(MODEL_LIBS) $(JSON_LIBS) $(FUZZ_ENGINE)
tests_fuzz_fuzz_text_SOURCES = tests/fuzz/fuzz_text.c $(FUZZ_MAIN)
tests_fuzz_fuzz_text_LDADD = src/libindex.a src/libquery.a $(MODEL_LIBS) $(JSON_LIBS) $(FUZZ_ENGINE)
EXTRA_DIST += tests/fuzz/corpus-text tests/fuzz/corpus-session
