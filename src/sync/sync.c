/* Entry point of clock synchronization.
 *
 * Tries each guest with each VM of each machine that runs VMs (the host, and guests with kvm events). All clocks are
 * fitted between a guest and the machine that runs it; sync_result.c composes nested clocks at the end. */
#include "sync/sync.h"

#include <limits.h>

#include "base/parallel.h"
#include "sync/assign/sync_context.h"
#include "sync/evidence/duplicate_traces.h"

/* ---- helpers of all stages */

const struct sync_hint *hint_of(const struct sync_context *r, size_t guest)
{
	for (size_t i = 0; i < r->options->hints; i++)
		if (strcmp(r->options->hint[i].guest, trace_info(r->guest[guest].trace)->machine) == 0)
			return &r->options->hint[i];
	return NULL;
}

/* Returns true if the trace belongs to the hint's parent machine; a hint without a parent means the host. */
bool is_parent_of(const struct sync_hint *hint, const struct trace *trace)
{
	const struct trace_info *info = trace_info(trace);
	if (!hint->parent || strcmp(hint->parent, "host") == 0)
		return info->role == ROLE_HOST;
	return strcmp(hint->parent, info->machine) == 0;
}

/* Returns "Debian" for the process name "qemu:Debian"; NULL: the name has no such suffix. */
const char *name_in_process(const struct vm_candidate *vm)
{
	const char *colon = strchr(vm->comm, ':');
	return colon && colon[1] != '\0' ? colon + 1 : NULL;
}

static bool check_progress(void *arg)
{
	struct sync_context *r = arg;
	const struct progress *p = &r->options->progress;
	if (p->tick && p->tick(p->arg, r->phase, atomic_load(&r->done), r->total) != 0)
		atomic_store(&r->cancelled, true);
	return !atomic_load(&r->cancelled);
}

int run_tasks(struct sync_context *r, const char *phase, int (*task)(void *arg, size_t i), size_t tasks, size_t total)
{
	r->phase = phase;
	r->total = total;
	atomic_store(&r->done, 0);
	int status = !check_progress(r) ? 0 :
		parallel_run(&(struct parallel){ .workers = r->workers, .task = task, .watch = check_progress, .arg = r }, tasks);
	if (status == 0 && atomic_load(&r->cancelled))
		status = error_set(r->err, STATUS_CANCELLED, NULL, "synchronization: interrupted");
	return status;
}

/* ---- machines */

/* Returns false and adds a note for times that arithmetic cannot handle: over 73 years from 1970, or a trace of over ten
 * years. The cause is a clock that was never set, or damage. */
static bool has_plausible_times(struct sync_context *r, const struct trace *trace)
{
	const struct trace_info *info = trace_info(trace);
	const int64_t far = INT64_C(1) << 61, ten_years = INT64_C(315576000) * 1000000000;
	if (info->begin > info->end)
		return false;
	if (info->begin > -far && info->end < far && info->end - info->begin <= ten_years)
		return true;
	note_add(r->notes, IMPLAUSIBLE_TIMES, info->machine);
	return false;
}

static bool may_run_vms(const struct sync_context *r, const struct trace *trace)
{
	const struct trace_info *info = trace_info(trace);
	bool is = info->role == ROLE_HOST || info->has_guest_mode;
	for (size_t i = 0; i < r->options->hints && !is; i++)
		is = r->options->hint[i].parent && is_parent_of(&r->options->hint[i], trace);
	return is;
}

/* Loads the guest-mode windows of a machine's vCPU threads and groups the threads into VMs. */
static int load_hypervisor(struct sync_context *r, struct hypervisor *h, struct error *err)
{
	struct sync_hint *own_hints = mem_new(r->options->hints, sizeof *own_hints);
	size_t hints = 0;
	for (size_t i = 0; i < r->options->hints; i++) {
		const struct sync_hint *hint = &r->options->hint[i];
		if (!is_parent_of(hint, h->trace))
			continue;
		own_hints[hints++] = *hint;
		for (size_t k = 0; k < hint->vcpus; k++)
			*map_put(&h->vcpu_tids, (uint64_t)hint->vcpu[k].host_tid, NULL) = 1;
	}
	for (size_t i = 0; i < trace_info(h->trace)->vcpus; i++)
		*map_put(&h->vcpu_tids, (uint64_t)trace_info(h->trace)->vcpu[i].host_tid, NULL) = 1;
	int status = host_timeline_load(&h->timeline, h->trace, &h->vcpu_tids, r->workers, &r->cancelled, err);
	if (status == 0) {
		vm_list_make(&h->timeline, &h->vms);
		vm_list_apply_hints(&h->timeline, &h->vms, own_hints, hints);
		vm_list_add_migrated(&h->timeline, &h->vms);
		vm_list_assign_sync_events(&h->timeline, &h->vms);
	}
	free(own_hints);
	return status;
}

/* Loads machine i. Machines that run VMs come first because they are the most work, then the guests, and the caller's
 * work is last. */
