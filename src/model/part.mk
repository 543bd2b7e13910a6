# model: events -> state changes
noinst_LIBRARIES += src/libmodel.a
MODEL_LIBS = src/libmodel.a src/libsync.a src/libtrace.a src/libhistory.a $(TRACE_LIBS)
src_libmodel_a_SOURCES = \
	src/model/asleep.c src/model/asleep.h \
	src/model/band.c src/model/band.h \
	src/model/build.c \
	src/model/contention.c \
	src/model/cover.c src/model/cover.h \
	src/model/cpu.c \
	src/model/early.c src/model/early.h \
	src/model/exit_reasons.c src/model/exit_reasons.h \
	src/model/feed.c src/model/feed.h \
	src/model/halts.c src/model/halts.h src/model/halt_ways.c src/model/halt_ways.h \
	src/model/prospects.c src/model/prospects.h src/model/quiet.c \
	src/model/handlers.c src/model/handlers.h \
	src/model/irq.c \
	src/model/known.c \
	src/model/limits.c src/model/limits.h \
	src/model/marks.c \
	src/model/merge.c src/model/merge.h \
	src/model/model.c src/model/model.h \
	src/model/model_sink.c src/model/model_sink.h \
	src/model/nest.c src/model/nest.h \
	src/model/polling.c src/model/polling.h \
	src/model/refills.c src/model/refills.h \
	src/model/sink_beside.c src/model/sink_beside.h \
	src/model/sink_history.c \
	src/model/spots.c src/model/spots.h \
	src/model/start.c src/model/start.h \
	src/model/state.h \
	src/model/thread.c \
	src/model/untraced.c \
	src/model/update.c \
	src/model/vcpu.c src/model/vcpu.h

if HAVE_CMOCKA
check_PROGRAMS += tests/test_model
tests_test_model_SOURCES = tests/test_model.c tests/model_events.h tests/model_rec.h tests/test.h
tests_test_model_LDADD = $(MODEL_LIBS) $(JSON_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += tests/test_model_threads
tests_test_model_threads_SOURCES = tests/test_model_threads.c tests/model_events.h tests/model_rec.h tests/test.h
tests_test_model_threads_LDADD = $(MODEL_LIBS) $(JSON_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += tests/test_model_requests
tests_test_model_requests_SOURCES = tests/test_model_requests.c tests/model_events.h tests/model_rec.h tests/test.h
tests_test_model_requests_LDADD = $(MODEL_LIBS) $(JSON_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += tests/test_model_guest
tests_test_model_guest_SOURCES = tests/test_model_guest.c tests/model_exits.h tests/model_events.h tests/model_rec.h tests/test.h
tests_test_model_guest_LDADD = $(MODEL_LIBS) $(JSON_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += tests/test_model_halts
tests_test_model_halts_SOURCES = tests/test_model_halts.c tests/model_exits.h tests/model_events.h tests/model_rec.h tests/test.h
tests_test_model_halts_LDADD = $(MODEL_LIBS) $(JSON_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += tests/test_model_spots
tests_test_model_spots_SOURCES = tests/test_model_spots.c tests/model_events.h tests/model_rec.h tests/test.h
tests_test_model_spots_LDADD = $(MODEL_LIBS) $(JSON_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += tests/test_model_ahead
tests_test_model_ahead_SOURCES = tests/test_model_ahead.c tests/model_events.h tests/model_rec.h tests/test.h
tests_test_model_ahead_LDADD = $(MODEL_LIBS) $(JSON_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += tests/test_model_irq
tests_test_model_irq_SOURCES = tests/test_model_irq.c tests/model_events.h tests/model_rec.h tests/test.h
tests_test_model_irq_LDADD = $(MODEL_LIBS) $(JSON_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += tests/test_model_limits
tests_test_model_limits_SOURCES = tests/test_model_limits.c tests/model_limits.h tests/model_events.h tests/model_rec.h tests/test.h
tests_test_model_limits_LDADD = $(MODEL_LIBS) $(JSON_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += tests/test_model_quota
tests_test_model_quota_SOURCES = tests/test_model_quota.c tests/model_limits.h tests/model_events.h tests/model_rec.h tests/test.h
tests_test_model_quota_LDADD = $(MODEL_LIBS) $(JSON_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += tests/test_model_lost
tests_test_model_lost_SOURCES = tests/test_model_lost.c tests/model_events.h tests/model_rec.h tests/test.h
tests_test_model_lost_LDADD = $(MODEL_LIBS) $(JSON_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += tests/test_model_run
tests_test_model_run_SOURCES = tests/test_model_run.c tests/test.h
tests_test_model_run_LDADD = $(MODEL_LIBS) $(JSON_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += tests/test_model_traces
tests_test_model_traces_SOURCES = tests/test_model_traces.c tests/slice.h tests/model_conserve.c tests/model_conserve.h tests/test.h
tests_test_model_traces_LDADD = $(MODEL_LIBS) $(JSON_LIBS) $(CMOCKA_LIBS)
endif

BENCHES += tests/bench/bench_model
tests_bench_bench_model_SOURCES = tests/bench/bench_model.c
tests_bench_bench_model_LDADD = $(MODEL_LIBS) $(JSON_LIBS)
CLEANFILES += bench_model.tmp
