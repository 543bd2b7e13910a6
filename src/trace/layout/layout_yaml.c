/* Parser that converts YAML to struct layout. Checks every node; error messages contain line and column. */
#include "base/base.h"
#include "trace/layout/layout.h"

#include <errno.h>

#include "base/yaml_file.h"
#include "trace/layout_texts.h"

#define LAYOUT_HELP "a layout is a file, or one of lttng, perf, ftrace; see stealscope-layout(5)"

struct layout_parser {
	struct yaml_file file;
	struct error *err;
};

static int fail_at(struct layout_parser *p, const yaml_node_t *at, const char *problem, const char *word)
{
	const char *quote = word ? "'" : "";
	return yaml_refuse(&p->file, at, p->err, "%s%s%s%s%s", problem, word ? " " : "", quote, word ? word : "", quote);
}

static int get_text(struct layout_parser *p, const yaml_node_t *n, const char **text)
{
	*text = yaml_scalar(n);
	return *text ? 0 : fail_at(p, n, "expected a word", NULL);
}

static int get_number(struct layout_parser *p, const yaml_node_t *n, int64_t *v)
{
	const char *text;
	if (get_text(p, n, &text))
		return -1;
	char *end;
	errno = 0;
	long long signed_value = strtoll(text, &end, 0);
	if (errno == ERANGE) {
		errno = 0;
		signed_value = (long long)strtoull(text, &end, 0);
	}
	if (!*text || *end || errno)
		return fail_at(p, n, "not a number:", text);
	*v = signed_value;
	return 0;
}

/* Calls one() for a single node, or for each element of a list. */
static int parse_each(struct layout_parser *p, const yaml_node_t *n,
                      int (*one)(struct layout_parser *, const yaml_node_t *, void *), void *arg)
{
	yaml_node_t *item;
	size_t i = 0;
	if (n->type != YAML_SEQUENCE_NODE)
		return one(p, n, arg);
	for (; yaml_item(&p->file, n, i, &item); i++)
		if (one(p, item, arg))
			return -1;
	return i ? 0 : fail_at(p, n, "an empty list", NULL);
}

static int add_field(struct layout_parser *p, const yaml_node_t *n, void *arg)
{
	static const struct { const char *prefix; enum scope scope; } scopes[] = {
		{ "payload.", SCOPE_PAYLOAD }, { "context.", SCOPE_CONTEXT }, { "packet.", SCOPE_PACKET },
	};
	struct fields *f = arg;
	const char *text;
	if (get_text(p, n, &text))
		return -1;
	enum scope scope = SCOPE_PAYLOAD;
	for (size_t i = 0; i < 3; i++) {
		size_t len = strlen(scopes[i].prefix);
		if (strncmp(text, scopes[i].prefix, len) == 0) {
			scope = scopes[i].scope;
			text += len;
			break;
		}
	}
	if (!*text || *text == '.' || text[strlen(text) - 1] == '.' || strstr(text, ".."))
		return fail_at(p, n, "not a field:", yaml_scalar(n));
	*ARRAY_PUSH(f->f, f->len, f->cap) = (struct field){ scope, mem_dup(text) };
	return 0;
}

static int add_name(struct layout_parser *p, const yaml_node_t *n, void *arg)
{
	struct rule *r = arg;
	const char *text;
	if (get_text(p, n, &text))
		return -1;
	*ARRAY_PUSH(r->name, r->names, r->names_cap) = mem_dup(text);
	return 0;
}

static int add_state(struct layout_parser *p, const yaml_node_t *n, struct states *s, enum run_state state)
{
	int64_t v;
	if (get_number(p, n, &v))
		return -1;
	*ARRAY_PUSH(s->known, s->len, s->cap) = (struct state_value){ v, state };
	return 0;
}

static int add_runnable(struct layout_parser *p, const yaml_node_t *n, void *arg)
{
	return add_state(p, n, arg, RUN_RUNNABLE);
}

static int add_uninterruptible(struct layout_parser *p, const yaml_node_t *n, void *arg)
{
	return add_state(p, n, arg, RUN_UNINTERRUPTIBLE);
}

