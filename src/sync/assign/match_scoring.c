/* Candidates: every guest against every VM that it may be, by events, by a clock that was given, by containment. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "sync/assign/sync_context.h"
#include "sync/fit/tsc.h"

#define PLAUSIBLE 0.5   /* containment above which that may sharpen a match by events; below it its pairs are chance */

enum by { BY_EVENTS, BY_OFFSET, BY_TSC, BY_CONTAINMENT, BY_STEPS, BY_NOTHING };

/* The search for one guest.  Several go on side by side, so it reads of struct sync_work what does not change meanwhile,
 * and what it finds stays here until they have all ended. */
struct guest_search {
	struct sync_work *r;
	size_t guest;
	enum by by;
	int64_t offset;       /* BY_OFFSET */
	double refuted;       /* BY_TSC: the share of its events that lay within guest mode; -1: nothing was refuted */
	bool proved;          /* no need to look further */
	struct match *match;
	size_t matches, match_cap;
	struct pair_list spare;  /* for the pairs of the next one: there are as many as guests and VMs can be combined */
	int status;
	struct error err;
};

static int add_match(struct guest_search *s, struct match *m, int status)
{
	if (status == 0 && (m->h.clock.pieces > 0 || m->h.doubt || m->postponed))
		*ARRAY_PUSH(s->match, s->matches, s->match_cap) = *m;
	else
		match_release(m);
	return status;
}

/* Did the user or a tracer name the threads of a VM as this guest's? */
static bool is_given(const struct sync_work *r, const char *guest)
{
	for (size_t i = 0; i < r->hypervisors; i++)
		for (size_t v = 0; v < r->hypervisor[i].vms.len; v++)
			if (r->hypervisor[i].vms.vm[v].given && strcmp(r->hypervisor[i].vms.vm[v].given, guest) == 0)
				return true;
	return false;
}

/* A VM whose threads were named belongs to that guest, and the guest to no other VM. */
static bool allowed(const struct sync_work *r, size_t guest, size_t hypervisor, size_t vm)
{
	const struct hypervisor *h = &r->hypervisor[hypervisor];
	const struct sync_hint *hint = hint_of(r, guest);
	if (h->guest == guest || (hint && hint->parent && !is_parent(hint, h->trace)))
		return false;
	if (vm == NOBODY)
		return true;
	const char *given = h->vms.vm[vm].given, *name = trace_info(r->guest[guest].trace)->machine;
	if (given)
		return strcmp(given, name) == 0;
	return !is_given(r, name) && (!hint || hint->vcpus == 0);
}

/* By events in one VM. */
static int try_events(struct guest_search *s, size_t hypervisor, size_t vm)
{
	const struct hypervisor *h = &s->r->hypervisor[hypervisor];
	struct match m = { .guest = s->guest, .hypervisor = hypervisor, .vm = vm, .events = s->spare };
	const struct vm_view *view = vm == NOBODY ? NULL : &h->vms.vm[vm];
	int status = match_events(&h->view, view, &s->r->guest[s->guest], &m, &s->err);
	s->spare = m.postponed ? m.events : (struct pair_list){ 0 };
	if (m.postponed)
		m.events = (struct pair_list){ 0 };
	return add_match(s, &m, status);
}

/* Pairs that agree, those that were thinned out too; of what was postponed it is known how many may at most. */
static uint64_t agreeing(const struct match *m)
{
	return m->postponed ? m->h.used : m->h.pairs - (m->events.len - m->h.used);
}

/* Do most pairs agree in some VM? */
static bool some_agree(const struct guest_search *s)
{
	uint64_t most = 0;
	bool agrees = false;
	for (size_t i = 0; i < s->matches; i++)
		most = agreeing(&s->match[i]) > most ? agreeing(&s->match[i]) : most;
	for (size_t i = 0; i < s->matches; i++)
		agrees = agrees || (match_agrees(&s->match[i]) && agreeing(&s->match[i]) >= most / 2);
	return agrees;
}

/* Where nothing agrees, those that disagree are looked at after all. */
static int fit_postponed(struct guest_search *s)
{
	size_t n = 0;
	int status = 0;
	for (size_t i = 0; i < s->matches; i++) {
		struct match *m = &s->match[i];
		if (m->postponed && status == 0)
			status = match_fit(&s->r->hypervisor[m->hypervisor].view, &s->r->guest[s->guest], m, &s->err);
		if (status == 0 && m->h.clock.pieces == 0)
			match_release(m);
		else
			s->match[n++] = *m;
	}
	s->matches = n;
	return status;
}

