/* Live traces: an LTTng relay daemon's sessions, with the URLs of babeltrace2.
 *
 *         net://RELAY[:PORT]                         all sessions of the relay daemon
 *         net://RELAY[:PORT]/host/HOSTNAME           all sessions of one machine, read as one trace
 *         net://RELAY[:PORT]/host/HOSTNAME/SESSION   one session
 *
 * libbabeltrace2's source.ctf.lttng-live reads them, in one child process per machine: network data is not trusted, like
 * files (decoder_process.h). A working relay daemon answers immediately, even without new data. So if a child sends no
 * messages, its relay daemon does not respond.
 *
 * Cost in the child: 0.3 us per event with one stream, 0.8 us with eight, because libbabeltrace2 compares all streams
 * for each event. */
#pragma once

#include "trace/reader.h"

struct live_url {
	char *relay;    /* net://RELAY[:PORT] */
	char *host;     /* NULL: all machines */
	char *session;  /* NULL: all sessions */
};

int live_url_parse(const char *text, struct live_url *url, struct error *err);
void live_url_release(struct live_url *url);

/* Appends the specs for a URL; called by trace_discover(). Returns 0 or -1. */
int live_discover(const char *url_text, struct trace_spec **spec, size_t *n, struct error *err);

/* Readers for which location.data is a struct live_url. */
extern const struct trace_reader live_reader;  /* reads the sessions of one machine */
extern const struct trace_reader live_lister;  /* lists a relay daemon's sessions */

/* live_child.c */
void *live_enter(struct source *s, struct error *err);
int live_decode(void *state, const struct stream_part *p, struct event_sink *out);
int live_list(void *state, const struct stream_part *p, struct event_sink *out);
