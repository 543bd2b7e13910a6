# live: who takes CPU time from the VMs of this host right now.  The only directory that uses libbpf
noinst_LIBRARIES += src/liblive.a
LIVE_LIBS = src/liblive.a $(RECORD_LIBS) $(BPF_LIBS)
src_liblive_a_CPPFLAGS = $(AM_CPPFLAGS) $(BPF_CFLAGS)
src_liblive_a_SOURCES = \
	src/live/accounting.h src/live/collector.h src/live/collection.h src/live/kernel_structs.h src/live/machine.h \
	src/live/machine_names.c src/live/machine_names.h src/live/machine_source.h \
	src/live/schedstat_source.c src/live/bpf_maps.h \
	src/live/culprit_bounds.c src/live/culprit_bounds.h \
	src/live/culprits.c src/live/culprits.h \
	src/live/live.c src/live/live.h \
	src/live/shared_cores.c src/live/shared_cores.h \
	src/live/metrics.c \
	src/live/publisher.c \
	src/live/quotas.c src/live/quotas.h \
	src/live/share.c \
	src/live/source.h \
	src/live/victims.c src/live/victims.h
EXTRA_DIST += src/live/collector.bpf.c src/live/counters.bpf.c src/live/throttle.bpf.c src/live/machine.bpf.c src/live/embed_object.sh
if HAVE_BPF
src_liblive_a_SOURCES += src/live/bpf_maps.c src/live/bpf_source.c src/live/counter_program.c src/live/machine_sample.c \
	src/live/machine_source.c src/live/thread_source.c src/live/throttle_program.c
nodist_src_liblive_a_SOURCES = src/live/collector_object.h src/live/counters_object.h src/live/machine_object.h \
	src/live/throttle_object.h
BUILT_SOURCES += src/live/collector_object.h src/live/counters_object.h src/live/machine_object.h src/live/throttle_object.h
CLEANFILES += src/live/throttle_object.h src/live/throttle.bpf.o src/live/machine_object.h src/live/machine.bpf.o
CLEANFILES += src/live/collector_object.h src/live/collector.bpf.o src/live/counters_object.h src/live/counters.bpf.o
src/live/counters.bpf.o: src/live/counters.bpf.c
	$(AM_V_GEN)$(MKDIR_P) src/live && $(BPF_CLANG) -O2 -g -target bpf -mcpu=v3 -Wall $(BPF_INCLUDES) $(BPF_CFLAGS) \
		-c $(srcdir)/src/live/counters.bpf.c -o $@
src/live/counters_object.h: src/live/counters.bpf.o src/live/embed_object.sh
	$(AM_V_GEN)sh $(srcdir)/src/live/embed_object.sh src/live/counters.bpf.o counters_object >$@.tmp && mv $@.tmp $@
src/live/liblive_a-counter_program.$(OBJEXT): src/live/counters_object.h
src/live/throttle.bpf.o: src/live/throttle.bpf.c src/live/kernel_structs.h
	$(AM_V_GEN)$(MKDIR_P) src/live && $(BPF_CLANG) -O2 -g -target bpf -mcpu=v3 -Wall -I$(srcdir)/src $(BPF_INCLUDES) $(BPF_CFLAGS) \
		-c $(srcdir)/src/live/throttle.bpf.c -o $@
src/live/throttle_object.h: src/live/throttle.bpf.o src/live/embed_object.sh
	$(AM_V_GEN)sh $(srcdir)/src/live/embed_object.sh src/live/throttle.bpf.o throttle_object >$@.tmp && mv $@.tmp $@
src/live/liblive_a-throttle_program.$(OBJEXT): src/live/throttle_object.h
src/live/machine.bpf.o: src/live/machine.bpf.c src/live/kernel_structs.h src/live/machine.h src/live/collector.h src/base/published_page.h
	$(AM_V_GEN)$(MKDIR_P) src/live && $(BPF_CLANG) -O2 -g -target bpf -mcpu=v3 -Wall -I$(srcdir)/src $(BPF_INCLUDES) $(BPF_CFLAGS) \
		-c $(srcdir)/src/live/machine.bpf.c -o $@
src/live/machine_object.h: src/live/machine.bpf.o src/live/embed_object.sh
	$(AM_V_GEN)sh $(srcdir)/src/live/embed_object.sh src/live/machine.bpf.o machine_object >$@.tmp && mv $@.tmp $@
src/live/liblive_a-machine_source.$(OBJEXT): src/live/machine_object.h
src/live/collector.bpf.o: src/live/collector.bpf.c src/live/kernel_structs.h src/live/collector.h src/live/accounting.h src/base/published_page.h
	$(AM_V_GEN)$(MKDIR_P) src/live && $(BPF_CLANG) -O2 -g -target bpf -mcpu=v3 -Wall -I$(srcdir)/src $(BPF_INCLUDES) $(BPF_CFLAGS) \
		-c $(srcdir)/src/live/collector.bpf.c -o $@
src/live/collector_object.h: src/live/collector.bpf.o src/live/embed_object.sh
	$(AM_V_GEN)sh $(srcdir)/src/live/embed_object.sh src/live/collector.bpf.o collector_object >$@.tmp && mv $@.tmp $@
src/live/liblive_a-bpf_source.$(OBJEXT): src/live/collector_object.h
else
src_liblive_a_SOURCES += src/live/bpf_none.c
endif

if HAVE_CMOCKA
check_PROGRAMS += tests/test_live_accounting tests/test_live_counters tests/test_live_metrics tests/test_live_proc
tests_test_live_proc_LDADD = $(LIVE_LIBS) $(CMOCKA_LIBS)
tests_test_live_metrics_LDADD = $(LIVE_LIBS) $(CMOCKA_LIBS)
tests_test_live_counters_LDADD = $(LIVE_LIBS) $(CMOCKA_LIBS)
tests_test_live_accounting_SOURCES = tests/test_live_accounting.c src/live/accounting.h src/live/collector.h
tests_test_live_accounting_LDADD = $(CMOCKA_LIBS)
endif
