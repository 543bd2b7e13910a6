/* The truth, computed from the simulator's state: every state interval, the user of each pCPU, every clock, every
 * request.
 *
 * States are those of stealscope(1), computed from the simulated machines at the time of a record (switch, entry, exit,
 * wakeup). Times are host ns; intervals are closed, [start, end], and the next interval of the same attribute starts at
 * end + 1 unless the attribute has no value in between. */
#include <string.h>

#include "truth.h"

static const char *const vcpu_name[] = { "IDLE", "RUNNING", "VMM", "PREEMPTED", "HOST_BLOCKED", "WAKING" };
enum { V_IDLE, V_RUNNING, V_VMM, V_PREEMPTED, V_HOST_BLOCKED, V_WAKING };
static const char *const out_name[] = { "quota", "fault" };
enum { OUT_QUOTA, OUT_PAGE_FAULT };
static const char *const task_name[] = { "RUNNING", "BLOCKED", "PREEMPTED", "VIRT_PREEMPTED" };
enum { T_RUNNING, T_BLOCKED, T_PREEMPTED, T_VIRT_PREEMPTED };

/* ---- intervals */

static const char *const attribute_name[] = {
	[TRACK_CURRENT] = "Current Thread", [TRACK_OWNER] = "Owner", [TRACK_IRQ] = "Interrupt", [TRACK_VSTATUS] = "Status",
	[TRACK_VTHREAD] = "Host Thread", [TRACK_PCPU] = "pCPU", [TRACK_OUT_BY] = "Out By", [TRACK_STATUS] = "Status",
	                  [TRACK_NAME] = "Name",
	[TRACK_CPU] = "CPU", [TRACK_PID] = "PID",
};

/* Lines are formatted by hand: printf() would cost five times as much as the simulation. */
#define LINE 1024

static char *append_text(char *p, const char *text)
{
	size_t n = strlen(text);

	memcpy(p, text, n);
	return p + n;
}

static char *append_number(char *p, int64_t n)
{
	char text[20], *first = text + sizeof text;
	uint64_t rest = n < 0 ? -(uint64_t)n : (uint64_t)n;

	for (; rest >= 100; rest /= 100) {
		*--first = (char)('0' + rest % 10);
		*--first = (char)('0' + rest % 100 / 10);
	}
	*--first = (char)('0' + rest % 10);
	if (rest >= 10)
		*--first = (char)('0' + rest / 10);
	if (n < 0)
		*--first = '-';
	memcpy(p, first, (size_t)(text + sizeof text - first));
	return p + (text + sizeof text - first);
}

static char *append_value(char *p, const struct sim *s, enum track_kind kind, int64_t value)
{
	switch (kind) {
	case TRACK_VSTATUS:
		return append_text(p, vcpu_name[value]);
	case TRACK_OUT_BY:
		return append_text(p, out_name[value]);
	case TRACK_STATUS:
		return append_text(p, task_name[value]);
	case TRACK_NAME: case TRACK_IRQ:
		return append_text(p, strtab_get(&s->names, (uint32_t)value));
	case TRACK_OWNER:
		return append_text(p, value < 0 ? "idle" : s->machine[value]->is_host ? "host" : s->machine[value]->name);
	default:
		return append_number(p, value);
	}
}

/* Writes a line of intervals.csv. root: path of the machine or container, ending with a slash. */
static void write_line(struct sim *s, const char *root, enum track_kind kind, int64_t id, int64_t start, int64_t end,
                       int64_t value)
{
	char line[LINE], *p = append_text(line, root);

	p = append_text(p, kind >= TRACK_STATUS ? "Threads/" : "CPUs/CPU");
	p = append_number(p, id);
	*p++ = '/';
	p = append_text(p, attribute_name[kind]);
	*p++ = ',';
	p = append_number(p, start);
	*p++ = ',';
	p = append_number(p, end);
	*p++ = ',';
	p = append_value(p, s, kind, value);
	*p++ = '\n';
	fwrite_unlocked(line, 1, (size_t)(p - line), s->truth->interval);
}

void truth_interval(struct sim *s, enum track_kind kind, const struct machine *m, int64_t id,
                    const struct truth_track *k, int64_t end)
{
	int64_t start = k->start > s->first_record ? k->start : s->first_record;
	char root[64] = "/Host/";

	if (k->value == NOTHING || end < start)
		return;
	if (!m->is_host)
		*append_text(append_text(append_text(root, "/Virtual Machines/"), m->name), "/") = 0;
	write_line(s, root, kind, id, start, end, k->value);
	if (!m->is_host || kind < TRACK_STATUS ||
	    (m->by_tid[id]->ns == ROOT_NS && m->by_tid[id]->cgroup_ns == ROOT_CGROUP_NS))
		return;
	if (m->by_tid[id]->ns != ROOT_NS)
		snprintf(root, sizeof root, "/Containers/pidns-%u/", m->by_tid[id]->ns);
	else
		snprintf(root, sizeof root, "/Containers/cgroupns-%u/", m->by_tid[id]->cgroup_ns);
	write_line(s, root, kind, id, start, end, k->value);
}

