/* Synchronization from end to end: which guest is which VM, what its clock is, and how well that is proved.
 *
 * Every guest is tried against every VM of the host; the candidates that contain best win, each VM once. */
#include "sync/sync.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/timefmt.h"
#include "sync/match.h"

struct run {
	const struct sync_options *options;
	struct notes *notes;
	struct error *err;
	const struct trace *host;    /* or NULL */
	struct map known;            /* TIDs that the user's hints name */
	struct host_view view;
	struct vm_list vms;
	struct guest_view *guest;
	size_t guests;
	struct match *match;         /* candidates */
	size_t matches, match_cap;
};

/* ---- candidates */

#define PROVED 0.98     /* containment above which a match by events needs no second opinion */
#define PLAUSIBLE 0.5   /* ... above which containment may sharpen it */

static int add_match(struct run *r, struct match *m, int status)
{
	if (status == 0 && (m->clock.pieces > 0 || m->doubt != NULL))
		*ARRAY_PUSH(r->match, r->matches, r->match_cap) = *m;
	else
		match_release(m);
	return status;
}

static const struct sync_hint *hint_of(const struct run *r, size_t guest)
{
	for (size_t i = 0; i < r->options->hints; i++)
		if (strcmp(r->options->hint[i].guest, trace_info(r->guest[guest].trace)->machine) == 0)
			return &r->options->hint[i];
	return NULL;
}

/* A VM whose threads the user named belongs to that guest, and the guest to no other VM. */
static bool allowed(const struct run *r, size_t guest, size_t vm)
{
	const char *given = r->vms.vm[vm].given;
	const struct sync_hint *hint = hint_of(r, guest);
	if (given != NULL)
		return strcmp(given, trace_info(r->guest[guest].trace)->machine) == 0;
	return hint == NULL || hint->vcpus == 0;
}

/* Before each piece of work: true, with the error set, when the user wants no more of it. */
static bool interrupted(const struct run *r, const char *phase, size_t done, size_t total)
{
	const struct progress *p = &r->options->progress;
	if (p->tick == NULL || p->tick(p->arg, phase, done, total) == 0)
		return false;
	error_set(r->err, STATUS_CANCELLED, NULL, "synchronization: interrupted");
	return true;
}

/* By events in every VM, and in the host's trace as a whole when it shows no VM. */
static int try_events(struct run *r, size_t guest, bool *proved)
{
	size_t n = r->vms.len == 0 ? 1 : r->vms.len;
	*proved = false;
	for (size_t v = 0; v < n; v++) {
		struct match m = { .guest = guest, .vm = r->vms.len == 0 ? SIZE_MAX : v };
		if (r->vms.len > 0 && !allowed(r, guest, v))
			continue;
		const struct vm_view *view = r->vms.len == 0 ? NULL : &r->vms.vm[v];
		if (interrupted(r, "matching the guests", guest * n + v, r->guests * n))
			return -1;
		int status = match_events(&r->view, view, &r->guest[guest], &m, r->err);
		if (status == 0 && m.share >= PLAUSIBLE && r->options->method == SYNC_AUTO)
			status = match_both(&r->view, &r->guest[guest], &m, r->err);
		*proved = *proved || m.share >= PROVED;
		if (add_match(r, &m, status) != 0)
			return -1;
	}
	return 0;
}

/* Is the VM some guest's own, proved by events, or by containment too? */
static bool vm_taken(const struct run *r, size_t vm, bool by_containment)
{
	for (size_t i = 0; i < r->matches; i++) {
		const struct match *m = &r->match[i];
		if (m->vm == vm && m->doubt == NULL && m->share >= PROVED && (by_containment || m->method != SYNC_CONTAINMENT))
			return true;
	}
	return false;
}

/* By containment in every VM that no guest has proved to be its own; *proved when some VM contains it. */
static int try_containment(struct run *r, size_t guest, bool steps, bool *proved)
{
	for (size_t v = 0; v < r->vms.len; v++) {
		struct match m = { .guest = guest, .vm = v };
		if (vm_taken(r, v, steps) || !allowed(r, guest, v))
			continue;
		if (interrupted(r, "looking for the guests' clocks", guest * r->vms.len + v, r->guests * r->vms.len))
			return -1;
		int status = match_containment(&r->view, &r->vms.vm[v], &r->guest[guest], steps, &m, r->err);
		*proved = *proved || (status == 0 && m.doubt == NULL);
		if (add_match(r, &m, status) != 0)
			return -1;
	}
	return 0;
}

