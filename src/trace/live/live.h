/* Live traces: the sessions of an LTTng relay daemon, named by URLs as babeltrace2 has them.
 *
 * 	net://RELAY[:PORT]                         all its sessions
 * 	net://RELAY[:PORT]/host/HOSTNAME           those of one machine, read as one trace
 * 	net://RELAY[:PORT]/host/HOSTNAME/SESSION   one of them
 *
 * They are read through libbabeltrace2's source.ctf.lttng-live in a child process for each machine, as what comes from
 * the network is trusted no more than a file; see decoder_process.h. A relay daemon answers at once, also when there is
 * nothing new, so a child that is silent for long waits for one that has died. Costs: in the child 0.3 us per event of a
 * trace of one stream, 0.8 us of eight: libbabeltrace2 looks at every stream for each event. */
#ifndef STEALSCOPE_TRACE_LIVE_LIVE_H
#define STEALSCOPE_TRACE_LIVE_LIVE_H

#include "trace/reader.h"

struct live_url {
	char *relay;    /* net://RELAY[:PORT] */
	char *host;     /* NULL: of all machines */
	char *session;  /* NULL: all */
};

int live_url_parse(const char *text, struct live_url *url, struct error *err);
void live_url_release(struct live_url *url);

/* trace_discover() of a URL. */
int live_discover(const char *what, struct trace_spec **spec, size_t *n, struct error *err);

/* Their place's data is a struct live_url. */
extern const struct trace_reader live_reader;  /* reads the sessions of one machine */
extern const struct trace_reader live_lister;  /* tells of the sessions */

/* live_child.c */
void *live_enter(struct source *s, struct error *err);
int live_decode(void *entered, const struct stretch *p, struct outlet *out);
int live_list(void *entered, const struct stretch *p, struct outlet *out);

#endif
