/* Builds the result from the assigned candidates: the VM and machine of each guest, and the clock of each guest relative
 * to the host, with notes on its quality. */
#include <math.h>

#include "base/base.h"
#include "sync/assign/pair_delays.h"
#include "sync/assign/sync_context.h"
#include "sync/fit/tsc_rate.h"

/* ---- VMs of the result */

static bool name_taken(const struct sync_result *out, const char *name)
{
	for (size_t i = 0; i < out->vms; i++)
		if (out->vm[i].name && strcmp(out->vm[i].name, name) == 0)
			return true;
	return false;
}

/* Returns the name, with a number if another VM has it. by_host: also if it is "host", because only the host's trace
 * contains the name. */
static char *unique_name(const struct sync_result *out, const char *want, bool by_host)
{
	char *name = mem_dup(want);
	for (unsigned n = 2; (by_host && strcmp(name, "host") == 0) || name_taken(out, name); n++) {
		free(name);
		name = mem_printf("%s (%u)", want, n);
	}
	return name;
}

/* Returns "Debian" for the process "qemu:Debian"; otherwise "VM <pid>", or without PIDs "VM of TID <first vCPU>". */
static char *name_of_process(const struct sync_result *out, const struct hypervisor *h, const struct vm_candidate *vm)
{
	char fallback[32];
	if (vm->pid >= 0)
		snprintf(fallback, sizeof fallback, "VM %d", (int)vm->pid);
	else
		snprintf(fallback, sizeof fallback, "VM of TID %d", (int)h->timeline.thread[vm->vcpu[0].thread].tid);
	const char *name = vm->guest_name ? vm->guest_name : vm->domain ? vm->domain : name_in_process(vm);
	return unique_name(out, name ? name : fallback, !vm->guest_name);
}

static void note_migration(struct sync_context *r, const struct sync_vm *vm, const struct hypervisor *h,
                           const struct vm_candidate *view)
{
	char at[TIME_TEXT], still[TIME_TEXT];
	const struct vm_migration *m = &view->migration;
	const struct vm_candidate *to = &h->vms.vm[m->part[1]];
	note_add_at(r->notes, VM_MIGRATED, m->ns[0], m->ns[1], vm->name, (int)view->pid, (int)to->pid, to->comm,
	            time_clock(at, m->ns[0], 6), time_duration(still, m->ns[1] - m->ns[0]));
}

/* Fills the vCPUs and lifetimes of a VM. outer: clock of the machine that runs the VM; NULL: the host. */
static void fill_vcpus(struct sync_vm *vm, const struct hypervisor *h, const struct vm_candidate *view,
                       const struct clock_map *outer)
{
	vm->vcpu = mem_new(view->vcpus, sizeof *vm->vcpu);
	vm->life = mem_new(view->vcpus, sizeof *vm->life);
	vm->vcpus = view->vcpus;
	for (size_t i = 0; i < view->vcpus; i++) {
		const struct vthread *th = &h->timeline.thread[view->vcpu[i].thread];
		const bool moves = vm_is_migrated(view), moved = moves && i % 2 == 1;
		vm->vcpu[i] = (struct sync_vcpu){ view->vcpu[i].number, th->tid, view->vcpu[i].evidence, moved };
		vm->life[i] = (struct sync_vcpu_lifetime){ moved ? view->migration.ns[1] : th->earliest_start,
		                                  moves && !moved ? view->migration.ns[0] : th->to };
		if (outer)
			vm->life[i].from = clock_map_at(outer, vm->life[i].from);
		if (outer && vm->life[i].to != INT64_MAX)
			vm->life[i].to = clock_map_at(outer, vm->life[i].to);
	}
	vm->host_pid = view->pid;
	vm->host_comm = mem_dup(view->comm);
	if (!vm_is_migrated(view))
		return;
	const struct vm_candidate *to = &h->vms.vm[view->migration.part[1]];
	vm->migrated_pid = to->pid;
	vm->migrated_comm = mem_dup(to->comm);
}

static struct sync_vm *new_vm(struct sync_result *out)
{
	struct sync_vm *vm = &out->vm[out->vms++];
	*vm = (struct sync_vm){ .host_pid = -1, .migrated_pid = -1, .method = SYNC_NONE, .error_width_events = -1,
		.error_width_containment = -1, .containment = -1, .worst_violation = -1 };
	return vm;
}

