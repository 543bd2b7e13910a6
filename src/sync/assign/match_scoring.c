/* Finds candidates: matches each guest with each VM that it may be, by sync events, by a given clock, or by containment. */
#include "base/base.h"
#include "sync/assign/sync_context.h"
#include "sync/fit/tsc.h"

enum search_method { BY_EVENTS, BY_OFFSET, BY_TSC, BY_CONTAINMENT, BY_STEPS, BY_NOTHING };

/* The search for one guest. Searches run in parallel: each only reads the members of struct sync_context that do not
 * change during the search, and collects its own matches. */
struct guest_search {
	struct sync_context *r;
	size_t guest;
	enum search_method method;
	int64_t offset;       /* BY_OFFSET: given offset, ns */
	double tsc_share;     /* BY_TSC: greatest contained share of a rejected clock, 0..1; -1: no clock was rejected */
	bool proved;          /* no further search is needed */
	struct match *match;
	size_t matches, match_cap;
	struct pair_list spare;  /* memory for the pairs of the next match; saves an allocation for each combination of guest
	                          * and VM */
	int status;
	struct error err;
};

static int add_match(struct guest_search *s, struct match *m, int status)
{
	if (status == 0 && (m->candidate.clock.segments > 0 || m->candidate.reason || m->postponed))
		*ARRAY_PUSH(s->match, s->matches, s->match_cap) = *m;
	else
		match_release(m);
	return status;
}

/* Returns true if the user or a tracer named threads as vCPUs of this guest. */
static bool is_given(const struct sync_context *r, const char *guest)
{
	for (size_t i = 0; i < r->hypervisors; i++)
		for (size_t v = 0; v < r->hypervisor[i].vms.len; v++)
			if (r->hypervisor[i].vms.vm[v].guest_name && strcmp(r->hypervisor[i].vms.vm[v].guest_name, guest) == 0)
				return true;
	return false;
}

/* Returns false if the VM's threads were named as those of another guest, or the guest's threads are those of another
 * VM. */
static bool is_allowed(const struct sync_context *r, size_t guest, size_t hypervisor, size_t vm)
{
	const struct hypervisor *h = &r->hypervisor[hypervisor];
	const struct sync_hint *hint = hint_of(r, guest);
	if (h->guest == guest || (hint && hint->parent && !is_parent_of(hint, h->trace)))
		return false;
	if (vm == NO_INDEX)
		return true;
	const char *given = h->vms.vm[vm].guest_name, *name = trace_info(r->guest[guest].trace)->machine;
	if (given)
		return strcmp(given, name) == 0;
	return !is_given(r, name) && (!hint || hint->vcpus == 0);
}

/* Matches the guest with one VM by sync events. */
static int try_events(struct guest_search *s, size_t hypervisor, size_t vm)
{
	const struct hypervisor *h = &s->r->hypervisor[hypervisor];
	struct match m = { .guest = s->guest, .hypervisor = hypervisor, .vm = vm, .events = s->spare };
	const struct vm_candidate *view = vm == NO_INDEX ? NULL : &h->vms.vm[vm];
	int status = match_events(&h->timeline, view, &s->r->guest[s->guest], &m, &s->err);
	s->spare = m.postponed ? m.events : (struct pair_list){ 0 };
	if (m.postponed)
		m.events = (struct pair_list){ 0 };
	return add_match(s, &m, status);
}

/* Returns the agreeing pair count, including thinned ones; for a postponed match an upper bound. */
static uint64_t count_agreeing(const struct match *m)
{
	return m->postponed ? m->candidate.inliers : m->candidate.pairs - (m->events.len - m->candidate.inliers);
}

/* Returns true if in some VM the pairs agree, and it has at least half as many agreeing pairs as the best VM. */
static bool some_agree(const struct guest_search *s)
{
	uint64_t most = 0;
	bool agrees = false;
	for (size_t i = 0; i < s->matches; i++)
		most = count_agreeing(&s->match[i]) > most ? count_agreeing(&s->match[i]) : most;
	for (size_t i = 0; i < s->matches; i++)
		agrees = agrees || (match_agrees(&s->match[i]) && count_agreeing(&s->match[i]) >= most / 2);
	return agrees;
}

