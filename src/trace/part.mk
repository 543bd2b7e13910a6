# trace: trace directories -> events. The only directory that uses babeltrace2
noinst_LIBRARIES += src/libtrace.a
TRACE_LIBS = src/libtrace.a $(BASE_LIBS) $(BT2_LIBS) $(TRACEEVENT_LIBS) $(ZLIB_LIBS) $(ZSTD_LIBS)
src_libtrace_a_CPPFLAGS = $(AM_CPPFLAGS) $(BT2_CFLAGS) $(ZLIB_CFLAGS) $(ZSTD_CFLAGS)
src_libtrace_a_SOURCES = \
	src/trace/isolation/isolated_tasks.c \
	src/trace/loss_placement.c src/trace/loss_placement.h \
	src/trace/cursor.c \
	src/trace/pages/buffer_counters.c src/trace/pages/buffer_counters.h \
	src/trace/ctf/classes.c src/trace/ctf/classes.h \
	src/trace/ctf/compile.c \
	src/trace/ctf/ctf.h \
	src/trace/ctf/decode.c src/trace/ctf/decode.h \
	src/trace/ctf/stream_packets.c src/trace/ctf/stream_packets.h \
	src/trace/ctf/fragments.c src/trace/ctf/fragments.h \
	src/trace/ctf/json_metadata.c \
	src/trace/ctf/json_types.c src/trace/ctf/json_types.h \
	src/trace/ctf/ctf_reader.c \
	src/trace/ctf/program_ops.h \
	src/trace/ctf/program.c src/trace/ctf/program.h \
	src/trace/ctf/tsdl.c src/trace/ctf/tsdl.h \
	src/trace/ctf/tsdl_tokens.c \
	src/trace/ctf/tsdl_types.c \
	src/trace/ctf/types.c src/trace/ctf/types.h \
	src/trace/tracecmd/tracecmd_file.c src/trace/tracecmd/tracecmd_file.h \
	src/trace/tracecmd/dat_position.c src/trace/tracecmd/dat_position.h \
	src/trace/perf/perf.h src/trace/perf/perf_file.c src/trace/perf/perf_reader.c \
	src/trace/perf/perf_queue.c src/trace/perf/perf_queue.h \
	src/trace/perf/perf_records.c src/trace/perf/perf_records.h \
	src/trace/perf/perf_sample.c src/trace/perf/perf_sample.h src/trace/perf/perf_unpacker.c \
	src/trace/assemble_trace.c \
	src/trace/discovery/trace_parts.c \
	src/trace/isolation/ipc_receiver.h \
	src/trace/pages/timestamp_check.c src/trace/pages/timestamp_check.h \
	src/trace/isolation/ipc_receiver.c \
	src/trace/internal.h \
	src/trace/layout/label.c \
	src/trace/layout/layout.c src/trace/layout/layout.h \
	src/trace/layout/layout_yaml.c \
	src/trace/live/live.c src/trace/live/live.h \
	src/trace/load.c src/trace/load.h \
	src/trace/discovery/machines.c \
	src/trace/discovery/metadata.c src/trace/discovery/metadata.h \
	src/trace/discovery/metadata_json.c \
	src/trace/ctf/missing_streams.c \
	src/trace/string_table.c src/trace/string_table.h \
	src/trace/discovery/machine_name.c \
	src/trace/ctf/stream_file.c src/trace/ctf/stream_file.h \
	src/trace/pages/pages.c src/trace/pages/pages.h \
	src/trace/discovery/trace_discovery.c \
	src/trace/partition.c \
	src/trace/reader.h \
	src/trace/readers.c \
	src/trace/decode_output.c src/trace/decode_output.h \
	src/trace/layout/bound_rules.c src/trace/layout/bound_rules.h \
	src/trace/clock_scale.c \
	src/trace/tracecmd/tracecmd_offset.c src/trace/tracecmd/tracecmd_offset.h \
	src/trace/store.c src/trace/store.h src/trace/record_codec.h \
	src/trace/isolation/ipc_sender.c \
	src/trace/isolation/decoder_process.c src/trace/isolation/decoder_process.h \
	src/trace/trace.c src/trace/trace.h \
	src/trace/tracecmd/tracecmd.c src/trace/tracecmd/tracecmd.h \
	src/trace/clock_setback.c src/trace/clock_setback.h \
	src/trace/text/text_classes.c src/trace/text/text_classes.h \
	src/trace/text/text_line.c src/trace/text/text_line.h \
	src/trace/text/text_reader.c src/trace/text/text_reader.h \
	src/trace/xen/xen.h src/trace/xen/xen_decode.c src/trace/xen/xen_file.c src/trace/xen/xen_reader.c \
	src/trace/xen/xen_texts.c \
	src/trace/discovery/file_machines.c \
	src/trace/perfetto/bundle.c src/trace/perfetto/bundle.h \
	src/trace/perfetto/event_classes.c src/trace/perfetto/event_classes.h \
	src/trace/perfetto/event_table.c \
	src/trace/perfetto/machine_facts.c \
	src/trace/perfetto/packet_unpack.c \
	src/trace/perfetto/perfetto.h src/trace/perfetto/perfetto_file.c src/trace/perfetto/perfetto_file.h \
	src/trace/perfetto/perfetto_reader.c \
	src/trace/worker_pool.c