/* How well the matches by events contain; where most pairs agree in some VM, others do not matter. */
static int prove_events(struct guest_search *s)
{
	struct guest_view *guest = &s->r->guest[s->guest];
	int status = some_agree(s) ? 0 : fit_postponed(s);
	const bool agrees = some_agree(s);
	for (size_t i = 0; i < s->matches && status == 0 && !atomic_load(&s->r->cancelled); i++) {
		struct match *m = &s->match[i];
		const struct host_view *host = &s->r->hypervisor[m->hypervisor].view;
		if (agrees && !match_agrees(m))
			continue;
		status = s->r->options->method == SYNC_AUTO ? match_prove_first(host, guest, m, &s->err)
		                                            : match_prove(host, guest, m, &s->err);
		s->proved = s->proved || match_proved(m);
	}
	return status;
}

/* Sharpens matches by events with containment: those that are proved, or where none is, those that are plausible. */
static int sharpen(struct guest_search *s)
{
	const double enough = s->proved ? PROVED : PLAUSIBLE;
	int status = 0;
	for (size_t i = 0; i < s->matches && status == 0 && !atomic_load(&s->r->cancelled); i++) {
		struct match *m = &s->match[i];
		if (containment_possible(&m->proof) < enough || (s->proved && !match_agrees(m)))
			continue;
		status = match_both(&s->r->hypervisor[m->hypervisor].view, &s->r->guest[s->guest], m, s->r->options->bands,
		                    &s->err);
		s->proved = s->proved || match_proved(m);
	}
	return status;
}

/* Keys of another time or of another host meet by chance.  No clock follows from such pairs: they contradict each other,
 * and what the guest did lies out of guest mode (or the user has named the wrong threads as its vCPUs). */
static bool by_chance(const struct sync_work *r, const struct match *m)
{
	const double possible = containment_possible(&m->proof);
	const bool given = m->vm != NOBODY && r->hypervisor[m->hypervisor].vms.vm[m->vm].given;
	if (match_agrees(m))
		return !given && possible >= 0 && possible < PLAUSIBLE;
	/* What contradicts itself may bound so little that anything is possible. */
	return m->vm != NOBODY && (possible < PROVED || m->share < PLAUSIBLE);
}

/* Beacons of one period and with the same keys meet wherever they ran, agree or not: it is what the guest did that tells
 * its host.  That nearly all of it lies within guest mode does, unless the pairs deny it: some VMs run all the time. */
static int is_stranger(struct guest_search *s, struct match *m, bool *is)
{
	const struct hypervisor *h = &s->r->hypervisor[m->hypervisor];
	const double possible = containment_possible(&m->proof);
	bool stands = m->vm == NOBODY || h->vms.vm[m->vm].given || possible < 0 ||
		(possible >= SHARE_MIN && match_agrees(m));
	const int status = stands ? 0 : match_stands_out(&h->view, &s->r->guest[s->guest], m, &stands, &s->err);
	*is = !stands;
	return status;
}

static int refute_events(struct guest_search *s)
{
	int status = 0;
	for (size_t i = 0; i < s->matches && status == 0; i++) {
		struct match *m = &s->match[i];
		bool refuted = by_chance(s->r, m);
		if (!refuted)
			status = is_stranger(s, m, &refuted);
		if (!refuted)
			continue;
		m->h.doubt = "its synchronization events do not fit the host's";
		if (containment_possible(&m->proof) < PROVED)
			match_forget(m);
	}
	return status;
}

/* Is the VM some guest's own, proved by events, or by containment too? */
static bool vm_taken(const struct sync_work *r, size_t hypervisor, size_t vm, bool by_containment)
{
	for (size_t i = 0; i < r->matches; i++) {
		const struct match *m = &r->match[i];
		if (m->hypervisor == hypervisor && m->vm == vm && match_proved(m) &&
		    (by_containment || m->method != SYNC_CONTAINMENT))
			return true;
	}
	return false;
}

/* Has the whole trace been found to fit there in several ways? */
static bool is_hopeless(const struct sync_work *r, size_t guest, size_t hypervisor, size_t vm)
{
	for (size_t i = 0; i < r->matches; i++) {
		const struct match *m = &r->match[i];
		if (m->guest == guest && m->hypervisor == hypervisor && m->vm == vm && m->h.hopeless)
			return true;
	}
	return false;
}

