/* Which candidates are right: each guest is one VM at most, and each VM one guest's. */
#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "sync/assign/sync_context.h"

#define FAR_SPANS 4  /* of SYNC_SPANS, from one pair to the next: a clock may have changed between */

static int percent(double share)
{
	return (int)floor(share * 100 + 0.5);
}

/* What speaks for a match less what speaks against it, both in shares. */
static double credit(const struct match *m)
{
	return containment_possible(&m->proof) - m->contradiction;
}

/* Better candidates first. */
static int by_merit(const void *pa, const void *pb)
{
	const struct match *a = pa, *b = pb;
	if (!a->h.doubt != !b->h.doubt)
		return !a->h.doubt ? -1 : 1;
	if ((a->vm == NOBODY) != (b->vm == NOBODY))
		return a->vm != NOBODY ? -1 : 1;
	/* In steps, so that what hardly differs does not decide. */
	int sa = percent(credit(a)), sb = percent(credit(b));
	if (sa != sb)
		return sa > sb ? -1 : 1;
	if (a->h.used != b->h.used)
		return a->h.used > b->h.used ? -1 : 1;
	if (a->proof.inside != b->proof.inside)  /* of what can be judged; the rest is lost, or of another time */
		return a->proof.inside > b->proof.inside ? -1 : 1;
	if (a->guest != b->guest)
		return a->guest < b->guest ? -1 : 1;
	if (a->hypervisor != b->hypervisor)
		return a->hypervisor < b->hypervisor ? -1 : 1;
	return a->vm < b->vm ? -1 : a->vm > b->vm;
}

/* Those that were proved to begin with: few of as many as guests and VMs can be combined.  What speaks against one of them
 * may be found meanwhile. */
struct proved {
	const struct sync_work *r;
	const struct match **match;
	size_t len, cap;
};

static struct proved find_proved(const struct sync_work *r)
{
	struct proved p = { .r = r };
	for (size_t i = 0; i < r->matches; i++)
		if (match_proved(&r->match[i]))
			*ARRAY_PUSH(p.match, p.len, p.cap) = &r->match[i];
	return p;
}

/* Is a guest proved to run in that VM, or inside what runs there?  No deeper than there are machines that run VMs. */
static bool runs_in(const struct proved *p, size_t guest, size_t hypervisor, size_t vm, size_t deepest)
{
	for (size_t i = 0; i < p->len && guest != NOBODY; i++) {
		const struct match *m = p->match[i];
		if (m->guest == guest && match_proved(m) &&
		    ((m->hypervisor == hypervisor && m->vm == vm) ||
		     (deepest > 0 && runs_in(p, p->r->hypervisor[m->hypervisor].guest, hypervisor, vm, deepest - 1))))
			return true;
	}
	return false;
}

/* A guest inside a guest also lies within the guest mode of the VM that the outer one is.  Does b, which is proved, say so
 * of a? */
static bool is_inside(const struct proved *p, const struct match *a, const struct match *b)
{
	return a->guest == b->guest && a->hypervisor != b->hypervisor &&
	       runs_in(p, p->r->hypervisor[b->hypervisor].guest, a->hypervisor, a->vm, p->r->hypervisors);
}

/* Another match that is proved of the same guest; NULL: none. */
static const struct match *other_match(const struct proved *p, const struct match *m)
{
	for (size_t i = 0; i < p->len; i++)
		if (p->match[i] != m && p->match[i]->guest == m->guest && match_proved(p->match[i]))
			return p->match[i];
	return NULL;
}

/* Two guests seem to run in each other: of the other one less is refuted, or, where that is equal, it would run nowhere
 * else. */
