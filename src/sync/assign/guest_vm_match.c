#include "sync/assign/guest_vm_match.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "sync/assign/vcpu_numbering.h"
#include "sync/fit/stream_matching.h"
#include "sync/search/step_placement.h"
#include "sync/search/step_check.h"

#define BORNE_OUT (3 * FIT_SUSPECTS)  /* so many pairs of a piece are no chance */

/* Samples of a guest's marks: how many, and how many of their pairs may contradict by chance. */
static const struct mark_sample { size_t marks, chance; } sample[SAMPLES] = { { 32, 2 }, { 128, 0 } };

int guest_view_load(struct guest_view *g, struct error *err)
{
	struct trace_cursor *c = trace_cursor_open(g->trace, KIND(EV_SYNC), -1, err);
	int status = c ? 0 : -1;
	const struct event *ev;
	while (c && (status = trace_cursor_borrow(c, &ev, err)) == 1) {
		struct sync_mark m = { (uint64_t)ev->sync.key, ev->ts, ev->sync.uid, ev->cpu, (uint16_t)ev->sync.end, 0 };
		mark_list_add(&g->marks, &m);
	}
	trace_cursor_close(c);
	mark_list_sort(&g->marks);
	return status;
}

void guest_view_thin(struct guest_view *g, unsigned sparse)
{
	mark_list_thin(&g->marks, sparse);
	for (size_t i = 0; i < SAMPLES; i++)
		mark_list_few(&g->marks, g->begin, g->end, sample[i].marks, &g->few[i]);
}

void guest_view_forget(struct guest_view *g)
{
	mark_list_release(&g->marks);
	for (size_t i = 0; i < SAMPLES; i++)
		mark_list_release(&g->few[i]);
	activity_release(&g->activity);
	g->has_activity = false;
}

void guest_view_release(struct guest_view *g)
{
	guest_view_forget(g);
	memset(g, 0, sizeof *g);
}

static void copy_view(struct match *m, const struct vm_view *vm)
{
	if (!vm)
		return;
	m->view = *vm;
	m->view.vcpu = mem_new(vm->vcpus, sizeof *m->view.vcpu);
	if (vm->vcpus > 0)
		memcpy(m->view.vcpu, vm->vcpu, vm->vcpus * sizeof *vm->vcpu);
}

/* The threads for walks over this guest's events: those that no other guest needs. */
static unsigned workers_for(const struct guest_view *g)
{
	const size_t left = atomic_load(g->left);
	return left == 0 ? g->workers : left < g->workers ? g->workers / (unsigned)left : 1;
}

static int prove(const struct host_view *host, const struct guest_view *guest, struct match *m,
                 const struct beside *beside, struct error *err)
{
	containment_release(&m->proof);
	m->share = -1;
	if (m->view.vcpus == 0 || m->h.clock.pieces == 0)
		return 0;
	if (containment_measure(host, &m->view, guest->trace, &m->h.clock, workers_for(guest), beside, &m->proof, err) != 0)
		return -1;
	m->share = containment_share(&m->proof);
	return 0;
}

int match_prove(const struct host_view *host, const struct guest_view *guest, struct match *m, struct error *err)
{
	return prove(host, guest, m, NULL, err);
}

static int64_t band_of(const struct clock_map *clock, const struct guest_view *guest)
{
	return clock_map_band(clock, guest->begin + (guest->end - guest->begin) / 2);
}

static void begin_match(struct match *m, const struct vm_view *vm, enum sync_method method)
{
	copy_view(m, vm);
	m->method = method;
	m->share = -1;
	m->band_events = m->band_containment = -1;
}

static int need_activity(const struct host_view *host, struct guest_view *guest, struct error *err)
{
	if (guest->has_activity)
		return 0;
	guest->has_activity = true;
	guest->first = guest->first ? guest->first : host;
	return activity_load(&guest->activity, guest->trace, guest->first->quiet, host->stop, err);
}

