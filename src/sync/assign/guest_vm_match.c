#include "sync/assign/guest_vm_match.h"

#include "base/base.h"
#include "sync/assign/vcpu_numbering.h"
#include "sync/fit/stream_matching.h"
#include "sync/search/step_placement.h"
#include "sync/search/step_check.h"

/* Samples of a guest's sync events: event count, and number of contradictions tolerated as chance. */
static const struct event_sample { size_t sync_events, chance; } sample_spec[SAMPLES] = { { 32, 2 }, { 128, 0 } };

int guest_view_load(struct guest_view *g, struct error *err)
{
	struct trace_cursor *c = trace_cursor_open(g->trace, KIND(EV_SYNC), -1, err);
	int status = c ? 0 : -1;
	const struct event *ev;
	while (c && (status = trace_cursor_borrow(c, &ev, err)) == 1) {
		struct sync_event m = { (uint64_t)ev->sync.key, ev->ts, ev->sync.uid, ev->cpu, (uint16_t)ev->sync.end, 0 };
		sync_event_set_add(&g->sync_events, &m);
	}
	trace_cursor_close(c);
	sync_event_set_sort(&g->sync_events);
	return status;
}

void guest_view_thin(struct guest_view *g, unsigned key_bits)
{
	sync_event_set_thin(&g->sync_events, key_bits);
	for (size_t i = 0; i < SAMPLES; i++)
		sync_event_set_sample(&g->sync_events, g->begin, g->end, sample_spec[i].sync_events, &g->sample[i]);
}

void guest_view_forget(struct guest_view *g)
{
	sync_event_set_release(&g->sync_events);
	for (size_t i = 0; i < SAMPLES; i++)
		sync_event_set_release(&g->sample[i]);
	activity_release(&g->activity);
	g->has_activity = false;
}

void guest_view_release(struct guest_view *g)
{
	guest_view_forget(g);
	memset(g, 0, sizeof *g);
}

static void copy_view(struct match *m, const struct vm_candidate *vm)
{
	if (!vm)
		return;
	m->view = *vm;
	m->view.vcpu = mem_new(vm->vcpus, sizeof *m->view.vcpu);
	if (vm->vcpus > 0)
		memcpy(m->view.vcpu, vm->vcpu, vm->vcpus * sizeof *vm->vcpu);
}

/* Returns the number of threads for one guest: the threads divided by the guests that are still searched. */
static unsigned workers_for(const struct guest_view *g)
{
	const size_t left = atomic_load(g->pending_searches);
	return left == 0 ? g->workers : left < g->workers ? g->workers / (unsigned)left : 1;
}

static int measure_containment(const struct host_timeline *host, const struct guest_view *guest, struct match *m,
                               const struct side_task *side_task, struct error *err)
{
	containment_release(&m->containment);
	m->inside_share = -1;
	if (m->view.vcpus == 0 || m->candidate.clock.segments == 0)
		return 0;
	if (containment_measure(host, &m->view, guest->trace, &m->candidate.clock, workers_for(guest), side_task,
	                        &m->containment, err) != 0)
		return -1;
	m->inside_share = containment_share(&m->containment);
	return 0;
}

int match_measure(const struct host_timeline *host, const struct guest_view *guest, struct match *m, struct error *err)
{
	return measure_containment(host, guest, m, NULL, err);
}

static int64_t width_at_middle(const struct clock_map *clock, const struct guest_view *guest)
{
	return clock_map_error_width(clock, guest->begin + (guest->end - guest->begin) / 2);
}

static void match_init(struct match *m, const struct vm_candidate *vm, enum sync_method method)
{
	copy_view(m, vm);
	m->method = method;
	m->inside_share = -1;
	m->error_width_events = m->error_width_containment = -1;
}

static int load_activity_once(const struct host_timeline *host, struct guest_view *guest, struct error *err)
{
	if (guest->has_activity)
		return 0;
	guest->has_activity = true;
	guest->activity_host = guest->activity_host ? guest->activity_host : host;
	return activity_load(&guest->activity, guest->trace, guest->activity_host->min_gap_ns, host->stop, err);
}

/* Work of a match that runs in parallel with its containment's measurement. */
struct parallel_work {
	const struct host_timeline *host;
	struct guest_view *guest;
	const struct vm_candidate *vm;
	struct clock_candidate alone;
	struct narrowing *with;
};

