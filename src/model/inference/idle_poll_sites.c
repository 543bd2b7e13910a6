#include "model/inference/idle_poll_sites.h"

#include "model/state/exit_reasons.h"

#define CELLS_MAX 65536  /* limited, because the guest determines the addresses */

enum { CELL_BITS = 5 };    /* log2 of a cell's size, bytes; a polling loop has few instructions */
enum { FOUND_MIN = 8 };        /* fewest interruptions in a cell */
enum { FOUND_PART = 4 };         /* minimum share, 1/FOUND_PART, of all interruptions of the vCPU in the kernel */
enum { HALT_RATIO = 10 };       /* fewest interruptions per halt: a guest that idles elsewhere halts more
                                 * often */

static uint64_t cell_of(int64_t tid, int64_t ip)
{
	return (uint64_t)tid << 32 | ((uint64_t)ip >> CELL_BITS & UINT32_MAX);
}

static uint64_t count_of(const struct map *m, uint64_t key)
{
	const uint64_t *n = map_find(m, key);
	return n ? *n : 0;
}

/* Returns the kernel instruction at which an external event stopped the guest; 0: elsewhere; EVENT_ABSENT: unknown. */
static int64_t stopped_at(const struct event *ev, unsigned flags)
{
	return (flags & (EXIT_CLASS | EXIT_WINDOW)) == EXIT_INTERRUPT ? exit_kernel_address(ev) : 0;
}

void poll_sites_feed(struct poll_sites *s, int64_t tid, const struct event *ev, unsigned flags)
{
	const int64_t ip = stopped_at(ev, flags);
	if ((flags & EXIT_CLASS) == EXIT_HALT)
		++*map_put(&s->halts, (uint64_t)tid, NULL);
	if (ip != 0 && ip != EVENT_ABSENT && (s->found.len < CELLS_MAX || map_find(&s->found, cell_of(tid, ip))))
		++*map_put(&s->found, cell_of(tid, ip), NULL);
}

void poll_sites_finish(struct poll_sites *s)
{
	struct map in_kernel = MAP_INIT, ambiguous = MAP_INIT;  /* in_kernel: TID -> interruption count; ambiguous:
	                                                         * cells that remain */
	uint64_t cell, n;
	for (size_t at = 0; map_each(&s->found, &at, &cell, &n); )
		*map_put(&in_kernel, cell >> 32, NULL) += n;
	for (size_t at = 0; map_each(&s->found, &at, &cell, &n); )
		if (n >= FOUND_MIN && n >= count_of(&in_kernel, cell >> 32) / FOUND_PART &&
		    n >= count_of(&s->halts, cell >> 32) * HALT_RATIO)
			*map_put(&ambiguous, cell, NULL) = n;
	map_release(&in_kernel);
	poll_sites_release(s);
	s->found = ambiguous;
}

void poll_sites_release(struct poll_sites *s)
{
	map_release(&s->found);
	map_release(&s->halts);
}

bool poll_sites_contain(const struct poll_sites *s, int64_t tid, const struct event *ev, unsigned flags)
{
	const int64_t ip = stopped_at(ev, flags);
	return ip != 0 && ip != EVENT_ABSENT && map_find(&s->found, cell_of(tid, ip));
}
