/* A trace's metadata and a layout -> what decodes its packets and events.
 *
 * Made once, by one thread; then read by as many as like. */
#ifndef STEALSCOPE_TRACE_CTF_CLASSES_H
#define STEALSCOPE_TRACE_CTF_CLASSES_H

#include "trace/ctf/program.h"
#include "trace/reader.h"
#include "trace/layout/bound_rules.h"

/* Slots of ctf_machine.value, by how long a value lasts: packet headers' first, then what a stream's packets and events
 * have in common, then each event class's own. */
enum { CTF_STREAM_SLOTS = 16, CTF_OWN_SLOTS = 128, CTF_MOST_SLOTS = 4096 };

struct ctf_class {
	struct bound_class *bound;   /* NULL: there is no such class */
	struct ctf_program program;  /* of all that follows an event's header */
};

/* Fields of packets that mean something by their names: their slots. */
enum ctf_told {
	CTF_MAGIC, CTF_UUID, CTF_STREAM_ID, CTF_INSTANCE,
	CTF_BEGIN, CTF_END, CTF_CONTENT, CTF_SIZE, CTF_DISCARDED, CTF_SEQUENCE,
	CTF_TOLD
};

struct ctf_stream_class {
	uint64_t id;
	struct ctf_program context, header;
	uint32_t told[CTF_TOLD];
	struct field_path cpu;       /* in the packet's context */
	struct ctf_class *class;     /* by id */
	size_t classes;
	struct ctf_class *only;      /* of events whose header tells no class */
	uint64_t frequency;          /* of the clock, Hz */
	int64_t origin;              /* ns since the epoch at which it was 0 */
};

struct ctf_classes {
	bool has_uuid;
	unsigned char uuid[16];
	struct ctf_program packet_header;
	uint32_t told[CTF_TOLD];
	struct ctf_stream_class *stream;
	size_t streams;
	uint32_t slots;              /* that a machine needs */
};

/* Of the text of metadata, with the best of the layouts, which is then the chosen one.  What is not understood, or NULL;
 * to be released in any case. */
const char *ctf_classes_make(struct ctf_classes *c, const char *text, size_t len, struct meaning *meaning);
void ctf_classes_release(struct ctf_classes *c);

/* ns since the epoch; INT64_MIN: there is no such time. */
int64_t ctf_time(const struct ctf_stream_class *s, uint64_t cycles);

/* The `resolve` of a struct field_source (bound_rules.h); a path's slot says where the value is. */
bool ctf_find_field(const struct fields *f, const void *cls, struct field_path *p);

#endif
