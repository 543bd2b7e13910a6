/* The run: traces and clocks in, a history out. */
#include "model/model.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/parallel.h"
#include "base/timefmt.h"
#include "model/state/clock_error_bound.h"
#include "model/loss/coverage.h"
#include "model/loss/host_prescan.h"
#include "model/state/feed.h"
#include "model/merge.h"
#include "model/sink_async.h"

#define TICK_EVENTS 65536  /* events between two reports of progress: some 10 ms */

struct model_run {
	const struct model_options *options;
	struct machine_setup *setup;
	const struct trace **trace;
	const struct clock_map **clock;
	struct band *band;  /* of traced guests */
	struct start *start;
	struct error *start_err;
	size_t n;
	uint64_t total;     /* events to expect */
	unsigned workers;
};

static const char *trace_name(const void *of, int64_t id)
{
	return trace_string(of, id);
}

static void add_machine(struct model_run *r, const char *name, const struct trace *trace, const struct clock_map *clock)
{
	const struct trace_info *info = trace ? trace_info(trace) : NULL;
	r->trace[r->n] = trace;
	r->clock[r->n] = clock;
	r->setup[r->n++] = (struct machine_setup){
		.name = name, .parent = -1, .host_pid = -1, .traced = trace != NULL,
		.has_kvm = info && (info->kinds & KIND(EV_KVM_ENTRY)), .one_cpu = info && info->cpus_told <= 1,
		.endless = info ? handlers_endless(info->kinds) : 0,
		.names = { trace_name, trace },
	};
	r->total += info ? info->events : 0;
}

static void run_init(struct model_run *r, const struct sync_result *sync, const struct model_options *options)
{
	size_t n = sync->vms + 1;
	*r = (struct model_run){
		.options = options, .setup = mem_new(n, sizeof *r->setup), .trace = mem_new(n, sizeof *r->trace),
		.clock = mem_new(n, sizeof *r->clock), .band = mem_new(n, sizeof *r->band),
		.start = mem_new(n, sizeof *r->start), .start_err = mem_new(n, sizeof *r->start_err),
		.workers = parallel_workers(options->workers),
	};
	for (size_t i = 0; i < n; i++)
		r->start[i] = (struct start)START_INIT;
	add_machine(r, "host", sync->host, NULL);
	for (size_t i = 0; i < sync->vms; i++) {
		const struct sync_vm *vm = &sync->vm[i];
		add_machine(r, vm->name, vm->guest, &vm->clock);
		r->setup[i + 1].parent = (int)vm->parent;
		r->setup[i + 1].host_pid = vm->moved_pid < 0 ? vm->host_pid : -1;  /* of two, the lives tell */
		r->setup[i + 1].vcpu = vm->vcpu;
		r->setup[i + 1].life = vm->life;
		r->setup[i + 1].vcpus = vm->vcpus;
	}
}

static void run_release(struct model_run *r)
{
	free(r->setup);
	free(r->trace);
	free(r->clock);
	free(r->band);
	for (size_t i = 0; i < r->n; i++)
		start_release(&r->start[i]);
	free(r->start);
	free(r->start_err);
}

static int tick(const struct model_run *r, const struct model *m, struct error *err)
{
	const struct progress *p = &r->options->progress;
	if (!p->tick || !p->tick(p->arg, "model", m->events, r->total))
		return 0;
	return error_set(err, STATUS_CANCELLED, NULL, "model: cancelled");
}

/* What is known of each machine before its first event: found out side by side. */
static int look(void *arg, size_t i)
{
	const struct model_run *r = arg;
	if (!r->trace[i] || !trace_info(r->trace[i])->events)
		return 0;
	if (i == 0 && model_look_is_of(r->options->look, r->trace[i]))
		return model_look_take(r->options->look, &r->start[i], &r->start_err[i]);
	return start_look(&r->start[i], r->trace[i], r->clock[i], &r->start_err[i]);
}

static int look_ahead(struct model_run *r, struct error *err)
{
	int result = parallel_run(&(struct parallel){ .workers = r->workers, .task = look, .arg = r }, r->n);
	for (size_t i = 0; i < r->n && result < 0; i++) {
		if (r->start_err[i].status) {
			*err = r->start_err[i];
			break;
		}
	}
	return result;
}

static int feed(const struct model_run *r, struct model *m, const struct merge_step *s, struct error *err)
{
	int result = model_feed(m, s->at.machine, s->at.t, &s->ev, err);
	if (result == 0 && r->band[s->at.machine].clock)
		band_sample(&r->band[s->at.machine], &m->sink, s->ev.ts);
	return result;
}

