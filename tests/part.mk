# End-to-end tests, what tests share, and the targets beside `make check`

AM_TESTS_ENVIRONMENT = srcdir='$(srcdir)'; export srcdir; builddir='$(builddir)'; export builddir; \
	LC_ALL=C.UTF-8; export LC_ALL; TZ=UTC; export TZ; PYTHONDONTWRITEBYTECODE=1; export PYTHONDONTWRITEBYTECODE; \
	PYTHONUNBUFFERED=1; export PYTHONUNBUFFERED; PYTHONHASHSEED=0; export PYTHONHASHSEED; \
	LSAN_OPTIONS=suppressions=$(abs_srcdir)/tests/lsan.supp:print_suppressions=0; export LSAN_OPTIONS;
TEST_EXTENSIONS = .py .sh
EXTRA_DIST += tests/limit.sh
EXTRA_DIST += tests/bench/stream_history.h tests/call_counts.h tests/ctf2.h tests/fuzz/fuzz_replay.h \
	tests/fuzz/fuzz_sink.h tests/history_walk.h tests/latency_world.h tests/model_conserve.h tests/model_events.h \
	tests/model_exits.h tests/model_rec.h tests/model_throttling.h tests/mount_namespace.h tests/query_brute.h \
	tests/query_answers.h tests/query_world.h tests/record_runs.h tests/record_tree.h tests/refs.h tests/remove_all.h tests/slice.h \
	tests/stream.h tests/sync_sim.h tests/sync_world.h tests/test.h tests/trace_files.h tests/trace_loaded.h \
	tests/trace_same.h tests/truth_cases.h tests/truth_file.h tests/truth_reasons.h tests/truth_records.h \
	tests/truth_rows.h tests/truth_unknown.h tests/ui_keys.h tests/ui_row.h tests/ui_script.h tests/ui_world.h
LIMIT = $(SHELL) $(srcdir)/tests/limit.sh
LOG_COMPILER = $(LIMIT)
PY_LOG_COMPILER = $(LIMIT) $(PYTHON)
SH_LOG_COMPILER = $(LIMIT) $(SHELL)
# Part of the recipe that prints the summary.
AM_TESTSUITE_SUMMARY_HEADER = "; the slowest tests:`echo; for b in $$bases; do \
	sed -n \"s,^duration: \(.*\),\1 $$b,p\" $$b.log; done | sort -rn | head`"

