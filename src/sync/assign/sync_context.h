/* The state of a synchronization, shared by sync.c, match_scoring.c, vm_assignment.c and sync_result.c
 * (private to sync/). */
#ifndef STEALSCOPE_SYNC_ASSIGN_SYNC_CONTEXT_H
#define STEALSCOPE_SYNC_ASSIGN_SYNC_CONTEXT_H

#include <stdatomic.h>

#include "sync/assign/guest_vm_match.h"

#define NOBODY SIZE_MAX

/* A machine that may run VMs. */
struct hypervisor {
	const struct trace *trace;
	size_t guest;        /* index: it may be a guest itself; NOBODY: it is the host */
	struct map known;    /* TIDs of it that the user's hints or its tracer name */
	struct host_view view;
	struct vm_list vms;
	bool *done;          /* which of vms.vm[] some guest has got */
};

struct sync_work {
	const struct sync_options *options;
	struct notes *notes;
	struct error *err;
	const struct trace *host;  /* NULL: there is none, or several claim to be */
	struct hypervisor *hypervisor;
	size_t hypervisors;
	struct guest_view *guest;  /* those that are hypervisors first */
	size_t guests;
	unsigned workers;
	struct match *match;       /* candidates */
	size_t matches, match_cap;
	/* while things are done side by side */
	struct guest_search *search;        /* one per guest */
	size_t *order;             /* the guests, those with the most events first */
	struct error *load_err;    /* of each hypervisor, then of each guest */
	const char *phase;
	size_t total;
	atomic_size_t done;        /* machines loaded, or VMs tried */
	atomic_size_t left;        /* guests that are still searched for */
	atomic_bool cancelled;
};

const struct sync_hint *hint_of(const struct sync_work *r, size_t guest);  /* or NULL */
const char *name_in_process(const struct vm_view *vm);               /* "qemu:Debian" -> "Debian"; or NULL */

/* Is that trace the machine which the hint calls the parent? Without a word about it, threads are the host's. */
bool is_parent(const struct sync_hint *hint, const struct trace *trace);
/* By that clock, nothing that the guest recorded is of the time of the machine that would run it. */
bool is_apart(const struct sync_work *r, const struct match *m);
/* So many tasks side by side, `total` pieces of work in all. */
int run_tasks(struct sync_work *r, const char *phase, int (*task)(void *arg, size_t i), size_t tasks, size_t total);

/* Fills r->match. */
int find_candidates(struct sync_work *r);
/* Decides which candidates are right: won[guest] is one of r->match, or NULL.  Finds r->host. */
int find_winners(struct sync_work *r, struct match **won);
/* Why this guest has no clock, of the best candidate; when the winners are known. */
const char *doubt_of(const struct sync_work *r, size_t guest);
/* Some guest has got it; a VM that has moved is both that it was. */
bool vm_is_done(const struct hypervisor *h, size_t vm);
void vm_set_done(struct hypervisor *h, size_t vm);
/* Fills *out with these. */
int fill_result(struct sync_work *r, struct sync_result *out);

#endif
