/* Live collection without BPF, from the /proc of a simulated host: threads that are pinned to CPUs take turns, some of them in
 * control groups with a quota. What each thread ran and waited, whose quota it was, and what others took from it is known.
 * Times must be equal; a culprit may have no more than it took, and the simulator tells who that was. */
#include "test.h"

#include <ftw.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/number.h"
#include "live/live.h"
#include "live/machine_names.h"

#define CPUS 2
#define PROCESSES 7
#define THREADS 14
#define ROUNDS 15
#define ROUND_NS (50 * NS_PER_MS)
#define GROUPS 3

/* Group 2 is below group 1. */
static const char *const group_path[GROUPS] = { "/batch", "/web", "/web/php" };

static struct thread {
	int pid, tid, cpu, group;       /* group: -1: none */
	int start;                      /* differs from that of an earlier thread of this TID */
	int64_t ran, waited;            /* since the start */
	unsigned sleeps;
} thread[THREADS];
static int64_t idle[CPUS], quota[GROUPS], took[THREADS][THREADS], named;
static int prompt;  /* rounds after which the sample was taken soon */
static char root[128];
static unsigned cpus;

static unsigned random_below(unsigned n)
{
	static uint64_t state = 6301;
	state = state * 6364136223846793005u + 1442695040888963407u;
	return (unsigned)(state >> 33) % n;
}

static void put(const char *name, const char *text)
{
	char path[512];
	snprintf(path, sizeof path, "%s/%s", root, name);
	for (char *at = strchr(path + strlen(root) + 1, '/'); at; at = strchr(at + 1, '/')) {
		*at = '\0';
		mkdir(path, 0755);
		*at = '/';
	}
	FILE *f = fopen(path, "w");
	assert_non_null(f);
	fputs(text, f);
	assert_int_equal(fclose(f), 0);
}

static void put_thread(const struct thread *t)
{
	char name[128], text[512];
	snprintf(name, sizeof name, "proc/%d/task/%d/schedstat", t->pid, t->tid);
	snprintf(text, sizeof text, "%lld %lld 1\n", (long long)t->ran, (long long)t->waited);
	put(name, text);
	snprintf(name, sizeof name, "proc/%d/task/%d/stat", t->pid, t->tid);
	snprintf(text, sizeof text, "%d (p%d) R 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 1 0 %d 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 17 %d 0 0 0 0 0\n",
	         t->tid, t->pid, t->start, t->cpu);
	put(name, text);
	snprintf(name, sizeof name, "proc/%d/task/%d/sched", t->pid, t->tid);
	snprintf(text, sizeof text, "p (1, #threads: 1)\nse.nr_migrations : 3\nnr_voluntary_switches : %u\n", t->sleeps);
	put(name, text);
}

static void put_host(void)
{
	char name[128], text[512];
	size_t n = (size_t)snprintf(text, sizeof text, "cpu 0 0 0 0 0 0 0 0 0 0\n");
	for (unsigned cpu = 0; cpu < cpus; cpu++)
		n += (size_t)snprintf(text + n, sizeof text - n, "cpu%u 0 0 0 %lld 0 0 0 0 0 0\n", cpu,
		                      (long long)(idle[cpu] / (NS_PER_S / sysconf(_SC_CLK_TCK))));
	put("proc/stat", text);
	for (int g = 0; g < GROUPS; g++) {
		snprintf(name, sizeof name, "sys/fs/cgroup%s/cpu.stat", group_path[g]);
		snprintf(text, sizeof text, "usage_usec 5\nnr_throttled 1\nthrottled_usec %lld\n", (long long)(quota[g] / 1000));
		put(name, text);
	}
	for (int i = 0; i < THREADS; i++)
		put_thread(&thread[i]);
}

