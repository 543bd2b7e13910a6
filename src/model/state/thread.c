/* The live threads of a machine and their attributes.
 *
 * A thread's attributes are declared when they get their first value; those of a TID that is used again are found
 * again by the history, so nothing of a dead thread stays here.  Find costs O(1), birth some path lookups. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "model/loss/initial_state.h"
#include "model/state/state.h"

/* Inode numbers of Linux' initial namespaces: the host itself. */
#define ROOT_PID_NS 4026531836
#define ROOT_CGROUP_NS 4026531835

#define ON_ITS_WAY 10000  /* ns from the waking to the wakeup that are worth an interval */

bool tid_valid(int64_t tid)
{
	return tid > 0 && tid <= INT32_MAX;
}

struct thread *thread_find(const struct machine *mc, int64_t tid)
{
	uint64_t *found = tid_valid(tid) ? map_find(&mc->thread, (uint64_t)tid) : NULL;
	return found ? (struct thread *)(uintptr_t)*found : NULL;
}

static void node_of(char node[NODE_LONGEST], const char *root, int32_t tid)
{
	snprintf(node, NODE_LONGEST, "%s/" SCHEMA_THREADS "/%" PRId32, root, tid);
}

static uint32_t declare_at(struct model *m, const char *node, enum thread_attr what)
{
	return sink_attribute(&m->sink, node, &thread_schema[what], what == THREAD_STATUS ? m->set_thread : 0);
}

/* Mostly of the same thread as the one before. */
static __attribute__((noinline)) uint32_t declare(struct machine *mc, int32_t tid, enum thread_attr what)
{
	if (mc->node_tid != tid)
		node_of(mc->node, mc->root, tid);
	mc->node_tid = tid;
	return declare_at(mc->model, mc->node, what);
}

static void container_root(char *root, size_t size, const struct thread *th)
{
	bool own_pids = th->pid_ns && th->pid_ns != ROOT_PID_NS;
	snprintf(root, size, "/" SCHEMA_CONTAINERS "/%s-%" PRIu32, own_pids ? "pidns" : "cgroupns",
	         own_pids ? th->pid_ns : th->cgroup_ns);
}

static uint32_t attribute(struct machine *mc, struct thread *th, enum thread_attr what)
{
	if (th->attr[what] == HISTORY_NONE)
		th->attr[what] = declare(mc, th->tid, what);
	return th->attr[what];
}

static __attribute__((noinline)) uint32_t declare_mirror(struct model *m, const struct thread *th, enum thread_attr what)
{
	char root[64], node[NODE_LONGEST];
	container_root(root, sizeof root, th);
	node_of(node, root, th->tid);
	return declare_at(m, node, what);
}

static uint32_t mirror(struct machine *mc, struct thread *th, enum thread_attr what)
{
	if (th->mirror[what] == HISTORY_NONE)
		th->mirror[what] = declare_mirror(mc->model, th, what);
	return th->mirror[what];
}

void thread_set_at(struct machine *mc, struct thread *th, int64_t t, enum thread_attr what, int64_t value)
{
	sink_set_at(&mc->model->sink, t, attribute(mc, th, what), value);
	if (th->mirror && (!th->apart || (value == HISTORY_NULL && th->mirror[what] != HISTORY_NONE)))
		sink_set_at(&mc->model->sink, t, mirror(mc, th, what), value);
}

void thread_groups(struct model *m, const struct model_groups *groups, size_t n)
{
	for (size_t i = 0; i < n; i++)
		*map_put(&m->groups, (uint64_t)groups[i].tid, NULL) = (uint64_t)sink_id(&m->sink, groups[i].text);
}

static void join_groups(struct machine *mc, struct thread *th)
{
	const uint64_t *text = mc->index == 0 ? map_find(&mc->model->groups, (uint64_t)th->tid) : NULL;
	if (text)
		thread_set(mc, th, THREAD_GROUPS, (int64_t)*text);
}

/* The next one of its TID is another thread. */
static void leave_groups(struct machine *mc, struct thread *th)
{
	if (th->attr[THREAD_GROUPS] == HISTORY_NONE)
		return;
	thread_set(mc, th, THREAD_GROUPS, HISTORY_NULL);
	(void)map_remove(&mc->model->groups, (uint64_t)th->tid);
}

