/* latency/: requests of a history, measured bounds against brute force, on random and on hand-made histories. */
#include "test.h"

#include <unistd.h>

#include "base/mem.h"
#include "latency/latency.h"

/* ---- Hand-made histories ------------------------------------------------------------------------------------ */

#define SPAN 400  /* ns: [0, SPAN - 1] */
#define ROWS 24

enum { SET_VCPU, SET_THREAD, SET_REQUEST, SET_INT, SET_TEXT };

static const char *const request_states[] = { "running", "yielded", "unknown" };

/* One attribute, as its value at every ns; HISTORY_NULL is null. */
struct world_row {
	char path[120];
	int set;
	int64_t v[SPAN];
};

struct world {
	struct world_row row[ROWS];
	size_t rows;
	char path[64];
	struct history *h;
	struct topo topo;
};

static int64_t *row_add(struct world *w, int set, const char *path)
{
	assert_true(w->rows < ROWS);
	struct world_row *r = &w->row[w->rows++];
	snprintf(r->path, sizeof r->path, "%s", path);
	r->set = set;
	for (int t = 0; t < SPAN; t++)
		r->v[t] = HISTORY_NULL;
	return r->v;
}

static void fill(int64_t *v, int from, int to, int64_t value)
{
	for (int t = from; t <= to; t++)
		v[t] = value;
}

static void world_close(struct world *w)
{
	struct error err = ERROR_INIT;
	snprintf(w->path, sizeof w->path, "test-latency-XXXXXX");
	int fd = mkstemp(w->path);
	assert_true(fd >= 0);
	close(fd);
	struct history_options options = { .chunk = 3 };
	struct history_builder *b = history_create(w->path, &options, &err);
	assert_non_null(b);
	unsigned set[] = { history_state_set(b, "vcpu", vcpu_state_name, VCPU_STATE_COUNT),
	                   history_state_set(b, "thread", thread_state_name, THREAD_STATE_COUNT),
	                   history_state_set(b, "request", request_states, COUNT(request_states)) };
	uint32_t attr[ROWS];
	for (size_t i = 0; i < w->rows; i++) {
		int s = w->row[i].set;
		attr[i] = history_attribute(b, w->row[i].path,
		                            s == SET_INT ? HISTORY_INT : s == SET_TEXT ? HISTORY_STRING : HISTORY_STATE,
		                            s < SET_INT ? set[s] : 0, &err);
		assert_int_not_equal(attr[i], HISTORY_NONE);
	}
	for (int t = 0; t < SPAN; t++) {
		for (size_t i = 0; i < w->rows; i++) {
			int64_t v = w->row[i].v[t];
			if (t > 0 && v == w->row[i].v[t - 1])
				continue;
			char name[32];
			snprintf(name, sizeof name, "name%d", (int)v);
			if (w->row[i].set == SET_TEXT && v != HISTORY_NULL)
				assert_int_equal(history_set_string(b, t, attr[i], name, &err), 0);
			else
				assert_int_equal(history_set(b, t, attr[i], v, &err), 0);
		}
	}
	assert_int_equal(history_finish(b, 0, SPAN - 1, &err), 0);
	w->h = history_open(w->path, &err);
	assert_non_null(w->h);
	assert_int_equal(topo_open(&w->topo, w->h, &err), 0);
}

static void world_free(struct world *w)
{
	topo_release(&w->topo);
	history_close(w->h);
	unlink(w->path);
	free(w);
}

/* Who answers, and when, is the same without the rest. */
static void check_plain(const struct world *w, const struct requests *all)
{
	struct requests r;
	struct error err = ERROR_INIT;
	const struct requests_options options = { .from = 1, .plain = true };
	assert_int_equal(requests_read(&w->topo, &options, &r, NULL, &err), 0);
	assert_int_equal(r.len, all->len);
	assert_int_equal(r.cut, all->cut);
	for (size_t i = 0; i < r.len; i++) {
		assert_int_equal(r.row[i].start, all->row[i].start);
		assert_int_equal(r.row[i].end, all->row[i].end);
		assert_int_equal(r.row[i].tid, all->row[i].tid);
		assert_string_equal(r.row[i].container ? r.row[i].container : "", all->row[i].container ? all->row[i].container : "");
		assert_int_equal(r.row[i].high, 0);
	}
	requests_release(&r);
}