/* By containment in one VM, if no guest has proved to be that already. */
static int try_containment(struct guest_search *s, size_t hypervisor, size_t vm)
{
	const struct hypervisor *h = &s->r->hypervisor[hypervisor];
	const bool steps = s->by == BY_STEPS;
	struct match m = { .guest = s->guest, .hypervisor = hypervisor, .vm = vm };
	if (vm_taken(s->r, hypervisor, vm, steps) || is_hopeless(s->r, s->guest, hypervisor, vm))
		return 0;
	int status = match_containment(&h->view, &h->vms.vm[vm], &s->r->guest[s->guest], steps, &m, &s->err);
	s->proved = s->proved || (status == 0 && !m.h.doubt);
	return add_match(s, &m, status);
}

bool is_apart(const struct sync_work *r, const struct match *m)
{
	const struct trace_info *host = trace_info(r->hypervisor[m->hypervisor].trace);
	const struct guest_view *guest = &r->guest[m->guest];
	return clock_map_at(&m->h.clock, guest->end) < host->begin || clock_map_at(&m->h.clock, guest->begin) > host->end;
}

/* Without a proof the name of the process decides; where it has none, and nothing can be computed, that there is but one VM
 * and one guest.  Neither says anything of what was recorded at another time. */
static bool may_be(const struct sync_work *r, const struct match *m)
{
	const struct vm_view *vm = &r->hypervisor[m->hypervisor].vms.vm[m->vm];
	const char *name = name_in_process(vm);
	if (vm->given)
		return true;
	if (is_apart(r, m))
		return false;
	if (name)
		return strcmp(name, trace_info(r->guest[m->guest].trace)->machine) == 0;
	return m->share < 0 && r->guests == 1 && r->hypervisors == 1 && r->hypervisor[m->hypervisor].vms.len == 1;
}

/* A clock that is given need not be exact: some of what the guest did may seem to lie out of guest mode. */
static int doubt_offset(struct guest_search *s, struct match *m)
{
	const struct host_view *host = &s->r->hypervisor[m->hypervisor].view;
	bool stands = m->share >= PROVED || s->r->options->audit || may_be(s->r, m);
	int status = 0;
	if (!stands && m->share >= PLAUSIBLE)
		status = match_stands_out(host, &s->r->guest[s->guest], m, &stands, &s->err);
	if (!stands && m->share >= 0)
		m->h.doubt = "by that clock its events lie within guest mode no more often than by chance";
	else if (!stands)
		m->h.doubt = is_apart(s->r, m) ? "by its clock nothing of it is of the host's time"
		                                : "nothing but its clock is known";
	return status;
}

/* With a clock that was given: the VM that contains most, or, where that cannot be computed, the one of that name. */
static int try_offset(struct guest_search *s, size_t hypervisor, size_t vm)
{
	const struct hypervisor *h = &s->r->hypervisor[hypervisor];
	struct match m = { .guest = s->guest, .hypervisor = hypervisor, .vm = vm };
	const struct vm_view *view = vm == NOBODY ? NULL : &h->vms.vm[vm];
	int status = match_offset(&h->view, view, &s->r->guest[s->guest], s->offset, &m, &s->err);
	if (status == 0 && view)
		status = doubt_offset(s, &m);
	return add_match(s, &m, status);
}

/* By the TSC, if its events lie within guest mode then. */
static int try_tsc(struct guest_search *s, size_t hypervisor, size_t vm)
{
	const struct hypervisor *h = &s->r->hypervisor[hypervisor];
	const struct guest_view *guest = &s->r->guest[s->guest];
	struct match m = { .guest = s->guest, .hypervisor = hypervisor, .vm = vm };
	struct clock_line line;
	if (!tsc_line(trace_info(h->trace), trace_info(guest->trace), hint_of(s->r, s->guest), &line))
		return 0;
	const int status = match_tsc(&h->view, &h->vms.vm[vm], guest, &line, &m, &s->err);
	const bool refuted = m.share >= 0 && m.share < PROVED && !s->r->options->audit;
	if (status == 0 && refuted && m.share > s->refuted)
		s->refuted = m.share;
	if (status == 0 && (refuted || (m.share < 0 && !may_be(s->r, &m)))) {
		match_release(&m);
		return 0;
	}
	s->proved = s->proved || status == 0;
	return add_match(s, &m, status);
}

static int try_vm(struct guest_search *s, size_t hypervisor, size_t vm)
{
	if (!allowed(s->r, s->guest, hypervisor, vm) || atomic_load(&s->r->cancelled))
		return 0;
	int status = s->by == BY_EVENTS ? try_events(s, hypervisor, vm) : s->by == BY_OFFSET ? try_offset(s, hypervisor, vm) :
		s->by == BY_TSC ? try_tsc(s, hypervisor, vm) : try_containment(s, hypervisor, vm);
	atomic_fetch_add(&s->r->done, 1);
	return status;
}

