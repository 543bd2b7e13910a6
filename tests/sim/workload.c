/* Workloads: programs of threads as tables of steps, and their interpreter.
 *
 * A table runs from the top; W_GOTO and W_LOOP jump; a program that reaches its end repeats from the top unless its last
 * step ends it. Every program contains a step that takes time. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "sim.h"

#define END { W_PAUSE, 0, 0, 0, NULL }

static const struct step hog[] = { { W_RUN, 0, 80 * MS, 160 * MS, NULL }, { W_GOTO, 0, 0, 0, NULL } };
static const struct step pulse[] = {
	{ W_RUN, 0, 73 * MS, 77 * MS, NULL }, { W_PERIOD, 0, 500 * MS, 0, NULL }, { W_GOTO, 0, 0, 0, NULL },
};
static const struct step fibonacci[] = {
	{ W_EXEC, 0, 0, 0, "fibonacci" }, { W_RUN, 0, 2600 * MS, 2650 * MS, NULL }, { W_QUIT, 0, 0, 0, NULL },
};
static const struct step fib_shell[] = {
	{ W_RUN, 0, 200 * US, 400 * US, NULL }, { W_FORK, WL_FIBONACCI, 0, 0, NULL }, END,
};
static const struct step critical[] = {
	{ W_EXEC, 0, 0, 0, "critical_task" }, { W_RUN, 0, 272 * MS, 280 * MS, NULL }, { W_QUIT, 0, 0, 0, NULL },
};
static const struct step critical_shell[] = {
	{ W_RUN, 0, 200 * US, 400 * US, NULL }, { W_FORK, WL_CRITICAL, 0, 0, NULL }, { W_PERIOD, 0, SEC, 0, NULL },
	{ W_GOTO, 0, 0, 0, NULL },
};
static const struct step cc[] = {
	{ W_RUN, 0, 4 * MS, 6 * MS, NULL }, { W_UNTIL, 0, 0, 0, NULL }, { W_QUIT, 0, 0, 0, NULL },
};
static const struct step burst_hog[] = {
	{ W_RUN, 0, 30 * MS, 90 * MS, NULL }, { W_SLEEP, 0, 10 * MS, 120 * MS, NULL }, { W_GOTO, 0, 0, 0, NULL },
};
static const struct step shortlived[] = {
	{ W_EXEC, 0, 0, 0, "short" }, { W_RUN, 0, 30 * US, 900 * US, NULL }, { W_QUIT, 0, 0, 0, NULL },
};
static const struct step forker[] = {
	{ W_RUN, 0, 50 * US, 200 * US, NULL }, { W_FORK, WL_SHORT, 0, 0, NULL }, { W_LOOP, 0, 3, 9, NULL },
	{ W_SLEEP, 0, 2 * MS, 15 * MS, NULL }, { W_GOTO, 0, 0, 0, NULL },
};
static const struct step sleeper[] = {
	{ W_RUN, 0, 20 * US, 400 * US, NULL }, { W_SLEEP, 0, 500 * US, 30 * MS, NULL }, { W_GOTO, 0, 0, 0, NULL },
};
static const struct step napper[] = {
	{ W_RUN, 0, 3 * MS, 5 * MS, NULL }, { W_SLEEP, 0, 80 * MS, 100 * MS, NULL }, { W_GOTO, 0, 0, 0, NULL },
};
static const struct step short_napper[] = {
	{ W_RUN, 0, 100 * US, 200 * US, NULL }, { W_SLEEP, 0, 150 * MS, 250 * MS, NULL }, { W_GOTO, 0, 0, 0, NULL },
};
static const struct step long_napper[] = {
	{ W_RUN, 0, 14 * MS, 16 * MS, NULL }, { W_SLEEP, 0, 150 * MS, 250 * MS, NULL }, { W_GOTO, 0, 0, 0, NULL },
};
static const struct step periodic[] = {
	{ W_RUN, 0, 1 * MS, 4 * MS, NULL }, { W_PERIOD, 0, 20 * MS, 0, NULL }, { W_GOTO, 0, 0, 0, NULL },
};
static const struct step disk[] = {
	{ W_RUN, 0, 100 * US, 900 * US, NULL }, { W_DISK, 0, 60 * US, 4 * MS, NULL }, { W_LOOP, 0, 2, 12, NULL },
	{ W_SLEEP, 0, 5 * MS, 40 * MS, NULL }, { W_GOTO, 0, 0, 0, NULL },
};
static const struct step blockio[] = {
	{ W_RUN, 0, 500 * US, 5 * MS, NULL }, { W_IO, 0, 100 * US, 6 * MS, NULL }, { W_GOTO, 0, 0, 0, NULL },
};
static const struct step beacon[] = {
	{ W_RUN, 0, 20 * US, 60 * US, NULL }, { W_BEACON, 0, 0, 0, NULL }, { W_PERIOD, 0, 0, 0, NULL },
	{ W_GOTO, 0, 0, 0, NULL },
};
static const struct step server[] = { { W_SERVE, 0, 0, 0, NULL }, { W_GOTO, 0, 0, 0, NULL } };
static const struct step client[] = {
	{ W_RUN, 0, 30 * US, 90 * US, NULL }, { W_SUBMIT, 0, 0, 0, NULL }, { W_PERIOD, 0, 60 * MS, 0, NULL },
	{ W_GOTO, 0, 0, 0, NULL },
};
static const struct step tracer[] = {
	{ W_DUMP, 0, 0, 0, NULL }, { W_RUN, 0, 30 * US, 200 * US, NULL }, { W_SLEEP, 0, 180 * MS, 220 * MS, NULL },
	{ W_GOTO, 1, 0, 0, NULL },
};
static const struct step lazy_tracer[] = {
	{ W_DUMP, 0, 0, 0, NULL }, { W_RUN, 0, 30 * US, 200 * US, NULL }, { W_SLEEP, 0, 2 * SEC, 4 * SEC, NULL },
	{ W_GOTO, 1, 0, 0, NULL },
};
static const struct step daemon_steps[] = {
	{ W_RUN, 0, 20 * US, 300 * US, NULL }, { W_SLEEP, 0, 100 * MS, 1500 * MS, NULL }, { W_GOTO, 0, 0, 0, NULL },
};
static const struct step qemu[] = {
	{ W_RUN, 0, 20 * US, 90 * US, NULL }, { W_SLEEP, 0, 90 * MS, 400 * MS, NULL }, { W_GOTO, 0, 0, 0, NULL },
};
static const struct step exits[] = {
	{ W_RUN, 0, 20 * US, 200 * US, NULL }, { W_EXIT, 0, 0, 0, NULL }, { W_LOOP, 0, 5, 60, NULL },
	{ W_SLEEP, 0, 1 * MS, 20 * MS, NULL }, { W_GOTO, 0, 0, 0, NULL },
};
static const struct step threaded[] = {
	{ W_RUN, 0, 100 * US, 1 * MS, NULL }, { W_THREAD, WL_WORKER, 0, 0, NULL }, { W_LOOP, 0, 2, 5, NULL },
	{ W_SLEEP, 0, 20 * MS, 60 * MS, NULL }, { W_GOTO, 0, 0, 0, NULL },
};
static const struct step worker[] = {
	{ W_RUN, 0, 200 * US, 3 * MS, NULL }, { W_SLEEP, 0, 300 * US, 4 * MS, NULL }, { W_LOOP, 0, 1, 6, NULL },
	{ W_QUIT, 0, 0, 0, NULL },
};

static const struct step launcher[] = { { W_FORK, WL_VM, 0, 0, NULL }, END };
static const struct step vm[] = {
	{ W_EXEC, 0, 0, 0, "qemu-system-x86" }, { W_RUN, 0, 100 * US, 400 * US, NULL }, { W_PLUG, 0, 0, 0, NULL },
	/* index WL_VM_RUNS */
	{ W_RUN, 0, 20 * US, 90 * US, NULL }, { W_SLEEP, 0, 4 * MS, 30 * MS, NULL }, { W_REAP, 0, 0, 0, NULL },
	{ W_RUN, 0, 20 * US, 90 * US, NULL }, { W_CHANGE, 0, 0, 0, NULL }, { W_LIVES, WL_VM_RUNS, 0, 0, NULL },
	{ W_KILL, 0, 0, 0, NULL }, { W_SLEEP, 0, 1 * MS, 3 * MS, NULL }, { W_GONE, 10, 0, 0, NULL },
	{ W_QUIT, 0, 0, 0, NULL },
};

