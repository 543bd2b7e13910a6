# record: this host and its guests -> a folder of raw pages
noinst_LIBRARIES += src/librecord.a
RECORD_LIBS = src/librecord.a $(BASE_LIBS)
src_librecord_a_SOURCES = \
	src/record/metadata.c src/record/metadata.h \
	src/record/buffer_stats.c \
	src/record/cleanup.c \
	src/record/disk_space.c src/record/disk_space.h \
	src/record/events.c src/record/events.h \
	src/record/cgroups.c src/record/cgroups.h \
	src/record/quota_samples.c src/record/quota_samples.h \
	src/record/session_facts.c src/record/session_facts.h \
	src/record/recording_dir.c src/record/recording_dir.h \
	src/record/buffer_sizing.c src/record/buffer_sizing.h \
	src/record/frames.c src/record/frames.h \
	src/record/frame_order.c src/record/frame_order.h \
	src/record/guest.c src/record/guest.h \
	src/record/guest_requests.c src/record/guest_requests.h \
	src/record/guest_script.c src/record/guest_script.h \
	src/record/guest_only.c src/record/guest_only.h \
	src/record/guest_only_metadata.c \
	src/record/hypervisor.c src/record/hypervisor.h \
	src/record/kernel_facts.c src/record/kernel_facts.h \
	src/record/probe_definitions.c src/record/probe_definitions.h \
	src/record/request_definitions.c src/record/request_definitions.h \
	src/record/request_uprobes.c src/record/request_uprobes.h \
	src/record/steal_probes.c src/record/steal_probes.h \
	src/record/watchdog.c src/record/watchdog.h \
	src/record/host.c src/record/host.h \
	src/record/journal.c src/record/journal.h \
	src/record/participants.c src/record/participants.h \
	src/record/clock_sample.c src/record/clock_sample.h \
	src/record/qga.c \
	src/record/record.c src/record/record.h \
	src/record/tracefs.c \
	src/record/tracer.h \
	src/record/transport.c src/record/transport.h \
	src/record/topology_facts.c src/record/topology_facts.h \
	src/record/trigger_target.c src/record/trigger_target.h src/record/trigger.c src/record/trigger.h \
	src/record/xen_host.c src/record/xen_host.h \
	src/record/elf_probes.c src/record/elf_probes.h \
	src/record/elf_reader.c src/record/elf_reader.h \
	src/record/probe_args.c \
	src/record/request_list.c \
	src/record/request_kinds.c src/record/request_kinds.h \
	src/record/proc.c src/record/proc.h \
	src/record/control_group.c src/record/control_group.h src/record/control_group_name.c \
	src/record/vm_name.c \
	src/record/vm_orchestrator.c \
	src/record/vm_discovery.c src/record/vm_discovery.h
nodist_src_librecord_a_SOURCES = src/record/guest_text.h src/record/request_texts.h

REQUEST_TABLES = src/record/requests/haproxy.yaml src/record/requests/lighttpd.yaml src/record/requests/mariadb.yaml \
	src/record/requests/nginx.yaml src/record/requests/postgresql.yaml src/record/requests/postgresql_execute.yaml \
	src/record/requests/postgresql_transaction.yaml src/record/requests/redis.yaml
BUILT_SOURCES += src/record/request_texts.h
CLEANFILES += src/record/request_texts.h
src/record/request_texts.h: $(REQUEST_TABLES) src/base/embed.sh
	$(AM_V_GEN)$(MKDIR_P) src/record && ( cd $(srcdir) && sh src/base/embed.sh $(REQUEST_TABLES) ) >$@.tmp && mv $@.tmp $@
src/record/request_kinds.$(OBJEXT): src/record/request_texts.h
requestsdir = $(pkgdatadir)/requests
dist_requests_DATA = $(REQUEST_TABLES)

dist_man_MANS += man/stealscope-record.1 man/stealscope-requests.7
EXTRA_DIST += src/record/guest.sh
BUILT_SOURCES += src/record/guest_text.h
CLEANFILES += src/record/guest_text.h
src/record/guest_text.h: src/record/guest.sh src/base/embed.sh
	$(AM_V_GEN)$(MKDIR_P) src/record && sh $(srcdir)/src/base/embed.sh -s $(srcdir)/src/record/guest.sh >$@.tmp && mv $@.tmp $@
src/record/guest_script.$(OBJEXT): src/record/guest_text.h

if HAVE_CMOCKA
check_PROGRAMS += tests/test_record_elf tests/test_record tests/test_record_session_facts tests/test_record_flights \
	tests/test_record_frames tests/test_record_qga tests/test_record_refusals tests/test_record_run \
	tests/test_record_waits tests/test_record_guest_only tests/test_record_guest_requests
tests_test_record_elf_LDADD = $(RECORD_LIBS) $(CMOCKA_LIBS)
tests_test_record_waits_SOURCES = tests/test_record_waits.c tests/record_tree.c
tests_test_record_waits_LDADD = $(RECORD_LIBS) $(CMOCKA_LIBS)
tests_test_record_guest_only_SOURCES = tests/test_record_guest_only.c tests/record_tree.c
tests_test_record_guest_only_LDADD = $(RECORD_LIBS) $(JSON_LIBS) $(CMOCKA_LIBS)
tests_test_record_qga_LDADD = $(RECORD_LIBS) $(CMOCKA_LIBS)
tests_test_record_session_facts_SOURCES = tests/test_record_session_facts.c tests/record_tree.c
tests_test_record_session_facts_LDADD = $(RECORD_LIBS) $(CMOCKA_LIBS)
tests_test_record_SOURCES = tests/test_record.c tests/record_tree.c
tests_test_record_LDADD = $(RECORD_LIBS) $(CMOCKA_LIBS)
tests_test_record_refusals_SOURCES = tests/test_record_refusals.c tests/record_tree.c
tests_test_record_refusals_LDADD = $(RECORD_LIBS) $(CMOCKA_LIBS)
tests_test_record_run_SOURCES = tests/test_record_run.c tests/record_tree.c
tests_test_record_run_LDADD = $(RECORD_LIBS) $(CMOCKA_LIBS)
tests_test_record_flights_SOURCES = tests/test_record_flights.c tests/record_tree.c
tests_test_record_flights_LDADD = $(RECORD_LIBS) $(CMOCKA_LIBS)
tests_test_record_guest_requests_LDADD = $(RECORD_LIBS) $(CMOCKA_LIBS)
tests_test_record_frames_LDADD = $(RECORD_LIBS) $(CMOCKA_LIBS)
endif

EXTRA_DIST += tests/fuzz/corpus-elf tests/fuzz/corpus-frames tests/fuzz/corpus-guest_requests
check_PROGRAMS += tests/fuzz/fuzz_elf tests/fuzz/fuzz_frames tests/fuzz/fuzz_guest_requests
tests_fuzz_fuzz_elf_SOURCES = tests/fuzz/fuzz_elf.c $(FUZZ_MAIN)
tests_fuzz_fuzz_elf_LDADD = $(RECORD_LIBS) $(FUZZ_ENGINE)
tests_fuzz_fuzz_frames_SOURCES = tests/fuzz/fuzz_frames.c $(FUZZ_MAIN)
tests_fuzz_fuzz_frames_LDADD = $(RECORD_LIBS) $(FUZZ_ENGINE)
tests_fuzz_fuzz_guest_requests_SOURCES = tests/fuzz/fuzz_guest_requests.c $(FUZZ_MAIN)
tests_fuzz_fuzz_guest_requests_LDADD = $(RECORD_LIBS) $(FUZZ_ENGINE)
