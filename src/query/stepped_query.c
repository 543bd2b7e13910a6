#include "query/stepped_query.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/int128.h"
#include "base/clock.h"
#include "base/number.h"
#include "base/parallel.h"

#define INTERVALS_WORTH_A_PART (1 << 18)
#define STEP_NS 100000000    /* length of a step of query_run(), ns; cancellation is checked between steps */
#define DONE_UNITS 1000

bool budget_over(const struct budget *b)
{
	return now_ns() >= b->until;
}

/* Returns the part count; 1 if the whole query takes a few ms. */
static size_t parts_for_window(const struct history *h, int64_t from, int64_t to)
{
	int128 span = (int128)history_end(h) - history_begin(h) + 1, window = (int128)to - from + 1;
	int128 parts = (int128)history_intervals(h) * window / span / INTERVALS_WORTH_A_PART;
	const unsigned workers = parallel_workers(0);
	if (parts > workers)
		parts = workers;
	if (parts > PARTS_MAX)
		parts = PARTS_MAX;
	return parts < 1 || window < 2 * PARTS_MAX ? 1 : (size_t)parts;
}

size_t query_parts(const struct query *q)
{
	return q->from > q->to ? 0 : parts_for_window(q->catalog->h, q->from, q->to);
}

void part_bounds(int64_t from, int64_t to, size_t i, size_t n, int64_t *start, int64_t *end)
{
	int128 window = (int128)to - from + 1;
	*start = from + (int64_t)(window * (int64_t)i / (int64_t)n);
	*end = from + (int64_t)(window * (int64_t)(i + 1) / (int64_t)n) - 1;
}

void query_restart(struct query *q)
{
	for (size_t i = 0; i < q->parts; i++) {
		q->part[i] = (struct query_part){ .err = ERROR_INIT };
		part_bounds(q->from, q->to, i, q->parts, &q->part[i].from, &q->part[i].to);
	}
}

void query_init(struct query *q, const struct query_kind *kind, const struct catalog *catalog, int64_t from, int64_t to,
                size_t parts)
{
	from = catalog ? max64(from, history_begin(catalog->h)) : from;
	to = catalog ? min64(to, history_end(catalog->h)) : to;
	*q = (struct query){ .kind = kind, .catalog = catalog, .from = from, .to = to };
	if (from <= to)
		q->parts = parts ? parts : parts_for_window(catalog->h, from, to);
	query_restart(q);
}

static int step_part(void *arg, size_t i)
{
	struct query *q = arg;
	struct budget budget = { .until = q->until };
	struct query_part *p = &q->part[i];
	int done = p->at_end ? 1 : q->kind->walk(q, i, &budget, &p->err);
	p->at_end = done > 0;
	return done < 0 ? -1 : 0;
}

int query_step(struct query *q, int64_t ns, struct error *err)
{
	const int64_t now = now_ns();
	return query_step_until(q, ns > INT64_MAX - now ? INT64_MAX : now + ns, err);
}

/* Runs all parts up to the end of the step. */
static int run_parts(struct query *q, struct error *err)
{
	int status = parallel_run(&(struct parallel){ .workers = (unsigned)q->parts, .task = step_part, .arg = q }, q->parts);
	for (size_t i = 0; i < q->parts; i++) {
		if (q->part[i].err.text[0]) {
			if (err)
				*err = q->part[i].err;
			return -1;
		}
		if (status == 0 && !q->part[i].at_end)
			return 0;
	}
	status = status < 0 ? -1 : q->kind->join(q, err);
	q->answered = status > 0;
	return status;
}

int query_step_until(struct query *q, int64_t until, struct error *err)
{
	int status = q->answered;
	q->until = until;
	do
		status = status ? status : run_parts(q, err);
	while (status == 0 && now_ns() < until);
	return status;
}

double query_done(const struct query *q)
{
	double sum = 0;
	for (size_t i = 0; i < q->parts; i++)
		sum += q->part[i].at_end ? 1 : q->part[i].done;
	return q->answered ? 1 : q->parts ? sum / (double)q->parts : 0;
}

int query_run(struct query *q, const struct progress *progress, struct error *err)
{
	int done;
	while ((done = query_step(q, progress ? STEP_NS : INT64_MAX, err)) == 0)
		if (progress && progress->tick(progress->arg, "reading", (uint64_t)(DONE_UNITS * query_done(q)), DONE_UNITS))
			return error_set(err, STATUS_CANCELLED, NULL, "cancelled");
	return done < 0 ? -1 : 0;
}

void query_take_bytes(struct query *q, void *answer, size_t bytes)
{
	assert(bytes == q->kind->answer_bytes);
	memcpy(answer, (char *)q + q->kind->answer, bytes);
	memset((char *)q + q->kind->answer, 0, bytes);
}

int query_answer_bytes(struct query *q, const struct progress *progress, void *answer, size_t bytes, struct error *err)
{
	const int rc = q ? query_run(q, progress, err) : -1;
	memset(answer, 0, bytes);
	if (rc == 0)
		query_take_bytes(q, answer, bytes);
	query_close(q);
	return rc;
}

void query_close(struct query *q)
{
	if (!q)
		return;
	q->kind->close(q);
	free(q);
}
