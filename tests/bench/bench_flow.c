/* Benchmarks of query/ on synthetic histories. Usage: bench_flow [millions of intervals for the steal matrix]
 *
 * 1. flow of a guest thread with a vCPU that is preempted again and again (half of the switches on the host, half inside
 *    the guest), and critical path of a host thread; both for two lengths: a constant cost per switch means linear time;
 * 2. steal matrix, list of gaps and steal time of one VM, over eight machines on eight pCPUs. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "query/query.h"
#include "query_answers.h"

#define PCPUS 8
#define VMS 7
#define VCPUS 4               /* per VM */
#define RUNNABLE 5            /* per pCPU: vCPUs, then one task of the host */

static struct error err = ERROR_INIT;

static void die(void)
{
	fprintf(stderr, "bench_flow: %s\n", err.text);
	exit(1);
}

static double clock_ms(clockid_t id)
{
	struct timespec ts;
	clock_gettime(id, &ts);
	return (double)ts.tv_sec * 1e3 + (double)ts.tv_nsec / 1e6;
}

/* Wall time, and CPU time of all threads, ms. CPU time is the more useful one on a machine with other load. */
struct stopwatch { double wall, cpu; };

static struct stopwatch start_watch(void)
{
	return (struct stopwatch){ clock_ms(CLOCK_MONOTONIC), clock_ms(CLOCK_PROCESS_CPUTIME_ID) };
}

static struct stopwatch stop_watch(struct stopwatch w)
{
	return (struct stopwatch){ clock_ms(CLOCK_MONOTONIC) - w.wall, clock_ms(CLOCK_PROCESS_CPUTIME_ID) - w.cpu };
}

static uint64_t random_next(uint64_t *s)
{
	uint64_t z = *s += 0x9E3779B97F4A7C15ULL;
	z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ULL;
	z = (z ^ (z >> 27)) * 0x94D049BB133111EBULL;
	return z ^ (z >> 31);
}

static uint32_t declare_attribute(struct history_builder *b, enum history_type type, unsigned set, const char *fmt, int n,
                                  int m)
{
	char path[128];
	snprintf(path, sizeof path, fmt, n, m);
	uint32_t a = history_attribute(b, path, type, set, &err);
	if (a == HISTORY_NONE)
		die();
	return a;
}

static void put_value(struct history_builder *b, int64_t t, uint32_t a, int64_t v)
{
	if (history_set(b, t, a, v, &err) < 0)
		die();
}

static void put_text(struct history_builder *b, int64_t t, uint32_t a, const char *v)
{
	if (history_set_string(b, t, a, v, &err) < 0)
		die();
}

static void put_ref(struct history_builder *b, int64_t t, uint32_t a, const char *name, uint32_t number)
{
	if (history_set(b, t, a, history_ref(history_text(b, name, &err), number), &err) < 0)
		die();
}

struct file {
	char path[64];
	struct history *h;
	struct catalog catalog;
};

static struct history_builder *file_begin(struct file *f)
{
	snprintf(f->path, sizeof f->path, "/tmp/bench-flow-XXXXXX");
	int fd = mkstemp(f->path);
	if (fd < 0)
		exit(4);
	close(fd);
	struct history_builder *b = history_create(f->path, NULL, &err);
	if (!b)
		die();
	return b;
}

static void file_open(struct file *f, struct history_builder *b, int64_t end)
{
	if (history_finish(b, 0, end, &err) < 0 || !(f->h = history_open(f->path, &err)) ||
	    catalog_open(&f->catalog, f->h, &err) < 0)
		die();
}

static void file_close(struct file *f)
{
	catalog_release(&f->catalog);
	history_close(f->h);
	unlink(f->path);
}