/* What a match needs beside its proof, for somebody who has time during that. */
struct need {
	const struct host_view *host;
	struct guest_view *guest;
	const struct vm_view *vm;
	struct hypothesis alone;
	struct narrowed *with;
};

static int load_activity(void *arg, struct error *err)
{
	const struct need *n = arg;
	return need_activity(n->host, n->guest, err);
}

/* From that clock on to the one by containment alone. */
static int narrow_alone(void *arg, struct error *err)
{
	struct need *n = arg;
	const struct seen seen = { n->host, n->vm, &n->guest->activity };
	(void)err;
	hypothesis_narrow(&n->alone, &seen, NULL, n->with);
	fit_open(&n->with->fitted, &n->alone.clock);
	return 0;
}

/* The pairs so far were a sample; with its clock all of them can be matched. */
static int all_pairs(const struct host_view *host, const struct guest_view *guest, bool is_vm, struct match *m,
                     struct error *err)
{
	struct pairing s;
	bool *mine = is_vm ? vm_threads(host, &m->view) : NULL;
	const int status = pairing_traces(host, guest->trace, mine, &m->h.clock, &s, err);
	free(mine);
	if (status != 0) {
		pairing_release(&s);
		return -1;
	}
	pairs_release(&m->events);
	m->events = s.pairs;
	s.pairs = (struct pair_list){ 0 };
	m->h.pairs = s.matched;
	m->unmatched = s.unmatched;
	pairing_release(&s);
	clock_map_release(&m->h.clock);
	fit_pairs(&m->events, guest->begin, &m->h.clock);
	return 0;
}

static bool bears_out(const struct clock_piece *p)
{
	return p->pairs_ab + p->pairs_cd >= BORNE_OUT;
}

/* The share of the pairs that contradict the others.  A change of the clock is a contradiction, too, of as many as it
 * takes to see it, unless several times as many bear out each of the two clocks. */
static double contradiction_of(const struct match *m)
{
	const struct clock_map *clock = &m->h.clock;
	size_t against = m->events.len - m->h.used;
	for (size_t i = 1; i < clock->pieces; i++)
		if (!bears_out(&clock->piece[i - 1]) || !bears_out(&clock->piece[i]))
			against += FIT_SUSPECTS;
	return (double)against / (double)m->events.len;
}

/* doubtful: is it one of many VMs?  Then of one that its pairs refuse, that is all there is to know for now. */
static int fit_events(const struct host_view *host, const struct guest_view *guest, bool is_vm, bool doubtful,
                      struct match *m, struct error *err)
{
	struct pair_list *pairs = &m->events;
	pairs_count_left(&guest->marks, &host->marks, is_vm ? &m->view.owners : NULL, pairs);
	m->unmatched = pairs->unmatched;
	fit_pairs(pairs, guest->begin, &m->h.clock);
	if ((guest->marks.sparse > 0 || host->marks.sparse > 0) && m->h.clock.pieces > 0 &&
	    all_pairs(host, guest, is_vm, m, err) != 0)
		return -1;
	m->h.used = 0;
	for (size_t i = 0; i < pairs->len; i++)
		m->h.used += !pairs->pair[i].rejected;
	if (pairs->len > 0)
		m->contradiction = contradiction_of(m);
	m->postponed = doubtful && m->h.clock.pieces > 0 && !match_agrees(m);
	if (m->postponed) {
		m->h.used = m->h.pairs - (pairs->len - m->h.used);
		clock_map_release(&m->h.clock);
		return 0;
	}
	if (is_vm)
		number_by_pairs(&m->view, pairs);
	fit_open(pairs, &m->h.clock);
	m->band_events = band_of(&m->h.clock, guest);
	return 0;
}

static void pair_up(const struct host_view *host, const struct vm_view *vm, const struct guest_view *guest, struct match *m)
{
	pairs_match(&guest->marks, &host->marks, vm ? &vm->owners : NULL, &m->events);
	m->h.pairs = m->events.len;
}