/* Most of the host's threads are of nice 0 all the time, and need no row to say so. */
void thread_nice(struct machine *mc, struct thread *th, int8_t nice)
{
	const bool is_other = nice != NICE_UNKNOWN && nice != th->nice;
	th->nice = nice;
	if (is_other && mc->index == 0 && (nice || th->attr[THREAD_NICE] != HISTORY_NONE))
		thread_set(mc, th, THREAD_NICE, nice);
}

/* The vCPU that a thread emulates that is met now, or NULL.  The same TID may have been another process before, and
 * another VM's vCPU, and become another one later: the process decides, where it is known, and who is gone first. */
static const struct candidate *candidate_of(struct machine *mc, const struct thread *th)
{
	struct model *m = mc->model;
	uint64_t *first = map_find(&mc->candidate, (uint64_t)th->tid);
	const struct candidate *best = NULL;

	for (uint32_t i = first ? (uint32_t)*first - 1 : NONE; i != NONE; i = m->candidate[i].next) {
		const struct candidate *c = &m->candidate[i];
		const struct vcpu *v = &m->vcpu[c->vcpu];
		/* Who did that before and was not seen to end has ended. */
		bool vacant = !v->thread || (v->thread != th && v->until < m->sink.now);
		if (vacant && c->life.from <= m->sink.now && m->sink.now <= c->life.to && !best &&
		    (th->pid < 0 || v->vm->host_pid < 0 || th->pid == v->vm->host_pid))
			best = c;
	}
	return best;
}

static void unbind(struct machine *mc, struct thread *th)
{
	struct model *m = mc->model;
	if (th->vcpu == NONE)
		return;
	struct vcpu *v = &m->vcpu[th->vcpu];
	v->thread = NULL;
	th->vcpu = NONE;
	guest_lose(m, v);
	sink_set(&m->sink, v->attr_host_thread, HISTORY_NULL);
	thread_set(mc, th, THREAD_VM, HISTORY_NULL);
	update_vcpu(m, v);
}

/* Ties a thread to the vCPU it emulates, if any. */
static void bind(struct machine *mc, struct thread *th)
{
	struct model *m = mc->model;
	const struct candidate *c = th->vcpu == NONE ? candidate_of(mc, th) : NULL;
	if (!c)
		return;
	struct vcpu *v = &m->vcpu[c->vcpu];
	if (v->thread) {
		limits_moved(m, v);
		unbind(mc, v->thread);
	}
	th->vcpu = c->vcpu;
	th->since = m->sink.now;
	v->thread = th;
	v->until = c->life.to;
	v->mode = mc->has_kvm ? MODE_UNKNOWN : MODE_UNTRACED;
	guest_lose(m, v);
	quiet_init(&v->quiet, mc->start && mc->has_kvm ? &mc->start->halts : NULL, th->tid);
	sink_set(&m->sink, v->attr_host_thread, th->tid);
	thread_set(mc, th, THREAD_VM, history_ref(v->vm->text_name, v->number));
}

void thread_enters(struct machine *mc, struct thread *th)
{
	bind(mc, th);
	if (th->vcpu == NONE)
		return;
	update_thread(mc, th);
	update_cpu(mc, (uint32_t)th->on);
}

struct thread *thread_get(struct machine *mc, int64_t tid)
{
	bool is_new;
	if (!tid_valid(tid))
		return NULL;
	uint64_t *slot = map_put(&mc->thread, (uint64_t)tid, &is_new);
	if (!is_new)
		return (struct thread *)(uintptr_t)*slot;
	struct thread *th = mem_new(1, sizeof *th);
	*th = (struct thread){
		.tid = (int32_t)tid, .pid = -1, .on = -1, .cpu = -1, .waker = -1, .vcpu = NONE, .since = mc->model->sink.now,
		.sched = THREAD_UNKNOWN, .status = STATUS_NULL, .waker_in = HISTORY_NULL, .woken_by = HISTORY_NULL,
		.nice = NICE_UNKNOWN,
	};
	for (int i = 0; i < THREAD_ATTRS; i++)
		th->attr[i] = HISTORY_NONE;
	*slot = (uint64_t)(uintptr_t)th;
	join_groups(mc, th);
	bind(mc, th);
	return th;
}

static void release(struct thread *th)
{
	free(th->mirror);
	free(th);
}