static int parse_choice(struct layout_parser *p, const yaml_node_t *n, const char *const *words, size_t count, int64_t *v)
{
	const char *text;
	if (get_text(p, n, &text))
		return -1;
	for (size_t i = 0; i < count; i++) {
		if (strcmp(text, words[i]) == 0) {
			*v = (int64_t)i;
			return 0;
		}
	}
	return fail_at(p, n, "unknown value:", text);
}

/* Iterator over a mapping; next_pair() moves to the next pair. */
struct pair_iterator {
	const yaml_node_t *map;
	size_t i;
	yaml_node_t *key_node, *value;
	const char *key;
};

static int open_pairs(struct layout_parser *p, const yaml_node_t *n, struct pair_iterator *it)
{
	*it = (struct pair_iterator){ .map = n };
	return n->type == YAML_MAPPING_NODE ? 0 : fail_at(p, n, "expected 'key: value' pairs", NULL);
}

static int next_pair(struct layout_parser *p, struct pair_iterator *it)  /* returns 1, 0 = end, or -1 */
{
	if (!yaml_pair(&p->file, it->map, it->i++, &it->key_node, &it->value))
		return 0;
	return get_text(p, it->key_node, &it->key) ? -1 : 1;
}

static int parse_states(struct layout_parser *p, const yaml_node_t *n, struct states *s)
{
	struct pair_iterator it;
	int more;
	if (open_pairs(p, n, &it))
		return -1;
	while ((more = next_pair(p, &it)) > 0) {
		int64_t v = 0;
		const bool runnable = strcmp(it.key, "runnable") == 0;
		if (runnable || strcmp(it.key, "uninterruptible") == 0) {
			if (parse_each(p, it.value, runnable ? add_runnable : add_uninterruptible, s))
				return -1;
			continue;
		}
		if (strcmp(it.key, "mask") != 0 && strcmp(it.key, "dead") != 0)
			return fail_at(p, it.key_node, "unknown key in states:", it.key);
		if (get_number(p, it.value, &v))
			return -1;
		*(it.key[0] == 'm' ? &s->mask : &s->dead) = (uint64_t)v;
	}
	return more;
}

/* Parses each number's state, for example {1: runnable, 5: blocked}. */
static int parse_numbered_states(struct layout_parser *p, const yaml_node_t *n, struct states *s)
{
	static const char *const words[] = {
		[RUN_RUNNABLE] = "runnable", [RUN_BLOCKED] = "blocked", [RUN_DEAD] = "dead",
	};
	struct pair_iterator it;
	int more;
	if (open_pairs(p, n, &it))
		return -1;
	while ((more = next_pair(p, &it)) > 0) {
		int64_t v, state;
		if (get_number(p, it.key_node, &v) || parse_choice(p, it.value, words, sizeof words / sizeof *words, &state))
			return -1;
		*ARRAY_PUSH(s->known, s->len, s->cap) = (struct state_value){ v, (enum run_state)state };
	}
	return more;
}

static int parse_when(struct layout_parser *p, const yaml_node_t *n, struct rule *r)
{
	struct pair_iterator it;
	int more;
	if (open_pairs(p, n, &it))
		return -1;
	while ((more = next_pair(p, &it)) > 0) {
		struct condition *c = ARRAY_PUSH(r->when, r->whens, r->whens_cap);
		*c = (struct condition){ 0 };
		if (add_field(p, it.key_node, &c->field) || get_number(p, it.value, &c->value))
			return -1;
	}
	return more;
}

/* Parses key: FIELD, key: [A, B] (alternatives) or key: {all: [A, B]} (combined). */
static int parse_key(struct layout_parser *p, const yaml_node_t *n, struct rule *r)
{
	if (n->type != YAML_MAPPING_NODE)
		return parse_each(p, n, add_field, &r->arg[1]);
	struct pair_iterator it;
	int more;
	open_pairs(p, n, &it);
	while ((more = next_pair(p, &it)) > 0) {
		if (strcmp(it.key, "all") != 0)
			return fail_at(p, it.key_node, "unknown key in key:", it.key);
		r->key_all = true;
		if (parse_each(p, it.value, add_field, &r->arg[1]))
			return -1;
	}
	return more;
}

