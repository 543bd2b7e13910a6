/* Classes of ftrace events in a Perfetto trace, bound to a layout's rules.
 *
 * A class is the name of an event with its fields' names. It comes from one of three places:
 * - the table of events for which Perfetto defines a message with numbered fields (event_table.c);
 * - a generic event, which contains its name and its fields' names;
 * - the description of a message that the bundle contains, for events of newer versions without a fixed message. */
#pragma once

#include "trace/layout/bound_rules.h"
#include "base/proto.h"
#include "trace/reader.h"

enum {
	EVENT_SLOTS = 64,      /* fields of an event that are read, with its context */
	SLOT_TID = 0, SLOT_FLAGS = 1,  /* context of all events */
	SLOTS_CONTEXT = 2,     /* the fields of the class follow */
};

/* Fields of one event. A text refers to the bytes of the bundle. */
struct event_values {
	uint64_t present;      /* bit i: slot i has a value */
	int64_t number[EVENT_SLOTS];
	struct { const char *at; size_t len; } text[EVENT_SLOTS];
};

static inline void values_set(struct event_values *v, unsigned slot, int64_t number)
{
	v->present |= UINT64_C(1) << slot;
	v->number[slot] = number;
}

static inline void values_set_text(struct event_values *v, unsigned slot, const void *at, size_t len)
{
	v->present |= UINT64_C(1) << slot;
	v->text[slot].at = at;
	v->text[slot].len = len;
}

/* ---- table of events with a message (event_table.c) */

enum { KNOWN_FIELDS = 7, KNOWN_SWITCH = 4, KNOWN_WAKING = 20, KNOWN_GENERIC = 327 };

struct known_event {
	uint16_t number;       /* field of the event's message in FtraceEvent */
	const char *name;
	struct known_field { uint8_t number; bool is_text; const char *name; } field[KNOWN_FIELDS];  /* ends with number 0 */
};
extern const struct known_event known_events[];  /* ends with number 0 */

/* ---- classes */

struct event_class;
struct perfetto_classes;

/* layouts: the best match is chosen, see event_mapping. */
struct perfetto_classes *event_classes_new(struct event_mapping *m, struct string_cache *names);
void event_classes_free(struct perfetto_classes *c);  /* c may be NULL */
/* Returns the HANDLERS_ and ENABLED_ bits of an event, by its name, for the chosen layout. */
unsigned event_classes_enabled(const struct perfetto_classes *c, const char *name);

/* Adds the description of a message from a bundle. sequence: of its packet. */
void event_classes_describe(struct perfetto_classes *c, uint32_t sequence, const struct proto_field *description);
/* Returns the class of events with a message in the table; NULL: none. */
const struct event_class *event_classes_known(struct perfetto_classes *c, uint32_t number);
/* Returns the slot of a field of the class; EVENT_SLOTS: none. */
unsigned event_class_slot(const struct event_class *cls, const char *field);

/* Reads an event's message: the field `message` of FtraceEvent. Returns its class, and adds its fields to *v. */
const struct event_class *event_classes_read(struct perfetto_classes *c, uint32_t sequence,
                                             const struct proto_field *message, struct event_values *v);

/* Fills *ev except its time. */
void event_class_fill(const struct perfetto_classes *c, const struct event_class *cls, const struct event_values *v,
                      uint16_t cpu, struct event *ev);
