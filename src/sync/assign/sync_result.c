/* From the candidates that won to the result: which guest is which VM of which machine, and every clock to the host's. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/timefmt.h"
#include "sync/assign/pair_delays.h"
#include "sync/assign/sync_context.h"

/* ---- the result */

static bool name_taken(const struct sync_result *out, const char *name)
{
	for (size_t i = 0; i < out->vms; i++)
		if (out->vm[i].name && strcmp(out->vm[i].name, name) == 0)
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

/* "qemu:Debian" -> "Debian"; else "VM <pid>", or by its first vCPU's thread where there are no PIDs. */
static char *name_of_process(const struct sync_result *out, const struct hypervisor *h, const struct vm_view *vm)
{
	char fallback[32];
	if (vm->pid >= 0)
		snprintf(fallback, sizeof fallback, "VM %d", (int)vm->pid);
	else
		snprintf(fallback, sizeof fallback, "VM of TID %d", (int)h->view.thread[vm->vcpu[0].thread].tid);
	const char *name = vm->given ? vm->given : name_in_process(vm);
	return unique_name(out, name ? name : fallback);
}

static void tell_move(struct sync_work *r, const struct sync_vm *vm, const struct hypervisor *h, const struct vm_view *view)
{
	char at[TIME_TEXT], still[TIME_TEXT];
	const struct vm_move *m = &view->moved;
	const struct vm_view *to = &h->vms.vm[m->of[1]];
	notes_add_at(r->notes, NOTE_FACT, vm->name, m->at[0], m->at[1],
	             "it moved from process %d to %d (%s) at %s (host), and stood still for %s (migration)", (int)view->pid,
	             (int)to->pid, to->comm, time_clock(at, m->at[0], 6), time_duration(still, m->at[1] - m->at[0]));
}

/* outer: the clock of the machine that runs it, NULL = the host's. */
static void fill_vcpus(struct sync_vm *vm, const struct hypervisor *h, const struct vm_view *view,
                       const struct clock_map *outer)
{
	vm->vcpu = mem_new(view->vcpus, sizeof *vm->vcpu);
	vm->life = mem_new(view->vcpus, sizeof *vm->life);
	vm->vcpus = view->vcpus;
	for (size_t i = 0; i < view->vcpus; i++) {
		const struct vthread *th = &h->view.thread[view->vcpu[i].thread];
		const bool moves = vm_has_moved(view), moved = moves && i % 2 == 1;
		vm->vcpu[i] = (struct sync_vcpu){ view->vcpu[i].number, th->tid, view->vcpu[i].evidence, moved };
		vm->life[i] = (struct sync_life){ moved ? view->moved.at[1] : th->earliest,
		                                  moves && !moved ? view->moved.at[0] : th->to };
		if (outer)
			vm->life[i].from = clock_map_at(outer, vm->life[i].from);
		if (outer && vm->life[i].to != INT64_MAX)
			vm->life[i].to = clock_map_at(outer, vm->life[i].to);
	}
	vm->host_pid = view->pid;
	vm->host_comm = mem_dup(view->comm);
	if (!vm_has_moved(view))
		return;
	const struct vm_view *to = &h->vms.vm[view->moved.of[1]];
	vm->moved_pid = to->pid;
	vm->moved_comm = mem_dup(to->comm);
}

static struct sync_vm *new_vm(struct sync_result *out)
{
	struct sync_vm *vm = &out->vm[out->vms++];
	*vm = (struct sync_vm){ .host_pid = -1, .moved_pid = -1, .method = SYNC_NONE, .band_events = -1, .band_containment = -1,
		.containment = -1, .worst_violation = -1 };
	return vm;
}

/* The clock that nothing is known of: identity, quality ABSENT.  Where that puts nothing of the guest beside its host, both
 * traces begin together: else all rows would be a hair's breadth wide. */
static void unknown_clock(const struct sync_work *r, size_t guest, struct clock_map *map)
{
	const struct trace_info *host = r->host ? trace_info(r->host) : NULL;
	const int64_t begin = r->guest[guest].begin;
	const bool apart = host && host->begin <= host->end && r->guest[guest].sane &&
		(r->guest[guest].end < host->begin || begin > host->end);
	map->piece = mem_new(1, sizeof *map->piece);
	map->pieces = 1;
	struct clock_line line = { begin, apart ? host->begin : begin, 0 };
	map->piece[0] = (struct clock_piece){ .from = begin, .line = line, .lowest = line, .highest = line };
}

/* The user moves the clock by hand: how well it contains then tells whether that was wise. */
static int nudge_match(struct sync_work *r, size_t guest, struct match *m)
{
	const struct sync_hint *hint = hint_of(r, guest);
	if (!hint || hint->nudge == 0)
		return 0;
	if (!m) {
		notes_add(r->notes, NOTE_FACT, hint->guest, "its nudge is left out, there is no clock to add it to");
		return 0;
	}
	double before = m->share;
	clock_map_shift(&m->h.clock, hint->nudge);
	if (match_prove(&r->hypervisor[m->hypervisor].view, &r->guest[guest], m, r->err) != 0)
		return -1;
	if (before < 0 || m->share < 0)
		notes_add(r->notes, NOTE_FACT, hint->guest, "its clock is nudged by %+lld ns", (long long)hint->nudge);
	else
		notes_add(r->notes, NOTE_FACT, hint->guest, "its clock is nudged by %+lld ns; %.3f %% of its events were within "
		          "guest mode, now %.3f %% are (%+.3f)", (long long)hint->nudge, before * 100, m->share * 100,
		          (m->share - before) * 100);
	return 0;
}

/* Another rate than before, as no oscillator changes it, for so short a time that a step may look like it? */
static bool is_sharp(const struct clock_map *clock, size_t i, const struct trace_info *guest)
{
	const struct clock_piece *p = &clock->piece[i];
	const int64_t before = p->from - (i > 1 ? p[-1].from : guest->begin);
	const int64_t after = (i + 1 < clock->pieces ? p[1].from : guest->end) - p->from;
	const double turn = fabs(clock_line_ppm(&p->line) - clock_line_ppm(&p[-1].line));
	return turn > BEND_PPM && turn / 1e6 * (double)(before < after ? before : after) <= DOUBTED_NS && !fit_jumps(clock, i);
}

/* A clock of parts, one of which other lines fit as well: its pairs are with the windows that this line chose.  So they are
 * where some contradict the line.  Or one that bends where it may have stepped. */
static bool is_doubted_part(const struct clock_map *clock, const struct trace_info *guest)
{
	for (size_t i = 0; i < clock->pieces; i++) {
		const struct clock_piece *p = &clock->piece[i];
		const bool differs = clock->pieces > 1 || p->rejected > 0;
		if ((p->quality == SYNC_APPROXIMATE && differs) || (i > 0 && is_sharp(clock, i, guest)))
			return true;
	}
	return false;
}

/* Synchronization events that contradict the others were left out, and what the others say puts more than these, and one in
 * a hundred of all that the guest did, out of guest mode: those left out may be the true ones. */
static bool is_untrue(const struct containment *c, const struct clock_map *clock)
{
	uint64_t rejected = 0;
	for (size_t i = 0; i < clock->pieces; i++)
		rejected += clock->piece[i].rejected;
	return rejected > 0 && c->outside > c->missing + rejected &&
	       containment_notable(c, c->outside - c->missing - rejected);
}

/* Pairs by containment may agree and be wrong: that events lie out of guest mode wherever in the corridor the clock is
 * shows it.  By how much it is wrong, and where, nothing tells; nor if it is adrift. */
static void judge_corridor(const struct match *m, struct clock_map *clock, const struct trace_info *guest)
{
	const bool by_containment = m->method == SYNC_CONTAINMENT;
	const bool is_wrong = m->h.adrift || (!by_containment ? is_untrue(&m->proof, clock)
		: m->proof.refuted > 0 || (m->proof.outside > 0 && is_doubted_part(clock, guest)));
	for (size_t i = 0; i < clock->pieces && is_wrong; i++) {
		struct clock_piece *p = &clock->piece[i];
		p->quality = p->quality == SYNC_ACCURATE ? SYNC_APPROXIMATE : p->quality;
		p->low.points = p->high.points = 0;
	}
}

static void take_match(struct sync_work *r, struct sync_vm *vm, struct match *m)
{
	vm->guest = r->guest[m->guest].trace;
	delays_fill(&vm->delays, m, vm->guest);
	vm->clock = m->h.clock;
	m->h.clock = (struct clock_map){ .piece = NULL };
	const struct sync_hint *hint = hint_of(r, m->guest);
	const bool is_found = m->method == SYNC_CONTAINMENT || m->method == SYNC_EVENTS || m->method == SYNC_AUTO;
	if (is_found && (!hint || hint->nudge == 0))  /* else the user knows better */
		judge_corridor(m, &vm->clock, trace_info(vm->guest));
	vm->method = r->options->method == SYNC_NONE && !r->options->audit ? SYNC_NONE : m->method;
	vm->pairs = m->h.pairs;
	vm->unmatched = m->unmatched;
	vm->band_events = m->band_events;
	vm->band_containment = m->band_containment;
	vm->containment = m->share;
	vm->inside = m->proof.inside;
	vm->outside = m->proof.outside;
	vm->refuted = m->proof.refuted;
	vm->adrift = m->h.adrift;
	vm->worst_violation = m->share < 0 ? -1 : m->proof.worst;
}

/* Events lie where the clock may have jumped before them or after them. */
static void note_unsure(struct sync_work *r, const struct sync_vm *vm, const struct clock_piece *p)
{
	int64_t low, high, unused;
	char from[TIME_TEXT], to[TIME_TEXT], by[TIME_TEXT];
	if (p->placed || p->unsure_from >= p->unsure_to ||
	    !clock_map_bounds(&vm->clock, p->unsure_from, &low, &unused) ||
	    !clock_map_bounds(&vm->clock, p->unsure_to - 1, &unused, &high))
		return;
	time_clock(from, low, 6);
	time_clock(to, high, 6);
	if (p->repeats)
		notes_add_at(r->notes, NOTE_CLOCK, vm->name, low, high, "nothing tells when within %s .. %s its clock was set "
		             "back: what happened then is unknown", from, to);
	else
		notes_add_at(r->notes, NOTE_CLOCK, vm->name, low, high, "nothing tells when within %s .. %s its clock jumped; its "
		             "times there may be off by %s", from, to,
		             time_duration(by, clock_map_band(&vm->clock, p->unsure_from)));
}

/* Near the ends of its trace there may be too little to tell: said where it is as much as a report shows. */
static void note_ends(struct sync_work *r, const struct sync_vm *vm)
{
	const struct clock_map *c = &vm->clock;
	const struct trace_info *info = trace_info(vm->guest);
	const uint64_t length = (uint64_t)sync_span_ns(info);
	if (c->known_from == c->known_to)
		return;
	const struct { int64_t from, to; const char *when; } end[] = {
		{ info->begin, c->known_from, "before" }, { c->known_to, info->end, "after" },
	};
	for (int i = 0; i < 2; i++) {
		char at[TIME_TEXT];
		const int64_t from = clock_map_at(c, end[i].from), to = clock_map_at(c, end[i].to);
		if (end[i].to > end[i].from && (uint64_t)end[i].to - (uint64_t)end[i].from >= length)
			notes_add_at(r->notes, NOTE_CLOCK, vm->name, from, to, "its events would not tell if its clock stepped "
			             "%s %s: its times there are wrong then, nobody knows by how much", end[i].when,
			             time_clock(at, i == 0 ? to : from, 6));
	}
}

static void describe(struct sync_work *r, const struct sync_vm *vm)
{
	char worst[TIME_TEXT], which[64];
	uint64_t rejected = 0;
	for (size_t i = 0; i < vm->clock.pieces; i++)
		rejected += vm->clock.piece[i].rejected;
	if (rejected > 0)
		notes_add(r->notes, NOTE_FACT, vm->name,
		          "%s contradict%s the others and %s left out",
		          text_of_all(which, rejected, vm->pairs, "synchronization pair"), rejected == 1 ? "s" : "",
		          rejected == 1 ? "was" : "were");
	for (size_t i = 1; i < vm->clock.pieces; i++) {
		int64_t at = vm->clock.piece[i].from;
		int64_t step = clock_line_at(&vm->clock.piece[i].line, at) - clock_line_at(&vm->clock.piece[i - 1].line, at);
		char clock[TIME_TEXT], by[TIME_TEXT];
		int64_t host = clock_map_at(&vm->clock, at);
		notes_add_at(r->notes, NOTE_FACT, vm->name, host, host,
		             "its clock changes against the host's at %s (host; %lld ns of its own) by %s (%+lld "
		             "ns, drift %+.3f -> %+.3f ppm): a pause, a step or another rate",
		             time_clock(clock, host, 6), (long long)at, time_duration(by, step), (long long)step,
		             clock_line_ppm(&vm->clock.piece[i - 1].line), clock_line_ppm(&vm->clock.piece[i].line));
		note_unsure(r, vm, &vm->clock.piece[i]);
	}
	if (vm->containment >= 0 && vm->containment < 0.99)
		notes_add(r->notes, NOTE_CLOCK, vm->name,
		          "only %.2f %% of its events lie within guest mode of its vCPUs; do not trust its clock",
		          vm->containment * 100);
	bool approximate = false;
	for (size_t i = 0; i < vm->clock.pieces; i++)
		approximate = approximate || vm->clock.piece[i].quality == SYNC_APPROXIMATE;
	if (vm->refuted > 0 && (vm->method == SYNC_CONTAINMENT ? approximate : vm->adrift))
		notes_add(r->notes, NOTE_CLOCK, vm->name, "%llu of its events lie out of guest mode by up to %s, whatever its "
		          "pairs allow: its clock is wrong there, nobody knows by how much", (unsigned long long)vm->refuted,
		          time_duration(worst, vm->worst_violation));
	else if (vm->method == SYNC_CONTAINMENT && vm->outside > 0 && is_doubted_part(&vm->clock, trace_info(vm->guest)))
		notes_add(r->notes, NOTE_CLOCK, vm->name, "%llu of its events lie out of guest mode by up to %s, and other clocks "
		          "fit parts of them as well: its clock is wrong there, nobody knows by how much",
		          (unsigned long long)vm->outside, time_duration(worst, vm->worst_violation));
	else if (vm->adrift)
		notes_add(r->notes, NOTE_CLOCK, vm->name, "its events would not tell if its clock stepped while it was traced: "
		          "its times are wrong then, nobody knows by how much");
	else if (vm->method == SYNC_CONTAINMENT && approximate)
		notes_add(r->notes, NOTE_CLOCK, vm->name,
		          "other clocks fit its events as well; its times are right within the band, no better");
	if (!vm->adrift)
		note_ends(r, vm);
	const struct clock_line *first = &vm->clock.piece[0].line;
	if (vm->doubt)
		notes_add(r->notes, NOTE_CLOCK, vm->name, "its clock cannot be told (%s); %s", vm->doubt,
		          first->ref_guest == first->ref_host ? "its times are its own"
		          : "it is shown as if its trace had begun with the host's");
}

/* Its clock is given, which VM it is it must show, or the user said so. */
static void note_homeless(struct sync_work *r, const struct sync_vm *vm, const struct match *m, bool apart)
{
	for (size_t i = 0; i < r->matches && m->vm == NOBODY; i++)
		if (r->match[i].guest == m->guest && r->match[i].h.doubt) {
			notes_add(r->notes, NOTE_DOUBT, vm->name, "which VM it is cannot be told (%s)", r->match[i].h.doubt);
			return;
		}
	if (apart)
		notes_add(r->notes, NOTE_DOUBT, vm->name, "by its clock nothing of it is of the host's time: no row of one says "
		          "anything of the other");
}

/* ---- machines in order: what runs a VM comes before it */

struct standing {
	struct match **won;   /* of each guest, or NULL */
	size_t *number;       /* of each guest: of its VM in the result + 1; 0: it has none yet */
};

/* The machine that runs a guest: proved, or said by the user; NOBODY when nothing is known of it. */
static size_t hypervisor_of(const struct sync_work *r, const struct standing *o, size_t guest)
{
	const struct sync_hint *hint = hint_of(r, guest);
	if (o->won[guest])
		return o->won[guest]->hypervisor;
	for (size_t h = 0; h < r->hypervisors && hint && hint->parent; h++)
		if (strcmp(trace_info(r->hypervisor[h].trace)->machine, hint->parent) == 0)
			return h;
	return NOBODY;
}

/* As struct sync_vm has it; NOBODY when that machine has no place in the result yet. */
static size_t parent_of(const struct sync_work *r, const struct standing *o, size_t hypervisor)
{
	if (hypervisor == NOBODY || r->hypervisor[hypervisor].trace == r->host)
		return 0;
	return o->number[r->hypervisor[hypervisor].guest] > 0 ? o->number[r->hypervisor[hypervisor].guest] : NOBODY;
}

/* A nudge is of the host's time. */
static void compose(struct clock_map *clock, const struct clock_map *outer, const struct sync_hint *hint)
{
	int64_t nudge = hint ? hint->nudge : 0;
	clock_map_shift(clock, -nudge);
	clock_map_compose(clock, outer);
	clock_map_shift(clock, nudge);
}

static int add_guest(struct sync_work *r, struct standing *o, size_t guest, size_t parent, struct sync_result *out)
{
	struct match *m = o->won[guest];
	struct sync_vm *vm = new_vm(out);
	const struct clock_map *outer = parent == 0 ? NULL : &out->vm[parent - 1].clock;
	o->number[guest] = out->vms;
	vm->guest = r->guest[guest].trace;
	vm->name = unique_name(out, trace_info(vm->guest)->machine);
	vm->parent = parent;
	int status = nudge_match(r, guest, m);
	const bool apart = m && is_apart(r, m);
	if (m)
		take_match(r, vm, m);
	if (m && m->vm != NOBODY)
		fill_vcpus(vm, &r->hypervisor[m->hypervisor], &m->view, outer);
	else
		vm->host_comm = mem_dup("");
	if (vm->clock.pieces == 0)
		unknown_clock(r, guest, &vm->clock);
	else if (outer)
		compose(&vm->clock, outer, hint_of(r, guest));
	if (m && vm_has_moved(&m->view) && !outer)
		tell_move(r, vm, &r->hypervisor[m->hypervisor], &m->view);
	if (parent > 0)
		notes_add(r->notes, NOTE_FACT, vm->name, "runs inside %s", out->vm[parent - 1].name);
	if (m)
		note_homeless(r, vm, m, apart);
	vm->doubt = m ? NULL : doubt_of(r, guest);
	describe(r, vm);
	return status;
}

/* A trace without events is no guest beside the VMs that the host knows: it is one of them, nobody can say which. */
static bool is_guest(const struct sync_work *r, const struct standing *o, size_t g)
{
	const struct trace *trace = r->guest[g].trace;
	return trace != r->host && (!r->host || o->won[g] || trace_info(trace)->events > 0);
}

/* Guests keep their names; VMs that nobody traced get what is left. */
static int add_guests(struct sync_work *r, struct standing *o, struct sync_result *out)
{
	size_t guests = 0, added = 1;
	for (size_t g = 0; g < r->guests; g++)
		guests += is_guest(r, o, g);
	while (out->vms < guests) {
		bool force = added == 0;  /* the user says that two run each other */
		added = 0;
		for (size_t g = 0; g < r->guests; g++) {
			size_t parent = parent_of(r, o, hypervisor_of(r, o, g));
			if (!is_guest(r, o, g) || o->number[g] > 0 || (parent == NOBODY && !force))
				continue;
			if (add_guest(r, o, g, parent == NOBODY ? 0 : parent, out) != 0)
				return -1;
			added++;
		}
	}
	return 0;
}

/* It has stopped for good, and another process may go on with it: from then on nothing is known of it. */
static void tell_may_move(struct sync_work *r, struct sync_vm *vm, const struct hypervisor *h, size_t v)
{
	char at[TIME_TEXT];
	for (size_t i = 0; i < h->vms.len; i++) {
		const struct vm_move *m = &h->vms.vm[i].moved;
		if (!vm_has_moved(&h->vms.vm[i]) || m->of[0] != v)
			continue;
		const struct vm_view *to = &h->vms.vm[m->of[1]];
		bool lives = false;
		for (size_t k = 0; k < vm->vcpus; k++) {
			lives |= vm->life[k].to > m->at[1];
			vm->life[k].to = vm->life[k].to < m->at[1] ? vm->life[k].to : m->at[1];
		}
		if (lives)
			notes_add_at(r->notes, NOTE_DOUBT, vm->name, m->at[0], INT64_MAX,
			             "it stands still from %s (host) on, and process %d (%s) began to run since: it may have moved "
			             "there, or be paused (a trace of the guest tells, or one -name guest= of both)",
			             time_clock(at, m->at[0], 6), (int)to->pid, to->comm);
	}
}

static void add_one_untraced(struct sync_work *r, const struct standing *o, size_t hypervisor, size_t v,
                             struct sync_result *out)
{
	struct hypervisor *h = &r->hypervisor[hypervisor];
	const struct vm_view *view = &h->vms.vm[v];
	struct sync_vm *vm = new_vm(out);
	vm->parent = parent_of(r, o, hypervisor);
	vm->name = name_of_process(out, h, view);
	fill_vcpus(vm, h, view, vm->parent == 0 ? NULL : &out->vm[vm->parent - 1].clock);
	if (vm_has_moved(view) && vm->parent == 0)
		tell_move(r, vm, h, view);
	else if (vm->parent == 0)
		tell_may_move(r, vm, h, v);
	vm_set_done(h, v);
}

/* Without its guest's events, the name of both processes proves that it has moved. */
static bool has_one_name(const struct hypervisor *h, const struct vm_view *view)
{
	const struct vm_view *a = &h->vms.vm[view->moved.of[0]], *b = &h->vms.vm[view->moved.of[1]];
	const char *before = a->given ? a->given : name_in_process(a), *after = b->given ? b->given : name_in_process(b);
	return before && after && strcmp(before, after) == 0;
}

static void add_untraced(struct sync_work *r, const struct standing *o, struct sync_result *out)
{
	for (size_t i = 0; i < r->hypervisors; i++) {
		const struct hypervisor *h = &r->hypervisor[i];
		for (size_t v = 0; v < h->vms.len; v++)
			if (vm_has_moved(&h->vms.vm[v]) && !vm_is_done(h, v) && has_one_name(h, &h->vms.vm[v]))
				add_one_untraced(r, o, i, v, out);
		for (size_t v = 0; v < h->vms.len; v++)
			if (!h->done[v] && !vm_has_moved(&h->vms.vm[v]))
				add_one_untraced(r, o, i, v, out);
	}
}

int fill_result(struct sync_work *r, struct sync_result *out)
{
	struct standing o = { .won = mem_new(r->guests, sizeof *o.won), .number = mem_new(r->guests, sizeof *o.number) };
	size_t vms = r->guests;
	for (size_t i = 0; i < r->hypervisors; i++) {
		r->hypervisor[i].done = mem_new(r->hypervisor[i].vms.len, sizeof(bool));
		vms += r->hypervisor[i].vms.len;
	}
	int status = find_winners(r, o.won);
	out->host = r->host;
	out->vm = mem_new(vms, sizeof *out->vm);
	if (status == 0)
		status = add_guests(r, &o, out);
	if (status == 0)
		add_untraced(r, &o, out);
	free(o.won);
	free(o.number);
	return status;
}

void sync_result_release(struct sync_result *r)
{
	for (size_t i = 0; i < r->vms; i++) {
		struct sync_vm *vm = &r->vm[i];
		free(vm->name);
		free(vm->host_comm);
		free(vm->moved_comm);
		free(vm->vcpu);
		free(vm->life);
		clock_map_release(&vm->clock);
	}
	free(r->vm);
	memset(r, 0, sizeof *r);
}
