/* Random numbers: splitmix64 and integer arithmetic, so that a seed yields the same numbers on every machine. */
#include "base/int128.h"
#include "sim.h"

uint64_t rng_next(struct rng *r)
{
	uint64_t z;

	r->s += UINT64_C(0x9E3779B97F4A7C15);
	z = r->s;
	z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
	return z ^ (z >> 31);
}

int64_t rng_range(struct rng *r, int64_t lo, int64_t hi)
{
	uint64_t span = (uint64_t)(hi - lo) + 1;

	if (hi <= lo)
		return lo;
	return lo + (int64_t)(uint64_t)(((uint128)rng_next(r) * span) >> 64);
}

bool rng_chance(struct rng *r, int64_t per_million)
{
	return per_million > 0 && rng_range(r, 0, 999999) < per_million;
}

/* Returns an exponential random number: -log2 of a uniform number in 16.16 fixed point (the bits below the leading one
 * approximate their logarithm, with an error below 9 %), times ln 2 = 45426 / 65536. */
int64_t rng_exp(struct rng *r, int64_t mean)
{
	uint64_t u = rng_next(r) | (1U << 20);
	int zeros = __builtin_clzll(u);
	int64_t mantissa = (int64_t)((u << zeros << 1) >> 48);
	int64_t log2_16 = ((int64_t)(zeros + 1) << 16) - mantissa;

	return 1 + (int64_t)((((int128)mean * log2_16) >> 16) * 45426 >> 16);
}
