/* Sync events of one machine's trace, in bounded memory (private to sync/).
 *
 * Events are added in order of time. When the limit is reached, only events of some keys are kept; these are chosen by a
 * hash of the key, so they are the same on all machines. sync_event_set_sort() then sorts by kind, owner, key and time. */
#pragma once

#include "base/base.h"

/* One of the two events of a sync pair. */
struct sync_event {
	uint64_t key;
	int64_t ts;
	int64_t uid;      /* value of the event's uid field; EVENT_ABSENT: none */
	int32_t origin;   /* host: the vCPU thread's index; -1: none. guest: CPU */
	uint16_t end;     /* enum sync_end */
	uint16_t owner;   /* host: 1 + index of the VM; 0: may belong to any VM, for example a network event */
};

/* Owners of a VM's sync events: the VM itself, or the two VMs of a live migration in order of time; 0: unused. */
struct sync_event_owners { uint16_t owner[2]; };

struct sync_event_set {
	struct sync_event *event;
	size_t len, cap;
	size_t limit;       /* maximum event count; 0: SYNC_EVENTS_MAX */
	unsigned key_bits;  /* only keys with a hash that has this many low zero bits are kept */
};

/* Divides the memory limit of one set by the set count. */
void sync_event_set_divide_limit(struct sync_event_set *l, size_t lists);
void sync_event_set_add(struct sync_event_set *l, const struct sync_event *m);
bool sync_event_set_keeps(const struct sync_event_set *l, uint64_t key);
void sync_event_set_sort(struct sync_event_set *l);
/* Drops keys that a set with key_bits key bits does not keep: they have no partner there. */
void sync_event_set_thin(struct sync_event_set *l, unsigned key_bits);
/* Copies a sample of a sorted set: all events with keys that occur in evenly spaced slices of time. Their number is
 * about n_events (a multiple of EVENTS_PER_SLICE) if the events are evenly distributed. *out is empty if the set is
 * hardly larger than the sample. For these keys the sample yields the same pairs as the whole set. */
void sync_event_set_sample(const struct sync_event_set *l, int64_t begin, int64_t end, size_t n_events,
                           struct sync_event_set *out);
#define EVENTS_PER_SLICE 16
void sync_event_set_release(struct sync_event_set *l);
