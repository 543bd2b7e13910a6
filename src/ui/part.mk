# ui: the viewer
noinst_LIBRARIES += src/libui.a
UI_LIBS = src/libui.a src/liblive.a src/librecord.a $(BPF_LIBS) $(REPORT_LIBS) $(NCURSES_LIBS) $(JSON_LIBS)
src_libui_a_CPPFLAGS = $(AM_CPPFLAGS) $(NCURSES_CFLAGS)
src_libui_a_SOURCES = \
	src/ui/core/actions.c \
	src/ui/core/app.c src/ui/core/app.h \
	src/ui/widgets/arrows.c src/ui/widgets/arrows.h \
	src/ui/core/async_query.c src/ui/core/async_query.h \
	src/ui/input/bench.c \
	src/ui/panes/blame_pane.c \
	src/ui/core/bookmarks.c src/ui/core/bookmarks.h \
	src/ui/widgets/cells.c src/ui/widgets/cells.h \
	src/ui/input/command.c src/ui/input/command.h \
	src/ui/input/config.c \
	src/ui/panes/details.c \
	src/ui/panes/diff_pane.c \
	src/ui/core/dispatch.c \
	src/ui/widgets/draw.c \
	src/ui/panes/events_pane.c \
	src/ui/panes/exits_pane.c \
	src/ui/widgets/row_figure.c \
	src/ui/core/row_search.c src/ui/core/row_search.h \
	src/ui/panes/flow_pane.c \
	src/ui/core/follow_cause.c src/ui/core/follow_cause.h \
	src/ui/widgets/footer.c \
	src/ui/panes/gaps_pane.c \
	src/ui/widgets/glyph.c \
	src/ui/panes/help.c \
	src/ui/widgets/histogram.c \
	src/ui/core/longest_gap.c src/ui/core/longest_gap.h \
	src/ui/core/gap_search.c src/ui/core/gap_search.h \
	src/ui/input/keys.c src/ui/input/keys.h \
	src/ui/panes/legend.c \
	src/ui/panes/list.c \
	src/ui/panes/locks_pane.c \
	src/ui/widgets/appearance.c src/ui/widgets/appearance.h \
	src/ui/widgets/minimap.c \
	src/ui/input/mouse.c \
	src/ui/core/clock_offset.c src/ui/core/clock_offset.h \
	src/ui/panes/overview.c src/ui/panes/overview.h src/ui/panes/overview_state.h \
	src/ui/panes/overview_waits.c \
	src/ui/panes/pager.c src/ui/panes/pager.h \
	src/ui/terminal/screen_file.c src/ui/terminal/screen_file.h \
	src/ui/panes/pane.c src/ui/panes/pane.h \
	src/ui/panes/pane_export.c src/ui/panes/pane_export.h \
	src/ui/widgets/widgets.h \
	src/ui/panes/path_pane.c \
	src/ui/terminal/picture.c \
	src/ui/input/prompt.c src/ui/input/prompt.h \
	src/ui/core/session_state.c src/ui/core/session_state.h \
	src/ui/panes/requests_pane.c \
	src/ui/recordings/recordings.c \
	src/ui/panes/pane_window.c \
	src/ui/panes/table_pane.c \
	src/ui/widgets/row_draw.c \
	src/ui/widgets/provider_lane.c src/ui/widgets/provider_lane.h \
	src/ui/widgets/verdict_line.c src/ui/widgets/verdict_line.h \
	src/ui/widgets/window_sums.c src/ui/widgets/window_sums.h \
	src/ui/widgets/lane_names.c src/ui/widgets/lane_names.h \
	src/ui/core/row_names.c \
	src/ui/core/rows.c src/ui/core/rows.h \
	src/ui/widgets/ruler.c src/ui/widgets/ruler.h \
	src/ui/terminal/screen.c src/ui/terminal/screen.h \
	src/ui/terminal/screen_loop.c src/ui/terminal/screen_loop.h \
	src/ui/input/script.c src/ui/input/script.h \
	src/ui/terminal/signals.c src/ui/terminal/signals.h \
	src/ui/widgets/status.c src/ui/widgets/status.h \
	src/ui/core/thread_scan.c \
	src/ui/core/text_filter.c src/ui/core/text_filter.h \
	src/ui/top/top_keys.c src/ui/top/top.c src/ui/top/top.h src/ui/top/top_draw.c src/ui/top/top_lanes.c src/ui/top/top_rows.c \
	src/ui/terminal/background.c src/ui/terminal/background.h \
	src/ui/terminal/term.c src/ui/terminal/term.h \
	src/ui/terminal/terminfo_fallback.c src/ui/terminal/terminfo_fallback.h \
	src/ui/widgets/theme.c src/ui/widgets/theme.h \
	src/ui/ui.c src/ui/ui.h \
	src/ui/core/view.c src/ui/core/view.h \
	src/ui/core/viewer.c src/ui/core/viewer.h \
	src/ui/core/file_watch.c src/ui/core/file_watch.h
