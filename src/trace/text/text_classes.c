#include "trace/text/text_classes.h"

#include "base/base.h"
#include "base/hash.h"
#include "trace/layout/bound_rules.h"

#define CLASSES_MAX 4096
#define FIELD_NAME_MAX 48

enum { SLOT_TID = TEXT_FIELDS_MAX };  /* the fields of the class come before it */

struct text_class {
	char event[TEXT_NAME_MAX];
	struct { char name[FIELD_NAME_MAX]; bool is_text; } field[TEXT_FIELDS_MAX];
	size_t fields;
	struct bound_class *bound;
};

struct text_classes {
	struct event_mapping *mapping;
	struct string_cache *names;
	struct text_class **list;
	size_t classes, classes_cap;
	struct map by_name;  /* hash of the name -> index + 1 */
};

/* The event that is being filled. */
struct text_event {
	const struct text_line *line;
	const struct text_field *slot[TEXT_FIELDS_MAX];  /* NULL: the line lacks the field */
};

/* ---- fields */

static bool resolve_field(const struct fields *f, const void *cls, struct field_path *p)
{
	const struct text_class *c = cls;
	*p = (struct field_path){ .leaf = LEAF_NONE };
	for (size_t i = 0; i < f->len; i++) {
		const char *path = f->f[i].path;
		if (f->f[i].scope == SCOPE_PACKET)
			continue;
		if (strcmp(path, "common_pid") == 0) {
			p->leaf = LEAF_SIGNED;
			p->slot = SLOT_TID;
			return true;
		}
		for (uint32_t k = 0; f->f[i].scope == SCOPE_PAYLOAD && k < c->fields; k++) {
			if (strcmp(c->field[k].name, path) != 0)
				continue;
			p->leaf = c->field[k].is_text ? LEAF_TEXT : LEAF_SIGNED;
			p->slot = k;
			return true;
		}
	}
	return false;
}

static int64_t read_number(const struct field_path *p, const void *event)
{
	const struct text_event *e = event;
	if (p->slot == SLOT_TID)
		return e->line->tid;
	const struct text_field *f = e->slot[p->slot];
	return f && !f->is_text ? f->number : EVENT_ABSENT;
}

static const char *read_text(const struct field_path *p, const void *event, size_t *max_len)
{
	const struct text_event *e = event;
	const struct text_field *f = e->slot[p->slot];
	if (!f || !f->is_text)
		return NULL;
	*max_len = f->len;
	return f->text;
}

static const struct field_source text_source = { resolve_field, read_number, read_text };

/* ---- classes */

struct text_classes *text_classes_new(struct event_mapping *m, struct string_cache *names)
{
	struct text_classes *c = mem_new(1, sizeof *c);
	c->mapping = m;
	c->names = names;
	return c;
}

void text_classes_free(struct text_classes *c)
{
	for (size_t i = 0; c && i < c->classes; i++) {
		rules_free(c->list[i]->bound);
		free(c->list[i]);
	}
	if (c) {
		free(c->list);
		map_release(&c->by_name);
	}
	free(c);
}

/* Returns the name of the event that prints the line's event in the kernel. */
static const char *kernel_name(const struct text_line *l)
{
	return strcmp(l->event, "tracing_mark_write") == 0 ? "print" : l->event;
}

static struct text_class *find_class(const struct text_classes *c, const char *event)
{
	const uint64_t *index = map_find(&c->by_name, hash_text(HASH_BEGIN, event));
	struct text_class *found = index ? c->list[*index - 1] : NULL;
	return found && strcmp(found->event, event) == 0 ? found : NULL;
}

void text_classes_add(struct text_classes *c, const struct text_line *l)
{
	const char *event = kernel_name(l);
	bool is_new;
	if (c->classes >= CLASSES_MAX || find_class(c, event))
		return;
	uint64_t *slot = map_put(&c->by_name, hash_text(HASH_BEGIN, event), &is_new);
	if (!is_new)
		return;  /* the hash of another name */
	struct text_class *cls = mem_new(1, sizeof *cls);
	struct text_fields f;
	text_line_fields(l, &f);
	memcpy(cls->event, event, strlen(event) + 1);
	for (size_t i = 0; i < f.len; i++) {
		if (f.field[i].name_len >= FIELD_NAME_MAX)
			continue;
		memcpy(cls->field[cls->fields].name, f.field[i].name, f.field[i].name_len);
		cls->field[cls->fields++].is_text = f.field[i].is_text;
	}
	*ARRAY_PUSH(c->list, c->classes, c->classes_cap) = cls;
	*slot = c->classes;
}

void text_classes_choose(struct text_classes *c)
{
	struct event_mapping *m = c->mapping;
	size_t best = 0, best_score = 0;
	unsigned best_enabled = 0;
	for (size_t i = 0; i < m->layouts; i++) {
		size_t score = 0;
		unsigned enabled = 0;
		for (size_t k = 0; k < c->classes; k++)
			score += rules_score(m->layout[i], c->list[k]->event, &text_source, c->list[k], &enabled);
		if (score <= best_score)
			continue;
		best = i;
		best_score = score;
		best_enabled = enabled;
	}
	for (size_t k = 0; k < c->classes; k++)
		c->list[k]->bound = rules_bind(m->layout[best], c->list[k]->event, &text_source, c->list[k]);
	atomic_store(&m->enabled_events, best_enabled);
	atomic_store(&m->chosen, best_score ? best + 1 : 0);
}

void text_classes_fill(struct text_classes *c, const struct text_line *l, struct event *ev)
{
	static const struct bound_class none;
	const struct text_class *cls = find_class(c, kernel_name(l));
	struct text_event e = { .line = l };
	struct text_fields f = { .len = 0 };
	if (cls)
		text_line_fields(l, &f);
	for (size_t k = 0, at = 0; cls && k < cls->fields; k++) {
		const size_t len = strlen(cls->field[k].name);
		for (size_t tried = 0; tried < f.len; tried++, at++) {  /* mostly the same order as in the first line */
			const struct text_field *field = &f.field[at % f.len];
			if (field->name_len == len && memcmp(field->name, cls->field[k].name, len) == 0) {
				e.slot[k] = field;
				at++;
				break;
			}
		}
	}
	rules_event(cls ? cls->bound : &none, &text_source, c->names, &e, (uint16_t)l->cpu, ev);
	ev->tid = l->tid;
	ev->pid = l->pid;
	if (l->comm_len)
		ev->comm = (uint32_t)string_cache_put(c->names, l->comm, l->comm_len);
}
