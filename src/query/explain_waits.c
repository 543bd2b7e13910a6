/* Who ended its sleeps; of a vCPU by what it waited for, whose longest kinds have who woke it most. */
#include <inttypes.h>
#include <stdlib.h>

#include "base/timefmt.h"
#include "query/explain.h"

#define NOTABLE 0.01     /* share of the window that is worth a sentence */
#define WAKERS_TOLD 3
#define LEAST 0.0005     /* of its sleep: less rounds to nothing */

/* A thread, or a handler, which has nothing to do with whom that interrupted. */
static const char *waker_text(const struct story *s, const struct wait_list *l, const struct wait_row *row,
                              char buf[NAME_TEXT])
{
	struct party by = row->by;
	by.kind = by.tid < 0 ? FLOW_IRQ : FLOW_PREEMPTING;
	if (by.system < 0)
		return "somebody whom the trace does not name";
	if (by.tid == 0)
		return "an interrupt";
	return explain_party(s->topo, &by, by.name < l->names ? l->name[by.name] : NULL, &s->subject, buf, NAME_TEXT);
}

static void tell_wakers(struct story *s, const struct wait_list *l)
{
	char who[NAME_TEXT], a[64];
	for (size_t i = 0; i < l->rows && i < WAKERS_TOLD && (i == 0 || story_share(s, l->row[i].total) >= NOTABLE / 10); i++)
		fprintf(s->to, "%s%s: %s, %" PRIu64 " time%s", i ? "; " : "It slept longest until woken by ",
		        waker_text(s, l, &l->row[i], who), story_amount(s, l->row[i].total, a), l->row[i].count,
		        l->row[i].count == 1 ? "" : "s");
	if (l->rows)
		fputs(".\n", s->to);
}

struct wait_reason {
	enum wait_kind kind;
	int64_t total;               /* ns */
	uint64_t count;
	const struct wait_row *most;
};

static int by_total(const void *a, const void *b)
{
	const struct wait_reason *x = a, *y = b;
	if (x->total != y->total)
		return x->total < y->total ? 1 : -1;
	return (x->kind > y->kind) - (x->kind < y->kind);
}

/* Rows are the longest first, so the first one of a kind is that with most of it. */
static int64_t add_up(const struct wait_list *l, struct wait_reason reason[WAIT_KIND_COUNT])
{
	int64_t all = 0;
	for (size_t i = 0; i < l->rows; i++) {
		const struct wait_row *row = &l->row[i];
		struct wait_reason *r = &reason[row->kind];
		r->total += row->total;
		r->count += row->count;
		r->most = r->most ? r->most : row;
		all += row->total;
	}
	for (int k = 0; k < WAIT_KIND_COUNT; k++)
		reason[k].kind = (enum wait_kind)k;
	qsort(reason, WAIT_KIND_COUNT, sizeof *reason, by_total);
	return all;
}

/* "On its host it slept for 9.46 s: 69.6 % for a timer; 5.7 % for a device, woken by host/163 IO io0; ..." */
static void tell_reasons(struct story *s, const struct wait_list *l)
{
	static const char *const what[] = { [WAIT_TIMER] = "for a timer", [WAIT_IPI] = "for another of its vCPUs",
		[WAIT_NET] = "for the network", [WAIT_DEVICE] = "for a device", [WAIT_TASK] = "for another thread of the host",
		[WAIT_STOPPED] = "while the machine was stopped", [WAIT_UNKNOWN] = "for what no event tells" };
	struct wait_reason reason[WAIT_KIND_COUNT] = { { .total = 0 } };
	char who[NAME_TEXT], d[TIME_TEXT];
	const int64_t all = add_up(l, reason);
	if (all == 0)
		return;
	fprintf(s->to, "On its host it slept for %s:", time_duration(d, all));
	for (int i = 0; i < WAIT_KIND_COUNT && (double)reason[i].total >= LEAST * (double)all; i++) {
		const struct wait_reason *r = &reason[i];
		fprintf(s->to, "%s %.1f %% %s", i ? ";" : "", 100 * (double)r->total / (double)all, what[r->kind]);
		if (r->kind != WAIT_TIMER && r->kind != WAIT_UNKNOWN)
			fprintf(s->to, ", %swoken by %s", r->most->total == r->total ? "" : "mostly ", waker_text(s, l, r->most, who));
		fprintf(s->to, " (%" PRIu64 " time%s)", r->count, r->count == 1 ? "" : "s");
	}
	fputs(".\n", s->to);
}

int story_waits(struct story *s, struct error *err)
{
	struct wait_list l;
	if (story_share(s, s->demand.slept) < NOTABLE)
		return 0;
	if (waits_of(s->topo, &s->subject, s->f->start, s->f->end, &l, err) < 0)
		return -1;
	if (s->subject.kind == SUBJECT_CPU)
		tell_reasons(s, &l);
	else
		tell_wakers(s, &l);
	waits_release(&l);
	return s->subject.kind == SUBJECT_CPU ? 0 : story_path(s, err);
}

int story_locks(struct story *s, struct error *err)
{
	const struct topo *topo = s->topo;
	const uint32_t lock = s->subject.kind == SUBJECT_THREAD ? topo->thread[s->subject.index].lock : HISTORY_NONE;
	const int64_t from = s->f->start, to = s->f->end;
	struct history_cursor cursor;
	struct interval iv;
	int rc = lock == HISTORY_NONE ? 0 : history_range(&cursor, topo->h, lock, from, to, err);
	while (lock != HISTORY_NONE && rc == 0 && (rc = history_range_next(&cursor, &iv, err)) > 0) {
		rc = 0;
		if (iv.value == HISTORY_NULL)
			continue;
		s->locked += (iv.end < to ? iv.end : to) - (iv.start > from ? iv.start : from) + 1;
		s->locks++;
	}
	return rc;
}