int match_fit(const struct host_view *host, const struct guest_view *guest, struct match *m, struct error *err)
{
	pair_up(host, &m->view, guest, m);
	m->contradiction = 0;
	return fit_events(host, guest, true, false, m, err);
}

/* Pairs that conflict all along need no fit to be told from a clock.  The least that it would say, of how many there are
 * (a list may be a sample): every conflict is a pair against, but for those at which a piece ends that is borne out.
 * part: of all pairs, those in the list; chance: so many against are none. */
static bool postpone(struct match *m, double part, size_t chance)
{
	const size_t pairs = m->events.len, conflicts = fit_conflicts(&m->events), ends = pairs / BORNE_OUT;
	const size_t against = conflicts > ends ? conflicts - ends : 0;
	if ((double)against < CONTRADICTION_MAX * (double)pairs + (double)chance || pairs == 0)
		return false;
	m->contradiction = (double)against / (double)pairs;
	m->h.used = (uint64_t)((double)(pairs - against) / part);
	return true;
}

/* Most VMs are not the guest's, and a few of its pairs tell that already. */
static bool postpone_few(const struct guest_view *guest, const struct host_view *host, double part, struct match *m)
{
	for (size_t i = 0; i < SAMPLES; i++) {
		const struct mark_list *few = &guest->few[i];
		if (few->len == 0)
			continue;
		pairs_match(few, &host->marks, &m->view.owners, &m->events);
		if (m->events.len >= sample[i].marks / 2 &&  /* fewer tell nothing */
		    postpone(m, part * (double)few->len / (double)guest->marks.len, sample[i].chance))
			return true;
	}
	return false;
}

int match_events(const struct host_view *host, const struct vm_view *vm, const struct guest_view *guest,
                 struct match *m, struct error *err)
{
	const unsigned sparse = guest->marks.sparse > host->marks.sparse ? guest->marks.sparse : host->marks.sparse;
	const double part = 1 / (double)(UINT64_C(1) << sparse);
	begin_match(m, vm, SYNC_EVENTS);
	m->postponed = vm && postpone_few(guest, host, part, m);
	if (m->postponed)
		return 0;
	pair_up(host, vm, guest, m);
	m->postponed = vm && postpone(m, part, 0);
	return m->postponed ? 0 : fit_events(host, guest, vm != NULL, vm != NULL, m, err);
}

int match_prove_first(const struct host_view *host, struct guest_view *guest, struct match *m, struct error *err)
{
	struct need need = { .host = host, .guest = guest };
	return prove(host, guest, m, guest->has_activity ? NULL : &(struct beside){ load_activity, &need }, err);
}

bool match_agrees(const struct match *m)
{
	return m->contradiction < CONTRADICTION_MAX;
}

bool match_proved(const struct match *m)
{
	return !m->h.doubt && m->share >= PROVED && match_agrees(m);
}

int match_containment(const struct host_view *host, const struct vm_view *vm, struct guest_view *guest,
                      bool steps, struct match *m, struct error *err)
{
	begin_match(m, vm, SYNC_CONTAINMENT);
	if (need_activity(host, guest, err) != 0)
		return -1;
	const struct seen seen = { host, vm, &guest->activity };
	search_containment(&seen, steps, &m->h);
	const bool jumps = jumps_place(&seen, &(struct pair_list){ 0 }, &m->h.clock);
	hypothesis_open(&m->h.clock, &seen, NULL);
	if (!m->h.doubt && !jumps)
		steady_doubt(&m->h, &seen);
	else if (!m->h.doubt)
		steady_pieces(&m->h, &seen);
	m->band_containment = band_of(&m->h.clock, guest);
	int status = match_prove(host, guest, m, err);
	number_by_containment(m);
	/* The search looks at the edges of what the guest did; what is in between must be contained, too. */
	const double least = m->h.clock.pieces > 1 ? PROVED : SHARE_MIN;
	if (status == 0 && m->share >= 0 && m->share < least && !m->h.doubt)
		m->h.doubt = search_nowhere;
	return status;
}

