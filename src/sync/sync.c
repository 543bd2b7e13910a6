/* Synchronization from end to end: which guest is which VM, what its clock is, and how well that is proved.
 *
 * Every guest is tried against every VM of every machine that runs some: the host, and guests that do so themselves.  All
 * of it happens between a guest and the one machine that runs it; the clocks are put together at the end (result.c). */
#include "sync/sync.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/parallel.h"
#include "base/text.h"
#include "sync/run.h"

/* ---- candidates */

#define PLAUSIBLE 0.5   /* containment above which that may sharpen a match by events */

enum by { BY_EVENTS, BY_OFFSET, BY_CONTAINMENT, BY_STEPS, BY_NOTHING };

/* The search for one guest.  Several go on side by side, so it reads of struct run what does not change meanwhile, and
 * what it finds stays here until they have all ended. */
struct hunt {
	struct run *r;
	size_t guest;
	enum by by;
	int64_t offset;       /* BY_OFFSET */
	bool proved;          /* no need to look further */
	struct match *match;
	size_t matches, match_cap;
	int status;
	struct error err;
};

static int add_match(struct hunt *k, struct match *m, int status)
{
	if (status == 0 && (m->clock.pieces > 0 || m->doubt != NULL))
		*ARRAY_PUSH(k->match, k->matches, k->match_cap) = *m;
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

/* By events in one VM. */
static int try_events(struct hunt *k, size_t hyper, size_t vm)
{
	const struct hyper *h = &k->r->hyper[hyper];
	struct match m = { .guest = k->guest, .hyper = hyper, .vm = vm };
	const struct vm_view *view = vm == NOBODY ? NULL : &h->vms.vm[vm];
	int status = match_events(&h->view, view, &k->r->guest[k->guest], &m, &k->err);
	return add_match(k, &m, status);
}

/* How well the matches by events contain; where most pairs agree in some VM, others do not matter. */
static int prove_events(struct hunt *k)
{
	struct guest_view *guest = &k->r->guest[k->guest];
	uint64_t most = 0;
	bool agrees = false;
	int status = 0;
	for (size_t i = 0; i < k->matches; i++)
		most = k->match[i].used > most ? k->match[i].used : most;
	for (size_t i = 0; i < k->matches; i++)
		agrees = agrees || (match_agrees(&k->match[i]) && k->match[i].used >= most / 2);
	for (size_t i = 0; i < k->matches && status == 0 && !atomic_load(&k->r->cancelled); i++) {
		struct match *m = &k->match[i];
		const struct host_view *host = &k->r->hyper[m->hyper].view;
		if (agrees && !match_agrees(m))
			continue;
		status = k->r->options->method == SYNC_AUTO ? match_prove_first(host, guest, m, &k->err)
		                                            : match_prove(host, guest, m, &k->err);
		k->proved = k->proved || match_proved(m);
	}
	return status;
}

/* Sharpens matches by events with containment: those that are proved, or where none is, those that are plausible. */
static int sharpen(struct hunt *k)
{
	const double enough = k->proved ? PROVED : PLAUSIBLE;
	int status = 0;
	for (size_t i = 0; i < k->matches && status == 0 && !atomic_load(&k->r->cancelled); i++) {
		struct match *m = &k->match[i];
		if (containment_possible(&m->proof) < enough || (k->proved && !match_agrees(m)))
			continue;
		status = match_both(&k->r->hyper[m->hyper].view, &k->r->guest[k->guest], m, &k->err);
		k->proved = k->proved || match_proved(m);
	}
	return status;
}

/* Is the VM some guest's own, proved by events, or by containment too? */
static bool vm_taken(const struct run *r, size_t hyper, size_t vm, bool by_containment)
{
	for (size_t i = 0; i < r->matches; i++) {
		const struct match *m = &r->match[i];
		if (m->hyper == hyper && m->vm == vm && match_proved(m) && (by_containment || m->method != SYNC_CONTAINMENT))
			return true;
	}
	return false;
}

/* Has the whole trace been found to fit there in several ways? */
static bool is_hopeless(const struct run *r, size_t guest, size_t hyper, size_t vm)
{
	for (size_t i = 0; i < r->matches; i++) {
		const struct match *m = &r->match[i];
		if (m->guest == guest && m->hyper == hyper && m->vm == vm && m->hopeless)
			return true;
	}
	return false;
}

/* By containment in one VM, if no guest has proved to be that already. */
static int try_containment(struct hunt *k, size_t hyper, size_t vm)
{
	const struct hyper *h = &k->r->hyper[hyper];
	const bool steps = k->by == BY_STEPS;
	struct match m = { .guest = k->guest, .hyper = hyper, .vm = vm };
	if (vm_taken(k->r, hyper, vm, steps) || is_hopeless(k->r, k->guest, hyper, vm))
		return 0;
	int status = match_containment(&h->view, &h->vms.vm[vm], &k->r->guest[k->guest], steps, &m, &k->err);
	k->proved = k->proved || (status == 0 && m.doubt == NULL);
	return add_match(k, &m, status);
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
static int try_offset(struct hunt *k, size_t hyper, size_t vm)
{
	const struct hyper *h = &k->r->hyper[hyper];
	struct match m = { .guest = k->guest, .hyper = hyper, .vm = vm };
	const struct vm_view *view = vm == NOBODY ? NULL : &h->vms.vm[vm];
	int status = match_offset(&h->view, view, &k->r->guest[k->guest], k->offset, &m, &k->err);
	if (status == 0 && view != NULL && m.share < 0.5 && !may_be(k->r, k->guest, hyper, vm)) {
		match_release(&m);
		return 0;
	}
	return add_match(k, &m, status);
}

static int try_vm(struct hunt *k, size_t hyper, size_t vm)
{
	if (!allowed(k->r, k->guest, hyper, vm) || atomic_load(&k->r->cancelled))
		return 0;
	int status = k->by == BY_EVENTS ? try_events(k, hyper, vm) :
		k->by == BY_OFFSET ? try_offset(k, hyper, vm) : try_containment(k, hyper, vm);
	atomic_fetch_add(&k->r->done, 1);
	return status;
}

/* Tries one guest in all VMs that it may be, one way.  A host that shows no VM may be right as a whole. */
static int search_guest(void *arg, size_t i)
{
	struct run *r = arg;
	struct hunt *k = &r->hunt[r->order[i]];
	if (k->by == BY_NOTHING)
		return 0;
	for (size_t h = 0; h < r->hypers; h++) {
		size_t n = r->hyper[h].vms.len;
		for (size_t v = 0; v < n && k->status == 0; v++)
			k->status = try_vm(k, h, v);
		bool whole = r->hyper[h].trace == r->host && ((k->by == BY_EVENTS && n == 0) || k->by == BY_OFFSET);
		if (k->status == 0 && whole)
			k->status = try_vm(k, h, NOBODY);
	}
	if (k->status == 0 && k->by == BY_EVENTS)
		k->status = prove_events(k);
	if (k->status == 0 && k->by == BY_EVENTS && r->options->method == SYNC_AUTO)
		k->status = sharpen(k);
	atomic_fetch_sub(&r->left, 1);
	return k->status;
}

static bool go_on(void *arg)
{
	struct run *r = arg;
	const struct progress *p = &r->options->progress;
	if (p->tick != NULL && p->tick(p->arg, r->phase, atomic_load(&r->done), r->total) != 0)
		atomic_store(&r->cancelled, true);
	return !atomic_load(&r->cancelled);
}

/* So many tasks side by side, `total` pieces of work in all. */
static int run_tasks(struct run *r, const char *phase, int (*task)(void *arg, size_t i), size_t tasks, size_t total)
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

/* All guests, each the way its hunt says. */
static int search_all(struct run *r, const char *phase)
{
	size_t vms = 0, left = 0;
	for (size_t h = 0; h < r->hypers; h++)
		vms += r->hyper[h].vms.len;
	for (size_t g = 0; g < r->guests; g++)
		left += r->hunt[g].by != BY_NOTHING;
	atomic_store(&r->left, left);
	int status = left == 0 ? 0 : run_tasks(r, phase, search_guest, r->guests, r->guests * vms);
	for (size_t g = 0; g < r->guests; g++) {
		struct hunt *k = &r->hunt[g];
		for (size_t i = 0; i < k->matches; i++)
			*ARRAY_PUSH(r->match, r->matches, r->match_cap) = k->match[i];
		k->matches = 0;
		if (k->status != 0)
			*r->err = k->err;
	}
	return status;
}

/* How a guest is searched for first. */
static void plan_hunt(struct run *r, size_t guest)
{
	enum sync_method method = r->options->method;
	const struct sync_hint *hint = hint_of(r, guest);
	struct hunt *k = &r->hunt[guest];
	bool given = hint != NULL && hint->has_offset;
	*k = (struct hunt){ .r = r, .guest = guest, .by = BY_NOTHING, .err = ERROR_INIT };
	if (!r->guest[guest].sane) {
		k->proved = true;  /* nothing to look for */
	} else if (given || method == SYNC_OFFSET || method == SYNC_NONE) {
		k->by = BY_OFFSET;
		k->offset = given ? hint->offset : method == SYNC_OFFSET ? r->options->offset : 0;
		k->proved = true;
	} else if (method == SYNC_AUTO || method == SYNC_EVENTS) {
		k->by = BY_EVENTS;
	}
}

static int find_candidates(struct run *r)
{
	static const char *const looking = "looking for the guests' clocks";
	bool contain = r->options->method == SYNC_CONTAINMENT || r->options->method == SYNC_AUTO;
	r->hunt = mem_new(r->guests, sizeof *r->hunt);
	for (size_t g = 0; g < r->guests; g++)
		plan_hunt(r, g);
	int status = search_all(r, "matching the guests");
	for (size_t g = 0; g < r->guests; g++)
		r->hunt[g].by = contain && !r->hunt[g].proved ? BY_CONTAINMENT : BY_NOTHING;
	if (status == 0)
		status = search_all(r, looking);
	/* One after the other, because what a guest proves to be is not tried for the next ones. */
	for (size_t g = 0; g < r->guests; g++)
		r->hunt[g].by = BY_NOTHING;
	for (size_t g = 0; g < r->guests && status == 0 && contain; g++) {
		if (r->hunt[g].proved)
			continue;
		r->hunt[g].by = BY_STEPS;
		status = search_all(r, looking);
		r->hunt[g].by = BY_NOTHING;
	}
	for (size_t g = 0; g < r->guests; g++)
		free(r->hunt[g].match);
	free(r->hunt);
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
static int load_hyper(struct run *r, struct hyper *h, struct error *err)
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
	int status = host_view_load(&h->view, h->trace, &h->known, &r->cancelled, err);
	if (status == 0) {
		vm_list_make(&h->view, &h->vms);
		vm_list_hint(&h->view, &h->vms, mine, hints);
	}
	free(mine);
	return status;
}

/* The hypers first: they are more work. */
static int load_task(void *arg, size_t i)
{
	struct run *r = arg;
	struct error *err = &r->load_err[i];
	int status = 0;
	if (i < r->hypers)
		status = load_hyper(r, &r->hyper[i], err);
	else if (r->guest[i - r->hypers].sane)
		status = guest_view_load(&r->guest[i - r->hypers], err);
	atomic_fetch_add(&r->done, 1);
	return status;
}

static int load(struct run *r)
{
	const size_t tasks = r->hypers + r->guests;
	r->load_err = mem_new(tasks, sizeof *r->load_err);
	int status = run_tasks(r, "reading the machines", load_task, tasks, tasks);
	for (size_t i = tasks; i-- > 0;)
		if (r->load_err[i].status != STATUS_OK)
			*r->err = r->load_err[i];
	free(r->load_err);
	return status;
}

/* Guests that run VMs come first, so that a VM which one of them proves to be is not taken by what runs inside it. */
static void list_machines(struct run *r, struct trace *const *trace, size_t n)
{
	size_t hosts = 0;
	for (size_t i = 0; i < n; i++)
		hosts += trace_info(trace[i])->role == ROLE_HOST;
	for (int hyper = 1; hyper >= 0; hyper--)
		for (size_t i = 0; i < n; i++) {
			bool is_guest = trace_info(trace[i])->role != ROLE_HOST || hosts > 1;
			if (is_hyper(r, trace[i]) != (hyper == 1))
				continue;
			bool can = sane(r, trace[i]);
			if (!is_guest)
				r->host = trace[i];
			else
				r->guest[r->guests++] = (struct guest_view){ .trace = trace[i], .begin = trace_info(trace[i])->begin,
					.end = trace_info(trace[i])->end, .sane = can, .workers = r->workers, .left = &r->left };
			if (hyper && can)
				r->hyper[r->hypers++] =
					(struct hyper){ .trace = trace[i], .guest = is_guest ? r->guests - 1 : NOBODY };
		}
}

static uint64_t events_of(const struct run *r, size_t guest)
{
	return trace_info(r->guest[guest].trace)->events;
}

static void order_guests(struct run *r)
{
	r->order = mem_new(r->guests, sizeof *r->order);
	for (size_t g = 0; g < r->guests; g++) {
		size_t at = g;
		for (; at > 0 && events_of(r, r->order[at - 1]) < events_of(r, g); at--)
			r->order[at] = r->order[at - 1];
		r->order[at] = g;
	}
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
		.hyper = mem_new(n, sizeof *r.hyper), .workers = parallel_workers(options->workers) };
	memset(out, 0, sizeof *out);
	int status = check_hints(&r, trace, n);
	if (status == 0) {
		list_machines(&r, trace, n);
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
	for (size_t i = 0; i < r.hypers; i++) {
		vm_list_release(&r.hyper[i].vms);
		host_view_release(&r.hyper[i].view);
		map_release(&r.hyper[i].known);
		free(r.hyper[i].done);
	}
	free(r.hyper);
	return status;
}