/* Makes an unsynchronized guest's clock: identity, quality ABSENT. If its trace does not overlap the host's trace
 * under this clock, both are aligned at their start, because a time axis that contains both could be years long. */
static int unknown_clock(const struct sync_context *r, size_t guest, struct sync_vm *vm)
{
	struct clock_map *map = &vm->clock;
	const struct trace_info *host = r->host ? trace_info(r->host) : NULL;
	const int64_t begin = r->guest[guest].begin;
	const bool disjoint = host && host->begin <= host->end && r->guest[guest].has_plausible_times &&
		(r->guest[guest].end < host->begin || begin > host->end);
	map->segment = mem_new(1, sizeof *map->segment);
	map->segments = 1;
	struct clock_line line = { begin, disjoint ? host->begin : begin, 0 };
	const struct trace_info *info = trace_info(r->guest[guest].trace);
	int found = 1;
	if (!host && info->in_cycles && (found = tsc_rate_line(r->guest[guest].trace, &line, r->err)) == 0) {
		vm->has_given_rate = r->options->tsc_hz > 0;
		found = vm->has_given_rate;
		if (found)
			line = tsc_given_line(begin, r->options->tsc_hz);
		else
			error_set(r->err, STATUS_INPUT, "use --tsc-hz N, record hrtimer_expire_entry as well, or use the clock mono "
			          "(-C mono)", "%s: its times are TSC cycles of unknown frequency", info->machine);
	}
	map->segment[0] = (struct clock_segment){ .from = begin, .line = line, .lowest = line, .highest = line };
	return found > 0 ? 0 : -1;
}

/* Applies the manual offset of the user, and measures containment again so that its effect is visible. */
static int manual_offset_match(struct sync_context *r, size_t guest, struct match *m)
{
	const struct sync_hint *hint = hint_of(r, guest);
	if (!hint || hint->manual_offset == 0)
		return 0;
	if (!m) {
		note_add(r->notes, MANUAL_OFFSET_IGNORED, hint->guest);
		return 0;
	}
	double before = m->inside_share;
	clock_map_shift(&m->candidate.clock, hint->manual_offset);
	if (match_measure(&r->hypervisor[m->hypervisor].timeline, &r->guest[guest], m, r->err) != 0)
		return -1;
	if (before < 0 || m->inside_share < 0)
		note_add(r->notes, MANUAL_OFFSET, hint->guest, (long long)hint->manual_offset);
	else
		note_add(r->notes, MANUAL_OFFSET_EFFECT, hint->guest, (long long)hint->manual_offset, before * 100,
		         m->inside_share * 100, (m->inside_share - before) * 100);
	return 0;
}

/* Returns true if the rate changes more than an oscillator's rate can, for such a short time that it may be a step. */
static bool is_sharp_drift_change(const struct clock_map *clock, size_t i, const struct trace_info *guest)
{
	const struct clock_segment *p = &clock->segment[i];
	const int64_t before = p->from - (i > 1 ? p[-1].from : guest->begin);
	const int64_t after = (i + 1 < clock->segments ? p[1].from : guest->end) - p->from;
	const double turn = fabs(clock_line_ppm(&p->line) - clock_line_ppm(&p[-1].line));
	return turn > DRIFT_CHANGE_MIN_PPM && turn / 1e6 * (double)(before < after ? before : after) <= AMBIGUITY_NS &&
		!fit_is_step(clock, i);
}

/* Returns true if a clock has a segment that may be wrong: an APPROXIMATE segment of several or with contradicting
 * pairs, or a change of the rate that may be a step. */
static bool has_ambiguous_segment(const struct clock_map *clock, const struct trace_info *guest)
{
	for (size_t i = 0; i < clock->segments; i++) {
		const struct clock_segment *p = &clock->segment[i];
		const bool differs = clock->segments > 1 || p->rejected > 0;
		if ((p->quality == SYNC_APPROXIMATE && differs) || (i > 0 && is_sharp_drift_change(clock, i, guest)))
			return true;
	}
	return false;
}

/* Returns true if the pairs ignored as outliers may be the true ones: under the other pairs more events are outside
 * guest mode than pairs were ignored, by more than 1 % of all events. */
static bool may_hide_true_pairs(const struct containment *c, const struct clock_map *clock)
{
	uint64_t rejected = 0;
	for (size_t i = 0; i < clock->segments; i++)
		rejected += clock->segment[i].rejected;
	return rejected > 0 && c->outside > c->missing + rejected &&
	       containment_notable(c, c->outside - c->missing - rejected);
}

