/* The sentence or paragraph on one moment, as a query: the flow of a long gap takes several steps. */
#include "base/base.h"
#include "query/explain.h"

#include "query/stepped_query.h"

struct explain_query {
	struct query q;
	struct target target;
	int64_t t;
	bool is_sentence;
	struct gap moment;
	struct query *flow;   /* of the gap or interval; NULL: not yet needed */
	struct query *findings;  /* on the target in it */
	struct flow f;        /* valid if has_flow */
	bool has_flow;
	char *text;
};

/* Finds the moment. Returns 1 if the text needs no flow, 0 if its flow was opened, -1 on error. */
static int find_moment(struct explain_query *e, struct error *err)
{
	const struct flow_options sums = { 0 };
	if (e->is_sentence && e->target.kind == TARGET_MACHINE)
		return status_of_machine(e->q.catalog, &e->target, &e->text, err) < 0 ? -1 : 1;
	const int in_gap = explain_moment(e->q.catalog, &e->target, e->t, &e->moment, err);
	if (in_gap == 0 && e->is_sentence)
		return status_of_interval(e->q.catalog, &e->moment, e->t, &e->text, err) < 0 ? -1 : 1;
	if (in_gap >= 0)
		e->flow = flow_open(e->q.catalog, &e->target, e->moment.start, e->moment.end, &sums, err);
	return e->flow ? 0 : -1;
}

static int explain_join(struct query *q, struct error *err)
{
	struct explain_query *e = (struct explain_query *)q;
	struct findings l;
	int done = e->flow ? 0 : find_moment(e, err);
	if (done != 0)
		return done;
	if (!e->has_flow && (done = query_step_until(e->flow, q->until, err)) <= 0)
		return done;
	if (!e->has_flow)
		query_take(e->flow, &e->f);
	e->has_flow = true;
	if (e->is_sentence) {
		status_of_gap(q->catalog, &e->moment, &e->f, &e->text);
		return 1;
	}
	if (!e->findings)
		e->findings = findings_open(q->catalog, &e->target, e->f.start, e->f.end);
	done = query_step_until(e->findings, q->until, err);
	if (done <= 0)
		return done;
	query_take(e->findings, &l);
	if (explain_moment_text(q->catalog, &e->moment, &e->f, &l, &e->text, err) < 0)
		done = -1;
	findings_release(&l);
	return done;
}

static void explain_close(struct query *q)
{
	struct explain_query *e = (struct explain_query *)q;
	query_close(e->flow);
	query_close(e->findings);
	if (e->has_flow)
		flow_release(&e->f);
	free(e->text);
}

static struct query *open_moment(const struct catalog *catalog, const struct target *target, int64_t t, bool is_sentence)
{
	static const struct query_kind kind = { NULL, explain_join, explain_close, ANSWER(struct explain_query, text) };
	struct explain_query *e = mem_new(1, sizeof *e);
	query_init(&e->q, &kind, catalog, 1, 0, 0);
	e->target = *target;
	e->t = t;
	e->is_sentence = is_sentence;
	return &e->q;
}

struct query *explain_open(const struct catalog *catalog, const struct target *target, int64_t t, struct error *err)
{
	return explain_check_target(catalog, target, err) < 0 ? NULL : open_moment(catalog, target, t, false);
}

struct query *status_open(const struct catalog *catalog, const struct target *target, int64_t t)
{
	return open_moment(catalog, target, t, true);
}
