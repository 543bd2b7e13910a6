/* Finds the host thread that raised an interrupt of a guest. Private to query/. */
#pragma once

#include "query/resolver.h"
#include "query/wakeup.h"

struct irq_sources {
	struct resolver *r;
	struct map known;          /* cache: machine << 32 | string id of a device's handler -> index + 1 of the thread that
	                            * raises it, or number of failed searches << 32 */
	uint64_t asleep, running;  /* states of threads that mean BLOCKED, and RUNNING: bit n = state number n of the history */
	uint64_t executing;        /* states of vCPUs that mean RUNNING: bit n = state number n of the history */
};

/* Finds the source of a device's interrupt that was raised at or after `from`, and that vCPU v (executed by thread
 * `host`) handled before t. *out: the thread; NULL: several are possible, or none. *when: time at which the thread ran
 * last before t; if several are possible, the latest of these times; INT64_MAX: none. */
int irq_source_find(struct irq_sources *k, uint32_t v, const struct thread_ref *host, int64_t from, int64_t t,
                    struct thread_ref **out, int64_t *when);

/* Checks if the thread that woke the halted vCPU at `woken` raised the interrupt that the guest handled before t. That
 * thread may have raised the interrupt of another device, while the handled interrupt arrived when the vCPU waited for
 * its CPU. Returns 1, 0, or -1 on error. */
int irq_source_woke_vcpu(struct irq_sources *k, uint32_t v, const struct wakeup *by, int64_t woken, int64_t t);

/* Corrects *raised, a time at which an interrupt may have been sent to the vCPU of thread `host`: if the thread slept
 * then, and a thread other than `server` ended the sleep (so not for this interrupt), moves *raised to the end of the
 * sleep. server: the interrupt's source; NULL: unknown. */
int irq_source_skip_sleep(struct irq_sources *k, struct thread_ref *host, const struct thread_ref *server, int64_t *raised);