/* Fits the postponed matches if the pairs agree in no VM. */
static int fit_postponed(struct guest_search *s)
{
	size_t n = 0;
	int status = 0;
	for (size_t i = 0; i < s->matches; i++) {
		struct match *m = &s->match[i];
		if (m->postponed && status == 0)
			status = match_fit(&s->r->hypervisor[m->hypervisor].timeline, &s->r->guest[s->guest], m, &s->err);
		if (status == 0 && m->candidate.clock.segments == 0)
			match_release(m);
		else
			s->match[n++] = *m;
	}
	s->matches = n;
	return status;
}

/* Measures the containment of the matches by events; if the pairs agree in some VM, matches that do not agree are
 * skipped. */
static int measure_event_matches(struct guest_search *s)
{
	struct guest_view *guest = &s->r->guest[s->guest];
	int status = some_agree(s) ? 0 : fit_postponed(s);
	const bool agrees = some_agree(s);
	for (size_t i = 0; i < s->matches && status == 0 && !atomic_load(&s->r->cancelled); i++) {
		struct match *m = &s->match[i];
		const struct host_timeline *host = &s->r->hypervisor[m->hypervisor].timeline;
		if (agrees && !match_agrees(m))
			continue;
		status = s->r->options->method == SYNC_AUTO ? match_measure_and_load(host, guest, m, &s->err)
		                                            : match_measure(host, guest, m, &s->err);
		s->proved = s->proved || match_is_proven(m);
	}
	return status;
}

/* Refines matches by sync events with containment: the proven matches, or the plausible ones if none is proven. */
static int sharpen_matches(struct guest_search *s)
{
	const double enough = s->proved ? PROVEN_SHARE_MIN : PLAUSIBLE_SHARE_MIN;
	int status = 0;
	for (size_t i = 0; i < s->matches && status == 0 && !atomic_load(&s->r->cancelled); i++) {
		struct match *m = &s->match[i];
		if (containment_possible_share(&m->containment) < enough || (s->proved && !match_agrees(m)))
			continue;
		status = match_both(&s->r->hypervisor[m->hypervisor].timeline, &s->r->guest[s->guest], m, s->r->options->bands,
		                    &s->err);
		s->proved = s->proved || match_is_proven(m);
	}
	return status;
}

/* Returns true if the pairs match by chance, because they are of another time or host: then they contradict each other
 * and the guest's events are outside guest mode (or the user named the wrong threads as vCPUs). */
static bool is_chance_match(const struct sync_context *r, const struct match *m)
{
	const double possible = containment_possible_share(&m->containment);
	const bool given = m->vm != NO_INDEX && r->hypervisor[m->hypervisor].vms.vm[m->vm].guest_name;
	if (match_agrees(m))
		return !given && possible >= 0 && possible < PLAUSIBLE_SHARE_MIN;
	/* Contradicting pairs may leave bounds so wide that anything is possible. */
	return m->vm != NO_INDEX && (possible < PROVEN_SHARE_MIN || m->inside_share < PLAUSIBLE_SHARE_MIN);
}

/* Sets *is to true if the guest ran on another host: beacons with the same period and keys match on any host. The guest
 * belongs to this host if nearly all events are in guest mode and the pairs agree; otherwise its clock must fit better
 * than shifted clocks, because some VMs run all the time. */
static int is_foreign_guest(struct guest_search *s, struct match *m, bool *is)
{
	const struct hypervisor *h = &s->r->hypervisor[m->hypervisor];
	const double possible = containment_possible_share(&m->containment);
	bool beats_shifted = m->vm == NO_INDEX || h->vms.vm[m->vm].guest_name || possible < 0 ||
		(possible >= LINE_SHARE_MIN && match_agrees(m));
	const int status = beats_shifted ? 0
	                   : match_beats_shifted_clocks(&h->timeline, &s->r->guest[s->guest], m, &beats_shifted, &s->err);
	*is = !beats_shifted;
	return status;
}

