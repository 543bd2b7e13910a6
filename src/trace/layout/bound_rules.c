#include "trace/layout/bound_rules.h"

#include "base/bisect.h"

/* A rule for events of some name. name: the part that LAYOUT_NAME_SUFFIX stands for; NULL: the rule has the whole name. */
struct found_rule { const struct rule *rule; const char *name; };

/* Finds the rules for events of this name; those with the whole name first. Returns their number; the caller frees *out. */
static size_t find_rules(const struct layout *l, const char *name, struct found_rule **out)
{
	size_t n = 0, cap = 0, at;
	*out = NULL;
	if (!name)
		return 0;
	BISECT(at, l->nameds, strcmp(l->named[at].name, name) < 0);
	for (; at < l->nameds && strcmp(l->named[at].name, name) == 0; at++)
		*ARRAY_PUSH(*out, n, cap) = (struct found_rule){ &l->rule[l->named[at].rule], NULL };
	for (size_t i = 0; i < l->prefixes; i++) {
		const char *part = layout_match_name(l->prefixed[i].name, name);
		if (part)
			*ARRAY_PUSH(*out, n, cap) = (struct found_rule){ &l->rule[l->prefixed[i].rule], part };
	}
	return n;
}

/* If the class has a rule for counters and others, makes the former one a second event's rule. A rule with a pattern
 * applies to events that contain nothing else. */
static void separate_counters(struct bound_class *c)
{
	size_t n = 0;
	for (size_t i = 0; i < c->rules && c->rules > 1; i++) {
		if (c->rule[i].rule->kind != EV_COUNTERS || c->rule[i].rule->pattern || c->counters) {
			c->rule[n++] = c->rule[i];
			continue;
		}
		c->counters = mem_new(1, sizeof *c->counters);
		*c->counters = c->rule[i];
	}
	c->rules = c->rules > 1 ? n : c->rules;
}

static void bound_rule_release(struct bound_rule *b)
{
	free(b->key);
	free(b->more);
	free(b->when);
}

static bool bind_args(const struct rule *r, const struct field_source *s, const void *cls, struct bound_rule *b)
{
	for (unsigned i = 0; i < EVENT_ARGS; i++) {
		const struct role *role = layout_role(r->kind, i);
		if (!role || (i == 1 && r->key_all))
			continue;
		bool found = s->resolve(&r->arg[i], cls, &b->arg[i]);
		if (role->is_text != (b->arg[i].leaf == LEAF_TEXT)) {
			b->arg[i].leaf = LEAF_NONE;
			found = false;
		}
		if (role->required && !found)
			return false;
		if (i == 1 && r->arg[1].len && !found && (r->kind == EV_SYNC || r->kind == EV_MARK))
			return false;
	}
	return true;
}

/* Binds the fields PREFIX0, PREFIX1, ... that the event class has. Returns the highest number + 1; 0: none. */
static size_t bind_numbered(const char *prefix, const struct field_source *s, const void *cls, struct field_path *to)
{
	size_t n = 0;
	for (unsigned i = 0; i < FIELD_CPUS_MAX; i++) {
		char *name = mem_printf("%s%u", prefix, i);
		const struct fields one = { &(struct field){ SCOPE_PAYLOAD, name }, 1, 1 };
		if (!s->resolve(&one, cls, &to[i]) || to[i].leaf == LEAF_TEXT)
			to[i].leaf = LEAF_NONE;
		else
			n = i + 1;
		free(name);
	}
	return n;
}

/* Binds each CPU's fields. Returns false if the event class has none. */
static bool bind_per_cpu(const struct rule *r, const struct field_source *s, const void *cls, struct bound_rule *b)
{
	b->key = mem_new(FIELD_CPUS_MAX, sizeof *b->key);
	b->keys = bind_numbered(r->per_cpu, s, cls, b->key);
	if (r->per_cpu_more) {
		b->more = mem_new(FIELD_CPUS_MAX, sizeof *b->more);
		bind_numbered(r->per_cpu_more, s, cls, b->more);
	}
	return b->keys > 0;
}

/* Binds a rule to an event class. name: part of the event's name, or NULL. Returns false if the class lacks a required
 * field. */
static bool bind_rule(const struct rule *r, const char *name, const struct field_source *s, const void *cls,
                      struct bound_rule *b)
{
	*b = (struct bound_rule){ .rule = r, .name = name };
	if (!bind_args(r, s, cls, b))
		return false;
	if (r->kind == EV_COUNTERS && !r->pattern && !b->arg[0].leaf && !b->arg[1].leaf)
		return false;
	if (r->pattern && !(s->resolve(&r->text, cls, &b->text) && b->text.leaf == LEAF_TEXT))
		return false;
	if (r->key_all) {
		b->key = mem_new(r->arg[1].len, sizeof *b->key);
		for (; b->keys < r->arg[1].len; b->keys++) {
			const struct fields one = { &r->arg[1].f[b->keys], 1, 1 };
			if (!s->resolve(&one, cls, &b->key[b->keys]) || b->key[b->keys].leaf == LEAF_TEXT)
				return false;
		}
	}
	if (r->per_cpu && !bind_per_cpu(r, s, cls, b))
		return false;
	b->when = r->whens ? mem_new(r->whens, sizeof *b->when) : NULL;
	for (size_t i = 0; i < r->whens; i++)
		if (!s->resolve(&r->when[i].field, cls, &b->when[i]) || b->when[i].leaf == LEAF_TEXT)
			return false;
	return true;
}

struct bound_class *rules_bind(const struct layout *l, const char *name, const struct field_source *s, const void *cls)
{
	struct bound_class *c = mem_new(1, sizeof *c);
	c->name = mem_dup(name);
	struct found_rule *found;
	const size_t n = find_rules(l, c->name, &found);
	c->rule = n ? mem_resize(NULL, n, sizeof *c->rule) : NULL;
	for (size_t i = 0; i < n; i++) {
		struct bound_rule *b = &c->rule[c->rules];
		if (bind_rule(found[i].rule, found[i].name, s, cls, b))
			c->rules++;
		else
			bound_rule_release(b);
	}
	free(found);
	separate_counters(c);
	s->resolve(&l->cpu, cls, &c->cpu);
	s->resolve(&l->tid, cls, &c->tid);
	s->resolve(&l->pid, cls, &c->pid);
	s->resolve(&l->comm, cls, &c->comm);
	return c;
}

void rules_free(struct bound_class *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->rules; i++)
		bound_rule_release(&c->rule[i]);
	if (c->counters)
		bound_rule_release(c->counters);
	free(c->counters);
	free(c->rule);
	free(c->name);
	free(c);
}

size_t rules_score(const struct layout *l, const char *name, const struct field_source *s, const void *cls,
                   unsigned *enabled_events)
{
	size_t score = 0;
	struct found_rule *found;
	const size_t n = find_rules(l, name, &found);
	for (size_t i = 0; i < n; i++) {
		const struct rule *r = found[i].rule;
		struct bound_rule b;
		if (bind_rule(r, found[i].name, s, cls, &b)) {
			score += r->kind == EV_SWITCH ? 100 : 1;
			*enabled_events |= handlers_kind(r->kind) | ENABLED_EXITS * handlers_exit_kind(r->kind) |
				(r->kind == EV_FORK ? (unsigned)ENABLED_FORKS : 0);
		}
		bound_rule_release(&b);
	}
	free(found);
	return score;
}
