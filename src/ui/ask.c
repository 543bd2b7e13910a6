#include "ui/ask.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "ui/signals.h"

#define SLICE_NS 40000000     /* of work between two looks at what is asked */
#define REPORT_NS 250000000   /* between two signs of progress */

enum phase { NOTHING, ASKED, ANSWERED };

struct asker {
	const struct topo *topo;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t work, answered;
	int pipe[2];
	bool quit, working;        /* working: a slice, with what the topology leads to */
	struct slot {
		enum phase phase;
		uint64_t serial;       /* of the question; a job with another one is stale */
		struct question q;
		struct answer answer;
		unsigned progress;
	} slot[ASKS];
	/* Of the helper thread alone: */
	struct job {
		uint64_t serial;       /* 0 = none */
		struct question q;
		struct gap moment;
		struct flow_slices flow;
		struct steal_slices steal;
		int64_t cost;
	} job[ASKS];
	int64_t reported;
};

static int64_t now_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

void slices_begin(struct slices *s, int64_t from, int64_t to)
{
	int64_t span = to - from;
	*s = (struct slices){ from, to, from, span / 4096 + 1 };
}

int64_t slices_end(const struct slices *s)
{
	return s->len > s->to - s->at ? s->to : s->at + s->len - 1;
}

void slices_next(struct slices *s, int64_t cost)
{
	s->at = slices_end(s) + 1;
	if (cost < SLICE_NS / 2 && s->len < INT64_MAX / 16)
		s->len *= cost < SLICE_NS / 16 ? 8 : 2;
	else if (cost > SLICE_NS)
		s->len = cost > 4 * SLICE_NS ? s->len / 8 + 1 : s->len / 2 + 1;
}

static unsigned done_part(const struct slices *s)
{
	return (unsigned)(100.0 * ((double)(s->at - s->from) / ((double)(s->to - s->from) + 1)));
}

/* ---- The helper thread ---------------------------------------------------------------------------------------- */

static void job_release(struct job *j)
{
	flow_slices_release(&j->flow);
	steal_slices_release(&j->steal);
	*j = (struct job){ 0 };
}

static void job_begin(struct job *j, const struct slot *slot)
{
	job_release(j);
	j->serial = slot->serial;
	j->q = slot->q;
}

/* What is not a gap: a look at the history. */
static int answer_at_once(const struct topo *topo, const struct question *q, struct answer *out)
{
	if (q->subject.kind == SUBJECT_MACHINE)
		out->status = steal_time(topo, &q->subject, q->from, q->to, &out->ns, &out->err);
	else
		out->status = explain_status(topo, &q->subject, q->t, out->text, sizeof out->text, &out->err);
	return 1;
}

/* Which moment is asked for: 1 = its flow tells the answer, 0 = no flow is needed, -1 = error. */
static int find_moment(const struct topo *topo, enum ask kind, struct job *j, struct answer *out)
{
	const struct question *q = &j->q;
	j->moment = (struct gap){ .subject = q->subject, .start = q->from, .end = q->to };
	if (kind == ASK_CAUSE)
		return 1;
	if (q->subject.kind == SUBJECT_MACHINE)
		return 0;
	int in_gap = explain_moment(topo, &q->subject, q->t, &j->moment, &out->err);
	return in_gap == 0 && kind == ASK_EXPLAIN ? 1 : in_gap;
}

static void tell_cause(const struct flow *f, struct answer *out)
{
	out->tid = -1;
	for (size_t i = 0; i < f->entries && out->tid < 0; i++) {
		if (f->entry[i].tid > 0 && f->entry[i].kind == FLOW_PREEMPTING) {
			out->system = f->entry[i].system;
			out->tid = f->entry[i].tid;
		}
	}
}

/* STATUS, CAUSE, EXPLAIN: by the flow of a moment. */
static int step_moment(const struct topo *topo, enum ask kind, struct job *j, struct answer *out)
{
	struct flow flow;
	int done = 1;
	if (j->cost == 0) {
		done = find_moment(topo, kind, j, out);
		if (done == 0)
			return answer_at_once(topo, &j->q, out);
		if (done > 0)
			done = flow_slices_begin(&j->flow, topo, &j->q.subject, j->moment.start, j->moment.end, &out->err);
	}
	if (done >= 0)
		done = flow_slices_step(&j->flow, topo, &out->err);
	out->status = done < 0 ? -1 : 0;
	if (done <= 0)
		return done;
	flow_slices_finish(&j->flow, &flow, &out->cut);
	if (kind == ASK_STATUS)
		explain_status_of(topo, &j->moment, &flow, out->text, sizeof out->text);
	else if (kind == ASK_CAUSE)
		tell_cause(&flow, out);
	else
		out->status = explain_at_of(topo, &j->moment, &flow, &out->paragraph, &out->err);
	flow_release(&flow);
	return 1;
}

