/* Decides which candidates are right: each guest is at most one VM, and each VM at most one guest. */
#include <math.h>

#include "base/base.h"
#include "sync/assign/sync_context.h"

static int to_percent(double share)
{
	return (int)floor(share * 100 + 0.5);
}

/* Returns the possible contained share less the outlier share. */
static double net_share(const struct match *m)
{
	return containment_possible_share(&m->containment) - m->outlier_share;
}

/* qsort() order: better candidates first. */
static int compare_matches(const void *pa, const void *pb)
{
	const struct match *a = pa, *b = pb;
	if (!a->candidate.reason != !b->candidate.reason)
		return !a->candidate.reason ? -1 : 1;
	if ((a->vm == NO_INDEX) != (b->vm == NO_INDEX))
		return a->vm != NO_INDEX ? -1 : 1;
	/* compared in whole percent, so that small differences do not decide */
	int sa = to_percent(net_share(a)), sb = to_percent(net_share(b));
	if (sa != sb)
		return sa > sb ? -1 : 1;
	if (a->candidate.inliers != b->candidate.inliers)
		return a->candidate.inliers > b->candidate.inliers ? -1 : 1;
	if (a->containment.inside != b->containment.inside)  /* only events that could be judged, not those during losses or
	                                                      * outside the host's trace */
		return a->containment.inside > b->containment.inside ? -1 : 1;
	if (a->guest != b->guest)
		return a->guest < b->guest ? -1 : 1;
	if (a->hypervisor != b->hypervisor)
		return a->hypervisor < b->hypervisor ? -1 : 1;
	return a->vm < b->vm ? -1 : a->vm > b->vm;
}

/* Matches proven before ambiguities are resolved; few compared with all combinations of guests and VMs.
 * match_is_proven() of a match may become false later. */
struct proved {
	const struct sync_context *r;
	const struct match **match;
	size_t len, cap;
};

static struct proved find_proved(const struct sync_context *r)
{
	struct proved p = { .r = r };
	for (size_t i = 0; i < r->matches; i++)
		if (match_is_proven(&r->match[i]))
			*ARRAY_PUSH(p.match, p.len, p.cap) = &r->match[i];
	return p;
}

/* Returns true if the guest is proven to run in that VM, directly or through at most `deepest` levels of nested guests. */
static bool runs_in(const struct proved *p, size_t guest, size_t hypervisor, size_t vm, size_t deepest)
{
	for (size_t i = 0; i < p->len && guest != NO_INDEX; i++) {
		const struct match *m = p->match[i];
		if (m->guest == guest && match_is_proven(m) &&
		    ((m->hypervisor == hypervisor && m->vm == vm) ||
		     (deepest > 0 && runs_in(p, p->r->hypervisor[m->hypervisor].guest, hypervisor, vm, deepest - 1))))
			return true;
	}
	return false;
}

/* Returns true if the proven match b shows that match a is one with an outer VM only: a nested guest's events are
 * also within the guest mode of the outer guest's VM. */
static bool is_nested_in(const struct proved *p, const struct match *a, const struct match *b)
{
	return a->guest == b->guest && a->hypervisor != b->hypervisor &&
	       runs_in(p, p->r->hypervisor[b->hypervisor].guest, a->hypervisor, a->vm, p->r->hypervisors);
}

/* Returns another proven match of the same guest; NULL: none. */
static const struct match *other_match(const struct proved *p, const struct match *m)
{
	for (size_t i = 0; i < p->len; i++)
		if (p->match[i] != m && p->match[i]->guest == m->guest && match_is_proven(p->match[i]))
			return p->match[i];
	return NULL;
}

/* Returns true if guest and machine of the match seem to run in each other, and the reverse match is right: it has fewer
 * contradictions, or as many and is the only match of its guest. */
static bool is_reversed(const struct proved *p, const struct match *m)
{
	const size_t outer = p->r->hypervisor[m->hypervisor].guest;
	const double possible = containment_possible_share(&m->containment);
	for (size_t i = 0; i < p->len && outer != NO_INDEX; i++) {
		const struct match *o = p->match[i];
		if (o->guest != outer || p->r->hypervisor[o->hypervisor].guest != m->guest || !match_is_proven(o))
			continue;
		if (containment_possible_share(&o->containment) > possible ||
		    (containment_possible_share(&o->containment) == possible && other_match(p, m) && !other_match(p, o)))
			return true;
	}
	return false;
}