static struct requests read_all(const struct world *w)
{
	struct requests r;
	struct error err = ERROR_INIT;
	struct requests_options options = { .from = 1, .culprits = true };
	if (requests_read(&w->topo, &options, &r, NULL, &err))
		fail_msg("%s", err.text);
	check_plain(w, &r);
	return r;
}

/* A VM "A" of one vCPU (host thread 10 on CPU0, hog 99), server thread 5, all quiet; one request 7. */
struct world_rows {
	int64_t *vcpu, *thread, *cpu, *host, *state, *tid;
};

static struct world *vm_world(struct world_rows *r)
{
	struct world *w = mem_new(1, sizeof *w);
	r->vcpu = row_add(w, SET_VCPU, "/Virtual Machines/A/CPUs/CPU0/Status");
	fill(row_add(w, SET_INT, "/Virtual Machines/A/CPUs/CPU0/Current Thread"), 0, SPAN - 1, 5);
	fill(row_add(w, SET_INT, "/Virtual Machines/A/CPUs/CPU0/Host Thread"), 0, SPAN - 1, 10);
	fill(row_add(w, SET_INT, "/Virtual Machines/A/CPUs/CPU0/pCPU"), 0, SPAN - 1, 0);
	r->thread = row_add(w, SET_THREAD, "/Virtual Machines/A/Threads/5/Status");
	fill(row_add(w, SET_TEXT, "/Virtual Machines/A/Threads/5/Name"), 0, SPAN - 1, 5);
	r->cpu = row_add(w, SET_INT, "/Virtual Machines/A/Threads/5/CPU");
	r->host = row_add(w, SET_THREAD, "/Host/Threads/10/Status");
	fill(row_add(w, SET_THREAD, "/Host/Threads/99/Status"), 0, SPAN - 1, THREAD_RUNNING);
	fill(row_add(w, SET_TEXT, "/Host/Threads/99/Name"), 0, SPAN - 1, 99);
	fill(row_add(w, SET_INT, "/Host/CPUs/CPU0/Current Thread"), 0, SPAN - 1, 10);
	r->state = row_add(w, SET_REQUEST, "/Requests/A/7/State");
	r->tid = row_add(w, SET_INT, "/Requests/A/7/Thread");
	fill(r->vcpu, 0, SPAN - 1, VCPU_RUNNING);
	fill(r->thread, 0, SPAN - 1, THREAD_RUNNING);
	fill(r->cpu, 0, SPAN - 1, 0);
	fill(r->host, 0, SPAN - 1, THREAD_RUNNING);
	return w;
}

/* The world of the issue: out while executing is in both bounds, out while the server works on another request only in
 * the upper one, out while the server sleeps in neither. */
