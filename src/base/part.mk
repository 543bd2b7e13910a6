# base: errors, arrays, strings, time.  No policy
noinst_LIBRARIES += src/libbase.a
BASE_LIBS = src/libbase.a $(YAML_LIBS) $(JSON_LIBS) $(SECCOMP_LIBS)
src_libbase_a_SOURCES = \
	src/base/base.h \
	src/base/prefetch.c src/base/prefetch.h \
	src/base/base64.c src/base/base64.h src/base/bisect.h \
	src/base/order.h \
	src/base/ordered_jobs.c src/base/ordered_jobs.h \
	src/base/csv.h \
	src/base/control_groups.c src/base/control_groups.h \
	src/base/error.c src/base/error.h \
	src/base/json_field.c src/base/json_field.h src/base/otlp_json.h \
	src/base/file_open.c src/base/file_open.h \
	src/base/gp_model.c src/base/gp_model.h \
	src/base/hash.h \
	src/base/proto.h src/base/published_page.h \
	src/base/int128.h \
	src/base/map.c src/base/map.h \
	src/base/mem.c src/base/mem.h \
	src/base/event_text.c src/base/event_text.h \
	src/base/dlopen_library.c src/base/dlopen_library.h \
	src/base/number.h \
	src/base/notes.c src/base/notes.h src/base/note_table.h \
	src/base/clock.h \
	src/base/parallel.c src/base/parallel.h \
	src/base/streaming_store.h \
	src/base/progress.h \
	src/base/schema.c src/base/schema.h \
	src/base/atomic_file.c src/base/atomic_file.h \
	src/base/rank_select.c src/base/rank_select.h \
	src/base/sandbox.c src/base/sandbox.h \
	src/base/scratch_file.c src/base/scratch_file.h \
	src/base/states.c src/base/states.h \
	src/base/strtab.c src/base/strtab.h \
	src/base/suggest.c src/base/suggest.h \
	src/base/terminal_type.c src/base/terminal_type.h \
	src/base/text.c src/base/text.h \
	src/base/timefmt.c src/base/timefmt.h \
	src/base/topology.c src/base/topology.h \
	src/base/tournament.h \
	src/base/vcpu_name.c src/base/vcpu_name.h \
	src/base/yaml_file.c src/base/yaml_file.h \
	src/base/yaml_out.c src/base/yaml_out.h

EXTRA_DIST += src/base/embed.sh

if HAVE_CMOCKA
check_PROGRAMS += tests/test_base tests/test_base_files tests/test_base_sandbox tests/test_base_tasks tests/test_base_text
tests_test_base_text_LDADD = $(BASE_LIBS) $(CMOCKA_LIBS)
tests_test_base_sandbox_LDADD = $(BASE_LIBS) $(CMOCKA_LIBS)
tests_test_base_LDADD = $(BASE_LIBS) $(CMOCKA_LIBS)
tests_test_base_files_LDADD = $(BASE_LIBS) $(CMOCKA_LIBS)
tests_test_base_tasks_LDADD = $(BASE_LIBS) $(CMOCKA_LIBS)
endif
