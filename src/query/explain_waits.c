/* Sentences on the wakers that ended a target's sleeps; for a vCPU the kinds of its waits, and the main waker of each
 * kind. */
#include "base/base.h"
#include "query/explain.h"

#define WAKER_SHARE 0.001    /* minimum share of the window for a further waker */
#define WAKERS_MAX 3
#define SHARE_MIN 0.0005     /* minimum share of its sleep: does not round to 0 */

/* Writes a waker: a thread, or a handler (without the thread that it interrupted). */
static const char *waker_text(const struct explanation *s, const struct wait_list *l, const struct wait_row *row,
                              char buf[NAME_TEXT])
{
	struct actor by = row->by;
	by.kind = by.tid < 0 ? FLOW_IRQ : FLOW_PREEMPTING;
	if (by.machine < 0)
		return "an unknown waker";
	if (by.tid == 0)
		return "an interrupt";
	return actor_text(s->catalog, &by, by.name < l->names ? l->name[by.name] : NULL,
	                  ACTOR_SENTENCE, &s->target, buf, NAME_TEXT);
}

static void write_wakers(struct explanation *s, const struct wait_list *l)
{
	char actor[NAME_TEXT], a[64];
	for (size_t i = 0; i < l->rows && i < WAKERS_MAX; i++) {
		if (i > 0 && explanation_share(s, l->row[i].total) < WAKER_SHARE)
			break;
		fprintf(s->to, "%s%s: %s, %" PRIu64 " time%s", i ? "; " : "Longest sleeps were ended by ",
		        waker_text(s, l, &l->row[i], actor), explanation_amount(s, l->row[i].total, a), l->row[i].count,
		        l->row[i].count == 1 ? "" : "s");
	}
	if (l->rows)
		fputs(".\n", s->to);
}

struct wait_reason {
	enum wait_kind kind;
	int64_t total;               /* ns */
	uint64_t count;
	const struct wait_row *main_waker;
};

ORDER_BY(compare_by_total, struct wait_reason, FALLING(total) RISING(kind))

/* Rows are sorted, longest first, so the first row of a kind is the largest. */
static int64_t sum_by_kind(const struct wait_list *l, struct wait_reason reason[WAIT_KIND_COUNT])
{
	int64_t all = 0;
	for (size_t i = 0; i < l->rows; i++) {
		const struct wait_row *row = &l->row[i];
		struct wait_reason *r = &reason[row->kind];
		r->total += row->total;
		r->count += row->count;
		r->main_waker = r->main_waker ? r->main_waker : row;
		all += row->total;
	}
	for (int k = 0; k < WAIT_KIND_COUNT; k++)
		reason[k].kind = (enum wait_kind)k;
	qsort(reason, WAIT_KIND_COUNT, sizeof *reason, compare_by_total);
	return all;
}

/* Writes "On its host it slept for 9.46 s: 69.6 % for a timer; 5.7 % for a device, woken by host/163 IO io0; ..." */
static void write_wait_kinds(struct explanation *s, const struct wait_list *l)
{
	static const char *const phrase[] = { [WAIT_TIMER] = "for a timer", [WAIT_IPI] = "for another of its vCPUs",
		[WAIT_NET] = "for the network", [WAIT_DEVICE] = "for a device", [WAIT_TASK] = "for another thread of the host",
		[WAIT_STOPPED] = "while the VM was stopped", [WAIT_UNKNOWN] = "for an unknown reason" };
	struct wait_reason reason[WAIT_KIND_COUNT] = { { .total = 0 } };
	char actor[NAME_TEXT], d[TIME_TEXT];
	const int64_t all = sum_by_kind(l, reason);
	if (all == 0)
		return;
	fprintf(s->to, "On its host it slept for %s:", time_duration(d, all));
	for (int i = 0; i < WAIT_KIND_COUNT && (double)reason[i].total >= SHARE_MIN * (double)all; i++) {
		const struct wait_reason *r = &reason[i];
		fprintf(s->to, "%s %.1f %% %s", i ? ";" : "", 100 * (double)r->total / (double)all, phrase[r->kind]);
		if (r->kind != WAIT_TIMER && r->kind != WAIT_UNKNOWN)
			fprintf(s->to, ", %swoken by %s", r->main_waker->total == r->total ? "" : "mostly ",
			        waker_text(s, l, r->main_waker, actor));
		fprintf(s->to, " (%" PRIu64 " time%s)", r->count, r->count == 1 ? "" : "s");
	}
	fputs(".\n", s->to);
}

int explain_waits(struct explanation *s, struct error *err)
{
	struct wait_list l;
	if (explanation_share(s, s->demand.slept) < EXPLAINED_SLEEP)
		return 0;
	if (query_answer(waits_open(s->catalog, &s->target, s->f->start, s->f->end), &l, err) < 0)
		return -1;
	if (s->target.kind == TARGET_CPU)
		write_wait_kinds(s, &l);
	else
		write_wakers(s, &l);
	waits_release(&l);
	explain_path(s);
	return 0;
}

int explain_locks(struct explanation *s, struct error *err)
{
	const struct catalog *catalog = s->catalog;
	const uint32_t lock = s->target.kind == TARGET_THREAD ? catalog->thread[s->target.index].lock : HISTORY_NONE;
	const int64_t from = s->f->start, to = s->f->end;
	struct history_cursor cursor;
	struct interval iv;
	int rc = lock == HISTORY_NONE ? 0 : history_range(&cursor, catalog->h, lock, from, to, err);
	while (lock != HISTORY_NONE && rc == 0 && (rc = history_range_next(&cursor, &iv, err)) > 0) {
		rc = 0;
		if (iv.value == HISTORY_NULL)
			continue;
		s->locked += (iv.end < to ? iv.end : to) - (iv.start > from ? iv.start : from) + 1;
		s->locks++;
	}
	return rc;
}
