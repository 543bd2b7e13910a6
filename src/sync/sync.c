/* Synchronization from end to end: which guest is which VM, what its clock is, and how well that is proved.
 *
 * Every guest is tried against every VM of every machine that runs some: the host, and guests that do so themselves.  All
 * of it happens between a guest and the one machine that runs it; the clocks are put together at the end (result.c). */
#include "sync/sync.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "sync/run.h"

/* ---- candidates */

#define PLAUSIBLE 0.5   /* containment above which that may sharpen a match by events */

static int add_match(struct run *r, struct match *m, int status)
{
	if (status == 0 && (m->clock.pieces > 0 || m->doubt != NULL))
		*ARRAY_PUSH(r->match, r->matches, r->match_cap) = *m;
	else
		match_release(m);
	return status;
}

const struct sync_hint *hint_of(const struct run *r, size_t guest)
{
	for (size_t i = 0; i < r->options->hints; i++)
		if (strcmp(r->options->hint[i].guest, trace_info(r->guest[guest].trace)->machine) == 0)
			return &r->options->hint[i];
	return NULL;
}

/* Is that trace the machine which the hint calls the parent?  Without a word about it, threads are the host's. */
static bool is_parent(const struct sync_hint *hint, const struct trace *trace)
{
	const struct trace_info *info = trace_info(trace);
	if (hint->parent == NULL || strcmp(hint->parent, "host") == 0)
		return info->role == ROLE_HOST;
	return strcmp(hint->parent, info->machine) == 0;
}

/* Did the user or a tracer name the threads of a VM as this guest's? */
static bool is_given(const struct run *r, const char *guest)
{
	for (size_t i = 0; i < r->hypers; i++)
		for (size_t v = 0; v < r->hyper[i].vms.len; v++)
			if (r->hyper[i].vms.vm[v].given != NULL && strcmp(r->hyper[i].vms.vm[v].given, guest) == 0)
				return true;
	return false;
}

