/* Replay of requests. A request begins and ends at points of its vCPU's progress (CPU time consumed); its replayed
 * latency is the time between reaching these points.
 *
 * The order of work inside a guest is unchanged: guests' schedulers are not replayed. */
#include "compare/whatif/request_replay.h"

#include <math.h>

#include "base/base.h"
#include "latency/latency.h"

#define MAX_INTERVALS (1 << 22)
#define BACKGROUND_SHARE_MAX 0.05  /* share of the server's run time: threads with less are background activity */
#define BUSY_SHARE_MIN 0.95        /* minimum share of the window for a vCPU without idle time */

/* Finds the task of the vCPU that runs a guest's thread at time t; *out is NULL if there is none. */
static int task_at(const struct host_demand *d, uint32_t thread, int64_t t, struct replay_task **out, struct error *err)
{
	const struct catalog *catalog = d->catalog;
	const struct catalog_thread *th = &catalog->thread[thread];
	struct interval iv;
	*out = NULL;
	if (th->cpu == HISTORY_NONE)
		return 0;
	if (history_stab(catalog->h, th->cpu, t, &iv, err))
		return -1;
	const int cpu = iv.value < 0 ? -1 : catalog_find_cpu(catalog, th->machine, (unsigned)iv.value);
	if (cpu >= 0 && catalog->cpu[cpu].host >= 0 && catalog->machine[th->machine].kind == MACHINE_VM)
		*out = demand_task(d, (uint32_t)catalog->cpu[cpu].host);
	return 0;
}

/* Returns a flag for each entry: true if it may depend on time instead of work. The caller frees the array. */
static bool *find_background(const struct flow *f, uint32_t machine)
{
	bool *out = mem_new(f->entries, sizeof *out);
	int64_t server_ns = 0;
	for (size_t i = 0; i < f->entries; i++)
		server_ns += f->entry[i].actor.kind == FLOW_RUNNING ? f->entry[i].duration : 0;
	for (size_t i = 0; i < f->entries; i++) {
		const struct actor *p = &f->entry[i].actor;
		out[i] = p->kind == FLOW_HYPERVISOR || p->kind == FLOW_IRQ ||
		         (p->kind == FLOW_PREEMPTING && p->machine == (int32_t)machine &&
		          (double)f->entry[i].duration < BACKGROUND_SHARE_MAX * (double)server_ns);
	}
	return out;
}