/* Returns true if the clock is given or computed, so that only containment indicates the VM. */
static bool is_given(const struct match *m)
{
	return m->method == SYNC_OFFSET || m->method == SYNC_TSC;
}

static bool may_be_ambiguous(const struct match *m)
{
	return (m->method == SYNC_CONTAINMENT || (is_given(m) && m->inside_share >= PROVEN_SHARE_MIN)) &&
	       (!m->candidate.reason || m->candidate.reason == SYNC_REASON_SEVERAL_VMS ||
	        m->candidate.reason == SYNC_REASON_OTHER_VM_BETTER);
}

static void set_reason(struct match *m, enum sync_reason reason)
{
	m->candidate.reason = m->candidate.reason == SYNC_REASON_OTHER_VM_BETTER ? SYNC_REASON_OTHER_VM_BETTER : reason;
}

/* Returns true if the guest has another match, and this VM is proven to be another guest that fits no other VM and has a
 * clock found without containment. */
static bool is_vm_of_other_guest(const struct proved *p, const struct match *m)
{
	if (!may_be_ambiguous(m) || !other_match(p, m))
		return false;
	for (size_t i = 0; i < p->len; i++) {
		const struct match *o = p->match[i];
		if (o->guest != m->guest && o->hypervisor == m->hypervisor && o->vm == m->vm && match_is_proven(o) &&
		    o->method != SYNC_CONTAINMENT &&
		    containment_possible_share(&o->containment) >= containment_possible_share(&m->containment) &&
		    !other_match(p, o))
			return true;
	}
	return false;
}

/* Rejects one or both of two VMs that fit one guest. Clocks found by containment differ, and neither is proven. With one
 * given clock, one VM may fit better. (A VM that runs VMs itself has more windows, and so closer edges.) */
static void judge_pair(struct match *a, struct match *b)
{
	const bool one_clock = is_given(a) && is_given(b) && a->hypervisor == b->hypervisor;
	const bool a_wins = one_clock && containment_closer(&a->containment, &b->containment);
	const bool b_wins = one_clock && containment_closer(&b->containment, &a->containment);
	if (!a_wins)
		set_reason(a, b_wins ? SYNC_REASON_OTHER_VM_BETTER : SYNC_REASON_SEVERAL_VMS);
	if (!b_wins)
		set_reason(b, a_wins ? SYNC_REASON_OTHER_VM_BETTER : SYNC_REASON_SEVERAL_VMS);
}

static bool is_inside_another(const struct proved *p, const struct match *m)
{
	for (size_t i = 0; i < p->len; i++)
		if (match_is_proven(p->match[i]) && is_nested_in(p, m, p->match[i]))
			return true;
	return false;
}

/* Sets the reason for all matches that satisfy is_one. All are tested before any reason is set, because a rejected match
 * proves nothing about others. */
static void set_reason_where(struct sync_context *r, const struct proved *p,
                             bool (*is_one)(const struct proved *, const struct match *), enum sync_reason reason)
{
	bool *is = mem_new(r->matches, sizeof *is);
	for (size_t i = 0; i < r->matches; i++)
		is[i] = is_one(p, &r->match[i]);
	for (size_t i = 0; i < r->matches; i++)
		if (is[i])
			r->match[i].candidate.reason = reason;
	free(is);
}

/* Rejects matches of guests that fit two or more VMs. */
static void resolve_ambiguities(struct sync_context *r)
{
	struct proved proved = find_proved(r);
	for (size_t i = 0; i < r->matches; i++)
		if (is_reversed(&proved, &r->match[i]))
			r->match[i].candidate.reason = SYNC_REASON_CIRCULAR_NESTING;
	set_reason_where(r, &proved, is_inside_another, SYNC_REASON_INSIDE_OTHER_GUEST);
	set_reason_where(r, &proved, is_vm_of_other_guest, SYNC_REASON_VM_OF_OTHER_GUEST);
	free(proved.match);
	for (size_t i = 0; i < r->matches; i++) {
		for (size_t k = 0; k < i && may_be_ambiguous(&r->match[i]); k++) {
			struct match *a = &r->match[i], *b = &r->match[k];
			/* migrated VMs follow their parts in the list */
			bool related = a->hypervisor == b->hypervisor && vm_is_migrated(&a->view);
			if (!related && a->guest == b->guest && may_be_ambiguous(b))
				judge_pair(a, b);
		}
	}
}

