/* Replaces graph.c and live_child.c in a program without libbabeltrace2: opens no trace. The native reader reads the
 * traces of LTTng and perf. */
#include "trace/babeltrace/graph.h"
#include "trace/live/live.h"

static int refuse(struct error *err, const char *what)
{
	return error_set(err, STATUS_SYSTEM, "use a stealscope with libbabeltrace2, e.g. of a package",
	                 "%s: this program has no libbabeltrace2", what);
}

struct decoder *decoder_open(struct event_mapping *mapping, char *const *dir, size_t n, struct error *err)
{
	(void)mapping;
	if (err)
		refuse(err, n ? dir[0] : "CTF");
	return NULL;
}

void decoder_close(struct decoder *d)
{
	(void)d;
}

size_t decoder_ports(const struct decoder *d)
{
	(void)d;
	return 0;
}

const char *decoder_port_name(const struct decoder *d, size_t port)
{
	(void)d;
	(void)port;
	return "";
}

int decoder_run(struct decoder *d, const struct decode_request *request, struct event_sink *out,
                struct decode_progress *progress)
{
	(void)d;
	(void)request;
	(void)progress;
	return refuse(out->err, "CTF");
}

void *live_enter(struct source *s, struct error *err)
{
	(void)s;
	refuse(err, "a relay daemon");
	return NULL;
}

int live_decode(void *state, const struct stream_part *p, struct event_sink *out)
{
	(void)state;
	(void)p;
	return refuse(out->err, "a relay daemon");
}

int live_list(void *state, const struct stream_part *p, struct event_sink *out)
{
	return live_decode(state, p, out);
}
