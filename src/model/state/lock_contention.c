/* Locks that threads wait for, from events that contain them: kernel locks (lock:contention_begin and _end) and futexes.
 *
 * During a wait other locks may be contended; the outermost one, recorded first, is the lock that the thread waits for.
 * Contention inside interrupt handlers is ignored, because the thread does not wait for it. */
#include "model/state/state.h"

/* Flags of lock:contention_begin (include/linux/lock_contention.h). */
enum { LOCK_SPIN = 1, LOCK_READ = 2, LOCK_WRITE = 4, LOCK_RT = 8, LOCK_PERCPU = 16, LOCK_MUTEX = 32 };

/* Returns true if futex(2) waits for a lock: by operation, or by the value 2, which common mutex implementations store
 * while contended. Waits for conditions and thread ends use other values. */
static bool is_lock_wait(int64_t op, int64_t value)
{
	enum { WAIT = 0, LOCK_PI = 6, WAIT_BITSET = 9, LOCK_PI2 = 13, COMMAND = 0x7f };
	op &= COMMAND;
	return op == LOCK_PI || op == LOCK_PI2 || ((op == WAIT || op == WAIT_BITSET) && value == 2);
}

static const char *lock_kind_name(int64_t flags)
{
	if (flags == EVENT_ABSENT)
		return "lock";
	if (flags & LOCK_MUTEX)
		return "mutex";
	if (flags & LOCK_RT)
		return "rt-mutex";
	if (flags & LOCK_PERCPU)
		return "percpu-rwsem";
	if (flags & LOCK_SPIN)
		return flags & (LOCK_READ | LOCK_WRITE) ? "rwlock" : "spinlock";
	return flags & (LOCK_READ | LOCK_WRITE) ? "rwsem" : "semaphore";
}

void lock_wait_clear(struct machine *mc, struct thread *th)
{
	if (!th->waits_for_lock)
		return;
	th->waits_for_lock = false;
	thread_set(mc, th, THREAD_LOCK, HISTORY_NULL);
}

void lock_event(struct machine *mc, struct cpu *c, const struct event *ev)
{
	struct thread *th = c->current;
	const bool begin = ev->kind == EV_CONTENTION_BEGIN || ev->kind == EV_FUTEX_BEGIN;
	const bool futex = ev->kind == EV_FUTEX_BEGIN || ev->kind == EV_FUTEX_END;
	if (!th || c->nest.depth || (futex && begin && !is_lock_wait(ev->lock.flags, ev->lock.value)))
		return;
	const int64_t address = futex ? 0 : ev->lock.address;
	if (begin && (!th->waits_for_lock || th->lock == address)) {
		th->waits_for_lock = true;
		th->lock = address;
		thread_set(mc, th, THREAD_LOCK, sink_id(&mc->model->sink, futex ? "futex" : lock_kind_name(ev->lock.flags)));
	} else if (!begin && th->waits_for_lock && th->lock == address) {
		lock_wait_clear(mc, th);
	}
}