static const struct step carrier[] = {
	{ W_TAKE, 0, 0, 0, NULL }, { W_RUN, 0, 30 * US, 300 * US, NULL }, { W_DELIVER, 0, 0, 0, NULL },
	    { W_GOTO, 0, 0, 0, NULL },
};
static const struct step locker[] = {
	{ W_RUN, 0, 50 * US, 2 * MS, NULL }, { W_LOCK, 0, 0, 0, NULL }, { W_RUN, 0, 200 * US, 6 * MS, NULL },
	{ W_UNLOCK, 0, 0, 0, NULL }, { W_LOOP, 0, 1, 4, NULL }, { W_SLEEP, 0, 500 * US, 8 * MS, NULL },
	    { W_GOTO, 0, 0, 0, NULL },
};
static const struct step spinner[] = {
	{ W_RUN, 0, 50 * US, 2 * MS, NULL }, { W_SPIN, 1, 20 * US, 60 * US, NULL }, { W_RUN, 0, 200 * US, 3 * MS, NULL },
	{ W_UNLOCK, 1, 0, 0, NULL }, { W_LOOP, 0, 1, 4, NULL }, { W_SLEEP, 0, 500 * US, 8 * MS, NULL },
	    { W_GOTO, 0, 0, 0, NULL },
};
static const struct step asker[] = {
	{ W_RUN, 0, 50 * US, 900 * US, NULL }, { W_SEND, 0, 0, 0, NULL }, { W_RECEIVE, 0, 0, 0, NULL },
	{ W_LOOP, 0, 2, 9, NULL }, { W_SLEEP, 0, 500 * US, 8 * MS, NULL }, { W_GOTO, 0, 0, 0, NULL },
};
static const struct step answerer[] = {
	{ W_RECEIVE, 0, 0, 0, NULL }, { W_RUN, 0, 200 * US, 4 * MS, NULL }, { W_SEND, 0, 0, 0, NULL },
	    { W_GOTO, 0, 0, 0, NULL },
};

