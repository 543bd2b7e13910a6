/* The execution flow: pieces of the resolver, gathered (paper, Eq. 3).
 *
 * Cost: linear in the intervals touched.  Memory: that of the gathered flow, which the caller owns in the end. */
#include "query/query_internal.h"

#include <stdlib.h>

#include "base/mem.h"
#include "query/flow_builder.h"
#include "query/stepped_query.h"

#define FLOW_NAME(code, name) name,
const char *const flow_kind_name[FLOW_KIND_COUNT] = { FLOW_KINDS(FLOW_NAME) };
#undef FLOW_NAME

/* Pieces on their way from a resolver. */
struct gathering {
	struct resolver *r;
	const struct subject *subject;
	struct gather g;
};

static int collect(struct gathering *c, const struct piece *p, int64_t start, int64_t end)
{
	bool lost;
	return resolve_lost(c->r, c->subject, start, &lost) < 0 ? -1 : gather_piece(&c->g, p, lost, start, end);
}

static int add_to_sums(void *arg, const struct piece *p, int64_t start, int64_t end)
{
	return collect(arg, p, start, end);
}

int flow_collect(struct resolver *r, const struct subject *s, int64_t from, int64_t to, struct flow *out)
{
	struct gathering c = { r, s, .g = { .flow = { 0 } } };
	gather_init(&c.g, from, to, &(struct flow_options){ 0 }, false, r->err);
	int status = resolve_walk(r, s, from, to, add_to_sums, &c);
	status = status == 0 ? gather_finish(&c.g) : -1;
	if (status == 0) {
		*out = c.g.flow;
		c.g.flow = (struct flow){ 0 };
	}
	gather_release(&c.g);
	return status;
}

void resolver_give_names(struct resolver *r, char ***name, size_t *names)
{
	*name = r->names.str;
	*names = r->names.len;
	r->names.str = NULL;
	r->names.len = r->names.cap = 0;
}

struct flow_inquiry {
	struct inquiry q;
	struct subject subject;
	struct flow_options options;
	struct flow_part {
		struct resolver r;
		struct gathering to;
		int64_t at;
		struct budget *budget;
	} part[PARTS_MAX];
	struct flow flow;  /* the answer */
};

static int add_piece(void *arg, const struct piece *p, int64_t start, int64_t end)
{
	struct flow_part *part = arg;
	if (collect(&part->to, p, start, end) < 0)
		return -1;
	part->at = end + 1;
	return budget_spent(part->budget);
}

static int walk(struct inquiry *q, size_t i, struct budget *budget, struct error *err)
{
	struct flow_inquiry *f = (struct flow_inquiry *)q;
	struct flow_part *part = &f->part[i];
	struct inquiry_part *window = &q->part[i];
	if (!part->r.topo) {
		resolver_init(&part->r, q->topo, window->from, window->to, err);
		part->r.no_idlers = f->options.no_idlers;
		part->to.r = &part->r;
		part->to.subject = &f->subject;
		gather_init(&part->to.g, q->from, q->to, &f->options, i > 0, err);
		part->at = window->from;
	}
	part->budget = budget;
	int status = resolve_walk(&part->r, &f->subject, part->at, window->to, add_piece, part);
	window->done = (double)(part->at - window->from) / ((double)(window->to - window->from) + 1);
	return status < 0 ? -1 : part->at > window->to;
}

/* The other parts behind the first, with its names. */
static int join_parts(struct flow_inquiry *f, struct gather *first)
{
	struct strtab *names = &f->part[0].r.names;
	int status = 0;
	for (size_t i = 1; i < f->q.parts && status == 0; i++) {
		struct flow_part *part = &f->part[i];
		uint32_t *id = mem_new(part->r.names.len, sizeof *id);
		for (size_t k = 0; k < part->r.names.len; k++)
			id[k] = strtab_put(names, part->r.names.str[k]);
		status = gather_part(first, &part->to.g, id);
		gather_release(&part->to.g);
		free(id);
	}
	return status;
}

