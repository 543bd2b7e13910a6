/* The ends of synchronization pairs that one machine's trace shows (private to sync/).
 *
 * They are added in order of time, within a bound on memory: past that, those of some keys alone are kept, the same on all
 * machines.  When there are no more to come they are put in order of kind, owner, key and time. */
#ifndef STEALSCOPE_SYNC_EVIDENCE_SYNC_EVENT_SET_H
#define STEALSCOPE_SYNC_EVIDENCE_SYNC_EVENT_SET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One end of a pair. */
struct sync_mark {
	uint64_t key;
	int64_t ts;
	int64_t uid;      /* or EVENT_ABSENT */
	int32_t where;    /* host: index of the thread instance, -1 = none; guest: CPU */
	uint16_t end;     /* enum sync_end */
	uint16_t owner;   /* host: the VM whose it is, counted from 1; 0 = it may be anybody's, as any of the network is */
};

/* Who owns the ends of a VM: itself, or the two that it was, one after the other; 0 = no more. */
struct mark_owners { uint16_t of[2]; };

struct mark_list {
	struct sync_mark *mark;
	size_t len, cap;
	size_t most;      /* marks; at most; 0: as many as one list may that is alone */
	unsigned sparse;  /* only keys whose hash has this many low zero bits are kept */
};

/* All such lists together hold about as many marks as one may that is alone. */
void mark_list_share(struct mark_list *l, size_t lists);
void mark_list_add(struct mark_list *l, const struct sync_mark *m);
bool mark_list_kept(const struct mark_list *l, uint64_t key);
void mark_list_sort(struct mark_list *l);
/* Leaves those of the keys that a list so sparse keeps: what is only held against such lists need not have more. */
void mark_list_thin(struct mark_list *l, unsigned sparse);
/* Of a sorted list all those with keys that occur in some stretches of time: about so many marks, a multiple of those of a
 * stretch, where they come evenly; none where the list is hardly longer.  With these keys they make the very pairs that the
 * whole list makes. */
void mark_list_few(const struct mark_list *l, int64_t begin, int64_t end, size_t marks, struct mark_list *out);
#define MARKS_OF_STRETCH 16
void mark_list_release(struct mark_list *l);

#endif