static int step_flow(const struct topo *topo, struct job *j, struct answer *out)
{
	int done = -1;
	if (j->cost > 0 || flow_slices_begin(&j->flow, topo, &j->q.subject, j->q.from, j->q.to, &out->err) == 0)
		done = flow_slices_step(&j->flow, topo, &out->err);
	if (done > 0)
		flow_slices_finish(&j->flow, &out->flow, &out->cut);
	out->status = done < 0 ? -1 : 0;
	return done;
}

static int step_steal(const struct topo *topo, struct job *j, struct answer *out)
{
	if (j->cost == 0)
		steal_slices_begin(&j->steal, topo, j->q.from, j->q.to);
	int done = steal_slices_step(&j->steal, topo, &out->err);
	out->by_machine = j->steal.by_machine;
	if (done > 0)
		steal_slices_finish(&j->steal, &out->steal);
	out->status = done < 0 ? -1 : 0;
	return done;
}

/* One slice of work.  1 = answered, 0 = not yet. */
static int job_step(struct asker *a, enum ask kind, struct answer *out)
{
	struct job *j = &a->job[kind];
	int64_t began = now_ns();
	int done = kind == ASK_FLOW ? step_flow(a->topo, j, out)
	           : kind == ASK_STEAL ? step_steal(a->topo, j, out)
	                               : step_moment(a->topo, kind, j, out);
	j->cost += now_ns() - began + 1;
	out->cost = j->cost;
	return done != 0;
}

static void tell(struct asker *a)
{
	a->reported = now_ns();
	asker_poke(a);
}

static void answer_release(struct answer *answer)
{
	flow_release(&answer->flow);
	steal_release(&answer->steal);
	free(answer->paragraph);
	*answer = (struct answer){ 0 };
}

/* With the lock held; lets go of it while it works. */
static void work_on(struct asker *a, enum ask kind)
{
	struct slot *slot = &a->slot[kind];
	struct job *j = &a->job[kind];
	struct answer *answer = mem_new(1, sizeof *answer);
	if (j->serial != slot->serial)
		job_begin(j, slot);
	a->working = true;
	pthread_mutex_unlock(&a->lock);
	int done = job_step(a, kind, answer);
	pthread_mutex_lock(&a->lock);
	a->working = false;
	bool stale = slot->phase != ASKED || slot->serial != j->serial;
	if (!stale && done) {
		answer_release(&slot->answer);
		slot->answer = *answer;
		*answer = (struct answer){ 0 };
		slot->phase = ANSWERED;
		pthread_cond_broadcast(&a->answered);
		tell(a);
	} else if (!stale) {
		slot->progress = done_part(kind == ASK_STEAL ? &j->steal.s : &j->flow.s);
		if (now_ns() - a->reported > REPORT_NS)
			tell(a);
	}
	if (stale || done)
		job_release(j);
	if (stale)
		pthread_cond_broadcast(&a->answered);
	answer_release(answer);
	free(answer);
}

static void *helper(void *arg)
{
	struct asker *a = arg;
	pthread_mutex_lock(&a->lock);
	while (!a->quit) {
		int kind = 0;
		while (kind < ASKS && a->slot[kind].phase != ASKED)
			kind++;
		if (kind < ASKS)
			work_on(a, (enum ask)kind);
		else
			pthread_cond_wait(&a->work, &a->lock);
	}
	pthread_mutex_unlock(&a->lock);
	for (int kind = 0; kind < ASKS; kind++)
		job_release(&a->job[kind]);
	return NULL;
}

/* ---- The viewer's side ---------------------------------------------------------------------------------------- */

