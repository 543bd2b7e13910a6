/* The truth, from the simulator's own knowledge: every state interval, who had which pCPU, every clock, every request.
 *
 * States are those of DESIGN section 5: they are computed here from what the simulated machines are, at the moment a
 * record says so (a switch, an entry, an exit, a wakeup).  Times are host ns; intervals are closed, [start, end], and
 * the next one of the same attribute starts at end + 1 unless the attribute has no value in between. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "sim.h"

struct truth {
	FILE *interval, *who, *request;
	char *dir;
};

/* ns that a request server spent in ways that matter to its requests, up to `since`. */
struct usage {
	int64_t since;
	int64_t out, vmm, queued, blocked;  /* not blocked and vCPU out; in the hypervisor; waits in the guest; sleeps */
	uint8_t how;
	struct running {
		int64_t id, start, exec_from, exec, exec_out, exec_vmm;
		int64_t out0, vmm0, queued0, blocked0, exec_out0, exec_vmm0;
		bool executing;
	} req[64];
	unsigned n;
};
enum how { HOW_RUN, HOW_OUT, HOW_VMM, HOW_QUEUED, HOW_QUEUED_OUT, HOW_BLOCKED };

static const char *const vcpu_name[] = { "IDLE", "RUNNING", "VMM", "PREEMPTED", "HOST_BLOCKED", "WAKING" };
enum { V_IDLE, V_RUNNING, V_VMM, V_PREEMPTED, V_HOST_BLOCKED, V_WAKING };
static const char *const task_name[] = { "RUNNING", "BLOCKED", "PREEMPTED", "VIRT_PREEMPTED" };
enum { T_RUNNING, T_BLOCKED, T_PREEMPTED, T_VIRT_PREEMPTED };

/* ---- intervals ------------------------------------------------------------------------------------------------ */

static const char *const leaf[] = {
	[TRACK_CURRENT] = "Current Thread", [TRACK_OWNER] = "Owner", [TRACK_IRQ] = "Interrupt", [TRACK_VSTATUS] = "Status",
	[TRACK_VTHREAD] = "Host Thread", [TRACK_PCPU] = "pCPU", [TRACK_STATUS] = "Status", [TRACK_NAME] = "Name",
	[TRACK_CPU] = "CPU", [TRACK_PID] = "PID",
};

static void write_value(struct sim *s, enum track_kind kind, const struct machine *m, int64_t value)
{
	FILE *f = s->truth->interval;

	switch (kind) {
	case TRACK_VSTATUS:
		fputs(vcpu_name[value], f);
		break;
	case TRACK_STATUS:
		fputs(task_name[value], f);
		break;
	case TRACK_NAME: case TRACK_IRQ:
		fputs(strtab_get(&s->names, (uint32_t)value), f);
		break;
	case TRACK_OWNER:
		fputs(value < 0 ? "idle" : s->machine[value]->is_host ? "host" : s->machine[value]->name, f);
		break;
	default:
		fprintf(f, "%" PRId64, value);
		break;
	}
	(void)m;
}

static void write_interval(struct sim *s, enum track_kind kind, const struct machine *m, int64_t id, const struct track *k,
                           int64_t end)
{
	FILE *f = s->truth->interval;
	int64_t start = k->start > s->first_record ? k->start : s->first_record;

	if (k->value == NOTHING || end < start)
		return;
	if (m->is_host)
		fputs("/Host/", f);
	else
		fprintf(f, "/Virtual Machines/%s/", m->name);
	fprintf(f, kind >= TRACK_STATUS ? "Threads/%" PRId64 "/%s" : "CPUs/CPU%" PRId64 "/%s", id, leaf[kind]);
	fprintf(f, ",%" PRId64 ",%" PRId64 ",", start, end);
	write_value(s, kind, m, k->value);
	putc('\n', f);
}

static void set(struct sim *s, enum track_kind kind, const struct machine *m, int64_t id, struct track *k, int64_t value)
{
	if (k->value == value)
		return;
	if (s->truth)
		write_interval(s, kind, m, id, k, s->now - 1);
	k->start = s->now;
	k->value = value;
}

/* ---- who has a pCPU ----------------------------------------------------------------------------------------------- */

enum { WHO_IDLE, WHO_HOST, WHO_HYPERVISOR, WHO_GUEST };

static void write_who(struct cpu *c, int64_t end)
{
	static const char *const mode[] = { "idle", "host", "hypervisor", "guest" };
	struct sim *s = c->m->sim;
	int64_t start = c->who.start > s->first_record ? c->who.start : s->first_record;

	if (c->who.m && end >= start)
		fprintf(s->truth->who, "%u,%" PRId64 ",%" PRId64 ",%s,%d,%s\n", c->number, start, end,
		        c->who.mode == WHO_IDLE ? "" : c->who.m->is_host ? "host" : c->who.m->name, c->who.tid,
		        mode[c->who.mode]);
}

