/* Sharing out the streams.
 *
 * All streams, smallest first, are laid end to end and the row is cut into as many equal pieces as there are workers
 * (McNaughton's rule): only a stream that a cut hits is shared by two workers.  It is cut at the nearest
 * packet boundary at which nothing was lost, if its packets are known and both parts are worth a graph of their own. */
#include "trace/load.h"

#include <stdlib.h>

#include "base/mem.h"

#define SMALLEST_PART (1U << 20)  /* bytes; opening another graph costs about as much as decoding that */

struct row {
	size_t group, port;
	uint64_t bytes;
};

static int smaller_first(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	if (x->bytes != y->bytes)
		return x->bytes < y->bytes ? -1 : 1;
	if (x->group != y->group)
		return x->group < y->group ? -1 : 1;
	return x->port < y->port ? -1 : x->port > y->port;
}

/* The packet before which to cut so that about `bytes` of the file come before; 0: nowhere. */
static size_t cut_at(const struct stream_file *f, size_t from, uint64_t bytes)
{
	size_t best = 0;
	uint64_t best_off = UINT64_MAX;
	for (size_t i = from + 1; i < f->packets; i++) {
		const uint64_t at = f->packet[i].offset, off = at > bytes ? at - bytes : bytes - at;
		if (off < best_off && packets_may_cut(f, i) && at >= f->packet[from].offset + SMALLEST_PART &&
		    f->bytes >= at + SMALLEST_PART) {
			best = i;
			best_off = off;
		}
	}
	return best;
}

struct tasks {
	struct task *task;
	size_t len, cap;
};

static void add(struct tasks *t, const struct row *r, size_t first, size_t end, bool whole, uint64_t bytes)
{
	*ARRAY_PUSH(t->task, t->len, t->cap) = (struct task){ .group = r->group, .port = r->port, .first = first,
		.end = end, .whole = whole, .bytes = bytes };
}

/* Cuts one stream, which lies at [at, at + r->bytes) of the row, wherever a worker's share ends. */
static void cut_stream(struct tasks *t, const struct row *r, struct port *p, uint64_t at, uint64_t share)
{
	const struct stream_file *f = p->file;
	size_t first = 0;
	p->first_task = t->len;
	if (f && share) {
		for (uint64_t end = (at / share + 1) * share; end < at + r->bytes; end += share) {
			size_t i = cut_at(f, first, end - at);
			if (!i)
				continue;
			add(t, r, first, i, first == 0, f->packet[i].offset - f->packet[first].offset);
			first = i;
		}
	}
	add(t, r, first, f ? f->packets : 0, first == 0, f ? f->bytes - f->packet[first].offset : r->bytes);
	p->tasks = t->len - p->first_task;
}

static int larger_first(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	if (x->bytes != y->bytes)
		return x->bytes > y->bytes ? -1 : 1;
	return x->port < y->port ? -1 : x->port > y->port;
}

static size_t *largest_first(const struct tasks *t)
{
	struct row *by = mem_new(t->len + 1, sizeof *by);
	size_t *order = mem_new(t->len + 1, sizeof *order);
	for (size_t i = 0; i < t->len; i++)
		by[i] = (struct row){ .port = i, .bytes = t->task[i].bytes };
	qsort(by, t->len, sizeof *by, larger_first);
	for (size_t i = 0; i < t->len; i++)
		order[i] = by[i].port;
	free(by);
	return order;
}

void plan_tasks(struct group *group, size_t groups, unsigned workers, struct task **task, size_t *tasks, size_t **order)
{
	struct row *row = NULL;
	size_t n = 0, cap = 0;
	uint64_t total = 0, at = 0;
	for (size_t g = 0; g < groups; g++) {
		for (size_t p = 0; p < group[g].ports; p++) {
			*ARRAY_PUSH(row, n, cap) = (struct row){ g, p, group[g].port[p].bytes };
			total += group[g].port[p].bytes;
		}
	}
	if (n)
		qsort(row, n, sizeof *row, smaller_first);
	const uint64_t share = workers > 1 ? total / workers + 1 : 0;
	struct tasks t = { 0 };
	for (size_t i = 0; i < n; at += row[i++].bytes)
		cut_stream(&t, &row[i], &group[row[i].group].port[row[i].port], at, share);
	free(row);
	*order = largest_first(&t);
	*task = t.task;
	*tasks = t.len;
}