static int parse_kind(struct layout_parser *p, const yaml_node_t *n, enum event_kind *kind)
{
	int64_t v = 0;
	if (parse_choice(p, n, event_kind_name, EVENT_KIND_COUNT, &v))
		return -1;
	if (v == EV_OTHER || v == EV_LOST || v == EV_NAMED)
		return fail_at(p, n, "no rule can have the kind", event_kind_name[v]);
	*kind = (enum event_kind)v;
	return 0;
}

/* Parses the prefix of fields that have one name per CPU, for example "cpu" for cpu0, cpu1, ... */
static int parse_per_cpu(struct layout_parser *p, const yaml_node_t *n, char **to)
{
	const char *prefix;
	if (get_text(p, n, &prefix))
		return -1;
	free(*to);
	*to = mem_dup(prefix);
	return 0;
}

/* Parses one key of a rule, except kind. */
static int parse_rule_key(struct layout_parser *p, const struct pair_iterator *it, struct rule *r)
{
	static const char *const ends[] = { "a", "b", "c", "d", "send", "receive" };
	static const char *const ops[] = { "start", "yield", "resume", "end", "drop", "receive" };
	static const char *const counts[] = { "totals", "differences" };
	if (strcmp(it->key, "names") == 0)
		return parse_each(p, it->value, add_name, r);
	if (strcmp(it->key, "when") == 0)
		return parse_when(p, it->value, r);
	if (strcmp(it->key, "text") == 0)
		return parse_each(p, it->value, add_field, &r->text);
	if (strcmp(it->key, "match") == 0) {
		const char *pattern;
		if (get_text(p, it->value, &pattern))
			return -1;
		free(r->pattern);
		r->pattern = mem_dup(pattern);
		return 0;
	}
	if (r->kind == EV_SWITCH && strcmp(it->key, "states") == 0)
		return parse_states(p, it->value, &r->states);
	if (r->kind == EV_SWITCH && strcmp(it->key, "nice_0") == 0)
		return get_number(p, it->value, &r->fixed);
	if (r->kind == EV_PROCESS && strcmp(it->key, "states") == 0)
		return parse_numbered_states(p, it->value, &r->states);
	if (r->kind == EV_SYNC && strcmp(it->key, "end") == 0)
		return parse_choice(p, it->value, ends, 6, &r->fixed);
	if (r->kind == EV_SYNC && strcmp(it->key, "key") == 0)
		return parse_key(p, it->value, r);
	if (r->kind == EV_STEAL && strcmp(it->key, "ns_of_cpu") == 0)
		return parse_per_cpu(p, it->value, &r->per_cpu);
	if (r->kind == EV_STEAL && strcmp(it->key, "and_of_cpu") == 0)
		return parse_per_cpu(p, it->value, &r->per_cpu_more);
	if (r->kind == EV_COUNTERS && strcmp(it->key, "values") == 0)
		return parse_choice(p, it->value, counts, 2, &r->fixed);
	if (r->kind == EV_MARK && strcmp(it->key, "op") == 0)
		return parse_choice(p, it->value, ops, 4, &r->fixed);
	if (r->kind == EV_PROBE && strcmp(it->key, "op") == 0)
		return parse_choice(p, it->value, ops, 6, &r->fixed);
	for (unsigned i = 0; i < EVENT_ARGS; i++) {
		const struct role *role = layout_role(r->kind, i);
		if (role && strcmp(it->key, role->name) == 0)
			return parse_each(p, it->value, add_field, &r->arg[i]);
	}
	return fail_at(p, it->key_node, "unknown key for this kind of event:", it->key);
}