static int load_activity(void *arg, struct error *err)
{
	const struct parallel_work *n = arg;
	return load_activity_once(n->host, n->guest, err);
}

/* Narrows the clock by containment alone, for the error bounds that it yields without sync events. */
static int narrow_by_containment(void *arg, struct error *err)
{
	struct parallel_work *n = arg;
	const struct evidence evidence = { n->host, n->vm, &n->guest->activity };
	(void)err;
	clock_candidate_narrow(&n->alone, &evidence, NULL, n->with);
	fit_widen_bounds(&n->with->fitted, &n->alone.clock);
	return 0;
}

/* Replaces the sample of pairs by all pairs, matched with the clock estimated from the sample. */
static int match_all_pairs(const struct host_timeline *host, const struct guest_view *guest, bool is_vm, struct match *m,
                           struct error *err)
{
	struct stream_matcher s;
	bool *selected = is_vm ? vm_threads(host, &m->view) : NULL;
	const int status = stream_match_traces(host, guest->trace, selected, &m->candidate.clock, &s, err);
	free(selected);
	if (status != 0) {
		stream_matcher_release(&s);
		return -1;
	}
	pairs_release(&m->events);
	m->events = s.pairs;
	s.pairs = (struct pair_list){ 0 };
	m->candidate.pairs = s.matched;
	m->unmatched = s.unmatched;
	stream_matcher_release(&s);
	clock_map_release(&m->candidate.clock);
	fit_pairs(&m->events, guest->begin, &m->candidate.clock);
	return 0;
}

static bool is_well_supported(const struct clock_segment *p)
{
	return p->pairs_ab + p->pairs_cd >= SUPPORT_MIN;
}

/* Returns the share of pairs that contradict the others. A change of the clock counts as FIT_SUSPECTS contradictions,
 * unless SUPPORT_MIN pairs support each of both segments. */
static double outlier_share_of(const struct match *m)
{
	const struct clock_map *clock = &m->candidate.clock;
	size_t against = m->events.len - m->candidate.inliers;
	for (size_t i = 1; i < clock->segments; i++)
		if (!is_well_supported(&clock->segment[i - 1]) || !is_well_supported(&clock->segment[i]))
			against += FIT_SUSPECTS;
	return (double)against / (double)m->events.len;
}

/* Fits *m to its pairs. doubtful: the VM is one of many; the match is postponed if its pairs do not agree. */
static int fit_events(const struct host_timeline *host, const struct guest_view *guest, bool is_vm, bool doubtful,
                      struct match *m, struct error *err)
{
	struct pair_list *pairs = &m->events;
	pairs_count_unmatched(&guest->sync_events, &host->sync_events, is_vm ? &m->view.owners : NULL, pairs);
	m->unmatched = pairs->unmatched;
	fit_pairs(pairs, guest->begin, &m->candidate.clock);
	if ((guest->sync_events.key_bits > 0 || host->sync_events.key_bits > 0) && m->candidate.clock.segments > 0 &&
	    match_all_pairs(host, guest, is_vm, m, err) != 0)
		return -1;
	m->candidate.inliers = 0;
	for (size_t i = 0; i < pairs->len; i++)
		m->candidate.inliers += !pairs->pair[i].rejected;
	if (pairs->len > 0)
		m->outlier_share = outlier_share_of(m);
	m->postponed = doubtful && m->candidate.clock.segments > 0 && !match_agrees(m);
	if (m->postponed) {
		m->candidate.inliers = m->candidate.pairs - (pairs->len - m->candidate.inliers);
		clock_map_release(&m->candidate.clock);
		return 0;
	}
	if (is_vm)
		number_by_pairs(&m->view, pairs);
	fit_widen_bounds(pairs, &m->candidate.clock);
	m->error_width_events = width_at_middle(&m->candidate.clock, guest);
	return 0;
}

static void match_pairs(const struct host_timeline *host, const struct vm_candidate *vm, const struct guest_view *guest,
                        struct match *m)
{
	pairs_match(&guest->sync_events, &host->sync_events, vm ? &vm->owners : NULL, &m->events);
	m->candidate.pairs = m->events.len;
}

int match_fit(const struct host_timeline *host, const struct guest_view *guest, struct match *m, struct error *err)
{
	match_pairs(host, &m->view, guest, m);
	m->outlier_share = 0;
	return fit_events(host, guest, true, false, m, err);
}

