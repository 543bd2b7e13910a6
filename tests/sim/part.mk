# The simulator: deterministic traces and their truth (also installed)
bin_PROGRAMS += stealscope-sim
noinst_LIBRARIES += tests/libsim.a
tests_libsim_a_SOURCES = \
	tests/sim/chain.c \
	tests/sim/cores.c \
	tests/sim/groups.c tests/sim/groups.h \
	tests/sim/sim_clock.c \
	tests/sim/sim_cpu.c \
	tests/sim/sim_ctf.c \
	tests/sim/hotplug.c \
	tests/sim/kvm.c \
	tests/sim/machine.c \
	tests/sim/sim_ops.c \
	tests/sim/queue.c \
	tests/sim/sim_record.c \
	tests/sim/sim_report.c \
	tests/sim/sim_request.c \
	tests/sim/rng.c \
	tests/sim/scenario.c \
	tests/sim/scenario.h \
	tests/sim/session.c \
	tests/sim/sched.c \
	tests/sim/sim.c \
	tests/sim/sim.h \
	tests/sim/simulate.h \
	tests/sim/tenant.c \
	tests/sim/truth.c \
	tests/sim/truth.h \
	tests/sim/victims.c \
	tests/sim/workload.c
stealscope_sim_SOURCES = tests/sim/sim_main.c
stealscope_sim_LDADD = tests/libsim.a $(BASE_LIBS)
dist_man_MANS += man/stealscope-sim.1
dist_check_SCRIPTS += tests/test_sim.sh

# Compares the analysis with the simulator: some seeds in check, hundreds in check-long.
check_PROGRAMS += tests/test_truth
dist_check_SCRIPTS += tests/test_truth_steps1.sh tests/test_truth_steps2.sh
tests_test_truth_SOURCES = tests/test_truth.c tests/truth_cases.c tests/truth_unknown.c tests/truth_file.c tests/truth_records.c \
	tests/truth_reasons.c tests/truth_rows.c
tests_test_truth_LDADD = tests/libsim.a $(MODEL_LIBS)

BENCHES += tests/bench/bench_sim
tests_bench_bench_sim_LDADD = tests/libsim.a $(BASE_LIBS)
