# query: queries on a history
noinst_LIBRARIES += src/libquery.a
QUERY_LIBS = src/libquery.a $(HISTORY_LIBS)
src_libquery_a_SOURCES = \
	src/query/target_lookup.c \
	src/query/demand.c \
	src/query/warnings.c \
	src/query/exits.c \
	src/query/explain.c src/query/explain.h src/query/explain_summary.c \
	src/query/explain_next.c src/query/explain_query.c src/query/explain_path.c src/query/explain_provider.c src/query/explain_waits.c \
	src/query/explain_cores.c src/query/explain_quota.c \
	src/query/flow.c src/query/query.h src/query/query_internal.h \
	src/query/flow_text.c \
	src/query/gap.c \
	src/query/gap_stream.c \
	src/query/gap_list.c \
	\
	src/query/flow_builder.c src/query/flow_builder.h \
	 \
	src/query/query_task.c \
	src/query/stepped_query.c src/query/stepped_query.h \
	src/query/preempted_code.c \
	src/query/culprit.c src/query/culprit.h \
	src/query/actor_text.c \
	src/query/culprit_waits.c \
	 \
	src/query/findings.c src/query/findings_choose.c src/query/findings_rank.c \
	src/query/findings_state.h \
	src/query/finding_causes.c src/query/finding_causes.h src/query/finding_text.c \
	src/query/locks.c src/query/locks.h \
	src/query/critical_path.c src/query/critical_path.h src/query/critical_path_query.c src/query/critical_path_intervals.c \
	src/query/periodic_timers.c \
	src/query/halt_polls.c \
	src/query/irq_source.c src/query/irq_source.h \
	src/query/resolver.c src/query/resolver.h src/query/resolver_location.c \
	src/query/spin_waits.c \
	src/query/status_text.c \
	src/query/steal_matrix.c \
	src/query/summary.c \
	src/query/summary_sort.c \
	src/query/steal_sweep.c src/query/sweep_lanes.c src/query/steal_sweep.h \
	src/query/culprit_sums.c src/query/gap_sums.c src/query/gap_sums.h src/query/sums_section.c src/query/sums_section.h src/query/sums_build.c \
	src/query/window_gaps.c src/query/window_gaps.h \
	src/query/thread_groups.c src/query/thread_set.c src/query/thread_set.h src/query/thread_groups.h \
	src/query/top_culprit.c src/query/top_culprit.h \
	src/query/catalog.c src/query/catalog_groups.c \
	src/query/catalog_text.c src/query/catalog_topology.c \
	src/query/counter_walk.c src/query/counter_walk.h src/query/core_share.c src/query/core_sweep.c src/query/core_sweep.h \
	src/query/attribute_track.c \
	src/query/idle_waits.c \
	src/query/wakeup.c src/query/wakeup.h

if HAVE_CMOCKA
check_PROGRAMS += tests/test_query tests/test_query_report tests/test_query_property tests/test_query_demand \
	tests/test_query_exits tests/test_query_locks tests/test_query_critical_path tests/test_query_irq_source \
	tests/test_query_spin_waits tests/test_query_idle_waits tests/test_query_parts tests/test_query_edges \
	tests/test_query_cores tests/test_query_summary
tests_test_query_SOURCES = tests/test_query.c tests/query_world.c
tests_test_query_LDADD = $(QUERY_LIBS) $(CMOCKA_LIBS)
tests_test_query_report_SOURCES = tests/test_query_report.c tests/query_world.c
tests_test_query_report_LDADD = $(QUERY_LIBS) $(CMOCKA_LIBS)
tests_test_query_property_SOURCES = tests/test_query_property.c tests/query_brute.c tests/query_world.c
tests_test_query_property_LDADD = $(QUERY_LIBS) $(CMOCKA_LIBS)
tests_test_query_demand_SOURCES = tests/test_query_demand.c tests/ui_world.c
tests_test_query_demand_LDADD = $(QUERY_LIBS) $(CMOCKA_LIBS)
tests_test_query_exits_SOURCES = tests/test_query_exits.c tests/query_world.c
tests_test_query_exits_LDADD = $(QUERY_LIBS) $(CMOCKA_LIBS)
tests_test_query_locks_SOURCES = tests/test_query_locks.c tests/query_world.c
tests_test_query_locks_LDADD = $(REPORT_LIBS) $(CMOCKA_LIBS)
tests_test_query_critical_path_SOURCES = tests/test_query_critical_path.c tests/query_world.c
tests_test_query_critical_path_LDADD = $(QUERY_LIBS) $(CMOCKA_LIBS)
tests_test_query_irq_source_SOURCES = tests/test_query_irq_source.c tests/query_world.c
tests_test_query_irq_source_LDADD = $(QUERY_LIBS) $(CMOCKA_LIBS)
tests_test_query_spin_waits_SOURCES = tests/test_query_spin_waits.c tests/query_world.c
tests_test_query_spin_waits_LDADD = $(QUERY_LIBS) $(CMOCKA_LIBS)
tests_test_query_idle_waits_SOURCES = tests/test_query_idle_waits.c tests/query_world.c
tests_test_query_idle_waits_LDADD = $(QUERY_LIBS) $(CMOCKA_LIBS)
tests_test_query_parts_SOURCES = tests/test_query_parts.c tests/query_world.c
tests_test_query_parts_LDADD = $(QUERY_LIBS) $(CMOCKA_LIBS)
tests_test_query_edges_SOURCES = tests/test_query_edges.c tests/query_world.c
tests_test_query_edges_LDADD = $(QUERY_LIBS) $(CMOCKA_LIBS)
tests_test_query_cores_SOURCES = tests/test_query_cores.c tests/query_world.c
tests_test_query_cores_LDADD = $(QUERY_LIBS) $(CMOCKA_LIBS)
tests_test_query_summary_SOURCES = tests/test_query_summary.c tests/ui_world.c
tests_test_query_summary_LDADD = $(QUERY_LIBS) $(CMOCKA_LIBS)
endif

BENCHES += tests/bench/bench_flow
tests_bench_bench_flow_LDADD = $(QUERY_LIBS)
