/* One babeltrace2 graph over one CTF trace: the ports of source.ctf.fs connected straight to our own sink.
 *
 * The sink makes an iterator for the port that it is told to decode, and drains it, so a graph decodes only what it is
 * asked for, and has one stream open at a time, however many the trace has.  Several graphs over the same trace, each
 * used by one thread at a time, share out its streams: nothing is decoded twice.
 * Log levels are NONE: what goes wrong is returned as the chain of causes, nothing goes to stderr. */
#ifndef STEALSCOPE_TRACE_DECODER_H
#define STEALSCOPE_TRACE_DECODER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "trace/layout.h"
#include "trace/names.h"
#include "trace/record.h"

/* CTF trace folders that belong together: one trace, perhaps rotated into several folders. */
struct ctf {
	char **dir;
	size_t dirs, cap;
	struct names *names;
	const struct layout *const *layout;  /* candidates; the one that fits best is taken */
	size_t layouts;
	atomic_size_t chosen;                /* its index + 1, 0 = none fits or nothing was decoded */
};

/* What decoding one stream gave, beside the records. */
struct decoded {
	struct stream records;
	uint64_t lost_events, lost_packets;
	uint64_t clamped;     /* events whose clock went backwards */
	uint64_t untimed;     /* events without a usable time, dropped */
	uint64_t packets;     /* begun */
	char *broken;         /* why decoding stopped early, or NULL */
};

struct decoder;

struct decoder *decoder_open(struct ctf *ctf, struct error *err);
void decoder_close(struct decoder *d);  /* NULL is allowed */
size_t decoder_ports(const struct decoder *d);
const char *decoder_port_name(const struct decoder *d, size_t port);

/* Decodes one port's stream into *out, which the caller releases (also on failure).  A stream that libbabeltrace2 cannot
 * decode to its end is no failure: what came before is kept, and out->broken says why.  *events counts on while
 * it runs; when *cancelled becomes true it stops early. */
int decoder_run(struct decoder *d, size_t port, struct store *store, _Atomic uint64_t *events,
                const atomic_bool *cancelled, struct decoded *out, struct error *err);

/* The text of the metadata of the CTF trace in dir, malloc'ed. */
char *decoder_metadata(const char *dir, struct error *err);

#endif