void thread_die(struct machine *mc, struct thread *th)
{
	if (th->on >= 0)
		cpu_unknown(mc, (uint32_t)th->on);
	unbind(mc, th);
	thread_set(mc, th, THREAD_STATUS, HISTORY_NULL);
	if (th->pid >= 0)
		thread_set(mc, th, THREAD_PID, HISTORY_NULL);  /* the next one of its TID may come without a word of its process */
	leave_groups(mc, th);
	if (th->attr[THREAD_NICE] != HISTORY_NONE)
		thread_set(mc, th, THREAD_NICE, HISTORY_NULL);
	map_remove(&mc->thread, (uint64_t)th->tid);
	release(th);
}

void thread_forget(struct machine *mc)
{
	uint64_t tid, p;
	for (size_t at = 0; map_each(&mc->thread, &at, &tid, &p); )
		release((struct thread *)(uintptr_t)p);
	map_release(&mc->thread);
}

void thread_rename(struct machine *mc, struct thread *th, const char *name)
{
	if (*name)
		thread_set(mc, th, THREAD_NAME, sink_id(&mc->model->sink, name));
}

/* More is known of the thread: perhaps it is a vCPU's, or (is_other) not the one it was. */
static void rebind(struct machine *mc, struct thread *th, bool is_other)
{
	uint32_t before = th->vcpu;
	if (is_other)
		unbind(mc, th);
	bind(mc, th);
	if (th->vcpu == before)
		return;
	update_thread(mc, th);
	if (th->on >= 0)
		update_cpu(mc, (uint32_t)th->on);
}

/* Another thread of its TID may have taken its place among lost events, and that may belong to no container. */
static void leave_container(struct machine *mc, struct thread *th)
{
	for (int i = 0; th->mirror && !th->apart && i < THREAD_ATTRS; i++)
		if (th->mirror[i] != HISTORY_NONE)
			sink_set(&mc->model->sink, th->mirror[i], i == THREAD_STATUS ? THREAD_UNKNOWN : HISTORY_NULL);
	th->apart = th->mirror != NULL;
}

void thread_take(struct machine *mc, struct thread *th, int64_t comm, int64_t pid)
{
	bool renamed = comm > 0 && comm != (int64_t)th->comm;
	bool is_doubted = th->doubted && comm > 0, learned = pid >= 0 && pid <= INT32_MAX && pid != th->pid;
	/* Under another name it belongs to another process, unless it executed a program; under the same it may. */
	if (is_doubted && th->pid >= 0 && pid != th->pid && (renamed || mc->tells_pids)) {
		th->pid = -1;
		thread_set(mc, th, THREAD_PID, HISTORY_NULL);
	}
	if (is_doubted && renamed)
		leave_container(mc, th);
	if (renamed) {
		th->comm = (uint32_t)comm;
		thread_rename(mc, th, mc->names.get(mc->names.of, comm));
	}
	th->doubted = th->doubted && comm <= 0;
	if (learned) {
		th->pid = (int32_t)pid;
		thread_set(mc, th, THREAD_PID, pid);
	}
	const struct machine *vm = th->vcpu == NONE ? NULL : mc->model->vcpu[th->vcpu].vm;
	bool is_other = learned && vm && vm->host_pid >= 0 && vm->host_pid != pid;
	if (learned || (is_doubted && renamed))
		rebind(mc, th, is_other || (is_doubted && renamed));
}

void thread_place(struct machine *mc, struct thread *th, int64_t cpu)
{
	if (cpu < 0 || cpu > UINT16_MAX || cpu == th->cpu)
		return;
	th->cpu = (int32_t)cpu;
	th->since = mc->model->sink.now;
	thread_set(mc, th, THREAD_CPU, cpu);
}

void thread_displace(struct machine *mc, struct thread *th)
{
	if (th->cpu >= 0)
		thread_set(mc, th, THREAD_CPU, HISTORY_NULL);
	th->cpu = -1;
	th->since = mc->model->sink.now;
}

/* When it moved among those that waited for CPUs is not known. */
void thread_strays(struct machine *mc, struct thread *th, uint32_t cpu)
{
	struct vcpu *v = th->vcpu == NONE ? NULL : &mc->model->vcpu[th->vcpu];
	if (th->on >= 0 || th->sched != THREAD_PREEMPTED || th->cpu < 0 || (uint32_t)th->cpu == cpu)
		return;
	thread_set_at(mc, th, th->since, THREAD_CPU, HISTORY_NULL);
	th->cpu = -1;
	if (v && v->pcpu >= 0) {
		const int64_t at = v->status_since > th->since ? v->status_since : th->since;
		sink_set_at(&mc->model->sink, at, v->attr_pcpu, HISTORY_NULL);
		v->pcpu = -1;
	}
}

