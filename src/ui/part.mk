# ui: the viewer
noinst_LIBRARIES += src/libui.a
UI_LIBS = src/libui.a $(REPORT_LIBS) $(NCURSES_LIBS) $(JSON_LIBS)
src_libui_a_CPPFLAGS = $(AM_CPPFLAGS) $(NCURSES_CFLAGS)
src_libui_a_SOURCES = \
	src/ui/actions.c \
	src/ui/app.c src/ui/app.h \
	src/ui/arrows.c src/ui/arrows.h \
	src/ui/ask.c src/ui/ask.h \
	src/ui/bench.c \
	src/ui/blame_pane.c \
	src/ui/bookmarks.c src/ui/bookmarks.h \
	src/ui/cells.c src/ui/cells.h \
	src/ui/command.c src/ui/command.h \
	src/ui/config.c \
	src/ui/details.c \
	src/ui/diff_pane.c \
	src/ui/dispatch.c \
	src/ui/draw.c \
	src/ui/events_pane.c \
	src/ui/exits_pane.c \
	src/ui/figure.c \
	src/ui/find.c src/ui/find.h \
	src/ui/flow_pane.c \
	src/ui/follow.c src/ui/follow.h \
	src/ui/foot.c \
	src/ui/gaps_pane.c \
	src/ui/glyph.c \
	src/ui/help.c \
	src/ui/histogram.c \
	src/ui/hunt.c src/ui/hunt.h \
	src/ui/keys.c src/ui/keys.h \
	src/ui/legend.c \
	src/ui/list.c \
	src/ui/locks_pane.c \
	src/ui/look.c src/ui/look.h \
	src/ui/minimap.c \
	src/ui/mouse.c \
	src/ui/nudge.c src/ui/nudge.h \
	src/ui/overview.c src/ui/overview.h \
	src/ui/pager.c src/ui/pager.h \
	src/ui/paint.c src/ui/paint.h \
	src/ui/pane.c src/ui/pane.h \
	src/ui/pane_export.c src/ui/pane_export.h \
	src/ui/parts.h \
	src/ui/path_pane.c \
	src/ui/picture.c \
	src/ui/prompt.c src/ui/prompt.h \
	src/ui/remember.c src/ui/remember.h \
	src/ui/requests_list.c \
	src/ui/rowdraw.c \
	src/ui/rownames.c \
	src/ui/rows.c src/ui/rows.h \
	src/ui/ruler.c src/ui/ruler.h \
	src/ui/screen.c src/ui/screen.h \
	src/ui/script.c src/ui/script.h \
	src/ui/signals.c src/ui/signals.h \
	src/ui/status.c src/ui/status.h \
	src/ui/survey.c \
	src/ui/term.c src/ui/term.h \
	src/ui/theme.c src/ui/theme.h \
	src/ui/ui.c src/ui/ui.h \
	src/ui/view.c src/ui/view.h \
	src/ui/viewer.c src/ui/viewer.h \
	src/ui/watch.c src/ui/watch.h
nodist_src_libui_a_SOURCES = src/ui/shipped.c
EXTRA_DIST += src/ui/shipped.awk

# The shipped themes are compiled in; the first is the default.
THEMES = themes/cvd-dark.yaml themes/cvd-light.yaml themes/paper.yaml themes/paper-light.yaml themes/mono.yaml \
	themes/ssh.yaml
CLEANFILES += src/ui/shipped.c
src/ui/shipped.c: $(THEMES) src/ui/shipped.awk
	@$(MKDIR_P) src/ui
	$(AM_V_GEN)cd $(srcdir) && $(AWK) -f src/ui/shipped.awk $(THEMES) > $(abs_builddir)/src/ui/shipped.c.tmp
	@mv src/ui/shipped.c.tmp src/ui/shipped.c
themesdir = $(pkgdatadir)/themes
dist_themes_DATA = $(THEMES)
dist_man_MANS += man/stealscope-theme.5

if HAVE_CMOCKA
check_PROGRAMS += tests/test_ui
tests_test_ui_SOURCES = tests/test_ui.c tests/ui_row.h tests/test.h
tests_test_ui_LDADD = $(UI_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += tests/test_ui_grid
tests_test_ui_grid_SOURCES = tests/test_ui_grid.c tests/ui_row.h tests/test.h
tests_test_ui_grid_LDADD = $(UI_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += tests/test_ui_cells
tests_test_ui_cells_SOURCES = tests/test_ui_cells.c tests/test.h
tests_test_ui_cells_LDADD = $(UI_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += tests/test_ui_look
tests_test_ui_look_SOURCES = tests/test_ui_look.c tests/test.h
tests_test_ui_look_LDADD = $(UI_LIBS) $(CMOCKA_LIBS) -lm
check_PROGRAMS += tests/test_ui_panes
tests_test_ui_panes_SOURCES = tests/test_ui_panes.c tests/ui_keys.h tests/ui_script.h tests/ui_world.c tests/ui_world.h tests/test.h
tests_test_ui_panes_LDADD = $(UI_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += tests/test_ui_lists
tests_test_ui_lists_SOURCES = tests/test_ui_lists.c tests/ui_keys.h tests/ui_script.h tests/ui_world.c tests/ui_world.h tests/test.h
tests_test_ui_lists_LDADD = $(UI_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += tests/test_ui_screens
tests_test_ui_screens_SOURCES = tests/test_ui_screens.c tests/ui_script.h tests/ui_world.c tests/ui_world.h tests/refs.h tests/test.h
tests_test_ui_screens_LDADD = $(UI_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += tests/test_ui_files
tests_test_ui_files_SOURCES = tests/test_ui_files.c tests/ui_script.h tests/ui_world.c tests/ui_world.h tests/test.h
tests_test_ui_files_LDADD = $(UI_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += tests/test_ui_find
tests_test_ui_find_SOURCES = tests/test_ui_find.c tests/ui_script.h tests/ui_world.c tests/ui_world.h tests/refs.h tests/test.h
tests_test_ui_find_LDADD = $(UI_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += tests/test_ui_ask
tests_test_ui_ask_SOURCES = tests/test_ui_ask.c tests/ui_world.c tests/ui_world.h tests/refs.h tests/test.h
tests_test_ui_ask_LDADD = $(UI_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += tests/test_ui_nudge
tests_test_ui_nudge_SOURCES = tests/test_ui_nudge.c tests/ui_world.c tests/ui_world.h tests/refs.h tests/test.h
tests_test_ui_nudge_LDADD = $(UI_LIBS) $(CMOCKA_LIBS)
dist_check_SCRIPTS += tests/test_ui_tmux.sh
endif
EXTRA_DIST += tests/ui

BENCHES += tests/bench/bench_ui
tests_bench_bench_ui_SOURCES = tests/bench/bench_ui.c
tests_bench_bench_ui_LDADD = $(UI_LIBS)