static void test_bounds(void **state)
{
	(void)state;
	struct world_rows r;
	struct world *w = vm_world(&r);
	fill(r.state, 100, 199, 0);
	fill(r.state, 120, 159, 1);
	fill(r.tid, 100, 199, 5);
	/* 110-114 while executing */
	fill(r.vcpu, 110, 114, VCPU_PREEMPTED);
	fill(r.thread, 110, 114, THREAD_VIRT_PREEMPTED);
	/* 130-139 while the server works for somebody else */
	fill(r.vcpu, 130, 139, VCPU_HOST_BLOCKED);
	fill(r.thread, 130, 139, THREAD_VIRT_PREEMPTED);
	/* 145-154 asleep; out for 147-150, idle else */
	fill(r.thread, 145, 154, THREAD_BLOCKED);
	fill(r.vcpu, 145, 154, VCPU_IDLE);
	fill(r.vcpu, 147, 150, VCPU_PREEMPTED);
	/* 170-174 hypervisor, 180-184 waiting in the guest's queue */
	fill(r.vcpu, 170, 174, VCPU_VMM);
	fill(r.thread, 170, 174, THREAD_VIRT_PREEMPTED);
	fill(r.thread, 180, 184, THREAD_PREEMPTED);
	/* and a second life of the id, cut off by the end of the trace */
	fill(r.state, 300, SPAN - 1, 0);
	fill(r.tid, 300, SPAN - 1, 5);
	for (size_t i = 0; i < w->rows; i++) {
		if (strstr(w->row[i].path, "/Host/CPUs/CPU0/Current"))
			fill(w->row[i].v, 110, 114, 99);
	}
	fill(r.host, 110, 114, THREAD_PREEMPTED);
	world_close(w);
	struct requests all = read_all(w);
	assert_int_equal(all.len, 1);
	assert_int_equal(all.cut, 1);
	const struct request *q = &all.row[0];
	assert_string_equal(q->machine, "A");
	assert_string_equal(q->id, "7");
	assert_int_equal(q->tid, 5);
	assert_int_equal(request_latency(q), 100);
	assert_int_equal(q->executing, 60);
	assert_int_equal(q->low, 5);
	assert_int_equal(q->high, 15);
	assert_int_equal(q->unknown, 0);
	assert_int_equal(q->feature.vmm, 5);
	assert_int_equal(q->feature.wait, 5);
	assert_int_equal(q->feature.blocked, 10);
	assert_int_equal(q->feature.switches, 2);
	assert_int_equal(q->feature.exits, 1);
	assert_int_equal(q->feature.wakeups, 1);
	assert_non_null(q->culprit);
	assert_string_equal(q->culprit, "host/99 name99");
	requests_release(&all);
	world_free(w);
}

/* A sleeping server is woken by a vCPU that had to wait for a pCPU first: that wait is in the upper bound; other waits
 * of the vCPU during the sleep are not. */
static void test_late_wakeup(void **state)
{
	(void)state;
	struct world_rows r;
	struct world *w = vm_world(&r);
	fill(r.state, 100, 199, 0);
	fill(r.tid, 100, 199, 5);
	fill(r.thread, 110, 179, THREAD_BLOCKED);
	fill(r.vcpu, 110, 179, VCPU_IDLE);
	fill(r.host, 110, 179, THREAD_BLOCKED);
	/* a timer tick in between: waking 120-129, runs 130-134, sleeps again */
	fill(r.vcpu, 120, 129, VCPU_WAKING);
	fill(r.host, 120, 129, THREAD_PREEMPTED);
	fill(r.host, 130, 134, THREAD_RUNNING);
	/* the wakeup that matters: waking 150-169, enters, handles the interrupt until 179 */
	fill(r.vcpu, 150, 169, VCPU_WAKING);
	fill(r.host, 150, 169, THREAD_PREEMPTED);
	fill(r.vcpu, 170, 171, VCPU_VMM);
	fill(r.host, 170, 179, THREAD_RUNNING);
	world_close(w);
	struct requests all = read_all(w);
	assert_int_equal(all.len, 1);
	assert_int_equal(all.row[0].low, 0);
	assert_int_equal(all.row[0].high, 20);
	assert_int_equal(all.row[0].feature.out_flight, 0);
	requests_release(&all);
	world_free(w);
}

/* A wait for a pCPU while nothing was known of the request counts as unknown, and not once more as its late wakeup. */
static void test_late_and_unknown(void **state)
{
	(void)state;
	struct world_rows r;
	struct world *w = vm_world(&r);
	fill(r.state, 100, 199, 0);
	fill(r.tid, 100, 199, 5);
	fill(r.state, 140, 159, 2);
	fill(r.thread, 110, 179, THREAD_BLOCKED);
	fill(r.vcpu, 110, 179, VCPU_IDLE);
	fill(r.host, 110, 179, THREAD_BLOCKED);
	fill(r.vcpu, 150, 169, VCPU_WAKING);
	fill(r.host, 150, 169, THREAD_PREEMPTED);
	fill(r.host, 170, 179, THREAD_RUNNING);
	world_close(w);
	struct requests all = read_all(w);
	assert_int_equal(all.len, 1);
	assert_int_equal(all.row[0].unknown, 20);
	assert_int_equal(all.row[0].high, 20 + 10);
	requests_release(&all);
	world_free(w);
}