# Those that take long, or sleep, begin first.
E2E_TESTS = \
	tests/test_guest_mount.py \
	tests/test_record_cli.py \
	tests/test_record_xen.py \
	tests/test_record_files.py tests/test_output_races.py \
	tests/test_record_hostile.py \
	tests/test_record_kills.py \
	tests/test_record_requests.py \
	tests/test_guest_requests.py \
	tests/test_live.py \
	tests/test_top_screen.py tests/test_top_cores.py \
	tests/test_whatif.py \
	tests/test_schema.py \
	tests/test_pane_export.py tests/test_path_names.py \
	tests/test_latency_truth.py \
	tests/test_latency_spans.py tests/test_export_spans.py tests/test_latency_traces.py \
	tests/test_latency_cores.py \
	tests/test_sync.py \
	tests/test_cut.py \
	tests/test_conservation.py \
	tests/test_cores.py \
	tests/test_counters.py tests/test_counters_perf.py tests/test_record_counters.py \
	tests/test_man.py tests/test_man_examples.py \
	tests/test_man_notes.py \
	tests/test_hostonly.py \
	tests/test_quota_truth.py tests/test_tenant.py tests/test_tenant_reports.py tests/test_tenant_random.py tests/test_tsc_host.py \
	tests/test_guest_only.py \
	tests/test_kvmtool.py \
	tests/test_advice.py \
	tests/test_arm64.py \
	tests/test_beacon_guest.py \
	tests/test_xen.py \
	tests/test_xen_random.py \
	tests/test_xen_hvm.py \
	tests/test_xen_clocks.py \
	tests/test_cache.py \
	tests/test_path_culprits.py \
	tests/test_collect.py \
	tests/test_completion.py \
	tests/test_coverage.py \
	tests/test_culprits.py \
	tests/test_damage.py \
	tests/test_diff.py \
	tests/test_events.py \
	tests/test_examples.py \
	tests/test_exits.py \
	tests/test_export.py \
	tests/test_export_names.py \
	tests/test_faults.py \
	tests/test_fibonacci.py \
	tests/test_flow_truth.py \
	tests/test_hardening.py \
	tests/test_srbn_read.py \
	tests/test_missing_events.py \
	tests/test_on_demand.py \
	tests/test_recordings.py \
	tests/test_ticket_browser.py \
	tests/test_layout.py \
	tests/test_export_http.py \
	tests/test_hostile_files.py \
	tests/test_throttling.py \
	tests/test_locks.py \
	tests/test_appearance.py tests/test_viewer_culprits.py tests/test_place_links.py tests/test_terminal_answers.py \
	tests/test_gallery.py tests/test_long_spans.py \
	tests/test_lttng.py \
	tests/test_escaped_names.py \
	tests/test_nested.py \
	tests/test_notes.py \
	tests/test_clock_offset.py \
	tests/test_papercases.py \
	tests/test_path.py \
	tests/test_path_truth.py \
	tests/test_preempted_code.py \
	tests/test_polling.py \
	tests/test_export_foreign.py \
	tests/test_readers.py \
	tests/test_readme.py tests/test_groups.py tests/test_realtime.py tests/test_report_height.py \
	tests/test_recording.py \
	tests/test_usage_errors.py \
	tests/test_input_errors.py \
	tests/test_pages.py \
	tests/test_perf.py \
	tests/test_packed_input.py tests/test_trace_texts.py tests/test_perfetto.py tests/test_perfetto_machines.py \
	tests/test_session.py \
	tests/test_spin_truth.py \
	tests/test_stack.py \
	tests/test_style.py \
	tests/test_tracecmd.py \
	tests/test_tracecmd_file.py \
	tests/test_live_names.py tests/test_trigger_targets.py tests/test_monitor.py tests/test_run.py tests/test_top.py tests/test_tutorial.py \
	tests/test_foreign.py \
	tests/test_findings.py tests/test_doors.py tests/test_verdict.py \
	tests/test_shell.py \
	tests/test_vanishing.py \
	tests/test_waits.py \
	tests/test_mcp.py tests/test_ticket.py \
	tests/test_workers.py tests/test_sums.py tests/test_costs.py
EXTRA_DIST += tests/costs.txt tests/e2e.py tests/otlp.py tests/otlp.proto tests/fake_guest.py tests/tmux_screen.py tests/browser.py tests/ftrace.py tests/perfdata.py tests/relay.py tests/schema.py tests/shells.py tests/xentrace.py tests/perfetto.proto tests/perfetto_trace.py tests/track.py tests/lsan.supp $(E2E_TESTS)
EXTRA_DIST += tests/live_scene.py tests/live_soak.py tests/live_truth.py
# A process with the descriptors of a VM, for tests of top.
EXTRA_PROGRAMS += tests/vm_process
check_DATA += tests/vm_process
CLEANFILES += tests/vm_process
if HAVE_PYTHON
TESTS += $(E2E_TESTS)
endif

EXTRA_DIST += tests/data tests/prometheus_rules.yml tests/score.py

# What test_faults.py preloads.
EXTRA_DIST += tests/faults.c tests/mutate.py
check_DATA += tests/faults.so
CLEANFILES += tests/faults.so
tests/faults.so: tests/faults.c
	$(AM_V_CC)$(CC) -D_GNU_SOURCE $(CFLAGS) -U_FORTIFY_SOURCE -shared -fPIC -o $@ $(srcdir)/tests/faults.c -ldl