/* Tries one guest in all VMs that it may be, one way.  A host that shows no VM may be right as a whole. */
static int search_guest(void *arg, size_t i)
{
	struct sync_work *r = arg;
	struct guest_search *s = &r->search[r->order[i]];
	if (s->by == BY_NOTHING)
		return 0;
	for (size_t h = 0; h < r->hypervisors; h++) {
		size_t n = r->hypervisor[h].vms.len;
		for (size_t v = 0; v < n && s->status == 0; v++)
			s->status = try_vm(s, h, v);
		bool whole = r->hypervisor[h].trace == r->host && ((s->by == BY_EVENTS && n == 0) || s->by == BY_OFFSET);
		if (s->status == 0 && whole)
			s->status = try_vm(s, h, NOBODY);
	}
	if (s->status == 0 && s->by == BY_EVENTS)
		s->status = prove_events(s);
	if (s->status == 0 && s->by == BY_EVENTS && r->options->method == SYNC_AUTO)
		s->status = sharpen(s);
	if (s->status == 0 && s->by == BY_EVENTS)
		s->status = refute_events(s);
	pairs_release(&s->spare);
	guest_view_forget(&r->guest[s->guest]);  /* all guests' together would be as large as their traces */
	atomic_fetch_sub(&r->left, 1);
	return s->status;
}

/* All guests, each the way its search says. */
static int search_all(struct sync_work *r, const char *phase)
{
	size_t vms = 0, left = 0;
	for (size_t h = 0; h < r->hypervisors; h++)
		vms += r->hypervisor[h].vms.len;
	for (size_t g = 0; g < r->guests; g++)
		left += r->search[g].by != BY_NOTHING;
	atomic_store(&r->left, left);
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

/* Does the TSC tell its clock, on some machine? */
static bool has_tsc(const struct sync_work *r, size_t guest)
{
	struct clock_line line;
	for (size_t h = 0; h < r->hypervisors; h++)
		if (tsc_line(trace_info(r->hypervisor[h].trace), trace_info(r->guest[guest].trace), hint_of(r, guest), &line))
			return true;
	return false;
}

/* Where the TSC was asked for, or should have been the clock, and is not. */
static void note_tsc(struct sync_work *r, size_t guest)
{
	const struct guest_search *s = &r->search[guest];
	const char *name = trace_info(r->guest[guest].trace)->machine;
	if (s->proved)
		return;
	if (s->refuted >= 0)
		notes_add(r->notes, NOTE_CLOCK, name, "by the TSC only %.2f %% of its events would lie within guest mode: its "
		          "clock is found by containment instead", s->refuted * 100);
	else if (r->options->method == SYNC_TSC)
		notes_add(r->notes, NOTE_CLOCK, name, "nothing is known of its TSC, or of the host's: its clock is found by "
		          "containment instead");
}

/* How a guest is searched for first. */
static void plan_search(struct sync_work *r, size_t guest)
{
	enum sync_method method = r->options->method;
	const struct sync_hint *hint = hint_of(r, guest);
	struct guest_search *s = &r->search[guest];
	bool given = hint && hint->has_offset;
	*s = (struct guest_search){ .r = r, .guest = guest, .by = BY_NOTHING, .refuted = -1, .err = ERROR_INIT };
	if (!r->guest[guest].sane || r->guest[guest].again) {
		s->proved = true;  /* nothing to look for */
	} else if (!given && r->options->audit && has_tsc(r, guest)) {
		s->by = BY_TSC;
	} else if (given || method == SYNC_OFFSET || method == SYNC_NONE) {
		s->by = BY_OFFSET;
		s->offset = given ? hint->offset : method == SYNC_OFFSET ? r->options->offset : 0;
		s->proved = true;
	} else if ((method == SYNC_AUTO || method == SYNC_TSC) && has_tsc(r, guest)) {
		s->by = BY_TSC;
	} else if (method == SYNC_AUTO || method == SYNC_EVENTS) {
		s->by = BY_EVENTS;
	}
}

int find_candidates(struct sync_work *r)
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
		r->search[g].by = contain && !r->search[g].proved ? BY_CONTAINMENT : BY_NOTHING;
	if (status == 0)
		status = search_all(r, looking);
	/* One after the other, because what a guest proves to be is not tried for the next ones. */
	for (size_t g = 0; g < r->guests; g++)
		r->search[g].by = BY_NOTHING;
	for (size_t g = 0; g < r->guests && status == 0 && contain; g++) {
		if (r->search[g].proved)
			continue;
		r->search[g].by = BY_STEPS;
		status = search_all(r, looking);
		r->search[g].by = BY_NOTHING;
	}
	free(r->search);
	return status;
}