/* What is not known cannot be ruled out: it is in the upper bound, and counted. */
static void test_unknown(void **state)
{
	(void)state;
	struct world_rows r;
	struct world *w = vm_world(&r);
	fill(r.state, 100, 199, 0);
	fill(r.tid, 100, 199, 5);
	fill(r.vcpu, 110, 119, VCPU_UNKNOWN);
	fill(r.thread, 130, 139, THREAD_UNKNOWN);
	fill(r.cpu, 150, 154, HISTORY_NULL);
	fill(r.tid, 160, 162, 4711);
	fill(r.state, 180, 183, 2);
	world_close(w);
	struct requests all = read_all(w);
	assert_int_equal(all.len, 1);
	assert_int_equal(all.row[0].low, 0);
	assert_int_equal(all.row[0].unknown, 10 + 10 + 5 + 3 + 4);
	assert_int_equal(all.row[0].high, all.row[0].unknown);
	assert_null(all.row[0].culprit);
	requests_release(&all);
	world_free(w);
}

/* Requests that the trace does not hold whole: begun before it (first heard of yielded, or by a resume), or the
 * machine's trace ends with them (its threads end too).  One whose begin is the first thing in the trace is whole. */
static void test_cut(void **state)
{
	(void)state;
	struct world_rows r;
	struct world *w = vm_world(&r);
	int64_t *s = row_add(w, SET_REQUEST, "/Requests/A/8/State"), *t = row_add(w, SET_INT, "/Requests/A/8/Thread");
	fill(r.state, 100, 119, 1);
	fill(r.state, 120, 149, 0);
	fill(r.state, 151, 169, 2);
	fill(r.state, 170, 199, 0);
	fill(r.tid, 100, 149, 5);
	fill(r.tid, 151, 199, 5);
	fill(s, 250, 299, 0);
	fill(t, 250, 299, 5);
	fill(r.thread, 300, SPAN - 1, HISTORY_NULL);
	fill(row_add(w, SET_REQUEST, "/Requests/A/9/State"), 0, 49, 0);
	fill(row_add(w, SET_REQUEST, "/Requests/A/10/State"), 0, 49, 1);
	fill(row_add(w, SET_REQUEST, "/Requests/A/11/State"), 0, 49, 2);
	world_close(w);
	struct requests all = read_all(w);
	assert_int_equal(all.len, 1);
	assert_string_equal(all.row[0].id, "9");
	assert_int_equal(all.row[0].start, 0);
	assert_int_equal(all.cut, 5);
	requests_release(&all);
	world_free(w);
}

/* One whose server thread was gone before the answer was: somebody else gave it, and it is whole. */
static void test_answered_for(void **state)
{
	(void)state;
	struct world_rows r;
	struct world *w = vm_world(&r);
	fill(r.state, 100, 199, 0);
	fill(r.tid, 100, 199, 5);
	fill(r.thread, 150, SPAN - 1, HISTORY_NULL);
	world_close(w);
	struct requests all = read_all(w);
	assert_int_equal(all.len, 1);
	assert_int_equal(all.cut, 0);
	requests_release(&all);
	world_free(w);
}

/* ---- Random histories against brute force ------------------------------------------------------------------- */

static unsigned next(uint64_t *seed, unsigned n)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(*seed >> 33) % n;
}

/* Constant stretches of 1 .. longest ns with values from `choice`. */
static void scribble(uint64_t *seed, int64_t *v, int from, int to, unsigned longest, const int64_t *choice, unsigned n)
{
	while (from <= to) {
		int end = from + (int)next(seed, longest);
		fill(v, from, end < to ? end : to, choice[next(seed, n)]);
		from = end + 1;
	}
}

