/* Synchronization from end to end: which guest is which VM, what its clock is, and how well that is proved.
 *
 * Every guest is tried against every VM of every machine that runs some: the host, and guests that do so themselves. All
 * of it happens between a guest and the one machine that runs it; the clocks are put together at the end
 * (sync_result.c). */
#include "sync/sync.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/parallel.h"
#include "base/text.h"
#include "sync/assign/sync_context.h"
#include "sync/evidence/duplicate_traces.h"

/* ---- what all use */

const struct sync_hint *hint_of(const struct sync_work *r, size_t guest)
{
	for (size_t i = 0; i < r->options->hints; i++)
		if (strcmp(r->options->hint[i].guest, trace_info(r->guest[guest].trace)->machine) == 0)
			return &r->options->hint[i];
	return NULL;
}

/* Is that trace the machine which the hint calls the parent? Without a word about it, threads are the host's. */
bool is_parent(const struct sync_hint *hint, const struct trace *trace)
{
	const struct trace_info *info = trace_info(trace);
	if (!hint->parent || strcmp(hint->parent, "host") == 0)
		return info->role == ROLE_HOST;
	return strcmp(hint->parent, info->machine) == 0;
}

/* "qemu:Debian" is the process of Debian. */
const char *name_in_process(const struct vm_view *vm)
{
	const char *colon = strchr(vm->comm, ':');
	return colon && colon[1] != '\0' ? colon + 1 : NULL;
}

static bool go_on(void *arg)
{
	struct sync_work *r = arg;
	const struct progress *p = &r->options->progress;
	if (p->tick && p->tick(p->arg, r->phase, atomic_load(&r->done), r->total) != 0)
		atomic_store(&r->cancelled, true);
	return !atomic_load(&r->cancelled);
}

int run_tasks(struct sync_work *r, const char *phase, int (*task)(void *arg, size_t i), size_t tasks, size_t total)
{
	r->phase = phase;
	r->total = total;
	atomic_store(&r->done, 0);
	int status = !go_on(r) ? 0 :
		parallel_run(&(struct parallel){ .workers = r->workers, .task = task, .watch = go_on, .arg = r }, tasks);
	if (status == 0 && atomic_load(&r->cancelled))
		status = error_set(r->err, STATUS_CANCELLED, NULL, "synchronization: interrupted");
	return status;
}

/* ---- what there is */

/* Times that can be computed with: within 73 years of 1970, and ten years at most from the first to the last event.
 * Others come from clocks that nobody set, or from damage. */
static bool sane(struct sync_work *r, const struct trace *trace)
{
	const struct trace_info *info = trace_info(trace);
	const int64_t far = INT64_C(1) << 61, ten_years = INT64_C(315576000) * 1000000000;
	if (info->begin > info->end)
		return false;
	if (info->begin > -far && info->end < far && info->end - info->begin <= ten_years)
		return true;
	notes_add(r->notes, NOTE_CLOCK, info->machine, "its times are not plausible; it is not synchronized");
	return false;
}

static bool is_hypervisor(const struct sync_work *r, const struct trace *trace)
{
	const struct trace_info *info = trace_info(trace);
	bool is = info->role == ROLE_HOST || info->has_kvm;
	for (size_t i = 0; i < r->options->hints && !is; i++)
		is = r->options->hint[i].parent && is_parent(&r->options->hint[i], trace);
	return is;
}

/* The windows of a machine's vCPU threads, and the VMs that they make. */
static int load_hypervisor(struct sync_work *r, struct hypervisor *h, struct error *err)
{
	struct sync_hint *mine = mem_new(r->options->hints, sizeof *mine);
	size_t hints = 0;
	for (size_t i = 0; i < r->options->hints; i++) {
		const struct sync_hint *hint = &r->options->hint[i];
		if (!is_parent(hint, h->trace))
			continue;
		mine[hints++] = *hint;
		for (size_t k = 0; k < hint->vcpus; k++)
			*map_put(&h->known, (uint64_t)hint->vcpu[k].host_tid, NULL) = 1;
	}
	for (size_t i = 0; i < trace_info(h->trace)->vcpus; i++)
		*map_put(&h->known, (uint64_t)trace_info(h->trace)->vcpu[i].host_tid, NULL) = 1;
	int status = host_view_load(&h->view, h->trace, &h->known, r->workers, &r->cancelled, err);
	if (status == 0) {
		vm_list_make(&h->view, &h->vms);
		vm_list_hint(&h->view, &h->vms, mine, hints);
		vm_list_moves(&h->view, &h->vms);
		vm_list_own(&h->view, &h->vms);
	}
	free(mine);
	return status;
}

/* The hypervisors first: they are more work. What the caller wants to be done last. */
static int load_task(void *arg, size_t i)
{
	struct sync_work *r = arg;
	struct error *err = &r->load_err[i];
	int status = 0;
	if (i == r->hypervisors + r->guests)
		r->options->meanwhile(r->options->arg);
	else if (i < r->hypervisors)
		status = load_hypervisor(r, &r->hypervisor[i], err);
	else if (r->guest[i - r->hypervisors].sane && !r->guest[i - r->hypervisors].again)
		status = guest_view_load(&r->guest[i - r->hypervisors], err);
	atomic_fetch_add(&r->done, 1);
	return status;
}

