# flow: questions asked of a history
noinst_LIBRARIES += src/libflow.a
FLOW_LIBS = src/libflow.a $(HISTORY_LIBS)
src_libflow_a_SOURCES = \
	src/flow/by_name.c \
	src/flow/demand.c \
	src/flow/doubt.c \
	src/flow/exits.c \
	src/flow/explain.c src/flow/explain.h src/flow/explain_summary.c \
	src/flow/explain_next.c src/flow/explain_party.c src/flow/explain_waits.c \
	src/flow/explain_next.c src/flow/explain_party.c src/flow/explain_path.c \
	src/flow/flow.c src/flow/flow.h src/flow/flow_private.h \
	src/flow/flow_text.c \
	src/flow/gap.c \
	src/flow/gap_each.c \
	src/flow/gap_list.c \
	src/flow/gather.c src/flow/gather.h \
	src/flow/host_alone.h \
	src/flow/in_words.h \
	src/flow/inquiry.c src/flow/inquiry.h \
	src/flow/inside.c \
	src/flow/party.c src/flow/party.h \
	src/flow/causes.h \
	src/flow/locks.c src/flow/locks.h \
	src/flow/path.c src/flow/path.h src/flow/path_answer.c src/flow/path_pieces.c \
	src/flow/periodic.c \
	src/flow/polls.c \
	src/flow/raiser.c src/flow/raiser.h \
	src/flow/resolve.c src/flow/resolve.h src/flow/resolve_where.c \
	src/flow/spins.c \
	src/flow/status_text.c \
	src/flow/steal.c \
	src/flow/summary.c \
	src/flow/summary_sort.c \
	src/flow/sweep.c src/flow/sweep.h \
	src/flow/thief.c src/flow/thief.h \
	src/flow/topo.c \
	src/flow/topo_text.c \
	src/flow/track.c \
	src/flow/waits.c \
	src/flow/wakeup.c src/flow/wakeup.h

if HAVE_CMOCKA
check_PROGRAMS += tests/test_flow
tests_test_flow_SOURCES = tests/test_flow.c tests/flow_world.c tests/flow_world.h tests/refs.h tests/test.h
tests_test_flow_LDADD = $(FLOW_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += tests/test_flow_report
tests_test_flow_report_SOURCES = tests/test_flow_report.c tests/flow_world.c tests/flow_world.h tests/refs.h tests/test.h
tests_test_flow_report_LDADD = $(FLOW_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += tests/test_flow_property
tests_test_flow_property_SOURCES = tests/test_flow_property.c tests/flow_brute.c tests/flow_brute.h tests/flow_world.c \
	tests/flow_world.h tests/refs.h tests/test.h
tests_test_flow_property_LDADD = $(FLOW_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += tests/test_flow_demand
tests_test_flow_demand_SOURCES = tests/test_flow_demand.c tests/ui_world.c tests/ui_world.h tests/test.h
tests_test_flow_demand_LDADD = $(FLOW_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += tests/test_flow_exits
tests_test_flow_exits_SOURCES = tests/test_flow_exits.c tests/flow_world.c tests/flow_world.h tests/refs.h tests/test.h
tests_test_flow_exits_LDADD = $(FLOW_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += tests/test_flow_locks
tests_test_flow_locks_SOURCES = tests/test_flow_locks.c tests/flow_world.c tests/flow_world.h tests/refs.h tests/test.h
tests_test_flow_locks_LDADD = $(REPORT_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += tests/test_flow_path
tests_test_flow_path_SOURCES = tests/test_flow_path.c tests/flow_world.c tests/flow_world.h tests/refs.h tests/test.h
tests_test_flow_path_LDADD = $(FLOW_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += tests/test_flow_raiser
tests_test_flow_raiser_SOURCES = tests/test_flow_raiser.c tests/flow_world.c tests/flow_world.h tests/refs.h tests/test.h
tests_test_flow_raiser_LDADD = $(FLOW_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += tests/test_flow_spins
tests_test_flow_spins_SOURCES = tests/test_flow_spins.c tests/flow_world.c tests/flow_world.h tests/refs.h tests/test.h
tests_test_flow_spins_LDADD = $(FLOW_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += tests/test_flow_waits
tests_test_flow_waits_SOURCES = tests/test_flow_waits.c tests/flow_world.c tests/flow_world.h tests/refs.h tests/test.h
tests_test_flow_waits_LDADD = $(FLOW_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += tests/test_flow_parts
tests_test_flow_parts_SOURCES = tests/test_flow_parts.c tests/flow_world.c tests/flow_world.h tests/refs.h tests/test.h
tests_test_flow_parts_LDADD = $(FLOW_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += tests/test_flow_edges
tests_test_flow_edges_SOURCES = tests/test_flow_edges.c tests/flow_world.c tests/flow_world.h tests/test.h
tests_test_flow_edges_LDADD = $(FLOW_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += tests/test_flow_summary
tests_test_flow_summary_SOURCES = tests/test_flow_summary.c tests/ui_world.c tests/ui_world.h tests/test.h
tests_test_flow_summary_LDADD = $(FLOW_LIBS) $(CMOCKA_LIBS)
endif

BENCHES += tests/bench/bench_flow
tests_bench_bench_flow_SOURCES = tests/bench/bench_flow.c
tests_bench_bench_flow_LDADD = $(FLOW_LIBS)