static int load_machine(void *arg, size_t i)
{
	struct sync_context *r = arg;
	struct error *err = &r->load_err[i];
	int status = 0;
	if (i == r->hypervisors + r->guests)
		r->options->background_task(r->options->arg);
	else if (i < r->hypervisors)
		status = load_hypervisor(r, &r->hypervisor[i], err);
	else if (r->guest[i - r->hypervisors].has_plausible_times && !r->guest[i - r->hypervisors].is_duplicate)
		status = guest_view_load(&r->guest[i - r->hypervisors], err);
	atomic_fetch_add(&r->done, 1);
	return status;
}

static void thin_sync_events(struct sync_context *r)
{
	unsigned key_bits = UINT_MAX;
	for (size_t i = 0; i < r->hypervisors; i++) {
		const unsigned bits = r->hypervisor[i].timeline.sync_events.key_bits;
		key_bits = bits < key_bits ? bits : key_bits;
	}
	for (size_t g = 0; g < r->guests && r->hypervisors > 0; g++)
		guest_view_thin(&r->guest[g], key_bits);
}

static int load_machines(struct sync_context *r)
{
	const size_t tasks = r->hypervisors + r->guests + (r->options->background_task != NULL);
	for (size_t g = 0; g < r->guests; g++)
		sync_event_set_divide_limit(&r->guest[g].sync_events, r->guests);
	r->load_err = mem_new(tasks, sizeof *r->load_err);
	int status = run_tasks(r, "reading the machines", load_machine, tasks, tasks);
	for (size_t i = tasks; i-- > 0;)
		if (r->load_err[i].status != STATUS_OK)
			*r->err = r->load_err[i];
	thin_sync_events(r);
	free(r->load_err);
	return status;
}

/* Fills the arrays of guests and of machines that run VMs. Guests that run VMs come first, so that the VM of an outer
 * guest is not assigned to a guest nested in it. */
static int list_machines(struct sync_context *r, struct trace *const *trace, size_t n)
{
	bool *copy = mem_new(n, sizeof *copy);
	size_t hosts = 0;
	const int status = duplicate_traces_find(trace, n, copy, r->err);
	for (size_t i = 0; i < n; i++)
		hosts += trace_info(trace[i])->role == ROLE_HOST;
	for (int hypervisor = 1; hypervisor >= 0; hypervisor--)
		for (size_t i = 0; i < n; i++) {
			bool is_guest = trace_info(trace[i])->role != ROLE_HOST || hosts > 1;
			if (may_run_vms(r, trace[i]) != (hypervisor == 1))
				continue;
			const bool can = has_plausible_times(r, trace[i]);
			if (!is_guest)
				r->host = trace[i];
			else
				r->guest[r->guests++] = (struct guest_view){ .trace = trace[i], .begin = trace_info(trace[i])->begin,
					.end = trace_info(trace[i])->end, .has_plausible_times = can, .is_duplicate = copy[i],
						.workers = r->workers,
					.pending_searches = &r->pending_searches };
			if (hypervisor && can && !copy[i])
				r->hypervisor[r->hypervisors++] =
					(struct hypervisor){ .trace = trace[i], .guest = is_guest ? r->guests - 1 : NO_INDEX };
		}
	free(copy);
	return status;
}

static uint64_t events_of(const struct sync_context *r, size_t guest)
{
	return trace_info(r->guest[guest].trace)->events;
}

static void order_guests(struct sync_context *r)
{
	r->order = mem_new(r->guests, sizeof *r->order);
	for (size_t g = 0; g < r->guests; g++) {
		size_t at = g;
		for (; at > 0 && events_of(r, r->order[at - 1]) < events_of(r, g); at--)
			r->order[at] = r->order[at - 1];
		r->order[at] = g;
	}
}

static int check_hints(const struct sync_context *r, struct trace *const *trace, size_t n)
{
	for (size_t i = 0; i < r->options->hints; i++) {
		const struct sync_hint *hint = &r->options->hint[i];
		bool found = !hint->parent || strcmp(hint->parent, "host") == 0;
		for (size_t k = 0; k < n && !found; k++)
			found = is_parent_of(hint, trace[k]) && strcmp(hint->parent, hint->guest) != 0;
		if (!found)
			return error_set(r->err, STATUS_INPUT, "name another machine whose traces are given, or host",
			                 "%s: its parent cannot be %s", hint->guest, hint->parent);
	}
	return 0;
}

int sync_run(struct trace *const *trace, size_t n, const struct sync_options *options, struct sync_result *out,
             struct notes *notes, struct error *err)
{
	struct sync_context r = { .options = options, .notes = notes, .err = err, .guest = mem_new(n, sizeof *r.guest),
		.hypervisor = mem_new(n, sizeof *r.hypervisor), .workers = parallel_workers(options->workers) };
	memset(out, 0, sizeof *out);
	int status = check_hints(&r, trace, n);
	if (status == 0)
		status = list_machines(&r, trace, n);
	if (status == 0) {
		order_guests(&r);
		status = load_machines(&r);
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
		host_timeline_release(&r.hypervisor[i].timeline);
		map_release(&r.hypervisor[i].vcpu_tids);
		free(r.hypervisor[i].is_assigned);
	}
	free(r.hypervisor);
	return status;
}