static void bench_thread(int64_t switches)
{
	struct file f;
	uint64_t seed = 7;
	struct history_builder *b = file_begin(&f);
	unsigned vs = history_state_set(b, "vcpu", vcpu_state_name, VCPU_STATE_COUNT);
	unsigned ts = history_state_set(b, "thread", thread_state_name, THREAD_STATE_COUNT);
	uint32_t status = declare_attribute(b, HISTORY_STATE, vs, "/Virtual Machines/A/CPUs/CPU%d/Status", 0, 0);
	uint32_t current = declare_attribute(b, HISTORY_INT, 0, "/Virtual Machines/A/CPUs/CPU%d/Current Thread", 0, 0);
	uint32_t pcpu = declare_attribute(b, HISTORY_INT, 0, "/Virtual Machines/A/CPUs/CPU%d/pCPU", 0, 0);
	uint32_t a = declare_attribute(b, HISTORY_STATE, ts, "/Virtual Machines/A/Threads/%d/Status", 5, 0);
	uint32_t h = declare_attribute(b, HISTORY_STATE, ts, "/Host/Threads/%d/Status", 100, 0);
	uint32_t on = declare_attribute(b, HISTORY_INT, 0, "/Host/CPUs/CPU%d/Current Thread", 0, 0);
	uint32_t irq = declare_attribute(b, HISTORY_STRING, 0, "/Host/CPUs/CPU%d/Interrupt", 0, 0);
	put_ref(b, 0, declare_attribute(b, HISTORY_REF, 0, "/Host/Threads/%d/VM", 100, 0), "A", 0);
	put_text(b, 0, declare_attribute(b, HISTORY_STRING, 0, "/Host/Threads/%d/Name", 42, 0), "burnP6");
	put_text(b, 0, declare_attribute(b, HISTORY_STRING, 0, "/Virtual Machines/A/Threads/%d/Name", 5, 0), "alpha");
	put_text(b, 0, declare_attribute(b, HISTORY_STRING, 0, "/Virtual Machines/A/Threads/%d/Name", 6, 0), "beta");
	put_value(b, 0, declare_attribute(b, HISTORY_INT, 0, "/Virtual Machines/A/Threads/%d/CPU", 5, 0), 0);
	put_value(b, 0, pcpu, 0);
	int64_t t = 0;
	for (int64_t i = 0; i < switches / 4; i++) {
		int64_t d = 1000 + (int64_t)(random_next(&seed) % 1000000);
		put_value(b, t, status, VCPU_RUNNING);
		put_value(b, t, current, 5);
		put_value(b, t, a, THREAD_RUNNING);
		put_value(b, t, h, THREAD_RUNNING);
		put_value(b, t, on, 100);
		put_value(b, t + d, current, 6);
		put_value(b, t + d, a, THREAD_PREEMPTED);
		t += 2 * d;
		put_value(b, t, current, 5);
		put_value(b, t, a, THREAD_RUNNING);
		t += d;
		put_value(b, t, status, VCPU_VMM);
		put_value(b, t, a, THREAD_VIRT_PREEMPTED);
		if (i % 4 == 0) {
			put_text(b, t + 10, irq, "irq/27-virtio0");
			put_value(b, t + 50, irq, HISTORY_NULL);
		}
		put_value(b, t + 100, status, VCPU_PREEMPTED);
		put_value(b, t + 100, h, THREAD_PREEMPTED);
		put_value(b, t + 100, on, 42);
		t += 2 * d + 100;
		put_value(b, t, on, 100);
		put_value(b, t, h, THREAD_RUNNING);
		put_value(b, t, status, VCPU_VMM);
		t += 100;
	}
	file_open(&f, b, t);
	struct target s;
	if (catalog_parse_target(&f.catalog, "A/5", &s, &err) < 0)
		die();
	struct stopwatch best = { 1e9, 1e9 };
	struct flow flow = { 0 };
	for (int i = 0; i < 5; i++) {
		flow_release(&flow);
		struct stopwatch start = start_watch();
		if (query_answer(flow_open(&f.catalog, &s, INT64_MIN, INT64_MAX, NULL, &err), &flow, &err) < 0)
			die();
		struct stopwatch elapsed = stop_watch(start);
		best.wall = elapsed.wall < best.wall ? elapsed.wall : best.wall;
		best.cpu = elapsed.cpu < best.cpu ? elapsed.cpu : best.cpu;
	}
	printf("flow of a thread with %" PRId64 " switches: %.1f ms (CPU %.1f ms, %.0f ns per switch), %zu intervals\n",
	       switches, best.wall, best.cpu, best.cpu * 1e6 / (double)switches, flow.intervals);
	flow_release(&flow);
	file_close(&f);
}

