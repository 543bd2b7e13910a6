# model: events -> state changes
noinst_LIBRARIES += src/libmodel.a
MODEL_LIBS = src/libmodel.a src/libsync.a src/libtrace.a src/libhistory.a $(TRACE_LIBS)
src_libmodel_a_SOURCES = \
	src/model/loss/sleep_across_loss.c src/model/loss/sleep_across_loss.h \
	src/model/state/clock_error_bound.c src/model/state/clock_error_bound.h \
	src/model/model_setup.c \
	src/model/state/vcpu_run_states.c \
	src/model/state/lock_contention.c \
	src/model/loss/coverage.c src/model/loss/coverage.h \
	src/model/state/cpu.c \
	src/model/loss/host_prescan.c src/model/loss/host_prescan.h \
	src/model/state/exit_reasons.c src/model/state/exit_reasons.h \
	src/model/state/feed.c src/model/state/feed.h \
	src/model/inference/idle_inference.c src/model/inference/idle_inference.h src/model/inference/idle_paths.c src/model/inference/idle_paths.h \
	src/model/inference/post_irq_activity.c src/model/inference/post_irq_activity.h src/model/inference/guest_idle_tracker.c \
	src/model/loss/unseen_handlers.c src/model/loss/unseen_handlers.h \
	src/model/state/irq.c \
	src/model/loss/loss_recovery.c \
	src/model/inference/steal_clock.c src/model/inference/steal_clock.h \
	src/model/inference/steal_check.c src/model/inference/steal_check.h \
	src/model/inference/provider_pattern.c src/model/inference/provider_pattern.h \
	src/model/inference/vcpu_throttling.c src/model/inference/vcpu_throttling.h \
	src/model/state/request_marks.c \
	src/model/state/request_probes.c \
	src/model/merge.c src/model/merge.h \
	src/model/model.c src/model/model.h \
	src/model/model_sink.c src/model/model_sink.h \
	src/model/state/irq_nesting.c src/model/state/irq_nesting.h \
	src/model/state/hardware_counters.c \
	src/model/state/halt_polling.c src/model/state/halt_polling.h \
	src/model/inference/group_quota.c src/model/inference/group_quota.h \
	src/model/inference/quota_pattern.c src/model/inference/quota_pattern.h \
	src/model/inference/cfs_quota_period.c src/model/inference/cfs_quota_period.h \
	src/model/sink_async.c src/model/sink_async.h \
	src/model/sink_history.c \
	src/model/inference/idle_poll_sites.c src/model/inference/idle_poll_sites.h \
	src/model/loss/initial_state.c src/model/loss/initial_state.h \
	src/model/loss/hidden_threads.c src/model/loss/hidden_threads.h \
	src/model/state/state.h \
	src/model/state/control_groups.c \
	src/model/state/thread.c \
	src/model/state/topology_attributes.c \
	src/model/inference/guest_exit_model.c \
	src/model/state/update.c \
	src/model/state/vcpu.c src/model/state/vcpu.h

if HAVE_CMOCKA
check_PROGRAMS += tests/test_model tests/test_model_throttled tests/test_model_threads \
	tests/test_model_request_probes tests/test_model_requests tests/test_model_guest tests/test_model_idle_inference \
	tests/test_model_idle_poll_sites tests/test_model_prefetch tests/test_model_irq tests/test_model_throttling \
	tests/test_model_counters tests/test_model_steal_check tests/test_model_steal_clock tests/fuzz/fuzz_steal_clock \
	tests/test_model_quota tests/test_model_lost tests/test_model_run tests/test_model_traces
tests_test_model_LDADD = $(MODEL_LIBS) $(JSON_LIBS) $(CMOCKA_LIBS)
tests_test_model_throttled_LDADD = $(MODEL_LIBS) $(JSON_LIBS) $(CMOCKA_LIBS)
tests_test_model_threads_LDADD = $(MODEL_LIBS) $(JSON_LIBS) $(CMOCKA_LIBS)
tests_test_model_request_probes_LDADD = $(MODEL_LIBS) $(JSON_LIBS) $(CMOCKA_LIBS)
tests_test_model_requests_LDADD = $(MODEL_LIBS) $(JSON_LIBS) $(CMOCKA_LIBS)
tests_test_model_guest_LDADD = $(MODEL_LIBS) $(JSON_LIBS) $(CMOCKA_LIBS)
tests_test_model_idle_inference_LDADD = $(MODEL_LIBS) $(JSON_LIBS) $(CMOCKA_LIBS)
tests_test_model_idle_poll_sites_LDADD = $(MODEL_LIBS) $(JSON_LIBS) $(CMOCKA_LIBS)
tests_test_model_prefetch_LDADD = $(MODEL_LIBS) $(JSON_LIBS) $(CMOCKA_LIBS)
tests_test_model_irq_LDADD = $(MODEL_LIBS) $(JSON_LIBS) $(CMOCKA_LIBS)
tests_test_model_throttling_LDADD = $(MODEL_LIBS) $(JSON_LIBS) $(CMOCKA_LIBS)
tests_test_model_counters_LDADD = $(MODEL_LIBS) $(JSON_LIBS) $(CMOCKA_LIBS)

tests_test_model_steal_check_LDADD = $(MODEL_LIBS) $(JSON_LIBS) $(CMOCKA_LIBS)
tests_test_model_steal_clock_LDADD = $(MODEL_LIBS) $(JSON_LIBS) $(CMOCKA_LIBS)
tests_fuzz_fuzz_steal_clock_SOURCES = tests/fuzz/fuzz_steal_clock.c $(FUZZ_MAIN)
tests_fuzz_fuzz_steal_clock_LDADD = $(MODEL_LIBS) $(JSON_LIBS) $(FUZZ_ENGINE)
tests_test_model_quota_LDADD = $(MODEL_LIBS) $(JSON_LIBS) $(CMOCKA_LIBS)
tests_test_model_lost_LDADD = $(MODEL_LIBS) $(JSON_LIBS) $(CMOCKA_LIBS)
tests_test_model_run_LDADD = $(MODEL_LIBS) $(JSON_LIBS) $(CMOCKA_LIBS)
tests_test_model_traces_SOURCES = tests/test_model_traces.c tests/model_conserve.c
tests_test_model_traces_LDADD = $(MODEL_LIBS) $(JSON_LIBS) $(CMOCKA_LIBS)
endif

BENCHES += tests/bench/bench_model
tests_bench_bench_model_LDADD = $(MODEL_LIBS) $(JSON_LIBS)
CLEANFILES += bench_model.tmp