static bool refuses(const struct pair *p, const struct clock_map *clock, struct clock_near *near)
{
	int64_t low, high;
	return clock_map_bounds_near(clock, p->x, near, &low, &high) && (p->side == HULL_UPPER ? low > p->y : high < p->y);
}

size_t match_refusals(const struct pair_list *pairs, const struct clock_map *clock)
{
	struct clock_near near = { 0 };
	size_t n = 0;
	for (size_t i = 0; i < pairs->len; i++)
		n += refuses(&pairs->pair[i], clock, &near);
	return n;
}

/* Does a pair of the other side, nearer to that end, put the clock back to where this one says that it is not?  As it does
 * with an outlier, but not where the clock has changed. */
static bool is_denied(const struct pair_list *pairs, const struct clock_map *clock, size_t i, bool last)
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

/* From one end of the list on, within the piece there, and of one side: is there a pair that the clock does not bear, and
 * that nothing denies?  Then *borne is the first one that it bears behind all of these, or NULL. */
static bool find_borne(const struct pair_list *pairs, const struct clock_map *clock, bool last, enum hull_side side,
                       const struct pair **borne)
{
	const int64_t from = clock->pieces > 1 && last ? clock->piece[clock->pieces - 1].from : INT64_MIN;
	const int64_t to = clock->pieces > 1 && !last ? clock->piece[1].from : INT64_MAX;
	struct clock_near near = { 0 };
	bool found = false, is_open = false;
	*borne = NULL;
	for (size_t k = 0; k < pairs->len; k++) {
		const size_t i = last ? pairs->len - 1 - k : k;
		const struct pair *p = &pairs->pair[i];
		if (p->x < from || p->x >= to)
			break;
		if (p->side != side)
			continue;
		const bool is_borne = !p->rejected && !refuses(p, clock, &near);
		if (is_borne && is_open)
			*borne = p;
		is_open = is_open && !is_borne;
		if (is_borne || is_denied(pairs, clock, i, last))
			continue;
		found = is_open = true;
		*borne = NULL;
	}
	return found;
}

bool match_borne(const struct pair_list *pairs, const struct clock_map *clock, struct segment *out)
{
	bool is_cut = false;
	for (int i = 0; i < 4; i++) {
		const struct pair *p;
		const bool last = i % 2;
		if (!find_borne(pairs, clock, last, i / 2 ? HULL_UPPER : HULL_LOWER, &p))
			continue;
		is_cut = true;
		if (last && (!p || p->x < out->to))
			out->to = p ? p->x : out->from;
		else if (!last && (!p || p->x > out->from))
			out->from = p ? p->x : out->to;
	}
	return is_cut;
}

int match_both(const struct host_view *host, struct guest_view *guest, struct match *m, bool bands, struct error *err)
{
	struct hypothesis both;
	if (need_activity(host, guest, err) != 0)
		return -1;
	const struct seen seen = { host, &m->view, &guest->activity };
	if (jumps_place(&seen, &m->events, &m->h.clock) && prove(host, guest, m, NULL, err) != 0)
		return -1;
	hypothesis_copy(&both, &m->h);
	struct narrowed with = { 0 };
	hypothesis_narrow(&both, &seen, &m->events, &with);
	const bool jumps = jumps_place(&seen, &m->events, &both.clock);
	struct need need = { .host = host, .guest = guest, .vm = &m->view, .with = &with };
	if (bands)
		hypothesis_copy(&need.alone, &both);
	if (jumps) {
		hypothesis_open(&both.clock, &seen, &m->events);
		with.walked.len = 0;
	} else {
		fit_open(&with.fitted, &both.clock);
	}
	struct match old = *m;
	m->h = both;
	m->proof = (struct containment){ 0 };
	int status = prove(host, guest, m, bands ? &(struct beside){ narrow_alone, &need } : NULL, err);
	const int64_t band = bands ? band_of(&need.alone.clock, guest) : -1;
	hypothesis_release(&need.alone);
	narrowed_release(&with);
	/* Of many pairs by containment a line may bear most, and hide a jump that the events prove, or move it. */
	const bool refused = match_refusals(&m->events, &both.clock) >=
	                     match_refusals(&m->events, &old.h.clock) + FIT_SUSPECTS;
	const bool agree = both.clock.pieces <= old.h.clock.pieces && !refused;
	if (status == 0 && (m->share < old.share || !agree)) {
		hypothesis_release(&both);
		containment_release(&m->proof);
		*m = old;
		return 0;
	}
	hypothesis_release(&old.h);
	containment_release(&old.proof);
	if (status != 0)
		return -1;
	m->method = SYNC_AUTO;
	m->h.pairs += old.h.pairs;
	m->band_containment = band;
	number_by_containment(m);
	return 0;
}

