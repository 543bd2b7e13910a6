#include "sync/evidence/thread_lifetimes.h"

#include <stdio.h>

#include "base/mem.h"

#define THREADS_MAX 16384  /* vCPUs ever seen on a host; more are not believed */

int vcpu_number_in_name(const char *comm)
{
	unsigned n;
	int used = 0;
	if (sscanf(comm, "CPU %4u/KVM%n", &n, &used) == 1 && used > 0 && comm[used] == '\0')
		return (int)n;
	return -1;
}

/* When its life begins.  Where events were lost, it may have begun among them, or gone on among them since. */
static void find_birth(const struct host_view *v, struct vthread *th)
{
	uint64_t tid = (uint64_t)(uint32_t)th->tid, *born = map_find(&v->born, tid), *other = map_find(&v->other, tid);
	bool another = born && other && *other >= *born;  /* what was born there has been seen to be somebody else */
	bool missed = v->lossy && (!born || another);
	th->from = missed ? th->last : born ? (int64_t)*born : v->begin;
	th->earliest = !missed ? th->from : other ? (int64_t)*other + 1 : v->begin;
	if (missed)
		vthread_hide(th, v->begin, th->from - 1);
	if (v->lossy && th->from <= v->lost_until)
		th->unsure = th->from;
}

struct vthread *life_of(struct host_view *v, int32_t tid, int64_t ts)
{
	bool is_new;
	if (v->threads >= THREADS_MAX && !map_find(&v->live, (uint64_t)(uint32_t)tid))
		return NULL;
	uint64_t *at = map_put(&v->live, (uint64_t)(uint32_t)tid, &is_new);
	if (is_new) {
		*at = v->threads;
		struct vthread *th = ARRAY_PUSH(v->thread, v->threads, v->thread_cap);
		*th = (struct vthread){
			.tid = tid, .pid = -1, .last = ts, .to = INT64_MAX, .hint = EVENT_ABSENT, .unsure = INT64_MIN };
		uint64_t *pid = map_find(&v->pid, (uint64_t)(uint32_t)tid), *comm = map_find(&v->comm, (uint64_t)(uint32_t)tid);
		if (pid)
			th->pid = (int32_t)*pid;
		if (comm)
			th->comm = (int64_t)*comm;
		find_birth(v, th);
	}
	return &v->thread[*at];
}

void life_sight(struct host_view *v, int64_t ts, int64_t tid, int64_t comm, int64_t pid)
{
	const uint64_t is[] = { comm > 0 ? (uint64_t)comm : 0, pid > 0 ? (uint64_t)pid : 0 };
	struct map *was[] = { &v->comm, &v->pid };
	bool is_other = false, is_new = true;
	for (int i = 0; i < 2; i++)
		if (is[i] > 0) {
			uint64_t *old = map_put(was[i], (uint64_t)tid, &is_new);
			is_other = is_other || (!is_new && *old != is[i]);
			*old = is[i];
		}
	if (!v->lossy)
		return;
	uint64_t *last = map_put(&v->sight, (uint64_t)tid, &is_new);
	if (is_other && !is_new)
		*map_put(&v->other, (uint64_t)tid, NULL) = *last;
	*last = (uint64_t)ts;
}

void life_end(struct host_view *v, int64_t tid, int64_t ts, bool seen)
{
	uint64_t *at = map_find(&v->live, (uint64_t)(uint32_t)tid);
	if (at) {
		v->thread[*at].to = seen || !v->lossy ? ts : v->thread[*at].last;
		map_remove(&v->live, (uint64_t)(uint32_t)tid);
	}
	map_remove(&v->pid, (uint64_t)(uint32_t)tid);
	map_remove(&v->born, (uint64_t)(uint32_t)tid);
	const uint64_t *last = map_find(&v->sight, (uint64_t)(uint32_t)tid);
	if (seen)
		map_put(&v->ended, (uint64_t)(uint32_t)tid, NULL);
	if (seen || (v->lossy && last))
		*map_put(&v->other, (uint64_t)(uint32_t)tid, NULL) = seen ? (uint64_t)ts : *last;
}

/* The number in a vCPU thread's name, plus one; 0 = it is no such name. */
static uint64_t named_vcpu(struct host_view *v, int64_t comm)
{
	bool is_new;
	uint64_t *number = map_put(&v->vcpu_name, (uint64_t)comm, &is_new);
	if (is_new)
		*number = (uint64_t)(vcpu_number_in_name(trace_string(v->trace, comm)) + 1);
	return *number;
}

void lives_tell_apart(struct host_view *v, int64_t tid, int64_t ts, int64_t comm, int64_t pid)
{
	const uint64_t *at = v->lossy ? map_find(&v->live, (uint64_t)(uint32_t)tid) : NULL;
	if (!at)
		return;
	const struct vthread *th = &v->thread[*at];
	bool moved = pid > 0 && th->pid > 0 && th->pid != pid;
	uint64_t vcpu = comm > 0 && th->comm > 0 && comm != th->comm ? named_vcpu(v, th->comm) : 0;
	if (moved || (vcpu > 0 && named_vcpu(v, comm) != vcpu))
		life_end(v, tid, ts, false);
}

/* A thread that is called like a vCPU has a process of another TID than its own: where that is what is known, it is left
 * of one whose end was lost. */
static void forget_leader(struct host_view *v, int64_t tid)
{
	const uint64_t *pid = v->lossy ? map_find(&v->pid, (uint64_t)tid) : NULL;
	if (pid && *pid == (uint64_t)tid)
		map_remove(&v->pid, (uint64_t)tid);
}

struct vthread *life_known_so(const struct host_view *v, int64_t tid, int64_t comm, int64_t pid)
{
	const uint64_t *at = v->lossy ? NULL : map_find(&v->live, (uint64_t)tid);
	struct vthread *th = at ? &v->thread[*at] : NULL;
	return th && (comm <= 0 || comm == th->comm) && (pid <= 0 || pid == th->pid) ? th : NULL;
}

void life_name(struct host_view *v, int64_t ts, int64_t tid, int64_t comm, int64_t pid)
{
	if (tid < 0 || tid > INT32_MAX)
		return;
	struct vthread *usual = life_known_so(v, tid, comm, pid);
	if (usual) {
		usual->last = ts;
		return;
	}
	lives_tell_apart(v, tid, ts, comm, pid);
	life_sight(v, ts, tid, comm, pid);
	uint64_t *at = map_find(&v->live, (uint64_t)tid);
	if (at)
		v->thread[*at].last = ts;
	if (at && comm != EVENT_ABSENT && comm > 0)
		v->thread[*at].comm = comm;
	if (at && v->thread[*at].pid < 0 && pid != EVENT_ABSENT && pid > 0)
		v->thread[*at].pid = (int32_t)pid;
	/* A vCPU that never runs has no vm entry; its name shows it, or the user says so. */
	bool known = v->known && map_find(v->known, (uint64_t)tid);
	bool named = comm != EVENT_ABSENT && comm > 0 && named_vcpu(v, comm) > 0;
	if (!at && named)
		forget_leader(v, tid);
	bool dying = !v->lossy && map_find(&v->ended, (uint64_t)tid);  /* behind its exit, before its last switch */
	if (!at && (known || named) && !dying)
		(void)life_of(v, (int32_t)tid, ts);
}
