# export: a history as tables for other programs
noinst_LIBRARIES += src/libexport.a
EXPORT_LIBS = src/libexport.a
src_libexport_a_CPPFLAGS = $(AM_CPPFLAGS) $(SQLITE_CFLAGS)
src_libexport_a_SOURCES = \
	src/export/export.c src/export/export.h \
	src/export/fill.h \
	src/export/fleet.c src/export/fleet.h \
	src/export/fill_gaps.c \
	src/export/fill_run.c \
	src/export/fill_states.c src/export/live_rows.c \
	src/export/fill_catalog.c src/export/fill_cores.c \
	src/export/otlp.c src/export/otlp.h \
	src/export/perfetto_packets.c src/export/perfetto_packets.h \
	src/export/sink.h \
	src/export/sink_csv.c \
	src/export/sink_folded.c \
	src/export/sink_metrics.c \
	src/export/sink_perfetto.c \
	src/export/sinks.c \
	src/export/tables.c src/export/tables.h
if HAVE_SQLITE
src_libexport_a_SOURCES += src/export/sink_sqlite.c src/export/query_sqlite.c src/export/sqlite.c src/export/sqlite.h
endif
if HAVE_POSTGRES
src_libexport_a_SOURCES += src/export/sink_postgres.c src/export/query_postgres.c src/export/postgres.c src/export/postgres.h
src_libexport_a_CPPFLAGS += $(POSTGRES_CFLAGS)
endif
if HAVE_CURL
src_libexport_a_SOURCES += src/export/sink_clickhouse.c src/export/query_clickhouse.c src/export/clickhouse.c \
	src/export/clickhouse.h src/export/http.c src/export/http.h src/export/otlp_http.c
src_libexport_a_CPPFLAGS += -DHAVE_CURL $(CURL_CFLAGS)
endif
dist_man_MANS += man/stealscope-export.1 man/stealscope-tables.5

# The questions are compiled in, and installed for those who have no stealscope at hand.
QUESTIONS = share/sql/victims.sql share/sql/culprits.sql share/sql/pairs.sql share/sql/gaps.sql share/sql/days.sql \
	share/sql/moved.sql share/sql/warnings.sql share/sql/live.sql
nodist_src_libexport_a_SOURCES = src/export/questions.h
BUILT_SOURCES += src/export/questions.h
CLEANFILES += src/export/questions.h
src/export/questions.h: $(QUESTIONS) src/base/embed.sh
	$(AM_V_GEN)$(MKDIR_P) src/export && ( cd $(srcdir) && sh src/base/embed.sh $(QUESTIONS) ) >$@.tmp && mv $@.tmp $@
src/export/libexport_a-fleet.$(OBJEXT): src/export/questions.h
sqldir = $(pkgdatadir)/sql
dist_sql_DATA = $(QUESTIONS)

# For those who collect from many hosts.
grafanadir = $(pkgdatadir)/grafana
dist_grafana_DATA = share/grafana/clickhouse.json share/grafana/postgresql.json share/grafana/prometheus.json
prometheusdir = $(pkgdatadir)/prometheus
dist_prometheus_DATA = share/prometheus/stealscope.rules.yml
collectdir = $(pkgdatadir)/collect
dist_collect_SCRIPTS = share/collect/collect.sh
dist_collect_DATA = share/collect/fleet.yml
# systemd searches for units below /usr and /usr/local.
systemdunitdir = $(prefix)/lib/systemd/system
dist_systemdunit_DATA = share/collect/stealscope-monitor.service share/collect/stealscope-record.service \
	share/collect/stealscope-record.timer