struct asker *asker_open(const struct topo *topo)
{
	struct asker *a = mem_new(1, sizeof *a);
	pthread_condattr_t monotonic;
	a->topo = topo;
	pthread_mutex_init(&a->lock, NULL);
	pthread_condattr_init(&monotonic);
	pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
	pthread_cond_init(&a->work, NULL);
	pthread_cond_init(&a->answered, &monotonic);
	pthread_condattr_destroy(&monotonic);
	if (pipe2(a->pipe, O_CLOEXEC | O_NONBLOCK) < 0) {
		free(a);
		return NULL;
	}
	if (signals_start_thread(&a->thread, helper, a) < 0) {
		close(a->pipe[0]);
		close(a->pipe[1]);
		free(a);
		return NULL;
	}
	return a;
}

void asker_close(struct asker *a)
{
	if (!a)
		return;
	pthread_mutex_lock(&a->lock);
	a->quit = true;
	pthread_cond_signal(&a->work);
	pthread_mutex_unlock(&a->lock);
	pthread_join(a->thread, NULL);
	for (int kind = 0; kind < ASKS; kind++)
		answer_release(&a->slot[kind].answer);
	pthread_cond_destroy(&a->work);
	pthread_cond_destroy(&a->answered);
	pthread_mutex_destroy(&a->lock);
	close(a->pipe[0]);
	close(a->pipe[1]);
	free(a);
}

void asker_ask(struct asker *a, enum ask kind, const struct question *q)
{
	pthread_mutex_lock(&a->lock);
	struct slot *slot = &a->slot[kind];
	slot->phase = ASKED;
	slot->serial++;
	slot->q = *q;
	slot->progress = 0;
	pthread_cond_signal(&a->work);
	pthread_mutex_unlock(&a->lock);
}

void asker_drop(struct asker *a, enum ask kind)
{
	pthread_mutex_lock(&a->lock);
	a->slot[kind].phase = NOTHING;
	pthread_mutex_unlock(&a->lock);
}

void asker_rest(struct asker *a)
{
	pthread_mutex_lock(&a->lock);
	for (int kind = 0; kind < ASKS; kind++) {
		answer_release(&a->slot[kind].answer);
		a->slot[kind].phase = NOTHING;
	}
	while (a->working)
		pthread_cond_wait(&a->answered, &a->lock);
	pthread_mutex_unlock(&a->lock);
}

bool asker_asked(struct asker *a, enum ask kind)
{
	pthread_mutex_lock(&a->lock);
	bool asked = a->slot[kind].phase != NOTHING;
	pthread_mutex_unlock(&a->lock);
	return asked;
}

bool asker_busy(struct asker *a)
{
	bool busy = false;
	for (int kind = 0; kind < ASKS; kind++)
		busy |= asker_asked(a, (enum ask)kind);
	return busy;
}

bool asker_take(struct asker *a, enum ask kind, struct answer *out)
{
	pthread_mutex_lock(&a->lock);
	struct slot *slot = &a->slot[kind];
	bool there = slot->phase == ANSWERED;
	if (there) {
		*out = slot->answer;
		slot->answer = (struct answer){ 0 };
		slot->phase = NOTHING;
	}
	pthread_mutex_unlock(&a->lock);
	return there;
}

unsigned asker_progress(struct asker *a, enum ask kind)
{
	pthread_mutex_lock(&a->lock);
	unsigned progress = a->slot[kind].progress;
	pthread_mutex_unlock(&a->lock);
	return progress;
}

void asker_wait(struct asker *a, enum ask kind, int64_t ns)
{
	struct timespec until;
	clock_gettime(CLOCK_MONOTONIC, &until);
	int64_t nsec = until.tv_nsec + (ns > 0 ? ns : 0);
	until.tv_sec += (time_t)(nsec / 1000000000);
	until.tv_nsec = (long)(nsec % 1000000000);
	pthread_mutex_lock(&a->lock);
	while (a->slot[kind].phase == ASKED && pthread_cond_timedwait(&a->answered, &a->lock, &until) == 0)
		;
	pthread_mutex_unlock(&a->lock);
}

void asker_poke(struct asker *a)
{
	char c = 0;
	if (write(a->pipe[1], &c, 1) < 0)
		return;  /* full: it is readable already */
}

int asker_fd(const struct asker *a)
{
	return a->pipe[0];
}

void asker_seen(struct asker *a)
{
	char some[64];
	while (read(a->pipe[0], some, sizeof some) == sizeof some)
		;
}