const struct step *const workload[WL_COUNT] = {
	[WL_HOG] = hog, [WL_PULSE] = pulse, [WL_FIBONACCI] = fibonacci, [WL_FIB_SHELL] = fib_shell,
	[WL_CRITICAL] = critical, [WL_CRITICAL_SHELL] = critical_shell, [WL_CC] = cc, [WL_BURST_HOG] = burst_hog,
	[WL_SHORT] = shortlived, [WL_FORKER] = forker, [WL_SLEEPER] = sleeper, [WL_PERIODIC] = periodic, [WL_DISK] = disk,
	[WL_BLOCKIO] = blockio, [WL_BEACON] = beacon, [WL_SERVER] = server, [WL_CLIENT] = client, [WL_TRACER] = tracer,
	[WL_QEMU] = qemu, [WL_EXITS] = exits, [WL_THREADED] = threaded, [WL_WORKER] = worker,
	[WL_LAUNCHER] = launcher, [WL_VM] = vm,
	[WL_LAZY_TRACER] = lazy_tracer, [WL_DAEMON] = daemon_steps, [WL_CARRIER] = carrier, [WL_LOCKER] = locker,
	[WL_ASKER] = asker, [WL_ANSWERER] = answerer, [WL_SPINNER] = spinner, [WL_NAPPER] = napper, [WL_SHORT_NAPPER] = short_napper, [WL_LONG_NAPPER] = long_napper,
};