static bool is_reversed(const struct proved *p, const struct match *m)
{
	const size_t outer = p->r->hypervisor[m->hypervisor].guest;
	const double possible = containment_possible(&m->proof);
	for (size_t i = 0; i < p->len && outer != NOBODY; i++) {
		const struct match *o = p->match[i];
		if (o->guest != outer || p->r->hypervisor[o->hypervisor].guest != m->guest || !match_proved(o))
			continue;
		if (containment_possible(&o->proof) > possible ||
		    (containment_possible(&o->proof) == possible && other_match(p, m) && !other_match(p, o)))
			return true;
	}
	return false;
}

static const char *const rivals = "it fits more than one VM";
static const char *const beaten = "it fits another VM better";

/* Its clock is given, and only containment tells which VM it is. */
static bool is_given(const struct match *m)
{
	return m->method == SYNC_OFFSET || m->method == SYNC_TSC;
}

static bool may_rival(const struct match *m)
{
	return (m->method == SYNC_CONTAINMENT || (is_given(m) && m->share >= PROVED)) &&
	       (!m->h.doubt || m->h.doubt == rivals || m->h.doubt == beaten);
}

static void doubt(struct match *m, const char *why)
{
	m->h.doubt = m->h.doubt == beaten ? beaten : why;
}

/* It has another VM, and this one is that of another guest, whose clock is known without it, and which fits no other. */
static bool is_anothers(const struct proved *p, const struct match *m)
{
	if (!may_rival(m) || !other_match(p, m))
		return false;
	for (size_t i = 0; i < p->len; i++) {
		const struct match *o = p->match[i];
		if (o->guest != m->guest && o->hypervisor == m->hypervisor && o->vm == m->vm && match_proved(o) &&
		    o->method != SYNC_CONTAINMENT && containment_possible(&o->proof) >= containment_possible(&m->proof) &&
		    !other_match(p, o))
			return true;
	}
	return false;
}

/* By containment each has found a clock of its own, and neither is proved; by one clock one may fit better.  (A VM that
 * runs VMs has more edges than these have, so nearer ones.) */
static void judge_rivals(struct match *a, struct match *b)
{
	const bool one_clock = is_given(a) && is_given(b) && a->hypervisor == b->hypervisor;
	const bool a_wins = one_clock && containment_closer(&a->proof, &b->proof);
	const bool b_wins = one_clock && containment_closer(&b->proof, &a->proof);
	if (!a_wins)
		doubt(a, b_wins ? beaten : rivals);
	if (!b_wins)
		doubt(b, a_wins ? beaten : rivals);
}

static bool is_inside_another(const struct proved *p, const struct match *m)
{
	for (size_t i = 0; i < p->len; i++)
		if (match_proved(p->match[i]) && is_inside(p, m, p->match[i]))
			return true;
	return false;
}

/* All at once: a match that is doubted proves nothing of others. */
static void doubt_those(struct sync_work *r, const struct proved *p,
                        bool (*is_one)(const struct proved *, const struct match *), const char *why)
{
	bool *is = mem_new(r->matches, sizeof *is);
	for (size_t i = 0; i < r->matches; i++)
		is[i] = is_one(p, &r->match[i]);
	for (size_t i = 0; i < r->matches; i++)
		if (is[i])
			r->match[i].h.doubt = why;
	free(is);
}

/* Two VMs in which a guest fits. */
static void doubt_rivals(struct sync_work *r)
{
	struct proved proved = find_proved(r);
	for (size_t i = 0; i < r->matches; i++)
		if (is_reversed(&proved, &r->match[i]))
			r->match[i].h.doubt = "what it would run in runs inside it";
	doubt_those(r, &proved, is_inside_another, "it runs inside another guest");
	doubt_those(r, &proved, is_anothers, "that VM is another guest");
	free(proved.match);
	for (size_t i = 0; i < r->matches; i++) {
		for (size_t k = 0; k < i && may_rival(&r->match[i]); k++) {
			struct match *a = &r->match[i], *b = &r->match[k];
			bool related = a->hypervisor == b->hypervisor && vm_has_moved(&a->view);  /* these come last */
			if (!related && a->guest == b->guest && may_rival(b))
				judge_rivals(a, b);
		}
	}
}