# What test_record_cli.py preloads.
EXTRA_DIST += tests/instances.c
check_DATA += tests/instances.so
CLEANFILES += tests/instances.so
tests/instances.so: tests/instances.c
	$(AM_V_CC)$(CC) -D_GNU_SOURCE $(CFLAGS) -shared -fPIC -o $@ $(srcdir)/tests/instances.c -ldl

# Recording in a lab of real kernels: make check-lab LAB=FOLDER, see tests/lab/lab.py.
EXTRA_DIST += tests/lab/lab.py tests/lab/check_lab.py
LAB =
KILLS = 20
ROUNDS = 3
check-lab: all
	LAB='$(LAB)' KILLS='$(KILLS)' ROUNDS='$(ROUNDS)' builddir='$(builddir)' $(PYTHON) $(srcdir)/tests/lab/check_lab.py || test $$? = 77
.PHONY: check-lab

# Another architecture under emulation: make check-cross CROSS=s390x; tests/cross/check.sh says what that needs.
EXTRA_DIST += tests/cross/check.sh tests/cross/sitecustomize.py
CROSS = arm64
CROSS_ROOT = $(abs_builddir)/cross-$(CROSS)
CROSS_TESTS =
check-cross: stealscope stealscope-sim
	cd '$(srcdir)' && $(SHELL) tests/cross/check.sh '$(abs_builddir)' '$(CROSS)' '$(CROSS_ROOT)' $(CROSS_TESTS) || test $$? = 77
.PHONY: check-cross

# Fuzzing: tests/fuzz/fuzz_replay.h.  `make fuzz` builds all targets anew, with clang, from what would be distributed.
FUZZ_MAIN = tests/fuzz/fuzz_main.c tests/fuzz/fuzz_replay.c
EXTRA_DIST += tests/fuzz/run.sh tests/commits.sh tests/commits.exceptions
check_PROGRAMS += tests/fuzz/fuzz_yaml
tests_fuzz_fuzz_yaml_SOURCES = tests/fuzz/fuzz_yaml.c tests/fuzz/fuzz_replay.c
tests_fuzz_fuzz_yaml_LDADD = src/libtrace.a $(UI_LIBS) $(TRACE_LIBS) $(RECORD_LIBS) $(FUZZ_ENGINE)

T = 1m
TARGETS =
fuzz:
	rm -rf build-fuzz/tree && $(MKDIR_P) build-fuzz
	$(MAKE) distdir distdir=build-fuzz/tree >build-fuzz/dist.log
	cd '$(srcdir)' && MAKE='$(MAKE)' $(SHELL) tests/fuzz/run.sh '$(abs_builddir)/build-fuzz' '$(T)' '$(TARGETS)' $(check_PROGRAMS)
.PHONY: fuzz

# Those unit tests that valgrind gets through in a minute; the sanitizers see all of them.
VALGRIND_TESTS = tests/test_base tests/test_base_files tests/test_base_tasks tests/test_beacon tests/test_query \
	tests/test_query_report tests/test_model tests/test_sync_hull tests/test_ui
VALGRIND = valgrind -q --error-exitcode=9 --leak-check=full --show-leak-kinds=definite,indirect \
	--errors-for-leak-kinds=definite,indirect
check-valgrind:
	$(MAKE) $(AM_MAKEFLAGS) check TESTS='$(VALGRIND_TESTS)' LOG_COMPILER='$(LIMIT) $(VALGRIND)'

# Tests that draw cases, or check a slice of many.  `make check` always runs the same cases, this those of the day: a failure is
# repeated by the SLICE that is printed, and its case is then added to those that always run.
DAILY_TESTS = tests/test_truth tests/test_sync_traces tests/test_model_traces tests/test_flow_truth.py \
	tests/test_tenant_random.py tests/test_xen_random.py tests/test_xen_clocks.py tests/test_readers.py tests/test_perf.py \
	tests/test_cores.py tests/test_counters.py tests/test_record_kills.py tests/test_guest_mount.py $(SLICED_TESTS)
