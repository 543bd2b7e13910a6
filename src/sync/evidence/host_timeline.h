/* What the host's trace tells about VMs, in one walk (private to sync/): the threads that ran guests (or are named
 * as if they did) and when, their
 * processes and names, and the host's ends of synchronization pairs.
 *
 * A thread instance is one life of a TID.  Its windows are the spans in guest mode, [vm entry, vm exit], in order and
 * disjoint; its blind spans are times at which lost events leave the mode unknown.  Before the first event of a
 * thread the mode is what that event implies, unless no thread had one yet: perf enables one kind of events after the
 * other, the kvm ones last.  After the last event the mode is what that one implies.
 * Memory: 16 bytes per window, at most WINDOWS_MAX of them; past that windows are kept for slices of time alone, and
 * the rest is blind. */
#ifndef STEALSCOPE_SYNC_EVIDENCE_HOST_TIMELINE_H
#define STEALSCOPE_SYNC_EVIDENCE_HOST_TIMELINE_H

#include <stdatomic.h>

#include "base/map.h"
#include "sync/evidence/sync_event_file.h"
#include "sync/sync.h"

struct span { int64_t from, to; };  /* ns, both included */
/* Index of the first of n spans, in order and disjoint, that ends at or after t. */
size_t span_find(const struct span *s, size_t n, int64_t t);
/* One that begins no earlier than the last; they become one where they meet. */
void span_push(struct span **array, size_t *len, size_t *cap, int64_t from, int64_t to);

struct vthread {
	int32_t tid, pid;           /* pid -1: not known */
	int64_t comm;               /* string id */
	int64_t from, to;           /* ns of this life */
	int64_t earliest, last;     /* when it may have begun, and when it was last seen */
	struct span *window;
	size_t windows, window_cap;
	struct span *blind;
	size_t blinds, blind_cap;
	int64_t hint;               /* kvm vcpu_id, when always the same and small, else -1 */
	uint64_t entries;
	/* state of the walk */
	bool in_guest;
	bool seen;                  /* has had an entry or an exit */
	uint16_t cpu;               /* of its last event */
	int64_t entered;            /* start of the window that is open */
	int64_t unsure;             /* mode unknown since, or INT64_MIN */
	bool owes;                  /* a hypercall with key `owed` awaits its entry */
	uint64_t owed;
};

/* "CPU 3/KVM" -> 3; -1 for any other name. */
int vcpu_number_in_name(const char *comm);

struct host_view {
	const struct trace *trace;
	int64_t begin, end;
	struct vthread *thread;
	size_t threads, thread_cap;
	struct map live;       /* TID -> index of its live instance */
	struct map comm;       /* TID -> string id */
	struct map pid;        /* TID -> pid */
	struct map ended;      /* TIDs whose last thread was seen to exit */
	struct map born;       /* TID -> ns of the fork, when the trace shows it */
	struct map vcpu_name;  /* string id -> 1 + number for "CPU n/KVM", 0 for other names */
	const atomic_bool *stop;  /* set when the user wants no more of it: walks through events then fail; or NULL */
	const struct map *known;  /* TIDs that are vCPUs because the user or the tracer says so; borrowed, or NULL */
	bool lossy;            /* events were lost: where some lives begin and end may be among them */
	int64_t lost_until;    /* the latest end of those losses that have begun */
	struct map sight;      /* when it is: TID -> ns when it was last seen, */
	struct map other;      /* and when it was last seen as another thread: of another name or process, or before its end */
	bool has_kvm;          /* there are vm entries or exits; else guest mode is never known */
	struct mark_list marks;  /* ends of pairs, in no order until vm_list_own() */
	struct mark_log log;   /* all of them, each `where` an index in thread[] */
	size_t windows;        /* in all threads */
	int64_t quiet;         /* ns: the shortest span out of guest mode of any thread, less some for drift; at most 10 us */
	unsigned sliced;       /* windows are kept for one slice of time in 2^sliced */
};

/* workers: with more than one, a thread of its own reads the events. */
int host_view_load(struct host_view *v, const struct trace *trace, const struct map *known, unsigned workers,
                   const atomic_bool *stop, struct error *err);
/* After so many events of a walk: is it to end?  Then -1, with the error set. */
int walk_stopped(const atomic_bool *stop, uint64_t seen, struct error *err);
void host_view_release(struct host_view *v);

/* Where time t is relative to a thread's guest mode. */
enum guest_mode { MODE_OUT, MODE_IN, MODE_BLIND };
/* *near = index of the last window with from <= t; a caller that goes through time in order passes it back in. */
enum guest_mode vthread_mode(const struct vthread *th, int64_t t, size_t *near);
/* The number of windows with from <= t; `near`: of a time shortly before. */
size_t vthread_windows(const struct vthread *th, int64_t t, size_t near);
void vthread_hide(struct vthread *th, int64_t from, int64_t to);           /* a blind span, which may be empty */
bool vthread_blind(const struct vthread *th, int64_t from, int64_t to);  /* does a blind span meet [from, to]? */

#endif