static int replay(const struct model_run *r, struct model *m, struct merge *merge, struct model_span *span,
                  struct error *err)
{
	const struct merge_step *s = NULL;
	int got, result = 0;
	span->begin = INT64_MAX;
	while (result == 0 && (got = merge_next(merge, &s, err)) != 0) {
		if (got < 0)
			return -1;
		if (s->at.t < span->begin)
			span->begin = s->at.t;
		if (s->at.what == MERGE_BEGIN)
			result = model_begin(m, s->at.machine, s->at.t, &r->start[s->at.machine], err);
		else if (s->at.what == MERGE_EVENT)
			result = feed(r, m, s, err);
		else if (s->at.others)  /* without others the history closes everything */
			result = model_end(m, s->at.machine, s->at.t, err);
		if (result == 0 && m->events % TICK_EVENTS == 0)
			result = tick(r, m, err);
	}
	for (uint32_t i = 0; result == 0 && i < m->machines; i++)
		if (m->machine[i]->active)
			limits_end(m->machine[i], false);
	if (result == 0)
		span->end = merge_last(merge);
	span->events = m->events;
	return result;
}

static int64_t host_time(const void *of, int64_t t)
{
	const struct clock_map *clock = of;
	return clock ? clock_map_at(clock, t) : t;
}

/* vCPUs of it of which the host alone did not always tell whether they idled. */
static uint32_t doubted(const struct model *m, const struct machine *mc)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < m->vcpus; i++)
		n += m->vcpu[i].vm == mc && m->vcpu[i].doubted;
	return n;
}

static void note_doubts(const struct model_run *r, const struct model *m, int64_t end, struct notes *notes)
{
	char text[TIME_TEXT];
	for (uint32_t i = 0; i < m->machines; i++) {
		const struct machine *mc = m->machine[i];
		const struct trace_info *info = r->trace[i] ? trace_info(r->trace[i]) : NULL;
		if (info)
			cover_notes(r->trace[i], host_time, r->clock[i], notes);
		if (info && cover_loses(r->trace[i], r->clock[i]))
			notes_add(notes, NOTE_LOSS, mc->name, "what its CPUs did is unknown for %s of CPU time, because events "
			          "were lost", time_duration(text, model_unknown(m, i, end)));
		if (mc->contradictions)
			notes_add(notes, NOTE_LOSS, mc->name,
			          "%" PRIu64 " event%s not follow from those before; some are missing from the trace",
			          mc->contradictions, mc->contradictions == 1 ? " does" : "s do");
		if (doubted(m, mc))
			notes_add(notes, NOTE_DOUBT, mc->name, "whether %" PRIu32 " of its vCPUs %s is unknown where "
			          "interrupts find them again and again at one place of their kernel, since they do not halt "
			          "(idle=poll, or halts that do not exit); record the guest, too", doubted(m, mc),
			          doubted(m, mc) == 1 ? "idles or works" : "idle or work");
		if (!mc->wakes && mc->unwoken)
			notes_add(notes, NOTE_DOUBT, mc->name, "its trace has no wakeups: whether who slept did so until it ran again "
			          "is unknown where others had its CPU meanwhile, for it may have waited for that; record "
			          "sched_waking and sched_wakeup, too");
		if (!mc->wakings && mc->wakerless)
			notes_add(notes, NOTE_DOUBT, mc->name, "its trace has no sched_waking: who ended %" PRIu64 " sleep%s is "
			          "unknown, for a CPU also wakes up what others leave to it; record sched_waking, too",
			          mc->wakerless, mc->wakerless == 1 ? "" : "s");
	}
}

static int run(struct model_run *r, struct chores *chores, struct history_builder *b, struct model_span *span,
               struct notes *notes, struct error *err)
{
	struct merge merge;
	struct sink_beside *beside = chores_have_threads(chores) ? sink_beside_begin(b, chores) : NULL;
	struct model *m = model_new(r->setup, r->n, r->options->paper_states, beside ? &sink_beside : &sink_history,
	                            beside ? (void *)beside : b, err);
	if (!m) {
		(void)sink_beside_end(beside, NULL);
		return -1;
	}
	thread_groups(m, r->options->groups, r->options->grouped);
	int result = merge_open(&merge, r->trace, r->clock, r->n, chores, err);
	if (result == 0) {
		for (size_t i = 1; i < r->n; i++)
			if (r->trace[i])
				band_declare(&r->band[i], &m->sink, m->machine[i]->root, r->trace[i], r->clock[i]);
		result = replay(r, m, &merge, span, err);
		if (result == 0)
			note_doubts(r, m, span->end, notes);
		merge_close(&merge);
	}
	model_free(m);
	return sink_beside_end(beside, result ? NULL : err) ? -1 : result;
}

int model_run(const struct sync_result *sync, const struct model_options *options, struct history_builder *b,
              struct model_span *span, struct notes *notes, struct error *err)
{
	static const struct model_options defaults;
	struct model_run r;
	run_init(&r, sync, options ? options : &defaults);
	int result = 0;
	if (!r.total)
		result = error_set(err, STATUS_INPUT, "record some events", "traces: there is no event in them");
	if (result == 0)
		result = look_ahead(&r, err);
	if (result == 0) {
		struct chores *chores = chores_begin(r.workers);
		result = run(&r, chores, b, span, notes, err);
		chores_end(chores);
	}
	run_release(&r);
	return result;
}
