/* What recordings left that were killed: here, in the guests that they went into, and in those that are named. */
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "record/journal.h"
#include "record/members.h"
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
	while (members_waits_for(p, GUEST_ENDED))
		members_listen(p, TICK);
	for (size_t i = 0; i < n; i++) {
		if (guest[i]->erased)
			say(o, "%s: removed what %u recordings left", guest[i]->vm->name, guest[i]->erased);
		if (guest[i]->left || guest[i]->state == GUEST_FAILED)
			say(o, "%s: %s", guest[i]->vm->name, guest[i]->left ? "something there is still in use" : guest[i]->why.text);
		else if (wished && guest[i]->state == GUEST_ENDED && !guest[i]->erased)
			say(o, "%s: nothing was left there", guest[i]->vm->name);
	}
}

static void clean_state(const struct record_options *o, const struct journal *s, const struct guest_order *order)
{
	struct vm *vm = mem_new(s->guests, sizeof *vm);
	struct guest **guest = mem_new(s->guests, sizeof *guest);
	size_t n = 0;
	for (size_t i = 0; i < s->guests; i++) {
		struct transport by;
		if (transport_parse(s->guest[i].transport, &by, NULL))
			continue;
		vm[n].name = s->guest[i].name;
		guest[n] = mem_new(1, sizeof **guest);
		guest_init(guest[n], &vm[n], by);
		guest_call(guest[n++], order);
	}
	struct members p = { .o = o, .guest = guest, .vms = n };
	await_cleaned(&p, false);
	for (size_t i = 0; i < n; i++) {
		guest_release(guest[i]);
		free(guest[i]);
	}
	free(guest);
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
	const struct guest_order order = { .task = "clean", .clocks = "", .hold = 1, .limit = PATIENCE };
	size_t n, left;
	struct journal *stale = journal_stale(o->root, &n);
	const size_t erased = tracer_clean(o->root, &left);
	if (erased)
		say(o, "host: removed what %zu recordings left", erased);
	else if (err && !left)
		say(o, "host: nothing was left there");
	for (size_t i = 0; i < n; i++) {
		clean_state(o, &stale[i], &order);
		unlink(stale[i].path);
		journal_release(&stale[i]);
	}
	free(stale);
	if (err && o->wishes && clean_wished(o, err))
		return -1;
	if (left)
		return error_set(err, STATUS_SYSTEM, "end what reads it: fuser -v /sys/kernel/tracing/instances/*",
		                 "host: %zu instances of dead recordings are still in use", left);
	return 0;
}