static void block_thread(struct cpu *c, struct thread *t, enum want want)
{
	t->want = (uint8_t)want;
	cpu_push(c, OP_SWITCH, NULL);
}

void sleep_until(struct thread *t, int64_t when)
{
	queue_push(&t->m->sim->queue, when, DUE_SLEEP, t, ++t->timer_gen);
}

/* Begins a part of the computation, up to the next exit: guest code causes random exits. */
static void begin_computation(struct cpu *c, struct thread *t)
{
	struct rng *r = &t->m->sim->rng;
	int64_t until_exit = c->host ? rng_exp(r, t->m->exit_mean) : t->run_left;

	t->work_left = until_exit < t->run_left ? until_exit : t->run_left;
	t->run_left -= t->work_left;
}

static void random_exit(struct cpu *c)
{
	static const uint8_t kinds[] = { EXIT_MSR, EXIT_NPF, EXIT_CPUID, EXIT_MSR };
	struct sim *s = c->m->sim;
	uint8_t kind = kinds[rng_range(&s->rng, 0, 3)];
	struct op *op = cpu_push(c, OP_LEAVE, NULL);

	op->arg = kind;
	if (kind != EXIT_NPF || !s->opt.swap || !rng_chance(&s->rng, s->opt.swap))
		return;
	op->arg = rng_chance(&s->rng, 500000) ? EXIT_FETCH : EXIT_MMIO;
	op->a = rng_range(&s->rng, 80 * US, 5 * MS);
}

static void log_text(struct cpu *c, enum log_kind kind, int64_t key)
{
	struct op *op = cpu_push(c, OP_LOG, NULL);

	op->arg = (uint8_t)kind;
	op->a = key;
}

/* Sends a beacon: "vmsync a X", then the hypercall with X; after the VM entry that follows, "vmsync d X+1". */
static void send_beacon(struct cpu *c)
{
	struct sim *s = c->m->sim;
	int64_t key = (int64_t)c->key, sent = key;
	struct op *op;

	c->key += 2;
	log_text(c, LOG_SYNC_A, key);
	if (s->opt.sync_jitter > 0)
		cpu_push(c, OP_NOP, NULL)->delay = (int32_t)rng_range(&s->rng, 1, s->opt.sync_jitter);
	if (rng_chance(&s->fault, s->opt.sync_bogus))
		sent = rng_range(&s->fault, 1, 2 * key + 100);
	op = cpu_push(c, OP_LEAVE, NULL);
	op->arg = EXIT_VMMCALL;
	op->a = SYNC_NR;
	op->b = sent;
	if (s->opt.sync_jitter > 0)
		cpu_push(c, OP_NOP, NULL)->delay = (int32_t)rng_range(&s->rng, 1, s->opt.sync_jitter);
	log_text(c, LOG_SYNC_D, key + 1);
}

/* Writes LTTng's state dump at the beginning of tracing, one thread per call. Returns true at its end. */
static bool dump_next(struct cpu *c, struct thread *t)
{
	struct machine *m = c->m;

	if (t->dump_tid == 0)
		cpu_push(c, OP_DUMP_START, NULL);
	for (t->dump_tid++; t->dump_tid < TIDS; t->dump_tid++)
		if (m->by_tid[t->dump_tid] && m->by_tid[t->dump_tid]->state != TASK_NEW) {
			cpu_push(c, OP_DUMP, NULL)->a = t->dump_tid;
			return false;
		}
	cpu_push(c, OP_DUMP_END, NULL);
	return true;
}

/* ---- request servers: one thread, many concurrent requests, each of several stages */

#define IN_FLIGHT 64
struct server {
	struct { int64_t id; int stages; bool started; int64_t not_before; } req[IN_FLIGHT];
	unsigned n, at;
	bool executing;
};

struct server *server_add(struct thread *t)
{
	t->server = mem_new(1, sizeof *t->server);
	return t->server;
}

void server_free(struct server *s)
{
	free(s);
}

