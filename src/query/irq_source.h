/* Which thread of the host raised an interrupt of a guest.  Private to query/. */
#ifndef STEALSCOPE_QUERY_IRQ_SOURCE_H
#define STEALSCOPE_QUERY_IRQ_SOURCE_H

#include "query/resolver.h"
#include "query/wakeup.h"

struct raisers {
	struct resolver *r;
	struct map known;          /* machine << 32 | name of a device's handler -> index of the thread that raises it + 1, or
	                            * how often nobody knew << 32 */
	uint64_t asleep, running;  /* bits of the file's thread states that mean BLOCKED, and RUNNING */
	uint64_t executing;        /* of its vCPU states: RUNNING */
};

/* Of a device's interrupt that vCPU v, a thread `host` of its host, has handled before t, and that was raised since `from`:
 * who raised it, and when that one ran last before t.  Where that is not clear *out is NULL, and *when is when the last of
 * those ran who may have raised it; INT64_MAX: nobody did. */
int raiser_of(struct raisers *k, uint32_t v, const struct who *host, int64_t from, int64_t t, struct who **out,
              int64_t *when);

/* Is it for that interrupt that a thread woke the halted vCPU at `woken`?  It may have been for another device's, and this
 * one have come while the vCPU waited for its CPU. */
int raiser_woke(struct raisers *k, uint32_t v, const struct wakeup *by, int64_t woken, int64_t t);

/* The vCPU of that thread was sent an interrupt at *raised.  If it sleeps then, and another thread ends that, who did not
 * do so for this interrupt, *raised is moved to when the sleep is over.  server: who raised it, or NULL. */
int raiser_outslept(struct raisers *k, struct who *host, const struct who *server, int64_t *raised);

#endif