static void thin_marks(struct sync_work *r)
{
	unsigned sparse = UINT_MAX;
	for (size_t i = 0; i < r->hypervisors; i++)
		sparse = r->hypervisor[i].view.marks.sparse < sparse ? r->hypervisor[i].view.marks.sparse : sparse;
	for (size_t g = 0; g < r->guests && r->hypervisors > 0; g++)
		guest_view_thin(&r->guest[g], sparse);
}

static int load(struct sync_work *r)
{
	const size_t tasks = r->hypervisors + r->guests + (r->options->meanwhile != NULL);
	for (size_t g = 0; g < r->guests; g++)
		mark_list_share(&r->guest[g].marks, r->guests);
	r->load_err = mem_new(tasks, sizeof *r->load_err);
	int status = run_tasks(r, "reading the machines", load_task, tasks, tasks);
	for (size_t i = tasks; i-- > 0;)
		if (r->load_err[i].status != STATUS_OK)
			*r->err = r->load_err[i];
	thin_marks(r);
	free(r->load_err);
	return status;
}

/* Guests that run VMs come first, so that a VM which one of them proves to be is not taken by what runs inside it. */
static int list_machines(struct sync_work *r, struct trace *const *trace, size_t n)
{
	bool *copy = mem_new(n, sizeof *copy);
	size_t hosts = 0;
	const int status = copies_find(trace, n, copy, r->err);
	for (size_t i = 0; i < n; i++)
		hosts += trace_info(trace[i])->role == ROLE_HOST;
	for (int hypervisor = 1; hypervisor >= 0; hypervisor--)
		for (size_t i = 0; i < n; i++) {
			bool is_guest = trace_info(trace[i])->role != ROLE_HOST || hosts > 1;
			if (is_hypervisor(r, trace[i]) != (hypervisor == 1))
				continue;
			const bool can = sane(r, trace[i]);
			if (!is_guest)
				r->host = trace[i];
			else
				r->guest[r->guests++] = (struct guest_view){ .trace = trace[i], .begin = trace_info(trace[i])->begin,
					.end = trace_info(trace[i])->end, .sane = can, .again = copy[i], .workers = r->workers,
					.left = &r->left };
			if (hypervisor && can && !copy[i])
				r->hypervisor[r->hypervisors++] =
					(struct hypervisor){ .trace = trace[i], .guest = is_guest ? r->guests - 1 : NOBODY };
		}
	free(copy);
	return status;
}

static uint64_t events_of(const struct sync_work *r, size_t guest)
{
	return trace_info(r->guest[guest].trace)->events;
}

static void order_guests(struct sync_work *r)
{
	r->order = mem_new(r->guests, sizeof *r->order);
	for (size_t g = 0; g < r->guests; g++) {
		size_t at = g;
		for (; at > 0 && events_of(r, r->order[at - 1]) < events_of(r, g); at--)
			r->order[at] = r->order[at - 1];
		r->order[at] = g;
	}
}

static int check_hints(const struct sync_work *r, struct trace *const *trace, size_t n)
{
	for (size_t i = 0; i < r->options->hints; i++) {
		const struct sync_hint *hint = &r->options->hint[i];
		bool found = !hint->parent || strcmp(hint->parent, "host") == 0;
		for (size_t k = 0; k < n && !found; k++)
			found = is_parent(hint, trace[k]) && strcmp(hint->parent, hint->guest) != 0;
		if (!found)
			return error_set(r->err, STATUS_INPUT, "name another machine whose traces are given, or host",
			                 "%s: its parent cannot be %s", hint->guest, hint->parent);
	}
	return 0;
}

int sync_run(struct trace *const *trace, size_t n, const struct sync_options *options, struct sync_result *out,
             struct notes *notes, struct error *err)
{
	struct sync_work r = { .options = options, .notes = notes, .err = err, .guest = mem_new(n, sizeof *r.guest),
		.hypervisor = mem_new(n, sizeof *r.hypervisor), .workers = parallel_workers(options->workers) };
	memset(out, 0, sizeof *out);
	int status = check_hints(&r, trace, n);
	if (status == 0)
		status = list_machines(&r, trace, n);
	if (status == 0) {
		order_guests(&r);
		status = load(&r);
	}
	if (status == 0)
		status = find_candidates(&r);
	if (status == 0)
		status = fill_result(&r, out);
	if (status != 0)
		sync_result_release(out);
	for (size_t i = 0; i < r.matches; i++)
		match_release(&r.match[i]);
	free(r.match);
	free(r.order);
	for (size_t i = 0; i < r.guests; i++)
		guest_view_release(&r.guest[i]);
	free(r.guest);
	for (size_t i = 0; i < r.hypervisors; i++) {
		vm_list_release(&r.hypervisor[i].vms);
		host_view_release(&r.hypervisor[i].view);
		map_release(&r.hypervisor[i].known);
		free(r.hypervisor[i].done);
	}
	free(r.hypervisor);
	return status;
}
