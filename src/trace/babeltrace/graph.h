/* A graph of libbabeltrace2 for one CTF trace: the ports of source.ctf.fs are connected to a sink of ours.
 *
 * The sink creates an iterator for the requested port only, and reads all its messages. So a graph decodes only the
 * requested stream and has one stream open at a time, regardless of the number of streams. Several graphs of one trace,
 * each used by one thread at a time, can decode different streams in parallel.
 *
 * Log levels are NONE: the library writes nothing to stderr, and returns errors as a chain of causes. */
#ifndef STEALSCOPE_TRACE_BABELTRACE_GRAPH_H
#define STEALSCOPE_TRACE_BABELTRACE_GRAPH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "trace/ctf/packets.h"
#include "trace/reader.h"

/* Request to decode a stream, or a part of one. */
struct decode_request {
	size_t port;
	const struct packet *packet;  /* expected packets; NULL: unknown */
	size_t packets;
	bool must_match;                   /* verifies that exactly these packets are decoded */
	bool stop_after;                   /* stops after these packets, even if the port has more */
	const struct packet *previous;  /* packet before packet[0], if this continues a stream; NULL: packet[0] is the first
	                               * one of the stream */
	uint64_t lost_first;          /* number of events lost before the stream's first packet; 0: none, or unknown */
	int64_t lost_from;            /* start of the unreadable packet before this part, ns; INT64_MIN: none */
	uint64_t bytes;               /* number of bytes of the task before this part */
	uint64_t max_events;          /* number of bits in the files: more events of a stream have no bits, and may never end */
};

/* Result of decoding a request. */
struct decode_progress {
	uint64_t packets;  /* number of packets begun */
	uint64_t events;   /* number of events */
	uint64_t bytes;    /* size of the packets that ended, bytes; 0: unknown */
	bool in_packet;         /* decoding stopped inside a packet */
	bool has_unexpected;   /* decoding stopped because other packets than the expected ones came */
	char *error_text;  /* decoding error, malloc'ed; NULL: none */
	int64_t last;      /* time of the last event, ns; INT64_MIN: none */
};

struct decoder;

/* Opens the trace that consists of the directories dir[n]. Returns NULL, with *err set, on failure. */
struct decoder *decoder_open(struct event_mapping *mapping, char *const *dir, size_t n, struct error *err);
void decoder_close(struct decoder *d);  /* d may be NULL */
size_t decoder_ports(const struct decoder *d);
const char *decoder_port_name(const struct decoder *d, size_t port);

/* Decodes into `out`. Returns 0, or -1 with out->err set. If libbabeltrace2 cannot decode a stream to its end, returns
 * 0: the events before the damage are in `out`, and progress->error_text is the reason. */
int decoder_run(struct decoder *d, const struct decode_request *request, struct event_sink *out,
                struct decode_progress *progress);

#endif