/* "qemu:Debian" is the process of Debian. */
static const char *name_in_process(const struct vm_view *vm)
{
	const char *colon = strchr(vm->comm, ':');
	return colon != NULL && colon[1] != '\0' ? colon + 1 : NULL;
}

/* Without a proof the name of the process decides, or that there is but one VM and one guest. */
static bool may_be(const struct run *r, size_t guest, size_t vm)
{
	const char *name = name_in_process(&r->vms.vm[vm]);
	if (r->vms.vm[vm].given != NULL)
		return allowed(r, guest, vm);
	if (r->guests == 1 && r->vms.len == 1)
		return true;
	return name != NULL && strcmp(name, trace_info(r->guest[guest].trace)->machine) == 0;
}

/* With a clock that was given: the VM that contains most, or, where that cannot be computed, the one of that name. */
static int try_offset(struct run *r, size_t guest, int64_t offset)
{
	for (size_t v = 0; v <= r->vms.len; v++) {
		bool none = v == r->vms.len;
		struct match m = { .guest = guest, .vm = none ? SIZE_MAX : v };
		if (!none && !allowed(r, guest, v))
			continue;
		int status = match_offset(&r->view, none ? NULL : &r->vms.vm[v], &r->guest[guest], offset, &m, r->err);
		if (status == 0 && !none && m.share < 0.5 && !may_be(r, guest, v))
			match_release(&m);
		else if (add_match(r, &m, status) != 0)
			return -1;
	}
	return 0;
}

static int find_candidates(struct run *r)
{
	enum sync_method method = r->options->method;
	bool *proved = mem_new(r->guests, sizeof *proved);
	int status = 0;
	for (size_t g = 0; g < r->guests && status == 0; g++) {
		proved[g] = !r->guest[g].sane;  /* nothing to look for */
		if (proved[g])
			continue;
		const struct sync_hint *hint = hint_of(r, g);
		if (hint != NULL && hint->has_offset) {
			status = try_offset(r, g, hint->offset);
			proved[g] = true;
			continue;
		}
		if (method == SYNC_AUTO || method == SYNC_EVENTS)
			status = try_events(r, g, &proved[g]);
		else if (method == SYNC_OFFSET || method == SYNC_NONE)
			status = try_offset(r, g, method == SYNC_OFFSET ? r->options->offset : 0);
	}
	bool contain = method == SYNC_CONTAINMENT || method == SYNC_AUTO;
	for (int steps = 0; steps < 2; steps++)
		for (size_t g = 0; g < r->guests && status == 0; g++)
			if (contain && !proved[g])
				status = try_containment(r, g, steps != 0, &proved[g]);
	free(proved);
	return status;
}

/* Better candidates first. */
static int by_merit(const void *pa, const void *pb)
{
	const struct match *a = pa, *b = pb;
	if ((a->doubt == NULL) != (b->doubt == NULL))
		return a->doubt == NULL ? -1 : 1;
	if ((a->vm == SIZE_MAX) != (b->vm == SIZE_MAX))
		return a->vm != SIZE_MAX ? -1 : 1;
	int ca = (int)(a->share * 100), cb = (int)(b->share * 100);
	if (ca != cb)
		return ca > cb ? -1 : 1;
	if (a->used != b->used)
		return a->used > b->used ? -1 : 1;
	return a->guest != b->guest ? (a->guest < b->guest ? -1 : 1) : a->vm < b->vm ? -1 : a->vm > b->vm;
}

/* ---- the result */

static bool name_taken(const struct sync_result *out, const char *name)
{
	for (size_t i = 0; i < out->vms; i++)
		if (out->vm[i].name != NULL && strcmp(out->vm[i].name, name) == 0)
			return true;
	return false;
}

static char *unique_name(const struct sync_result *out, const char *want)
{
	char *name = mem_dup(want);
	for (unsigned n = 2; name_taken(out, name); n++) {
		free(name);
		name = mem_printf("%s (%u)", want, n);
	}
	return name;
}