static int reject_foreign(struct guest_search *s)
{
	int status = 0;
	for (size_t i = 0; i < s->matches && status == 0; i++) {
		struct match *m = &s->match[i];
		bool is_rejected = is_chance_match(s->r, m);
		if (!is_rejected)
			status = is_foreign_guest(s, m, &is_rejected);
		if (!is_rejected)
			continue;
		m->candidate.reason = SYNC_REASON_EVENTS_DO_NOT_FIT;
		if (containment_possible_share(&m->containment) < PROVEN_SHARE_MIN)
			match_drop_clock(m);
	}
	return status;
}

/* Returns true if the VM is proven to be a guest by sync events, or if by_containment is set by containment. */
static bool is_vm_of_proven_guest(const struct sync_context *r, size_t hypervisor, size_t vm, bool by_containment)
{
	for (size_t i = 0; i < r->matches; i++) {
		const struct match *m = &r->match[i];
		if (m->hypervisor == hypervisor && m->vm == vm && match_is_proven(m) &&
		    (by_containment || m->method != SYNC_CONTAINMENT))
			return true;
	}
	return false;
}

/* Returns true if the whole trace fits that VM in several ways, so that a search for parts would be useless. */
static bool is_split_useless(const struct sync_context *r, size_t guest, size_t hypervisor, size_t vm)
{
	for (size_t i = 0; i < r->matches; i++) {
		const struct match *m = &r->match[i];
		if (m->guest == guest && m->hypervisor == hypervisor && m->vm == vm && m->candidate.no_split)
			return true;
	}
	return false;
}

/* Matches the guest with one VM by containment, unless the VM is proven to be another guest. */
static int try_containment(struct guest_search *s, size_t hypervisor, size_t vm)
{
	const struct hypervisor *h = &s->r->hypervisor[hypervisor];
	const bool steps = s->method == BY_STEPS;
	struct match m = { .guest = s->guest, .hypervisor = hypervisor, .vm = vm };
	if (is_vm_of_proven_guest(s->r, hypervisor, vm, steps) || is_split_useless(s->r, s->guest, hypervisor, vm))
		return 0;
	int status = match_containment(&h->timeline, &h->vms.vm[vm], &s->r->guest[s->guest], steps, &m, &s->err);
	s->proved = s->proved || (status == 0 && !m.candidate.reason);
	return add_match(s, &m, status);
}

bool is_disjoint(const struct sync_context *r, const struct match *m)
{
	const struct trace_info *host = trace_info(r->hypervisor[m->hypervisor].trace);
	const struct guest_view *guest = &r->guest[m->guest];
	return clock_map_at(&m->candidate.clock, guest->end) < host->begin ||
		clock_map_at(&m->candidate.clock, guest->begin) > host->end;
}

/* Returns true if name or circumstances confirm the VM. Without measurable containment the process's name decides;
 * without a name, the guest must be the only one and so must the VM. Neither counts if the traces do not overlap. */
static bool may_be_same_vm(const struct sync_context *r, const struct match *m)
{
	const struct vm_candidate *vm = &r->hypervisor[m->hypervisor].vms.vm[m->vm];
	const char *name = name_in_process(vm);
	if (vm->guest_name)
		return true;
	if (is_disjoint(r, m))
		return false;
	if (name)
		return strcmp(name, trace_info(r->guest[m->guest].trace)->machine) == 0;
	return m->inside_share < 0 && r->guests == 1 && r->hypervisors == 1 && r->hypervisor[m->hypervisor].vms.len == 1;
}

/* Sets a reason if the VM does not fit the given clock. The clock need not be exact: some events may be outside guest
 * mode. */
static int check_given_offset(struct guest_search *s, struct match *m)
{
	const struct host_timeline *host = &s->r->hypervisor[m->hypervisor].timeline;
	bool beats_shifted = m->inside_share >= PROVEN_SHARE_MIN || s->r->options->audit || may_be_same_vm(s->r, m);
	int status = 0;
	if (!beats_shifted && m->inside_share >= PLAUSIBLE_SHARE_MIN)
		status = match_beats_shifted_clocks(host, &s->r->guest[s->guest], m, &beats_shifted, &s->err);
	if (!beats_shifted && m->inside_share >= 0)
		m->candidate.reason = SYNC_REASON_GIVEN_CLOCK_NO_BETTER;
	else if (!beats_shifted)
		m->candidate.reason = is_disjoint(s->r, m) ? SYNC_REASON_NO_OVERLAP : SYNC_REASON_UNCONFIRMED_CLOCK;
	return status;
}

