/* A layout's rules, bound to a trace's event classes. Does not depend on a decoding library.
 *
 * Each decoder (libbabeltrace2, libtraceevent, native) provides three functions: one resolves a field by name, once per
 * event class; the others read a resolved field from an event. rules_fill() runs for every event and is inline, so that
 * the compiler can call these functions directly. */
#pragma once

#include "base/base.h"
#include "trace/layout/layout.h"
#include "trace/string_table.h"
#include "trace/store.h"
#include "trace/trace.h"

#define FIELD_CPUS_MAX 512  /* most CPUs with a field of their own (ns_of_cpu) */
#define FIELD_DEPTH_MAX 8  /* maximum structures and variants nested around a field */

enum root { ROOT_PACKET, ROOT_COMMON, ROOT_SPECIFIC, ROOT_PAYLOAD };
enum leaf_type { LEAF_NONE, LEAF_UNSIGNED, LEAF_SIGNED, LEAF_BOOL, LEAF_BITS, LEAF_TEXT };

struct field_step {
	bool is_option;  /* a variant's option; false: a structure's member */
	uint32_t index;
};

/* A field's location in an event. */
struct field_path {
	enum leaf_type leaf;  /* LEAF_NONE: the event class has no such field */
	union {
		struct {  /* CTF, libbabeltrace2: steps from one of the event's structures */
			enum root root;
			unsigned steps;
			struct field_step step[FIELD_DEPTH_MAX];
		};
		struct {  /* ftrace: the record's bytes */
			unsigned offset, size;
			bool dynamic, relative;  /* the bytes contain the field's offset and length */
		};
		struct {  /* CTF, native decoder: the decoded value's slot (ctf/program.h) */
			enum root from;
			uint32_t slot;
		};
	};
};

struct bound_rule {
	const struct rule *rule;
	struct field_path arg[EVENT_ARGS], text;
	struct field_path *key;  /* fields of a combined key, or of ns_of_cpu by CPU */
	size_t keys;
	const char *name;        /* part of the event's name, see LAYOUT_NAME_SUFFIX; NULL: none */
	struct field_path *more; /* [keys], fields of and_of_cpu; NULL: none */
	struct field_path *when;  /* [rule->whens] */
};

struct bound_class {
	struct bound_rule *rule;
	size_t rules;
	struct bound_rule *counters;  /* rule that makes a second event from each event in the class; NULL: none */
	struct field_path cpu, tid, pid, comm;
	char *name;          /* the event class's name; NULL: none */
};

struct field_source {
	/* Finds a field in an event class. Returns false, with LEAF_NONE in *p, if the class lacks it. */
	bool (*resolve)(const struct fields *f, const void *cls, struct field_path *p);
	int64_t (*number)(const struct field_path *p, const void *event);  /* returns EVENT_ABSENT if the event lacks the
	                                                                    * field */
	/* Returns the text, which ends with a zero or after *max_len bytes; NULL: the event lacks the field. */
	const char *(*text)(const struct field_path *p, const void *event, size_t *max_len);
};

/* Binds the context fields, and the layout's rules for events with this name, to an event class. */
struct bound_class *rules_bind(const struct layout *l, const char *name, const struct field_source *s, const void *cls);
void rules_free(struct bound_class *c);
/* Returns how well the layout matches an event class: 100 for a sched_switch rule (required for any analysis), 1 for any
 * other. Sets the event's HANDLERS_ or ENABLED_ bit in *enabled_events. */
size_t rules_score(const struct layout *l, const char *name, const struct field_source *s, const void *cls,
                   unsigned *enabled_events);

/* Returns a hash for a key that combines several fields (finalizer of splitmix64), never negative; EVENT_ABSENT: a
 * field is absent. */
static inline int64_t rules_mixed_key(const struct bound_rule *b, const struct field_source *s, const void *event)
{
	uint64_t h = 0;
	for (size_t i = 0; i < b->keys; i++) {
		int64_t v = s->number(&b->key[i], event);
		if (v == EVENT_ABSENT)
			return EVENT_ABSENT;
		h = (h ^ (uint64_t)v) + 0x9E3779B97F4A7C15ULL;
		h = (h ^ h >> 30) * 0xBF58476D1CE4E5B9ULL;
		h = (h ^ h >> 27) * 0x94D049BB133111EBULL;
		h ^= h >> 31;
	}
	return (int64_t)(h & INT64_MAX);
}