static const int64_t any_vcpu[] = { 0, 1, 2, 2, 3, 4, 4, 5, 6, HISTORY_NULL }, any_thread[] = { 0, 1, 1, 2, 3, 4, 4 },
                     any_cpu[] = { 0, 0, 1, 2, HISTORY_NULL }, any_request[] = { 0, 0, 1, 1, 2 };

static bool is_out(int64_t v)
{
	return v == VCPU_PREEMPTED || v == VCPU_HOST_BLOCKED || v == VCPU_WAKING;
}

struct truth {
	int64_t low, high, unknown, executing;
	struct request_features f;
};

/* ns by ns, straight from the definition.  vcpu[2], host: of the two vCPUs. */
static struct truth brute_vm(int64_t *const vcpu[2], int64_t *const host[2], const struct world_rows *r, int start,
                             int end)
{
	struct truth q = { 0 };
	for (int t = start; t <= end; t++) {
		q.executing += r->state[t] == 0;
		if (r->state[t] == 2 || r->thread[t] == THREAD_UNKNOWN) {
			q.unknown++;
			continue;
		}
		bool asleep = r->thread[t] == THREAD_BLOCKED;
		q.f.blocked += asleep;
		/* woken at t + 1, before the end */
		if (asleep && t < end && r->thread[t + 1] != THREAD_BLOCKED) {
			q.f.wakeups++;
			int64_t n = r->cpu[t];
			for (int b = t; b >= start && r->thread[b] == THREAD_BLOCKED && n >= 0 && n < 2; b--) {
				if (r->state[b] == 2)
					break;  /* counted as unknown already */
				if (host[n][b] != THREAD_RUNNING && host[n][b] != THREAD_PREEMPTED)
					break;
				q.high += host[n][b] == THREAD_PREEMPTED && vcpu[n][b] == VCPU_WAKING;
			}
		}
		if (asleep)
			continue;
		if (r->cpu[t] < 0 || r->cpu[t] > 1) {
			q.unknown++;
			continue;
		}
		const int64_t *v = vcpu[r->cpu[t]];
		if (v[t] == VCPU_UNKNOWN || v[t] == HISTORY_NULL) {
			q.unknown++;
		} else if (is_out(v[t])) {
			q.f.out_flight++;
			q.f.switches += !is_out(v[t - 1]);
			if (r->state[t] == 0 && r->thread[t] != THREAD_PREEMPTED)
				q.low++;
		} else {
			q.f.wait += r->thread[t] == THREAD_PREEMPTED;
			q.f.vmm += v[t] == VCPU_VMM;
			q.f.exits += v[t] == VCPU_VMM && (v[t - 1] == VCPU_RUNNING || v[t - 1] == VCPU_IDLE);
		}
	}
	q.f.out_own = q.low;
	q.high += q.f.out_flight + q.unknown;
	return q;
}

static void test_brute_force_vm(void **state)
{
	(void)state;
	uint64_t seed = 11;
	for (int round = 0; round < 150; round++) {
		struct world_rows r;
		struct world *w = vm_world(&r);
		int64_t *vcpu[2] = { r.vcpu, row_add(w, SET_VCPU, "/Virtual Machines/A/CPUs/CPU1/Status") };
		fill(row_add(w, SET_INT, "/Virtual Machines/A/CPUs/CPU1/Host Thread"), 0, SPAN - 1, 11);
		int64_t *host[2] = { r.host, row_add(w, SET_THREAD, "/Host/Threads/11/Status") };
		unsigned longest = 1 + next(&seed, 40);
		for (int i = 0; i < 2; i++) {
			scribble(&seed, vcpu[i], 0, SPAN - 1, longest, any_vcpu, COUNT(any_vcpu));
			scribble(&seed, host[i], 0, SPAN - 1, longest, any_thread, COUNT(any_thread));
		}
		scribble(&seed, r.thread, 0, SPAN - 1, longest, any_thread, COUNT(any_thread));
		scribble(&seed, r.cpu, 0, SPAN - 1, 2 * longest, any_cpu, COUNT(any_cpu));
		int start = 1 + (int)next(&seed, 100), end = start + (int)next(&seed, 250);
		scribble(&seed, r.state, start, end, 2 * longest, any_request, COUNT(any_request));
		r.state[start] = 0;
		fill(r.tid, start, end, 5);
		world_close(w);
		struct requests all = read_all(w);
		assert_int_equal(all.len, 1);
		const struct request *q = &all.row[0];
		struct truth want = brute_vm(vcpu, host, &r, start, end);
		assert_int_equal(q->executing, want.executing);
		assert_int_equal(q->low, want.low);
		assert_int_equal(q->unknown, want.unknown);
		assert_int_equal(q->high, want.high);
		assert_memory_equal(&q->feature, &want.f, sizeof want.f);
		assert_true(0 <= q->low && q->low <= q->high && q->high <= request_latency(q));
		requests_release(&all);
		world_free(w);
	}
}