/* Postpones a match with pairs that conflict throughout, without a fit. Sets a lower bound of the outlier share that a
 * fit would yield: each conflict is a contradiction, except at the supported segment ends. part: share of all pairs
 * that the list contains; chance: contradictions that do not count. */
static bool postpone_conflicting(struct match *m, double part, size_t chance)
{
	const size_t pairs = m->events.len, conflicts = fit_conflicts(&m->events), ends = pairs / SUPPORT_MIN;
	const size_t against = conflicts > ends ? conflicts - ends : 0;
	if ((double)against < OUTLIER_SHARE_MAX * (double)pairs + (double)chance || pairs == 0)
		return false;
	m->outlier_share = (double)against / (double)pairs;
	m->candidate.inliers = (uint64_t)((double)(pairs - against) / part);
	return true;
}

/* Postpones a match if a sample of the pairs conflicts: most VMs are not the guest's, and a sample is usually enough to
 * find out. */
static bool postpone_sampled(const struct guest_view *guest, const struct host_timeline *host, double part, struct match *m)
{
	for (size_t i = 0; i < SAMPLES; i++) {
		const struct sync_event_set *few = &guest->sample[i];
		if (few->len == 0)
			continue;
		pairs_match(few, &host->sync_events, &m->view.owners, &m->events);
		if (m->events.len >= sample_spec[i].sync_events / 2 &&  /* fewer are inconclusive */
		    postpone_conflicting(m, part * (double)few->len / (double)guest->sync_events.len, sample_spec[i].chance))
			return true;
	}
	return false;
}

int match_events(const struct host_timeline *host, const struct vm_candidate *vm, const struct guest_view *guest,
                 struct match *m, struct error *err)
{
	const unsigned guest_bits = guest->sync_events.key_bits, host_bits = host->sync_events.key_bits;
	const unsigned key_bits = guest_bits > host_bits ? guest_bits : host_bits;
	const double part = 1 / (double)(UINT64_C(1) << key_bits);
	match_init(m, vm, SYNC_EVENTS);
	m->postponed = vm && postpone_sampled(guest, host, part, m);
	if (m->postponed)
		return 0;
	match_pairs(host, vm, guest, m);
	m->postponed = vm && postpone_conflicting(m, part, 0);
	return m->postponed ? 0 : fit_events(host, guest, vm != NULL, vm != NULL, m, err);
}

int match_measure_and_load(const struct host_timeline *host, struct guest_view *guest, struct match *m, struct error *err)
{
	struct parallel_work parallel_work = { .host = host, .guest = guest };
	const struct side_task load = { load_activity, &parallel_work };
	return measure_containment(host, guest, m, guest->has_activity ? NULL : &load, err);
}

bool match_agrees(const struct match *m)
{
	return m->outlier_share < OUTLIER_SHARE_MAX;
}

bool match_is_proven(const struct match *m)
{
	return !m->candidate.reason && m->inside_share >= PROVEN_SHARE_MIN && match_agrees(m);
}

int match_containment(const struct host_timeline *host, const struct vm_candidate *vm, struct guest_view *guest,
                      bool steps, struct match *m, struct error *err)
{
	match_init(m, vm, SYNC_CONTAINMENT);
	if (load_activity_once(host, guest, err) != 0)
		return -1;
	const struct evidence evidence = { host, vm, &guest->activity };
	search_containment(&evidence, steps, &m->candidate);
	const bool jumps = steps_place(&evidence, &(struct pair_list){ 0 }, &m->candidate.clock);
	clock_candidate_widen_bounds(&m->candidate.clock, &evidence, NULL);
	if (!m->candidate.reason && !jumps)
		step_check_line(&m->candidate, &evidence);
	else if (!m->candidate.reason)
		step_check_segments(&m->candidate, &evidence);
	m->error_width_containment = width_at_middle(&m->candidate.clock, guest);
	int status = match_measure(host, guest, m, err);
	number_by_containment(m);
	/* The search uses only the events at the activity's edges; the events between them must be contained as well. */
	const double least = m->candidate.clock.segments > 1 ? PROVEN_SHARE_MIN : LINE_SHARE_MIN;
	if (status == 0 && m->inside_share >= 0 && m->inside_share < least && !m->candidate.reason)
		m->candidate.reason = SYNC_REASON_NO_OFFSET;
	return status;
}