/* "qemu:Debian" -> "Debian"; else "VM <pid>". */
static char *name_of_process(const struct sync_result *out, const struct vm_view *vm)
{
	char fallback[32];
	snprintf(fallback, sizeof fallback, "VM %d", (int)vm->pid);
	const char *name = vm->given != NULL ? vm->given : name_in_process(vm);
	return unique_name(out, name != NULL ? name : fallback);
}

static void fill_vcpus(const struct run *r, struct sync_vm *vm, const struct vm_view *view)
{
	vm->vcpu = mem_new(view->vcpus, sizeof *vm->vcpu);
	vm->life = mem_new(view->vcpus, sizeof *vm->life);
	vm->vcpus = view->vcpus;
	for (size_t i = 0; i < view->vcpus; i++) {
		const struct vthread *th = &r->view.thread[view->vcpu[i].thread];
		vm->vcpu[i] = (struct sync_vcpu){ view->vcpu[i].number, th->tid, view->vcpu[i].evidence };
		vm->life[i] = (struct sync_life){ th->from, th->to };
	}
	vm->host_pid = view->pid;
	vm->host_comm = mem_dup(view->comm);
}

static struct sync_vm *new_vm(struct sync_result *out)
{
	struct sync_vm *vm = &out->vm[out->vms++];
	*vm = (struct sync_vm){ .host_pid = -1, .method = SYNC_NONE, .band_events = -1, .band_containment = -1,
		.containment = -1, .worst_violation = -1 };
	return vm;
}

/* The clock that nothing is known of: identity, quality ABSENT. */
static void unknown_clock(struct clock_map *map, int64_t begin)
{
	map->piece = mem_new(1, sizeof *map->piece);
	map->pieces = 1;
	struct clock_line line = { begin, begin, 0 };
	map->piece[0] = (struct clock_piece){ .from = begin, .line = line, .lowest = line, .highest = line };
}

/* The user moves the clock by hand: how well it contains then tells whether that was wise. */
static int nudge_match(struct run *r, size_t guest, struct match *m)
{
	const struct sync_hint *hint = hint_of(r, guest);
	char name[128];
	if (hint == NULL || hint->nudge == 0)
		return 0;
	text_escape(name, sizeof name, hint->guest);
	if (m == NULL) {
		notes_add(r->notes, "%s: its nudge is left out, there is no clock to add it to", name);
		return 0;
	}
	double before = m->share;
	clock_map_shift(&m->clock, hint->nudge);
	if (match_prove(&r->view, &r->guest[guest], m, r->err) != 0)
		return -1;
	if (before < 0 || m->share < 0)
		notes_add(r->notes, "%s: its clock is nudged by %+lld ns", name, (long long)hint->nudge);
	else
		notes_add(r->notes, "%s: its clock is nudged by %+lld ns; %.3f %% of its events were within guest mode, now "
		          "%.3f %% are (%+.3f)", name, (long long)hint->nudge, before * 100, m->share * 100,
		          (m->share - before) * 100);
	return 0;
}

static void take_match(struct run *r, struct sync_vm *vm, struct match *m)
{
	vm->guest = r->guest[m->guest].trace;
	vm->clock = m->clock;
	m->clock = (struct clock_map){ NULL, 0 };
	vm->method = r->options->method == SYNC_NONE ? SYNC_NONE : m->method;
	vm->pairs = m->pairs;
	vm->unmatched = m->unmatched;
	vm->band_events = m->band_events;
	vm->band_containment = m->band_containment;
	vm->containment = m->share;
	vm->worst_violation = m->share < 0 ? -1 : m->proof.worst;
}

static struct match *winner(struct run *r, const bool *won, bool of_guest, size_t index)
{
	for (size_t i = 0; i < r->matches; i++)
		if (won[i] && (of_guest ? r->match[i].guest : r->match[i].vm) == index)
			return &r->match[i];
	return NULL;
}

/* Why this guest has no clock, of the best candidate. */
static const char *doubt_of(const struct run *r, size_t guest)
{
	for (size_t i = 0; i < r->matches; i++)
		if (r->match[i].guest == guest && r->match[i].doubt != NULL)
			return r->match[i].doubt;
	return r->host == NULL ? "no trace of its host: none has kvm entries and exits"
	                       : "no synchronization events, and no VM to compare it with";
}

