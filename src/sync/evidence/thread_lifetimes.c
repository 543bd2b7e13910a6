#include "sync/evidence/thread_lifetimes.h"

#include "base/mem.h"
#include "base/vcpu_name.h"

#define THREADS_MAX 16384  /* most vCPU threads of a host; further ones are ignored */

/* Sets a lifetime's start. After a loss of events the thread may have started during the loss or before. */
static void set_start(const struct host_timeline *v, struct vthread *th)
{
	const uint64_t tid = (uint64_t)(uint32_t)th->tid;
	const uint64_t *born = map_find(&v->fork_times, tid), *other = map_find(&v->last_other, tid);
	bool another = born && other && *other >= *born;  /* the TID belonged to another thread after the recorded fork */
	bool start_lost = v->has_loss && (!born || another);
	th->from = start_lost ? th->last_seen : born ? (int64_t)*born : v->begin;
	th->earliest_start = !start_lost ? th->from : other ? (int64_t)*other + 1 : v->begin;
	if (start_lost)
		vthread_add_unknown(th, v->begin, th->from - 1);
	if (v->has_loss && th->from <= v->lost_until)
		th->mode_unknown_since = th->from;
}

struct vthread *lifetime_get(struct host_timeline *v, int32_t tid, int64_t ts)
{
	bool is_new;
	if (v->threads >= THREADS_MAX && !map_find(&v->live_threads, (uint64_t)(uint32_t)tid))
		return NULL;
	uint64_t *at = map_put(&v->live_threads, (uint64_t)(uint32_t)tid, &is_new);
	if (is_new) {
		*at = v->threads;
		struct vthread *th = ARRAY_PUSH(v->thread, v->threads, v->thread_cap);
		*th = (struct vthread){
			.tid = tid, .pid = -1, .last_seen = ts, .to = INT64_MAX, .vcpu_id = EVENT_ABSENT,
			.mode_unknown_since = INT64_MIN };
		uint64_t *pid = map_find(&v->pid, (uint64_t)(uint32_t)tid), *comm = map_find(&v->comm, (uint64_t)(uint32_t)tid);
		if (pid)
			th->pid = (int32_t)*pid;
		if (comm)
			th->comm = (int64_t)*comm;
		set_start(v, th);
	}
	return &v->thread[*at];
}

void lifetime_record_sighting(struct host_timeline *v, int64_t ts, int64_t tid, int64_t comm, int64_t pid)
{
	const uint64_t new_value[] = { comm > 0 ? (uint64_t)comm : 0, pid > 0 ? (uint64_t)pid : 0 };
	struct map *map[] = { &v->comm, &v->pid };
	bool is_other = false, is_new = true;
	for (int i = 0; i < 2; i++)
		if (new_value[i] > 0) {
			uint64_t *old = map_put(map[i], (uint64_t)tid, &is_new);
			is_other = is_other || (!is_new && *old != new_value[i]);
			*old = new_value[i];
		}
	if (!v->has_loss)
		return;
	uint64_t *last = map_put(&v->last_sighting, (uint64_t)tid, &is_new);
	if (is_other && !is_new)
		*map_put(&v->last_other, (uint64_t)tid, NULL) = *last;
	*last = (uint64_t)ts;
}

void lifetime_end(struct host_timeline *v, int64_t tid, int64_t ts, bool exit_seen)
{
	uint64_t *at = map_find(&v->live_threads, (uint64_t)(uint32_t)tid);
	if (at) {
		v->thread[*at].to = exit_seen || !v->has_loss ? ts : v->thread[*at].last_seen;
		map_remove(&v->live_threads, (uint64_t)(uint32_t)tid);
	}
	map_remove(&v->pid, (uint64_t)(uint32_t)tid);
	map_remove(&v->fork_times, (uint64_t)(uint32_t)tid);
	const uint64_t *last = map_find(&v->last_sighting, (uint64_t)(uint32_t)tid);
	if (exit_seen)
		map_put(&v->exited_tids, (uint64_t)(uint32_t)tid, NULL);
	if (exit_seen || (v->has_loss && last))
		*map_put(&v->last_other, (uint64_t)(uint32_t)tid, NULL) = exit_seen ? (uint64_t)ts : *last;
}

