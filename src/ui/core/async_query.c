#include "ui/core/async_query.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/clock.h"
#include "ui/terminal/signals.h"

#define STEP_NS 40000000      /* of work between two looks at what is asked */
#define HANDS 2               /* traces are read in one long step: by a thread of its own */
#define REPORT_NS 250000000   /* between two signs of progress */

enum phase { NOTHING, ASKED, ANSWERED };

struct asker {
	const struct topo *topo;
	const struct ui_traces *traces;
	pthread_mutex_t lock;
	pthread_cond_t work, answered;
	int pipe[2];
	bool quit;
	struct hand {
		struct asker *a;
		enum ask first, last;  /* what it answers */
		pthread_t thread;
		bool working;          /* at a step, with what the topology leads to */
	} hand[HANDS];
	struct slot {
		enum phase phase;
		uint64_t serial;       /* of the question; a job with another one is stale */
		struct question q;
		struct answer answer;
		unsigned progress;
	} slot[ASKS];
	/* Of the thread alone that answers the kind: */
	struct ask_job {
		uint64_t serial;       /* 0 = none */
		struct question q;
		struct gap moment;
		struct inquiry *inquiry;
		int64_t cost;
	} job[ASKS];
	int64_t reported;
};

/* ---- The helper threads --------------------------------------------------------------------------------------- */

static void job_release(struct ask_job *j)
{
	inquiry_close(j->inquiry);
	*j = (struct ask_job){ 0 };
}

static void job_begin(struct ask_job *j, const struct slot *slot)
{
	job_release(j);
	j->serial = slot->serial;
	j->q = slot->q;
}

/* What is not a gap: a look at the history. */
static void answer_at_once(const struct topo *topo, const struct question *q, struct answer *out)
{
	if (q->subject.kind == SUBJECT_MACHINE)
		out->status = steal_time(topo, &q->subject, q->from, q->to, &out->ns, &out->err);
	else
		out->status = explain_status(topo, &q->subject, q->t, out->text, sizeof out->text, &out->err);
}

/* Which moment is asked for: 1 = its flow tells the answer, 0 = no flow is needed, -1 = error. */
static int find_moment(const struct topo *topo, enum ask kind, struct ask_job *j, struct answer *out)
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
	const struct flow_entry *e = f->entry, *end = e + f->entries;
	out->who.system = -1;
	out->most = true;
	for (; e < end && e->who.kind != FLOW_PREEMPTING; e++)
		out->most &= e->who.kind == FLOW_RUNNING;
	if (e == end)
		return;
	out->who = e->who;
	out->share = e->share;
	snprintf(out->text, sizeof out->text, "%s", e->who.name < f->names ? f->name[e->who.name] : "");
}

/* STATUS, CAUSE, EXPLAIN: by the flow of a moment. */
static void tell_moment(const struct topo *topo, enum ask kind, const struct ask_job *j, struct answer *out)
{
	struct flow flow;
	flow_take(j->inquiry, &flow);
	if (kind == ASK_STATUS)
		explain_status_of(topo, &j->moment, &flow, out->text, sizeof out->text);
	else if (kind == ASK_CAUSE)
		tell_cause(&flow, out);
	else
		out->status = explain_at_of(topo, &j->moment, &flow, &out->paragraph, &out->err);
	flow_release(&flow);
}

/* What is about a window, and of many. */
static struct inquiry *open_lists(const struct topo *topo, enum ask kind, const struct question *q, struct error *err)
{
	const struct steal_options steal = { .by = STEAL_BY_THREAD, .from = q->from, .to = q->to, .most = ASK_CELLS };
	const struct summary_options summary = { .from = q->from, .to = q->to, .gaps = q->gaps };
	const struct gap_options gaps = { .from = q->from, .to = q->to, .top = ASK_LISTED };
	const struct exit_options exits = { .only = &q->subject, .from = q->from, .to = q->to,
		.by_thread = q->subject.kind == SUBJECT_THREAD };
	switch (kind) {
	case ASK_STEAL: return steal_open(topo, &steal);
	case ASK_SUMMARY: return summary_open(topo, &summary);
	case ASK_GAPS: return gap_list_open(topo, &q->subject, &gaps);
	case ASK_LOCKS: return locks_open(topo, &q->subject, q->from, q->to);
	case ASK_PATH: return path_open(topo, &q->subject, q->from, q->to, err);
	default: return exits_open(topo, &exits, err);
	}
}