static void describe(struct run *r, const struct sync_vm *vm, const char *doubt)
{
	char name[128];
	text_escape(name, sizeof name, vm->name);
	uint64_t rejected = 0;
	for (size_t i = 0; i < vm->clock.pieces; i++)
		rejected += vm->clock.piece[i].rejected;
	if (rejected > 0)
		notes_add(r->notes, "%s: %llu of %llu synchronization pairs contradict the others and were left out", name,
		          (unsigned long long)rejected, (unsigned long long)vm->pairs);
	for (size_t i = 1; i < vm->clock.pieces; i++) {
		int64_t at = vm->clock.piece[i].from;
		int64_t step = clock_line_at(&vm->clock.piece[i].line, at) - clock_line_at(&vm->clock.piece[i - 1].line, at);
		char clock[TIME_TEXT], by[TIME_TEXT];
		notes_add(r->notes, "%s: its clock changes against the host's at %s (host; %lld ns of its own) by %s (%+lld "
		          "ns, drift %+.3f -> %+.3f ppm): a pause, a step or another rate", name,
		          time_clock(clock, clock_map_at(&vm->clock, at), 6), (long long)at, time_duration(by, step),
		          (long long)step,
		          clock_line_ppm(&vm->clock.piece[i - 1].line), clock_line_ppm(&vm->clock.piece[i].line));
	}
	if (vm->containment >= 0 && vm->containment < 0.99)
		notes_add(r->notes, "%s: only %.2f %% of its events lie within guest mode of its vCPUs; do not trust its clock",
		          name, vm->containment * 100);
	if (vm->method == SYNC_CONTAINMENT && vm->clock.pieces > 0 && vm->clock.piece[0].quality == SYNC_APPROXIMATE)
		notes_add(r->notes, "%s: other clocks fit its events as well; its times are right within the band, no better",
		          name);
	if (doubt != NULL)
		notes_add(r->notes, "%s: its clock cannot be told (%s); its times are its own", name, doubt);
}

/* Two VMs in which a guest fits by containment: neither is proved. */
static void doubt_rivals(struct run *r)
{
	static const char *const rivals = "it fits more than one of the host's VMs";
	for (size_t i = 0; i < r->matches; i++) {
		for (size_t k = 0; k < i; k++) {
			struct match *a = &r->match[i], *b = &r->match[k];
			bool clash = a->guest == b->guest && a->method == SYNC_CONTAINMENT && b->method == SYNC_CONTAINMENT;
			if (clash && (a->doubt == NULL || a->doubt == rivals) && (b->doubt == NULL || b->doubt == rivals))
				a->doubt = b->doubt = rivals;
		}
	}
}

static int fill_result(struct run *r, struct sync_result *out)
{
	int status = 0;
	doubt_rivals(r);
	bool *won = mem_new(r->matches, sizeof *won), *vm_done = mem_new(r->vms.len, sizeof *vm_done);
	bool *guest_done = mem_new(r->guests, sizeof *guest_done);
	if (r->matches > 0)
		qsort(r->match, r->matches, sizeof *r->match, by_merit);
	for (size_t i = 0; i < r->matches; i++) {
		const struct match *m = &r->match[i];
		won[i] = !guest_done[m->guest] && (m->vm == SIZE_MAX || !vm_done[m->vm]) && m->doubt == NULL;
		guest_done[m->guest] |= won[i];
		if (won[i] && m->vm != SIZE_MAX)
			vm_done[m->vm] = true;
	}
	out->host = r->host;
	out->vm = mem_new(r->vms.len + r->guests, sizeof *out->vm);
	/* Guests keep their names; VMs that nobody traced get what is left. */
	for (size_t g = 0; g < r->guests; g++) {
		struct match *m = winner(r, won, true, g);
		struct sync_vm *vm = new_vm(out);
		vm->guest = r->guest[g].trace;
		vm->name = unique_name(out, trace_info(vm->guest)->machine);
		if (status == 0)
			status = nudge_match(r, g, m);
		if (m != NULL)
			take_match(r, vm, m);
		if (m != NULL && m->vm != SIZE_MAX)
			fill_vcpus(r, vm, &m->view);
		else
			vm->host_comm = mem_dup("");
		if (vm->clock.pieces == 0)
			unknown_clock(&vm->clock, r->guest[g].begin);
		describe(r, vm, m == NULL ? doubt_of(r, g) : NULL);
	}
	for (size_t v = 0; v < r->vms.len; v++) {
		if (vm_done[v])
			continue;
		struct sync_vm *vm = new_vm(out);
		vm->name = name_of_process(out, &r->vms.vm[v]);
		fill_vcpus(r, vm, &r->vms.vm[v]);
	}
	free(won);
	free(vm_done);
	free(guest_done);
	return status;
}

