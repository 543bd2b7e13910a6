/* Requests as spans of distributed tracing: OTLP as JSON. Private to export/. */
#pragma once

#include "export/sink.h"

/* Makes the spans and passes them to send(), as texts of one ExportTraceServiceRequest each, without an end of line. The
 * ids of spans of the recording's own requests depend only on run and request. Fills out->table. */
int otlp_make(const struct catalog *catalog, const struct export_spans *spans, int64_t run,
              int (*send)(void *arg, const char *text, size_t size, struct error *err), void *arg,
              struct export_result *out, struct error *err);

/* As sink_kind.write_spans. */
int otlp_write_file(const struct catalog *catalog, const struct export_spans *spans, int64_t run, const char *target,
                    struct export_result *out, struct error *err);
int otlp_send(const struct catalog *catalog, const struct export_spans *spans, int64_t run, const char *target,
              struct export_result *out, struct error *err);
int otlp_send_tls(const struct catalog *catalog, const struct export_spans *spans, int64_t run, const char *target,
                  struct export_result *out, struct error *err);
