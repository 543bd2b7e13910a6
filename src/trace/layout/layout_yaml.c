/* YAML -> struct layout.  Every node is checked, and a mistake is told with its place. */
#include "trace/layout/layout.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/yaml_file.h"

#define SEE "a layout is a file, or one of lttng, perf, ftrace; see stealscope-layout(5)"

struct parse {
	struct yaml_file file;
	struct error *err;
};

static int refuse(struct parse *p, const yaml_node_t *at, const char *what, const char *word)
{
	const char *quote = word ? "'" : "";
	return yaml_refuse(&p->file, at, p->err, "%s%s%s%s%s", what, word ? " " : "", quote, word ? word : "", quote);
}

static int get_text(struct parse *p, const yaml_node_t *n, const char **text)
{
	*text = yaml_scalar(n);
	return *text ? 0 : refuse(p, n, "a word is wanted here", NULL);
}

static int get_number(struct parse *p, const yaml_node_t *n, int64_t *v)
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
		return refuse(p, n, "not a number:", text);
	*v = signed_value;
	return 0;
}

/* Calls one() for a single node or for each element of a list. */
static int each(struct parse *p, const yaml_node_t *n, int (*one)(struct parse *, const yaml_node_t *, void *),
                void *arg)
{
	yaml_node_t *item;
	size_t i = 0;
	if (n->type != YAML_SEQUENCE_NODE)
		return one(p, n, arg);
	for (; yaml_item(&p->file, n, i, &item); i++)
		if (one(p, item, arg))
			return -1;
	return i ? 0 : refuse(p, n, "an empty list", NULL);
}

static int add_field(struct parse *p, const yaml_node_t *n, void *arg)
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
		return refuse(p, n, "not a field:", yaml_scalar(n));
	*ARRAY_PUSH(f->f, f->len, f->cap) = (struct field){ scope, mem_dup(text) };
	return 0;
}

static int add_name(struct parse *p, const yaml_node_t *n, void *arg)
{
	struct rule *r = arg;
	const char *text;
	if (get_text(p, n, &text))
		return -1;
	*ARRAY_PUSH(r->name, r->names, r->names_cap) = mem_dup(text);
	return 0;
}

static int add_state(struct parse *p, const yaml_node_t *n, struct states *s, enum run_state state)
{
	int64_t v;
	if (get_number(p, n, &v))
		return -1;
	*ARRAY_PUSH(s->known, s->len, s->cap) = (struct state_value){ v, state };
	return 0;
}

static int add_runnable(struct parse *p, const yaml_node_t *n, void *arg)
{
	return add_state(p, n, arg, RUN_RUNNABLE);
}

static int add_uninterruptible(struct parse *p, const yaml_node_t *n, void *arg)
{
	return add_state(p, n, arg, RUN_UNINTERRUPTIBLE);
}

static int choose(struct parse *p, const yaml_node_t *n, const char *const *words, size_t count, int64_t *v)
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
	return refuse(p, n, "not known here:", text);
}

/* Walks a mapping: next_pair() moves to the following pair. */
struct pairs {
	const yaml_node_t *map;
	size_t i;
	yaml_node_t *key_node, *value;
	const char *key;
};

static int open_pairs(struct parse *p, const yaml_node_t *n, struct pairs *it)
{
	*it = (struct pairs){ .map = n };
	return n->type == YAML_MAPPING_NODE ? 0 : refuse(p, n, "'key: value' pairs are wanted here", NULL);
}

static int next_pair(struct parse *p, struct pairs *it)  /* 1, 0 = end, -1 */
{
	if (!yaml_pair(&p->file, it->map, it->i++, &it->key_node, &it->value))
		return 0;
	return get_text(p, it->key_node, &it->key) ? -1 : 1;
}

static int parse_states(struct parse *p, const yaml_node_t *n, struct states *s)
{
	struct pairs it;
	int more;
	if (open_pairs(p, n, &it))
		return -1;
	while ((more = next_pair(p, &it)) > 0) {
		int64_t v = 0;
		const bool runnable = strcmp(it.key, "runnable") == 0;
		if (runnable || strcmp(it.key, "uninterruptible") == 0) {
			if (each(p, it.value, runnable ? add_runnable : add_uninterruptible, s))
				return -1;
			continue;
		}
		if (strcmp(it.key, "mask") != 0 && strcmp(it.key, "dead") != 0)
			return refuse(p, it.key_node, "states has no", it.key);
		if (get_number(p, it.value, &v))
			return -1;
		*(it.key[0] == 'm' ? &s->mask : &s->dead) = (uint64_t)v;
	}
	return more;
}