/* ---- */

/* Times that can be computed with: within 73 years of 1970, and ten years at most from the first to the last event.
 * Others come from clocks that nobody set, or from damage. */
static bool sane(struct run *r, const struct trace *trace)
{
	const struct trace_info *info = trace_info(trace);
	const int64_t far = INT64_C(1) << 61, ten_years = INT64_C(315576000) * 1000000000;
	if (info->begin > info->end)
		return false;
	if (info->begin > -far && info->end < far && info->end - info->begin <= ten_years)
		return true;
	char name[128];
	notes_add(r->notes, "%s: its times are not plausible; it is not synchronized",
	          text_escape(name, sizeof name, info->machine));
	return false;
}

static int load(struct run *r, struct trace *const *trace, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		if (trace_info(trace[i])->role != ROLE_HOST)
			continue;
		if (r->host != NULL)
			return error_set(r->err, STATUS_INPUT, "give one host's traces at a time",
			                 "%s: a second host, beside %s", trace_info(trace[i])->dir, trace_info(r->host)->dir);
		r->host = trace[i];
	}
	if (r->host != NULL && sane(r, r->host)) {
		for (size_t i = 0; i < r->options->hints; i++)
			for (size_t k = 0; k < r->options->hint[i].vcpus; k++)
				*map_put(&r->known, (uint64_t)r->options->hint[i].vcpu[k].host_tid, NULL) = 1;
		if (host_view_load(&r->view, r->host, &r->known, &r->options->progress, r->err) != 0)
			return -1;
		vm_list_make(&r->view, &r->vms);
		vm_list_hint(&r->view, &r->vms, r->options->hint, r->options->hints);
	}
	for (size_t i = 0; i < n; i++) {
		if (trace[i] == r->host)
			continue;
		if (interrupted(r, "reading the guests", i, n))
			return -1;
		struct guest_view *g = &r->guest[r->guests++];
		g->trace = trace[i];
		g->begin = trace_info(trace[i])->begin;
		g->sane = sane(r, trace[i]);
		if (g->sane && guest_view_load(g, trace[i], r->err) != 0)
			return -1;
	}
	return 0;
}

int sync_run(struct trace *const *trace, size_t n, const struct sync_options *options, struct sync_result *out,
             struct notes *notes, struct error *err)
{
	struct run r = { .options = options, .notes = notes, .err = err, .guest = mem_new(n, sizeof *r.guest) };
	memset(out, 0, sizeof *out);
	int status = load(&r, trace, n);
	if (status == 0 && r.view.trace != NULL)
		status = find_candidates(&r);
	if (status == 0)
		status = fill_result(&r, out);
	if (status != 0)
		sync_result_release(out);
	for (size_t i = 0; i < r.matches; i++)
		match_release(&r.match[i]);
	free(r.match);
	for (size_t i = 0; i < r.guests; i++)
		guest_view_release(&r.guest[i]);
	free(r.guest);
	vm_list_release(&r.vms);
	host_view_release(&r.view);
	map_release(&r.known);
	return status;
}

void sync_result_release(struct sync_result *r)
{
	for (size_t i = 0; i < r->vms; i++) {
		struct sync_vm *vm = &r->vm[i];
		free(vm->name);
		free(vm->host_comm);
		free(vm->vcpu);
		free(vm->life);
		clock_map_release(&vm->clock);
	}
	free(r->vm);
	memset(r, 0, sizeof *r);
}