static bool is_violated(const struct pair *p, const struct clock_map *clock, struct clock_hint *hint)
{
	int64_t low, high;
	return clock_map_bounds_hint(clock, p->x, hint, &low, &high) && (p->side == HULL_UPPER ? low > p->y : high < p->y);
}

size_t match_count_violations(const struct pair_list *pairs, const struct clock_map *clock)
{
	struct clock_hint hint = { 0 };
	size_t n = 0;
	for (size_t i = 0; i < pairs->len; i++)
		n += is_violated(&pairs->pair[i], clock, &hint);
	return n;
}

/* Returns true if a pair of the other side, closer to that end of the list, shows that pair i is an outlier. Such a pair
 * does not exist if the clock changed. */
static bool is_contradicted(const struct pair_list *pairs, const struct clock_map *clock, size_t i, bool last)
{
	const struct pair *p = &pairs->pair[i];
	const int64_t off = p->y - clock_map_at(clock, p->x);
	for (size_t k = i; last ? ++k < pairs->len : k-- > 0;) {
		const struct pair *q = &pairs->pair[k];
		const int64_t by = q->y - clock_map_at(clock, q->x) - off;
		if (q->side != p->side && !q->rejected && (p->side == HULL_UPPER ? by > 0 : by < 0))
			return true;
	}
	return false;
}

/* Scans the pairs of one side from one end of the list, within the first (last) segment. Returns true if a pair violates
 * the clock and no pair closer to that end contradicts it. *inlier: first pair after all such violations that the clock
 * satisfies; NULL: none. */
static bool find_verified_end(const struct pair_list *pairs, const struct clock_map *clock, bool last, enum hull_side side,
                              const struct pair **inlier)
{
	const int64_t from = clock->segments > 1 && last ? clock->segment[clock->segments - 1].from : INT64_MIN;
	const int64_t to = clock->segments > 1 && !last ? clock->segment[1].from : INT64_MAX;
	struct clock_hint hint = { 0 };
	bool found = false, is_pending = false;
	*inlier = NULL;
	for (size_t k = 0; k < pairs->len; k++) {
		const size_t i = last ? pairs->len - 1 - k : k;
		const struct pair *p = &pairs->pair[i];
		if (p->x < from || p->x >= to)
			break;
		if (p->side != side)
			continue;
		const bool is_inlier = !p->rejected && !is_violated(p, clock, &hint);
		if (is_inlier && is_pending)
			*inlier = p;
		is_pending = is_pending && !is_inlier;
		if (is_inlier || is_contradicted(pairs, clock, i, last))
			continue;
		found = is_pending = true;
		*inlier = NULL;
	}
	return found;
}

bool match_verified_range(const struct pair_list *pairs, const struct clock_map *clock, struct ns_interval *out)
{
	bool is_cut = false;
	for (int i = 0; i < 4; i++) {
		const struct pair *p;
		const bool last = i % 2;
		if (!find_verified_end(pairs, clock, last, i / 2 ? HULL_UPPER : HULL_LOWER, &p))
			continue;
		is_cut = true;
		if (last && (!p || p->x < out->to))
			out->to = p ? p->x : out->from;
		else if (!last && (!p || p->x > out->from))
			out->from = p ? p->x : out->to;
	}
	return is_cut;
}