/* Two threads of the host that wait for each other, each on its own CPU; a CPU hog preempts both once per round. */
static void bench_path(int64_t switches)
{
	enum { FIRST = 100, SECOND = 101, HOG = 42 };
	struct file f;
	uint64_t seed = 7;
	uint32_t status[2], on[2], by[2];
	struct history_builder *b = file_begin(&f);
	unsigned ts = history_state_set(b, "thread", thread_state_name, THREAD_STATE_COUNT);
	for (int i = 0; i < 2; i++) {
		status[i] = declare_attribute(b, HISTORY_STATE, ts, "/Host/Threads/%d/Status", FIRST + i, 0);
		by[i] = declare_attribute(b, HISTORY_REF, 0, "/Host/Threads/%d/Woken By", FIRST + i, 0);
		on[i] = declare_attribute(b, HISTORY_INT, 0, "/Host/CPUs/CPU%d/Current Thread", i, 0);
		put_value(b, 0, declare_attribute(b, HISTORY_INT, 0, "/Host/Threads/%d/CPU", FIRST + i, 0), i);
		put_text(b, 0, declare_attribute(b, HISTORY_STRING, 0, "/Host/Threads/%d/Woken In", FIRST + i, 0), "thread");
	}
	int64_t t = 0;
	for (int64_t i = 0; i < switches / 6; i++)
		for (int k = 0; k < 2; k++) {
			int64_t d = 1000 + (int64_t)(random_next(&seed) % 1000000);
			put_value(b, t, status[!k], THREAD_BLOCKED);
			put_value(b, t, on[!k], 0);
			put_value(b, t, status[k], THREAD_RUNNING);
			put_value(b, t, on[k], FIRST + k);
			put_ref(b, t, by[k], "host", FIRST + !k);
			put_value(b, t + d, status[k], THREAD_PREEMPTED);
			put_value(b, t + d, on[k], HOG);
			put_value(b, t + 2 * d, status[k], THREAD_RUNNING);
			put_value(b, t + 2 * d, on[k], FIRST + k);
			t += 3 * d;
		}
	file_open(&f, b, t);
	struct target s;
	if (catalog_parse_target(&f.catalog, "host/100", &s, &err) < 0)
		die();
	struct stopwatch best = { 1e9, 1e9 };
	struct path path = { 0 };
	for (int i = 0; i < 5; i++) {
		path_release(&path);
		struct stopwatch start = start_watch();
		if (query_answer(path_open(&f.catalog, &s, INT64_MIN, INT64_MAX, &err), &path, &err) < 0)
			die();
		struct stopwatch elapsed = stop_watch(start);
		best.wall = elapsed.wall < best.wall ? elapsed.wall : best.wall;
		best.cpu = elapsed.cpu < best.cpu ? elapsed.cpu : best.cpu;
	}
	printf("path over %" PRId64 " switches: %.1f ms (CPU %.1f ms, %.0f ns per switch), %zu segments\n", switches,
	       best.wall, best.cpu, best.cpu * 1e6 / (double)switches, path.intervals);
	path_release(&path);
	file_close(&f);
}

struct runnable {
	uint32_t h, status, current, pcpu, thread[3];  /* attributes */
	int64_t host_tid, on;                          /* on: index of its current guest thread */
	bool is_vcpu;
};

