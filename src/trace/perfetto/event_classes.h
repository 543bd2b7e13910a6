/* ftrace event classes in a Perfetto trace, bound to a layout's rules.
 *
 * A class is an event's name with its fields' names. It comes from one of three places:
 * - the event table: events for which Perfetto defines a message with numbered fields (event_table.c);
 * - a generic event, which contains its name and its fields' names;
 * - a message description in the bundle, for newer versions' events without a fixed message. */
#pragma once

#include "trace/layout/bound_rules.h"
#include "base/proto.h"
#include "trace/reader.h"

enum {
	EVENT_SLOTS = 64,      /* event fields that are read, with the context */
	SLOT_TID = 0, SLOT_FLAGS = 1,  /* all events' context */
	SLOTS_CONTEXT = 2,     /* the class's fields follow */
};

/* One event's fields. A text refers to the bundle's bytes. */
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

/* ---- event table: events with a message (event_table.c) */

enum { KNOWN_FIELDS = 7, KNOWN_SWITCH = 4, KNOWN_WAKING = 20, KNOWN_GENERIC = 327 };

struct known_event {
	uint16_t number;       /* the event message's field in FtraceEvent */
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
/* Returns an event's HANDLERS_ and ENABLED_ bits, by its name, for the chosen layout. */
unsigned event_classes_enabled(const struct perfetto_classes *c, const char *name);

/* Adds a message's description from a bundle. sequence: its packet's. */
void event_classes_describe(struct perfetto_classes *c, uint32_t sequence, const struct proto_field *description);
/* Returns the class for events with a message in the table; NULL: none. */
const struct event_class *event_classes_known(struct perfetto_classes *c, uint32_t number);
/* Returns the slot for a class's field; EVENT_SLOTS: none. */
unsigned event_class_slot(const struct event_class *cls, const char *field);

/* Reads an event's message: FtraceEvent's field `message`. Returns its class, and adds its fields to *v. */
const struct event_class *event_classes_read(struct perfetto_classes *c, uint32_t sequence,
                                             const struct proto_field *message, struct event_values *v);

/* Fills *ev except its time. */
void event_class_fill(const struct perfetto_classes *c, const struct event_class *cls, const struct event_values *v,
                      uint16_t cpu, struct event *ev);
