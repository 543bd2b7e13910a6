#include "record/participants.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/mem.h"
#include "base/clock.h"
#include "record/events.h"
#include "record/proc.h"

#define LEAVE_PATIENCE 4000000000  /* ns */

void say(const struct record_options *o, const char *fmt, ...)
{
	char line[1024];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	if (o->say)
		o->say(o->arg, line);
}

/* ---- who is there, who is wanted */

static bool is_called(const struct vm *vm, const char *name)
{
	uint64_t pid;
	return strcmp(vm->name, name) == 0 || (vm->uuid && strcmp(vm->uuid, name) == 0) ||
	       (proc_is_number(name, INT32_MAX, &pid) && (int32_t)pid == vm->pid);
}

static int refuse_name(const struct members *p, const char *name, struct error *err)
{
	char all[240] = "";
	for (size_t i = 0; i < p->vms; i++) {
		const size_t used = strlen(all);
		snprintf(all + used, sizeof all - used, "%s%s", i ? ", " : "these run: ", p->vm[i].name);
	}
	return error_set(err, STATUS_INPUT, *all ? all : "virsh list, or ps", "%s: no virtual machine of that name runs here",
	                 name);
}

static int check_wishes(const struct members *p, struct error *err)
{
	for (size_t i = 0; i < p->o->wishes; i++) {
		size_t k = 0;
		while (k < p->vms && !is_called(&p->vm[k], p->o->wish[i].name))
			k++;
		if (k == p->vms)
			return refuse_name(p, p->o->wish[i].name, err);
	}
	if (p->vms == 0 && !p->o->host_only)
		return error_set(err, STATUS_INPUT, p->hidden ? "as root, or with CAP_SYS_PTRACE"
		                                              : "start one; --host-only records the host all the same",
		                 "no virtual machine runs here%s", p->hidden ? " that may be seen" : "");
	return 0;
}

static const struct record_wish *wish_of(const struct members *p, const struct vm *vm)
{
	for (size_t i = 0; i < p->o->wishes; i++)
		if (is_called(vm, p->o->wish[i].name))
			return &p->o->wish[i];
	return NULL;
}

static void fail_for_way(struct guest *g)
{
	const char *vm = g->vm->name;
	char *mend = mem_printf("say one: %.40s=ssh:root@HOST, =qga:, =vsock::PORT, =agent: or =cmd:COMMAND; "
	                        "%.40s=none does without", vm, vm);
	guest_fail(g, mend, "no way into it is known");
	free(mend);
}

static int add_guest(struct members *p, size_t i, struct error *err)
{
	const struct vm *vm = &p->vm[i];
	const struct record_wish *wish = wish_of(p, vm);
	struct transport by = { 0 };
	if (wish && wish->transport) {
		if (transport_parse(wish->transport, &by, err))
			return -1;
	} else {
		by = transport_guess(vm);
	}
	struct guest *g = p->guest[i] = mem_new(1, sizeof *g);
	guest_init(g, vm, by);
	const bool declined = wish && wish->transport && by.kind == TRANSPORT_NONE;
	g->asked = !p->o->host_only && !declined && (wish || p->o->wishes == 0);
	if (!g->asked)
		g->by.kind = TRANSPORT_NONE;
	struct error why = ERROR_INIT;
	if (transport_resolve(&g->by, vm, p->o->root, &why))
		guest_fail(g, why.mend, "%s", why.text);
	else if (g->asked && g->by.kind == TRANSPORT_NONE)
		fail_for_way(g);
	return 0;
}

int members_init(struct members *p, const struct record_options *o, struct error *err)
{
	*p = (struct members){ .o = o, .host.folder = -1 };
	for (size_t i = 0; i < o->events; i++)
		if (!event_is_name(o->event[i]))
			return error_set(err, STATUS_USAGE, "-e SYSTEM:NAME, as -e block:block_plug", "%s: not an event", o->event[i]);
	p->vm = vms_find(o->root, &p->vms, &p->hidden);
	p->guest = mem_new(p->vms, sizeof *p->guest);
	p->before = mem_new(p->vms + 1, sizeof *p->before);
	p->after = mem_new(p->vms + 1, sizeof *p->after);
	if (check_wishes(p, err) || host_init(&p->host, o->root, o->clock, o->event, o->events, err))
		return -1;
	for (size_t i = 0; i < p->vms; i++)
		if (add_guest(p, i, err))
			return -1;
	p->event = events_wanted(SIDE_GUEST, NULL, o->event, o->events, &p->events);
	return 0;
}

void members_release(struct members *p)
{
	for (size_t i = 0; i < p->vms; i++) {
		if (p->guest[i])
			guest_release(p->guest[i]);
		free(p->guest[i]);
	}
	for (size_t i = 0; p->before && i <= p->vms; i++) {
		cgroups_free(p->before[i]);
		cgroups_free(p->after[i]);
	}
	host_release(&p->host);
	events_free(p->event, p->events);
	free(p->guest);
	free(p->before);
	free(p->after);
	vms_free(p->vm, p->vms);
}

/* ---- all of them */

