/* The truth, from the simulator's own knowledge: every state interval, who had which pCPU, every clock, every request.
 *
 * States are those of stealscope(1): they are computed here from what the simulated machines are, at the moment a
 * record says so (a switch, an entry, an exit, a wakeup).  Times are host ns; intervals are closed, [start, end], and
 * the next one of the same attribute starts at end + 1 unless the attribute has no value in between. */
#include <string.h>

#include "truth.h"

static const char *const vcpu_name[] = { "IDLE", "RUNNING", "VMM", "PREEMPTED", "HOST_BLOCKED", "WAKING" };
enum { V_IDLE, V_RUNNING, V_VMM, V_PREEMPTED, V_HOST_BLOCKED, V_WAKING };
static const char *const out_name[] = { "quota", "fault" };
enum { OUT_QUOTA, OUT_FAULT };
static const char *const task_name[] = { "RUNNING", "BLOCKED", "PREEMPTED", "VIRT_PREEMPTED" };
enum { T_RUNNING, T_BLOCKED, T_PREEMPTED, T_VIRT_PREEMPTED };

/* ---- intervals ------------------------------------------------------------------------------------------------ */

static const char *const leaf[] = {
	[TRACK_CURRENT] = "Current Thread", [TRACK_OWNER] = "Owner", [TRACK_IRQ] = "Interrupt", [TRACK_VSTATUS] = "Status",
	[TRACK_VTHREAD] = "Host Thread", [TRACK_PCPU] = "pCPU", [TRACK_OUT_BY] = "Out By", [TRACK_STATUS] = "Status", [TRACK_NAME] = "Name",
	[TRACK_CPU] = "CPU", [TRACK_PID] = "PID",
};

/* Lines are made by hand: with printf() the truth would cost five times what the simulation does. */
#define LINE 1024

static char *put_text(char *p, const char *text)
{
	size_t n = strlen(text);

	memcpy(p, text, n);
	return p + n;
}

static char *put_number(char *p, int64_t n)
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

static char *put_value(char *p, const struct sim *s, enum track_kind kind, int64_t value)
{
	switch (kind) {
	case TRACK_VSTATUS:
		return put_text(p, vcpu_name[value]);
	case TRACK_OUT_BY:
		return put_text(p, out_name[value]);
	case TRACK_STATUS:
		return put_text(p, task_name[value]);
	case TRACK_NAME: case TRACK_IRQ:
		return put_text(p, strtab_get(&s->names, (uint32_t)value));
	case TRACK_OWNER:
		return put_text(p, value < 0 ? "idle" : s->machine[value]->is_host ? "host" : s->machine[value]->name);
	default:
		return put_number(p, value);
	}
}

/* root: of the machine or container, with a slash at its end. */
static void write_line(struct sim *s, const char *root, enum track_kind kind, int64_t id, int64_t start, int64_t end,
                       int64_t value)
{
	char line[LINE], *p = put_text(line, root);

	p = put_text(p, kind >= TRACK_STATUS ? "Threads/" : "CPUs/CPU");
	p = put_number(p, id);
	*p++ = '/';
	p = put_text(p, leaf[kind]);
	*p++ = ',';
	p = put_number(p, start);
	*p++ = ',';
	p = put_number(p, end);
	*p++ = ',';
	p = put_value(p, s, kind, value);
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
		*put_text(put_text(put_text(root, "/Virtual Machines/"), m->name), "/") = 0;
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

static void set(struct sim *s, enum track_kind kind, const struct machine *m, int64_t id, struct truth_track *k,
                int64_t value)
{
	if (k->value == value)
		return;
	if (s->truth)
		truth_interval(s, kind, m, id, k, s->now - 1);
	k->start = s->now;
	k->value = value;
}

/* ---- who has a pCPU -------------------------------------------------------------------------------------------- */

enum { WHO_IDLE, WHO_HOST, WHO_HYPERVISOR, WHO_GUEST };

void truth_write_who(struct cpu *c, int64_t end)
{
	static const char *const mode[] = { "idle", "host", "hypervisor", "guest" };
	struct sim *s = c->m->sim;
	int64_t start = c->who.start > s->first_record ? c->who.start : s->first_record;
	char line[LINE], *p;

	if (!c->who.m || end < start)
		return;
	p = put_number(line, c->number);
	*p++ = ',';
	p = put_number(p, start);
	*p++ = ',';
	p = put_number(p, end);
	*p++ = ',';
	p = put_text(p, c->who.mode == WHO_IDLE ? "" : c->who.m->is_host ? "host" : c->who.m->name);
	*p++ = ',';
	p = put_number(p, c->who.tid);
	*p++ = ',';
	p = put_text(p, mode[c->who.mode]);
	*p++ = '\n';
	fwrite_unlocked(line, 1, (size_t)(p - line), s->truth->who);
}

/* The innermost thread for which the pCPU works; the hypervisor's work is done as long as one level does not execute. */
static void who(struct cpu *c)
{
	struct sim *s = c->m->sim;
	const struct thread *t = c->cur;
	uint8_t mode = t->idle ? WHO_IDLE : t->vcpu ? WHO_GUEST : WHO_HOST;

	for (; t->vcpu; t = t->vcpu->cur)
		if (!t->in_guest)
			mode = WHO_HYPERVISOR;
	if (c->who.m == t->m && c->who.mode == mode && c->who.tid == t->tid)
		return;
	if (s->truth)
		truth_write_who(c, s->now - 1);
	c->who.m = t->m;
	c->who.mode = mode;
	c->who.tid = t->tid;
	c->who.start = s->now;
}

/* ---- what the rest of the simulator calls ---------------------------------------------------------------------- */

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

	set(s, TRACK_CURRENT, c->m, c->number, &c->current, t->tid);
	if (c->host)
		truth_vcpu(c);
	else
		set(s, TRACK_OWNER, c->m, c->number, &c->owner, t->idle ? -1 : t->vcpu ? machine_index(t->vcpu->m) : 0);
	who(pcpu_of(c));
	if (t->vcpu)
		truth_vcpu(t->vcpu);
}

