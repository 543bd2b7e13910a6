/* Layouts: the meaning of one tracer's events and fields, read from YAML (stealscope-layout(5)).
 *
 * A layout is a list of rules. A rule has event names, and optionally conditions on field values or a text pattern. It
 * assigns an event kind to the matching events, and fields to this kind's arguments. The first rule that matches
 * applies; an event without a rule is EV_OTHER. Does not depend on a decoding library. */
#pragma once

#include "base/base.h"
#include "trace/store.h"
#include "trace/trace.h"

enum scope { SCOPE_PAYLOAD, SCOPE_CONTEXT, SCOPE_PACKET };

/* An event's field: "context.tid", "packet.cpu_id", "prev_tid" (payload), "network_header.ipv4.saddr" (nested). */
struct field {
	enum scope scope;
	char *path;  /* names of nested structures and variant options, separated by dots */
};

struct fields {  /* alternatives: the first field present in the event class is used */
	struct field *f;
	size_t len, cap;
};

struct condition {
	struct fields field;
	int64_t value;
};

struct states {      /* maps the numbers of a tracer to a thread's states */
	uint64_t mask;     /* significant bits */
	struct state_value { int64_t value; enum run_state state; } *known;  /* compared after masking */
	size_t len, cap;
	uint64_t dead;     /* other values with one of these bits mean dead */
	int64_t other;     /* state for all other values: an enum run_state, or EVENT_ABSENT */
};

/* End of a name in a rule of kind request_probe: stands for the rest of the event's name, at least one character, which is
 * the argument `name` of the event. */
#define LAYOUT_NAME_SUFFIX "{name}"
#define KERNEL_NICE_0 120  /* the kernel's priority of nice level 0 */

struct rule {
	enum event_kind kind;
	char **name;
	size_t names, names_cap;
	struct fields arg[EVENT_ARGS];
	bool key_all;           /* sync: all fields of arg[1] together form the key; false: the first one present is the key */
	char *per_cpu;          /* steal_clock: prefix of the fields "PREFIX<CPU>", one per CPU; NULL: arg[0] */
	char *per_cpu_more;     /* steal_clock: prefix of fields that are added to those of per_cpu; NULL: none */
	int64_t fixed;          /* sync: enum sync_end, request_mark and request_probe: enum mark, stored in arg[0];
	                         * sched_switch: the tracer's priority of nice level 0 */
	struct condition *when;
	size_t whens, whens_cap;
	struct fields text;     /* field that is matched against `pattern` */
	char *pattern;          /* see layout_match(); NULL: none */
	struct states states;
};

struct layout {
	char *name, *file;
	struct fields cpu, tid, pid, comm;  /* context fields of all events */
	bool lost_tail;  /* lost events are missing at the end of a packet or before it; false: anywhere in it */
	struct rule *rule;
	size_t rules, rules_cap;
	struct named_rule { const char *name; size_t rule; } *named;  /* all names of all rules, sorted by name and rule */
	size_t nameds, nameds_cap;
	struct named_rule *prefixed;  /* names that end with {name}, in the rules' order; name: with {name} */
	size_t prefixes, prefixes_cap;
};

/* Argument of an event kind to which a layout may map a field. required: the event is useless without it. */
struct role {
	const char *name;
	bool is_text, required;
};
const struct role *layout_role(enum event_kind kind, unsigned arg);  /* NULL: the argument has no field */

/* Loads a layout by its shipped name ("lttng") or from a file. Returns NULL, with *err set, on failure. */
struct layout *layout_load(const char *name_or_file, struct error *err);
/* Parses a layout. file: name in messages. Returns NULL, with *err set, on failure. */
struct layout *layout_parse(const char *file, const char *text, size_t len, struct error *err);
void layout_free(struct layout *l);  /* l may be NULL */

const char *layout_shipped(size_t i);  /* name of shipped layout i; NULL after the last one */

/* Matches a text, which ends with a zero or after max_len bytes, against a pattern. {key}, {id} and {uid} match one word
 * (no spaces), other bytes match themselves. Stores the values of these words in value[0] ({key}, {id}) and value[1]
 * ({uid}): a number in C notation, or for any other word a hash (never negative); EVENT_ABSENT: not in the pattern. */
bool layout_match(const char *pattern, const char *text, size_t max_len, int64_t value[2]);

bool layout_has_suffix(const char *name);  /* true: the name ends with LAYOUT_NAME_SUFFIX */
/* Returns the part of an event's name that {name} stands for; NULL: the name does not match. */
const char *layout_match_name(const char *pattern, const char *name);

int64_t layout_run_state(const struct states *s, int64_t value);  /* enum run_state, or EVENT_ABSENT */

/* Shortens a request's text, such as a query, to a label of at most LABEL_MAX bytes without values: numbers and quoted
 * strings become "?", blanks and control characters one blank. Returns its length. */
#define LABEL_MAX 80
size_t layout_label(char out[LABEL_MAX + 1], const char *text, size_t max_len);
