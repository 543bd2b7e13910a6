# report: answers as text, csv, json, with what they rest on
noinst_LIBRARIES += src/libreport.a
REPORT_LIBS = src/libreport.a $(COMPARE_LIBS)
src_libreport_a_SOURCES = \
	src/report/answer_cores.c \
	src/report/core_columns.c src/report/core_columns.h \
	src/report/answer_diff.c \
	src/report/answer_events.c \
	src/report/guest_time.c src/report/guest_time.h \
	src/report/answer_exits.c \
	src/report/answer_findings.c \
	src/report/answer_flow.c \
	src/report/answer_gaps.c \
	src/report/answer_locks.c \
	src/report/answer_path.c \
	src/report/answer_polls.c \
	src/report/answer_requests.c \
	src/report/answer_steal.c \
	src/report/answer_waits.c \
	src/report/place_link.c src/report/place_link.h \
	src/report/prose.c src/report/provenance.c src/report/page.c src/report/page.h \
	src/report/answer_summary.c src/report/report.c src/report/report.h \
	src/report/table.c src/report/table.h \
	src/report/write_csv.c \
	src/report/write_json.c \
	src/report/write_text.c \
	src/report/writer.h
schemadir = $(pkgdatadir)/schema
dist_schema_DATA = share/schema/answers.json

if HAVE_CMOCKA
check_PROGRAMS += tests/test_report_table
tests_test_report_table_LDADD = $(REPORT_LIBS) $(CMOCKA_LIBS)
endif
