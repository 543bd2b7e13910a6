#include "model/inference/idle_poll_sites.h"

#include "model/state/exit_reasons.h"

#define CELLS_MOST 65536  /* a guest chooses where it is */

enum { CELL_BITS = 5 };    /* a loop that waits has few instructions */
enum { OFTEN = 8 };        /* times that it is found in a cell: no chance */
enum { PART = 4 };         /* and one of so many of all times in its kernel */
enum { HALTS = 10 };       /* one halt for so many times there: who idles elsewhere halts more often */

static uint64_t cell_of(int64_t tid, int64_t ip)
{
	return (uint64_t)tid << 32 | ((uint64_t)ip >> CELL_BITS & UINT32_MAX);
}

static uint64_t count_of(const struct map *m, uint64_t key)
{
	const uint64_t *n = map_find(m, key);
	return n ? *n : 0;
}

/* The instruction of its kernel at which something that it did not do stopped it; 0 elsewhere, or EVENT_ABSENT. */
static int64_t stopped_at(const struct event *ev, unsigned is)
{
	return (is & (EXIT_CLASS | EXIT_WINDOW)) == EXIT_INTERRUPT ? exit_kernel_address(ev) : 0;
}

void spots_feed(struct spots *s, int64_t tid, const struct event *ev, unsigned is)
{
	const int64_t ip = stopped_at(ev, is);
	if ((is & EXIT_CLASS) == EXIT_HALT)
		++*map_put(&s->halts, (uint64_t)tid, NULL);
	if (ip != 0 && ip != EVENT_ABSENT && (s->found.len < CELLS_MOST || map_find(&s->found, cell_of(tid, ip))))
		++*map_put(&s->found, cell_of(tid, ip), NULL);
}

void spots_finish(struct spots *s)
{
	struct map in_kernel = MAP_INIT, doubted = MAP_INIT;  /* TID -> how often it was found at all; cells */
	uint64_t cell, n;
	for (size_t at = 0; map_each(&s->found, &at, &cell, &n); )
		*map_put(&in_kernel, cell >> 32, NULL) += n;
	for (size_t at = 0; map_each(&s->found, &at, &cell, &n); )
		if (n >= OFTEN && n >= count_of(&in_kernel, cell >> 32) / PART && n >= count_of(&s->halts, cell >> 32) * HALTS)
			*map_put(&doubted, cell, NULL) = n;
	map_release(&in_kernel);
	spots_release(s);
	s->found = doubted;
}

void spots_release(struct spots *s)
{
	map_release(&s->found);
	map_release(&s->halts);
}

bool spots_has(const struct spots *s, int64_t tid, const struct event *ev, unsigned is)
{
	const int64_t ip = stopped_at(ev, is);
	return ip != 0 && ip != EVENT_ABSENT && map_find(&s->found, cell_of(tid, ip));
}