/* Does the machine run, or run what runs, this guest? */
static bool runs(const struct sync_work *r, struct match *const *won, size_t hypervisor, size_t guest)
{
	size_t inner = r->hypervisor[hypervisor].guest;
	while (inner != NOBODY && inner != guest && won[inner])
		inner = r->hypervisor[won[inner]->hypervisor].guest;
	return inner == guest;
}

bool vm_is_done(const struct hypervisor *h, size_t vm)
{
	const struct vm_view *view = &h->vms.vm[vm];
	return h->done[vm] || (vm_has_moved(view) && (h->done[view->moved.of[0]] || h->done[view->moved.of[1]]));
}

void vm_set_done(struct hypervisor *h, size_t vm)
{
	const struct vm_view *view = &h->vms.vm[vm];
	h->done[vm] = true;
	for (int i = 0; i < 2 && vm_has_moved(view); i++)
		h->done[view->moved.of[i]] = true;
}

/* The best candidates win, each guest and each VM once.  What claims to be a host must prove to be a guest. */
static void choose(struct sync_work *r, struct match **won)
{
	doubt_rivals(r);
	if (r->matches > 0)
		qsort(r->match, r->matches, sizeof *r->match, by_merit);
	for (size_t i = 0; i < r->matches; i++) {
		struct match *m = &r->match[i];
		struct hypervisor *h = &r->hypervisor[m->hypervisor];
		bool doubtful = m->h.doubt ||
			(trace_info(r->guest[m->guest].trace)->role == ROLE_HOST && !match_proved(m));
		if (doubtful || won[m->guest] || (m->vm != NOBODY && vm_is_done(h, m->vm)) ||
		    runs(r, won, m->hypervisor, m->guest))
			continue;
		won[m->guest] = m;
		if (m->vm != NOBODY)
			vm_set_done(h, m->vm);
	}
}

/* Do synchronization events of that VM, which do not prove a clock, speak against the one that containment found?  One that
 * does is enough: it may be the only one of its time. */
static bool events_refuse(const struct match *m, const struct match *events)
{
	if (events->guest != m->guest || events->hypervisor != m->hypervisor || events->vm != m->vm ||
	    events->method == SYNC_CONTAINMENT)
		return false;
	return match_refusals(&events->events, &m->h.clock) > 0;
}

/* Fewer than prove another clock speak against this one, but nothing speaks against them from there to the end. */
static void cut_where_refused(struct match *m, const struct guest_view *guest)
{
	struct segment borne = { guest->begin, guest->end };
	if ((m->method == SYNC_EVENTS || m->method == SYNC_AUTO) &&
	    match_borne(&m->events, &m->h.clock, &borne) && !clock_map_cut(&m->h.clock, borne.from, borne.to))
		m->h.adrift = true;
}

/* No clock of the corridor is right in that stretch: it stepped somewhere between it and the pairs.  Cuts what is beyond
 * them, if they are all on one side; those beside refuted events do not count.  Between pairs, some times are damaged,
 * unless it is far from one to the next: then these prove no line. */
static void cut_beyond(struct match *m, const struct guest_view *guest, struct segment at)
{
	const int64_t width = sync_span_ns(trace_info(guest->trace));
	struct segment sure = { guest->begin, guest->end }, next = { INT64_MIN, INT64_MAX };
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
		if (m->proof.nearest->denied[(p->x - guest->begin) / width])
			continue;
		sure.to = is_before ? p->x : sure.to;
		sure.from = is_before || after ? sure.from : p->x;
		before = before || is_before;
		after = after || !is_before;
	}
	if (next.from != INT64_MIN && next.to != INT64_MAX)
		m->h.adrift |= next.to - next.from > FAR_SPANS * width;
	else if (before != after)
		m->h.adrift |= !clock_map_cut(&m->h.clock, after ? sure.from : guest->begin, before ? sure.to : guest->end);
}

