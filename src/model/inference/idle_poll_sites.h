/* Sites in a guest's kernel where it may idle without halting.
 *
 * With idle=poll, or if halts do not exit (cpu-pm), an idle CPU of a guest looks busy to the host, except that each
 * interrupt stops it at the same few instructions of its kernel. Code that clears pages or spins does the same. So the
 * state of a guest interrupted there is unknown until the guest is interrupted in user space or does something that only
 * a thread does. The prescan counts where each vCPU is interrupted.
 *
 * Cost: O(1) per exit. Memory during the prescan: 17 bytes and more per cell of kernel code, at most CELLS_MAX cells. */
#pragma once

#include "base/base.h"
#include "trace/trace.h"

struct poll_sites {
	struct map found; /* TID and cell of kernel code -> number of interruptions there */
	struct map halts; /* TID -> halt count */
};

/* Processes a VM exit of the prescan. flags: exit_flags() of the event. */
void poll_sites_feed(struct poll_sites *s, int64_t tid, const struct event *ev, unsigned flags);
/* Drops all cells except those where idle and busy cannot be distinguished. */
void poll_sites_finish(struct poll_sites *s);
void poll_sites_release(struct poll_sites *s);
/* Returns true if the exit was in such a cell. */
bool poll_sites_contain(const struct poll_sites *s, int64_t tid, const struct event *ev, unsigned flags);
static inline bool poll_sites_match(const struct poll_sites *s, int64_t tid, const struct event *ev, unsigned flags)
{
	return s->found.len && poll_sites_contain(s, tid, ev, flags);
}
