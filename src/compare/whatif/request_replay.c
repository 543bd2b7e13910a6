/* A request begins and ends at a point of its vCPU's work; when that is done in a replay is its latency there.
 *
 * The order in which the guest does its work stays as it was: guests' schedulers are not replayed. */
#include "compare/whatif/request_replay.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "latency/latency.h"

#define PIECES (1 << 22)
#define LITTLE 0.05  /* of what the server runs */
#define ALWAYS 0.95  /* of the window */

/* The task of the vCPU that a guest's thread is on. */
static int task_at(const struct wants *w, uint32_t thread, int64_t t, struct replay_task **out, struct error *err)
{
	const struct topo *topo = w->topo;
	const struct topo_thread *th = &topo->thread[thread];
	struct interval iv;
	*out = NULL;
	if (th->cpu == HISTORY_NONE)
		return 0;
	if (history_stab(topo->h, th->cpu, t, &iv, err))
		return -1;
	const int cpu = iv.value < 0 ? -1 : topo_find_cpu(topo, th->machine, (unsigned)iv.value);
	if (cpu >= 0 && topo->cpu[cpu].host >= 0 && topo->machine[th->machine].kind == MACHINE_VM)
		*out = wants_task(w, (uint32_t)topo->cpu[cpu].host);
	return 0;
}

/* What may come with time rather than with the work: 1 for each such entry. */
static bool *background_of(const struct flow *f, uint32_t machine)
{
	bool *out = mem_new(f->entries, sizeof *out);
	int64_t own = 0;
	for (size_t i = 0; i < f->entries; i++)
		own += f->entry[i].who.kind == FLOW_RUNNING ? f->entry[i].duration : 0;
	for (size_t i = 0; i < f->entries; i++) {
		const struct party *p = &f->entry[i].who;
		out[i] = p->kind == FLOW_HYPERVISOR || p->kind == FLOW_IRQ ||
		         (p->kind == FLOW_PREEMPTING && p->system == (int32_t)machine &&
		          (double)f->entry[i].duration < LITTLE * (double)own);
	}
	return out;
}

static int64_t background_within(const struct flow *f, const bool *background, int64_t start, int64_t end)
{
	int64_t ns = 0;
	for (size_t i = flow_piece_at(f, start); i < f->intervals && f->interval[i].start <= end; i++) {
		const struct flow_interval *iv = &f->interval[i];
		const int64_t a = iv->start > start ? iv->start : start, b = iv->end < end ? iv->end : end;
		ns += background[iv->entry] && b >= a ? b - a + 1 : 0;
	}
	return ns;
}

static int by_server(const void *pa, const void *pb)
{
	const struct request *const *a = pa, *const *b = pb;
	int c = strcmp((*a)->machine, (*b)->machine);
	return c ? c : ((*a)->tid > (*b)->tid) - ((*a)->tid < (*b)->tid);
}

/* All requests of one server. */
static int add_server(struct served_list *l, const struct wants *w, const struct request *const *r, size_t n, size_t *left,
                      struct error *err)
{
	int machine = topo_find_machine(w->topo, r[0]->machine);
	int thread = machine < 0 || r[0]->tid < 0 ? -1 : topo_find_thread(w->topo, (uint32_t)machine, r[0]->tid);
	struct flow f;
	if (thread < 0) {
		*left += n;
		return 0;
	}
	if (flow_of(w->topo, &(struct subject){ SUBJECT_THREAD, (uint32_t)thread }, w->from, w->to,
	            &(struct flow_options){ .intervals = PIECES }, &f, err))
		return -1;
	bool *background = background_of(&f, (uint32_t)machine);
	int rc = 0;
	for (size_t i = 0; i < n && rc == 0; i++) {
		struct served s = { .start = r[i]->start, .latency = request_latency(r[i]) };
		if (task_at(w, (uint32_t)thread, r[i]->start, &s.first, err) ||
		    task_at(w, (uint32_t)thread, r[i]->end, &s.last, err))
			rc = -1;
		if (rc || !s.first || !s.last) {
			++*left;
			continue;
		}
		request_kind(r[i], s.kind);
		s.begins = task_work_at(s.first, r[i]->start);
		s.ends = task_work_at(s.last, r[i]->end + 1);
		s.background = background_within(&f, background, r[i]->start, r[i]->end);
		*ARRAY_PUSH(l->item, l->len, l->cap) = s;
	}
	free(background);
	flow_release(&f);
	return rc;
}

struct in_flight { struct replay_task *task; int64_t start, end; };

