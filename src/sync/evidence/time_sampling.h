/* Time sampling: selects the times of a long trace that are stored if memory does not suffice (private to sync/). These
 * are both ends, and pseudo-random slices between them; for any offset between two clocks, the slices of two traces
 * overlap somewhere. */
#pragma once

#include "base/base.h"
#include "base/hash.h"

#define SLICE_NS 4000000000LL
#define ENDS_NS 600000000000LL  /* each stored end's length; halved whenever slice_bits increases beyond 2 */
#define SLICE_BITS_MAX 20

/* Returns true if time t is stored. slice_bits: one slice in 2^slice_bits is stored; 0: all. */
static inline bool is_slice_kept(unsigned slice_bits, int64_t begin, int64_t end, int64_t t)
{
	int64_t ends = ENDS_NS >> (slice_bits > 2 ? slice_bits - 2 : 0);
	uint64_t hash = hash_number(0, (uint64_t)(t / SLICE_NS));
	return slice_bits == 0 || t < begin + ends || t > end - ends || ((hash >> 40) & ((1u << slice_bits) - 1)) == 0;
}
