/* Decodes one CPU's bundles, one after the other, into events. */
#pragma once

#include "trace/pages/timestamp_check.h"
#include "trace/perfetto/event_classes.h"
#include "trace/perfetto/perfetto_file.h"

enum { COMPACT_FIELDS = 13 };  /* highest field number in the compact encoding + 1 */

/* One field's values in the compact encoding, one per event. */
struct bundle_column {
	int64_t *value;
	size_t len, cap;
};

struct compact_field { const char *name; unsigned column; bool is_name; unsigned slot; };

/* Event fields in one compact part: switches, or waking events. */
struct compact_part {
	const struct event_class *cls;
	struct compact_field field[6];
	size_t fields;
	unsigned prev_tid;       /* the previous thread's slot; 0: the events have none */
};

/* State while one stream is decoded. */
struct bundle_decoder {
	/* set by the caller */
	struct perfetto_classes *classes;
	struct string_cache *names;
	const struct perfetto_machine *machine;
	struct event_sink *out;
	uint32_t sequence;
	uint16_t cpu;
	int64_t offset;          /* from the events' clock to the epoch, ns */

	struct compact_part to, waking;  /* to: switches */
	struct timestamp_check check;
	uint64_t number;         /* the current bundle's number */
	int64_t first, last;     /* the first and the last event's time, ns; INT64_MIN: none yet */
	int64_t begin;           /* time since which no CPU event is missing before the first one, ns; 0: since the
	                          * start of tracing; INT64_MIN: not recorded */
	bool has_switch;
	bool is_after_loss;      /* events before the next one are missing */
	bool is_uncounted;       /* no kernel counter includes them */
	int64_t current;         /* the current thread's TID; -1: unknown */
	const char *damage;      /* reason why the rest of the current bundle cannot be decoded; NULL: none */

	/* the current bundle */
	struct bundle_column column[COMPACT_FIELDS];  /* by field number */
	struct bundle_comm { const char *at; size_t len; } *comm;  /* the compact encoding's name table */
	size_t comms, comms_cap;
	struct bundle_event { uint64_t ts; int64_t tid, flags; struct proto_field message; } *event;
	size_t events, events_cap;
	int64_t previous_end;    /* the previous bundle's last event time, ns; 0: it is the first one; INT64_MIN: not
	                          * recorded */
};

void bundle_decoder_open(struct bundle_decoder *d);
/* Decodes a bundle. follows_loss: packets before it are missing. Returns 0 or -1. */
int bundle_decode(struct bundle_decoder *d, const unsigned char *data, size_t len, bool follows_loss);
/* Passes the last events on. Releases everything, also on failure. Returns 0 or -1. */
int bundle_decoder_close(struct bundle_decoder *d);