static void submit_requests(struct cpu *c, struct thread *t)
{
	struct server *s = t->server;
	struct thread *to = NULL;
	int64_t burst = rng_range(&c->m->sim->rng, 1, 2 * c->m->sim->opt.burst - 1);

	for (int32_t tid = 1; tid < TIDS && !to; tid++)
		if (c->m->by_tid[tid] && c->m->by_tid[tid]->server && c->m->by_tid[tid] != t)
			to = c->m->by_tid[tid];
	if (!to)
		return;
	s = to->server;
	for (; burst > 0 && s->n < IN_FLIGHT; burst--) {
		s->req[s->n].id = (int64_t)c->m->next_request++;
		s->req[s->n].stages = (int)rng_range(&c->m->sim->rng, 1, 4);
		s->req[s->n].started = false;
		s->req[s->n++].not_before = 0;
	}
	cpu_push(c, OP_WAKING, to);
}

/* Ends a stage of request `at`. */
static void end_stage(struct cpu *c, struct server *s)
{
	struct rng *r = &c->m->sim->rng;

	s->executing = false;
	if (--s->req[s->at].stages > 0) {
		log_text(c, LOG_YIELD, s->req[s->at].id);
		s->req[s->at].not_before = rng_chance(r, 300000) ? c->m->sim->now + rng_range(r, 300 * US, 4 * MS) : 0;
		s->at++;
	} else {
		log_text(c, LOG_END, s->req[s->at].id);
		s->n--;
		memmove(&s->req[s->at], &s->req[s->at + 1], (s->n - s->at) * sizeof s->req[0]);
	}
}

static void serve_next(struct cpu *c, struct thread *t)
{
	struct server *s = t->server;
	int64_t now = c->m->sim->now, earliest = INT64_MAX, work = c->m->sim->opt.work ? c->m->sim->opt.work : 100;

	if (s->executing) {
		end_stage(c, s);
		return;
	}
	for (unsigned i = 0; i < s->n; i++) {
		unsigned k = (s->at + i) % s->n;

		if (s->req[k].not_before <= now) {
			log_text(c, s->req[k].started ? LOG_RESUME : LOG_START, s->req[k].id);
			s->req[k].started = s->executing = true;
			s->at = k;
			t->run_left = rng_range(&c->m->sim->rng, 700 * US, 3 * MS) * work / 100;
			return;
		}
		if (s->req[k].not_before < earliest)
			earliest = s->req[k].not_before;
	}
	if (s->n)
		sleep_until(t, earliest);
	block_thread(c, t, WANT_SLEEP);
}

/* ---- interpreter */

static void wait_period(struct cpu *c, struct thread *t, int64_t ns)
{
	int64_t now = c->m->sim->now;

	t->period_next += ns;
	if (t->period_next <= now)
		t->period_next = now + ns - (now - t->period_next) % ns;
	sleep_until(t, t->period_next);
	block_thread(c, t, WANT_SLEEP);
}

static void push_exit(struct cpu *c, struct thread *t, enum exit_kind kind, int64_t ns)
{
	struct op *op = cpu_push(c, OP_LEAVE, t);

	op->arg = (uint8_t)kind;
	op->a = ns;
}

static void push_fork(struct cpu *c, const struct step *st)
{
	struct op *op = cpu_push(c, OP_FORK, NULL);

	op->a = st->arg;
	op->b = st->kind == W_THREAD;
}

/* Runs a step of a VM's main thread. */
static void vm_step(struct cpu *c, struct thread *t, const struct step *st)
{
	switch (st->kind) {
	case W_PLUG:
		vm_plug_all(c, t->vm);
		break;
	case W_REAP:
		vm_reap(c, t->vm);
		break;
	case W_CHANGE:
		vm_change(c, t->vm);
		break;
	case W_LIVES:
		if (c->m->sim->now < t->vm->dies)
			t->pc = st->arg;
		break;
	case W_KILL:
		vm_kill(c, t->vm);
		break;
	default:
		if (!vm_gone(t->vm))
			t->pc = st->arg;
	}
}