if HAVE_BABELTRACE
src_libtrace_a_SOURCES += \
	src/trace/live/field_binding.c src/trace/live/field_binding.h \
	src/trace/live/library.c src/trace/live/library.h \
	src/trace/live/translate.c src/trace/live/translate.h \
	src/trace/live/live_child.c
else
src_libtrace_a_SOURCES += src/trace/live/live_none.c
endif
if HAVE_TRACEEVENT
src_libtrace_a_CPPFLAGS += $(TRACEEVENT_CFLAGS)
src_libtrace_a_SOURCES += \
	src/trace/perf/perf_child.c \
	src/trace/tracecmd/dat_descriptions.c src/trace/tracecmd/dat_descriptions.h \
	src/trace/pages/page_decoder.c src/trace/pages/page_decoder.h \
	src/trace/pages/namespaces.c src/trace/pages/namespaces.h \
	src/trace/pages/pages_child.c \
	src/trace/tracecmd/dat_child.c src/trace/tracecmd/dat_contents.c src/trace/tracecmd/dat_contents.h \
	src/trace/pages/ring_records.c src/trace/pages/ring_records.h \
	src/trace/tracecmd/tracecmd_binding.c src/trace/tracecmd/tracecmd_binding.h
else
src_libtrace_a_SOURCES += src/trace/traceevent_none.c
endif

nodist_src_libtrace_a_SOURCES = src/trace/layout_texts.h

LAYOUTS = src/trace/layouts/lttng.yaml src/trace/layouts/perf.yaml src/trace/layouts/ftrace.yaml
BUILT_SOURCES += src/trace/layout_texts.h
CLEANFILES += src/trace/layout_texts.h
src/trace/layout_texts.h: $(LAYOUTS) src/base/embed.sh
	$(AM_V_GEN)$(MKDIR_P) src/trace && ( cd $(srcdir) && sh src/base/embed.sh $(LAYOUTS) ) >$@.tmp && mv $@.tmp $@
src/trace/layout/libtrace_a-layout_yaml.$(OBJEXT): src/trace/layout_texts.h
layoutsdir = $(pkgdatadir)/layouts
dist_layouts_DATA = $(LAYOUTS)
dist_man_MANS += man/stealscope-layout.5

if HAVE_CMOCKA
check_PROGRAMS += tests/test_trace tests/test_trace_damage tests/test_trace_ctf2 tests/test_trace_layout \
	tests/test_trace_reader tests/test_trace_ctf_suite tests/test_trace_ctf_versions tests/test_trace_string_table \
	tests/test_trace_perf_queue tests/test_trace_record_codec tests/test_trace_loss_placement tests/test_trace_tsdl \
	tests/test_trace_packets
tests_test_trace_LDADD = $(TRACE_LIBS) $(JSON_LIBS) $(CMOCKA_LIBS)
tests_test_trace_damage_SOURCES = tests/test_trace_damage.c tests/trace_files.c
tests_test_trace_damage_LDADD = $(TRACE_LIBS) $(JSON_LIBS) $(CMOCKA_LIBS)
tests_test_trace_ctf2_SOURCES = tests/test_trace_ctf2.c tests/trace_files.c
tests_test_trace_ctf2_LDADD = $(TRACE_LIBS) $(JSON_LIBS) $(CMOCKA_LIBS)
tests_test_trace_layout_SOURCES = tests/test_trace_layout.c tests/trace_files.c
tests_test_trace_layout_LDADD = $(TRACE_LIBS) $(JSON_LIBS) $(CMOCKA_LIBS)
tests_test_trace_reader_LDADD = $(TRACE_LIBS) $(JSON_LIBS) $(CMOCKA_LIBS)
tests_test_trace_ctf_suite_LDADD = $(TRACE_LIBS) $(JSON_LIBS) $(CMOCKA_LIBS)
tests_test_trace_ctf_versions_SOURCES = tests/test_trace_ctf_versions.c tests/ctf2.c
tests_test_trace_ctf_versions_LDADD = tests/libsim.a $(TRACE_LIBS) $(JSON_LIBS) $(CMOCKA_LIBS)
# A small limit of the string table, so that the test reaches it: this object takes precedence over the library's.
tests_test_trace_string_table_SOURCES = tests/test_trace_string_table.c src/trace/string_table.c
tests_test_trace_string_table_CPPFLAGS = $(AM_CPPFLAGS) -DSTRING_TABLE_MAX=20000
tests_test_trace_string_table_LDADD = tests/libsim.a $(TRACE_LIBS) $(JSON_LIBS) $(CMOCKA_LIBS)
# A small limit of the queue, so that the test reaches it.
tests_test_trace_perf_queue_SOURCES = tests/test_trace_perf_queue.c src/trace/perf/perf_queue.c
tests_test_trace_perf_queue_CPPFLAGS = $(AM_CPPFLAGS) -DPERF_QUEUE_MAX=1000
tests_test_trace_perf_queue_LDADD = $(TRACE_LIBS) $(JSON_LIBS) $(CMOCKA_LIBS)
tests_test_trace_record_codec_LDADD = $(TRACE_LIBS) $(CMOCKA_LIBS)
tests_test_trace_loss_placement_LDADD = $(TRACE_LIBS) $(CMOCKA_LIBS)
tests_test_trace_tsdl_LDADD = $(TRACE_LIBS) $(CMOCKA_LIBS)
tests_test_trace_packets_SOURCES = tests/test_trace_packets.c tests/trace_files.c
tests_test_trace_packets_LDADD = $(TRACE_LIBS) $(JSON_LIBS) $(CMOCKA_LIBS)
endif

