/* Timeline of a machine that runs VMs, read from its trace in one pass (private to sync/): the vCPU threads (identified
 * by VM entries, by name, or by the user) with their guest-mode windows, their processes and names, and the machine's
 * sync events.
 *
 * A struct vthread is one lifetime of a TID. Its windows are the intervals in guest mode, [VM entry, VM exit], sorted
 * and disjoint. Its unknown intervals are the times of unknown mode, because events were lost.
 *
 * Mode at the ends: before the first entry or exit of a thread, the mode is the one that this event implies (IN before an
 * exit); but before the first one of any thread it is unknown, because perf enables one kind of events after the other,
 * those of KVM last. After the last event the mode is the one that this event implies.
 *
 * Memory: 16 bytes per window, at most WINDOWS_MAX windows; for longer traces only windows in sampled slices of time are
 * stored (time_sampling.h), and the mode at other times is unknown. */
#pragma once

#include <stdatomic.h>

#include "base/map.h"
#include "sync/evidence/interval.h"
#include "sync/evidence/sync_event_file.h"
#include "sync/sync.h"

struct vthread {
	int32_t tid, pid;                   /* pid: -1: unknown */
	int64_t comm;                       /* string id of the name */
	int64_t from, to;                   /* lifetime, host ns */
	int64_t earliest_start, last_seen;  /* earliest possible start, and last event that names the thread, host ns */
	struct ns_interval *window;
	size_t windows, window_cap;
	struct ns_interval *unknown;
	size_t unknowns, unknown_cap;
	bool is_reported;                   /* vCPU of a hypervisor without host threads, with its number in vcpu_id and
	                                     * the name of its VM in comm */
	int64_t vcpu_id;                    /* number of the vCPU in its events; -1: not constant, or above 4095;
	                                     * EVENT_ABSENT: not recorded */
	uint64_t entries;
	/* State while reading: */
	bool in_guest;
	bool has_guest_mode;                  /* was seen to enter or leave guest mode */
	bool has_entries, is_running;         /* of a vCPU with is_reported: its VM entries are recorded; it has a pCPU */
	uint16_t cpu;                         /* pCPU of its last event */
	int64_t window_start;                 /* start of the current window, host ns */
	int64_t mode_unknown_since;           /* host ns; INT64_MIN: the mode is known */
	bool hypercall_pending;               /* the hypercall with `hypercall_key` is paired with the next VM entry */
	uint64_t hypercall_key;
};

struct host_timeline {
	const struct trace *trace;
	int64_t begin, end;
	struct vthread *thread;
	size_t threads, thread_cap;
	struct map live_threads;       /* TID -> index in thread[] of the current lifetime */
	struct map comm;       /* TID -> string id of the name */
	struct map pid;        /* TID -> PID */
	struct map exited_tids;      /* TIDs with a recorded exit of their latest thread */
	struct map fork_times;       /* TID -> time of a recorded fork, ns */
	struct map vcpu_name;  /* string id -> 1 + number of "CPU n/KVM"; 0: another name */
	const atomic_bool *stop;  /* set when the user cancels, reading then fails; NULL: cannot be cancelled */
	const struct map *vcpu_tids;  /* TIDs of vCPUs according to the user or the tracer, borrowed; NULL: none */
	bool has_loss;         /* events were lost: some lifetimes may have started or ended unrecorded */
	int64_t lost_until;    /* latest end of the losses read so far, ns */
	struct map last_sighting;  /* if has_loss: TID -> time of the last event that names it, ns */
	struct map last_other;  /* if has_loss: TID -> last time at which the TID was another thread (other name or process,
	                         * or before an exit), ns */
	bool has_guest_mode;   /* the trace shows guest mode (entries and exits, or run states) */
	struct sync_event_set sync_events;  /* a bounded set; unsorted until vm_list_assign_sync_events() */
	struct sync_event_file event_file;  /* all sync events; `origin` is an index in thread[] */
	size_t windows;        /* windows in all threads */
	int64_t min_gap_ns;    /* shortest gap between two windows of any thread, less 1 % for drift, at most MIN_GAP_MAX_NS;
	                        * ns */
	unsigned slice_bits;   /* one slice in 2^slice_bits is stored; 0: all */
};

/* Reads the trace; with workers > 1 a second thread reads ahead. Returns 0, or -1 with *err set. */
int host_timeline_load(struct host_timeline *v, const struct trace *trace, const struct map *vcpu_tids, unsigned workers,
                       const atomic_bool *stop, struct error *err);
/* Checks for cancellation once in 65536 events. Returns 0, or -1 with *err set if *stop is true. */
int check_cancelled(const atomic_bool *stop, uint64_t n_events, struct error *err);
void host_timeline_release(struct host_timeline *v);

/* Guest mode of a thread at a time. */
enum guest_mode { MODE_OUT, MODE_IN, MODE_UNKNOWN };
/* Returns the mode at t. *hint: number of windows with from <= t, unchanged if the mode is unknown; pass it back for the
 * next, later time. */
enum guest_mode vthread_mode(const struct vthread *th, int64_t t, size_t *hint);
/* Counts the windows with from <= t; hint: that number for a time shortly before. */
size_t vthread_count_windows(const struct vthread *th, int64_t t, size_t hint);
/* Appends an unknown interval; none if from > to. */
void vthread_add_unknown(struct vthread *th, int64_t from, int64_t to);
/* Returns true if the mode is unknown at any time in [from, to]. */
bool vthread_is_unknown(const struct vthread *th, int64_t from, int64_t to);
/* Returns the end of the known time that contains t. */
int64_t vthread_known_until(const struct vthread *th, int64_t t);