/* Returns true if the machine is the guest, or runs inside it directly or nested. */
static bool runs_guest(const struct sync_context *r, struct match *const *assigned, size_t hypervisor, size_t guest)
{
	size_t inner = r->hypervisor[hypervisor].guest;
	while (inner != NO_INDEX && inner != guest && assigned[inner])
		inner = r->hypervisor[assigned[inner]->hypervisor].guest;
	return inner == guest;
}

bool vm_is_assigned(const struct hypervisor *h, size_t vm)
{
	const struct vm_candidate *view = &h->vms.vm[vm];
	const size_t *part = view->migration.part;
	return h->is_assigned[vm] || (vm_is_migrated(view) && (h->is_assigned[part[0]] || h->is_assigned[part[1]]));
}

void vm_set_assigned(struct hypervisor *h, size_t vm)
{
	const struct vm_candidate *view = &h->vms.vm[vm];
	h->is_assigned[vm] = true;
	for (int i = 0; i < 2 && vm_is_migrated(view); i++)
		h->is_assigned[view->migration.part[i]] = true;
}

/* Assigns candidates in order of quality, each guest and each VM once. A trace with ROLE_HOST becomes a guest only if
 * proven. */
static void choose_matches(struct sync_context *r, struct match **assigned)
{
	resolve_ambiguities(r);
	ARRAY_SORT(r->match, r->matches, compare_matches);
	for (size_t i = 0; i < r->matches; i++) {
		struct match *m = &r->match[i];
		struct hypervisor *h = &r->hypervisor[m->hypervisor];
		bool doubtful = m->candidate.reason ||
			(trace_info(r->guest[m->guest].trace)->role == ROLE_HOST && !match_is_proven(m));
		if (doubtful || assigned[m->guest] || (m->vm != NO_INDEX && vm_is_assigned(h, m->vm)) ||
		    runs_guest(r, assigned, m->hypervisor, m->guest))
			continue;
		assigned[m->guest] = m;
		if (m->vm != NO_INDEX)
			vm_set_assigned(h, m->vm);
	}
}

/* Returns true if sync events of the same VM contradict the clock found by containment. One pair is enough: it may be
 * the only pair around its time. */
static bool events_contradict(const struct match *m, const struct match *events)
{
	if (events->guest != m->guest || events->hypervisor != m->hypervisor || events->vm != m->vm ||
	    events->method == SYNC_CONTAINMENT)
		return false;
	return match_count_violations(&events->events, &m->candidate.clock) > 0;
}

/* Cuts the clock at its ends where pairs contradict it, too few to fit another clock, and no later pair contradicts
 * them. */
static void cut_violated_ends(struct match *m, const struct guest_view *guest)
{
	struct ns_interval verified = { guest->begin, guest->end };
	if ((m->method == SYNC_EVENTS || m->method == SYNC_AUTO) &&
	    match_verified_range(&m->events, &m->candidate.clock, &verified) &&
	    !clock_map_cut(&m->candidate.clock, verified.from, verified.to))
		m->candidate.unverified = true;
}

/* Handles an interval in which no clock within the error bounds is right: the clock stepped between it and the pairs. If
 * all pairs are on one side, cuts the clock after them; pairs in slices with contradicting events do not count. Pairs on
 * both sides prove a line, and the times in the interval are damaged; but if these pairs are far apart, the clock is
 * unverified. */
static void cut_beyond_pairs(struct match *m, const struct guest_view *guest, struct ns_interval at)
{
	const int64_t width = sync_delay_slice_ns(trace_info(guest->trace));
	struct ns_interval sure = { guest->begin, guest->end }, next = { INT64_MIN, INT64_MAX };
	bool before = false, after = false;
	for (size_t i = 0; i < m->events.len; i++) {
		const struct pair *p = &m->events.pair[i];
		const bool is_before = p->x < at.from;
		if (p->rejected || (!is_before && p->x <= at.to) || p->x < guest->begin || p->x > guest->end)
			continue;
		if (is_before)
			next.from = p->x;
		else if (p->x < next.to)
			next.to = p->x;
		if (m->containment.nearest->has_contradiction[(p->x - guest->begin) / width])
			continue;
		sure.to = is_before ? p->x : sure.to;
		sure.from = is_before || after ? sure.from : p->x;
		before = before || is_before;
		after = after || !is_before;
	}
	if (next.from != INT64_MIN && next.to != INT64_MAX)
		m->candidate.unverified |= next.to - next.from > UNCOVERED_SLICES_MAX * width;
	else if (before != after)
		m->candidate.unverified |= !clock_map_cut(&m->candidate.clock, after ? sure.from : guest->begin,
		                                          before ? sure.to : guest->end);
}