/* Returns true if the rule applies to this event. word: values from the event's text, see layout_match(). */
static inline bool rules_apply(const struct bound_rule *b, const struct field_source *s, const void *event,
                               int64_t word[2])
{
	for (size_t i = 0; i < b->rule->whens; i++)
		if (s->number(&b->when[i], event) != b->rule->when[i].value)
			return false;
	word[0] = word[1] = EVENT_ABSENT;
	if (!b->rule->pattern)
		return true;
	size_t max_len;
	const char *text = b->text.leaf == LEAF_TEXT ? s->text(&b->text, event, &max_len) : NULL;
	return text && layout_match(b->rule->pattern, text, max_len, word);
}

/* Returns a text field's string id; EVENT_ABSENT: the event lacks the field. */
static inline int64_t rules_name(const struct field_path *p, const struct field_source *s, struct string_cache *names,
                                 const void *event)
{
	size_t max_len;
	const char *text = s->text(p, event, &max_len);
	return text ? string_cache_put(names, text, max_len) : EVENT_ABSENT;
}

/* Returns a request label's string id; EVENT_ABSENT: none. */
static inline int64_t rules_label(const struct field_path *p, const struct field_source *s, struct string_cache *names,
                                  const void *event)
{
	char label[LABEL_MAX + 1];
	size_t max_len;
	const char *text = p->leaf == LEAF_TEXT ? s->text(p, event, &max_len) : NULL;
	const size_t n = text ? layout_label(label, text, max_len) : 0;
	return n ? string_cache_put(names, label, n) : EVENT_ABSENT;
}

/* Returns the current thread name's string id; 0: not recorded. */
static inline uint32_t rules_comm(const struct bound_class *c, const struct field_source *s, struct string_cache *names,
                                  const void *event)
{
	const int64_t id = c->comm.leaf == LEAF_TEXT ? rules_name(&c->comm, s, names, event) : EVENT_ABSENT;
	return id == EVENT_ABSENT ? 0 : (uint32_t)id;
}

static inline bool rules_args(const struct bound_rule *b, const struct field_source *s, struct string_cache *names,
                              const void *event, const int64_t word[2], struct event *ev)
{
	ev->kind = (uint16_t)b->rule->kind;
	const unsigned args = ev->kind == EV_PROBE ? PROBE_LABEL : event_args[ev->kind];
	for (unsigned i = 0; i < args; i++) {
		if (b->arg[i].leaf != LEAF_NONE)
			ev->arg[i] = b->arg[i].leaf == LEAF_TEXT ? rules_name(&b->arg[i], s, names, event) :
				s->number(&b->arg[i], event);
	}
	switch (ev->kind) {
	case EV_SWITCH:
		if (ev->sw.prev_state != EVENT_ABSENT)
			ev->sw.prev_state = layout_run_state(&b->rule->states, ev->sw.prev_state);
		if (ev->sw.next_prio != EVENT_ABSENT)
			ev->sw.next_prio -= b->rule->fixed;
		break;
	case EV_PROCESS:
		if (ev->process.state != EVENT_ABSENT)
			ev->process.state = layout_run_state(&b->rule->states, ev->process.state);
		break;
	case EV_EXEC:
	case EV_EXIT:
		if (ev->arg[0] == EVENT_ABSENT)
			ev->arg[0] = ev->tid;
		break;
	case EV_STEAL:
		if (b->rule->per_cpu)
			ev->steal.ns = ev->cpu < b->keys ? s->number(&b->key[ev->cpu], event) : EVENT_ABSENT;
		if (b->more && ev->steal.ns >= 0 && b->more[ev->cpu].leaf != LEAF_NONE) {
			const int64_t more = s->number(&b->more[ev->cpu], event);
			ev->steal.ns += more > 0 && more <= INT64_MAX - ev->steal.ns ? more : 0;
		}
		ev->steal.own = b->rule->per_cpu != NULL;
		ev->tid = ev->pid = -1;  /* a probe on sched_switch has the context of the thread that has left the CPU */
		ev->comm = 0;
		return ev->steal.ns >= 0;
	case EV_COUNTERS:
		ev->counters.instructions = word[0] != EVENT_ABSENT ? word[0] : ev->counters.instructions;
		ev->counters.cycles = word[1] != EVENT_ABSENT ? word[1] : ev->counters.cycles;
		ev->counters.is_difference = b->rule->fixed == 1;
		ev->tid = ev->pid = -1;  /* read at a sched_switch, but the event may follow it */
		ev->comm = 0;
		return ev->counters.instructions != EVENT_ABSENT || ev->counters.cycles != EVENT_ABSENT;
	case EV_THROTTLED:
	case EV_GROUP:
		ev->arg[0] = word[0] != EVENT_ABSENT ? word[0] : ev->arg[0];
		ev->arg[1] = word[1] != EVENT_ABSENT ? word[1] : ev->arg[1];
		return ev->arg[0] != EVENT_ABSENT && ev->arg[1] != EVENT_ABSENT;
	case EV_PROBE:
		ev->probe.op = b->rule->fixed;
		ev->probe.label = rules_label(&b->arg[PROBE_LABEL], s, names, event);
		if (b->name)
			ev->probe.name = string_cache_put(names, b->name, strlen(b->name));
		return ev->probe.name != EVENT_ABSENT;
	case EV_SYNC:
	case EV_MARK:
		ev->arg[0] = b->rule->fixed;
		if (b->keys)
			ev->arg[1] = rules_mixed_key(b, s, event);
		if (word[0] != EVENT_ABSENT)
			ev->arg[1] = word[0];
		if (word[1] != EVENT_ABSENT)
			ev->arg[2] = word[1];
		return ev->arg[1] != EVENT_ABSENT;
	default:
		break;
	}
	return true;
}