nodist_src_libui_a_SOURCES = src/ui/theme_texts.h src/ui/terminfo_entries.h

# Descriptions of terminals, compiled in.
TERMINALS = xterm-256color tmux-256color screen-256color linux vt100
BUILT_SOURCES += src/ui/terminfo_entries.h
CLEANFILES += src/ui/terminfo_entries.h
src/ui/terminfo_entries.h:
	@$(MKDIR_P) src/ui
	$(AM_V_GEN)for name in $(TERMINALS); do \
		text=$$(infocmp -0 -Q2 $$name 2>/dev/null | grep '^b64:') && { \
			printf '\t{ "%s",\n' "$$name"; printf '%s\n' "$$text" | fold -w 100 | sed 's/.*/\t  "&"/'; printf '\t},\n'; }; \
	done >$@.tmp; mv $@.tmp $@
src/ui/terminal/libui_a-terminfo_fallback.$(OBJEXT): src/ui/terminfo_entries.h

# The shipped themes are compiled in; the first is the default.
THEMES = themes/cvd-dark.yaml themes/cvd-light.yaml themes/paper.yaml themes/paper-light.yaml themes/mono.yaml \
	themes/ssh.yaml
BUILT_SOURCES += src/ui/theme_texts.h
CLEANFILES += src/ui/theme_texts.h
src/ui/theme_texts.h: $(THEMES) src/base/embed.sh
	$(AM_V_GEN)$(MKDIR_P) src/ui && ( cd $(srcdir) && sh src/base/embed.sh $(THEMES) ) >$@.tmp && mv $@.tmp $@
src/ui/widgets/libui_a-theme.$(OBJEXT): src/ui/theme_texts.h
themesdir = $(pkgdatadir)/themes
dist_themes_DATA = $(THEMES)
dist_man_MANS += man/stealscope-theme.5

if HAVE_CMOCKA
check_PROGRAMS += tests/test_ui tests/test_ui_grid tests/test_ui_cells tests/test_ui_appearance tests/test_ui_panes \
	tests/test_ui_lists tests/test_ui_screens tests/test_ui_provider tests/test_ui_files tests/test_ui_row_search \
	tests/test_ui_async_query tests/test_ui_clock_offset tests/test_ui_top
tests_test_ui_top_LDADD = $(UI_LIBS) $(CMOCKA_LIBS) -lm
tests_test_ui_LDADD = $(UI_LIBS) $(CMOCKA_LIBS)
tests_test_ui_grid_LDADD = $(UI_LIBS) $(CMOCKA_LIBS)
tests_test_ui_cells_LDADD = $(UI_LIBS) $(CMOCKA_LIBS)
tests_test_ui_appearance_LDADD = $(UI_LIBS) $(CMOCKA_LIBS) -lm
tests_test_ui_panes_SOURCES = tests/test_ui_panes.c tests/ui_world.c
tests_test_ui_panes_LDADD = $(UI_LIBS) $(CMOCKA_LIBS)
tests_test_ui_lists_SOURCES = tests/test_ui_lists.c tests/ui_world.c
tests_test_ui_lists_LDADD = $(UI_LIBS) $(CMOCKA_LIBS)
tests_test_ui_screens_SOURCES = tests/test_ui_screens.c tests/ui_world.c
tests_test_ui_screens_LDADD = $(UI_LIBS) $(CMOCKA_LIBS)
tests_test_ui_provider_SOURCES = tests/test_ui_provider.c tests/query_world.c
tests_test_ui_provider_LDADD = $(UI_LIBS) $(CMOCKA_LIBS)
tests_test_ui_files_SOURCES = tests/test_ui_files.c tests/ui_world.c
tests_test_ui_files_LDADD = $(UI_LIBS) $(CMOCKA_LIBS)
tests_test_ui_row_search_SOURCES = tests/test_ui_row_search.c tests/ui_world.c
tests_test_ui_row_search_LDADD = $(UI_LIBS) $(CMOCKA_LIBS)
tests_test_ui_async_query_SOURCES = tests/test_ui_async_query.c tests/ui_world.c
tests_test_ui_async_query_LDADD = $(UI_LIBS) $(CMOCKA_LIBS)
tests_test_ui_clock_offset_SOURCES = tests/test_ui_clock_offset.c tests/ui_world.c
tests_test_ui_clock_offset_LDADD = $(UI_LIBS) $(CMOCKA_LIBS)
dist_check_SCRIPTS += tests/test_ui_tmux.sh
endif
EXTRA_DIST += tests/ui

BENCHES += tests/bench/bench_ui
tests_bench_bench_ui_LDADD = $(UI_LIBS)
