/* What recordings left that were killed: here, in the guests that they went into, and in those that are named. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "record/journal.h"
#include "record/participants.h"
#include "record/record.h"
#include "record/tracer.h"

#define TICK 100000000  /* ns */
#define PATIENCE 60     /* s that a guest goes on without a word */

/* wished: somebody asked for it, and is told also that there was nothing. */
static void await_cleaned(struct members *p, bool wished)
{
	const struct record_options *o = p->o;
	struct guest **guest = p->guest;
	const size_t n = p->vms;
	while (members_waits_for(p, GUEST_ENDED) && !(o->stop && *o->stop))
		members_listen(p, TICK);
	for (size_t i = 0; i < n; i++) {
		if (!wished && guest[i]->by.kind == TRANSPORT_AGENT && guest[i]->state == GUEST_ENDED)
			say(o, "%s: its agent has put its events off; if tracing_on is 0 there, trace-cmd reset mends it",
			    guest[i]->vm->name);
		if (guest[i]->erased)
			say(o, "%s: removed what %u recording%s left", guest[i]->vm->name, guest[i]->erased,
			    guest[i]->erased == 1 ? "" : "s");
		if (guest[i]->left || guest[i]->state == GUEST_FAILED)
			say(o, "%s: %s", guest[i]->vm->name, guest[i]->left ? "something there is still in use" : guest[i]->why.text);
		else if (wished && guest[i]->state == GUEST_ENDED && !guest[i]->erased)
			say(o, "%s: nothing was left there", guest[i]->vm->name);
	}
}

static bool is_called_already(const struct members *p, const struct transport *by)
{
	char *text = transport_text(by);
	bool is = false;
	for (size_t i = 0; i < p->vms && !is; i++) {
		char *other = transport_text(&p->guest[i]->by);
		is = strcmp(text, other) == 0;
		free(other);
	}
	free(text);
	return is;
}

/* Into the guest of a dead recording, of which nothing is known but its name and the way. */
static void call_again(struct members *p, const struct state_guest *s, struct vm *vm)
{
	static const struct guest_order shells = { .task = "clean", .clocks = "", .hold = 1, .limit = PATIENCE },
	                                agents = { .task = "reset", .clocks = "", .hold = 1, .limit = PATIENCE };
	struct transport by;
	if (transport_parse(s->transport, &by, NULL))
		return;
	if (is_called_already(p, &by)) {
		transport_release(&by);
		return;
	}
	vm->name = s->name;
	struct guest *g = p->guest[p->vms++] = mem_new(1, sizeof *g);
	guest_init(g, vm, by);
	guest_call(g, by.kind == TRANSPORT_AGENT ? &agents : &shells);
}

/* The guests of all dead recordings, at the same time. */
static void clean_guests(const struct record_options *o, const struct journal *stale, size_t n)
{
	size_t most = 0;
	for (size_t i = 0; i < n; i++)
		most += stale[i].guests;
	if (!most)
		return;
	struct vm *vm = mem_new(most, sizeof *vm);
	struct members p = { .o = o, .guest = mem_new(most, sizeof *p.guest) };
	say(o, "looking after what a recording left that was killed");
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < stale[i].guests; k++)
			call_again(&p, &stale[i].guest[k], &vm[p.vms]);
	await_cleaned(&p, false);
	for (size_t i = 0; i < p.vms; i++) {
		guest_release(p.guest[i]);
		free(p.guest[i]);
	}
	free(p.guest);
	free(vm);
}

/* Those that the user names, whatever any file says of them. */
static int clean_wished(const struct record_options *o, struct error *err)
{
	struct members p;
	const int rc = members_init(&p, o, err);
	if (rc == 0) {
		members_call(&p, "clean", 1, PATIENCE, false);
		await_cleaned(&p, true);
	}
	members_release(&p);
	return rc;
}

int record_cleanup(const struct record_options *o, struct error *err)
{
	size_t n, left;
	struct journal *stale = journal_stale(o->root, &n);
	const size_t erased = tracer_clean(o->root, &left);
	if (erased)
		say(o, "host: removed what %zu recording%s left", erased, erased == 1 ? "" : "s");
	else if (err && !left)
		say(o, "host: nothing was left there");
	clean_guests(o, stale, n);
	for (size_t i = 0; i < n; i++) {
		if (!(o->stop && *o->stop))
			unlink(stale[i].path);
		journal_release(&stale[i]);
	}
	free(stale);
	if (err && o->wishes && clean_wished(o, err))
		return -1;
	if (left)
		return error_set(err, STATUS_SYSTEM, "end what reads it: fuser -v /sys/kernel/tracing/instances/*",
		                 "host: %zu instance%s of dead recordings still in use", left,
		                 left == 1 ? " is" : "s are");
	return 0;
}
