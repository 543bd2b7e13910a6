/* Benchmark of sync/: matches 10 million sync pairs in a stream and adds them to a hull. Target: < 3 s on one core, < 64
 * MiB. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "sync/fit/piecewise_fit.h"
#include "sync/fit/stream_matching.h"

#define SECOND 1000000000LL

static uint64_t random64(uint64_t *state)
{
	uint64_t z = *state += 0x9e3779b97f4a7c15u;
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* One exchange a, b, c, d of a beacon at 1 kHz; the clocks differ by 10 days and drift by 50 ppm. */
static void exchange(struct stream_matcher *p, int64_t i, uint64_t *seed)
{
	uint64_t r = random64(seed);
	int64_t host = 1790000000 * SECOND + i * (SECOND / 1000) + (int64_t)(r & 0x3ffff);
	int64_t a = host - 10000 - (int64_t)(r >> 20 & 0xffff), b = host;
	int64_t c = host + 2000, d = c + 3000 + (int64_t)(r >> 40 & 0xffff);
	int64_t shift = 864000 * SECOND;
	int64_t ga = a - shift - (a - 1790000000 * SECOND) / 20000, gd = d - shift - (d - 1790000000 * SECOND) / 20000;
	struct sync_event ma = { (uint64_t)(2 * i + 1), ga, EVENT_ABSENT, 0, SYNC_A, 0 };
	struct sync_event mb = { (uint64_t)(2 * i + 1), b, EVENT_ABSENT, 0, SYNC_B, 0 };
	struct sync_event mc = { (uint64_t)(2 * i + 2), c, EVENT_ABSENT, 0, SYNC_C, 0 };
	struct sync_event md = { (uint64_t)(2 * i + 2), gd, EVENT_ABSENT, 0, SYNC_D, 0 };
	if (r >> 62 != 0)  /* a quarter of the guest's events were lost */
		stream_matcher_add(p, false, &ma);
	stream_matcher_add(p, true, &mb);
	stream_matcher_add(p, true, &mc);
	stream_matcher_add(p, false, &md);
}

int main(void)
{
	struct stream_matcher p;
	struct clock_map clock;
	struct rusage use;
	uint64_t seed = 42;
	double start = now();
	stream_matcher_init(&p);
	for (int64_t i = 0; p.matched < 10000000; i++)
		exchange(&p, i, &seed);
	stream_matcher_finish(&p);
	double matched = now() - start;
	fit_pairs(&p.pairs, 1789136000 * SECOND, &clock);
	double all = now() - start;
	getrusage(RUSAGE_SELF, &use);
	printf("sync: %llu pairs matched and hulled in %.2f s (%.0f ns each; the fit of the %zu that matter: %.3f s), "
	       "peak memory %ld MiB\n", (unsigned long long)p.matched, all, all * 1e9 / (double)p.matched, p.pairs.len,
	       all - matched, use.ru_maxrss / 1024);
	printf("sync: %zu piece(s), %s, %+.6f ppm (50.0025), band %lld ns, %llu unmatched\n", clock.segments,
	       sync_quality_name[clock.segment[0].quality], clock_line_ppm(&clock.segment[0].line),
	       (long long)clock_map_error_width(&clock, 1789136000 * SECOND + 3000 * SECOND), (unsigned long long)p.unmatched);
	clock_map_release(&clock);
	stream_matcher_release(&p);
	return 0;
}
