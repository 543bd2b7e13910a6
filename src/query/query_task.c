#include "query/query.h"

#include "base/mem.h"
#include "query/stepped_query.h"

struct query_task {
	struct query q;
	const struct task_kind *kind;
	void *state;
};

/* A task has no parts: each step of the query joins its zero parts. */
static int task_join(struct query *q, struct error *err)
{
	struct query_task *t = (struct query_task *)q;
	return t->kind->step(t->state, q->until, err);
}

static void task_close(struct query *q)
{
	struct query_task *t = (struct query_task *)q;
	t->kind->release(t->state);
}

struct query *query_task_open(const struct task_kind *kind, void *state)
{
	static const struct query_kind task = { .join = task_join, .close = task_close };
	struct query_task *t = mem_new(1, sizeof *t);
	query_init(&t->q, &task, NULL, 1, 0, 0);
	t->kind = kind;
	t->state = state;
	return &t->q;
}

void *query_task_state(struct query *q)
{
	return ((struct query_task *)q)->state;
}