/* {1: runnable, 5: blocked}: each number that means something. */
static int parse_numbered_states(struct parse *p, const yaml_node_t *n, struct states *s)
{
	static const char *const words[] = {
		[RUN_RUNNABLE] = "runnable", [RUN_BLOCKED] = "blocked", [RUN_DEAD] = "dead",
	};
	struct pairs it;
	int more;
	if (open_pairs(p, n, &it))
		return -1;
	while ((more = next_pair(p, &it)) > 0) {
		int64_t v, state;
		if (get_number(p, it.key_node, &v) || choose(p, it.value, words, sizeof words / sizeof *words, &state))
			return -1;
		*ARRAY_PUSH(s->known, s->len, s->cap) = (struct state_value){ v, (enum run_state)state };
	}
	return more;
}

static int parse_when(struct parse *p, const yaml_node_t *n, struct rule *r)
{
	struct pairs it;
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

/* key: FIELD, key: [A, B] (alternatives) or key: {all: [A, B]} (together) */
static int parse_key(struct parse *p, const yaml_node_t *n, struct rule *r)
{
	if (n->type != YAML_MAPPING_NODE)
		return each(p, n, add_field, &r->arg[1]);
	struct pairs it;
	int more;
	open_pairs(p, n, &it);
	while ((more = next_pair(p, &it)) > 0) {
		if (strcmp(it.key, "all") != 0)
			return refuse(p, it.key_node, "key has no", it.key);
		r->key_all = true;
		if (each(p, it.value, add_field, &r->arg[1]))
			return -1;
	}
	return more;
}

static int parse_kind(struct parse *p, const yaml_node_t *n, enum event_kind *kind)
{
	int64_t v = 0;
	if (choose(p, n, event_kind_name, EVENT_KIND_COUNT, &v))
		return -1;
	if (v == EV_OTHER || v == EV_LOST || v == EV_NAMED)
		return refuse(p, n, "no event can be named", event_kind_name[v]);
	*kind = (enum event_kind)v;
	return 0;
}

/* A key of a rule other than kind. */
static int parse_rule_key(struct parse *p, const struct pairs *it, struct rule *r)
{
	static const char *const ends[] = { "a", "b", "c", "d", "send", "receive" };
	static const char *const ops[] = { "start", "yield", "resume", "end" };
	if (strcmp(it->key, "names") == 0)
		return each(p, it->value, add_name, r);
	if (strcmp(it->key, "when") == 0)
		return parse_when(p, it->value, r);
	if (strcmp(it->key, "text") == 0)
		return each(p, it->value, add_field, &r->text);
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
		return choose(p, it->value, ends, 6, &r->fixed);
	if (r->kind == EV_SYNC && strcmp(it->key, "key") == 0)
		return parse_key(p, it->value, r);
	if (r->kind == EV_MARK && strcmp(it->key, "op") == 0)
		return choose(p, it->value, ops, 4, &r->fixed);
	for (unsigned i = 0; i < EVENT_ARGS; i++) {
		const struct role *role = layout_role(r->kind, i);
		if (role && strcmp(it->key, role->name) == 0)
			return each(p, it->value, add_field, &r->arg[i]);
	}
	return refuse(p, it->key_node, "this kind of event has no", it->key);
}

static int check_rule(struct parse *p, const yaml_node_t *n, const struct rule *r)
{
	if (!r->names)
		return refuse(p, n, "a rule needs names", NULL);
	if (!r->text.len != !r->pattern)
		return refuse(p, n, "text and match belong together", NULL);
	if (r->kind == EV_SYNC && r->fixed < 0)
		return refuse(p, n, "a sync rule needs its end (a, b, c, d, send, receive)", NULL);
	if (r->kind == EV_MARK && r->fixed < 0)
		return refuse(p, n, "a request_mark rule needs its op (start, yield, resume, end)", NULL);
	if (r->kind == EV_SYNC && !r->arg[1].len && !(r->pattern && strstr(r->pattern, "{key}")))
		return refuse(p, n, "a sync rule needs its key", NULL);
	if (r->kind == EV_MARK && !r->arg[1].len && !(r->pattern && strstr(r->pattern, "{id}")))
		return refuse(p, n, "a request_mark rule needs its id", NULL);
	for (unsigned i = 0; i < EVENT_ARGS; i++) {
		const struct role *role = layout_role(r->kind, i);
		if (role && role->required && !r->arg[i].len)
			return refuse(p, n, "this kind of event needs", role->name);
	}
	return 0;
}

static int parse_rule(struct parse *p, const yaml_node_t *n, void *arg)
{
	struct layout *l = arg;
	struct rule *r = ARRAY_PUSH(l->rule, l->rules, l->rules_cap);
	*r = (struct rule){ .fixed = -1, .states = { .mask = UINT64_MAX, .other = EVENT_ABSENT } };
	struct pairs it;
	int more;
	/* The kind first: what the other keys mean depends on it. */
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
		return refuse(p, n, "a rule needs its kind", NULL);
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

static int parse_context(struct parse *p, const yaml_node_t *n, struct layout *l)
{
	const struct { const char *name; struct fields *f; } keys[] = {
		{ "cpu", &l->cpu }, { "tid", &l->tid }, { "pid", &l->pid }, { "comm", &l->comm },
	};
	struct pairs it;
	int more;
	if (open_pairs(p, n, &it))
		return -1;
	while ((more = next_pair(p, &it)) > 0) {
		size_t i = 0;
		while (i < 4 && strcmp(it.key, keys[i].name) != 0)
			i++;
		if (i == 4)
			return refuse(p, it.key_node, "context has no", it.key);
		if (each(p, it.value, add_field, keys[i].f))
			return -1;
	}
	return more;
}

static int parse_top(struct parse *p, struct layout *l)
{
	const yaml_node_t *root = yaml_root(&p->file);
	if (!root)
		return error_set(p->err, STATUS_INPUT, SEE, "%s:1:1: the layout is empty", p->file.name);
	struct pairs it;
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
			status = choose(p, it.value, where, 2, &v);
			l->lost_tail = v;
		} else if (strcmp(it.key, "events") == 0) {
			status = each(p, it.value, parse_rule, l);
		} else {
			status = refuse(p, it.key_node, "a layout has no", it.key);
		}
		if (status)
			return -1;
	}
	if (more < 0)
		return -1;
	if (!l->name || !*l->name)
		return refuse(p, root, "the layout needs its name (layout: NAME)", NULL);
	if (!l->rules)
		return refuse(p, root, "the layout names no events", NULL);
	return 0;
}

