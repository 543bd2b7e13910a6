/* Latencies by kind of request, and their parts from the flow of the server's thread.
 *
 * The kind is the id without its number: "GET-17" and "GET-18" are requests of the kind GET; ids that are only numbers
 * are one kind. Memory: the flow of one server at a time, at most MAX_INTERVALS intervals. */
#include "base/base.h"
#include "compare/diff/ledger.h"
#include "latency/latency.h"

#define MAX_INTERVALS (1 << 22)

char *request_kind(const struct request *r, char buf[TARGET_TEXT])
{
	char id[TARGET_TEXT / 2], machine[TARGET_TEXT / 2];
	text_escape(machine, sizeof machine, r->container ? r->container : r->machine);
	text_escape(id, sizeof id, r->id);
	size_t n = strlen(id);
	while (n && strchr("0123456789-_.:#/ ", id[n - 1]))
		n--;
	id[n] = '\0';
	snprintf(buf, TARGET_TEXT, "%s%s%s", machine, n ? "/" : "", id);
	return buf;
}

static void add_latency(struct ledger *l, const struct request *r)
{
	char target[TARGET_TEXT];
	request_kind(r, target);
	unsigned slice = ledger_slice(l, r->start);
	struct latencies *all = ledger_latencies(l, target);
	struct series *mean = ledger_series(l, DIFF_OF_REQUESTS, target, DIFF_LATENCY, "");
	*ARRAY_PUSH(all->item, all->len, all->cap) = (struct latency){ (double)request_latency(r), slice };
	mean->num[slice] += (double)request_latency(r);
	mean->den[slice]++;
	ledger_series(l, DIFF_OF_REQUESTS, target, DIFF_REQUESTS, "")->num[slice]++;
}

/* Adds the parts of a request's latency. entry_series: cache of the series of each entry of the flow, for one kind of
 * request. */
static void add_latency_parts(struct ledger *l, const struct request *r, const struct flow *f, struct series **entry_series)
{
	char target[TARGET_TEXT], by[TARGET_TEXT];
	request_kind(r, target);
	unsigned slice = ledger_slice(l, r->start);
	for (size_t i = flow_interval_at(f, r->start); i < f->intervals && f->interval[i].start <= r->end; i++) {
		const struct flow_interval *iv = &f->interval[i];
		int64_t a = iv->start > r->start ? iv->start : r->start, b = iv->end < r->end ? iv->end : r->end;
		const struct actor *actor = &f->entry[iv->entry].actor;
		struct series **s = &entry_series[iv->entry];
		if (!*s || strcmp((*s)->target, target) != 0)
			*s = ledger_series(l, DIFF_OF_REQUESTS, target, DIFF_LATENCY,
			                   ledger_actor(l->catalog, actor, f->name[actor->name], by));
		(*s)->num[slice] += b >= a ? (double)(b - a + 1) : 0;
	}
}

static int by_server(const void *pa, const void *pb)
{
	const struct request *const *a = pa, *const *b = pb;
	int c = strcmp((*a)->machine, (*b)->machine);
	return c ? c : ((*a)->tid > (*b)->tid) - ((*a)->tid < (*b)->tid);
}

/* Adds the parts of all requests of one server. */
static int add_server(struct ledger *l, const struct request *const *r, size_t n, struct error *err)
{
	int machine = catalog_find_machine(l->catalog, r[0]->machine);
	int thread = machine < 0 || r[0]->tid < 0 ? -1 : catalog_find_thread(l->catalog, (uint32_t)machine, r[0]->tid);
	struct flow f;
	if (thread < 0)
		return 0;
	const struct target server = { TARGET_THREAD, (uint32_t)thread };
	const struct flow_options options = { .intervals = MAX_INTERVALS };
	if (query_answer(flow_open(l->catalog, &server, l->edge[0], l->edge[DIFF_SLICES] - 1, &options, err), &f, err))
		return -1;
	if (!f.intervals)
		note_add(&l->notes, REQUESTS_NOT_SPLIT, r[0]->machine, (int)r[0]->tid);
	struct series **entry_series = mem_new(f.entries, sizeof *entry_series);
	for (size_t i = 0; i < n; i++)
		add_latency_parts(l, r[i], &f, entry_series);
	free(entry_series);
	flow_release(&f);
	return 0;
}

/* Sets the denominators of every part to the request count: each part is a mean over all requests of its kind. */
static void set_part_counts(struct ledger *l)
{
	for (size_t i = 0; i < l->len; i++) {
		struct series *s = l->series[i];
		if (s->quantity == DIFF_LATENCY && *s->by)
			memcpy(s->den, ledger_series(l, DIFF_OF_REQUESTS, s->target, DIFF_LATENCY, "")->den, sizeof s->den);
	}
}

int ledger_add_requests(struct ledger *l, struct error *err)
{
	struct requests all;
	const int64_t from = l->edge[0], to = l->edge[DIFF_SLICES] - 1;
	if (requests_read(l->catalog, &(struct requests_options){ .from = from, .to = to, .plain = true }, &all, &l->notes,
	                  err))
		return -1;
	const struct request **complete = mem_new(all.len, sizeof *complete);
	size_t n = 0;
	int rc = 0;
	for (size_t i = 0; i < all.len; i++)
		if (all.row[i].start >= from && all.row[i].end <= to)
			complete[n++] = &all.row[i];
	for (size_t i = 0; i < n; i++)
		add_latency(l, complete[i]);
	ARRAY_SORT(complete, n, by_server);
	for (size_t i = 0, k; i < n && rc == 0; i = k) {
		for (k = i + 1; k < n && by_server(&complete[i], &complete[k]) == 0;)
			k++;
		rc = add_server(l, &complete[i], k - i, err);
	}
	set_part_counts(l);
	free(complete);
	requests_release(&all);
	return rc;
}