int match_offset(const struct host_view *host, const struct vm_view *vm, const struct guest_view *guest,
                 int64_t offset, struct match *m, struct error *err)
{
	int64_t at;
	begin_match(m, vm, SYNC_OFFSET);
	if (__builtin_add_overflow(guest->begin, offset, &at))
		return error_set(err, STATUS_USAGE, "give nanoseconds that take the guest's time to the host's",
		                 "%s: an offset of %lld ns is out of range", trace_info(guest->trace)->machine,
		                 (long long)offset);
	struct clock_line line = { guest->begin, at, 0 };
	m->h.clock.piece = mem_new(1, sizeof *m->h.clock.piece);
	m->h.clock.pieces = 1;
	m->h.clock.piece[0] = (struct clock_piece){ .from = guest->begin, .line = line, .lowest = line, .highest = line };
	return match_prove(host, guest, m, err);
}

static struct clock_edge edge_of(const struct clock_line *line)
{
	struct clock_edge e = { .left = *line, .right = *line, .point = mem_new(1, sizeof *e.point), .points = 1 };
	e.point[0] = (struct clock_point){ line->ref_guest, line->ref_host };
	return e;
}

int match_stands_out(const struct host_view *host, const struct guest_view *guest, struct match *m, bool *stands,
                     struct error *err)
{
	static const int64_t away[] = { -31300000, -11700000, -5900000, -2300000, 2300000, 5900000, 11700000, 31300000 };
	const struct containment proof = m->proof;
	const double share = m->share;
	double most = 0;
	int status = 0;
	m->proof = (struct containment){ 0 };
	for (size_t i = 0; i < sizeof away / sizeof *away && status == 0; i++) {
		clock_map_shift(&m->h.clock, away[i]);
		status = match_prove(host, guest, m, err);
		clock_map_shift(&m->h.clock, -away[i]);
		most = m->share > most ? m->share : most;
	}
	containment_release(&m->proof);
	m->proof = proof;
	m->share = share;
	*stands = share > (1 + 3 * most) / 4;
	return status;
}

int match_tsc(const struct host_view *host, const struct vm_view *vm, const struct guest_view *guest,
              const struct clock_line *line, struct match *m, struct error *err)
{
	begin_match(m, vm, SYNC_TSC);
	m->h.clock.piece = mem_new(1, sizeof *m->h.clock.piece);
	m->h.clock.pieces = 1;
	m->h.clock.piece[0] = (struct clock_piece){ .from = guest->begin, .line = *line, .lowest = *line, .highest = *line,
		.low = edge_of(line), .high = edge_of(line), .quality = SYNC_ACCURATE };
	return match_prove(host, guest, m, err);
}

void match_forget(struct match *m)
{
	pairs_release(&m->events);
	clock_map_release(&m->h.clock);
}

void match_release(struct match *m)
{
	free(m->view.vcpu);
	match_forget(m);
	containment_release(&m->proof);
	memset(m, 0, sizeof *m);
}