/* Eight pCPUs; each switches between three or four vCPUs of different VMs and a task of the host. */
static void generate_intervals(struct history_builder *b, struct runnable run[PCPUS][RUNNABLE], uint64_t intervals,
                               int64_t *end)
{
	uint64_t seed = 42, made = 0;
	int64_t t = 0;
	uint32_t current[PCPUS];
	int on[PCPUS] = { 0 };
	for (int p = 0; p < PCPUS; p++) {
		current[p] = declare_attribute(b, HISTORY_INT, 0, "/Host/CPUs/CPU%d/Current Thread", p, 0);
		for (int i = 0; i < RUNNABLE; i++) {
			put_value(b, 0, run[p][i].h, THREAD_PREEMPTED);
			if (run[p][i].is_vcpu) {
				put_value(b, 0, run[p][i].pcpu, p);
				put_value(b, 0, run[p][i].status, VCPU_PREEMPTED);
			}
		}
	}
	while (made < intervals) {
		uint64_t r = random_next(&seed);
		int p = (int)(r % PCPUS), next = (int)(r >> 8) % RUNNABLE;
		next = next < 0 ? -next : next;
		struct runnable *out = &run[p][on[p]], *in = &run[p][next];
		t += 2000 + (int64_t)(r >> 40) % 100000;
		if (out->is_vcpu && (r >> 32) % 4 == 0) {  /* a switch inside the guest */
			put_value(b, t, out->thread[out->on], THREAD_PREEMPTED);
			out->on = (out->on + 1) % 3;
			put_value(b, t, out->thread[out->on], THREAD_RUNNING);
			put_value(b, t, out->current, 1 + out->host_tid * 4 + out->on);
			made += 3;
			continue;
		}
		if (next == on[p])
			continue;
		put_value(b, t, current[p], in->host_tid);
		put_value(b, t, out->h, THREAD_PREEMPTED);
		put_value(b, t, in->h, THREAD_RUNNING);
		made += 3;
		if (out->is_vcpu) {
			put_value(b, t, out->status, VCPU_PREEMPTED);
			put_value(b, t, out->thread[out->on], THREAD_VIRT_PREEMPTED);
			made += 2;
		}
		if (in->is_vcpu) {
			put_value(b, t, in->status, VCPU_VMM);
			put_value(b, t + 1000, in->status, VCPU_RUNNING);
			put_value(b, t + 1000, in->thread[in->on], THREAD_RUNNING);
			made += 3;
		}
		on[p] = next;
	}
	*end = t + 2000;
}

static void declare_runnables(struct history_builder *b, struct runnable run[PCPUS][RUNNABLE], unsigned vs, unsigned ts)
{
	int vcpu = 0;
	for (int i = 0; i < RUNNABLE; i++)
		for (int p = 0; p < PCPUS; p++) {
			struct runnable *r = &run[p][i];
			r->is_vcpu = i < RUNNABLE - 1 && vcpu < VMS * VCPUS;
			int vm = vcpu % VMS, n = vcpu / VMS;
			r->host_tid = 1000 + p * RUNNABLE + i;
			r->h = declare_attribute(b, HISTORY_STATE, ts, "/Host/Threads/%d/Status", (int)r->host_tid, 0);
			put_value(b, 0, declare_attribute(b, HISTORY_INT, 0, "/Host/Threads/%d/CPU", (int)r->host_tid, 0), p);
			if (!r->is_vcpu)
				continue;
			vcpu++;
			char text[32];
			snprintf(text, sizeof text, "vm%d", vm);
			put_ref(b, 0, declare_attribute(b, HISTORY_REF, 0, "/Host/Threads/%d/VM", (int)r->host_tid, 0), text,
			        (uint32_t)n);
			r->status = declare_attribute(b, HISTORY_STATE, vs, "/Virtual Machines/vm%d/CPUs/CPU%d/Status", vm, n);
			r->current = declare_attribute(b, HISTORY_INT, 0, "/Virtual Machines/vm%d/CPUs/CPU%d/Current Thread", vm, n);
			r->pcpu = declare_attribute(b, HISTORY_INT, 0, "/Virtual Machines/vm%d/CPUs/CPU%d/pCPU", vm, n);
			for (int k = 0; k < 3; k++) {
				int tid = 1 + (int)r->host_tid * 4 + k;
				r->thread[k] = declare_attribute(b, HISTORY_STATE, ts, "/Virtual Machines/vm%d/Threads/%d/Status", vm, tid);
				put_value(b, 0, declare_attribute(b, HISTORY_INT, 0, "/Virtual Machines/vm%d/Threads/%d/CPU", vm, tid), n);
			}
			put_value(b, 0, r->current, 1 + r->host_tid * 4);
		}
}