static int by_task(const void *pa, const void *pb)
{
	const struct in_flight *a = pa, *b = pb;
	if (a->task != b->task)
		return a->task < b->task ? -1 : 1;
	return (a->start > b->start) - (a->start < b->start);
}

/* The sleeps of one task through which one of its requests was in flight; these come in order of their start. */
static void mark_task(struct replay_task *t, const struct in_flight *r, size_t n)
{
	size_t begun = 0;
	int64_t last = INT64_MIN;
	for (size_t i = 0; i + 1 < t->bursts; i++) {
		struct replay_burst *b = &t->burst[i];
		for (; begun < n && r[begun].start < b->wake - b->sleep; begun++)
			last = r[begun].end > last ? r[begun].end : last;
		b->within = last >= b->wake;
	}
}

/* Whoever waits for a disk in the midst of a request does so as soon as it gets there: that sleep does not end by the
 * clock, as one between requests may. */
static void mark_sleeps(const struct served_list *l)
{
	struct in_flight *all = mem_new(2 * l->len, sizeof *all);
	size_t n = 0;
	for (size_t i = 0; i < l->len; i++) {
		const struct served *s = &l->item[i];
		all[n++] = (struct in_flight){ s->first, s->start, s->start + s->latency - 1 };
		if (s->last != s->first)
			all[n++] = (struct in_flight){ s->last, s->start, s->start + s->latency - 1 };
	}
	if (n)
		qsort(all, n, sizeof *all, by_task);
	for (size_t i = 0, k; i < n; i = k) {
		for (k = i + 1; k < n && all[k].task == all[i].task;)
			k++;
		mark_task(all[i].task, &all[i], k - i);
	}
	free(all);
}

/* A guest whose vCPU never sleeps does not show when it would have: its next requests may have waited in it all along. */
static void note_busy(const struct served_list *l, const struct wants *w, struct notes *notes)
{
	const double span = (double)(w->to - w->from) + 1;
	for (size_t i = 0; i < l->len; i++) {
		const struct replay_task *t = l->item[i].first;
		const double wanted = t->rans ? (double)(t->ran[t->rans - 1].work + t->waited) / span : 0;
		bool told = wanted < ALWAYS;
		for (size_t k = 0; k < i && !told; k++)
			told = l->item[k].first == t;
		if (!told)
			notes_add(notes, NOTE_DOUBT, NULL, "%s: its vCPU wanted a CPU for %.0f%% of the time: what is told of its "
			          "requests holds if each comes when another is answered, not if they come by the clock",
			          l->item[i].kind, 100 * wanted);
	}
}

int served_read(struct served_list *l, const struct wants *w, struct notes *notes, struct error *err)
{
	struct requests all;
	if (requests_read(w->topo, &(struct requests_options){ .from = w->from, .to = w->to, .plain = true }, &all, notes, err))
		return -1;
	const struct request **whole = mem_new(all.len, sizeof *whole);
	size_t n = 0, left = 0;
	int rc = 0;
	for (size_t i = 0; i < all.len; i++)
		if (all.row[i].start >= w->from && all.row[i].end <= w->to)
			whole[n++] = &all.row[i];
	if (n)
		qsort(whole, n, sizeof *whole, by_server);
	for (size_t i = 0, k; i < n && rc == 0; i = k) {
		for (k = i + 1; k < n && by_server(&whole[i], &whole[k]) == 0;)
			k++;
		rc = add_server(l, w, &whole[i], k - i, &left, err);
	}
	char which[64];
	if (left && rc == 0)
		notes_add(notes, NOTE_DOUBT, NULL, "%s %s not replayed: served outside the VMs of this host, or on an unknown vCPU",
		          text_of_all(which, left, n, "request"), left == 1 ? "is" : "are");
	if (rc == 0) {
		mark_sleeps(l);
		note_busy(l, w, notes);
	}
	free(whole);
	requests_release(&all);
	return rc;
}

void served_release(struct served_list *l)
{
	free(l->item);
	*l = (struct served_list){ 0 };
}

double served_again(const struct served *s, bool by_clock)
{
	int64_t start = task_time_of(s->first, s->begins, true);
	const int64_t end = task_time_of(s->last, s->ends, false), comes = task_runs_from(s->first, s->start);
	if (by_clock && comes != INT64_MIN && comes < start)
		start = comes;
	return s->first->gone || start == INT64_MIN || end == INT64_MIN || end < start ? NAN : (double)(end - start);
}

int64_t served_ends(const struct served *s)
{
	return task_time_of(s->last, s->ends, false);
}
