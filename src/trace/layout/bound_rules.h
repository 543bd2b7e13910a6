/* Rules of a layout bound to the event classes of a trace, whatever library reads it.
 *
 * A source of events (libbabeltrace2, libtraceevent) brings three functions: one looks a field up by its name, once per
 * event class, the others read it from an event.  rules_fill() is inline so that a source's functions are called
 * directly: it runs for every event. */
#ifndef STEALSCOPE_TRACE_LAYOUT_BOUND_RULES_H
#define STEALSCOPE_TRACE_LAYOUT_BOUND_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "trace/layout/layout.h"
#include "trace/string_table.h"
#include "trace/store.h"
#include "trace/trace.h"

#define DEEPEST 8  /* nested structures and variants on the way to a field */

enum root { ROOT_PACKET, ROOT_COMMON, ROOT_SPECIFIC, ROOT_PAYLOAD };
enum leaf_type { LEAF_NONE, LEAF_UNSIGNED, LEAF_SIGNED, LEAF_BOOL, LEAF_BITS, LEAF_TEXT };

struct field_step {
	bool is_option;  /* of a variant; else a member of a structure */
	uint32_t index;
};

/* Where an event has a field. */
struct field_path {
	enum leaf_type leaf;  /* LEAF_NONE: the event class has no such field */
	union {
		struct {  /* CTF: a walk from one of the event's structures */
			enum root root;
			unsigned steps;
			struct field_step step[DEEPEST];
		};
		struct {  /* ftrace: bytes of the record */
			unsigned offset, size;
			bool dynamic, relative;  /* what lies there says where the field is */
		};
		struct {  /* CTF read by ourselves: where its value is left (ctf/program.h) */
			enum root from;
			uint32_t slot;
		};
	};
};

struct bound_rule {
	const struct rule *rule;
	struct field_path arg[EVENT_ARGS], text;
	struct field_path *key;  /* the fields of a key that is made of several */
	size_t keys;
	struct field_path *when;  /* rule->whens of them */
};

struct bound_class {
	struct bound_rule *rule;
	size_t rules;
	struct field_path cpu, tid, pid, comm;
	char *name;          /* NULL: it has none */
};

struct field_source {
	/* Looks a field up in an event class; false, and LEAF_NONE in *p, when it has none. */
	bool (*resolve)(const struct fields *f, const void *cls, struct field_path *p);
	int64_t (*number)(const struct field_path *p, const void *event);  /* EVENT_ABSENT: not in this event */
	/* NULL: not in this event.  It ends with a zero, or after *most bytes. */
	const char *(*text)(const struct field_path *p, const void *event, size_t *most);
};

/* Binds the layout's rules for events of this name, and its context. */
struct bound_class *rules_bind(const struct layout *l, const char *name, const struct field_source *s, const void *cls);
void rules_free(struct bound_class *c);
/* How well they would fit: a point for each rule, 100 for switches: nothing works without.  HANDLERS_IRQ ... or
 * ASKED_FORKS is added to *asked where they bind such an event. */
size_t rules_score(const struct layout *l, const char *name, const struct field_source *s, const void *cls,
                   unsigned *asked);

/* A key of several fields: mixed into one number (splitmix64's finalizer), never negative. */
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

/* Does the rule apply to this event?  word: what its text gave, see layout_match(). */
static inline bool rules_apply(const struct bound_rule *b, const struct field_source *s, const void *event,
                               int64_t word[2])
{
	for (size_t i = 0; i < b->rule->whens; i++)
		if (s->number(&b->when[i], event) != b->rule->when[i].value)
			return false;
	word[0] = word[1] = EVENT_ABSENT;
	if (!b->rule->pattern)
		return true;
	size_t most;
	const char *text = b->text.leaf == LEAF_TEXT ? s->text(&b->text, event, &most) : NULL;
	return text && layout_match(b->rule->pattern, text, most, word);
}

/* Of a field that is a text; EVENT_ABSENT: not in this event. */
static inline int64_t rules_name(const struct field_path *p, const struct field_source *s, struct name_cache *names,
                                 const void *event)
{
	size_t most;
	const char *text = s->text(p, event, &most);
	return text ? name_cache_put(names, text, most) : EVENT_ABSENT;
}

/* The name of the event's thread; 0: it says none. */
static inline uint32_t rules_comm(const struct bound_class *c, const struct field_source *s, struct name_cache *names,
                                  const void *event)
{
	const int64_t id = c->comm.leaf == LEAF_TEXT ? rules_name(&c->comm, s, names, event) : EVENT_ABSENT;
	return id == EVENT_ABSENT ? 0 : (uint32_t)id;
}

static inline bool rules_args(const struct bound_rule *b, const struct field_source *s, struct name_cache *names,
                              const void *event, const int64_t word[2], struct event *ev)
{
	ev->kind = (uint16_t)b->rule->kind;
	for (unsigned i = 0; i < event_args[ev->kind]; i++) {
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

/* Fills kind and arguments of *ev, whose context is there, by the first rule that applies. */
static inline void rules_fill(const struct bound_class *c, const struct field_source *s, struct name_cache *names,
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
	if (!names->shared->of_events || !c->name)
		return;
	ev->kind = EV_NAMED;
	ev->named.name = name_cache_put(names, c->name, strlen(c->name));
}

/* Fills *ev but for its time; cpu is that of the packet, for traces whose events do not say it. */
static inline void rules_event(const struct bound_class *c, const struct field_source *s, struct name_cache *names,
                               const void *event, uint16_t cpu, struct event *ev)
{
	int64_t v;
	ev->cpu = c->cpu.leaf && (v = s->number(&c->cpu, event)) != EVENT_ABSENT ? (uint16_t)v : cpu;
	ev->tid = c->tid.leaf && (v = s->number(&c->tid, event)) != EVENT_ABSENT ? (int32_t)v : -1;
	ev->pid = c->pid.leaf && (v = s->number(&c->pid, event)) != EVENT_ABSENT ? (int32_t)v : -1;
	ev->comm = rules_comm(c, s, names, event);
	rules_fill(c, s, names, event, ev);
}

#endif
