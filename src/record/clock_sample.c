#include "record/clock_sample.h"

#include <errno.h>

#include "base/int128.h"
#include "record/proc.h"

#define TRIES 50
#define TIME_MAX (INT64_MAX / 2)  /* maximum of a time and of a clock that a guest sends; the reader accepts more */

static uint64_t read_tsc(void)
{
#if defined(__x86_64__) || defined(__i386__)
	return __builtin_ia32_rdtsc();
#else
	return 0;
#endif
}

struct clock_sample clock_sample_now(bool tsc)
{
	struct clock_sample best = { .known = true };
	uint64_t shortest = UINT64_MAX;
	for (int i = 0; i < TRIES; i++) {
		const int64_t real = clock_ns(CLOCK_REALTIME);
		const uint64_t before = tsc ? read_tsc() : (uint64_t)clock_ns(CLOCK_MONOTONIC);
		const int64_t mono = clock_ns(CLOCK_MONOTONIC);
		const uint64_t after = tsc ? read_tsc() : (uint64_t)clock_ns(CLOCK_MONOTONIC);
		const int64_t real_after = clock_ns(CLOCK_REALTIME);
		if (after - before >= shortest)
			continue;
		shortest = after - before;
		best.clock = before + (after - before) / 2;
		best.monotonic = mono;
		best.realtime = real + (real_after - real) / 2;
		best.error = (real_after - real) / 2 + 1;
	}
	if (!tsc)
		best.clock = (uint64_t)best.monotonic;
	return best;
}

/* Parses ns, "1795152647842459259", or s, "1795152647" or "1795152647%N" (from a date(1) without %N). Returns ns; 0:
 * invalid. */
static int64_t parse_realtime(const char *text)
{
	char *rest;
	errno = 0;
	const long long x = strtoll(text, &rest, 10);
	if (x <= 0 || errno || x > TIME_MAX)
		return 0;
	return x >= 100000000000000 ? x : x < TIME_MAX / NS_PER_S ? x * NS_PER_S : 0;
}

/* Parses a number up to TIME_MAX: "12345" (cycles), or "12.345678" (s, converted to ns). */
static bool parse_clock(const char *text, uint64_t *clock)
{
	char *rest;
	errno = 0;
	const unsigned long long x = strtoull(text, &rest, 10);
	if (*text < '0' || *text > '9' || errno || x > TIME_MAX)
		return false;
	*clock = x;
	if (*rest != '.')
		return true;
	uint64_t fraction = 0, unit = NS_PER_S;
	for (rest++; *rest >= '0' && *rest <= '9' && unit > 1; rest++) {
		unit /= 10;
		fraction += (uint64_t)(*rest - '0') * unit;
	}
	*clock = x * NS_PER_S + fraction;
	return x < TIME_MAX / NS_PER_S;
}

/* Fills real time and error: the clock was read between both times, which are whole seconds on some guests. */
static void set_realtime(struct clock_sample *m, int64_t before, int64_t after)
{
	const int64_t unit = before % NS_PER_S ? NS_PER_US : NS_PER_S;  /* of the clock or of the times, whichever is larger */
	m->realtime = before;
	m->known = before > 0;
	if (after < before || after - before > NS_PER_DAY)
		return;
	m->realtime = before + (after - before) / 2;
	m->error = (after - before) / 2 + unit;
}

struct clock_sample clock_sample_parse(const char *text)
{
	struct clock_sample m = { 0 };
	char *real = proc_field(text, "realtime"), *now = proc_field(text, "now ts");
	char *after = proc_field(text, "realtime_after");
	if (real && now && parse_clock(now, &m.clock))
		set_realtime(&m, parse_realtime(real), after ? parse_realtime(after) : 0);
	free(real);
	free(now);
	free(after);
	return m;
}

uint64_t clock_sample_frequency(const struct clock_sample *a, const struct clock_sample *b)
{
	if (!a->known || !b->known || b->monotonic <= a->monotonic || b->clock <= a->clock)
		return 0;
	const uint128 x = (uint128)(b->clock - a->clock) * 1000 * NS_PER_S / (uint64_t)(b->monotonic - a->monotonic);
	return x > UINT64_MAX ? 0 : (uint64_t)x;
}