int match_both(const struct host_timeline *host, struct guest_view *guest, struct match *m, bool bands, struct error *err)
{
	struct clock_candidate both;
	if (load_activity_once(host, guest, err) != 0)
		return -1;
	const struct evidence evidence = { host, &m->view, &guest->activity };
	if (steps_place(&evidence, &m->events, &m->candidate.clock) && measure_containment(host, guest, m, NULL, err) != 0)
		return -1;
	clock_candidate_copy(&both, &m->candidate);
	struct narrowing with = { 0 };
	clock_candidate_narrow(&both, &evidence, &m->events, &with);
	const bool jumps = steps_place(&evidence, &m->events, &both.clock);
	struct parallel_work parallel_work = { .host = host, .guest = guest, .vm = &m->view, .with = &with };
	if (bands)
		clock_candidate_copy(&parallel_work.alone, &both);
	if (jumps) {
		clock_candidate_widen_bounds(&both.clock, &evidence, &m->events);
		with.walked.len = 0;
	} else {
		fit_widen_bounds(&with.fitted, &both.clock);
	}
	struct match old = *m;
	m->candidate = both;
	m->containment = (struct containment){ 0 };
	const struct side_task narrow = { narrow_by_containment, &parallel_work };
	int status = measure_containment(host, guest, m, bands ? &narrow : NULL, err);
	const int64_t band = bands ? width_at_middle(&parallel_work.alone.clock, guest) : -1;
	clock_candidate_release(&parallel_work.alone);
	narrowing_release(&with);
	/* A line may satisfy most pairs of containment and yet hide or move a step that the sync events prove. */
	const bool refused = match_count_violations(&m->events, &both.clock) >=
	                     match_count_violations(&m->events, &old.candidate.clock) + FIT_SUSPECTS;
	const bool agree = both.clock.segments <= old.candidate.clock.segments && !refused;
	if (status == 0 && (m->inside_share < old.inside_share || !agree)) {
		clock_candidate_release(&both);
		containment_release(&m->containment);
		*m = old;
		return 0;
	}
	clock_candidate_release(&old.candidate);
	containment_release(&old.containment);
	if (status != 0)
		return -1;
	m->method = SYNC_AUTO;
	m->candidate.pairs += old.candidate.pairs;
	m->error_width_containment = band;
	number_by_containment(m);
	return 0;
}

int match_offset(const struct host_timeline *host, const struct vm_candidate *vm, const struct guest_view *guest,
                 int64_t offset, struct match *m, struct error *err)
{
	int64_t at;
	match_init(m, vm, SYNC_OFFSET);
	if (__builtin_add_overflow(guest->begin, offset, &at))
		return error_set(err, STATUS_USAGE, "give nanoseconds that take the guest's time to the host's",
		                 "%s: an offset of %lld ns is out of range", trace_info(guest->trace)->machine,
		                 (long long)offset);
	struct clock_line line = { guest->begin, at, 0 };
	m->candidate.clock.segment = mem_new(1, sizeof *m->candidate.clock.segment);
	m->candidate.clock.segments = 1;
	m->candidate.clock.segment[0] = (struct clock_segment){ .from = guest->begin, .line = line, .lowest = line,
		.highest = line };
	return match_measure(host, guest, m, err);
}

static struct clock_bound bound_from_line(const struct clock_line *line)
{
	struct clock_bound e = { .left = *line, .right = *line, .point = mem_new(1, sizeof *e.point), .points = 1 };
	e.point[0] = (struct clock_point){ line->ref_guest, line->ref_host };
	return e;
}

int match_beats_shifted_clocks(const struct host_timeline *host, const struct guest_view *guest, struct match *m,
                               bool *beats_shifted, struct error *err)
{
	static const int64_t away[] = { -31300000, -11700000, -5900000, -2300000, 2300000, 5900000, 11700000, 31300000 };
	const struct containment containment = m->containment;
	const double share = m->inside_share;
	double most = 0;
	int status = 0;
	m->containment = (struct containment){ 0 };
	for (size_t i = 0; i < sizeof away / sizeof *away && status == 0; i++) {
		clock_map_shift(&m->candidate.clock, away[i]);
		status = match_measure(host, guest, m, err);
		clock_map_shift(&m->candidate.clock, -away[i]);
		most = m->inside_share > most ? m->inside_share : most;
	}
	containment_release(&m->containment);
	m->containment = containment;
	m->inside_share = share;
	*beats_shifted = share > (1 + 3 * most) / 4;
	return status;
}

int match_tsc(const struct host_timeline *host, const struct vm_candidate *vm, const struct guest_view *guest,
              const struct clock_line *line, struct match *m, struct error *err)
{
	match_init(m, vm, SYNC_TSC);
	m->candidate.clock.segment = mem_new(1, sizeof *m->candidate.clock.segment);
	m->candidate.clock.segments = 1;
	m->candidate.clock.segment[0] = (struct clock_segment){ .from = guest->begin, .line = *line, .lowest = *line,
		.highest = *line,
		.low = bound_from_line(line), .high = bound_from_line(line), .quality = SYNC_ACCURATE };
	return match_measure(host, guest, m, err);
}

void match_drop_clock(struct match *m)
{
	pairs_release(&m->events);
	clock_map_release(&m->candidate.clock);
}

void match_release(struct match *m)
{
	free(m->view.vcpu);
	match_drop_clock(m);
	containment_release(&m->containment);
	memset(m, 0, sizeof *m);
}
