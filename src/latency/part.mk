# latency: Soroban.  Only gp_fit.c needs LAPACK and NLopt, and loads them
noinst_LIBRARIES += src/liblatency.a
LATENCY_LIBS = src/liblatency.a $(QUERY_LIBS)
src_liblatency_a_CPPFLAGS = $(AM_CPPFLAGS) $(LAPACK_CFLAGS) $(NLOPT_CFLAGS)
src_liblatency_a_SOURCES = \
	src/latency/assertion.c \
	src/latency/attribution.c src/latency/attribution.h \
	src/latency/core_features.c src/latency/culprit.c \
	src/latency/csv_table.c \
	src/latency/gp.c src/latency/gp.h \
	src/latency/gp_file.c \
	src/latency/gp_fit.c \
	src/latency/latency.h \
	src/latency/metric.c \
	src/latency/plot.c \
	src/latency/request.c \
	src/latency/request_parts.c \
	src/latency/span_convert.c src/latency/span_convert.h \
	src/latency/span_file.c \
	src/latency/span_protobuf.c \
	src/latency/span_place.c src/latency/span_place.h \
	src/latency/span_request.c \
	src/latency/stats.c \
	src/latency/traces.c \
	src/latency/training.c
dist_man_MANS += man/stealscope-latency.1

if HAVE_CMOCKA
check_PROGRAMS += tests/test_latency tests/test_latency_request tests/test_latency_span_place \
	tests/test_latency_brute
tests_test_latency_LDADD = $(LATENCY_LIBS) $(CMOCKA_LIBS)
tests_test_latency_request_LDADD = $(LATENCY_LIBS) $(CMOCKA_LIBS)
tests_test_latency_span_place_LDADD = $(LATENCY_LIBS) $(CMOCKA_LIBS)
tests_test_latency_brute_LDADD = $(LATENCY_LIBS) $(CMOCKA_LIBS)
endif

check_PROGRAMS += tests/fuzz/fuzz_latency tests/fuzz/fuzz_spans
tests_fuzz_fuzz_latency_SOURCES = tests/fuzz/fuzz_latency.c $(FUZZ_MAIN)
tests_fuzz_fuzz_latency_LDADD = $(LATENCY_LIBS) $(FUZZ_ENGINE)
EXTRA_DIST += tests/fuzz/corpus-latency

tests_fuzz_fuzz_spans_SOURCES = tests/fuzz/fuzz_spans.c $(FUZZ_MAIN)
tests_fuzz_fuzz_spans_LDADD = $(LATENCY_LIBS) $(JSON_LIBS) $(FUZZ_ENGINE)
EXTRA_DIST += tests/fuzz/corpus-spans

BENCHES += tests/bench/bench_latency
tests_bench_bench_latency_LDADD = $(LATENCY_LIBS)
