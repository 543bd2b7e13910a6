#include "trace/tracecmd/tracecmd_binding.h"

#include "base/base.h"
#include "trace/layout/bound_rules.h"

#define EVENT_IDS 65536        /* event ids have 16 bits */
#define COMMON_FIELDS_SIZE 8       /* size of the fields that all events have in common, bytes */

struct tep_binder {
	struct tep_handle *tep;
	const struct layout *layout;
	struct string_cache *names;
	struct bound_class **by_id;  /* bound class of each event id; NULL: not bound yet */
	const struct tep_counters *counters;  /* of the current event; NULL: none are recorded */
};

/* Record from which read_number() and read_text() read field values. */
struct record_view {
	struct tep_binder *binder;
	const struct tep_record *rec;
};

/* ---- binding */

static bool fits_number(const struct tep_format_field *f)
{
	return !(f->flags & (TEP_FIELD_IS_ARRAY | TEP_FIELD_IS_DYNAMIC)) &&
	       (f->size == 1 || f->size == 2 || f->size == 4 || f->size == 8);
}

/* Event class, as rules_bind() passes it to resolve_field(). */
struct tep_class { const struct tep_event *event; bool has_counters; };

/* Finds a counter that is not a field of the record. Its path has the size 0. */
static bool resolve_counter(const struct tep_class *class, const char *name, struct field_path *p)
{
	static const char *const names[] = { "perf_cpu_instructions", "perf_cpu_cycles" };
	for (unsigned i = 0; class->has_counters && i < sizeof names / sizeof *names; i++)
		if (strcmp(name, names[i]) == 0)
			*p = (struct field_path){ .leaf = LEAF_SIGNED, .offset = i };
	return p->leaf != LEAF_NONE;
}

static bool resolve_field(const struct fields *f, const void *cls, struct field_path *p)
{
	const struct tep_class *class = cls;
	*p = (struct field_path){ .leaf = LEAF_NONE };
	for (size_t i = 0; class->event && i < f->len && p->leaf == LEAF_NONE; i++) {
		if (f->f[i].scope == SCOPE_PACKET || resolve_counter(class, f->f[i].path, p))
			continue;
		const struct tep_format_field *field =
			tep_find_any_field((struct tep_event *)(uintptr_t)class->event, f->f[i].path);
		if (!field || field->offset < 0 || field->size < 0)
			continue;
		p->offset = (unsigned)field->offset;
		p->size = (unsigned)field->size;
		p->dynamic = field->flags & TEP_FIELD_IS_DYNAMIC;
		p->relative = field->flags & TEP_FIELD_IS_RELATIVE;
		if (fits_number(field))
			p->leaf = field->flags & TEP_FIELD_IS_SIGNED ? LEAF_SIGNED : LEAF_UNSIGNED;
		else if (field->flags & TEP_FIELD_IS_STRING)
			p->leaf = LEAF_TEXT;
	}
	return p->leaf != LEAF_NONE;
}

/* ---- reading: offsets and sizes in a record are checked */

static bool is_inside(const struct tep_record *rec, uint64_t offset, uint64_t size)
{
	return offset <= (uint64_t)rec->size && size <= (uint64_t)rec->size - offset;
}

static uint64_t read_unsigned(const struct record_view *v, unsigned offset, unsigned size)
{
	return tep_read_number(v->binder->tep, (const char *)v->rec->data + offset, (int)size);
}

static int64_t read_number(const struct field_path *p, const void *event)
{
	const struct record_view *v = event;
	if (p->leaf == LEAF_SIGNED && !p->size)
		return p->offset ? v->binder->counters->cycles : v->binder->counters->instructions;
	if (p->leaf == LEAF_NONE || p->leaf == LEAF_TEXT || !is_inside(v->rec, p->offset, p->size))
		return EVENT_ABSENT;
	uint64_t x = read_unsigned(v, p->offset, p->size);
	if (p->leaf == LEAF_SIGNED && p->size < 8) {
		const uint64_t sign = 1ULL << (8 * p->size - 1);
		x = ((x & (2 * sign - 1)) ^ sign) - sign;
	}
	return (int64_t)x;
}

static const char *read_text(const struct field_path *p, const void *event, size_t *max_len)
{
	const struct record_view *v = event;
	uint64_t offset = p->offset, size = p->size;
	if (p->leaf != LEAF_TEXT)
		return NULL;
	if (p->dynamic) {
		if (!is_inside(v->rec, p->offset, 4))
			return NULL;
		const uint64_t location = read_unsigned(v, p->offset, 4);
		offset = (location & 0xffff) + (p->relative ? p->offset + 4U : 0);
		size = location >> 16;
	} else if (!size && offset <= (uint64_t)v->rec->size) {
		size = (uint64_t)v->rec->size - offset;  /* char buf[]: the rest of the record */
	}
	if (!is_inside(v->rec, offset, size))
		return NULL;
	*max_len = (size_t)size;
	return (const char *)v->rec->data + offset;
}

static const struct field_source ftrace_fields = { resolve_field, read_number, read_text };

static const struct bound_class *bind_class(struct tep_binder *b, struct tep_record *rec)
{
	const unsigned id = (unsigned)tep_data_type(b->tep, rec) & (EVENT_IDS - 1);
	if (!b->by_id[id]) {
		const struct tep_class class = { tep_find_event(b->tep, (int)id), b->counters != NULL };
		b->by_id[id] = rules_bind(b->layout, class.event ? class.event->name : NULL, &ftrace_fields, &class);
	}
	return b->by_id[id];
}

bool tep_binder_event(struct tep_binder *b, struct tep_record *rec, struct event *ev)
{
	if (!rec->data || rec->size < COMMON_FIELDS_SIZE)
		return false;
	const struct record_view v = { b, rec };
	const struct bound_class *c = bind_class(b, rec);
	int64_t n = read_number(&c->tid, &v);
	ev->cpu = (uint16_t)rec->cpu;
	ev->tid = n == EVENT_ABSENT ? -1 : (int32_t)n;
	n = read_number(&c->pid, &v);
	ev->pid = n == EVENT_ABSENT ? -1 : (int32_t)n;
	ev->comm = rules_comm(c, &ftrace_fields, b->names, &v);
	rules_fill(c, &ftrace_fields, b->names, &v, ev);
	return true;
}

bool tep_binder_counters(struct tep_binder *b, struct tep_record *rec, const struct event *ev, struct event *counters)
{
	const struct record_view v = { b, rec };
	return rules_counters(bind_class(b, rec), &ftrace_fields, &v, ev, counters);
}

struct tep_binder *tep_binder_new(struct tep_handle *tep, const struct layout *layout, struct string_cache *names)
{
	struct tep_binder *b = mem_new(1, sizeof *b);
	b->tep = tep;
	b->layout = layout;
	b->names = names;
	b->by_id = mem_new(EVENT_IDS, sizeof *b->by_id);
	return b;
}

void tep_binder_set_counters(struct tep_binder *b, const struct tep_counters *counters)
{
	b->counters = counters;
}

size_t tep_binder_score(struct tep_handle *tep, const struct layout *layout, unsigned *enabled_events)
{
	size_t score = 0;
	*enabled_events = 0;
	struct tep_event **event = tep_list_events(tep, TEP_EVENT_SORT_ID);
	for (; event && *event; event++) {
		const struct tep_class class = { *event, false };
		score += rules_score(layout, (*event)->name, &ftrace_fields, &class, enabled_events);
	}
	return score;
}