/* Matches the guest with one VM by a given clock. The VM that contains most events is right, or the VM with the guest's
 * name if containment cannot be measured. */
static int try_offset(struct guest_search *s, size_t hypervisor, size_t vm)
{
	const struct hypervisor *h = &s->r->hypervisor[hypervisor];
	struct match m = { .guest = s->guest, .hypervisor = hypervisor, .vm = vm };
	const struct vm_candidate *view = vm == NO_INDEX ? NULL : &h->vms.vm[vm];
	int status = match_offset(&h->timeline, view, &s->r->guest[s->guest], s->offset, &m, &s->err);
	if (status == 0 && view)
		status = check_given_offset(s, &m);
	return add_match(s, &m, status);
}

/* Matches the guest with one VM by the clock computed from the TSC, which is right if the events are in guest mode. */
static int try_tsc(struct guest_search *s, size_t hypervisor, size_t vm)
{
	const struct hypervisor *h = &s->r->hypervisor[hypervisor];
	const struct guest_view *guest = &s->r->guest[s->guest];
	struct match m = { .guest = s->guest, .hypervisor = hypervisor, .vm = vm };
	struct clock_line line;
	if (!tsc_line(trace_info(h->trace), trace_info(guest->trace), hint_of(s->r, s->guest), &line))
		return 0;
	const int status = match_tsc(&h->timeline, &h->vms.vm[vm], guest, &line, &m, &s->err);
	const bool is_rejected = m.inside_share >= 0 && m.inside_share < PROVEN_SHARE_MIN && !s->r->options->audit;
	if (status == 0 && is_rejected && m.inside_share > s->tsc_share)
		s->tsc_share = m.inside_share;
	if (status == 0 && (is_rejected || (m.inside_share < 0 && !may_be_same_vm(s->r, &m)))) {
		match_release(&m);
		return 0;
	}
	s->proved = s->proved || status == 0;
	return add_match(s, &m, status);
}

static int try_vm(struct guest_search *s, size_t hypervisor, size_t vm)
{
	if (!is_allowed(s->r, s->guest, hypervisor, vm) || atomic_load(&s->r->cancelled))
		return 0;
	int status = s->method == BY_EVENTS ? try_events(s, hypervisor, vm) :
		s->method == BY_OFFSET ? try_offset(s, hypervisor, vm) :
		s->method == BY_TSC ? try_tsc(s, hypervisor, vm) : try_containment(s, hypervisor, vm);
	atomic_fetch_add(&s->r->done, 1);
	return status;
}

/* Matches one guest with all VMs that it may be, by the planned method. A host without VMs is tried as a whole. */
static int search_guest(void *arg, size_t i)
{
	struct sync_context *r = arg;
	struct guest_search *s = &r->search[r->order[i]];
	if (s->method == BY_NOTHING)
		return 0;
	for (size_t h = 0; h < r->hypervisors; h++) {
		size_t n = r->hypervisor[h].vms.len;
		for (size_t v = 0; v < n && s->status == 0; v++)
			s->status = try_vm(s, h, v);
		bool whole = r->hypervisor[h].trace == r->host && ((s->method == BY_EVENTS && n == 0) || s->method == BY_OFFSET);
		if (s->status == 0 && whole)
			s->status = try_vm(s, h, NO_INDEX);
	}
	if (s->status == 0 && s->method == BY_EVENTS)
		s->status = measure_event_matches(s);
	if (s->status == 0 && s->method == BY_EVENTS && r->options->method == SYNC_AUTO)
		s->status = sharpen_matches(s);
	if (s->status == 0 && s->method == BY_EVENTS)
		s->status = reject_foreign(s);
	pairs_release(&s->spare);
	guest_view_forget(&r->guest[s->guest]);  /* free early: the data of all guests would be as large as their traces */
	atomic_fetch_sub(&r->pending_searches, 1);
	return s->status;
}