static int check_rule(struct layout_parser *p, const yaml_node_t *n, const struct rule *r)
{
	if (!r->names)
		return fail_at(p, n, "a rule needs names", NULL);
	if (!r->text.len != !r->pattern)
		return fail_at(p, n, "text and match belong together", NULL);
	if (r->kind == EV_SYNC && r->fixed < 0)
		return fail_at(p, n, "a sync rule needs its end (a, b, c, d, send, receive)", NULL);
	if (r->kind == EV_MARK && r->fixed < 0)
		return fail_at(p, n, "a request_mark rule needs its op (start, yield, resume, end)", NULL);
	if (r->kind == EV_PROBE && r->fixed < 0)
		return fail_at(p, n, "a request_probe rule needs its op (start, receive, yield, resume, end, drop)", NULL);
	for (size_t i = 0; i < r->names; i++)
		if (layout_has_suffix(r->name[i]) != (r->kind == EV_PROBE && !r->arg[2].len))
			return fail_at(p, n, "a request_probe rule needs {name} at the end of its names, or name; others do not:",
			               r->name[i]);
	if (r->kind == EV_SYNC && !r->arg[1].len && !(r->pattern && strstr(r->pattern, "{key}")))
		return fail_at(p, n, "a sync rule needs its key", NULL);
	if (r->kind == EV_STEAL && !r->arg[0].len == !r->per_cpu)
		return fail_at(p, n, "a steal_clock rule needs ns or ns_of_cpu", NULL);
	if (r->kind == EV_COUNTERS && !r->arg[0].len && !r->arg[1].len && !r->pattern)
		return fail_at(p, n, "a cpu_counters rule needs instructions or cycles", NULL);
	if (r->per_cpu_more && !r->per_cpu)
		return fail_at(p, n, "and_of_cpu needs ns_of_cpu", NULL);
	if (r->kind == EV_MARK && !r->arg[1].len && !(r->pattern && strstr(r->pattern, "{id}")))
		return fail_at(p, n, "a request_mark rule needs its id", NULL);
	for (unsigned i = 0; i < EVENT_ARGS; i++) {
		const struct role *role = layout_role(r->kind, i);
		if (role && role->required && !r->arg[i].len)
			return fail_at(p, n, "missing key for this kind of event:", role->name);
	}
	return 0;
}

static int parse_rule(struct layout_parser *p, const yaml_node_t *n, void *arg)
{
	struct layout *l = arg;
	struct rule *r = ARRAY_PUSH(l->rule, l->rules, l->rules_cap);
	*r = (struct rule){ .fixed = -1, .states = { .mask = UINT64_MAX, .other = EVENT_ABSENT } };
	struct pair_iterator it;
	int more;
	/* The kind is parsed first, because the meaning of the other keys depends on it. */
	if (open_pairs(p, n, &it))
		return -1;
	bool has_kind = false;
	while ((more = next_pair(p, &it)) > 0) {
		if (strcmp(it.key, "kind") != 0)
			continue;
		has_kind = true;
		if (parse_kind(p, it.value, &r->kind))
			return -1;
	}
	if (more < 0)
		return -1;
	if (!has_kind)
		return fail_at(p, n, "a rule needs its kind", NULL);
	r->fixed = r->kind == EV_SWITCH ? KERNEL_NICE_0 : -1;
	open_pairs(p, n, &it);
	while ((more = next_pair(p, &it)) > 0)
		if (strcmp(it.key, "kind") != 0 && parse_rule_key(p, &it, r))
			return -1;
	if (r->kind == EV_SWITCH)
		r->states.other = RUN_BLOCKED;
	if (more == 0 && r->kind == EV_SWITCH && !r->states.len)
		*ARRAY_PUSH(r->states.known, r->states.len, r->states.cap) = (struct state_value){ 0, RUN_RUNNABLE };
	return more ? more : check_rule(p, n, r);
}

static int parse_context(struct layout_parser *p, const yaml_node_t *n, struct layout *l)
{
	const struct { const char *name; struct fields *f; } keys[] = {
		{ "cpu", &l->cpu }, { "tid", &l->tid }, { "pid", &l->pid }, { "comm", &l->comm },
	};
	struct pair_iterator it;
	int more;
	if (open_pairs(p, n, &it))
		return -1;
	while ((more = next_pair(p, &it)) > 0) {
		size_t i = 0;
		while (i < 4 && strcmp(it.key, keys[i].name) != 0)
			i++;
		if (i == 4)
			return fail_at(p, it.key_node, "unknown key in context:", it.key);
		if (parse_each(p, it.value, add_field, keys[i].f))
			return -1;
	}
	return more;
}

