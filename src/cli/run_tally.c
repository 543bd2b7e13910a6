#include "cli/run_tally.h"

#include <sys/prctl.h>
#include <sys/resource.h>

#include "base/base.h"
#include "cli/run_tree.h"

#define PERIOD_NS NS_PER_S     /* of a sample: the table of a period has a limit */
#define FLUSH_NS (NS_PER_S / 2)
#define POLL_NS (50 * NS_PER_MS)
#define POLL_SHARE 400         /* polls take 1 / POLL_SHARE of a CPU at most */

struct run_meter {
	struct live *live;         /* NULL: the tree is polled */
	struct run_tree *tree;
	pid_t command;
	int64_t next_sample, pause;
	int64_t busy, stolen;      /* of all CPUs, ns */
	int64_t unseen;            /* threads ran or waited while the kernel reported no switches, ns */
	int64_t own_time;
	struct run_tally t;
};

static int64_t cpu_time(int who)
{
	struct rusage r;
	getrusage(who, &r);
	return ((int64_t)r.ru_utime.tv_sec + r.ru_stime.tv_sec) * NS_PER_S +
	       ((int64_t)r.ru_utime.tv_usec + r.ru_stime.tv_usec) * 1000;
}

struct run_meter *run_meter_open(pid_t command, bool without_bpf, struct error *err)
{
	const struct live_request request = { .root = "", .without_bpf = without_bpf, .command = command };
	struct run_meter *m = mem_new(1, sizeof *m);
	m->command = command;
	m->live = without_bpf ? NULL : live_open(&request, err);
	if (m->live && live_limits(m->live)) {
		*err = *live_limits(m->live);
		live_close(m->live);
		m->live = NULL;
	}
	if (!m->live) {
		prctl(PR_SET_CHILD_SUBREAPER, 1);  /* the tree stays ours when one of its processes ends */
		m->tree = run_tree_new(command);
	}
	m->t.source = m->live ? "bpf" : "schedstat";
	m->t.began = now_ns();
	m->next_sample = m->t.began + PERIOD_NS;
	m->pause = POLL_NS;
	m->own_time = cpu_time(RUSAGE_SELF);
	return m;
}

int64_t run_meter_pause(const struct run_meter *m)
{
	return m->live ? FLUSH_NS : m->pause;
}

/* ---- BPF */

static void add_culprit(struct run_tally *t, const char *name, int64_t ns)
{
	size_t i = 0;
	while (i < t->culprits && strcmp(t->culprit[i].name, name) != 0)
		i++;
	if (i == RUN_CULPRITS)
		return;
	if (i == t->culprits)
		snprintf(t->culprit[t->culprits++].name, LIVE_NAME, "%s", name);
	t->culprit[i].ns += ns;
}

/* Returns the name of a culprit without its PID: a command that is started again and again counts as one. */
static const char *short_name(const struct live_culprit *c)
{
	const char *space = strchr(c->name, ' ');
	return strncmp(c->name, "host/", 5) == 0 && space ? space + 1 : c->name;
}

static void add_sample(struct run_meter *m)
{
	struct live_sample s;
	struct run_tally *t = &m->t;
	live_take(m->live, &s);
	for (size_t i = 0; i < s.vcpus; i++) {
		const struct live_vcpu *v = &s.vcpu[i];
		const struct live_culprit *c = v->longest_culprit < 0 ? NULL : &s.culprit[v->longest_culprit];
		t->ran += v->ns.ran;
		t->throttled += v->ns.throttled;
		m->unseen += v->ns.unknown;
		if (c && !c->own && c->kind != LIVE_OWN && c->kind != LIVE_IDLE && v->longest > t->longest) {
			t->longest = v->longest;
			t->longest_at = s.wall;
			snprintf(t->longest_culprit, sizeof t->longest_culprit, "%s", short_name(c));
		}
	}
	for (size_t i = 0; i < s.pairs; i++) {
		const struct live_culprit *c = &s.culprit[s.pair[i].culprit];
		if (c->own || c->kind == LIVE_OWN || c->kind == LIVE_IDLE) {
			t->own += s.pair[i].ns;
			continue;
		}
		t->others += s.pair[i].ns;
		t->unknown += c->kind == LIVE_NOBODY ? s.pair[i].ns : 0;
		if (c->kind != LIVE_NOBODY)
			add_culprit(t, short_name(c), s.pair[i].ns);
	}
	for (size_t i = 0; i < s.cpus; i++) {
		m->busy += s.cpu[i].busy;
		m->stolen += s.cpu[i].stolen;
	}
	live_sample_release(&s);
}

void run_meter_poll(struct run_meter *m)
{
	if (m->live && now_ns() >= m->next_sample) {
		add_sample(m);
		m->next_sample = now_ns() + PERIOD_NS;
	} else if (m->live) {
		live_flush(m->live);
	} else {
		const int64_t begin = clock_ns(CLOCK_THREAD_CPUTIME_ID);
		run_tree_poll(m->tree);
		m->pause = max64(POLL_NS, (clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin) * POLL_SHARE);
	}
}

/* ---- result */

ORDER_BY(most_first, struct run_culprit, FALLING(ns))

void run_meter_close(struct run_meter *m, struct run_tally *t)
{
	const int64_t own = cpu_time(RUSAGE_SELF) - m->own_time;
	m->t.ended = now_ns();
	m->t.cost = (double)own / (double)max64(m->t.ended - m->t.began, 1);
	if (m->live) {
		add_sample(m);
		const int64_t seen = m->t.ran + m->t.others + m->t.throttled + m->t.own;
		m->t.seen = m->unseen > 0 ? (double)seen / (double)(seen + m->unseen) : 1;
		m->t.host = m->busy + m->stolen > 0 ? (double)m->stolen / (double)(m->busy + m->stolen) : 0;
		qsort(m->t.culprit, m->t.culprits, sizeof *m->t.culprit, most_first);
		live_close(m->live);
	} else {
		struct run_tree_sums sums;
		run_tree_close(m->tree, &sums);
		m->t.ran = max64(cpu_time(RUSAGE_CHILDREN), sums.ran);
		m->t.throttled = min64(sums.throttled, sums.waited);
		m->t.others = m->t.unknown = sums.waited - m->t.throttled;
		m->t.seen = m->t.ran > 0 ? (double)sums.ran / (double)m->t.ran : 1;
		m->t.host = sums.host;
		m->t.longest = sums.longest;
		m->t.longest_at = sums.longest_at;
	}
	*t = m->t;
	free(m);
}

double run_share(const struct run_tally *t, int64_t ns)
{
	const int64_t wanted = t->ran + t->others + t->own + t->throttled;
	return wanted > 0 ? (double)ns / (double)wanted : 0;
}
