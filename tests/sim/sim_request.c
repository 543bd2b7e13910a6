/* Truth about requests: how the server's time was spent while each request was in flight, and while it was executed.
 *
 * Counters of the whole server are updated at each change that affects them; a request stores their values at its start,
 * so many concurrent requests cost nothing extra. */
#include <inttypes.h>

#include "base/mem.h"
#include "truth.h"

/* Accumulated times of a request server up to `since`, ns. */
struct usage {
	int64_t since;
	int64_t out, vmm, queued, blocked;  /* vCPU preempted while runnable; in the hypervisor; queued in the guest; blocked */
	uint8_t how;
	struct running {
		int64_t id, start, exec_from, exec, exec_out, exec_vmm;
		int64_t out0, vmm0, queued0, blocked0, exec_out0, exec_vmm0;
		bool executing;
	} req[64];
	unsigned n;
};
enum how { HOW_RUN, HOW_OUT, HOW_VMM, HOW_QUEUED, HOW_QUEUED_OUT, HOW_BLOCKED };

static enum how how_now(const struct thread *t)
{
	const struct cpu *c = &t->m->cpu[t->cpu];
	bool out = c->host && !truth_scheduled(c);

	switch ((enum task_state)t->state) {
	case TASK_RUNNING:
		return out ? HOW_OUT : truth_executes(c) ? HOW_RUN : HOW_VMM;
	case TASK_RUNNABLE:
		return out ? HOW_QUEUED_OUT : HOW_QUEUED;
	default:
		return HOW_BLOCKED;
	}
}

void request_usage(struct thread *t)
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

	request_usage(t);
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