static void take_lists(enum ask kind, struct inquiry *q, struct answer *out)
{
	switch (kind) {
	case ASK_STEAL: steal_take(q, &out->steal); break;
	case ASK_SUMMARY: summary_take(q, &out->summary); break;
	case ASK_GAPS: gap_list_take(q, &out->gaps); break;
	case ASK_LOCKS: locks_take(q, &out->locks); break;
	case ASK_PATH: path_take(q, &out->path); break;
	default: exits_take(q, &out->exits); break;
	}
}

/* 1 = there is an inquiry to work on, 0 = answered at once, -1 = error. */
static int open_job(const struct topo *topo, enum ask kind, struct ask_job *j, struct answer *out)
{
	const struct question *q = &j->q;
	struct flow_options options = { .intervals = kind == ASK_FLOW ? ASK_PIECES : 0,
		.columns = kind == ASK_FLOW ? q->columns : 0 };
	j->moment = (struct gap){ .start = q->from, .end = q->to };
	if (kind >= ASK_STEAL) {
		j->inquiry = open_lists(topo, kind, q, &out->err);
		return j->inquiry ? 1 : -1;
	}
	int found = kind == ASK_FLOW ? 1 : find_moment(topo, kind, j, out);
	if (found == 0)
		answer_at_once(topo, q, out);
	if (found <= 0)
		return found;
	j->inquiry = flow_open(topo, &q->subject, j->moment.start, j->moment.end, &options, &out->err);
	return j->inquiry ? 1 : -1;
}

static int tick(void *arg, const char *phase, uint64_t done, uint64_t total)
{
	struct asker *a = arg;
	struct slot *slot = &a->slot[ASK_EVENTS];
	(void)phase;
	pthread_mutex_lock(&a->lock);
	const bool stale = a->quit || slot->phase != ASKED || slot->serial != a->job[ASK_EVENTS].serial;
	slot->progress = total ? (unsigned)(100 * done / total) : 0;
	pthread_mutex_unlock(&a->lock);
	return stale;
}

/* All in one step, but it can be dropped meanwhile. */
static void read_events(struct asker *a, struct answer *out)
{
	const struct question *q = &a->job[ASK_EVENTS].q;
	const char *machine = a->topo->machine[subject_machine(a->topo, &q->subject)].name;
	if (a->traces)
		out->status = a->traces->read(a->topo->h, machine, q->from, q->to, ASK_LISTED, (struct progress){ tick, a },
		                              &out->events, &out->err);
	else
		out->status = error_set(&out->err, STATUS_INPUT, NULL, "the traces cannot be read from here");
}

/* Likewise, and it cannot be dropped. */
static void compare(struct asker *a, struct answer *out)
{
	const struct question *q = &a->job[ASK_DIFF].q;
	const struct diff_options options = { DIFF_LEVEL, &out->doubts };
	struct topo other = { 0 };
	struct history *h = *q->other ? history_open(q->other, &out->err) : NULL;
	struct diff_side side[2] = { { a->topo, q->other_from, q->other_to }, { a->topo, q->from, q->to } };
	const bool open = h && topo_open(&other, h, &out->err) == 0;
	out->status = *q->other && !open ? -1 : 0;
	if (open)
		side[0] = (struct diff_side){ &other, history_begin(h), history_end(h) };
	if (out->status == 0)
		out->status = diff_of(side, &options, &out->diff, &out->err);
	if (out->status == 0)
		origin_take(&out->before, side[0].topo, NULL, side[0].from, side[0].to);
	if (open)
		topo_release(&other);
	history_close(h);
}