void members_call(struct members *p, const char *task, unsigned hold, unsigned limit, bool turn)
{
	p->order = (struct guest_order){
		.task = task, .clocks = p->host.tsc ? "x86-tsc mono" : "mono",
		.event = (const char *const *)p->event, .events = p->events, .hold = hold, .limit = limit, .turn = turn,
	};
	for (size_t i = 0; i < p->vms; i++)
		if (p->guest[i]->state == GUEST_NONE && p->guest[i]->by.kind != TRANSPORT_NONE)
			guest_call(p->guest[i], &p->order);
}

void members_say(struct members *p, enum guest_state state, const char *word, unsigned patience)
{
	for (size_t i = 0; i < p->vms; i++)
		if (p->guest[i]->state == state)
			guest_say(p->guest[i], word, patience);
}

void members_listen(struct members *p, int64_t ns)
{
	struct pollfd *fd = mem_new(2 * p->vms + 1, sizeof *fd);
	nfds_t n = 0;
	for (size_t i = 0; i < p->vms; i++) {
		const struct guest *g = p->guest[i];
		if (guest_is_open(g) && g->state != GUEST_SENT)
			fd[n++] = (struct pollfd){ g->channel.out, POLLIN, 0 };
	}
	const struct timespec t = { ns / 1000000000, ns % 1000000000 };
	ppoll(fd, n, &t, NULL);
	for (size_t i = 0; i < p->vms; i++)
		if (guest_is_open(p->guest[i]))
			guest_listen(p->guest[i]);
	free(fd);
}

bool members_waits_for(const struct members *p, enum guest_state state)
{
	for (size_t i = 0; i < p->vms; i++)
		if (guest_is_open(p->guest[i]) && p->guest[i]->state < state)
			return true;
	return false;
}

static bool has_ended(const struct members *p, const struct vm *vm)
{
	char *state = proc_stat_word(p->o->root, vm->pid, vm->pid, 0);
	const bool ended = !state || *state == 'Z' || *state == 'X';
	free(state);
	return ended;
}

void members_tell_ends(struct members *p)
{
	for (size_t i = 0; i < p->vms; i++) {
		struct guest *g = p->guest[i];
		if (g->state == GUEST_FAILED && g->fell_silent && has_ended(p, g->vm))
			error_set(&g->why, STATUS_INPUT, "what the host saw of it is there", "its virtual machine ended");
	}
}

void members_leave(struct members *p)
{
	const int64_t patience = now_ns() + LEAVE_PATIENCE;
	bool there = true;
	for (size_t i = 0; i < p->vms; i++) {
		if (!p->guest[i])
			continue;
		guest_say(p->guest[i], "bye", 0);
		channel_close_input(&p->guest[i]->channel);
	}
	while (there && now_ns() < patience) {
		const struct timespec t = { 0, 5000000 };
		there = false;
		for (size_t i = 0; i < p->vms; i++) {
			int status;
			if (p->guest[i] && p->guest[i]->channel.pid)
				there |= !channel_ended(&p->guest[i]->channel, &status);
		}
		if (there)
			nanosleep(&t, NULL);
	}
}

/* ---- what came of it */

static struct record_machine result_of_host(const struct members *p)
{
	const struct host *h = &p->host;
	struct record_machine m = { .name = mem_dup("host"), .through = mem_dup("tracefs"), .asked = true,
		.recorded = h->started.known, .bytes = h->bytes, .lost = h->lost, .cpus = h->tracer ? tracer_cpus(h->tracer) : 0 };
	m.about = h->forecast.kilobytes
		? mem_printf("%zu events, clock %s, %llu KiB a CPU", h->events, host_clock(h),
		             (unsigned long long)h->forecast.kilobytes)
		: mem_printf("%zu events, clock %s", h->events, host_clock(h));
	return m;
}

static struct record_machine result_of_guest(const struct guest *g)
{
	char *release = guest_field(g, "osrelease"), *clock = guest_field(g, "clock");
	struct record_machine m = { .name = mem_dup(g->vm->name), .through = transport_text(&g->by), .asked = g->asked,
		.recorded = g->state == GUEST_SENT, .bytes = g->bytes, .lost = g->lost, .cpus = g->vm->vcpus, .why = g->why };
	if (release && clock)
		m.about = mem_printf("Linux %.40s, clock %.20s", release, clock);
	else
		m.about = mem_dup("");
	free(release);
	free(clock);
	return m;
}

void members_result(const struct members *p, struct record_result *r)
{
	r->machine = mem_new(p->vms + 1, sizeof *r->machine);
	r->machines = 0;
	r->whole = true;
	r->machine[r->machines++] = result_of_host(p);
	for (size_t i = 0; i < p->vms; i++)
		if (p->guest[i])
			r->machine[r->machines++] = result_of_guest(p->guest[i]);
	for (size_t i = 0; i < r->machines; i++)
		r->whole &= !r->machine[i].asked || (r->machine[i].recorded && !r->machine[i].lost);
}

void record_release(struct record_result *r)
{
	for (size_t i = 0; i < r->machines; i++) {
		free(r->machine[i].name);
		free(r->machine[i].through);
		free(r->machine[i].about);
	}
	free(r->machine);
	r->machine = NULL;
	r->machines = 0;
}