/* Drops the error bounds of a wrong clock. Pairs of containment may agree and yet be wrong: this is shown by events
 * outside guest mode for all clocks within the bounds. Location and size of the error are unknown. */
static void drop_wrong_bounds(const struct match *m, struct clock_map *clock, const struct trace_info *guest)
{
	const bool by_containment = m->method == SYNC_CONTAINMENT;
	const bool is_wrong = m->candidate.unverified || (!by_containment ? may_hide_true_pairs(&m->containment, clock)
		: m->containment.contradictions > 0 || (m->containment.outside > 0 && has_ambiguous_segment(clock, guest)));
	for (size_t i = 0; i < clock->segments && is_wrong; i++) {
		struct clock_segment *p = &clock->segment[i];
		p->quality = p->quality == SYNC_ACCURATE ? SYNC_APPROXIMATE : p->quality;
		p->low.points = p->high.points = 0;
	}
}

static void copy_match(struct sync_context *r, struct sync_vm *vm, struct match *m)
{
	vm->guest = r->guest[m->guest].trace;
	delays_fill(&vm->delays, m, vm->guest);
	vm->clock = m->candidate.clock;
	m->candidate.clock = (struct clock_map){ .segment = NULL };
	const struct sync_hint *hint = hint_of(r, m->guest);
	const bool is_found = m->method == SYNC_CONTAINMENT || m->method == SYNC_EVENTS || m->method == SYNC_AUTO;
	if (is_found && (!hint || hint->manual_offset == 0))  /* a manual offset is intended by the user */
		drop_wrong_bounds(m, &vm->clock, trace_info(vm->guest));
	vm->method = r->options->method == SYNC_NONE && !r->options->audit ? SYNC_NONE : m->method;
	vm->pairs = m->candidate.pairs;
	vm->unmatched = m->unmatched;
	vm->error_width_events = m->error_width_events;
	vm->error_width_containment = m->error_width_containment;
	vm->containment = m->inside_share;
	vm->inside = m->containment.inside;
	vm->outside = m->containment.outside;
	vm->contradictions = m->containment.contradictions;
	vm->unverified = m->candidate.unverified;
	vm->worst_violation = m->inside_share < 0 ? -1 : m->containment.worst;
}

/* Adds a note about events that may lie before or after a clock step. */
static void note_ambiguous_step(struct sync_context *r, const struct sync_vm *vm, const struct clock_segment *p)
{
	int64_t low, high, unused;
	char from[TIME_TEXT], to[TIME_TEXT], by[TIME_TEXT];
	if (p->placed || p->ambiguous_from >= p->ambiguous_to ||
	    !clock_map_bounds(&vm->clock, p->ambiguous_from, &low, &unused) ||
	    !clock_map_bounds(&vm->clock, p->ambiguous_to - 1, &unused, &high))
		return;
	time_clock(from, low, 6);
	time_clock(to, high, 6);
	if (p->repeats)
		note_add_at(r->notes, SETBACK_TIME_UNKNOWN, low, high, vm->name, from, to);
	else
		note_add_at(r->notes, STEP_TIME_UNKNOWN, low, high, vm->name, from, to,
		            time_duration(by, clock_map_error_width(&vm->clock, p->ambiguous_from)));
}

/* Adds notes about unverified ends of the trace if they are long enough to be visible in a report. */
static void note_ends(struct sync_context *r, const struct sync_vm *vm)
{
	const struct clock_map *c = &vm->clock;
	const struct trace_info *info = trace_info(vm->guest);
	const uint64_t length = (uint64_t)sync_delay_slice_ns(info);
	if (c->known_from == c->known_to)
		return;
	char at[TIME_TEXT];
	int64_t from = clock_map_at(c, info->begin), to = clock_map_at(c, c->known_from);
	if (to > from && (uint64_t)to - (uint64_t)from >= length)
		note_add_at(r->notes, STEP_NOT_EXCLUDED_BEFORE, from, to, vm->name, time_clock(at, to, 6));
	from = clock_map_at(c, c->known_to);
	to = clock_map_at(c, info->end);
	if (to > from && (uint64_t)to - (uint64_t)from >= length)
		note_add_at(r->notes, STEP_NOT_EXCLUDED_AFTER, from, to, vm->name, time_clock(at, from, 6));
}