static void who(struct cpu *c)
{
	struct sim *s = c->m->sim;
	const struct thread *t = c->cur;
	const struct machine *m = t->vcpu ? t->vcpu->m : c->m;
	uint8_t mode = t->idle ? WHO_IDLE : !t->vcpu ? WHO_HOST : t->in_guest ? WHO_GUEST : WHO_HYPERVISOR;
	int32_t tid = t->vcpu ? t->vcpu->cur->tid : t->tid;

	if (c->who.m == m && c->who.mode == mode && c->who.tid == tid)
		return;
	if (s->truth)
		write_who(c, s->now - 1);
	c->who.m = m;
	c->who.mode = mode;
	c->who.tid = tid;
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
	if (c->host) {  /* a guest's CPU */
		truth_vcpu(c);
		if (c->live || c->host->in_guest)
			who(vcpu_pcpu(c));
		return;
	}
	set(s, TRACK_OWNER, c->m, c->number, &c->owner, t->idle ? -1 : t->vcpu ? machine_index(t->vcpu->m) : 0);
	who(c);
	if (t->vcpu)
		truth_vcpu(t->vcpu);
}

void truth_irq(struct cpu *c, uint32_t name)
{
	if (!c->host)
		set(c->m->sim, TRACK_IRQ, c->m, c->number, &c->interrupt, name ? (int64_t)name : NOTHING);
}

/* DESIGN section 5.  Without kvm events guest mode cannot be told from scheduled in; without the guest's trace nobody
 * knows that it is idle. */
static int vcpu_state(const struct cpu *g)
{
	const struct thread *t = g->host;
	bool idle = g->cur->idle && g->m->traced;

	if (t->state == TASK_RUNNING) {
		if (!t->in_guest && !t->m->sim->opt.no_kvm)
			return V_VMM;
		return idle ? V_IDLE : V_RUNNING;
	}
	if (t->state == TASK_RUNNABLE)
		return !idle ? V_PREEMPTED : t->woken ? V_WAKING : V_IDLE;
	return idle || !g->m->traced ? V_IDLE : V_HOST_BLOCKED;
}

static bool executes(const struct cpu *g)
{
	return g->host->in_guest || (g->host->state == TASK_RUNNING && g->m->sim->opt.no_kvm);
}

static int task_status(const struct thread *t)
{
	const struct cpu *c = &t->m->cpu[t->cpu];

	switch ((enum task_state)t->state) {
	case TASK_RUNNING:
		return c->host && !executes(c) ? T_VIRT_PREEMPTED : T_RUNNING;
	case TASK_RUNNABLE:
		return T_PREEMPTED;
	default:
		return T_BLOCKED;
	}
}

static void usage_update(struct thread *t);

void truth_thread(struct thread *t)
{
	struct sim *s = t->m->sim;

	if (t->idle || t->state == TASK_DEAD)
		return;
	usage_update(t);
	set(s, TRACK_STATUS, t->m, t->tid, &t->status, task_status(t));
	set(s, TRACK_CPU, t->m, t->tid, &t->tcpu, t->cpu);
	set(s, TRACK_NAME, t->m, t->tid, &t->tname, t->name);
	set(s, TRACK_PID, t->m, t->tid, &t->tpid, t->pid);
	if (t->vcpu)
		truth_vcpu(t->vcpu);
}

void truth_vcpu(struct cpu *g)
{
	struct sim *s = g->m->sim;

	set(s, TRACK_VSTATUS, g->m, g->number, &g->vstatus, vcpu_state(g));
	set(s, TRACK_PCPU, g->m, g->number, &g->pcpu, g->host->cpu);
	if (!g->cur->idle && g->cur->state == TASK_RUNNING) {
		usage_update(g->cur);
		set(s, TRACK_STATUS, g->m, g->cur->tid, &g->cur->status, task_status(g->cur));
	}
	for (size_t i = 0; i < g->runs; i++)
		if (g->run[i]->server)
			usage_update(g->run[i]);
}

static void end_track(struct sim *s, enum track_kind kind, const struct thread *t, struct track *k, int64_t end)
{
	if (s->truth)
		write_interval(s, kind, t->m, t->tid, k, end);
	k->value = NOTHING;
}