static void bench_steal(uint64_t intervals)
{
	static struct runnable run[PCPUS][RUNNABLE];
	struct file f;
	int64_t end;
	struct stopwatch start = start_watch();
	struct history_builder *b = file_begin(&f);
	unsigned vs = history_state_set(b, "vcpu", vcpu_state_name, VCPU_STATE_COUNT);
	unsigned ts = history_state_set(b, "thread", thread_state_name, THREAD_STATE_COUNT);
	declare_runnables(b, run, vs, ts);
	generate_intervals(b, run, intervals, &end);
	file_open(&f, b, end);
	printf("history of %" PRIu64 " intervals, %u machines, built in %.0f ms, %.0f MB\n", history_intervals(f.h),
	       f.catalog.machines, stop_watch(start).wall, (double)history_bytes(f.h) / 1e6);
	for (int by = STEAL_BY_MACHINE; by <= STEAL_BY_THREAD; by++) {
		struct steal s;
		start = start_watch();
		if (steal_matrix(&f.catalog, (enum steal_by)by, NULL, INT64_MIN, INT64_MAX, &s, &err) < 0)
			die();
		struct stopwatch elapsed = stop_watch(start);
		printf("steal by %s: %.0f ms (CPU %.0f ms), %zu cells\n", by == STEAL_BY_MACHINE ? "machine" : "thread",
		       elapsed.wall, elapsed.cpu, s.cells);
		steal_release(&s);
	}
	struct summary sum;
	start = start_watch();
	const struct summary_options all = { .from = INT64_MIN, .to = INT64_MAX, .gaps = true };
	if (query_answer(summary_open(&f.catalog, &all), &sum, &err) < 0)
		die();
	struct stopwatch elapsed = stop_watch(start);
	printf("summary with gaps: %.0f ms (CPU %.0f ms), %zu rows\n", elapsed.wall, elapsed.cpu, sum.rows);
	summary_release(&sum);
	struct gap_list l;
	struct gap_options o = { 0, end, 0, 100, false };
	start = start_watch();
	if (query_answer(gap_list_open(&f.catalog, NULL, &o), &l, &err) < 0)
		die();
	printf("the 100 longest of %" PRIu64 " gaps: %.0f ms (CPU %.0f ms)\n", l.all.count, stop_watch(start).wall,
	       stop_watch(start).cpu);
	gap_list_release(&l);
	struct target s = { TARGET_MACHINE, 1 };
	int64_t ns, n = 0;
	start = start_watch();
	for (; stop_watch(start).cpu < 100; n++)
		if (steal_time(&f.catalog, &s, end / 3 + n, end / 2, &ns, &err) < 0)
			die();
	printf("steal_time of a VM with %d vCPUs: %.2f us\n", VCPUS, stop_watch(start).cpu * 1e3 / (double)n);
	file_close(&f);
}

int main(int argc, char **argv)
{
	double millions = argc > 1 ? atof(argv[1]) : 10;
	bench_thread(100000);
	bench_thread(1000000);
	bench_path(100000);
	bench_path(1000000);
	bench_steal((uint64_t)(millions * 1e6));
	return 0;
}
