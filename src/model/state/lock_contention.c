/* What a thread waits for, where an event names it: a lock of the kernel (lock:contention_begin and _end), or a futex.
 *
 * While a wait lasts other locks may be contended below it: the outermost one, which is told first, is what the thread
 * waits for.  Interrupt handlers contend for locks, too; that is none of the thread's doing. */
#include "model/state/state.h"

/* Flags of lock:contention_begin (include/linux/lock_contention.h). */
enum { LOCK_SPIN = 1, LOCK_READ = 2, LOCK_WRITE = 4, LOCK_RT = 8, LOCK_PERCPU = 16, LOCK_MUTEX = 32 };

/* A system call that waits until a lock is free, futex(2): by its operation; or by the 2 that everybody's mutexes hold
 * while they are contended.  Conditions and thread ends are waited for with other values. */
static bool waits(int64_t op, int64_t value)
{
	enum { WAIT = 0, LOCK_PI = 6, WAIT_BITSET = 9, LOCK_PI2 = 13, COMMAND = 0x7f };
	op &= COMMAND;
	return op == LOCK_PI || op == LOCK_PI2 || ((op == WAIT || op == WAIT_BITSET) && value == 2);
}

static const char *kind_of(int64_t flags)
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

void lock_forget(struct machine *mc, struct thread *th)
{
	if (!th->contends)
		return;
	th->contends = false;
	thread_set(mc, th, THREAD_LOCK, HISTORY_NULL);
}

void lock_event(struct machine *mc, struct cpu *c, const struct event *ev)
{
	struct thread *th = c->current;
	const bool begin = ev->kind == EV_CONTENTION_BEGIN || ev->kind == EV_FUTEX_BEGIN;
	const bool futex = ev->kind == EV_FUTEX_BEGIN || ev->kind == EV_FUTEX_END;
	if (!th || c->nest.depth || (futex && begin && !waits(ev->lock.flags, ev->lock.value)))
		return;
	const int64_t address = futex ? 0 : ev->lock.address;
	if (begin && (!th->contends || th->lock == address)) {
		th->contends = true;
		th->lock = address;
		thread_set(mc, th, THREAD_LOCK, sink_id(&mc->model->sink, futex ? "futex" : kind_of(ev->lock.flags)));
	} else if (!begin && th->contends && th->lock == address) {
		lock_forget(mc, th);
	}
}