/* The thread is gone: from this moment on its attributes have no value. */
static void close_thread(struct thread *t, int64_t end)
{
	struct sim *s = t->m->sim;

	end_track(s, TRACK_STATUS, t, &t->status, end);
	end_track(s, TRACK_NAME, t, &t->tname, end);
	end_track(s, TRACK_CPU, t, &t->tcpu, end);
	end_track(s, TRACK_PID, t, &t->tpid, end);
}

void truth_end_thread(struct thread *t)
{
	close_thread(t, t->m->sim->now - 1);
}

/* ---- requests ------------------------------------------------------------------------------------------------------ */

static enum how how_now(const struct thread *t)
{
	const struct cpu *c = &t->m->cpu[t->cpu];
	bool out = c->host && c->host->state != TASK_RUNNING;

	switch ((enum task_state)t->state) {
	case TASK_RUNNING:
		return out ? HOW_OUT : c->host && !executes(c) ? HOW_VMM : HOW_RUN;
	case TASK_RUNNABLE:
		return out ? HOW_QUEUED_OUT : HOW_QUEUED;
	default:
		return HOW_BLOCKED;
	}
}

static void usage_update(struct thread *t)
{
	struct usage *u = t->usage;
	int64_t now = t->m->sim->now, ns;

	if (!t->server)
		return;
	if (!u) {
		u = t->usage = mem_new(1, sizeof *u);
		u->since = now;
		u->how = HOW_BLOCKED;
	}
	ns = now - u->since;
	u->since = now;
	u->out += u->how == HOW_OUT || u->how == HOW_QUEUED_OUT ? ns : 0;
	u->vmm += u->how == HOW_VMM ? ns : 0;
	u->queued += u->how == HOW_QUEUED || u->how == HOW_QUEUED_OUT ? ns : 0;
	u->blocked += u->how == HOW_BLOCKED ? ns : 0;
	u->how = (uint8_t)how_now(t);
}

static void exec_end(struct running *r, const struct usage *u, int64_t now)
{
	if (!r->executing)
		return;
	r->executing = false;
	r->exec += now - r->exec_from;
	r->exec_out += u->out - r->exec_out0;
	r->exec_vmm += u->vmm - r->exec_vmm0;
}

static void exec_begin(struct running *r, const struct usage *u, int64_t now)
{
	r->executing = true;
	r->exec_from = now;
	r->exec_out0 = u->out;
	r->exec_vmm0 = u->vmm;
}

static void request_end(struct cpu *c, const struct usage *u, const struct running *r)
{
	struct sim *s = c->m->sim;

	if (s->truth)
		fprintf(s->truth->request, "%" PRId64 ",%s,%d,%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64
		        ",%" PRId64 ",%" PRId64 ",%" PRId64 "\n", r->id, c->m->is_host ? "host" : c->m->name, c->cur->tid, r->start,
		        s->now, r->exec, r->exec_out, u->out - r->out0, r->exec_vmm, u->vmm - r->vmm0, u->queued - r->queued0,
		        u->blocked - r->blocked0);
}

void truth_mark(struct cpu *c, enum log_kind kind, int64_t id)
{
	struct thread *t = c->cur;
	struct running *r;
	struct usage *u;
	unsigned i;

	usage_update(t);
	u = t->usage;
	if (!u)
		return;
	for (i = 0; i < u->n && u->req[i].id != id; i++)
		;
	r = &u->req[i];
	if (kind == LOG_START && u->n < 64) {
		*r = (struct running){ .id = id, .start = t->m->sim->now, .out0 = u->out, .vmm0 = u->vmm, .queued0 = u->queued,
		                       .blocked0 = u->blocked };
		u->n++;
	}
	if (i >= u->n)
		return;
	if (kind == LOG_START || kind == LOG_RESUME) {
		exec_begin(r, u, t->m->sim->now);
		return;
	}
	exec_end(r, u, t->m->sim->now);
	if (kind == LOG_END) {
		request_end(c, u, r);
		*r = u->req[--u->n];
	}
}

/* ---- files --------------------------------------------------------------------------------------------------------- */

static FILE *create(struct sim *s, const char *name, const char *header)
{
	char *path = mem_printf("%s/%s", s->truth->dir, name);
	FILE *f = fopen(path, "w");

	if (!f)
		error_system(&s->err, NULL, "%s", path);
	else
		fprintf(f, "%s\n", header);
	free(path);
	return f;
}

int truth_open(struct sim *s, const char *dir)
{
	s->truth = mem_new(1, sizeof *s->truth);
	s->truth->dir = mem_dup(dir);
	s->truth->interval = create(s, "intervals.csv", "path,start,end,value");
	s->truth->who = create(s, "pcpus.csv", "pcpu,start,end,system,tid,mode");
	s->truth->request = create(s, "requests.csv", "request,machine,tid,start,end,exec_ns,stolen_exec_ns,stolen_flight_ns,"
	                           "vmm_exec_ns,vmm_flight_ns,guest_wait_ns,blocked_ns");
	return s->truth->interval && s->truth->who && s->truth->request ? 0 : -1;
}