/* Two threads 5 and 6 on the host's CPU0 and CPU1: of a container "web", as a machine of its own (0) or also among the
 * host's threads, as the model writes them (1); or of one plain process (2).  99 and 98 are somebody else's. */
static struct world *host_world(int layout, int64_t **thread, int64_t **cpu)
{
	struct world *w = mem_new(1, sizeof *w);
	const char *root = layout == 0 ? "/Containers/web" : "/Host";
	char path[80];
	snprintf(path, sizeof path, "%s/Threads/5/Status", root);
	*thread = row_add(w, SET_THREAD, path);
	snprintf(path, sizeof path, "%s/Threads/5/CPU", root);
	*cpu = row_add(w, SET_INT, path);
	snprintf(path, sizeof path, "%s/Threads/6/Status", root);
	fill(row_add(w, SET_THREAD, path), 0, SPAN - 1, THREAD_PREEMPTED);
	fill(row_add(w, SET_THREAD, "/Host/Threads/99/Status"), 0, SPAN - 1, THREAD_RUNNING);
	if (layout == 1) {
		fill(row_add(w, SET_THREAD, "/Containers/web/Threads/5/Status"), 0, SPAN - 1, THREAD_RUNNING);
		fill(row_add(w, SET_THREAD, "/Containers/web/Threads/6/Status"), 0, SPAN - 1, THREAD_RUNNING);
	}
	if (layout == 2) {
		fill(row_add(w, SET_INT, "/Host/Threads/5/PID"), 0, SPAN - 1, 500);
		fill(row_add(w, SET_INT, "/Host/Threads/6/PID"), 0, SPAN - 1, 500);
		fill(row_add(w, SET_INT, "/Host/Threads/99/PID"), 0, SPAN - 1, 99);
	}
	return w;
}

