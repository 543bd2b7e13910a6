/* One babeltrace2 graph over one CTF trace: the ports of source.ctf.fs connected straight to our own sink.
 *
 * The sink makes an iterator for the port that it is told to decode, and drains it, so a graph decodes only what it is
 * asked for, and has one stream open at a time, however many the trace has.  Several graphs over the same trace, each
 * used by one thread at a time, share out its streams: nothing is decoded twice.
 * Log levels are NONE: what goes wrong is returned as the chain of causes, nothing goes to stderr. */
#ifndef STEALSCOPE_TRACE_BABELTRACE_GRAPH_H
#define STEALSCOPE_TRACE_BABELTRACE_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "trace/ctf/packets.h"
#include "trace/reader.h"

/* One stream, or one part of a stream, to decode. */
struct decode {
	size_t port;
	const struct packet *packet;       /* the packets to come, when they are known, else NULL */
	size_t packets;
	bool check;                        /* that just these packets come */
	bool limit;                        /* stop behind them, though the port has more */
	const struct packet *before;       /* the packet before the first, when this continues a stream */
	uint64_t lost_first;               /* what the stream's first packet counts as lost, 0 when that is not known */
	int64_t lost_from;                 /* a packet before could not be read from this time on; INT64_MIN: no */
	uint64_t bytes;                    /* of the stretch, before it */
};

/* How far that got. */
struct passage {
	uint64_t packets;     /* begun */
	uint64_t bytes;       /* of those that ended, where that is known */
	bool open;            /* it stopped within a packet */
	bool unexpected;      /* it stopped because other packets came than were to come */
	char *broken;         /* why it could not go on, malloc'ed, or NULL */
	int64_t last;         /* time of the last event, INT64_MIN: none */
};

struct decoder;

/* dir[n]: the folders of the trace. */
struct decoder *decoder_open(struct meaning *meaning, char *const *dir, size_t n, struct error *err);
void decoder_close(struct decoder *d);  /* NULL is allowed */
size_t decoder_ports(const struct decoder *d);
const char *decoder_port_name(const struct decoder *d, size_t port);

/* Decodes into the outlet; 0, or -1 with out->err filled.  A stream that libbabeltrace2 cannot decode to its end is no
 * failure: what came before is there, and how->broken says why. */
int decoder_run(struct decoder *d, const struct decode *what, struct outlet *out, struct passage *how);

#endif