static void note_clock(struct sync_context *r, const struct sync_vm *vm)
{
	char worst[TIME_TEXT];
	uint64_t rejected = 0;
	for (size_t i = 0; i < vm->clock.segments; i++)
		rejected += vm->clock.segment[i].rejected;
	if (rejected > 0)
		note_add(r->notes, PAIRS_IGNORED, vm->name, (unsigned long long)rejected, (unsigned long long)vm->pairs);
	for (size_t i = 1; i < vm->clock.segments; i++) {
		int64_t at = vm->clock.segment[i].from;
		int64_t step = clock_line_at(&vm->clock.segment[i].line, at) - clock_line_at(&vm->clock.segment[i - 1].line, at);
		char clock[TIME_TEXT], by[TIME_TEXT];
		int64_t host = clock_map_at(&vm->clock, at);
		note_add_at(r->notes, CLOCK_CHANGE, host, host, vm->name, time_clock(clock, host, 6), (long long)at,
		            time_duration(by, step), (long long)step, clock_line_ppm(&vm->clock.segment[i - 1].line),
		            clock_line_ppm(&vm->clock.segment[i].line));
		note_ambiguous_step(r, vm, &vm->clock.segment[i]);
	}
	if (vm->containment >= 0 && vm->containment < TRUSTED_SHARE_MIN)
		note_add(r->notes, LOW_CONTAINMENT, vm->name, vm->containment * 100);
	bool approximate = false;
	for (size_t i = 0; i < vm->clock.segments; i++)
		approximate = approximate || vm->clock.segment[i].quality == SYNC_APPROXIMATE;
	if (vm->contradictions > 0 && (vm->method == SYNC_CONTAINMENT ? approximate : vm->unverified))
		note_add(r->notes, CLOCK_CONTRADICTED, vm->name, (unsigned long long)vm->contradictions,
		         time_duration(worst, vm->worst_violation));
	else if (vm->method == SYNC_CONTAINMENT && vm->outside > 0 && has_ambiguous_segment(&vm->clock, trace_info(vm->guest)))
		note_add(r->notes, CLOCK_PARTS_AMBIGUOUS, vm->name, (unsigned long long)vm->outside,
		         time_duration(worst, vm->worst_violation));
	else if (vm->unverified)
		note_add(r->notes, STEP_NOT_EXCLUDED, vm->name);
	else if (vm->method == SYNC_CONTAINMENT && approximate)
		note_add(r->notes, CLOCK_AMBIGUOUS, vm->name);
	if (!vm->unverified)
		note_ends(r, vm);
	const struct clock_line *first = &vm->clock.segment[0].line;
	const struct sync_reason_row *why = &sync_reason_row[vm->reason];
	const char *separator = *why->advice ? "; " : "";
	if (!r->host && trace_info(vm->guest)->in_cycles) {
		notes_remove(r->notes, NOTE_CLOCK_NOT_NS, vm->name);
		if (vm->has_given_rate)
			note_add(r->notes, CLOCK_FROM_HZ, vm->name, (double)r->options->tsc_hz / 1e6);
		else
			note_add(r->notes, CLOCK_FROM_TIMERS, vm->name, 1000 / (1 + clock_line_ppm(first) / 1e6));
	} else if (vm->reason == SYNC_REASON_NONE || (vm->reason == SYNC_REASON_NO_HOST_TRACE && r->guests == 1)) {
		return;  /* a machine alone has no clock to be synchronized with */
	} else if (first->ref_guest == first->ref_host) {
		note_add(r->notes, CLOCK_UNKNOWN, vm->name, why->text, separator, why->advice);
	} else {
		note_add(r->notes, CLOCK_UNKNOWN_ALIGNED, vm->name, why->text, separator, why->advice);
	}
}

/* For a guest with a given clock: adds a note that no VM matches, or that the traces do not overlap. */
static void note_unmatched_vm(struct sync_context *r, const struct sync_vm *vm, const struct match *m, bool disjoint)
{
	for (size_t i = 0; i < r->matches && m->vm == NO_INDEX; i++)
		if (r->match[i].guest == m->guest && r->match[i].candidate.reason) {
			const struct sync_reason_row *why = &sync_reason_row[r->match[i].candidate.reason];
			note_add(r->notes, VM_UNKNOWN, vm->name, why->text, *why->advice ? "; " : "", why->advice);
			return;
		}
	if (disjoint)
		note_add(r->notes, NO_COMMON_TIME, vm->name);
}

/* ---- order of the machines: a machine precedes the VMs that it runs */