static void test_brute_force_host(void **state)
{
	(void)state;
	static const int64_t current[] = { 0, 5, 6, 99, 98, HISTORY_NULL };
	uint64_t seed = 12;
	for (int round = 0; round < 150; round++) {
		int64_t *thread, *cpu;
		int layout = round % 3;
		struct world *w = host_world(layout, &thread, &cpu);
		int64_t *now[2] = { row_add(w, SET_INT, "/Host/CPUs/CPU0/Current Thread"),
		                    row_add(w, SET_INT, "/Host/CPUs/CPU1/Current Thread") };
		int64_t *s = row_add(w, SET_REQUEST, layout ? "/Requests/host/7/State" : "/Requests/web/7/State");
		int64_t *tid = row_add(w, SET_INT, layout ? "/Requests/host/7/Thread" : "/Requests/web/7/Thread");
		unsigned longest = 1 + next(&seed, 30);
		scribble(&seed, thread, 0, SPAN - 1, longest, any_thread, COUNT(any_thread));
		scribble(&seed, cpu, 0, SPAN - 1, 2 * longest, any_cpu, 3);
		for (int i = 0; i < 2; i++)
			scribble(&seed, now[i], 0, SPAN - 1, longest, current, COUNT(current));
		int start = 1 + (int)next(&seed, 100), end = start + (int)next(&seed, 250);
		scribble(&seed, s, start, end, 2 * longest, any_request, 4);
		s[start] = 0;
		fill(tid, start, end, 5);
		struct truth want = { 0 };
		for (int t = start; t <= end; t++) {
			want.executing += s[t] == 0;
			want.unknown += thread[t] == THREAD_UNKNOWN;
			want.f.blocked += thread[t] == THREAD_BLOCKED;
			want.f.wakeups += thread[t] == THREAD_BLOCKED && t < end && thread[t + 1] != THREAD_BLOCKED;
			if (thread[t] != THREAD_PREEMPTED)
				continue;
			int64_t who = now[cpu[t]][t];
			want.f.switches += thread[t - 1] != THREAD_PREEMPTED;
			want.unknown += who == HISTORY_NULL;
			want.f.wait += who == 5 || who == 6;
			bool other = who == 0 || who == 99 || who == 98;
			want.f.out_flight += other;
			want.low += other && s[t] == 0;
		}
		want.f.out_own = want.low;
		want.high = want.f.out_flight + want.unknown;
		world_close(w);
		struct requests all = read_all(w);
		assert_int_equal(all.len, 1);
		const struct request *q = &all.row[0];
		assert_int_equal(q->low, want.low);
		assert_int_equal(q->unknown, want.unknown);
		assert_int_equal(q->high, want.high);
		assert_memory_equal(&q->feature, &want.f, sizeof want.f);
		if (layout == 2)
			assert_null(q->container);
		else
			assert_string_equal(q->container, "web");
		requests_release(&all);
		world_free(w);
	}
}

/* ---- Prediction for requests -------------------------------------------------------------------------------- */

static void test_predict(void **state)
{
	(void)state;
	enum { N = 120 };
	struct request row[N];
	memset(row, 0, sizeof row);
	double x[N], y[N];
	for (int i = 0; i < N; i++) {
		row[i].end = 20000000 - 1;
		row[i].feature.out_flight = i * 100000;
		x[i] = i * 1e5;
		y[i] = 0.95 * x[i] + (i % 7) * 1e4;
	}
	struct requests r = { row, N, 0, 0 };
	struct error err = ERROR_INIT;
	struct notes notes = { NULL, 0, 0 };
	const char *good[] = { "out_flight" }, *foreign[] = { "xen_cyc" };
	struct gp *g = gp_train(good, 1, x, y, N, NULL, &err);
	assert_int_equal(requests_predict(&r, g, &notes, &err), 0);
	assert_int_equal(notes.len, 0);
	for (int i = 0; i < N; i++) {
		assert_true(row[i].has_prediction);
		assert_true(row[i].predicted.mean >= 0 && row[i].predicted.mean <= 2e7);
		assert_true(row[i].predicted.low <= y[i] && y[i] <= row[i].predicted.high);
	}
	row[3].feature.out_flight = 19000000;
	assert_int_equal(requests_predict(&r, g, &notes, &err), 0);
	assert_int_equal(notes.len, 1);
	assert_non_null(strstr(notes.item[0].text, "1 of 120"));
	assert_non_null(strstr(notes.item[0].text, "out_flight"));
	notes_release(&notes);
	gp_free(g);
	g = gp_train(foreign, 1, x, y, N, NULL, &err);
	assert_int_equal(requests_predict(&r, g, &notes, &err), -1);
	assert_int_equal(err.status, STATUS_INPUT);
	gp_free(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bounds),
		cmocka_unit_test(test_late_wakeup), cmocka_unit_test(test_late_and_unknown), cmocka_unit_test(test_answered_for),
		cmocka_unit_test(test_unknown),
		cmocka_unit_test(test_cut),
		cmocka_unit_test(test_brute_force_vm),
		cmocka_unit_test(test_brute_force_host),
		cmocka_unit_test(test_predict),
	};
	return cmocka_run_group_tests_name("latency requests", tests, NULL, NULL);
}
