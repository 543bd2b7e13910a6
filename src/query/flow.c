/* The execution flow: resolutions of consecutive intervals, collected into a flow (paper, Eq. 3).
 *
 * Cost: linear in the intervals read. Memory: the flow; the caller owns it at the end. */
#include "query/query_internal.h"

#include <stdlib.h>

#include "base/mem.h"
#include "query/flow_builder.h"
#include "query/stepped_query.h"

#define FLOW_NAME(code, name) name,
const char *const flow_kind_name[FLOW_KIND_COUNT] = { FLOW_KINDS(FLOW_NAME) };
#undef FLOW_NAME

/* Adds a resolution to a flow builder; callback of resolve_walk(). */
struct flow_collector {
	struct resolver *r;
	const struct target *target;
	struct flow_builder g;
};

static int collector_add(struct flow_collector *c, const struct resolution *p, int64_t start, int64_t end)
{
	bool lost;
	return resolve_lost(c->r, c->target, start, &lost) < 0 ? -1 : flow_builder_add(&c->g, p, lost, start, end);
}

static int collector_add_all(void *arg, const struct resolution *p, int64_t start, int64_t end)
{
	return collector_add(arg, p, start, end);
}

int flow_collect(struct resolver *r, const struct target *target, int64_t from, int64_t to, struct flow *out)
{
	struct flow_collector c = { r, target, .g = { .flow = { 0 } } };
	flow_builder_init(&c.g, from, to, &(struct flow_options){ 0 }, false, r->err);
	int status = resolve_walk(r, target, from, to, collector_add_all, &c);
	status = status == 0 ? flow_builder_finish(&c.g) : -1;
	if (status == 0) {
		*out = c.g.flow;
		c.g.flow = (struct flow){ 0 };
	}
	flow_builder_release(&c.g);
	return status;
}

void names_move(struct strtab *from, char ***name, size_t *names)
{
	*name = from->str;
	*names = from->len;
	from->str = NULL;
	from->len = from->cap = 0;
}

void names_copy(const struct strtab *from, char ***name, size_t *names)
{
	*name = mem_new(from->len, sizeof **name);
	*names = from->len;
	for (size_t i = 0; i < from->len; i++)
		(*name)[i] = mem_dup(from->str[i]);
}

void names_free(char **name, size_t names)
{
	for (size_t i = 0; i < names; i++)
		free(name[i]);
	free(name);
}

struct flow_query {
	struct query q;
	struct target target;
	struct flow_options options;
	struct flow_part {
		struct resolver r;
		struct flow_collector to;
		int64_t next;
		struct budget *budget;
	} part[PARTS_MAX];
	struct flow flow;  /* the answer */
};

static int part_add(void *arg, const struct resolution *p, int64_t start, int64_t end)
{
	struct flow_part *part = arg;
	if (collector_add(&part->to, p, start, end) < 0)
		return -1;
	part->next = end + 1;
	return budget_spent(part->budget);
}

static int flow_walk(struct query *q, size_t i, struct budget *budget, struct error *err)
{
	struct flow_query *f = (struct flow_query *)q;
	struct flow_part *part = &f->part[i];
	struct query_part *window = &q->part[i];
	if (!part->r.catalog) {
		resolver_init(&part->r, q->catalog, window->from, window->to, err);
		part->r.no_idle_task = f->options.no_idle_task;
		part->to.r = &part->r;
		part->to.target = &f->target;
		flow_builder_init(&part->to.g, q->from, q->to, &f->options, i > 0, err);
		part->next = window->from;
	}
	part->budget = budget;
	int status = resolve_walk(&part->r, &f->target, part->next, window->to, part_add, part);
	window->done = (double)(part->next - window->from) / ((double)(window->to - window->from) + 1);
	return status < 0 ? -1 : part->next > window->to;
}

/* Appends the other parts and their names to the first part. */
static int flow_join_parts(struct flow_query *f, struct flow_builder *first)
{
	struct strtab *names = &f->part[0].r.names;
	int status = 0;
	for (size_t i = 1; i < f->q.parts && status == 0; i++) {
		struct flow_part *part = &f->part[i];
		uint32_t *id = mem_new(part->r.names.len, sizeof *id);
		for (size_t k = 0; k < part->r.names.len; k++)
			id[k] = strtab_put(names, part->r.names.str[k]);
		status = flow_builder_append(first, &part->to.g, id);
		flow_builder_release(&part->to.g);
		free(id);
	}
	return status;
}

static int flow_join(struct query *q, struct error *err)
{
	struct flow_query *f = (struct flow_query *)q;
	struct flow_builder *g = &f->part[0].to.g;
	g->err = err;
	if (flow_join_parts(f, g) || flow_builder_finish(g))
		return -1;
	f->flow = g->flow;
	g->flow = (struct flow){ 0 };
	names_move(&f->part[0].r.names, &f->flow.name, &f->flow.names);
	return 1;
}

static void flow_close(struct query *q)
{
	struct flow_query *f = (struct flow_query *)q;
	for (size_t i = 0; i < q->parts; i++) {
		if (f->part[i].r.catalog)
			resolver_release(&f->part[i].r);
		flow_builder_release(&f->part[i].to.g);
	}
	flow_release(&f->flow);
}

static const struct query_kind flow_query = { flow_walk, flow_join, flow_close, ANSWER(struct flow_query, flow) };

int attribute_lifetime(const struct catalog *catalog, uint32_t attr, int64_t *start, int64_t *end, struct error *err)
{
	struct interval iv;
	if (attr == HISTORY_NONE)
		return 0;
	if (history_stab(catalog->h, attr, history_first(catalog->h), &iv, err) < 0)
		return -1;
	if (iv.value == HISTORY_NULL && iv.end >= history_last(catalog->h))
		return 0;
	*start = iv.value == HISTORY_NULL ? iv.end + 1 : iv.start;
	if (history_stab(catalog->h, attr, history_last(catalog->h), &iv, err) < 0)
		return -1;
	*end = iv.value == HISTORY_NULL ? iv.start - 1 : iv.end;
	if (*start < history_begin(catalog->h))
		*start = history_begin(catalog->h);
	if (*end > history_end(catalog->h))
		*end = history_end(catalog->h);
	return *start <= *end;
}

int window_cut_to_target(const struct catalog *catalog, const struct target *target, int64_t *from, int64_t *to,
                         struct error *err)
{
	char name[256];
	int64_t start = history_begin(catalog->h), end = history_end(catalog->h);
	int found = target->kind == TARGET_THREAD
	            ? attribute_lifetime(catalog, catalog->thread[target->index].status, &start, &end, err) : 1;
	if (found < 0)
		return -1;
	if (!found)
		return error_set(err, STATUS_INPUT, NULL, "%s: no states were recorded",
		                 catalog_target_text(catalog, target, name, sizeof name));
	if (*from > end || *to < start || *from > *to)
		return error_set(err, STATUS_INPUT, "choose a window within its lifetime", "%s: not alive in that window",
		                 catalog_target_text(catalog, target, name, sizeof name));
	*from = *from > start ? *from : start;
	*to = *to < end ? *to : end;
	return 0;
}

struct query *flow_open(const struct catalog *catalog, const struct target *target, int64_t from, int64_t to,
                        const struct flow_options *options, struct error *err)
{
	if (window_cut_to_target(catalog, target, &from, &to, err) < 0)
		return NULL;
	struct flow_query *f = mem_new(1, sizeof *f);
	query_init(&f->q, &flow_query, catalog, from, to, 0);
	f->target = *target;
	f->options = options ? *options : (struct flow_options){ .intervals = SIZE_MAX };
	return &f->q;
}