struct assignment {
	struct match **assigned;   /* by guest; NULL: none */
	size_t *number;            /* by guest: 1 + index of its VM in the result; 0: not added yet */
};

/* Returns the machine that runs a guest, proven or specified by the user; NO_INDEX: unknown. */
static size_t hypervisor_of(const struct sync_context *r, const struct assignment *o, size_t guest)
{
	const struct sync_hint *hint = hint_of(r, guest);
	if (o->assigned[guest])
		return o->assigned[guest]->hypervisor;
	for (size_t h = 0; h < r->hypervisors && hint && hint->parent; h++)
		if (strcmp(trace_info(r->hypervisor[h].trace)->machine, hint->parent) == 0)
			return h;
	return NO_INDEX;
}

/* Returns struct sync_vm.parent; NO_INDEX: that machine is not in the result yet. */
static size_t parent_of(const struct sync_context *r, const struct assignment *o, size_t hypervisor)
{
	if (hypervisor == NO_INDEX || r->hypervisor[hypervisor].trace == r->host)
		return 0;
	return o->number[r->hypervisor[hypervisor].guest] > 0 ? o->number[r->hypervisor[hypervisor].guest] : NO_INDEX;
}

/* Composes a clock with that of the outer machine; the manual offset is in host time, so it is applied last. */
static void compose_clock(struct clock_map *clock, const struct clock_map *outer, const struct sync_hint *hint)
{
	int64_t manual_offset = hint ? hint->manual_offset : 0;
	clock_map_shift(clock, -manual_offset);
	clock_map_compose(clock, outer);
	clock_map_shift(clock, manual_offset);
}

static int add_guest(struct sync_context *r, struct assignment *o, size_t guest, size_t parent, struct sync_result *out)
{
	struct match *m = o->assigned[guest];
	struct sync_vm *vm = new_vm(out);
	const struct clock_map *outer = parent == 0 ? NULL : &out->vm[parent - 1].clock;
	o->number[guest] = out->vms;
	vm->guest = r->guest[guest].trace;
	const char *domain = m && m->vm != NO_INDEX && !trace_info(vm->guest)->name_is_given ? m->view.domain : NULL;
	vm->name = unique_name(out, domain ? domain : trace_info(vm->guest)->machine, domain);
	vm->parent = parent;
	int status = manual_offset_match(r, guest, m);
	const bool disjoint = m && is_disjoint(r, m);
	if (m)
		copy_match(r, vm, m);
	if (m && m->vm != NO_INDEX)
		fill_vcpus(vm, &r->hypervisor[m->hypervisor], &m->view, outer);
	else
		vm->host_comm = mem_dup("");
	if (vm->clock.segments == 0)
		status = unknown_clock(r, guest, vm) ? -1 : status;
	else if (outer)
		compose_clock(&vm->clock, outer, hint_of(r, guest));
	if (m && vm_is_migrated(&m->view) && !outer)
		note_migration(r, vm, &r->hypervisor[m->hypervisor], &m->view);
	if (parent > 0)
		note_add(r->notes, NESTED_GUEST, vm->name, out->vm[parent - 1].name);
	if (m)
		note_unmatched_vm(r, vm, m, disjoint);
	vm->reason = m ? SYNC_REASON_NONE : unknown_clock_reason(r, guest);
	note_clock(r, vm);
	return status;
}

/* Returns true if the trace is added as a guest. A trace without events is not if the host was traced: it belongs to one
 * of the host's VMs, but which one is unknown. */
static bool is_guest(const struct sync_context *r, const struct assignment *o, size_t g)
{
	const struct trace *trace = r->guest[g].trace;
	return trace != r->host && (!r->host || o->assigned[g] || trace_info(trace)->events > 0);
}

/* Adds all guests, before VMs without a trace: guests keep their names, other VMs get the remaining ones. */
static int add_guests(struct sync_context *r, struct assignment *o, struct sync_result *out)
{
	size_t guests = 0, added = 1;
	for (size_t g = 0; g < r->guests; g++)
		guests += is_guest(r, o, g);
	while (out->vms < guests) {
		bool force = added == 0;  /* the user declared that two machines run each other */
		added = 0;
		for (size_t g = 0; g < r->guests; g++) {
			size_t parent = parent_of(r, o, hypervisor_of(r, o, g));
			if (!is_guest(r, o, g) || o->number[g] > 0 || (parent == NO_INDEX && !force))
				continue;
			if (add_guest(r, o, g, parent == NO_INDEX ? 0 : parent, out) != 0)
				return -1;
			added++;
		}
	}
	return 0;
}

