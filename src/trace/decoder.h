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
#include "trace/packets.h"
#include "trace/record.h"

/* What the graphs over one CTF trace share. */
struct ctf {
	struct names *names;
	const struct layout *const *layout;  /* candidates; the one that fits best is taken */
	size_t layouts;
	atomic_size_t chosen;                /* its index + 1, 0 = none fits or nothing was decoded */
};

/* One stream, or one part of a stream, to decode. */
struct decode {
	size_t port;
	struct store *store;
	_Atomic uint64_t *bytes;           /* counts on by the packets' sizes, where they are known */
	const atomic_bool *cancelled;
	const struct packet *packet;       /* the packets to come, when they are known, else NULL */
	size_t packets;
	bool check;                        /* that just these packets come */
	bool limit;                        /* stop behind them, though the port has more */
	const struct packet *before;       /* the packet before the first, when this continues a stream */
	uint64_t lost_first;               /* what the stream's first packet counts as lost, 0 when that is not known */
	int64_t lost_from;                 /* a packet before could not be read from this time on; INT64_MIN: no */
};

/* What decoding it gave, beside the records. */
struct decoded {
	struct stream records;
	uint64_t lost_events, lost_packets;
	uint64_t uncounted;   /* times that events were lost, and not how many */
	uint64_t clamped;     /* events whose clock went backwards */
	uint64_t untimed;     /* events without a usable time, dropped */
	uint64_t packets;     /* begun */
	uint64_t bytes;       /* that were counted */
	bool open;            /* it stopped within a packet */
	bool unexpected;      /* other packets came than were to come */
	char *broken;         /* why decoding stopped early, or NULL */
	int64_t last;         /* time of the last record, INT64_MIN: none */
};

struct decoder;

/* dir[n]: the folders of the trace. */
struct decoder *decoder_open(struct ctf *ctf, char *const *dir, size_t n, struct error *err);
void decoder_close(struct decoder *d);  /* NULL is allowed */
size_t decoder_ports(const struct decoder *d);
const char *decoder_port_name(const struct decoder *d, size_t port);

/* Decodes into *out, which the caller releases (also on failure).  A stream that libbabeltrace2 cannot decode to its end
 * is no failure: what came before is kept, and out->broken says why. */
int decoder_run(struct decoder *d, const struct decode *what, struct decoded *out, struct error *err);
void decoded_release(struct decoded *d, struct store *store);

#endif