static int join(struct inquiry *q, struct error *err)
{
	struct flow_inquiry *f = (struct flow_inquiry *)q;
	struct gather *g = &f->part[0].to.g;
	g->err = err;
	if (join_parts(f, g) || gather_finish(g))
		return -1;
	f->flow = g->flow;
	g->flow = (struct flow){ 0 };
	resolver_give_names(&f->part[0].r, &f->flow.name, &f->flow.names);
	return 1;
}

static void close_flow(struct inquiry *q)
{
	struct flow_inquiry *f = (struct flow_inquiry *)q;
	for (size_t i = 0; i < q->parts; i++) {
		if (f->part[i].r.topo)
			resolver_release(&f->part[i].r);
		gather_release(&f->part[i].to.g);
	}
	flow_release(&f->flow);
}

static const struct inquiry_kind flow_inquiry = { walk, join, close_flow };

/* First and last moment at which the attribute is not null: 1, 0 = never, -1 = error. */
int flow_life(const struct topo *topo, uint32_t attr, int64_t *start, int64_t *end, struct error *err)
{
	struct interval iv;
	if (attr == HISTORY_NONE)
		return 0;
	if (history_stab(topo->h, attr, history_first(topo->h), &iv, err) < 0)
		return -1;
	if (iv.value == HISTORY_NULL && iv.end >= history_last(topo->h))
		return 0;
	*start = iv.value == HISTORY_NULL ? iv.end + 1 : iv.start;
	if (history_stab(topo->h, attr, history_last(topo->h), &iv, err) < 0)
		return -1;
	*end = iv.value == HISTORY_NULL ? iv.start - 1 : iv.end;
	if (*start < history_begin(topo->h))
		*start = history_begin(topo->h);
	if (*end > history_end(topo->h))
		*end = history_end(topo->h);
	return *start <= *end;
}

int flow_cut(const struct topo *topo, const struct subject *s, int64_t *from, int64_t *to, struct error *err)
{
	char name[256];
	int64_t start = history_begin(topo->h), end = history_end(topo->h);
	int lives = s->kind == SUBJECT_THREAD ? flow_life(topo, topo->thread[s->index].status, &start, &end, err) : 1;
	if (lives < 0)
		return -1;
	if (!lives)
		return error_set(err, STATUS_INPUT, NULL, "%s: nothing is known of its states",
		                 topo_subject_text(topo, s, name, sizeof name));
	if (*from > end || *to < start || *from > *to)
		return error_set(err, STATUS_INPUT, "choose a window that meets its life", "%s: not alive in that window",
		                 topo_subject_text(topo, s, name, sizeof name));
	*from = *from > start ? *from : start;
	*to = *to < end ? *to : end;
	return 0;
}

struct inquiry *flow_open(const struct topo *topo, const struct subject *s, int64_t from, int64_t to,
                          const struct flow_options *options, struct error *err)
{
	if (flow_cut(topo, s, &from, &to, err) < 0)
		return NULL;
	struct flow_inquiry *f = mem_new(1, sizeof *f);
	inquiry_init(&f->q, &flow_inquiry, topo, from, to, 0);
	f->subject = *s;
	f->options = *options;
	return &f->q;
}

void flow_take(struct inquiry *q, struct flow *out)
{
	struct flow_inquiry *f = (struct flow_inquiry *)q;
	*out = f->flow;
	f->flow = (struct flow){ 0 };
}

int flow_of(const struct topo *topo, const struct subject *s, int64_t from, int64_t to,
            const struct flow_options *options, struct flow *out, struct error *err)
{
	*out = (struct flow){ 0 };
	const struct flow_options all = { .intervals = SIZE_MAX };
	struct inquiry *q = flow_open(topo, s, from, to, options ? options : &all, err);
	int status = q ? inquiry_run(q, NULL, err) : -1;
	if (status == 0)
		flow_take(q, out);
	inquiry_close(q);
	return status;
}