SLICE =
check-daily:
	slice='$(SLICE)'; slice=$${slice:-$$(($$(date -u +%s) / 86400))}; echo "make check-daily SLICE=$$slice"; \
		STEALSCOPE_SLICE=$$slice $(MAKE) $(AM_MAKEFLAGS) check TESTS='$(DAILY_TESTS)' || \
		{ echo "repeat with: make check-daily SLICE=$$slice" >&2; exit 1; }
.PHONY: check-daily

# Live collection on this kernel: top against recordings, and a soak of monitor.  Needs root and BPF.
check-live: stealscope tests/vm_process
	srcdir=$(srcdir) $(PYTHON) $(srcdir)/tests/live_truth.py
	srcdir=$(srcdir) $(PYTHON) $(srcdir)/tests/live_soak.py
.PHONY: check-live

# Of these, `make check` runs a part (slice_of() in e2e.py).
SLICED_TESTS = tests/test_advice.py tests/test_cut.py tests/test_conservation.py
check-long: tests/test_truth $(LONG_TESTS) stealscope stealscope-sim
	tests/test_truth 1 200
	for t in $(LONG_TESTS); do STEALSCOPE_LONG_TESTS=1 srcdir=$(srcdir) $$t || exit 1; done
if HAVE_PYTHON
	builddir=. srcdir=$(srcdir) $(PYTHON) $(srcdir)/tests/test_flow_truth.py 1 200
	builddir=. srcdir=$(srcdir) $(PYTHON) $(srcdir)/tests/test_diff.py 1 100
	builddir=. srcdir=$(srcdir) $(PYTHON) $(srcdir)/tests/test_whatif.py 1 200
	for t in $(SLICED_TESTS); do \
		STEALSCOPE_LONG_TESTS=1 builddir=. srcdir=$(srcdir) $(PYTHON) $(srcdir)/$$t || exit 1; done
endif

# Exports to real servers, each in a temporary folder, where they are installed.
SERVER_TESTS = tests/test_export_clickhouse.py tests/test_export_postgres.py
EXTRA_DIST += $(SERVER_TESTS)
check-servers: stealscope stealscope-sim
	$(MAKE) $(AM_MAKEFLAGS) check TESTS='$(SERVER_TESTS)'

# Nothing here is a test; machines are noisy.  `make check` builds them all the same, so that they do not rot.
bench: $(BENCHES) stealscope stealscope-sim
	@for b in $(BENCHES); do echo "== $$b"; ./$$b || exit 1; done
	@echo "== tests/bench/bench_index.sh"; $(SHELL) $(srcdir)/tests/bench/bench_index.sh
	@echo "== tests/bench/bench_growth.py"; $(PYTHON) $(srcdir)/tests/bench/bench_growth.py
	@echo "== tests/bench/bench_exits.py"; $(PYTHON) $(srcdir)/tests/bench/bench_exits.py
EXTRA_DIST += tests/bench/bench_index.sh tests/bench/bench_growth.py tests/bench/bench_exits.py
EXTRA_PROGRAMS += $(BENCHES)
check_DATA += $(BENCHES)
CLEANFILES += $(BENCHES)

# Clocks, states and culprits of all recordings with truth; PROGRAM=FILE scores another program.
score: stealscope stealscope-sim
	@builddir=$(abs_builddir) srcdir=$(abs_srcdir) PROGRAM='$(PROGRAM)' $(PYTHON) $(srcdir)/tests/score.py

.PHONY: check-valgrind check-long check-servers bench score

# doc/gallery.md, its pictures, the recording, the card of keys and the diagram of states (tests/test_gallery.py).
gallery: stealscope stealscope-sim
	$(PYTHON) $(srcdir)/doc/figures.py $(srcdir)/doc
	$(PYTHON) $(srcdir)/doc/gallery.py ./stealscope ./stealscope-sim $(srcdir)/doc
.PHONY: gallery
