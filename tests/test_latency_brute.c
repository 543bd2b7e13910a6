/* latency/: measured bounds of requests against brute force, on random histories. */
#include "latency_world.h"

static unsigned random_below(uint64_t *seed, unsigned n)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(*seed >> 33) % n;
}

/* Fills [from, to] with constant intervals of 1 .. longest ns, with values from `choice`. */
static void fill_random(uint64_t *seed, int64_t *v, int from, int to, unsigned longest, const int64_t *choice, unsigned n)
{
	while (from <= to) {
		int end = from + (int)random_below(seed, longest);
		fill_values(v, from, end < to ? end : to, choice[random_below(seed, n)]);
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

/* Computes bounds and features ns by ns, straight from the definition; vcpu[], host[]: states of the two vCPUs and of
 * their host threads. */
static struct truth brute_vm(int64_t *const vcpu[2], int64_t *const host[2], const struct latency_rows *r, int start,
                             int end)
{
	struct truth q = { 0 };
	for (int t = start; t <= end; t++) {
		q.executing += r->state[t] == 0;
		if (r->state[t] == 2 || r->thread[t] == THREAD_UNKNOWN) {
			q.unknown++;
			continue;
		}
		bool blocked = r->thread[t] == THREAD_BLOCKED;
		q.f.blocked += blocked;
		/* woken at t + 1, before the end */
		if (blocked && t < end && r->thread[t + 1] != THREAD_BLOCKED) {
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
		if (blocked)
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
		struct latency_rows r;
		struct latency_world *w = vm_world(&r);
		int64_t *vcpu[2] = { r.vcpu, row_add(w, SET_VCPU, "/Virtual Machines/A/CPUs/CPU1/Status") };
		fill_values(row_add(w, SET_INT, "/Virtual Machines/A/CPUs/CPU1/Host Thread"), 0, WORLD_NS - 1, 11);
		int64_t *host[2] = { r.host, row_add(w, SET_THREAD, "/Host/Threads/11/Status") };
		unsigned longest = 1 + random_below(&seed, 40);
		for (int i = 0; i < 2; i++) {
			fill_random(&seed, vcpu[i], 0, WORLD_NS - 1, longest, any_vcpu, COUNT(any_vcpu));
			fill_random(&seed, host[i], 0, WORLD_NS - 1, longest, any_thread, COUNT(any_thread));
		}
		fill_random(&seed, r.thread, 0, WORLD_NS - 1, longest, any_thread, COUNT(any_thread));
		fill_random(&seed, r.cpu, 0, WORLD_NS - 1, 2 * longest, any_cpu, COUNT(any_cpu));
		int start = 1 + (int)random_below(&seed, 100), end = start + (int)random_below(&seed, 250);
		fill_random(&seed, r.state, start, end, 2 * longest, any_request, COUNT(any_request));
		r.state[start] = 0;
		fill_values(r.tid, start, end, 5);
		world_open(w);
		struct requests all = read_requests(w);
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

/* Creates two threads 5 and 6 on the host's CPU0 and CPU1. layout 0: of a container "web", which is a machine of its
 * own; 1: also among the host's threads, as the model writes them; 2: of one plain process. Threads 98 and 99 belong to
 * other processes. */
static struct latency_world *host_world(int layout, int64_t **thread, int64_t **cpu)
{
	struct latency_world *w = mem_new(1, sizeof *w);
	const char *root = layout == 0 ? "/Containers/web" : "/Host";
	char path[80];
	snprintf(path, sizeof path, "%s/Threads/5/Status", root);
	*thread = row_add(w, SET_THREAD, path);
	snprintf(path, sizeof path, "%s/Threads/5/CPU", root);
	*cpu = row_add(w, SET_INT, path);
	snprintf(path, sizeof path, "%s/Threads/6/Status", root);
	fill_values(row_add(w, SET_THREAD, path), 0, WORLD_NS - 1, THREAD_PREEMPTED);
	fill_values(row_add(w, SET_THREAD, "/Host/Threads/99/Status"), 0, WORLD_NS - 1, THREAD_RUNNING);
	if (layout == 1) {
		fill_values(row_add(w, SET_THREAD, "/Containers/web/Threads/5/Status"), 0, WORLD_NS - 1, THREAD_RUNNING);
		fill_values(row_add(w, SET_THREAD, "/Containers/web/Threads/6/Status"), 0, WORLD_NS - 1, THREAD_RUNNING);
	}
	if (layout == 2) {
		fill_values(row_add(w, SET_INT, "/Host/Threads/5/PID"), 0, WORLD_NS - 1, 500);
		fill_values(row_add(w, SET_INT, "/Host/Threads/6/PID"), 0, WORLD_NS - 1, 500);
		fill_values(row_add(w, SET_INT, "/Host/Threads/99/PID"), 0, WORLD_NS - 1, 99);
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
		struct latency_world *w = host_world(layout, &thread, &cpu);
		int64_t *now[2] = { row_add(w, SET_INT, "/Host/CPUs/CPU0/Current Thread"),
		                    row_add(w, SET_INT, "/Host/CPUs/CPU1/Current Thread") };
		int64_t *s = row_add(w, SET_REQUEST, layout ? "/Requests/host/7/State" : "/Requests/web/7/State");
		int64_t *tid = row_add(w, SET_INT, layout ? "/Requests/host/7/Thread" : "/Requests/web/7/Thread");
		unsigned longest = 1 + random_below(&seed, 30);
		fill_random(&seed, thread, 0, WORLD_NS - 1, longest, any_thread, COUNT(any_thread));
		fill_random(&seed, cpu, 0, WORLD_NS - 1, 2 * longest, any_cpu, 3);
		for (int i = 0; i < 2; i++)
			fill_random(&seed, now[i], 0, WORLD_NS - 1, longest, current, COUNT(current));
		int start = 1 + (int)random_below(&seed, 100), end = start + (int)random_below(&seed, 250);
		fill_random(&seed, s, start, end, 2 * longest, any_request, 4);
		s[start] = 0;
		fill_values(tid, start, end, 5);
		struct truth want = { 0 };
		for (int t = start; t <= end; t++) {
			want.executing += s[t] == 0;
			want.unknown += thread[t] == THREAD_UNKNOWN;
			want.f.blocked += thread[t] == THREAD_BLOCKED;
			want.f.wakeups += thread[t] == THREAD_BLOCKED && t < end && thread[t + 1] != THREAD_BLOCKED;
			if (thread[t] != THREAD_PREEMPTED)
				continue;
			int64_t running = now[cpu[t]][t];
			want.f.switches += thread[t - 1] != THREAD_PREEMPTED;
			want.unknown += running == HISTORY_NULL;
			want.f.wait += running == 5 || running == 6;
			bool other = running == 0 || running == 99 || running == 98;
			want.f.out_flight += other;
			want.low += other && s[t] == 0;
		}
		want.f.out_own = want.low;
		want.high = want.f.out_flight + want.unknown;
		world_open(w);
		struct requests all = read_requests(w);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_brute_force_vm), cmocka_unit_test(test_brute_force_host),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