static int write_clocks(struct sim *s)
{
	FILE *f = create(s, "clocks.csv", "machine,from_host_ns,ref_host_ns,ref_guest_ns,rate_2p60,alpha,alpha_ppm,beta_ns");

	if (!f)
		return -1;
	for (unsigned i = 0; i < s->machines; i++)
		for (unsigned k = 0; k < s->machine[i]->clocks; k++) {
			const struct clock_part *p = &s->machine[i]->clock[k];
			long double rate = (long double)p->rate / (long double)(UINT64_C(1) << 60);
			long double alpha = 1 / (1 + rate);

			fprintf(f, "%s,%" PRId64 ",%" PRId64 ",%" PRId64 ",%" PRId64 ",%.18Lf,%.9Lf,%.3Lf\n",
			        i == 0 ? "host" : s->machine[i]->name, k ? p->from : s->first_record, p->ref_host, p->ref_guest,
			        p->rate, alpha, -rate / (1 + rate) * 1e6L,
			        (long double)(p->ref_host - p->ref_guest) + rate / (1 + rate) * (long double)p->ref_guest);
		}
	return fclose(f) ? error_system(&s->err, NULL, "%s/clocks.csv", s->truth->dir) : 0;
}

static int write_machines(struct sim *s)
{
	FILE *f = create(s, "vcpus.csv", "vm,vcpu,host_tid,host_pid,traced");

	if (!f)
		return -1;
	for (unsigned i = 1; i < s->machines; i++)
		for (unsigned k = 0; k < s->machine[i]->cpus; k++)
			fprintf(f, "%s,%u,%d,%d,%d\n", s->machine[i]->name, k, s->machine[i]->cpu[k].host->tid,
			        s->machine[i]->cpu[k].host->pid, s->machine[i]->traced);
	return fclose(f) ? error_system(&s->err, NULL, "%s/vcpus.csv", s->truth->dir) : 0;
}

static int write_info(struct sim *s)
{
	FILE *f = create(s, "info.csv", "key,value");

	if (!f)
		return -1;
	fprintf(f, "scenario,%s\nseed,%" PRIu64 "\nbegin,%" PRId64 "\nend,%" PRId64 "\nrecords,%" PRIu64 "\n", s->opt.scenario,
	        s->opt.seed, s->first_record, s->last_record, s->records);
	for (int i = 0; i < REC_COUNT; i++)
		if (s->kind_records[i])
			fprintf(f, "records %s,%" PRIu64 "\n", record_class[i].name, s->kind_records[i]);
	return fclose(f) ? error_system(&s->err, NULL, "%s/info.csv", s->truth->dir) : 0;
}

static void close_cpu(struct cpu *c, int64_t end)
{
	struct sim *s = c->m->sim;
	struct track host_thread = { s->first_record, c->host ? c->host->tid : NOTHING };

	write_interval(s, TRACK_CURRENT, c->m, c->number, &c->current, end);
	write_interval(s, TRACK_OWNER, c->m, c->number, &c->owner, end);
	write_interval(s, TRACK_IRQ, c->m, c->number, &c->interrupt, end);
	write_interval(s, TRACK_VSTATUS, c->m, c->number, &c->vstatus, end);
	write_interval(s, TRACK_PCPU, c->m, c->number, &c->pcpu, end);
	write_interval(s, TRACK_VTHREAD, c->m, c->number, &host_thread, end);
	if (!c->host)
		write_who(c, end);
}

/* Ends all intervals with the last record and writes the small files. */
int truth_close(struct sim *s)
{
	struct truth *t = s->truth;
	int result = 0;

	for (unsigned i = 0; i < s->machines; i++) {
		for (unsigned k = 0; k < s->machine[i]->cpus; k++)
			close_cpu(&s->machine[i]->cpu[k], s->last_record);
		for (int32_t tid = 1; tid < TIDS; tid++)
			if (s->machine[i]->by_tid[tid])
				close_thread(s->machine[i]->by_tid[tid], s->last_record);
	}
	if (write_clocks(s) < 0 || write_machines(s) < 0 || write_info(s) < 0)
		result = -1;
	FILE *file[] = { t->interval, t->who, t->request };
	for (int i = 0; i < 3; i++)
		if (ferror(file[i]) | fclose(file[i]))
			result = error_system(&s->err, NULL, "%s", t->dir);
	free(t->dir);
	free(t);
	s->truth = NULL;
	return result;
}
