/* Participants of a recording: the host, its VMs, and the sessions with the guests that are traced. */
#pragma once

#include "record/session_facts.h"
#include "record/guest.h"
#include "record/host.h"
#include "record/record.h"

struct participants {
	const struct record_options *o;
	struct host host;
	struct vm *vm;
	struct guest **guest;  /* [vms], in the same order */
	size_t vms, hidden;    /* hidden: number of processes that cannot be inspected */
	struct cgroups **before, **after;  /* [vms + 1]; the last entry is that of the host */
	struct guest_settings settings;  /* sent to all guests */
	struct guest_request_kinds guest_requests;  /* to record in all guests */
	char **event;          /* events requested from guests */
	size_t events;
};

/* Finds all VMs and the ones that the user selected. Unknown names are an error. Always call participants_release(). */
int participants_init(struct participants *p, const struct record_options *o, struct error *err);
void participants_release(struct participants *p);

/* Sends the script to every selected guest; arguments as in struct guest_settings. */
void participants_start(struct participants *p, const char *task, unsigned hold, unsigned limit, bool overwrite);
/* Sends a command to every guest in this state; timeout: s, as in guest_send_command(). */
void participants_send_command(struct participants *p, enum guest_state state, const char *word, unsigned timeout);
/* Waits at most `ns` for data from guests and handles it. */
void participants_poll(struct participants *p, int64_t ns);
/* Returns true if an open guest has not reached this state. */
bool participants_pending(const struct participants *p, enum guest_state state);

/* Replaces the error of a guest that stopped answering if the VM has ended. */
void participants_explain_failures(struct participants *p);

/* Ends the scripts in all guests, which remove their tracefs instances. */
void participants_disconnect(struct participants *p);

/* Fills in the results of the host and all guests. */
void participants_result(const struct participants *p, struct record_result *r);
/* Formats a message and passes it to o->on_message(). */
void report_progress(const struct record_options *o, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