/* Cuts a clock by pairs where it is wrong: pairs prove a clock only around their times. Elsewhere it is is_rejected if more
 * than 1 % of the events are outside guest mode for all clocks within the bounds, or, for a clock without steps, if a
 * trace buffer shows that the clock was set back by more than the bounds' width. */
static void cut_contradicted_ends(struct match *m, const struct guest_view *guest)
{
	const struct trace_info *info = trace_info(guest->trace);
	const int64_t width = sync_delay_slice_ns(info);
	if (!m->containment.nearest || (m->method != SYNC_EVENTS && m->method != SYNC_AUTO))
		return;
	const bool has_contradictions = containment_notable(&m->containment,
	                                                    m->containment.contradictions - m->containment.missing);
	for (size_t i = 0; i < SYNC_DELAY_SLICES && has_contradictions; i++) {
		const int64_t from = guest->begin + (int64_t)i * width;
		const struct ns_interval at = { from, guest->end - from < width ? guest->end : from + width };
		if (m->containment.nearest->has_contradiction[i] && clock_map_has_bounds(&m->candidate.clock, at.from) &&
		    clock_map_has_bounds(&m->candidate.clock, at.to))
			cut_beyond_pairs(m, guest, at);
	}
	for (size_t i = 0; i < info->twices && m->candidate.clock.segments == 1; i++) {
		const struct ns_interval at = { info->twice[i].begin, info->twice[i].end };
		if (at.to - at.from > clock_map_error_width(&m->candidate.clock, at.from))
			cut_beyond_pairs(m, guest, at);
	}
}

static void apply_contradictions(struct sync_context *r, struct match *const *assigned)
{
	for (size_t g = 0; g < r->guests; g++)
		if (assigned[g]) {
			cut_violated_ends(assigned[g], &r->guest[g]);
			cut_contradicted_ends(assigned[g], &r->guest[g]);
		}
	for (size_t g = 0; g < r->guests; g++)
		for (size_t i = 0; assigned[g] && assigned[g]->method == SYNC_CONTAINMENT && i < r->matches; i++)
			assigned[g]->candidate.unverified |= events_contradict(assigned[g], &r->match[i]);
}

enum sync_reason unknown_clock_reason(const struct sync_context *r, size_t guest)
{
	bool has_matches = false;
	if (r->guest[guest].is_duplicate)
		return SYNC_REASON_DUPLICATE_TRACE;
	for (size_t i = 0; i < r->matches; i++) {
		if (r->match[i].guest == guest && r->match[i].candidate.reason)
			return r->match[i].candidate.reason;
		has_matches = has_matches || r->match[i].guest == guest;
	}
	const bool host_has_none = r->host && !trace_info(r->host)->has_guest_mode;
	if (has_matches)
		return SYNC_REASON_VM_TAKEN;
	if (host_has_none)
		return trace_info(r->guest[guest].trace)->has_guest_mode ? SYNC_REASON_MAYBE_SWAPPED : SYNC_REASON_HOST_WITHOUT_KVM;
	return r->host ? SYNC_REASON_NO_EVIDENCE : SYNC_REASON_NO_HOST_TRACE;
}

/* Sets r->host: of several traces with ROLE_HOST the one that is not a guest. Two of them are an error. */
static int find_host(struct sync_context *r, struct match *const *assigned)
{
	size_t first = 0;
	for (size_t g = 0; g < r->guests; g++) {
		const struct trace *trace = r->guest[g].trace;
		if (trace_info(trace)->role != ROLE_HOST || assigned[g])
			continue;
		if (r->guest[g].is_duplicate)
			return error_set(r->err, STATUS_INPUT, "give each trace once", "%s: the same trace was given for another host",
			                 trace_info(trace)->dir);
		if (r->host)
			return error_set(r->err, STATUS_INPUT, "give the traces of one host; name a guest that runs VMs with --guest "
			                 "or in a session file", "%s and %s: two hosts: neither is proven to be a guest of the other "
			                 "(the first one: %s; the second one: %s)", trace_info(trace)->dir, trace_info(r->host)->dir,
			                 sync_reason_row[unknown_clock_reason(r, g)].text,
			                 sync_reason_row[unknown_clock_reason(r, first)].text);
		r->host = trace;
		first = g;
	}
	return 0;
}

int assign_vms(struct sync_context *r, struct match **assigned)
{
	choose_matches(r, assigned);
	apply_contradictions(r, assigned);
	return find_host(r, assigned);
}