static void set_track(struct sim *s, enum track_kind kind, const struct machine *m, int64_t id, struct truth_track *k,
                int64_t value)
{
	if (k->value == value)
		return;
	if (s->truth)
		truth_interval(s, kind, m, id, k, s->now - 1);
	k->start = s->now;
	k->value = value;
}

/* ---- users of pCPUs */

enum { USER_IDLE, USER_HOST, USER_HYPERVISOR, USER_GUEST };

void truth_write_user(struct cpu *c, int64_t end)
{
	static const char *const mode[] = { "idle", "host", "hypervisor", "guest" };
	struct sim *s = c->m->sim;
	int64_t start = c->user.start > s->first_record ? c->user.start : s->first_record;
	char line[LINE], *p;

	if (!c->user.m || end < start)
		return;
	p = append_number(line, c->number);
	*p++ = ',';
	p = append_number(p, start);
	*p++ = ',';
	p = append_number(p, end);
	*p++ = ',';
	p = append_text(p, c->user.mode == USER_IDLE ? "" : c->user.m->is_host ? "host" : c->user.m->name);
	*p++ = ',';
	p = append_number(p, c->user.tid);
	*p++ = ',';
	p = append_text(p, mode[c->user.mode]);
	*p++ = '\n';
	fwrite_unlocked(line, 1, (size_t)(p - line), s->truth->pcpu);
}

/* Updates the user of a pCPU: the innermost thread for which the pCPU works; hypervisor mode if any level does not
 * execute. */
static void update_user(struct cpu *c)
{
	struct sim *s = c->m->sim;
	const struct thread *t = c->cur;
	uint8_t mode = t->idle ? USER_IDLE : t->vcpu ? USER_GUEST : USER_HOST;

	for (; t->vcpu; t = t->vcpu->cur)
		if (!t->in_guest)
			mode = USER_HYPERVISOR;
	if (c->user.m == t->m && c->user.mode == mode && c->user.tid == t->tid)
		return;
	if (s->truth)
		truth_write_user(c, s->now - 1);
	c->user.m = t->m;
	c->user.mode = mode;
	c->user.tid = t->tid;
	c->user.start = s->now;
}

/* ---- interface for the rest of the simulator */

static int64_t machine_index(const struct machine *m)
{
	for (unsigned i = 0; i < m->sim->machines; i++)
		if (m->sim->machine[i] == m)
			return (int64_t)i;
	return 0;
}

void truth_pcpu(struct cpu *c)
{
	struct sim *s = c->m->sim;
	const struct thread *t = c->cur;

	set_track(s, TRACK_CURRENT, c->m, c->number, &c->current, t->tid);
	if (c->host)
		truth_vcpu(c);
	else
		set_track(s, TRACK_OWNER, c->m, c->number, &c->owner, t->idle ? -1 : t->vcpu ? machine_index(t->vcpu->m) : 0);
	update_user(pcpu_of(c));
	if (t->vcpu)
		truth_vcpu(t->vcpu);
}

/* Tracks handlers. A timer that expires inside another handler counts as part of that handler. */
void truth_irq(struct cpu *c, const char *name)
{
	struct sim *s = c->m->sim;

	if (name && c->handlers && !strcmp(name, "timer"))
		c->handler[c->handlers] = c->handler[c->handlers - 1];
	else if (name)
		c->handler[c->handlers] = strtab_put(&s->names, name);
	c->handlers += name ? 1 : -1u;
	set_track(s, TRACK_IRQ, c->m, c->number, &c->interrupt, c->handlers ? c->handler[c->handlers - 1] : NOTHING);
}

/* Returns the state of a vCPU. Without kvm events, guest mode equals scheduled in; without them and without the guest's
 * trace, idleness is unknown. */
static int vcpu_state(const struct cpu *g)
{
	const struct thread *t = g->host;
	bool known = g->m->traced || !g->m->sim->opt.no_kvm, idle = g->cur->idle && known;

	if (truth_executes(g))
		return idle ? V_IDLE : V_RUNNING;
	if (truth_scheduled(g))
		return V_VMM;
	if (t->state == TASK_RUNNABLE || t->state == TASK_RUNNING)
		return !idle ? V_PREEMPTED : t->woken && t->state == TASK_RUNNABLE ? V_WAKING : V_IDLE;
	return idle || !known ? V_IDLE : V_HOST_BLOCKED;
}

bool truth_scheduled(const struct cpu *g)
{
	return g->host->state == TASK_RUNNING && truth_executes(vcpu_pcpu(g));
}

bool truth_executes(const struct cpu *c)
{
	return !c->host || (truth_scheduled(c) && (c->host->in_guest || c->m->sim->opt.no_kvm));
}