/* Adds a note if the VM stopped for good and another process may continue it: its state is unknown after that. */
static void note_possible_migration(struct sync_context *r, struct sync_vm *vm, const struct hypervisor *h, size_t v)
{
	char at[TIME_TEXT];
	for (size_t i = 0; i < h->vms.len; i++) {
		const struct vm_migration *m = &h->vms.vm[i].migration;
		if (!vm_is_migrated(&h->vms.vm[i]) || m->part[0] != v)
			continue;
		const struct vm_candidate *to = &h->vms.vm[m->part[1]];
		bool lives = false;
		for (size_t k = 0; k < vm->vcpus; k++) {
			lives |= vm->life[k].to > m->ns[1];
			vm->life[k].to = vm->life[k].to < m->ns[1] ? vm->life[k].to : m->ns[1];
		}
		if (lives)
			note_add_at(r->notes, VM_MAY_HAVE_MIGRATED, m->ns[0], INT64_MAX, vm->name, time_clock(at, m->ns[0], 6),
			            (int)to->pid, to->comm);
	}
}

static void add_one_untraced(struct sync_context *r, const struct assignment *o, size_t hypervisor, size_t v,
                             struct sync_result *out)
{
	struct hypervisor *h = &r->hypervisor[hypervisor];
	const struct vm_candidate *view = &h->vms.vm[v];
	struct sync_vm *vm = new_vm(out);
	vm->parent = parent_of(r, o, hypervisor);
	vm->name = name_of_process(out, h, view);
	fill_vcpus(vm, h, view, vm->parent == 0 ? NULL : &out->vm[vm->parent - 1].clock);
	if (vm_is_migrated(view) && vm->parent == 0)
		note_migration(r, vm, h, view);
	else if (vm->parent == 0)
		note_possible_migration(r, vm, h, v);
	vm_set_assigned(h, v);
}

/* Returns true if both processes of a migration have the same name, which proves the migration without a guest trace. */
static bool has_one_name(const struct hypervisor *h, const struct vm_candidate *view)
{
	const struct vm_candidate *a = &h->vms.vm[view->migration.part[0]], *b = &h->vms.vm[view->migration.part[1]];
	const char *before = a->guest_name ? a->guest_name : name_in_process(a),
		*after = b->guest_name ? b->guest_name : name_in_process(b);
	return before && after && strcmp(before, after) == 0;
}

static void add_untraced(struct sync_context *r, const struct assignment *o, struct sync_result *out)
{
	for (size_t i = 0; i < r->hypervisors; i++) {
		const struct hypervisor *h = &r->hypervisor[i];
		for (size_t v = 0; v < h->vms.len; v++)
			if (vm_is_migrated(&h->vms.vm[v]) && !vm_is_assigned(h, v) && has_one_name(h, &h->vms.vm[v]))
				add_one_untraced(r, o, i, v, out);
		for (size_t v = 0; v < h->vms.len; v++)
			if (!h->is_assigned[v] && !vm_is_migrated(&h->vms.vm[v]))
				add_one_untraced(r, o, i, v, out);
	}
}

int fill_result(struct sync_context *r, struct sync_result *out)
{
	struct assignment o = { .assigned = mem_new(r->guests, sizeof *o.assigned),
		.number = mem_new(r->guests, sizeof *o.number) };
	size_t vms = r->guests;
	for (size_t i = 0; i < r->hypervisors; i++) {
		r->hypervisor[i].is_assigned = mem_new(r->hypervisor[i].vms.len, sizeof(bool));
		vms += r->hypervisor[i].vms.len;
	}
	int status = assign_vms(r, o.assigned);
	out->host = r->host;
	out->vm = mem_new(vms, sizeof *out->vm);
	if (status == 0)
		status = add_guests(r, &o, out);
	if (status == 0)
		add_untraced(r, &o, out);
	free(o.assigned);
	free(o.number);
	return status;
}

void sync_result_release(struct sync_result *r)
{
	for (size_t i = 0; i < r->vms; i++) {
		struct sync_vm *vm = &r->vm[i];
		free(vm->name);
		free(vm->host_comm);
		free(vm->migrated_comm);
		free(vm->vcpu);
		free(vm->life);
		clock_map_release(&vm->clock);
	}
	free(r->vm);
	memset(r, 0, sizeof *r);
}
