/* Which times of a long trace are kept when there is too much to keep (private to sync/): both ends, and slices in
 * between at random, so that those of two traces meet somewhere whatever the offset between their clocks. */
#ifndef STEALSCOPE_SYNC_EVIDENCE_TIME_SAMPLING_H
#define STEALSCOPE_SYNC_EVIDENCE_TIME_SAMPLING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"

#define SLICE_NS 4000000000LL
#define SLICE_ENDS_NS 600000000000LL  /* of both ends, halved with every halving of the slices but two */
#define SLICED_MAX 20

/* sliced: one slice in 2^sliced is kept, 0 = all. */
static inline bool slice_kept(unsigned sliced, int64_t begin, int64_t end, int64_t t)
{
	int64_t ends = SLICE_ENDS_NS >> (sliced > 2 ? sliced - 2 : 0);
	uint64_t hash = hash_number(0, (uint64_t)(t / SLICE_NS));
	return sliced == 0 || t < begin + ends || t > end - ends || ((hash >> 40) & ((1u << sliced) - 1)) == 0;
}

#endif