/* Runs a step of a thread that waits for other threads. */
static void chain_step(struct cpu *c, struct thread *t, const struct step *st)
{
	switch (st->kind) {
	case W_LOCK:
		lock_take(c, t, &c->m->lock[st->arg]);
		break;
	case W_UNLOCK:
		lock_give(c, t, &c->m->lock[st->arg]);
		break;
	case W_SPIN:
		if (lock_spin(c, t, &c->m->lock[st->arg]))
			break;
		t->pc--;
		push_exit(c, t, EXIT_PAUSE, 0);
		t->run_left = rng_range(&c->m->sim->rng, st->lo, st->hi);
		break;
	case W_SEND:
		t->inbox = 0;
		push_exit(c, t, EXIT_KICK, 0);
		break;
	case W_TAKE:
		if (carrier_next(t))
			break;
		t->pc--;
		block_thread(c, t, WANT_SLEEP);
		break;
	case W_DELIVER:
		carrier_deliver(c, t);
		break;
	default:
		if (t->inbox) {
			t->inbox--;
			break;
		}
		t->pc--;
		block_thread(c, t, WANT_SLEEP);
	}
}

/* Runs one step; on the host, steps that only a guest can execute count as computation. */
static void step_run(struct cpu *c, struct thread *t, const struct step *st)
{
	struct sim *s = c->m->sim;
	int64_t ns = rng_range(&s->rng, st->lo, st->hi);
	bool guest = c->host != NULL;

	switch (st->kind) {
	case W_RUN:
		t->run_left = ns;
		break;
	case W_SLEEP:
		sleep_until(t, s->now + ns);
		block_thread(c, t, WANT_SLEEP);
		break;
	case W_PERIOD:
		wait_period(c, t, st->lo ? st->lo : SEC / s->opt.beacon_hz);
		break;
	case W_GOTO:
		t->pc = st->arg;
		break;
	case W_LOOP:
		if (t->loop_left == 0)
			t->loop_left = ns + 1;
		if (--t->loop_left > 0)
			t->pc = st->arg;
		break;
	case W_UNTIL:
		if (s->now < t->until)
			t->pc = st->arg;
		break;
	case W_FORK: case W_THREAD:
		push_fork(c, st);
		break;
	case W_EXEC:
		cpu_push(c, OP_EXEC, NULL)->a = strtab_put(&s->names, st->text);
		break;
	case W_QUIT:
		cpu_push(c, OP_QUIT, NULL);
		block_thread(c, t, WANT_DIE);
		break;
	case W_BEACON:
		send_beacon(c);
		break;
	case W_EXIT:
		if (guest)
			random_exit(c);
		break;
	case W_IO:
		if (guest)
			push_exit(c, t, EXIT_IO, ns);
		break;
	case W_DISK:
		if (guest)
			push_exit(c, t, EXIT_DISK, ns);
		else
			queue_push(&s->queue, s->now + ns, DUE_HOSTIO, t, 0);
		block_thread(c, t, WANT_DISK);
		break;
	case W_SERVE:
		serve_next(c, t);
		break;
	case W_SUBMIT:
		submit_requests(c, t);
		break;
	case W_DUMP:
		if (!dump_next(c, t))
			t->pc--;
		break;
	case W_PAUSE:
		t->pc--;
		block_thread(c, t, WANT_SLEEP);
		break;
	case W_LOCK: case W_SPIN: case W_UNLOCK: case W_SEND: case W_RECEIVE: case W_TAKE: case W_DELIVER:
		chain_step(c, t, st);
		break;
	default:
		vm_step(c, t, st);
	}
}

/* Chooses the next action of a thread that has no computation left. */
void thread_step(struct cpu *c, struct thread *t)
{
	if (t->run_left > 0) {
		bool first = !t->in_run;

		t->in_run = true;
		if (!first && c->host)
			random_exit(c);
		begin_computation(c, t);
		return;
	}
	t->in_run = false;
	step_run(c, t, &t->prog[t->pc++]);
}