static int task_status(const struct thread *t)
{
	const struct cpu *c = &t->m->cpu[t->cpu];

	switch ((enum task_state)t->state) {
	case TASK_RUNNING:
		return truth_executes(c) ? T_RUNNING : T_VIRT_PREEMPTED;
	case TASK_RUNNABLE:
		return T_PREEMPTED;
	default:
		return T_BLOCKED;
	}
}

void truth_thread(struct thread *t)
{
	struct sim *s = t->m->sim;

	if (t->idle || t->state == TASK_DEAD)
		return;
	request_usage(t);
	set_track(s, TRACK_STATUS, t->m, t->tid, &t->status, task_status(t));
	set_track(s, TRACK_CPU, t->m, t->tid, &t->tcpu, t->cpu);
	set_track(s, TRACK_NAME, t->m, t->tid, &t->tname, t->name);
	set_track(s, TRACK_PID, t->m, t->tid, &t->tpid, t->pid);
	if (t->vcpu)
		truth_vcpu(t->vcpu);
}

static int64_t out_by(const struct cpu *g)
{
	const struct thread *t = g->host;

	if (vcpu_gone(g))
		return NOTHING;
	if (t->state == TASK_RUNNABLE && (g->m->sim->groups_recorded ? t->limited_since : t->group && t->group->throttled))
		return OUT_QUOTA;
	return t->state == TASK_BLOCKED && t->fetches ? OUT_PAGE_FAULT : NOTHING;
}

void truth_end_out_by(struct cpu *g, int64_t end)
{
	if (g->m->sim->truth)
		truth_interval(g->m->sim, TRACK_OUT_BY, g->m, g->number, &g->out_by, g->quota_over ? g->quota_over - 1 : end);
	g->out_by.value = NOTHING;
	g->quota_over = 0;
}

/* Sets attribute "Out By". Here the quota of all CPUs is used up at one time, whereas the kernel charges each CPU when
 * it requests more. So a thread that waits at that time counts as throttled since it was queued, and remains throttled
 * if others use up a refill during the wait; unless the facts on groups show exactly when it is throttled. */
static void set_out_by(struct cpu *g)
{
	struct sim *s = g->m->sim;
	int64_t value = out_by(g), since = g->host->queued_since;
	bool was = g->out_by.value == OUT_QUOTA, waits = !vcpu_gone(g) && g->host->state == TASK_RUNNABLE;

	if (was && waits && !s->groups_recorded) {
		g->quota_over = value == OUT_QUOTA ? 0 : g->quota_over ? g->quota_over : s->now;
		return;
	}
	if (was && g->quota_over)
		truth_end_out_by(g, 0);
	set_track(s, TRACK_OUT_BY, g->m, g->number, &g->out_by, value);
	if (value == OUT_QUOTA && since < g->out_by.start && !was && !s->groups_recorded)
		g->out_by.start = since;
}

void truth_quota(struct sim *s, const struct quota_group *group)
{
	for (unsigned i = 1; i < s->machines; i++)
		for (unsigned k = 0; k < s->machine[i]->cpus && s->machine[i]->vcpu_group == group; k++)
			set_out_by(&s->machine[i]->cpu[k]);
}

static void set_vcpu(struct cpu *g)
{
	struct sim *s = g->m->sim;
	const bool gone = vcpu_gone(g);

	set_out_by(g);
	set_track(s, TRACK_VSTATUS, g->m, g->number, &g->vstatus, gone ? NOTHING : vcpu_state(g));
	set_track(s, TRACK_VTHREAD, g->m, g->number, &g->vthread, gone ? NOTHING : g->host->tid);
	set_track(s, TRACK_PCPU, g->m, g->number, &g->pcpu, gone ? NOTHING : g->host->cpu);
}

void truth_vcpu(struct cpu *g)
{
	struct sim *s = g->m->sim;

	if (s->truth)
		set_vcpu(g);
	if (!g->cur->idle && g->cur->state == TASK_RUNNING) {
		request_usage(g->cur);
		set_track(s, TRACK_STATUS, g->m, g->cur->tid, &g->cur->status, task_status(g->cur));
		if (g->cur->vcpu)
			truth_vcpu(g->cur->vcpu);
	}
	for (size_t i = 0; i < g->runs; i++)
		if (g->run[i]->server)
			request_usage(g->run[i]);
}

static void end_track(struct sim *s, enum track_kind kind, const struct thread *t, struct truth_track *k, int64_t end)
{
	if (s->truth)
		truth_interval(s, kind, t->m, t->tid, k, end);
	k->value = NOTHING;
}

/* Ends the attributes of a thread that exited. */
void truth_close_thread(struct thread *t, int64_t end)
{
	struct sim *s = t->m->sim;

	end_track(s, TRACK_STATUS, t, &t->status, end);
	end_track(s, TRACK_NAME, t, &t->tname, end);
	end_track(s, TRACK_CPU, t, &t->tcpu, end);
	end_track(s, TRACK_PID, t, &t->tpid, end);
}

void truth_end_thread(struct thread *t)
{
	truth_close_thread(t, t->m->sim->now - 1);
}