static int64_t background_within(const struct flow *f, const bool *background, int64_t start, int64_t end)
{
	int64_t ns = 0;
	for (size_t i = flow_interval_at(f, start); i < f->intervals && f->interval[i].start <= end; i++) {
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

/* Adds all requests of one server. */
static int add_server(struct replayed_list *l, const struct host_demand *d, const struct request *const *r, size_t n,
                      size_t *skipped, struct error *err)
{
	int machine = catalog_find_machine(d->catalog, r[0]->machine);
	int thread = machine < 0 || r[0]->tid < 0 ? -1 : catalog_find_thread(d->catalog, (uint32_t)machine, r[0]->tid);
	struct flow f;
	if (thread < 0) {
		*skipped += n;
		return 0;
	}
	if (query_answer(flow_open(d->catalog, &(struct target){ TARGET_THREAD, (uint32_t)thread }, d->from, d->to,
	                           &(struct flow_options){ .intervals = MAX_INTERVALS }, err), &f, err))
		return -1;
	bool *background = find_background(&f, (uint32_t)machine);
	int rc = 0;
	for (size_t i = 0; i < n && rc == 0; i++) {
		struct replayed_request s = { .start = r[i]->start, .latency = request_latency(r[i]) };
		if (task_at(d, (uint32_t)thread, r[i]->start, &s.start_task, err) ||
		    task_at(d, (uint32_t)thread, r[i]->end, &s.end_task, err))
			rc = -1;
		if (rc || !s.start_task || !s.end_task) {
			++*skipped;
			continue;
		}
		request_kind(r[i], s.kind);
		s.work_at_start = task_work_at(s.start_task, r[i]->start);
		s.work_at_end = task_work_at(s.end_task, r[i]->end + 1);
		s.background = background_within(&f, background, r[i]->start, r[i]->end);
		*ARRAY_PUSH(l->item, l->len, l->cap) = s;
	}
	free(background);
	flow_release(&f);
	return rc;
}

struct in_flight { struct replay_task *task; int64_t start, end; };

ORDER_BY(by_task, struct in_flight, RISING(task) RISING(start))

/* Flags the sleeps of a task during which one of its requests was in flight. r[n] is ordered by start. */
static void mark_task_sleeps(struct replay_task *t, const struct in_flight *r, size_t n)
{
	size_t begun = 0;
	int64_t last = INT64_MIN;
	for (size_t i = 0; i + 1 < t->bursts; i++) {
		struct replay_burst *b = &t->burst[i];
		for (; begun < n && r[begun].start < b->wake - b->sleep; begun++)
			last = r[begun].end > last ? r[begun].end : last;
		b->in_request = last >= b->wake;
	}
}

/* Flags the sleeps within requests. Unlike a sleep between requests, such a sleep (a wait for a disk) starts when the
 * request reaches it, and does not end at a recorded time. */
static void mark_sleeps(const struct replayed_list *l)
{
	struct in_flight *all = mem_new(2 * l->len, sizeof *all);
	size_t n = 0;
	for (size_t i = 0; i < l->len; i++) {
		const struct replayed_request *s = &l->item[i];
		all[n++] = (struct in_flight){ s->start_task, s->start, s->start + s->latency - 1 };
		if (s->end_task != s->start_task)
			all[n++] = (struct in_flight){ s->end_task, s->start, s->start + s->latency - 1 };
	}
	ARRAY_SORT(all, n, by_task);
	for (size_t i = 0, k; i < n; i = k) {
		for (k = i + 1; k < n && all[k].task == all[i].task;)
			k++;
		mark_task_sleeps(all[i].task, &all[i], k - i);
	}
	free(all);
}

/* Notes vCPUs that never sleep: the arrival of the next request is unknown, since it may have waited for the vCPU all
 * the time. */
static void note_busy(const struct replayed_list *l, const struct host_demand *d, struct notes *notes)
{
	const double window = (double)(d->to - d->from) + 1;
	for (size_t i = 0; i < l->len; i++) {
		const struct replay_task *t = l->item[i].start_task;
		const double wanted = t->n_ran ? (double)(t->ran[t->n_ran - 1].work + t->waited) / window : 0;
		bool reported = wanted < BUSY_SHARE_MIN;
		for (size_t k = 0; k < i && !reported; k++)
			reported = l->item[k].start_task == t;
		if (!reported)
			note_add(notes, REQUESTS_CLOSED_LOOP, NULL, l->item[i].kind, 100 * wanted);
	}
}

int replayed_read(struct replayed_list *l, const struct host_demand *d, struct notes *notes, struct error *err)
{
	struct requests all;
	if (requests_read(d->catalog, &(struct requests_options){ .from = d->from, .to = d->to, .plain = true }, &all, notes,
	                  err))
		return -1;
	const struct request **complete = mem_new(all.len, sizeof *complete);
	size_t n = 0, skipped = 0;
	int rc = 0;
	for (size_t i = 0; i < all.len; i++)
		if (all.row[i].start >= d->from && all.row[i].end <= d->to)
			complete[n++] = &all.row[i];
	ARRAY_SORT(complete, n, by_server);
	for (size_t i = 0, k; i < n && rc == 0; i = k) {
		for (k = i + 1; k < n && by_server(&complete[i], &complete[k]) == 0;)
			k++;
		rc = add_server(l, d, &complete[i], k - i, &skipped, err);
	}
	char which[64];
	if (skipped && rc == 0)
		note_add(notes, REQUESTS_NOT_REPLAYED, NULL, text_count_of_all(which, skipped, n, "request"));
	if (rc == 0) {
		mark_sleeps(l);
		note_busy(l, d, notes);
	}
	free(complete);
	requests_release(&all);
	return rc;
}

void replayed_release(struct replayed_list *l)
{
	free(l->item);
	*l = (struct replayed_list){ 0 };
}

double replayed_latency(const struct replayed_request *s, bool by_clock)
{
	int64_t start = task_time_at_work(s->start_task, s->work_at_start, true);
	const int64_t end = task_time_at_work(s->end_task, s->work_at_end, false);
	const int64_t arrival = task_next_run(s->start_task, s->start);
	if (by_clock && arrival != INT64_MIN && arrival < start)
		start = arrival;
	return s->start_task->removed || start == INT64_MIN || end == INT64_MIN || end < start ? NAN : (double)(end - start);
}

int64_t replayed_end_time(const struct replayed_request *s)
{
	return task_time_at_work(s->end_task, s->work_at_end, false);
}
