/* Latencies by kind of request, and what they are made of: the flow of the server's thread from start to end.
 *
 * A kind is what stands before an id's number: "GET-17" and "GET-18" are requests of the kind GET, and ids that are
 * numbers alone are all of one kind.  Memory: the flow of one server at a time, PIECES at most. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "compare/diff/ledger.h"
#include "latency/latency.h"

#define PIECES (1 << 22)

char *request_kind(const struct request *r, char buf[SUBJECT_TEXT])
{
	char id[SUBJECT_TEXT / 2], machine[SUBJECT_TEXT / 2];
	text_escape(machine, sizeof machine, r->container ? r->container : r->machine);
	text_escape(id, sizeof id, r->id);
	size_t n = strlen(id);
	while (n && strchr("0123456789-_.:#/ ", id[n - 1]))
		n--;
	id[n] = '\0';
	snprintf(buf, SUBJECT_TEXT, "%s%s%s", machine, n ? "/" : "", id);
	return buf;
}

static void add_latency(struct ledger *l, const struct request *r)
{
	char subject[SUBJECT_TEXT];
	request_kind(r, subject);
	unsigned slice = ledger_slice(l, r->start);
	struct latencies *all = ledger_latencies(l, subject);
	struct series *mean = ledger_series(l, DIFF_OF_REQUESTS, subject, DIFF_LATENCY, "");
	*ARRAY_PUSH(all->item, all->len, all->cap) = (struct latency){ (double)request_latency(r), slice };
	mean->num[slice] += (double)request_latency(r);
	mean->den[slice]++;
	ledger_series(l, DIFF_OF_REQUESTS, subject, DIFF_REQUESTS, "")->num[slice]++;
}

/* of_entry: the series found last for each entry; another kind of request has others. */
static void add_parts(struct ledger *l, const struct request *r, const struct flow *f, struct series **of_entry)
{
	char subject[SUBJECT_TEXT], by[SUBJECT_TEXT];
	request_kind(r, subject);
	unsigned slice = ledger_slice(l, r->start);
	for (size_t i = flow_piece_at(f, r->start); i < f->intervals && f->interval[i].start <= r->end; i++) {
		const struct flow_interval *iv = &f->interval[i];
		int64_t a = iv->start > r->start ? iv->start : r->start, b = iv->end < r->end ? iv->end : r->end;
		const struct party *who = &f->entry[iv->entry].who;
		struct series **s = &of_entry[iv->entry];
		if (!*s || strcmp((*s)->subject, subject) != 0)
			*s = ledger_series(l, DIFF_OF_REQUESTS, subject, DIFF_LATENCY,
			                   ledger_party(l->topo, who, f->name[who->name], by));
		(*s)->num[slice] += b >= a ? (double)(b - a + 1) : 0;
	}
}

static int by_server(const void *pa, const void *pb)
{
	const struct request *const *a = pa, *const *b = pb;
	int c = strcmp((*a)->machine, (*b)->machine);
	return c ? c : ((*a)->tid > (*b)->tid) - ((*a)->tid < (*b)->tid);
}

/* All requests of one server. */
static int add_server(struct ledger *l, const struct request *const *r, size_t n, struct error *err)
{
	int machine = topo_find_machine(l->topo, r[0]->machine);
	int thread = machine < 0 || r[0]->tid < 0 ? -1 : topo_find_thread(l->topo, (uint32_t)machine, r[0]->tid);
	struct flow f;
	if (thread < 0)
		return 0;
	if (flow_of(l->topo, &(struct subject){ SUBJECT_THREAD, (uint32_t)thread }, l->edge[0], l->edge[DIFF_SLICES] - 1,
	            &(struct flow_options){ .intervals = PIECES }, &f, err))
		return -1;
	if (!f.intervals)
		notes_add(&l->notes, NOTE_DOUBT, r[0]->machine, "the requests of thread %d are not taken apart: it was switched "
		          "too often", (int)r[0]->tid);
	struct series **of_entry = mem_new(f.entries, sizeof *of_entry);
	for (size_t i = 0; i < n; i++)
		add_parts(l, r[i], &f, of_entry);
	free(of_entry);
	flow_release(&f);
	return 0;
}

/* Every part of a latency is a mean over the same requests. */
static void share_counts(struct ledger *l)
{
	for (size_t i = 0; i < l->len; i++) {
		struct series *s = l->series[i];
		if (s->quantity == DIFF_LATENCY && *s->by)
			memcpy(s->den, ledger_series(l, DIFF_OF_REQUESTS, s->subject, DIFF_LATENCY, "")->den, sizeof s->den);
	}
}

int ledger_add_requests(struct ledger *l, struct error *err)
{
	struct requests all;
	const int64_t from = l->edge[0], to = l->edge[DIFF_SLICES] - 1;
	if (requests_read(l->topo, &(struct requests_options){ .from = from, .to = to, .plain = true }, &all, &l->notes, err))
		return -1;
	const struct request **whole = mem_new(all.len, sizeof *whole);
	size_t n = 0;
	int rc = 0;
	for (size_t i = 0; i < all.len; i++)
		if (all.row[i].start >= from && all.row[i].end <= to)
			whole[n++] = &all.row[i];
	for (size_t i = 0; i < n; i++)
		add_latency(l, whole[i]);
	if (n)
		qsort(whole, n, sizeof *whole, by_server);
	for (size_t i = 0, k; i < n && rc == 0; i = k) {
		for (k = i + 1; k < n && by_server(&whole[i], &whole[k]) == 0;)
			k++;
		rc = add_server(l, &whole[i], k - i, err);
	}
	share_counts(l);
	free(whole);
	requests_release(&all);
	return rc;
}
