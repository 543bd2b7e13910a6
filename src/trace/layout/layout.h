/* Layouts: what the events and fields of one tracer mean, read from YAML (stealscope-layout(5)).
 *
 * A layout is a list of rules.  A rule says: an event with one of these names, whose fields hold these values or
 * whose text matches this pattern, is an event of this kind, and its arguments are in those fields.  The first
 * rule that applies wins; an event for which none does is EV_OTHER.  Nothing here knows babeltrace2. */
#ifndef STEALSCOPE_TRACE_LAYOUT_LAYOUT_H
#define STEALSCOPE_TRACE_LAYOUT_LAYOUT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "trace/store.h"
#include "trace/trace.h"

enum scope { SCOPE_PAYLOAD, SCOPE_CONTEXT, SCOPE_PACKET };

/* "context.tid", "packet.cpu_id", "prev_tid" (payload), "network_header.ipv4.saddr" (nested) */
struct field {
	enum scope scope;
	char *path;  /* dots separate the names of nested structures and variant options */
};

struct fields {  /* alternatives: the first that an event class has is used */
	struct field *f;
	size_t len, cap;
};

struct condition {
	struct fields field;
	int64_t value;
};

struct states {      /* what the numbers mean by which an event says what became of a thread */
	uint64_t mask;     /* bits that matter */
	struct state_value { int64_t value; enum run_state state; } *known;  /* after masking */
	size_t len, cap;
	uint64_t dead;     /* of the others, those with one of these bits */
	int64_t other;     /* of the rest: an enum run_state, or EVENT_ABSENT */
};

#define KERNEL_NICE_0 120  /* the priority of nice level 0, in the kernel's own count */

struct rule {
	enum event_kind kind;
	char **name;
	size_t names, names_cap;
	struct fields arg[EVENT_ARGS];
	bool key_all;           /* sync: the key is made of all the fields of arg 1, not of the first present */
	int64_t fixed;          /* sync: enum sync_end; request_mark: enum mark; goes to arg[0] */
	struct condition *when;
	size_t whens, whens_cap;
	struct fields text;     /* pattern is matched against this field */
	char *pattern;          /* NULL: none */
	struct states states;
};

struct layout {
	char *name, *file;
	struct fields cpu, tid, pid, comm;  /* context of every event */
	bool lost_tail;  /* a packet's lost events are missing at its end, or before it, not anywhere in it */
	struct rule *rule;
	size_t rules, rules_cap;
	struct named_rule { const char *name; size_t rule; } *named;  /* by name, then index: every name of every rule */
	size_t nameds, nameds_cap;
};

/* A role is an argument that the layout may name; those without which an event is useless are required. */
struct role {
	const char *name;
	bool is_text, required;
};
const struct role *layout_role(enum event_kind kind, unsigned arg);  /* NULL: the argument has no field */

/* Reads a layout: a shipped name ("lttng") or a file's path. */
struct layout *layout_load(const char *name_or_file, struct error *err);
/* Parses the text of one; file is for messages. */
struct layout *layout_parse(const char *file, const char *text, size_t len, struct error *err);
void layout_free(struct layout *l);  /* NULL is allowed */

/* The shipped ones, compiled in: the name, NULL past the last; the text of the YAML file, malloc'ed. */
const char *layout_shipped(size_t i);
char *layout_shipped_text(size_t i);

/* Matches a text, which ends with a zero or after `most` bytes, against a pattern: {key}, {id} and {uid} stand for one word
 * (no spaces), other bytes for themselves.  The words' values go to value[0] ({key}, {id}) and value[1] ({uid}): a number
 * in C notation, or a hash of any other word (never negative); EVENT_ABSENT when the pattern has none. */
bool layout_match(const char *pattern, const char *text, size_t most, int64_t value[2]);

int64_t layout_run_state(const struct states *s, int64_t value);  /* enum run_state, or EVENT_ABSENT */

#endif
