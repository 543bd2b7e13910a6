# trace: trace folders -> events.  The only folder that knows babeltrace2
noinst_LIBRARIES += src/libtrace.a
TRACE_LIBS = src/libtrace.a $(BASE_LIBS) $(BT2_LIBS) $(TRACECMD_LIBS) $(SECCOMP_LIBS)
src_libtrace_a_CPPFLAGS = $(AM_CPPFLAGS) $(BT2_CFLAGS) $(SECCOMP_CFLAGS)
src_libtrace_a_SOURCES = \
	src/trace/apart.c \
	src/trace/attempt.c src/trace/attempt.h \
	src/trace/babeltrace.c src/trace/babeltrace.h \
	src/trace/bind.c src/trace/bind.h \
	src/trace/confine.c src/trace/confine.h \
	src/trace/course.c src/trace/course.h \
	src/trace/cursor.c \
	src/trace/cpustat.c src/trace/cpustat.h \
	src/trace/ctf/classes.c src/trace/ctf/classes.h \
	src/trace/ctf/compile.c \
	src/trace/ctf/ctf.h \
	src/trace/ctf/decode.c src/trace/ctf/decode.h \
	src/trace/ctf/files.c src/trace/ctf/files.h \
	src/trace/ctf/fragments.c src/trace/ctf/fragments.h \
	src/trace/ctf/json_metadata.c \
	src/trace/ctf/json_types.c src/trace/ctf/json_types.h \
	src/trace/ctf/native.c \
	src/trace/ctf/ops.h \
	src/trace/ctf/program.c src/trace/ctf/program.h \
	src/trace/ctf/tsdl.c src/trace/ctf/tsdl.h \
	src/trace/ctf/tsdl_tokens.c \
	src/trace/ctf/tsdl_types.c \
	src/trace/ctf/types.c src/trace/ctf/types.h \
	src/trace/dat.c src/trace/dat.h \
	src/trace/decoder.c src/trace/decoder.h \
	src/trace/deliver.c \
	src/trace/discover.c \
	src/trace/ear.h \
	src/trace/excerpt.c src/trace/excerpt.h \
	src/trace/group.c src/trace/group.h \
	src/trace/guard.c src/trace/guard.h \
	src/trace/hear.c \
	src/trace/internal.h \
	src/trace/layout.c src/trace/layout.h \
	src/trace/layout_shipped.c \
	src/trace/layout_yaml.c \
	src/trace/library.c src/trace/library.h \
	src/trace/live.c src/trace/live.h \
	src/trace/live_child.c \
	src/trace/load.c src/trace/load.h \
	src/trace/machines.c \
	src/trace/metadata.c src/trace/metadata.h \
	src/trace/metadata_json.c \
	src/trace/missing.c \
	src/trace/names.c src/trace/names.h \
	src/trace/naming.c \
	src/trace/packets.c src/trace/packets.h \
	src/trace/pages.c src/trace/pages.h \
	src/trace/places.c \
	src/trace/plan.c \
	src/trace/reader.h \
	src/trace/readers.c \
	src/trace/recorder.c src/trace/recorder.h \
	src/trace/rules.c src/trace/rules.h \
	src/trace/scale.c \
	src/trace/shift.c src/trace/shift.h \
	src/trace/store.c src/trace/store.h src/trace/codec.h \
	src/trace/tell.c \
	src/trace/told.c src/trace/told.h \
	src/trace/trace.c src/trace/trace.h \
	src/trace/tracecmd.c src/trace/tracecmd.h \
	src/trace/translate.c src/trace/translate.h \
	src/trace/twice.c src/trace/twice.h \
	src/trace/work.c
if HAVE_TRACECMD
src_libtrace_a_CPPFLAGS += $(TRACECMD_CFLAGS)
src_libtrace_a_SOURCES += \
	src/trace/pages_child.c \
	src/trace/ring.c src/trace/ring.h \
	src/trace/tracecmd_bind.c src/trace/tracecmd_bind.h \
	src/trace/tracecmd_child.c
