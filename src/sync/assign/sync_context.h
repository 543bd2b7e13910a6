/* A synchronization's state, shared by sync.c, match_scoring.c, vm_assignment.c and sync_result.c (private to sync/). */
#pragma once

#include <stdatomic.h>

#include "sync/assign/guest_vm_match.h"

#define NO_INDEX SIZE_MAX

/* A machine that may run VMs. */
struct hypervisor {
	const struct trace *trace;
	size_t guest;          /* index of the guest that the machine may be; NO_INDEX: it is the host */
	struct map vcpu_tids;  /* TIDs of vCPUs given by the user's hints or the tracer */
	struct host_timeline timeline;
	struct vm_list vms;
	bool *is_assigned;          /* [i]: vms.vm[i] is assigned to a guest */
};

struct sync_context {
	const struct sync_options *options;
	struct notes *notes;
	struct error *err;
	const struct trace *host;  /* NULL: none, or several traces with ROLE_HOST */
	struct hypervisor *hypervisor;
	size_t hypervisors;
	struct guest_view *guest;  /* guests that run VMs come first */
	size_t guests;
	unsigned workers;
	struct match *match;       /* candidates */
	size_t matches, match_cap;
	/* State of the parallel searches: */
	struct guest_search *search;  /* one per guest */
	size_t *order;                /* the guests' indices, by descending event count */
	struct error *load_err;       /* one per task of load_machines() */
	const char *phase;
	size_t total;
	atomic_size_t done;        /* machines loaded, or VMs tried */
	atomic_size_t pending_searches;        /* guests with a running or pending search */
	atomic_bool cancelled;
};

const struct sync_hint *hint_of(const struct sync_context *r, size_t guest);  /* Returns the user's hint; NULL: none. */
/* Returns "Debian" for the process name "qemu:Debian"; NULL: no such suffix. */
const char *name_in_process(const struct vm_candidate *vm);

/* Returns true if the trace belongs to the hint's parent machine; a hint without a parent means the host. */
bool is_parent_of(const struct sync_hint *hint, const struct trace *trace);
/* Returns true if under this clock the guest's trace and the machine's trace do not overlap. */
bool is_disjoint(const struct sync_context *r, const struct match *m);
/* Runs the tasks in parallel and reports progress. total: amount of work, compared with r->done. */
int run_tasks(struct sync_context *r, const char *phase, int (*task)(void *arg, size_t i), size_t tasks, size_t total);

/* Fills r->match with all candidates. Returns 0, or -1 with r->err set. */
int find_candidates(struct sync_context *r);
/* Selects the right candidates: assigned[guest] points into r->match; NULL: none. Sets r->host. */
int assign_vms(struct sync_context *r, struct match **assigned);
/* Returns the reason of the guest's best candidate why the guest has no clock. Call it after assign_vms(). */
enum sync_reason unknown_clock_reason(const struct sync_context *r, size_t guest);
/* Returns true if the VM, or for a migrated VM one of its two parts, is assigned. */
bool vm_is_assigned(const struct hypervisor *h, size_t vm);
void vm_set_assigned(struct hypervisor *h, size_t vm);
/* Fills *out with the assigned and the untraced VMs. Returns 0, or -1 with r->err set. */
int fill_result(struct sync_context *r, struct sync_result *out);
