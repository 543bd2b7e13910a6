/* Runs the model: reads traces and clocks, writes a history. */
#include "model/model.h"

#include "base/base.h"
#include "base/parallel.h"
#include "model/state/clock_error_bound.h"
#include "model/loss/coverage.h"
#include "model/loss/host_prescan.h"
#include "model/state/feed.h"
#include "model/inference/steal_clock.h"
#include "model/merge.h"
#include "model/sink_async.h"

/* Contradicting events that chance explains (a trace's first events, CPU hotplug, an event that the tracer recorded
 * late): so many, or one of so many. */
#define CONTRADICTIONS_FEW 5
#define CONTRADICTIONS_PART 1000
#define KINDS_LISTED 4             /* most event kinds in a note */
#define PROGRESS_EVENTS 65536  /* events between two progress reports, about 10 ms */

struct model_run {
	const struct model_options *options;
	struct machine_setup *setup;
	const struct trace **trace;
	const struct clock_map **clock;
	struct clock_error_attr *clock_bound;  /* error bounds of traced guests, by machine */
	struct prescan *prescan;
	struct steal_clock *steal;             /* what the steal clocks of guests without a host trace show, by machine */
	int64_t steal_due;                     /* time of the next change of any of them, ns */
	struct error *prescan_err;
	size_t n;
	uint64_t total; /* expected event count */
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
		.has_entries = info && (info->kinds & KIND(EV_VCPU_ENTRY)),
		.has_throttled = info && (info->kinds & KIND(EV_THROTTLED)),
		.is_virtual = info && (info->guest_only || *info->vm_id || (info->name_is_given && info->role == ROLE_GUEST)),
		.has_run_states = info && info->has_vcpu_states, .one_cpu = info && info->cpus_listed <= 1,
		.kinds_without_exit = info ? handlers_without_exit(info->kinds, info->asked) : 0,
		.names = { trace_name, trace }, .vm_id = trace ? trace_info(trace)->vm_id : "",
	};
	r->total += info ? info->events : 0;
}

