# cli: one file per subcommand
bin_PROGRAMS += stealscope
stealscope_SOURCES = \
	src/cli/advice.c src/cli/advice.h \
	src/cli/cli.h \
	src/cli/clock_audit.c src/cli/clock_audit.h \
	src/cli/clock_plot.c src/cli/clock_plot.h \
	src/cli/clock_report.c src/cli/clock_report.h \
	src/cli/examples.c src/cli/examples.h \
	src/cli/captured_command.c src/cli/captured_command.h \
	src/cli/cmd_ticket.c src/cli/ticket_page.c src/cli/ticket_page.h \
	src/cli/ticket_timeline.c src/cli/ticket_timeline.h \
	src/cli/complete.c src/cli/complete.h \
	src/cli/cmd_beacon.c \
	src/cli/cmd_cut.c \
	src/cli/cmd_diff.c \
	src/cli/cmd_events.c \
	src/cli/cmd_exits.c \
	src/cli/cmd_explain.c \
	src/cli/cmd_export.c \
	src/cli/cmd_fleet.c \
	src/cli/cmd_flow.c \
	src/cli/cmd_gaps.c \
	src/cli/cmd_index.c \
	src/cli/cmd_info.c \
	src/cli/cmd_intervals.c \
	src/cli/cmd_latency.c \
	src/cli/cmd_mcp.c \
	src/cli/cmd_monitor.c \
	src/cli/metrics_server.c src/cli/metrics_server.h \
	src/cli/monitor_rows.c src/cli/monitor_rows.h \
	src/cli/cmd_path.c \
	src/cli/cmd_record.c \
	src/cli/record_requests.c src/cli/record_requests.h \
	src/cli/cmd_sessions.c \
	src/cli/cmd_steal.c \
	src/cli/cmd_summary.c src/cli/cmd_picture.c \
	src/cli/cmd_sync.c \
	src/cli/cmd_run.c src/cli/run_report.c src/cli/run_report.h src/cli/run_tally.c src/cli/run_tally.h \
	src/cli/run_tree.c src/cli/run_tree.h \
	src/cli/live_assertion.c src/cli/live_assertion.h \
	src/cli/cmd_top.c src/cli/top_recorder.c src/cli/top_recorder.h \
	src/cli/cmd_view.c \
	src/cli/cmd_waits.c \
	src/cli/cmd_whatif.c \
	src/cli/features.c src/cli/features.h \
	src/cli/gaps_inside.c src/cli/gaps_inside.h \
	src/cli/kallsyms.c src/cli/kallsyms.h \
	src/cli/latency_cmd.h \
	src/cli/latency_csv.c \
	src/cli/latency_report.c \
	src/cli/latency_spans.c \
	src/cli/latency_traces.c \
	src/cli/latency_train.c \
	src/cli/display_options.h \
	src/cli/main.c \
	src/cli/mcp_answers.c src/cli/mcp_answers.h \
	src/cli/mcp_tools.c src/cli/mcp_tools.h \
	src/cli/opts.c src/cli/opts.h \
	src/cli/progress_bar.c src/cli/progress_bar.h \
	src/cli/query_context.c src/cli/query_context.h \
	src/cli/recording_lines.c src/cli/recording_lines.h src/cli/recording_list.c src/cli/recording_list.h \
	src/cli/password_file.c src/cli/password_file.h \
	src/cli/findings_print.c src/cli/findings_print.h \
	src/cli/trace_input.c src/cli/trace_input.h \
	src/cli/target_arg.c src/cli/target_arg.h \
	src/cli/window.c src/cli/window.h
# C's library first: most symbols are its, and each is looked for in one library after the other.  Then those that look for
# many of their own.
stealscope_LDADD = -lc src/libui.a $(NCURSES_LIBS) src/libexport.a src/libreport.a src/libindex.a src/libmodel.a src/libsync.a src/libcompare.a src/liblatency.a src/libquery.a \
	src/libbeacon.a $(LIVE_LIBS) $(HISTORY_LIBS) $(TRACE_LIBS) $(NCURSES_LIBS) $(JSON_LIBS)
dist_man_MANS += man/stealscope.1 man/stealscope.7 man/stealscope-view.1 man/stealscope-index.1 man/stealscope-info.1 \
	man/stealscope-sessions.1 man/stealscope-sync.1 man/stealscope-intervals.1 man/stealscope-cut.1 \
	man/stealscope-picture.1 man/stealscope-summary.1 man/stealscope-threads.1 man/stealscope-flow.1 \
	man/stealscope-gaps.1 man/stealscope-steal.1 man/stealscope-top.1 man/stealscope-run.1 man/stealscope-monitor.1 man/stealscope-path.1 \
	man/stealscope-waits.1 man/stealscope-exits.1 man/stealscope-events.1 man/stealscope-explain.1 \
	man/stealscope-diff.1 man/stealscope-whatif.1 man/stealscope-fleet.1 man/stealscope-mcp.1 man/stealscope-ticket.1 man/stealscope-beacon.1 \
	man/stealscope-cost.7 man/stealscope-locks.7 man/stealscope-notes.7 man/stealscope-states.7 \
	man/stealscope-tracers.7 man/stealscope-xen.7

bashcompdir = $(datadir)/bash-completion/completions
dist_bashcomp_DATA = src/cli/completion/stealscope.bash
zshcompdir = $(datadir)/zsh/site-functions
dist_zshcomp_DATA = src/cli/completion/_stealscope
fishcompdir = $(datadir)/fish/vendor_completions.d
dist_fishcomp_DATA = src/cli/completion/stealscope.fish

check_PROGRAMS += tests/fuzz/fuzz_kallsyms
tests_fuzz_fuzz_kallsyms_SOURCES = tests/fuzz/fuzz_kallsyms.c src/cli/kallsyms.c src/cli/kallsyms.h $(FUZZ_MAIN)
tests_fuzz_fuzz_kallsyms_LDADD = src/libbase.a $(FUZZ_ENGINE)
EXTRA_DIST += tests/fuzz/corpus-kallsyms

# The script of a ticket, and its hash for the page's Content-Security-Policy.
EXTRA_DIST += src/cli/ticket_timeline.js
BUILT_SOURCES += src/cli/ticket_script.h
CLEANFILES += src/cli/ticket_script.h
src/cli/ticket_script.h: src/cli/ticket_timeline.js src/base/embed.sh
	$(AM_V_GEN)$(MKDIR_P) src/cli && { sh $(srcdir)/src/base/embed.sh $(srcdir)/src/cli/ticket_timeline.js && \
		echo "#define SCRIPT_HASH \"sha256-$$(sha256sum <$(srcdir)/src/cli/ticket_timeline.js | \
		$(AWK) '{ for (i = 1; i < 64; i += 2) printf "\\0%o", index("0123456789abcdef", substr($$1, i, 1)) * 16 - 16 + \
		index("0123456789abcdef", substr($$1, i + 1, 1)) - 1 }' | { read -r bytes; printf %b "$$bytes"; } | base64)\""; } >$@.tmp && mv $@.tmp $@
applicationsdir = $(datadir)/applications
dist_applications_DATA = share/applications/stealscope.desktop