/* Sets *ev's kind and arguments by the first rule that applies. The context must be set. */
static inline void rules_fill(const struct bound_class *c, const struct field_source *s, struct string_cache *names,
                              const void *event, struct event *ev)
{
	for (size_t i = 0; i < c->rules; i++) {
		int64_t word[2];
		if (!rules_apply(&c->rule[i], s, event, word))
			continue;
		for (unsigned k = 0; k < EVENT_ARGS; k++)
			ev->arg[k] = EVENT_ABSENT;
		if (rules_args(&c->rule[i], s, names, event, word, ev))
			return;
	}
	ev->kind = EV_OTHER;
	if (!names->shared->store_event_names || !c->name)
		return;
	ev->kind = EV_NAMED;
	ev->named.name = string_cache_put(names, c->name, strlen(c->name));
}

/* Makes an event's second event, for a class with a rule `counters`; *ev is the first one. Returns false if there is
 * none. The second event precedes the first one in the trace. */
static inline bool rules_counters(const struct bound_class *c, const struct field_source *s, const void *event,
                                  const struct event *ev, struct event *second)
{
	int64_t word[2];
	if (!c->counters || !rules_apply(c->counters, s, event, word))
		return false;
	second->ts = ev->ts;
	second->cpu = ev->cpu;
	for (unsigned k = 0; k < EVENT_ARGS; k++)
		second->arg[k] = EVENT_ABSENT;
	return rules_args(c->counters, s, NULL, event, word, second);
}

/* Fills *ev except the time. cpu: the packet's CPU, used if the event has no CPU field. */
static inline void rules_event(const struct bound_class *c, const struct field_source *s, struct string_cache *names,
                               const void *event, uint16_t cpu, struct event *ev)
{
	int64_t v;
	ev->cpu = c->cpu.leaf && (v = s->number(&c->cpu, event)) != EVENT_ABSENT ? (uint16_t)v : cpu;
	ev->tid = c->tid.leaf && (v = s->number(&c->tid, event)) != EVENT_ABSENT ? (int32_t)v : -1;
	ev->pid = c->pid.leaf && (v = s->number(&c->pid, event)) != EVENT_ABSENT ? (int32_t)v : -1;
	ev->comm = rules_comm(c, s, names, event);
	rules_fill(c, s, names, event, ev);
}
