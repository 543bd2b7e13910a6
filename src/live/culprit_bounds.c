#include "live/culprit_bounds.h"

#include "base/base.h"

#define WAKEUP_NS 500000   /* longest time in which an idle pCPU begins to run a woken task */
#define NAMED_SHARE 10     /* a culprit is named from 1 / NAMED_SHARE of the stolen time on */

struct scanned_task {
	int32_t pid, tid;
	int cpu;
	uint64_t start, ran;               /* ran: ns since its start */
	uint64_t migrations, voluntary;    /* since its start: migrations, and switches because it slept */
	bool has_moves;                    /* the two counters are read */
	uint64_t gained, slept;            /* ran and voluntary since the last scan */
	bool stayed;                       /* on this pCPU since the last scan */
};

struct culprit_bounds {
	struct scanned_task *task;
	size_t len, cap;
	struct map by_tid;                 /* TID to index */
	int64_t scan_ns, last_scan_ns;     /* durations of the last two scans */
};

struct culprit_bounds *culprit_bounds_new(void)
{
	return mem_new(1, sizeof(struct culprit_bounds));
}

void culprit_bounds_free(struct culprit_bounds *b)
{
	if (!b)
		return;
	map_release(&b->by_tid);
	free(b->task);
	free(b);
}

/* ---- scan */

static bool read_counter(const char *text, const char *key, uint64_t *n)
{
	const char *at = strstr(text, key);
	at = at ? strchr(at, ':') : NULL;
	unsigned long long value;
	if (!at || sscanf(at + 1, "%llu", &value) != 1)
		return false;
	*n = value;
	return true;
}

static void read_moves(const char *root, struct scanned_task *t)
{
	char text[8192];
	const char *allowed;
	if (live_read(text, sizeof text, root, "/proc/%d/task/%d/sched", t->pid, t->tid)) {
		t->has_moves = read_counter(text, "\nse.nr_migrations", &t->migrations) &&
		               read_counter(text, "\nnr_voluntary_switches", &t->voluntary);
		return;
	}
	t->has_moves = live_read(text, sizeof text, root, "/proc/%d/task/%d/status", t->pid, t->tid) &&
	               (allowed = strstr(text, "\nCpus_allowed_list:")) != NULL &&
	               strcspn(allowed + 1, "\n") == strcspn(allowed + 1, ",-\n") &&
	               read_counter(text, "\nvoluntary_ctxt_switches", &t->voluntary);
}

/* A scan's arguments. */
struct task_scan { struct culprit_bounds *b; const struct culprit_bounds *last; const char *root; int32_t pid; };

static void scan_task(void *arg, int32_t tid)
{
	struct task_scan *s = arg;
	struct scanned_task t = { .pid = s->pid, .tid = tid };
	struct live_stat stat;
	uint64_t delayed;
	if (!live_read_stat(s->root, t.pid, tid, &stat) || !live_read_schedstat(s->root, t.pid, tid, &t.ran, &delayed))
		return;
	t.cpu = stat.cpu;
	t.start = stat.start;
	const uint64_t *at = map_find(&s->last->by_tid, (uint64_t)tid);
	const struct scanned_task *before = at ? &s->last->task[*at] : NULL;
	if (before && before->start == t.start)
		t.gained = t.ran - before->ran;
	else
		before = NULL;
	if (t.gained || !before)
		read_moves(s->root, &t);
	if (before && t.has_moves && before->has_moves) {
		t.slept = t.voluntary - before->voluntary;
		t.stayed = t.migrations == before->migrations && t.cpu == before->cpu;
	}
	*map_put(&s->b->by_tid, (uint64_t)tid, NULL) = s->b->len;
	*ARRAY_PUSH(s->b->task, s->b->len, s->b->cap) = t;
}

static void scan_process(void *arg, int32_t pid)
{
	struct task_scan *s = arg;
	char dir[64];
	s->pid = pid;
	snprintf(dir, sizeof dir, "/proc/%d/task", pid);
	live_each_number(s->root, dir, scan_task, s);
}

