/* Streams all gaps with their culprits.
 *
 * Cost: the same as the steal matrix by thread. Memory: that of the resolver. */
#include "base/base.h"
#include "query/query_internal.h"

struct gap_streamer {
	const struct catalog *catalog;
	struct resolver r;
	int (*fn)(void *arg, const struct gap_interval *p);
	void *arg;
	struct gap_interval interval;   /* current interval, not passed to fn yet */
	struct resolution last;        /* its resolution */
	bool open;
};

static int streamer_flush(struct gap_streamer *e)
{
	if (!e->open)
		return 0;
	e->open = false;
	e->interval.actor = e->last.actor;
	e->interval.name = strtab_get(&e->r.names, e->last.actor.name);
	e->interval.pcpu = e->last.pcpu;
	return e->fn(e->arg, &e->interval);
}

/* Passes the current interval to fn, or extends it if the next interval is adjacent and has the same actor. */
static int streamer_add(void *arg, const struct resolution *p, int64_t start, int64_t end)
{
	struct gap_streamer *e = arg;
	int stop = 0;
	if (!e->open || !resolution_same(&e->last, p)) {
		stop = streamer_flush(e);
		e->last = *p;
		e->interval.start = start;
		e->open = true;
	}
	e->interval.end = end;
	return stop;
}

static int stream_row(struct gap_streamer *e, const struct gap_row *row, int64_t from, int64_t to, struct error *err)
{
	struct gap_walk walk;
	struct gap gap = { .target = row->target };
	int r = gap_walk_start(&walk, e->catalog, &row->target, from, to, err);
	if (r <= 0)
		return r;
	bool thread = row->target.kind == TARGET_THREAD;
	e->interval = (struct gap_interval){ .gap = &gap,
		.victim = thread ? catalog_longest_name(e->catalog, row->target.index) : NULL,
		.of_machine = !thread || e->catalog->machine[row->victim].kind != MACHINE_VM };
	while ((r = gap_walk_next(&walk, &gap, err)) > 0) {
		r = resolve_walk(&e->r, &row->target, gap.start, gap.end, streamer_add, e);
		if (r == 0)
			r = streamer_flush(e);
		if (r)
			return r;
	}
	return r;
}

static int cancelled(const struct progress *progress, uint64_t done, uint64_t total, struct error *err)
{
	const bool stop = progress && progress->tick && progress->tick(progress->arg, "gaps", done, total);
	return stop ? error_set(err, STATUS_CANCELLED, NULL, "cancelled") : 0;
}

/* Streams the gaps of the rows of a target; NULL: of all machines, then of guest threads, which gap_each_row() omits. */
static int stream_target(const struct catalog *catalog, const struct target *target, int64_t from, int64_t to,
                         int (*fn)(void *arg, const struct gap_interval *p), void *arg, const struct progress *progress,
                         struct error *err)
{
	struct gap_streamer e = { .catalog = catalog, .fn = fn, .arg = arg };
	struct gap_rows rows;
	int r = 0;
	gap_rows_list(&rows, catalog, target);
	resolver_init(&e.r, catalog, from, to, err);
	for (uint32_t i = 0; i < catalog->threads && !target; i++)
		if (catalog->machine[catalog->thread[i].machine].kind == MACHINE_VM && gap_is_own_thread(catalog, i))
			*ARRAY_PUSH(rows.row, rows.len, rows.cap) =
				(struct gap_row){ { TARGET_THREAD, i }, catalog->thread[i].machine };
	for (size_t i = 0; i < rows.len && r == 0; i++) {
		r = cancelled(progress, i, rows.len, err);
		if (r == 0)
			r = stream_row(&e, &rows.row[i], from, to, err);
	}
	if (r == 0)
		r = fn(arg, NULL);
	resolver_release(&e.r);
	gap_rows_release(&rows);
	return r;
}

int gap_each_interval(const struct catalog *catalog, int64_t from, int64_t to,
                      int (*fn)(void *arg, const struct gap_interval *p),
                      void *arg, const struct progress *progress, struct error *err)
{
	return stream_target(catalog, NULL, from, to, fn, arg, progress, err);
}

int gap_each_interval_of(const struct catalog *catalog, const struct target *target, int64_t from, int64_t to,
                         int (*fn)(void *arg, const struct gap_interval *p), void *arg, struct error *err)
{
	return stream_target(catalog, target, from, to, fn, arg, NULL, err);
}