/* A VM whose threads were named belongs to that guest, and the guest to no other VM. */
static bool allowed(const struct run *r, size_t guest, size_t hyper, size_t vm)
{
	const struct hyper *h = &r->hyper[hyper];
	const struct sync_hint *hint = hint_of(r, guest);
	if (h->guest == guest || (hint != NULL && hint->parent != NULL && !is_parent(hint, h->trace)))
		return false;
	if (vm == NOBODY)
		return true;
	const char *given = h->vms.vm[vm].given, *name = trace_info(r->guest[guest].trace)->machine;
	if (given != NULL)
		return strcmp(given, name) == 0;
	return !is_given(r, name) && (hint == NULL || hint->vcpus == 0);
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

/* By events in one VM. */
static int try_events(struct run *r, size_t guest, size_t hyper, size_t vm, bool *proved)
{
	const struct hyper *h = &r->hyper[hyper];
	struct match m = { .guest = guest, .hyper = hyper, .vm = vm };
	const struct vm_view *view = vm == NOBODY ? NULL : &h->vms.vm[vm];
	int status = match_events(&h->view, view, &r->guest[guest], &m, r->err);
	if (status == 0 && m.share >= PLAUSIBLE && r->options->method == SYNC_AUTO)
		status = match_both(&h->view, &r->guest[guest], &m, r->err);
	*proved = *proved || m.share >= PROVED;
	return add_match(r, &m, status);
}

/* Is the VM some guest's own, proved by events, or by containment too? */
static bool vm_taken(const struct run *r, size_t hyper, size_t vm, bool by_containment)
{
	for (size_t i = 0; i < r->matches; i++) {
		const struct match *m = &r->match[i];
		if (m->hyper == hyper && m->vm == vm && m->doubt == NULL && m->share >= PROVED &&
		    (by_containment || m->method != SYNC_CONTAINMENT))
			return true;
	}
	return false;
}

/* By containment in one VM, if no guest has proved to be that already. */
static int try_containment(struct run *r, size_t guest, size_t hyper, size_t vm, bool steps, bool *proved)
{
	const struct hyper *h = &r->hyper[hyper];
	struct match m = { .guest = guest, .hyper = hyper, .vm = vm };
	if (vm_taken(r, hyper, vm, steps))
		return 0;
	int status = match_containment(&h->view, &h->vms.vm[vm], &r->guest[guest], steps, &m, r->err);
	*proved = *proved || (status == 0 && m.doubt == NULL);
	return add_match(r, &m, status);
}

/* "qemu:Debian" is the process of Debian. */
const char *name_in_process(const struct vm_view *vm)
{
	const char *colon = strchr(vm->comm, ':');
	return colon != NULL && colon[1] != '\0' ? colon + 1 : NULL;
}

/* Without a proof the name of the process decides, or that there is but one VM and one guest. */
static bool may_be(const struct run *r, size_t guest, size_t hyper, size_t vm)
{
	const struct vm_list *vms = &r->hyper[hyper].vms;
	const char *name = name_in_process(&vms->vm[vm]);
	if (vms->vm[vm].given != NULL)
		return true;
	if (r->guests == 1 && r->hypers == 1 && vms->len == 1)
		return true;
	return name != NULL && strcmp(name, trace_info(r->guest[guest].trace)->machine) == 0;
}

/* With a clock that was given: the VM that contains most, or, where that cannot be computed, the one of that name. */
static int try_offset(struct run *r, size_t guest, size_t hyper, size_t vm, int64_t offset)
{
	const struct hyper *h = &r->hyper[hyper];
	struct match m = { .guest = guest, .hyper = hyper, .vm = vm };
	const struct vm_view *view = vm == NOBODY ? NULL : &h->vms.vm[vm];
	int status = match_offset(&h->view, view, &r->guest[guest], offset, &m, r->err);
	if (status == 0 && view != NULL && m.share < 0.5 && !may_be(r, guest, hyper, vm))
		match_release(&m);
	else
		status = add_match(r, &m, status);
	return status;
}

enum by { BY_EVENTS, BY_OFFSET, BY_CONTAINMENT, BY_STEPS };

/* Tries a guest in all VMs that it may be, one way.  A host that shows no VM may be right as a whole. */
static int try_all(struct run *r, size_t guest, enum by by, int64_t offset, bool *proved)
{
	static const char *const phase[] = {
		[BY_EVENTS] = "matching the guests", [BY_OFFSET] = "placing the guests",
		[BY_CONTAINMENT] = "looking for the guests' clocks", [BY_STEPS] = "looking for the guests' clocks",
	};
	int status = 0;
	for (size_t h = 0; h < r->hypers; h++) {
		size_t n = r->hyper[h].vms.len;
		for (size_t v = 0; v < n && status == 0; v++) {
			if (!allowed(r, guest, h, v))
				continue;
			if (interrupted(r, phase[by], guest * n + v, r->guests * n))
				return -1;
			if (by == BY_EVENTS)
				status = try_events(r, guest, h, v, proved);
			else if (by == BY_OFFSET)
				status = try_offset(r, guest, h, v, offset);
			else
				status = try_containment(r, guest, h, v, by == BY_STEPS, proved);
		}
		bool whole = r->hyper[h].trace == r->host && ((by == BY_EVENTS && n == 0) || by == BY_OFFSET);
		if (status == 0 && whole && allowed(r, guest, h, NOBODY))
			status = by == BY_EVENTS ? try_events(r, guest, h, NOBODY, proved) : try_offset(r, guest, h, NOBODY, offset);
	}
	return status;
}

static int find_candidates(struct run *r)
{
	enum sync_method method = r->options->method;
	bool *proved = mem_new(r->guests, sizeof *proved);
	int status = 0;
	for (size_t g = 0; g < r->guests && status == 0; g++) {
		const struct sync_hint *hint = hint_of(r, g);
		bool given = hint != NULL && hint->has_offset;
		if (!r->guest[g].sane)
			proved[g] = true;  /* nothing to look for */
		else if (given || method == SYNC_OFFSET || method == SYNC_NONE)
			status = try_all(r, g, BY_OFFSET, given ? hint->offset : method == SYNC_OFFSET ? r->options->offset : 0, NULL);
		else if (method == SYNC_AUTO || method == SYNC_EVENTS)
			status = try_all(r, g, BY_EVENTS, 0, &proved[g]);
		proved[g] = proved[g] || given;
	}
	bool contain = method == SYNC_CONTAINMENT || method == SYNC_AUTO;
	for (enum by by = BY_CONTAINMENT; by <= BY_STEPS; by++)
		for (size_t g = 0; g < r->guests && status == 0; g++)
			if (contain && !proved[g])
				status = try_all(r, g, by, 0, &proved[g]);
	free(proved);
	return status;
}

/* ---- what there is */

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

static bool is_hyper(const struct run *r, const struct trace *trace)
{
	const struct trace_info *info = trace_info(trace);
	bool is = info->role == ROLE_HOST || info->has_kvm;
	for (size_t i = 0; i < r->options->hints && !is; i++)
		is = r->options->hint[i].parent != NULL && is_parent(&r->options->hint[i], trace);
	return is;
}

/* The windows of a machine's vCPU threads, and the VMs that they make. */
static int load_hyper(struct run *r, const struct trace *trace, size_t guest)
{
	struct hyper *h = &r->hyper[r->hypers++];
	struct sync_hint *mine = mem_new(r->options->hints, sizeof *mine);
	size_t hints = 0;
	*h = (struct hyper){ .trace = trace, .guest = guest };
	for (size_t i = 0; i < r->options->hints; i++) {
		const struct sync_hint *hint = &r->options->hint[i];
		if (!is_parent(hint, h->trace))
			continue;
		mine[hints++] = *hint;
		for (size_t k = 0; k < hint->vcpus; k++)
			*map_put(&h->known, (uint64_t)hint->vcpu[k].host_tid, NULL) = 1;
	}
	for (size_t i = 0; i < trace_info(trace)->vcpus; i++)
		*map_put(&h->known, (uint64_t)trace_info(trace)->vcpu[i].host_tid, NULL) = 1;
	int status = host_view_load(&h->view, h->trace, &h->known, &r->options->progress, r->err);
	if (status == 0) {
		vm_list_make(&h->view, &h->vms);
		vm_list_hint(&h->view, &h->vms, mine, hints);
	}
	free(mine);
	return status;
}

/* Guests that run VMs come first, so that a VM which one of them proves to be is not taken by what runs inside it. */
static int load(struct run *r, struct trace *const *trace, size_t n)
{
	size_t hosts = 0;
	for (size_t i = 0; i < n; i++)
		hosts += trace_info(trace[i])->role == ROLE_HOST;
	for (int hyper = 1; hyper >= 0; hyper--)
		for (size_t i = 0; i < n; i++) {
			struct guest_view *g = &r->guest[r->guests];
			bool is_guest = trace_info(trace[i])->role != ROLE_HOST || hosts > 1;
			if (is_hyper(r, trace[i]) != (hyper == 1))
				continue;
			bool can = sane(r, trace[i]);
			if (!is_guest)
				r->host = trace[i];
			else
				*g = (struct guest_view){ .trace = trace[i], .begin = trace_info(trace[i])->begin };
			r->guests += is_guest;
			if (interrupted(r, "reading the guests", i, n))
				return -1;
			if (is_guest && can && guest_view_load(g, trace[i], r->err) != 0)
				return -1;
			if (hyper && can && load_hyper(r, trace[i], is_guest ? r->guests - 1 : NOBODY) != 0)
				return -1;
		}
	return 0;
}

static int check_hints(const struct run *r, struct trace *const *trace, size_t n)
{
	char name[128], parent[128];
	for (size_t i = 0; i < r->options->hints; i++) {
		const struct sync_hint *hint = &r->options->hint[i];
		bool found = hint->parent == NULL || strcmp(hint->parent, "host") == 0;
		for (size_t k = 0; k < n && !found; k++)
			found = is_parent(hint, trace[k]) && strcmp(hint->parent, hint->guest) != 0;
		if (!found)
			return error_set(r->err, STATUS_INPUT, "name another machine whose traces are given, or host",
			                 "%s: its parent cannot be %s", text_escape(name, sizeof name, hint->guest),
			                 text_escape(parent, sizeof parent, hint->parent));
	}
	return 0;
}

int sync_run(struct trace *const *trace, size_t n, const struct sync_options *options, struct sync_result *out,
             struct notes *notes, struct error *err)
{
	struct run r = { .options = options, .notes = notes, .err = err, .guest = mem_new(n, sizeof *r.guest),
		.hyper = mem_new(n, sizeof *r.hyper) };
	memset(out, 0, sizeof *out);
	int status = check_hints(&r, trace, n);
	if (status == 0)
		status = load(&r, trace, n);
	if (status == 0)
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
	for (size_t i = 0; i < r.hypers; i++) {
		vm_list_release(&r.hyper[i].vms);
		host_view_release(&r.hyper[i].view);
		map_release(&r.hyper[i].known);
		free(r.hyper[i].done);
	}
	free(r.hyper);
	return status;
}