void culprit_bounds_scan(struct culprit_bounds *b, const char *root, int64_t began)
{
	struct culprit_bounds last = *b;
	struct task_scan s = { .b = b, .last = &last, .root = root };
	*b = (struct culprit_bounds){ .last_scan_ns = last.scan_ns };
	live_each_number(root, "/proc", scan_process, &s);
	b->scan_ns = now_ns() - began;
	map_release(&last.by_tid);
	free(last.task);
}

/* ---- bounds */

struct bound_group { u32 culprit; uint64_t ran; };

struct bound_search {
	const struct culprit_bounds *b;
	const struct live_sample *s;
	struct map victims;                /* TID to index */
	int64_t tick;
	struct bound_group *group;          /* culprits of one victim */
	size_t groups, groups_cap;
	struct bpf_pair *pair;
	size_t n, cap;
};

static void add_bound(struct bound_search *x, size_t victim, u32 culprit, int64_t ns)
{
	*ARRAY_PUSH(x->pair, x->n, x->cap) = (struct bpf_pair){ .key = { (u32)victim, culprit }, .value = { .ns = (u64)ns } };
}

/* Collects the run times on a victim's pCPU, by culprit. */
static void group_tasks(struct bound_search *x, const struct scanned_task *v)
{
	x->groups = 0;
	for (size_t i = 0; i < x->b->len; i++) {
		const struct scanned_task *t = &x->b->task[i];
		if (t == v || !t->stayed || !t->gained || t->cpu != v->cpu)
			continue;
		const uint64_t *at = map_find(&x->victims, (uint64_t)t->tid);
		const u32 culprit = at ? CULPRIT_VICTIM + (u32)*at : (u32)t->pid;
		size_t g = 0;
		while (g < x->groups && x->group[g].culprit != culprit)
			g++;
		if (g == x->groups)
			*ARRAY_PUSH(x->group, x->groups, x->groups_cap) = (struct bound_group){ .culprit = culprit };
		x->group[g].ran += t->gained;
	}
}

ORDER_BY(most_first, struct bound_group, FALLING(ran))

static void find_bounds(struct bound_search *x, size_t victim)
{
	const struct live_vcpu *u = &x->s->vcpu[victim];
	const uint64_t *at = map_find(&x->b->by_tid, (uint64_t)u->tid);
	const struct scanned_task *v = at ? &x->b->task[*at] : NULL;
	int64_t rest = u->ns.stolen;
	if (rest <= 0)
		return;
	if (v && v->stayed && v->cpu >= 0 && (size_t)v->cpu < x->s->cpus) {
		const int64_t skew = x->b->scan_ns + x->b->last_scan_ns;
		const int64_t idle = max64(x->s->cpu[v->cpu].idle - x->tick, 0);
		const int64_t occupied = x->s->period - u->ns.ran - idle;
		const int64_t waited = u->ns.stolen - (int64_t)min64((int64_t)v->slept * WAKEUP_NS, idle + 2 * x->tick);
		group_tasks(x, v);
		ARRAY_SORT(x->group, x->groups, most_first);
		for (size_t g = 0; g < x->groups; g++) {
			const int64_t bound = min64(waited + (int64_t)x->group[g].ran - occupied - skew, rest);
			if (bound * NAMED_SHARE < u->ns.stolen || bound <= 0)
				break;
			add_bound(x, victim, x->group[g].culprit, bound);
			rest -= bound;
		}
	}
	if (rest > 0)
		add_bound(x, victim, CULPRIT_UNKNOWN, rest);
}

struct bpf_pair *culprit_bounds_pairs(const struct culprit_bounds *b, const struct live_threads *t,
                                      const struct live_sample *s, int64_t tick, size_t *n)
{
	struct bound_search x = { .b = b, .s = s, .victims = MAP_INIT, .tick = tick };
	const size_t victims = t->len < LIVE_VICTIMS ? t->len : LIVE_VICTIMS;
	for (size_t i = 0; i < victims; i++)
		*map_put(&x.victims, (uint64_t)t->thread[i].tid, NULL) = i;
	for (size_t i = 0; i < victims; i++)
		find_bounds(&x, i);
	map_release(&x.victims);
	free(x.group);
	*n = x.n;
	return x.pair;
}