else
src_libtrace_a_SOURCES += src/trace/pages_none.c src/trace/tracecmd_none.c
endif

nodist_src_libtrace_a_SOURCES = src/trace/layout_texts.h

LAYOUTS = src/trace/layouts/lttng.yaml src/trace/layouts/perf.yaml src/trace/layouts/ftrace.yaml
EXTRA_DIST += src/trace/embed.awk
BUILT_SOURCES += src/trace/layout_texts.h
CLEANFILES += src/trace/layout_texts.h
src/trace/layout_texts.h: $(LAYOUTS) src/trace/embed.awk
	$(AM_V_GEN)$(MKDIR_P) src/trace && ( cd $(srcdir) && $(AWK) -f src/trace/embed.awk $(LAYOUTS) ) >$@.tmp && mv $@.tmp $@
src/trace/libtrace_a-layout_shipped.$(OBJEXT): src/trace/layout_texts.h
layoutsdir = $(pkgdatadir)/layouts
dist_layouts_DATA = $(LAYOUTS)
dist_man_MANS += man/stealscope-layout.5

if HAVE_CMOCKA
check_PROGRAMS += tests/test_trace
tests_test_trace_SOURCES = tests/test_trace.c tests/trace_loaded.h tests/trace_same.h tests/test.h
tests_test_trace_LDADD = $(TRACE_LIBS) $(JSON_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += tests/test_trace_bad
tests_test_trace_bad_SOURCES = tests/test_trace_bad.c tests/remove_all.h tests/trace_files.c tests/trace_files.h tests/test.h
tests_test_trace_bad_LDADD = $(TRACE_LIBS) $(JSON_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += tests/test_trace_confine
tests_test_trace_confine_SOURCES = tests/test_trace_confine.c tests/test.h
tests_test_trace_confine_LDADD = $(TRACE_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += tests/test_trace_ctf2
tests_test_trace_ctf2_SOURCES = tests/test_trace_ctf2.c tests/remove_all.h tests/trace_files.c tests/trace_files.h tests/test.h
tests_test_trace_ctf2_LDADD = $(TRACE_LIBS) $(JSON_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += tests/test_trace_layout
tests_test_trace_layout_SOURCES = tests/test_trace_layout.c tests/remove_all.h tests/trace_files.c tests/trace_files.h tests/trace_same.h tests/test.h
tests_test_trace_layout_LDADD = $(TRACE_LIBS) $(JSON_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += tests/test_trace_reader
tests_test_trace_reader_SOURCES = tests/test_trace_reader.c tests/trace_loaded.h tests/test.h
tests_test_trace_reader_LDADD = $(TRACE_LIBS) $(JSON_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += tests/test_trace_twins
tests_test_trace_twins_SOURCES = tests/test_trace_twins.c tests/slice.h tests/ctf2.c tests/ctf2.h tests/remove_all.h tests/test.h
tests_test_trace_twins_LDADD = tests/libsim.a $(TRACE_LIBS) $(JSON_LIBS) $(CMOCKA_LIBS)
# With so small a limit of names that it is reached: the file that has it comes before the library's.
check_PROGRAMS += tests/test_trace_names
tests_test_trace_names_SOURCES = tests/test_trace_names.c tests/remove_all.h tests/test.h src/trace/names.c
tests_test_trace_names_CPPFLAGS = $(AM_CPPFLAGS) -DNAMES_LARGEST=20000
tests_test_trace_names_LDADD = tests/libsim.a $(TRACE_LIBS) $(JSON_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += tests/test_trace_record
tests_test_trace_record_SOURCES = tests/test_trace_record.c tests/test.h
tests_test_trace_record_LDADD = $(TRACE_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += tests/test_trace_course
tests_test_trace_course_SOURCES = tests/test_trace_course.c tests/test.h
tests_test_trace_course_LDADD = $(TRACE_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += tests/test_trace_tsdl
tests_test_trace_tsdl_SOURCES = tests/test_trace_tsdl.c tests/test.h
tests_test_trace_tsdl_LDADD = $(TRACE_LIBS) $(CMOCKA_LIBS)
check_PROGRAMS += tests/test_trace_packets
tests_test_trace_packets_SOURCES = tests/test_trace_packets.c tests/remove_all.h tests/trace_files.c tests/trace_files.h tests/trace_same.h tests/test.h
tests_test_trace_packets_LDADD = $(TRACE_LIBS) $(JSON_LIBS) $(CMOCKA_LIBS)
endif

check_PROGRAMS += tests/fuzz/fuzz_ctf
tests_fuzz_fuzz_ctf_SOURCES = tests/fuzz/fuzz_ctf.c $(FUZZ_MAIN)
tests_fuzz_fuzz_ctf_LDADD = $(TRACE_LIBS) $(FUZZ_ENGINE)
check_PROGRAMS += tests/fuzz/fuzz_dat
tests_fuzz_fuzz_dat_SOURCES = tests/fuzz/fuzz_dat.c $(FUZZ_MAIN)
tests_fuzz_fuzz_dat_LDADD = $(TRACE_LIBS) $(FUZZ_ENGINE)
check_PROGRAMS += tests/fuzz/fuzz_metadata
tests_fuzz_fuzz_metadata_SOURCES = tests/fuzz/fuzz_metadata.c $(FUZZ_MAIN)
tests_fuzz_fuzz_metadata_LDADD = $(TRACE_LIBS) $(FUZZ_ENGINE)
check_PROGRAMS += tests/fuzz/fuzz_packets
tests_fuzz_fuzz_packets_SOURCES = tests/fuzz/fuzz_packets.c $(FUZZ_MAIN)
tests_fuzz_fuzz_packets_LDADD = $(TRACE_LIBS) $(FUZZ_ENGINE)
check_PROGRAMS += tests/fuzz/fuzz_pages
tests_fuzz_fuzz_pages_SOURCES = tests/fuzz/fuzz_pages.c $(FUZZ_MAIN)
tests_fuzz_fuzz_pages_LDADD = $(TRACE_LIBS) $(FUZZ_ENGINE)
check_PROGRAMS += tests/fuzz/fuzz_record
tests_fuzz_fuzz_record_SOURCES = tests/fuzz/fuzz_record.c $(FUZZ_MAIN)
tests_fuzz_fuzz_record_LDADD = $(TRACE_LIBS) $(FUZZ_ENGINE)
check_PROGRAMS += tests/fuzz/fuzz_told
tests_fuzz_fuzz_told_SOURCES = tests/fuzz/fuzz_told.c $(FUZZ_MAIN)
tests_fuzz_fuzz_told_LDADD = $(TRACE_LIBS) $(FUZZ_ENGINE)
check_PROGRAMS += tests/fuzz/fuzz_twins
tests_fuzz_fuzz_twins_SOURCES = tests/fuzz/fuzz_twins.c $(FUZZ_MAIN)
tests_fuzz_fuzz_twins_LDADD = $(TRACE_LIBS) $(FUZZ_ENGINE)
EXTRA_DIST += tests/fuzz/corpus-ctf tests/fuzz/corpus-dat tests/fuzz/corpus-metadata tests/fuzz/corpus-packets \
	tests/fuzz/corpus-pages tests/fuzz/corpus-record tests/fuzz/corpus-told tests/fuzz/corpus-twins

BENCHES += tests/bench/bench_trace
tests_bench_bench_trace_SOURCES = tests/bench/bench_trace.c
tests_bench_bench_trace_CPPFLAGS = $(AM_CPPFLAGS) -DSRCDIR='"$(abs_srcdir)"'
tests_bench_bench_trace_LDADD = $(TRACE_LIBS)