static void make_host(void)
{
	snprintf(root, sizeof root, "%s/stealscope-test-proc-XXXXXX", getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
	assert_non_null(mkdtemp(root));
	cpus = sysconf(_SC_NPROCESSORS_CONF) > 1 ? CPUS : 1;
	for (int i = 0; i < THREADS; i++) {
		char name[128], text[128];
		const int process = i % PROCESSES;
		struct thread *t = &thread[i];
		*t = (struct thread){ .pid = 100 * (process + 1), .cpu = (int)random_below(cpus), .group = process < 5 ? process % 4 - 1 : -1 };
		t->tid = t->pid + i / PROCESSES;
		t->start = 4000 + t->tid;
		snprintf(name, sizeof name, "proc/%d/task/%d/cgroup", t->pid, t->tid);
		snprintf(text, sizeof text, "0::%s\n", t->group < 0 ? "/" : group_path[t->group]);
		put(name, text);
	}
	put_host();
}

/* The threads of each CPU are all runnable at the start of the round, and run one after the other. */
static void advance(int64_t ns)
{
	memset(took, 0, sizeof took);
	for (unsigned cpu = 0; cpu < cpus; cpu++) {
		int order[THREADS], n = 0;
		for (int i = 0; i < THREADS; i++)
			if (thread[i].cpu == (int)cpu)
				order[n++] = i;
		int64_t now = 0;
		for (int left = n; left; left--) {
			const unsigned at = random_below((unsigned)left);
			const int i = order[at];
			order[at] = order[left - 1];
			order[left - 1] = i;
			if (random_below(4) == 0)
				continue;  /* it sleeps */
			for (int k = left; k < n; k++)
				took[i][order[k]] = thread[order[k]].ran;  /* now minus before, below */
			const int64_t ran = left == 1 && random_below(2) ? ns - now : (ns - now) * random_below(90) / 100;
			thread[i].waited += now;
			thread[i].ran += ran;
			thread[i].sleeps++;
			now += ran;
		}
		idle[cpu] += ns - now;
	}
	for (int g = 0; g < GROUPS; g++)
		quota[g] += random_below(3) ? 0 : 1000 * (int64_t)random_below((unsigned)(ns / 1000));
}

static int thread_index(int tid)
{
	for (int i = 0; i < THREADS; i++)
		if (thread[i].tid == tid)
			return i;
	fail_msg("no thread %d", tid);
	return -1;
}

static bool is_below(int group, int above)
{
	return group >= 0 && strncmp(group_path[group], group_path[above], strlen(group_path[above])) == 0;
}

/* What quotas took from thread i: each group's throttled time is divided by the demand of its threads. before: the values
 * before the round. */
static int64_t throttled_of(int i, const struct thread *before, const int64_t *quota_before)
{
	double most = 0;
	const double own = (double)(thread[i].ran - before[i].ran + thread[i].waited - before[i].waited);
	for (int g = 0; g < GROUPS; g++) {
		double demand = 0;
		for (int k = 0; k < THREADS; k++)
			if (is_below(thread[k].group, g))
				demand += (double)(thread[k].ran - before[k].ran + thread[k].waited - before[k].waited);
		if (is_below(thread[i].group, g) && demand > 0 && (double)(quota[g] - quota_before[g]) * own / demand > most)
			most = (double)(quota[g] - quota_before[g]) * own / demand;
	}
	return min64((int64_t)most, thread[i].waited - before[i].waited);
}

static void check_pairs(const struct live_sample *s)
{
	for (size_t v = 0; v < s->vcpus; v++) {
		const int victim = thread_index(s->vcpu[v].tid);
		int64_t sum = 0;
		for (size_t p = 0; p < s->pairs; p++) {
			const struct live_culprit *c = &s->culprit[s->pair[p].culprit];
			if (s->pair[p].vcpu != (int32_t)v)
				continue;
			sum += s->pair[p].ns;
			if (c->kind == LIVE_NOBODY)
				continue;
			int64_t truth = 0;
			for (int k = 0; k < THREADS; k++)
				if (c->kind == LIVE_PROCESS ? thread[k].pid == c->pid : thread[k].tid == c->pid)
					truth += took[victim][k];
			char name[64];
			if (c->kind == LIVE_PROCESS)
				snprintf(name, sizeof name, "host/%d p%d", c->pid, c->pid);
			else
				snprintf(name, sizeof name, "p%d/%d", thread[thread_index(c->pid)].pid, c->pid);
			assert_string_equal(c->name, name);
			assert_in_range(s->pair[p].ns, 1, truth);
			named += s->pair[p].ns;
		}
		assert_int_equal(sum, s->vcpu[v].ns.stolen);
	}
}

static void run_rounds(struct live *l, bool by_process)
{
	for (int round = 0; round < ROUNDS; round++) {
		struct live_sample s;
		struct thread before[THREADS];
		int64_t quota_before[GROUPS];
		const int64_t begin = now_ns();
		memcpy(before, thread, sizeof before);
		memcpy(quota_before, quota, sizeof quota);
		nanosleep(&(struct timespec){ .tv_nsec = ROUND_NS }, NULL);
		const int64_t round_ns = now_ns() - begin;
		advance(round_ns);
		struct thread *reused = round % 4 == 3 ? &thread[random_below(THREADS)] : NULL;
		if (reused) {  /* it has ended, and its TID is that of a new thread */
			reused->start++;
			reused->ran = reused->waited = random_below(1000);
			reused->sleeps = 0;
		}
		for (int i = 0; i < THREADS; i++)
			for (int k = 0; k < THREADS; k++)
				took[i][k] = took[i][k] ? thread[k].ran - before[k].ran : 0;
		put_host();
		live_take(l, &s);
		assert_int_equal(s.by_process, by_process);
		assert_int_equal(s.vcpus, by_process ? PROCESSES : 8);
		for (size_t v = 0; v < s.vcpus; v++) {
			const struct live_times ns = s.vcpu[v].ns;
			int64_t ran = 0, lost = 0, throttled = 0;
			for (int i = 0; i < THREADS; i++) {
				if (by_process ? thread[i].pid != s.vcpu[v].pid : thread[i].tid != s.vcpu[v].tid)
					continue;
				ran += thread[i].ran - before[i].ran;
				lost += thread[i].waited - before[i].waited;
				throttled += throttled_of(i, before, quota_before);
			}
			assert_true(ns.ran >= 0 && ns.stolen >= 0 && ns.throttled >= 0 && ns.blocked >= 0);
			if (reused && (reused->tid == s.vcpu[v].tid || (by_process && reused->pid == s.vcpu[v].pid)))
				continue;  /* what the old one did at the end is not known */
			assert_int_equal(ns.ran, ran);
			assert_int_equal(ns.stolen + ns.throttled, lost);
			if (by_process && !reused)  /* all threads of all groups are victims, so that the demand is known */
				assert_in_range(ns.throttled - throttled + 50, 0, 100);
			else if (!by_process)
				assert_int_equal(ns.ran + ns.stolen + ns.throttled + ns.blocked, s.period);
		}
		if (!by_process && !reused)
			check_pairs(&s);
		prompt += !by_process && s.period < round_ns + round_ns / 5;
		live_sample_release(&s);
	}
}

static int remove_file(const char *path, const struct stat *st, int kind, struct FTW *at)
{
	(void)st, (void)kind, (void)at;
	return remove(path);
}

static void test_host(void **state)
{
	static const char *const pid[] = { "100", "300", "600", "700" };
	struct error err = ERROR_INIT;
	(void)state;
	make_host();
	for (int mode = 0; mode < 2; mode++) {
		struct live *l = live_open(&(struct live_request){ .root = root, .without_bpf = true, .pid = mode ? NULL : pid,
		                                                   .pids = mode ? 0 : COUNT(pid) }, &err);
		assert_non_null(l);
		run_rounds(l, mode);
		live_close(l);
	}
	print_message("%lld ms have a name, %d of %d samples were prompt\n", (long long)(named / NS_PER_MS), prompt, ROUNDS);
	assert_true(named > 0 || prompt < ROUNDS / 2);
	nftw(root, remove_file, 16, FTW_DEPTH | FTW_PHYS);
}

/* A group is said to have ended only where others have names. */
static void test_groups(void **state)
{
	char name[2][64];
	(void)state;
	snprintf(root, sizeof root, "/tmp/stealscope-test-groups-XXXXXX");
	assert_non_null(mkdtemp(root));
	for (int mounted = 0; mounted < 2; mounted++) {
		if (mounted)
			put("sys/fs/cgroup/a/cpu.stat", "");
		struct machine_names *n = machine_names_new(root);
		snprintf(name[mounted], sizeof *name, "%s", machine_names_of_group(n, UINT64_MAX));
		machine_names_free(n);
	}
	assert_string_not_equal(name[0], name[1]);
	nftw(root, remove_file, 16, FTW_DEPTH | FTW_PHYS);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_groups), cmocka_unit_test(test_host) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