static int parse_document(struct layout_parser *p, struct layout *l)
{
	const yaml_node_t *root = yaml_root(&p->file);
	if (!root)
		return error_set(p->err, STATUS_INPUT, LAYOUT_HELP, "%s:1:1: the layout is empty", p->file.name);
	struct pair_iterator it;
	int more;
	if (open_pairs(p, root, &it))
		return -1;
	while ((more = next_pair(p, &it)) > 0) {
		const char *text;
		int status;
		if (strcmp(it.key, "layout") == 0) {
			status = get_text(p, it.value, &text);
			free(l->name);
			l->name = status ? NULL : mem_dup(text);
		} else if (strcmp(it.key, "context") == 0) {
			status = parse_context(p, it.value, l);
		} else if (strcmp(it.key, "lost") == 0) {
			static const char *const where[] = { "packet", "tail" };
			int64_t v = 0;
			status = parse_choice(p, it.value, where, 2, &v);
			l->lost_tail = v;
		} else if (strcmp(it.key, "events") == 0) {
			status = parse_each(p, it.value, parse_rule, l);
		} else {
			status = fail_at(p, it.key_node, "unknown key in a layout:", it.key);
		}
		if (status)
			return -1;
	}
	if (more < 0)
		return -1;
	if (!l->name || !*l->name)
		return fail_at(p, root, "the layout needs its name (layout: NAME)", NULL);
	if (!l->rules)
		return fail_at(p, root, "the layout has no rules (events: ...)", NULL);
	return 0;
}

ORDER_BY(by_name, struct named_rule, RISING_TEXT(name) RISING(rule))

static void sort_names(struct layout *l)
{
	for (size_t i = 0; i < l->rules; i++)
		for (size_t k = 0; k < l->rule[i].names; k++)
			if (layout_has_suffix(l->rule[i].name[k]))
				*ARRAY_PUSH(l->prefixed, l->prefixes, l->prefixes_cap) = (struct named_rule){ l->rule[i].name[k], i };
			else
				*ARRAY_PUSH(l->named, l->nameds, l->nameds_cap) = (struct named_rule){ l->rule[i].name[k], i };
	const size_t all = l->nameds;
	ARRAY_SORT(l->named, all, by_name);
	l->nameds = 0;
	for (size_t i = 0; i < all; i++)  /* a rule may contain a name twice */
		if (!i || by_name(&l->named[l->nameds - 1], &l->named[i]) != 0)
			l->named[l->nameds++] = l->named[i];
}

static struct layout *parse_layout(struct layout_parser *p)
{
	struct layout *l = mem_new(1, sizeof *l);
	l->file = mem_dup(p->file.name);
	if (parse_document(p, l)) {
		layout_free(l);
		l = NULL;
	} else {
		sort_names(l);
	}
	yaml_file_release(&p->file);
	return l;
}

struct layout *layout_parse(const char *file, const char *text, size_t len, struct error *err)
{
	struct layout_parser p = { .err = err };
	return yaml_file_parse(&p.file, text, len, file, LAYOUT_HELP, err) ? NULL : parse_layout(&p);
}

const char *layout_shipped(size_t i)
{
	return i < sizeof shipped / sizeof *shipped ? shipped[i].name : NULL;
}

struct layout *layout_load(const char *name_or_file, struct error *err)
{
	for (size_t i = 0; layout_shipped(i); i++)
		if (strcmp(layout_shipped(i), name_or_file) == 0)
			return layout_parse(name_or_file, shipped[i].text, shipped[i].bytes, err);
	struct layout_parser p = { .err = err };
	return yaml_file_read(&p.file, name_or_file, LAYOUT_HELP, err) ? NULL : parse_layout(&p);
}