/* Pairs prove a clock where they are.  That it was another one elsewhere, events out of guest mode show, wherever in its
 * corridor it is, if they are more than one in a hundred; and a buffer that shows that it was set back, by more than that
 * corridor, where it does not jump. */
static void cut_where_denied(struct match *m, const struct guest_view *guest)
{
	const struct trace_info *info = trace_info(guest->trace);
	const int64_t width = sync_span_ns(info);
	if (!m->proof.nearest || (m->method != SYNC_EVENTS && m->method != SYNC_AUTO))
		return;
	const bool denied = containment_notable(&m->proof, m->proof.refuted - m->proof.missing);
	for (size_t i = 0; i < SYNC_SPANS && denied; i++) {
		const int64_t from = guest->begin + (int64_t)i * width;
		const struct segment at = { from, guest->end - from < width ? guest->end : from + width };
		if (m->proof.nearest->denied[i] && clock_map_knows(&m->h.clock, at.from) && clock_map_knows(&m->h.clock, at.to))
			cut_beyond(m, guest, at);
	}
	for (size_t i = 0; i < info->twices && m->h.clock.pieces == 1; i++) {
		const struct segment at = { info->twice[i].begin, info->twice[i].end };
		if (at.to - at.from > clock_map_band(&m->h.clock, at.from))
			cut_beyond(m, guest, at);
	}
}

static void heed_events(struct sync_work *r, struct match *const *won)
{
	for (size_t g = 0; g < r->guests; g++)
		if (won[g]) {
			cut_where_refused(won[g], &r->guest[g]);
			cut_where_denied(won[g], &r->guest[g]);
		}
	for (size_t g = 0; g < r->guests; g++)
		for (size_t i = 0; won[g] && won[g]->method == SYNC_CONTAINMENT && i < r->matches; i++)
			won[g]->h.adrift |= events_refuse(won[g], &r->match[i]);
}

const char *doubt_of(const struct sync_work *r, size_t guest)
{
	bool taken = false;
	if (r->guest[guest].again)
		return "the same trace is given as another machine's, too";
	for (size_t i = 0; i < r->matches; i++) {
		if (r->match[i].guest == guest && r->match[i].h.doubt)
			return r->match[i].h.doubt;
		taken = taken || r->match[i].guest == guest;
	}
	const bool host_has_none = r->host && !trace_info(r->host)->has_kvm;
	return taken ? "the VM that it fits is another guest's" :
		host_has_none && trace_info(r->guest[guest].trace)->has_kvm ?
		"it has kvm entries and exits, and the host's trace has none: they may be swapped" :
		host_has_none ? "the host's trace has no kvm entries and exits" :
		!r->host ? "no trace of its host: none has kvm entries and exits" :
		"no synchronization events, and no VM to compare it with";
}

/* Of several that claim to be the host the one that is nobody's guest; two of these are refused. */
static int find_host(struct sync_work *r, struct match *const *won)
{
	size_t first = 0;
	for (size_t g = 0; g < r->guests; g++) {
		const struct trace *trace = r->guest[g].trace;
		if (trace_info(trace)->role != ROLE_HOST || won[g])
			continue;
		if (r->guest[g].again)
			return error_set(r->err, STATUS_INPUT, "give it once", "%s: the same trace is given as another host's, too",
			                 trace_info(trace)->dir);
		if (r->host)
			return error_set(r->err, STATUS_INPUT, "give one host's traces at a time; a guest that runs VMs is named by "
			                 "--guest, or in a session file", "%s: a second host, beside %s: that it is a guest there "
			                 "cannot be told (%s), nor the reverse (%s)", trace_info(trace)->dir,
			                 trace_info(r->host)->dir, doubt_of(r, g), doubt_of(r, first));
		r->host = trace;
		first = g;
	}
	return 0;
}

int find_winners(struct sync_work *r, struct match **won)
{
	choose(r, won);
	heed_events(r, won);
	return find_host(r, won);
}