/* Runs the searches of all guests. */
static int search_all(struct sync_context *r, const char *phase)
{
	size_t vms = 0, left = 0;
	for (size_t h = 0; h < r->hypervisors; h++)
		vms += r->hypervisor[h].vms.len;
	for (size_t g = 0; g < r->guests; g++)
		left += r->search[g].method != BY_NOTHING;
	atomic_store(&r->pending_searches, left);
	int status = left == 0 ? 0 : run_tasks(r, phase, search_guest, r->guests, r->guests * vms);
	size_t found = r->matches;
	for (size_t g = 0; g < r->guests; g++)
		found += r->search[g].matches;
	if (found > r->match_cap)
		r->match = mem_resize(r->match, r->match_cap = found, sizeof *r->match);
	for (size_t g = 0; g < r->guests; g++) {
		struct guest_search *s = &r->search[g];
		for (size_t i = 0; i < s->matches; i++)
			r->match[r->matches++] = s->match[i];
		free(s->match);
		s->match = NULL;
		s->matches = s->match_cap = 0;
		if (s->status != 0)
			*r->err = s->err;
	}
	return status;
}

/* Returns true if the clock can be computed from the TSC for some machine. */
static bool has_tsc(const struct sync_context *r, size_t guest)
{
	struct clock_line line;
	for (size_t h = 0; h < r->hypervisors; h++)
		if (tsc_line(trace_info(r->hypervisor[h].trace), trace_info(r->guest[guest].trace), hint_of(r, guest), &line))
			return true;
	return false;
}

/* Adds a note if the TSC was requested or recorded, but not used. */
static void note_tsc(struct sync_context *r, size_t guest)
{
	const struct guest_search *s = &r->search[guest];
	const char *name = trace_info(r->guest[guest].trace)->machine;
	if (s->proved)
		return;
	if (s->tsc_share >= 0)
		note_add(r->notes, TSC_CONTRADICTED, name, s->tsc_share * 100);
	else if (r->options->method == SYNC_TSC)
		note_add(r->notes, TSC_UNKNOWN, name);
}

/* Selects the method of the first search for a guest. */
static void plan_search(struct sync_context *r, size_t guest)
{
	enum sync_method method = r->options->method;
	const struct sync_hint *hint = hint_of(r, guest);
	struct guest_search *s = &r->search[guest];
	bool given = hint && hint->has_offset;
	*s = (struct guest_search){ .r = r, .guest = guest, .method = BY_NOTHING, .tsc_share = -1, .err = ERROR_INIT };
	if (!r->guest[guest].has_plausible_times || r->guest[guest].is_duplicate) {
		s->proved = true;  /* no search is needed */
	} else if (!given && r->options->audit && has_tsc(r, guest)) {
		s->method = BY_TSC;
	} else if (given || method == SYNC_OFFSET || method == SYNC_NONE) {
		s->method = BY_OFFSET;
		s->offset = given ? hint->offset : method == SYNC_OFFSET ? r->options->offset : 0;
		s->proved = true;
	} else if ((method == SYNC_AUTO || method == SYNC_TSC) && has_tsc(r, guest)) {
		s->method = BY_TSC;
	} else if (method == SYNC_AUTO || method == SYNC_EVENTS) {
		s->method = BY_EVENTS;
	}
}

int find_candidates(struct sync_context *r)
{
	static const char *const looking = "looking for the guests' clocks";
	const enum sync_method method = r->options->method;
	bool contain = method == SYNC_CONTAINMENT || method == SYNC_AUTO || method == SYNC_TSC;
	r->search = mem_new(r->guests, sizeof *r->search);
	for (size_t g = 0; g < r->guests; g++)
		plan_search(r, g);
	int status = search_all(r, "matching the guests");
	for (size_t g = 0; g < r->guests && status == 0; g++)
		note_tsc(r, g);
	for (size_t g = 0; g < r->guests; g++)
		r->search[g].method = contain && !r->search[g].proved ? BY_CONTAINMENT : BY_NOTHING;
	if (status == 0)
		status = search_all(r, looking);
	/* One guest after the other, because a VM proven to be one guest is not tried for the next guest. */
	for (size_t g = 0; g < r->guests; g++)
		r->search[g].method = BY_NOTHING;
	for (size_t g = 0; g < r->guests && status == 0 && contain; g++) {
		if (r->search[g].proved)
			continue;
		r->search[g].method = BY_STEPS;
		status = search_all(r, looking);
		r->search[g].method = BY_NOTHING;
	}
	free(r->search);
	return status;
}