static void run_init(struct model_run *r, const struct sync_result *sync, const struct model_options *options)
{
	size_t n = sync->vms + 1;
	*r = (struct model_run){
		.options = options, .setup = mem_new(n, sizeof *r->setup), .trace = mem_new(n, sizeof *r->trace),
		.clock = mem_new(n, sizeof *r->clock), .clock_bound = mem_new(n, sizeof *r->clock_bound),
		.prescan = mem_new(n, sizeof *r->prescan), .prescan_err = mem_new(n, sizeof *r->prescan_err),
		.workers = parallel_workers(options->workers), .steal = mem_new(n, sizeof *r->steal),
		.steal_due = INT64_MIN,
	};
	for (size_t i = 0; i < n; i++)
		r->prescan[i] = (struct prescan)PRESCAN_INIT;
	add_machine(r, "host", sync->host, NULL);
	for (size_t i = 0; i < sync->vms; i++) {
		const struct sync_vm *vm = &sync->vm[i];
		add_machine(r, vm->name, vm->guest, &vm->clock);
		r->setup[i + 1].is_virtual = r->setup[i + 1].is_virtual || sync->host;
		r->setup[i + 1].parent = (int)vm->parent;
		r->setup[i + 1].host_pid = vm->migrated_pid < 0 ? vm->host_pid : -1;  /* a migrated VM has two processes: the
		                                                                       * lifetimes of the threads decide */
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
	free(r->clock_bound);
	for (size_t i = 0; i < r->n; i++) {
		prescan_release(&r->prescan[i]);
		steal_clock_release(&r->steal[i]);
	}
	free(r->steal);
	free(r->prescan);
	free(r->prescan_err);
}

static int report_progress(const struct model_run *r, const struct model *m, struct error *err)
{
	const struct progress *p = &r->options->progress;
	if (!p->tick || !p->tick(p->arg, "model", m->events, r->total))
		return 0;
	return error_set(err, STATUS_CANCELLED, NULL, "model: cancelled");
}

/* Prescans machine i for its initial state; a task for parallel_run(). */
static int prescan_machine(void *arg, size_t i)
{
	const struct model_run *r = arg;
	if (!r->trace[i] || !trace_info(r->trace[i])->events)
		return 0;
	if (i == 0 && host_prescan_matches(r->options->look, r->trace[i]))
		return host_prescan_take(r->options->look, &r->prescan[i], &r->prescan_err[i]);
	if (i > 0 && !r->trace[0] && steal_clock_read(&r->steal[i], r->trace[i], r->clock[i], &r->prescan_err[i]))
		return -1;
	return prescan_read(&r->prescan[i], r->trace[i], r->clock[i], &r->prescan_err[i]);
}

static int prescan_machines(struct model_run *r, struct error *err)
{
	int result = parallel_run(&(struct parallel){ .workers = r->workers, .task = prescan_machine, .arg = r }, r->n);
	for (size_t i = 0; i < r->n && result < 0; i++) {
		if (r->prescan_err[i].status) {
			*err = r->prescan_err[i];
			break;
		}
	}
	return result;
}

static int feed_event(const struct model_run *r, struct model *m, const struct merge_step *s, struct error *err)
{
	int result = model_feed(m, s->at.machine, s->at.t, &s->ev, err);
	if (result == 0 && r->clock_bound[s->at.machine].clock)
		clock_error_attr_sample(&r->clock_bound[s->at.machine], &m->sink, s->ev.ts);
	return result;
}

/* Applies the changes of all steal clocks up to time t. */
static void advance_steal_clocks(struct model_run *r, struct model *m, int64_t t)
{
	r->steal_due = INT64_MAX;
	for (uint32_t i = 1; i < m->machines; i++) {
		const int64_t due = steal_clock_advance(&r->steal[i], m->machine[i], t);
		r->steal_due = due < r->steal_due ? due : r->steal_due;
	}
}

static int replay_traces(struct model_run *r, struct model *m, struct merge *merge, struct model_interval *span,
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
		if (s->at.t >= r->steal_due)
			advance_steal_clocks(r, m, s->at.t);
		if (s->at.kind == MERGE_BEGIN) {
			result = model_begin(m, s->at.machine, s->at.t, &r->prescan[s->at.machine], err);
			r->steal_due = INT64_MIN;  /* the machine's steal clock begins with the next event */
		} else if (s->at.kind == MERGE_EVENT) {
			result = feed_event(r, m, s, err);
		} else if (s->at.others_remain) {  /* at the end of the last trace the history closes all intervals */
			result = model_end(m, s->at.machine, s->at.t, err);
		}
		if (result == 0 && m->events % PROGRESS_EVENTS == 0)
			result = report_progress(r, m, err);
	}
	for (uint32_t i = 0; result == 0 && i < m->machines; i++)
		if (m->machine[i]->active)
			throttling_end(m->machine[i], false);
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

/* Returns the number of the machine's vCPUs with partly unknown idleness. */
static uint32_t unknown_idle_vcpus(const struct model *m, const struct machine *mc)
{
	uint32_t n = 0;
	for (uint32_t i = 0; i < m->vcpus; i++)
		n += m->vcpu[i].vm == mc && m->vcpu[i].idle_unknown;
	return n;
}

/* Returns true if the reader reported neither losses nor damage of the trace: its first `n` notes are those of readers and
 * synchronization. */
static bool is_whole(const struct trace *trace, const struct clock_map *clock, const struct notes *notes, size_t n)
{
	const struct trace_info *info = trace_info(trace);
	if (info->lost || info->uncounted || coverage_has_losses(trace, clock))
		return false;
	for (size_t i = 0; i < n; i++) {
		const struct note *note = &notes->item[i];
		const bool concerns = !note->machine || strcmp(note->machine, info->machine) == 0;
		if (concerns && (note->kind == NOTE_KIND_LOSS || note->kind == NOTE_KIND_DAMAGE))
			return false;
	}
	return true;
}

/* Writes "sched_switch 13, kvm_entry 2": the most frequent kinds. */
static void write_kinds(char *text, size_t size, const uint64_t count[EVENT_KIND_COUNT])
{
	uint64_t rest[EVENT_KIND_COUNT];
	size_t len = 0;
	memcpy(rest, count, sizeof rest);
	*text = '\0';
	for (unsigned listed = 0; listed < KINDS_LISTED; listed++) {
		unsigned most = 0;
		for (unsigned k = 1; k < EVENT_KIND_COUNT; k++)
			most = rest[k] > rest[most] ? k : most;
		if (!rest[most] || len >= size)
			break;
		len += (size_t)snprintf(text + len, size - len, "%s%s %llu", len ? ", " : "", event_kind_name[most],
		                        (unsigned long long)rest[most]);
		rest[most] = 0;
	}
}

/* Writes "tokio-rt-worker, memfd:sealed-91": the names of threads whose events are hidden, most times first. */
static const char *write_hidden(const struct machine *mc, char text[160])
{
	size_t len = 0, named = 0;
	uint32_t last = 0;
	text[0] = '\0';
	for (size_t i = 0; i < mc->hidden.len && named < KINDS_LISTED && len < 120; i++) {
		const struct hidden_thread *th = &mc->hidden.thread[i];
		const char *name = th->name ? mc->names.get(mc->names.of, th->name) : NULL;
		if (!name || th->name == last)
			continue;
		last = th->name;
		named++;
		len += (size_t)snprintf(text + len, 160 - len, "%s%.30s", len ? ", " : "", name);
	}
	return text;
}

/* Self-check. Hidden threads and missing events explain contradictions. Without any, more than a few show that we misread
 * the trace. */
static void note_contradictions(const struct machine *mc, uint64_t events, bool whole, struct notes *notes)
{
	uint64_t n = 0;
	char kinds[160];
	for (unsigned k = 0; k < EVENT_KIND_COUNT; k++)
		n += mc->contradictions[k];
	write_kinds(kinds, sizeof kinds, mc->contradictions);
	const uint64_t hidden = hidden_threads_times(&mc->hidden);
	char names[160];
	if (hidden > CONTRADICTIONS_FEW && hidden >= n / 5 * 4)
		note_add(notes, HIDDEN_THREADS, mc->name, mc->hidden.len, write_hidden(mc, names), (unsigned long long)hidden);
	else if (whole && n > CONTRADICTIONS_FEW && n > events / CONTRADICTIONS_PART)
		note_add(notes, SELF_CHECK_FAILED, mc->name, (unsigned long long)n, kinds);
	else if (n)
		note_add(notes, CONTRADICTING_EVENTS, mc->name, (unsigned long long)n, kinds);
}

static void add_notes(const struct model_run *r, const struct model *m, int64_t end, struct notes *notes)
{
	char text[TIME_TEXT];
	const size_t earlier = notes ? notes->len : 0;
	for (uint32_t i = 0; i < m->machines; i++) {
		const struct machine *mc = m->machine[i];
		const struct trace_info *info = r->trace[i] ? trace_info(r->trace[i]) : NULL;
		if (i > 0 && info && r->trace[0])
			steal_check_add_notes(m, mc, notes);
		if (i > 0 && info && !r->trace[0])
			steal_clock_add_notes(&r->steal[i], mc, r->n - 1, info->guest_only, notes);
		counters_add_notes(mc, notes);
		groups_add_notes(mc, notes);
		group_quota_add_notes(mc, notes);
		quota_pattern_add_notes(m, mc, notes);
		if (info)
			coverage_add_notes(r->trace[i], host_time, r->clock[i], notes);
		if (info && coverage_has_losses(r->trace[i], r->clock[i]))
			note_add(notes, CPU_STATE_LOST, mc->name, time_duration(text, model_unknown_cpu_time(m, i, end)));
		if (info && notes && mc->has_seen_sched)
			note_contradictions(mc, info->events, is_whole(r->trace[i], r->clock[i], notes, earlier), notes);
		if (request_probes_orphans(mc))
			note_add(notes, ENDS_WITHOUT_START, mc->name, (unsigned long long)request_probes_orphans(mc));
		if (unknown_idle_vcpus(m, mc))
			note_add(notes, IDLE_UNKNOWN, mc->name, unknown_idle_vcpus(m, mc));
		if (info && info->events && !mc->has_seen_sched)
			note_add(notes, NO_SCHEDULER_EVENTS, mc->name);
		if (!mc->has_seen_wakeup && mc->unseen_wakeups)
			note_add(notes, NO_WAKEUPS, mc->name);
		if (mc->assumed_cpus)
			note_add(notes, CPUS_ASSUMED, mc->name, (unsigned long long)mc->assumed_cpus);
		if (!mc->has_seen_waking && mc->unknown_wakers)
			note_add(notes, NO_WAKERS, mc->name, (unsigned long long)mc->unknown_wakers);
	}
}

static int run_model(struct model_run *r, struct ordered_jobs *ordered_jobs, struct history_builder *b,
                     struct model_interval *span, struct notes *notes, struct error *err)
{
	struct merge merge;
	struct sink_async *async = ordered_jobs_have_threads(ordered_jobs) ? sink_async_begin(b, ordered_jobs) : NULL;
	struct model *m = model_new(r->setup, r->n, r->options->paper_states, async ? &sink_async : &sink_history,
	                            async ? (void *)async : b, err);
	if (!m) {
		(void)sink_async_end(async, NULL);
		return -1;
	}
	thread_set_groups(m, r->options->groups, r->options->grouped);
	m->topology = r->options->topology;
	groups_set(m, r->options->control_groups);
	int result = merge_open(&merge, r->trace, r->clock, r->n, ordered_jobs, err);
	if (result == 0) {
		for (size_t i = 1; i < r->n; i++)
			if (r->trace[i])
				clock_error_attr_declare(&r->clock_bound[i], &m->sink, m->machine[i]->root, r->trace[i], r->clock[i]);
		result = replay_traces(r, m, &merge, span, err);
		if (result == 0)
			add_notes(r, m, span->end, notes);
		merge_close(&merge);
	}
	model_free(m);
	return sink_async_end(async, result ? NULL : err) ? -1 : result;
}

static int fail_without_events(const struct notes *notes, struct error *err)
{
	char text[NOTE_TEXT];
	for (size_t i = 0; notes && i < notes->len; i++)
		if (notes->item[i].code == NOTE_UNTIMED_EVENTS)
			return error_repeat(err, STATUS_INPUT, "record with a clock", "traces: no event has a time: %s",
			                    note_text(&notes->item[i], text));
	return error_set(err, STATUS_INPUT, "record some events", "traces: there is no event in them");
}

int model_run(const struct sync_result *sync, const struct model_options *options, struct history_builder *b,
              struct model_interval *span, struct notes *notes, struct error *err)
{
	static const struct model_options defaults;
	struct model_run r;
	run_init(&r, sync, options ? options : &defaults);
	int result = 0;
	if (!r.total)
		result = fail_without_events(notes, err);
	if (result == 0)
		result = prescan_machines(&r, err);
	if (result == 0) {
		struct ordered_jobs *ordered_jobs = ordered_jobs_begin(r.workers);
		result = run_model(&r, ordered_jobs, b, span, notes, err);
		ordered_jobs_end(ordered_jobs);
	}
	run_release(&r);
	return result;
}