/* Since when somebody may have waited there: where moves are not told, for any CPU. */
static int64_t busy_since(const struct machine *mc, int32_t cpu)
{
	const bool one = mc->tells_moves && cpu >= 0;
	const uint32_t from = one ? (uint32_t)cpu : 0, to = one ? (uint32_t)cpu + 1 : mc->cpus;
	int64_t since = INT64_MAX;
	for (uint32_t i = from; i < to && i < mc->cpus; i++)
		if (mc->cpu[i].state != CPU_UNSEEN && mc->cpu[i].state != CPU_IDLE && mc->cpu[i].busy_since < since)
			since = mc->cpu[i].busy_since;
	return since;
}

/* From then on it may have slept, or waited for a CPU; and whatever it executes with it. */
static void doubt_sleep(struct machine *mc, struct thread *th, int64_t since)
{
	struct model *m = mc->model;
	struct vcpu *v = th->vcpu == NONE ? NULL : &m->vcpu[th->vcpu];
	since = since > th->status_since ? since : th->status_since;
	if (since >= m->sink.now)
		return;
	th->status = THREAD_UNKNOWN;
	th->status_since = since;
	thread_set_at(mc, th, since, THREAD_STATUS, THREAD_UNKNOWN);
	if (!v || (v->status != VCPU_IDLE && v->status != VCPU_HOST_BLOCKED))
		return;
	v->status = VCPU_UNKNOWN;
	v->status_since = since > v->status_since ? since : v->status_since;
	sink_set_at(&m->sink, v->status_since, v->attr_status, VCPU_UNKNOWN);
	struct thread *current = v->vm->cpu[v->number].current;
	if (current && current->status == THREAD_VIRT_PREEMPTED)
		doubt_sleep(v->vm, current, since);
}

void thread_wakes(struct machine *mc, struct thread *th, int32_t cpu)
{
	if (th->on < 0)
		doubt_sleep(mc, th, th->unborn ? INT64_MIN : busy_since(mc, cpu));
}

void thread_waker(struct machine *mc, struct thread *th)
{
	const bool known = th->waker >= 0;
	int64_t by = known ? history_ref(mc->text_name, (uint32_t)th->waker) : HISTORY_NULL, at = th->waker_at;
	if (!known || mc->model->sink.now - at < ON_ITS_WAY)
		at = mc->model->sink.now;
	else if (by == th->woken_by && at - 1 > th->woken_at)  /* a moment without it tells one waking from the next */
		thread_set_at(mc, th, at - 1, THREAD_WOKEN_BY, HISTORY_NULL);
	thread_set_at(mc, th, at, THREAD_WOKEN_BY, by);
	thread_set(mc, th, THREAD_WOKEN_IN, known ? th->waker_in : HISTORY_NULL);
	th->woken_by = by;
	th->woken_at = at;
}

/* From here on it belongs to a container.  What is already known of it holds there too. */
static void contain(struct machine *mc, struct thread *th)
{
	th->mirror = mem_new(THREAD_ATTRS, sizeof *th->mirror);
	for (int i = 0; i < THREAD_ATTRS; i++)
		th->mirror[i] = HISTORY_NONE;
	th->since = th->status_since = mc->model->sink.now;
	if (th->status != STATUS_NULL)
		thread_set(mc, th, THREAD_STATUS, th->status);
	if (th->comm)
		thread_rename(mc, th, mc->names.get(mc->names.of, th->comm));
	if (th->cpu >= 0)
		thread_set(mc, th, THREAD_CPU, th->cpu);
	if (th->pid >= 0)
		thread_set(mc, th, THREAD_PID, th->pid);
}

/* Containers are the host's. */
static bool is_namespace(const struct machine *mc, const struct thread *th, int64_t ns)
{
	return !mc->parent && !mc->index && !th->mirror && ns > 0 && ns <= UINT32_MAX;
}

void thread_pid_ns(struct machine *mc, struct thread *th, int64_t ns)
{
	if (!is_namespace(mc, th, ns) || th->pid_ns)
		return;
	th->pid_ns = (uint32_t)ns;
	if (ns != ROOT_PID_NS)
		contain(mc, th);
}

void thread_cgroup_ns(struct machine *mc, struct thread *th, int64_t ns)
{
	if (!is_namespace(mc, th, ns) || th->cgroup_ns)
		return;
	th->cgroup_ns = (uint32_t)ns;
	if (ns != ROOT_CGROUP_NS)
		contain(mc, th);
}
