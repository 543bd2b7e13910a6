#include "trace/rules.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static bool has_name(const struct rule *r, const char *name)
{
	for (size_t i = 0; i < r->names; i++)
		if (strcmp(r->name[i], name) == 0)
			return true;
	return false;
}

static void release(struct bound_rule *b)
{
	free(b->key);
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

/* False when the event class lacks a field without which the rule is useless. */
static bool bind_rule(const struct rule *r, const struct field_source *s, const void *cls, struct bound_rule *b)
{
	*b = (struct bound_rule){ .rule = r };
	if (!bind_args(r, s, cls, b))
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
	b->when = r->whens ? mem_new(r->whens, sizeof *b->when) : NULL;
	for (size_t i = 0; i < r->whens; i++)
		if (!s->resolve(&r->when[i].field, cls, &b->when[i]) || b->when[i].leaf == LEAF_TEXT)
			return false;
	return true;
}

struct bound_class *rules_bind(const struct layout *l, const char *name, const struct field_source *s, const void *cls)
{
	struct bound_class *c = mem_new(1, sizeof *c);
	c->name = name ? mem_dup(name) : NULL;
	for (size_t i = 0; name && i < l->rules; i++) {
		struct bound_rule bound;
		if (!has_name(&l->rule[i], name))
			continue;
		if (bind_rule(&l->rule[i], s, cls, &bound))
			*ARRAY_PUSH(c->rule, c->rules, c->cap) = bound;
		else
			release(&bound);
	}
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
		release(&c->rule[i]);
	free(c->rule);
	free(c->name);
	free(c);
}

unsigned rules_handlers(const struct bound_class *c)
{
	unsigned all = 0;
	for (size_t i = 0; i < c->rules; i++)
		all |= handlers_kind(c->rule[i].rule->kind);
	return all;
}

size_t rules_score(const struct bound_class *c)
{
	size_t score = 0;
	for (size_t i = 0; i < c->rules; i++)
		score += c->rule[i].rule->kind == EV_SWITCH ? 100 : 1;
	return score;
}