check_PROGRAMS += tests/fuzz/fuzz_ctf tests/fuzz/fuzz_tracecmd tests/fuzz/fuzz_xen tests/fuzz/fuzz_perf \
	tests/fuzz/fuzz_perfetto tests/fuzz/fuzz_metadata tests/fuzz/fuzz_packets tests/fuzz/fuzz_pages \
	tests/fuzz/fuzz_record_codec tests/fuzz/fuzz_ipc
tests_fuzz_fuzz_ctf_SOURCES = tests/fuzz/fuzz_ctf.c $(FUZZ_MAIN)
tests_fuzz_fuzz_ctf_LDADD = $(TRACE_LIBS) $(FUZZ_ENGINE)
tests_fuzz_fuzz_tracecmd_SOURCES = tests/fuzz/fuzz_tracecmd.c $(FUZZ_MAIN)
tests_fuzz_fuzz_tracecmd_LDADD = $(TRACE_LIBS) $(FUZZ_ENGINE)
tests_fuzz_fuzz_xen_SOURCES = tests/fuzz/fuzz_xen.c $(FUZZ_MAIN)
tests_fuzz_fuzz_xen_LDADD = $(TRACE_LIBS) $(FUZZ_ENGINE)
tests_fuzz_fuzz_perf_SOURCES = tests/fuzz/fuzz_perf.c $(FUZZ_MAIN)
tests_fuzz_fuzz_perf_LDADD = $(TRACE_LIBS) $(FUZZ_ENGINE)
tests_fuzz_fuzz_perfetto_SOURCES = tests/fuzz/fuzz_perfetto.c $(FUZZ_MAIN)
tests_fuzz_fuzz_perfetto_LDADD = $(TRACE_LIBS) $(FUZZ_ENGINE)
tests_fuzz_fuzz_metadata_SOURCES = tests/fuzz/fuzz_metadata.c $(FUZZ_MAIN)
tests_fuzz_fuzz_metadata_LDADD = $(TRACE_LIBS) $(FUZZ_ENGINE)
tests_fuzz_fuzz_packets_SOURCES = tests/fuzz/fuzz_packets.c $(FUZZ_MAIN)
tests_fuzz_fuzz_packets_LDADD = $(TRACE_LIBS) $(FUZZ_ENGINE)
tests_fuzz_fuzz_pages_SOURCES = tests/fuzz/fuzz_pages.c $(FUZZ_MAIN)
tests_fuzz_fuzz_pages_LDADD = $(TRACE_LIBS) $(FUZZ_ENGINE)
tests_fuzz_fuzz_record_codec_SOURCES = tests/fuzz/fuzz_record_codec.c $(FUZZ_MAIN)
tests_fuzz_fuzz_record_codec_LDADD = $(TRACE_LIBS) $(FUZZ_ENGINE)
tests_fuzz_fuzz_ipc_SOURCES = tests/fuzz/fuzz_ipc.c $(FUZZ_MAIN)
tests_fuzz_fuzz_ipc_LDADD = $(TRACE_LIBS) $(FUZZ_ENGINE)
EXTRA_DIST += tests/fuzz/corpus-ctf tests/fuzz/corpus-tracecmd tests/fuzz/corpus-metadata tests/fuzz/corpus-packets \
	tests/fuzz/corpus-pages tests/fuzz/corpus-record_codec tests/fuzz/corpus-ipc tests/fuzz/corpus-steal_clock \
	tests/fuzz/corpus-xen tests/fuzz/corpus-perf tests/fuzz/corpus-perfetto

BENCHES += tests/bench/bench_trace
tests_bench_bench_trace_CPPFLAGS = $(AM_CPPFLAGS) -DSRCDIR='"$(abs_srcdir)"'
tests_bench_bench_trace_LDADD = $(TRACE_LIBS)
