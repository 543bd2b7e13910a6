/* Synchronization from end to end: which guest is which VM, what its clock is, and how well that is proved.
 *
 * Every guest is tried against every VM of the host; the candidates that contain best win, each VM once. */
#include "sync/sync.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "sync/match.h"

struct run {
	const struct sync_options *options;
	struct notes *notes;
	struct error *err;
	const struct trace *host;    /* or NULL */
	struct host_view view;
	struct vm_list vms;
	struct guest_view *guest;
	size_t guests;
	struct match *match;         /* candidates */
	size_t matches, match_cap;
};

/* ---- candidates */

static int try_events(struct run *r, size_t guest, size_t vm)
{
	struct match m = { .guest = guest, .vm = vm };
	const struct vm_view *view = vm == SIZE_MAX ? NULL : &r->vms.vm[vm];
	int status = match_events(&r->view, view, &r->guest[guest], &m, r->err);
	if (status == 0 && m.pairs > 0)
		*ARRAY_PUSH(r->match, r->matches, r->match_cap) = m;
	else
		match_release(&m);
	return status;
}

static int try_containment(struct run *r, size_t guest, size_t vm)
{
	struct match m = { .guest = guest, .vm = vm };
	int status = match_containment(&r->view, &r->vms.vm[vm], &r->guest[guest], &m, r->err);
	if (status == 0 && m.clock.pieces > 0)
		*ARRAY_PUSH(r->match, r->matches, r->match_cap) = m;
	else
		match_release(&m);
	return status;
}

static int find_candidates(struct run *r)
{
	for (size_t g = 0; g < r->guests; g++) {
		if (r->options->method == SYNC_CONTAINMENT) {
			for (size_t v = 0; v < r->vms.len; v++)
				if (try_containment(r, g, v) != 0)
					return -1;
			continue;
		}
		for (size_t v = 0; v < r->vms.len; v++)
			if (try_events(r, g, v) != 0)
				return -1;
		if (r->vms.len == 0 && try_events(r, g, SIZE_MAX) != 0)
			return -1;
	}
	return 0;
}

/* Better candidates first. */
static int by_merit(const void *pa, const void *pb)
{
	const struct match *a = pa, *b = pb;
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
	const char *colon = strchr(vm->comm, ':');
	return unique_name(out, colon != NULL && colon[1] != '\0' ? colon + 1 : fallback);
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
static void unknown_clock(struct clock_map *map, int64_t begin, int64_t offset)
{
	int64_t host;
	if (__builtin_add_overflow(begin, offset, &host))
		host = begin;
	map->piece = mem_new(1, sizeof *map->piece);
	map->pieces = 1;
	struct clock_line line = { begin, host, 0 };
	map->piece[0] = (struct clock_piece){ .from = begin, .line = line, .lowest = line, .highest = line };
}

static void take_match(struct run *r, struct sync_vm *vm, struct match *m)
{
	vm->guest = r->guest[m->guest].trace;
	vm->clock = m->clock;
	m->clock = (struct clock_map){ NULL, 0 };
	vm->method = m->method;
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

static void describe(struct run *r, const struct sync_vm *vm)
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
		notes_add(r->notes, "%s: its clock changes against the host's at guest time %lld ns (by %+lld ns, drift %+.3f "
		          "-> %+.3f ppm): a pause, a step or another rate", name, (long long)at, (long long)step,
		          clock_line_ppm(&vm->clock.piece[i - 1].line), clock_line_ppm(&vm->clock.piece[i].line));
	}
	if (vm->containment >= 0 && vm->containment < 0.99)
		notes_add(r->notes, "%s: only %.2f %% of its events lie within guest mode of its vCPUs; do not trust its clock",
		          name, vm->containment * 100);
	if (vm->method == SYNC_NONE && vm->guest != NULL && r->options->method != SYNC_NONE)
		notes_add(r->notes, "%s: its clock against the host's could not be determined; its times are its own", name);
}

static void fill_result(struct run *r, struct sync_result *out)
{
	bool *won = mem_new(r->matches, sizeof *won), *vm_done = mem_new(r->vms.len, sizeof *vm_done);
	bool *guest_done = mem_new(r->guests, sizeof *guest_done);
	if (r->matches > 0)
		qsort(r->match, r->matches, sizeof *r->match, by_merit);
	for (size_t i = 0; i < r->matches; i++) {
		const struct match *m = &r->match[i];
		won[i] = !guest_done[m->guest] && (m->vm == SIZE_MAX || !vm_done[m->vm]);
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
		if (m != NULL)
			take_match(r, vm, m);
		if (m != NULL && m->vm != SIZE_MAX)
			fill_vcpus(r, vm, &m->view);
		else
			vm->host_comm = mem_dup("");
		if (vm->clock.pieces == 0)
			unknown_clock(&vm->clock, r->guest[g].begin, 0);
		describe(r, vm);
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
}

/* ---- */

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
	if (r->host != NULL) {
		if (host_view_load(&r->view, r->host, &r->options->progress, r->err) != 0)
			return -1;
		vm_list_make(&r->view, &r->vms);
	}
	for (size_t i = 0; i < n; i++) {
		if (trace[i] == r->host)
			continue;
		if (guest_view_load(&r->guest[r->guests], trace[i], r->err) != 0)
			return -1;
		r->guests++;
	}
	return 0;
}

int sync_run(struct trace *const *trace, size_t n, const struct sync_options *options, struct sync_result *out,
             struct notes *notes, struct error *err)
{
	struct run r = { .options = options, .notes = notes, .err = err, .guest = mem_new(n, sizeof *r.guest) };
	memset(out, 0, sizeof *out);
	int status = load(&r, trace, n);
	if (status == 0 && r.host != NULL)
		status = find_candidates(&r);
	if (status == 0)
		fill_result(&r, out);
	for (size_t i = 0; i < r.matches; i++)
		match_release(&r.match[i]);
	free(r.match);
	for (size_t i = 0; i < r.guests; i++)
		guest_view_release(&r.guest[i]);
	free(r.guest);
	vm_list_release(&r.vms);
	host_view_release(&r.view);
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