/* A timer that expires within another handler is part of that. */
void truth_irq(struct cpu *c, const char *name)
{
	struct sim *s = c->m->sim;

	if (name && c->handlers && !strcmp(name, "timer"))
		c->handler[c->handlers] = c->handler[c->handlers - 1];
	else if (name)
		c->handler[c->handlers] = strtab_put(&s->names, name);
	c->handlers += name ? 1 : -1u;
	set(s, TRACK_IRQ, c->m, c->number, &c->interrupt, c->handlers ? c->handler[c->handlers - 1] : NOTHING);
}

/* Without kvm events guest mode cannot be told from scheduled in; without them and the guest's trace nobody knows that
 * it is idle. */
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
	set(s, TRACK_STATUS, t->m, t->tid, &t->status, task_status(t));
	set(s, TRACK_CPU, t->m, t->tid, &t->tcpu, t->cpu);
	set(s, TRACK_NAME, t->m, t->tid, &t->tname, t->name);
	set(s, TRACK_PID, t->m, t->tid, &t->tpid, t->pid);
	if (t->vcpu)
		truth_vcpu(t->vcpu);
}

static int64_t out_by(const struct cpu *g)
{
	const struct thread *t = g->host;

	if (vcpu_gone(g))
		return NOTHING;
	if (t->state == TASK_RUNNABLE && t->group && t->group->throttled)
		return OUT_QUOTA;
	return t->state == TASK_BLOCKED && t->fetches ? OUT_FAULT : NOTHING;
}

void truth_end_out_by(struct cpu *g, int64_t end)
{
	if (g->m->sim->truth)
		truth_interval(g->m->sim, TRACK_OUT_BY, g->m, g->number, &g->out_by, g->quota_over ? g->quota_over - 1 : end);
	g->out_by.value = NOTHING;
	g->quota_over = 0;
}

/* Here all CPUs' share of a quota is used up at one moment, while the kernel takes it from each CPU when that asks for
 * more.  So a thread that waits then counts as held back since it was queued, and on, if its quota comes back meanwhile and
 * is used up by others once more. */
static void set_out_by(struct cpu *g)
{
	struct sim *s = g->m->sim;
	int64_t value = out_by(g), since = g->host->queued_since;
	bool was = g->out_by.value == OUT_QUOTA, waits = !vcpu_gone(g) && g->host->state == TASK_RUNNABLE;

	if (was && waits) {
		g->quota_over = value == OUT_QUOTA ? 0 : g->quota_over ? g->quota_over : s->now;
		return;
	}
	if (was && g->quota_over)
		truth_end_out_by(g, 0);
	set(s, TRACK_OUT_BY, g->m, g->number, &g->out_by, value);
	if (value == OUT_QUOTA && since < g->out_by.start && !was)
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
	set(s, TRACK_VSTATUS, g->m, g->number, &g->vstatus, gone ? NOTHING : vcpu_state(g));
	set(s, TRACK_VTHREAD, g->m, g->number, &g->vthread, gone ? NOTHING : g->host->tid);
	set(s, TRACK_PCPU, g->m, g->number, &g->pcpu, gone ? NOTHING : g->host->cpu);
}

void truth_vcpu(struct cpu *g)
{
	struct sim *s = g->m->sim;

	if (s->truth)
		set_vcpu(g);
	if (!g->cur->idle && g->cur->state == TASK_RUNNING) {
		request_usage(g->cur);
		set(s, TRACK_STATUS, g->m, g->cur->tid, &g->cur->status, task_status(g->cur));
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

/* The thread is gone: from this moment on its attributes have no value. */
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
