/* Everybody who takes part in a recording: the host, its VMs, and the shells in those that are traced. */
#ifndef STEALSCOPE_RECORD_PARTICIPANTS_H
#define STEALSCOPE_RECORD_PARTICIPANTS_H

#include "record/session_facts.h"
#include "record/guest.h"
#include "record/host.h"
#include "record/record.h"

struct members {
	const struct record_options *o;
	struct host host;
	struct vm *vm;
	struct guest **guest;  /* [vms]: in the same order */
	size_t vms, hidden;
	struct cgroups **before, **after;  /* [vms + 1]: the last ones are the host's */
	struct guest_order order;
	char **event;          /* that guests are asked for */
	size_t events;
};

/* Looks who is there and who is wanted; refuses names that nobody has.  Call members_release() in any case. */
int members_init(struct members *p, const struct record_options *o, struct error *err);
void members_release(struct members *p);

/* Sends every guest that is wanted its script. */
void members_call(struct members *p, const char *task, unsigned hold, unsigned limit, bool turn);
/* Tells every guest that is in that state a word, which it has so many s to follow. */
void members_say(struct members *p, enum guest_state state, const char *word, unsigned patience);
/* Waits for whatever comes from guests, at most so many ns, and takes it. */
void members_listen(struct members *p, int64_t ns);
/* Is any guest still on its way to that state? */
bool members_waits_for(const struct members *p, enum guest_state state);

/* Who fell silent because its VM is gone: that is why. */
void members_tell_ends(struct members *p);

/* Takes leave of all guests, which then remove what they made. */
void members_leave(struct members *p);

void members_result(const struct members *p, struct record_result *r);
void say(const struct record_options *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

#endif
