/* Decoders of a CTF trace's packets and events, built from its metadata and a layout.
 *
 * The decoders are built by one thread; then they are read-only, so all threads can use them. */
#pragma once

#include "trace/ctf/program.h"
#include "trace/reader.h"
#include "trace/layout/bound_rules.h"

/* Ranges of slots in ctf_interpreter.value: [0, CTF_STREAM_SLOTS) for packet headers, up to CTF_OWN_SLOTS for fields
 * that all events of a stream share, up to CTF_MAX_SLOTS for fields of one event class. */
enum { CTF_STREAM_SLOTS = 16, CTF_OWN_SLOTS = 128, CTF_MAX_SLOTS = 4096 };

struct ctf_event_class {
	struct bound_class *bound;   /* NULL: no class has this id */
	struct ctf_program program;  /* decodes everything after the event header */
};

/* Packet fields that CTF defines. */
enum ctf_packet_field {
	CTF_MAGIC, CTF_UUID, CTF_STREAM_ID, CTF_INSTANCE_ID,
	CTF_BEGIN_TIME, CTF_END_TIME, CTF_CONTENT_SIZE, CTF_PACKET_SIZE, CTF_DISCARDED, CTF_SEQUENCE,
	CTF_PACKET_FIELDS
};

struct ctf_stream_class {
	uint64_t id;
	struct ctf_program context, header;
	uint32_t field_slot[CTF_PACKET_FIELDS];
	struct field_path cpu;          /* CPU field of the packet context; leaf LEAF_NONE: no such field */
	struct ctf_event_class *class;  /* indexed by id */
	size_t classes;
	struct ctf_event_class *single_class;  /* class of all events if the headers contain no id; NULL: several classes */
	uint64_t frequency;  /* the clock's frequency, Hz */
	int64_t origin;      /* time at which the clock was 0, ns since the epoch */
};

struct ctf_classes {
	bool has_uuid;
	unsigned char uuid[16];
	struct ctf_program packet_header;
	uint32_t field_slot[CTF_PACKET_FIELDS];
	struct ctf_stream_class *stream;
	size_t streams;
	uint32_t slots;  /* length of ctf_interpreter.value */
};

/* Builds the decoders from the metadata's text, with the best of the layouts in *mapping, which becomes the chosen
 * one. Returns NULL, or an unsupported feature's name. Release *c in any case. */
const char *ctf_classes_make(struct ctf_classes *c, const char *text, size_t len, struct event_mapping *mapping);
void ctf_classes_release(struct ctf_classes *c);

/* Converts cycles to ns since the epoch. Returns INT64_MIN if the result is out of range. */
int64_t ctf_time(const struct ctf_stream_class *s, uint64_t cycles);

/* The operation `resolve` of struct field_source (bound_rules.h). Sets p->slot to the slot of the field's value. */
bool ctf_find_field(const struct fields *f, const void *cls, struct field_path *p);