static int by_name(const void *a, const void *b)
{
	const struct named_rule *x = a, *y = b;
	const int order = strcmp(x->name, y->name);
	return order ? order : x->rule < y->rule ? -1 : x->rule > y->rule;
}

static void sort_names(struct layout *l)
{
	for (size_t i = 0; i < l->rules; i++)
		for (size_t k = 0; k < l->rule[i].names; k++)
			*ARRAY_PUSH(l->named, l->nameds, l->nameds_cap) = (struct named_rule){ l->rule[i].name[k], i };
	const size_t all = l->nameds;
	if (all)
		qsort(l->named, all, sizeof *l->named, by_name);
	l->nameds = 0;
	for (size_t i = 0; i < all; i++)  /* a rule may say a name twice */
		if (!i || by_name(&l->named[l->nameds - 1], &l->named[i]) != 0)
			l->named[l->nameds++] = l->named[i];
}

static struct layout *finish(struct parse *p)
{
	struct layout *l = mem_new(1, sizeof *l);
	l->file = mem_dup(p->file.name);
	if (parse_top(p, l)) {
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
	struct parse p = { .err = err };
	return yaml_file_parse(&p.file, text, len, file, SEE, err) ? NULL : finish(&p);
}

struct layout *layout_load(const char *name_or_file, struct error *err)
{
	for (size_t i = 0; layout_shipped(i); i++) {
		if (strcmp(layout_shipped(i), name_or_file) != 0)
			continue;
		char *text = layout_shipped_text(i);
		struct layout *l = layout_parse(name_or_file, text, strlen(text), err);
		free(text);
		return l;
	}
	struct parse p = { .err = err };
	return yaml_file_read(&p.file, name_or_file, SEE, err) ? NULL : finish(&p);
}
