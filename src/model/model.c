/* The run: traces and clocks in, a history out. */
#include "model/model.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/timefmt.h"
#include "model/band.h"
#include "model/feed.h"
#include "model/merge.h"

#define TICK_EVENTS 65536  /* events between two reports of progress: some 10 ms */

struct run {
	const struct model_options *options;
	struct machine_setup *setup;
	const struct trace **trace;
	const struct clock_map **clock;
	struct band *band;  /* the host's is not used */
	struct start *start;
	size_t n;
	uint64_t total;  /* events to expect */
};

static const char *trace_name(const void *of, int64_t id)
{
	return trace_string(of, id);
}

static void add_machine(struct run *r, const char *name, const struct trace *trace, const struct clock_map *clock)
{
	const struct trace_info *info = trace ? trace_info(trace) : NULL;
	r->trace[r->n] = trace;
	r->clock[r->n] = clock;
	r->setup[r->n++] = (struct machine_setup){
		.name = name, .parent = -1, .host_pid = -1, .traced = trace != NULL,
		.has_kvm = info && info->has_kvm, .names = { trace_name, trace },
	};
	r->total += info ? info->events : 0;
}

static void run_init(struct run *r, const struct sync_result *sync, const struct model_options *options)
{
	size_t n = sync->vms + 1;
	*r = (struct run){
		.options = options, .setup = mem_new(n, sizeof *r->setup), .trace = mem_new(n, sizeof *r->trace),
		.clock = mem_new(n, sizeof *r->clock), .band = mem_new(n, sizeof *r->band),
		.start = mem_new(n, sizeof *r->start),
	};
	add_machine(r, "host", sync->host, NULL);
	for (size_t i = 0; i < sync->vms; i++) {
		const struct sync_vm *vm = &sync->vm[i];
		add_machine(r, vm->name, vm->guest, &vm->clock);
		r->setup[i + 1].parent = (int)vm->parent;
		r->setup[i + 1].host_pid = vm->host_pid;
		r->setup[i + 1].vcpu = vm->vcpu;
		r->setup[i + 1].life = vm->life;
		r->setup[i + 1].vcpus = vm->vcpus;
	}
}

static void run_release(struct run *r)
{
	free(r->setup);
	free(r->trace);
	free(r->clock);
	free(r->band);
	for (size_t i = 0; i < r->n; i++)
		start_release(&r->start[i]);
	free(r->start);
}

static int tick(const struct run *r, const struct model *m, struct error *err)
{
	const struct progress *p = &r->options->progress;
	if (!p->tick || !p->tick(p->arg, "model", m->events, r->total))
		return 0;
	return error_set(err, STATUS_CANCELLED, NULL, "model: cancelled");
}

static int begin(const struct run *r, struct model *m, const struct merge_stream *s, struct error *err)
{
	struct start *start = &r->start[s->machine];
	return start_look(start, s->trace, err) < 0 ? -1 : model_begin(m, s->machine, s->t, start, err);
}

static int feed(const struct run *r, struct model *m, const struct merge_stream *s, struct error *err)
{
	int result = model_feed(m, s->machine, s->t, &s->ev, err);
	if (result == 0 && s->clock)
		band_sample(&r->band[s->machine], &m->sink, s);
	return result;
}

static int64_t last_moment(const struct merge *merge)
{
	int64_t end = INT64_MIN;
	for (size_t i = 0; i < merge->streams; i++)
		if (merge->stream[i].end > end)
			end = merge->stream[i].end;
	return end;
}

static int replay(const struct run *r, struct model *m, struct merge *merge, struct model_span *span,
                  struct error *err)
{
	const struct merge_stream *s = NULL;
	int got, result = 0;
	span->begin = INT64_MAX;
	while (result == 0 && (got = merge_next(merge, &s, err)) != 0) {
		if (got < 0)
			return -1;
		if (s->t < span->begin)
			span->begin = s->t;
		if (s->what == MERGE_BEGIN)
			result = begin(r, m, s, err);
		else if (s->what == MERGE_EVENT)
			result = feed(r, m, s, err);
		else if (s->t <= last_moment(merge))  /* others go on; else the history closes everything */
			result = model_end(m, s->machine, s->t, err);
		if (result == 0 && m->events % TICK_EVENTS == 0)
			result = tick(r, m, err);
	}
	span->end = last_moment(merge);
	span->events = m->events;
	return result;
}

static void note_doubts(const struct model *m, int64_t end, struct notes *notes)
{
	char text[TIME_TEXT];
	for (uint32_t i = 0; i < m->machines; i++) {
		const struct machine *mc = m->machine[i];
		if (mc->epoch)
			notes_add(notes, "%s: what its CPUs did is unknown for %s of CPU time, because events were lost", mc->name,
			          time_duration(text, model_unknown(m, i, end)));
		if (mc->contradictions)
			notes_add(notes, "%s: %" PRIu64 " events do not follow from those before; some are missing from the trace",
			          mc->name, mc->contradictions);
	}
}

int model_run(const struct sync_result *sync, const struct model_options *options, struct history_builder *b,
              struct model_span *span, struct notes *notes, struct error *err)
{
	static const struct model_options defaults;
	struct run r;
	struct merge merge;
	int result = -1;
	run_init(&r, sync, options ? options : &defaults);
	if (merge_open(&merge, r.trace, r.clock, r.n, err) == 0) {
		struct model *m = NULL;
		if (!merge.streams)
			error_set(err, STATUS_INPUT, "record some events", "traces: there is no event in them");
		else
			m = model_new(r.setup, r.n, r.options->paper_states, &sink_history, b, err);
		if (m) {
			for (size_t i = 1; i < r.n; i++)
				if (r.trace[i])
					band_declare(&r.band[i], &m->sink, m->machine[i]->root);
			result = replay(&r, m, &merge, span, err);
			if (result == 0)
				note_doubts(m, span->end, notes);
		}
		model_free(m);
		merge_close(&merge);
	}
	run_release(&r);
	return result;
}