/* One step of work.  1 = answered, 0 = not yet. */
static int job_step(struct asker *a, enum ask kind, struct answer *out)
{
	struct ask_job *j = &a->job[kind];
	int64_t began = now_ns();
	if (kind == ASK_EVENTS)
		read_events(a, out);
	else if (kind == ASK_DIFF)
		compare(a, out);
	int open = kind >= ASK_EVENTS ? 0 : j->inquiry ? 1 : open_job(a->topo, kind, j, out);
	int done = open > 0 ? inquiry_step(j->inquiry, STEP_NS, &out->err) : 1;
	if (open < 0 || done < 0)
		out->status = -1;
	else if (open && done && kind == ASK_FLOW)
		flow_take(j->inquiry, &out->flow);
	else if (open && done && kind >= ASK_STEAL)
		take_lists(kind, j->inquiry, out);
	else if (open && done)
		tell_moment(a->topo, kind, j, out);
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
	summary_release(&answer->summary);
	gap_list_release(&answer->gaps);
	locks_release(&answer->locks);
	exits_release(&answer->exits);
	path_release(&answer->path);
	event_list_release(&answer->events);
	diff_release(&answer->diff);
	notes_release(&answer->doubts);
	origin_release(&answer->before);
	free(answer->paragraph);
	*answer = (struct answer){ 0 };
}

/* With the lock held; lets go of it while it works. */
static void work_on(struct hand *hand, enum ask kind)
{
	struct asker *a = hand->a;
	struct slot *slot = &a->slot[kind];
	struct ask_job *j = &a->job[kind];
	struct answer *answer = mem_new(1, sizeof *answer);
	if (j->serial != slot->serial)
		job_begin(j, slot);
	hand->working = true;
	pthread_mutex_unlock(&a->lock);
	int done = job_step(a, kind, answer);
	pthread_mutex_lock(&a->lock);
	hand->working = false;
	bool stale = slot->phase != ASKED || slot->serial != j->serial;
	if (!stale && done) {
		answer_release(&slot->answer);
		slot->answer = *answer;
		*answer = (struct answer){ 0 };
		slot->phase = ANSWERED;
		pthread_cond_broadcast(&a->answered);
		tell(a);
	} else if (!stale) {
		slot->progress = (unsigned)(100 * inquiry_done(j->inquiry));
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
	struct hand *hand = arg;
	struct asker *a = hand->a;
	pthread_mutex_lock(&a->lock);
	while (!a->quit) {
		unsigned kind = hand->first;
		while (kind <= hand->last && a->slot[kind].phase != ASKED)
			kind++;
		if (kind <= hand->last)
			work_on(hand, (enum ask)kind);
		else
			pthread_cond_wait(&a->work, &a->lock);
	}
	pthread_mutex_unlock(&a->lock);
	for (unsigned kind = hand->first; kind <= hand->last; kind++)
		job_release(&a->job[kind]);
	return NULL;
}

/* ---- The viewer's side ---------------------------------------------------------------------------------------- */

/* How many of them run. */
static unsigned start_hands(struct asker *a)
{
	static const enum ask first[HANDS + 1] = { ASK_STATUS, ASK_EVENTS, ASKS };
	unsigned n = 0;
	for (; n < HANDS; n++) {
		a->hand[n] = (struct hand){ .a = a, .first = first[n], .last = first[n + 1] - 1 };
		if (signals_start_thread(&a->hand[n].thread, helper, &a->hand[n]) < 0)
			break;
	}
	return n;
}

static void end_hands(struct asker *a, unsigned n)
{
	pthread_mutex_lock(&a->lock);
	a->quit = true;
	pthread_cond_broadcast(&a->work);
	pthread_mutex_unlock(&a->lock);
	for (unsigned i = 0; i < n; i++)
		pthread_join(a->hand[i].thread, NULL);
}

struct asker *asker_open(const struct topo *topo, const struct ui_traces *traces)
{
	struct asker *a = mem_new(1, sizeof *a);
	pthread_condattr_t monotonic;
	a->topo = topo;
	a->traces = traces;
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
	const unsigned started = start_hands(a);
	if (started < HANDS) {
		end_hands(a, started);
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
	end_hands(a, HANDS);
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
	pthread_cond_broadcast(&a->work);
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
	for (unsigned i = 0; i < HANDS; i++)
		while (a->hand[i].working)
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
	const struct timespec until = timespec_of(now_ns() + (ns > 0 ? ns : 0));
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