/* Returns 1 + the number in a vCPU thread's name; 0: not such a name. */
static uint64_t vcpu_number_of_name(struct host_timeline *v, int64_t comm)
{
	bool is_new;
	uint64_t *number = map_put(&v->vcpu_name, (uint64_t)comm, &is_new);
	if (is_new)
		*number = (uint64_t)(vcpu_name_number(trace_string(v->trace, comm)) + 1);
	return *number;
}

void lifetime_end_if_other_thread(struct host_timeline *v, int64_t tid, int64_t ts, int64_t comm, int64_t pid)
{
	const uint64_t *at = v->has_loss ? map_find(&v->live_threads, (uint64_t)(uint32_t)tid) : NULL;
	if (!at)
		return;
	const struct vthread *th = &v->thread[*at];
	bool moved = pid > 0 && th->pid > 0 && th->pid != pid;
	uint64_t vcpu = comm > 0 && th->comm > 0 && comm != th->comm ? vcpu_number_of_name(v, th->comm) : 0;
	if (moved || (vcpu > 0 && vcpu_number_of_name(v, comm) != vcpu))
		lifetime_end(v, tid, ts, false);
}

/* Drops the recorded PID if it equals the TID: a vCPU thread is never its process's leader, so this PID belongs to
 * an earlier thread with a lost exit. */
static void forget_stale_pid(struct host_timeline *v, int64_t tid)
{
	const uint64_t *pid = v->has_loss ? map_find(&v->pid, (uint64_t)tid) : NULL;
	if (pid && *pid == (uint64_t)tid)
		map_remove(&v->pid, (uint64_t)tid);
}

struct vthread *lifetime_find_unchanged(const struct host_timeline *v, int64_t tid, int64_t comm, int64_t pid)
{
	const uint64_t *at = v->has_loss ? NULL : map_find(&v->live_threads, (uint64_t)tid);
	struct vthread *th = at ? &v->thread[*at] : NULL;
	return th && (comm <= 0 || comm == th->comm) && (pid <= 0 || pid == th->pid) ? th : NULL;
}

void lifetime_observe(struct host_timeline *v, int64_t ts, int64_t tid, int64_t comm, int64_t pid)
{
	if (tid < 0 || tid > INT32_MAX)
		return;
	struct vthread *unchanged = lifetime_find_unchanged(v, tid, comm, pid);
	if (unchanged) {
		unchanged->last_seen = ts;
		return;
	}
	lifetime_end_if_other_thread(v, tid, ts, comm, pid);
	lifetime_record_sighting(v, ts, tid, comm, pid);
	uint64_t *at = map_find(&v->live_threads, (uint64_t)tid);
	if (at)
		v->thread[*at].last_seen = ts;
	if (at && comm != EVENT_ABSENT && comm > 0)
		v->thread[*at].comm = comm;
	if (at && v->thread[*at].pid < 0 && pid != EVENT_ABSENT && pid > 0)
		v->thread[*at].pid = (int32_t)pid;
	/* A vCPU that never runs has no VM entry: only its name or the user identifies it. */
	bool known = v->vcpu_tids && map_find(v->vcpu_tids, (uint64_t)tid);
	bool named = comm != EVENT_ABSENT && comm > 0 && vcpu_number_of_name(v, comm) > 0;
	if (!at && named)
		forget_stale_pid(v, tid);
	/* between the thread's exit and its last switch */
	bool dying = !v->has_loss && map_find(&v->exited_tids, (uint64_t)tid);
	if (!at && (known || named) && !dying)
		(void)lifetime_get(v, (int32_t)tid, ts);
}
