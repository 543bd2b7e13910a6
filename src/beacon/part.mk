# beacon: what runs inside guests
noinst_LIBRARIES += src/libbeacon.a
src_libbeacon_a_SOURCES = \
	src/beacon/beacon.c src/beacon/beacon.h

# libstealscope-mark: what applications link.  Plain rules, no libtool: one source list, one soname, Linux only.
# Its objects are position independent also in the static library, which may end up in somebody's shared one.  It is never
# unloaded (nodelete): a destructor of it runs at the end of each thread that marked a request.
MARK_SO = libstealscope-mark.so.1
MARK_CFLAGS = -std=gnu17 $(WARN_CFLAGS) $(SAN_CFLAGS) $(HARD_CFLAGS) -fPIC -fvisibility=hidden
lib_LIBRARIES = libstealscope-mark.a
libstealscope_mark_a_CPPFLAGS = $(AM_CPPFLAGS) $(UST_CFLAGS)
libstealscope_mark_a_CFLAGS = $(MARK_CFLAGS)
libstealscope_mark_a_SOURCES = src/beacon/mark.c src/beacon/read_history.c src/beacon/stealscope-mark.h \
	src/beacon/live_counters.h src/beacon/live_model.c src/beacon/live_page.c src/beacon/live_request.c \
	src/beacon/live_shared.c src/beacon/live_thread.c \
	src/base/csv.h src/base/gp_model.c src/base/gp_model.h src/base/published_page.h
marklibdir = $(libdir)
marklib_DATA = $(MARK_SO)
include_HEADERS = src/beacon/stealscope-mark.h
pkgconfigdir = $(libdir)/pkgconfig
pkgconfig_DATA = src/beacon/stealscope-mark.pc
CLEANFILES += $(MARK_SO)
$(MARK_SO): $(libstealscope_mark_a_OBJECTS)
	$(AM_V_CCLD)$(CC) $(MARK_CFLAGS) $(CFLAGS) -Wl,-z,relro -Wl,-z,now -Wl,-z,nodelete $(LDFLAGS) -shared -Wl,-soname,$(MARK_SO) -o $@ \
		$(libstealscope_mark_a_OBJECTS) $(MARK_LIBS)
install-data-hook: install-mark-link
uninstall-hook: uninstall-mark-link
install-mark-link:
	cd '$(DESTDIR)$(libdir)' && rm -f libstealscope-mark.so && $(LN_S) $(MARK_SO) libstealscope-mark.so
uninstall-mark-link:
	rm -f '$(DESTDIR)$(libdir)/libstealscope-mark.so'
.PHONY: install-mark-link uninstall-mark-link
dist_man_MANS += man/stealscope-mark.3

if HAVE_CMOCKA
check_PROGRAMS += tests/test_beacon tests/test_mark tests/test_mark_live
tests_test_beacon_LDADD = src/libbeacon.a $(BASE_LIBS) $(CMOCKA_LIBS)
tests_test_mark_LDADD = libstealscope-mark.a $(MARK_LIBS) $(CMOCKA_LIBS)
tests_test_mark_live_LDADD = libstealscope-mark.a $(LATENCY_LIBS) $(MARK_LIBS) $(CMOCKA_LIBS)
endif

# The marking library's example: a server and a client, linked with the shared library
MARK_EXAMPLE = tests/mark_server tests/mark_client tests/probe_server
check_DATA = $(MARK_EXAMPLE)
CLEANFILES += $(MARK_EXAMPLE)
tests_mark_server_LDADD = $(MARK_SO)
tests_probe_server_LDADD = libstealscope-mark.a $(MARK_LIBS)
dist_check_SCRIPTS += tests/test_mark_example.sh
EXTRA_PROGRAMS += $(MARK_EXAMPLE)

BENCHES += tests/bench/bench_mark
tests_bench_bench_mark_LDADD = libstealscope-mark.a $(MARK_LIBS)
BENCHES += tests/bench/bench_mark_live
tests_bench_bench_mark_live_LDADD = libstealscope-mark.a $(MARK_LIBS)

examplesdir = $(pkgdatadir)/examples
dist_examples_DATA = share/examples/request.cc share/examples/shed_load.c share/examples/srbn.py
