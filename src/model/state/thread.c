/* Live threads of a machine and their attributes.
 *
 * An attribute is declared when it gets its first value. A reused TID uses the same attributes again, so a dead thread
 * needs no memory here. Lookup costs O(1), creation some path lookups. */
#include "base/base.h"
#include "model/loss/initial_state.h"
#include "model/state/state.h"

/* Inode numbers of Linux's initial namespaces, which the host itself uses. */
#define ROOT_PID_NS 4026531836
#define ROOT_CGROUP_NS 4026531835

#define SHORT_WAKEUP 10000  /* minimum delay from waking to wakeup, ns, that is written as an interval */
#define IDLE_LEAVE_MAX 1000000  /* time within which an idle CPU runs a woken thread, ns; deep idle takes some 0.1 ms */

bool tid_valid(int64_t tid)
{
	return tid > 0 && tid <= INT32_MAX;
}

struct thread *thread_find(const struct machine *mc, int64_t tid)
{
	uint64_t *found = tid_valid(tid) ? map_find(&mc->thread, (uint64_t)tid) : NULL;
	return found ? (struct thread *)(uintptr_t)*found : NULL;
}

static void format_node(char node[NODE_MAX], const char *root, int32_t tid)
{
	snprintf(node, NODE_MAX, "%s/" SCHEMA_THREADS "/%" PRId32, root, tid);
}

static uint32_t declare_node_attribute(struct model *m, const char *node, enum thread_attr attr)
{
	return sink_attribute(&m->sink, node, &thread_schema[attr], attr == THREAD_STATUS ? m->set_thread : m->set_out_by);
}

/* Declares an attribute. The node's path is cached, because calls for one thread usually follow each other. */
static __attribute__((noinline)) uint32_t declare_attribute(struct machine *mc, int32_t tid, enum thread_attr attr)
{
	if (mc->node_tid != tid)
		format_node(mc->node, mc->root, tid);
	mc->node_tid = tid;
	return declare_node_attribute(mc->model, mc->node, attr);
}

static void container_root(char *root, size_t size, const struct thread *th)
{
	bool own_pids = th->pid_ns && th->pid_ns != ROOT_PID_NS;
	snprintf(root, size, "/" SCHEMA_CONTAINERS "/%s-%" PRIu32, own_pids ? "pidns" : "cgroupns",
	         own_pids ? th->pid_ns : th->cgroup_ns);
}

static uint32_t thread_attribute(struct machine *mc, struct thread *th, enum thread_attr attr)
{
	if (th->attr[attr] == HISTORY_NONE)
		th->attr[attr] = declare_attribute(mc, th->tid, attr);
	return th->attr[attr];
}

static __attribute__((noinline)) uint32_t declare_container_attribute(struct model *m, const struct thread *th,
                                                                      enum thread_attr attr)
{
	char root[64], node[NODE_MAX];
	container_root(root, sizeof root, th);
	format_node(node, root, th->tid);
	return declare_node_attribute(m, node, attr);
}

static uint32_t container_attribute(struct machine *mc, struct thread *th, enum thread_attr attr)
{
	if (th->container_attr[attr] == HISTORY_NONE)
		th->container_attr[attr] = declare_container_attribute(mc->model, th, attr);
	return th->container_attr[attr];
}

void thread_set_at(struct machine *mc, struct thread *th, int64_t t, enum thread_attr attr, int64_t value)
{
	sink_set_at(&mc->model->sink, t, thread_attribute(mc, th, attr), value);
	if (th->container_attr && (!th->detached || (value == HISTORY_NULL && th->container_attr[attr] != HISTORY_NONE)))
		sink_set_at(&mc->model->sink, t, container_attribute(mc, th, attr), value);
}

/* Writes nice levels of the host's threads. Threads that always have nice level 0 need no attribute. */
void thread_set_nice(struct machine *mc, struct thread *th, int8_t nice)
{
	const bool is_other = nice != NICE_UNKNOWN && nice != th->nice;
	th->nice = nice;
	if (is_other && mc->index == 0 && (nice || th->attr[THREAD_NICE] != HISTORY_NONE))
		thread_set(mc, th, THREAD_NICE, nice);
}

/* Returns the vCPU that the thread runs at this time; NULL: none. A TID may have belonged to another process and another
 * VM's vCPU before, and may again later: the PID decides if known, then the lifetimes. */
static const struct candidate *find_candidate(struct machine *mc, const struct thread *th)
{
	struct model *m = mc->model;
	uint64_t *first = map_find(&mc->candidate, (uint64_t)th->tid);
	const struct candidate *best = NULL;

	for (uint32_t i = first ? (uint32_t)*first - 1 : NONE; i != NONE; i = m->candidate[i].next) {
		const struct candidate *c = &m->candidate[i];
		const struct vcpu *v = &m->vcpu[c->vcpu];
		/* The previous thread of this vCPU exited while its exit event was lost. */
		bool vacant = !v->thread || (v->thread != th && v->life_end < m->sink.now);
		if (vacant && c->life.from <= m->sink.now && m->sink.now <= c->life.to && !best &&
		    (th->pid < 0 || v->vm->host_pid < 0 || th->pid == v->vm->host_pid))
			best = c;
	}
	return best;
}

static void unbind_vcpu(struct machine *mc, struct thread *th)
{
	struct model *m = mc->model;
	if (th->vcpu == NONE)
		return;
	struct vcpu *v = &m->vcpu[th->vcpu];
	v->thread = NULL;
	th->vcpu = NONE;
	guest_clear_mode(m, v);
	sink_set(&m->sink, v->attr_host_thread, HISTORY_NULL);
	thread_set(mc, th, THREAD_VM, HISTORY_NULL);
	update_vcpu(m, v);
}

/* Binds a thread to the vCPU that it runs, if there is one. */
static void bind_vcpu(struct machine *mc, struct thread *th)
{
	struct model *m = mc->model;
	const struct candidate *c = th->vcpu == NONE ? find_candidate(mc, th) : NULL;
	if (!c)
		return;
	struct vcpu *v = &m->vcpu[c->vcpu];
	if (v->thread) {
		throttling_migrated(m, v);
		unbind_vcpu(mc, v->thread);
	}
	th->vcpu = c->vcpu;
	th->since = m->sink.now;
	v->thread = th;
	v->life_end = c->life.to;
	v->mode = mc->has_entries ? MODE_UNKNOWN : MODE_UNTRACED;
	guest_clear_mode(m, v);
	idle_tracker_init(&v->tracker, mc->prescan && mc->has_entries ? &mc->prescan->idle_stats : NULL, th->tid);
	sink_set(&m->sink, v->attr_host_thread, th->tid);
	thread_set(mc, th, THREAD_VM, history_ref(v->vm->text_name, v->number));
}

void thread_enter_guest(struct machine *mc, struct thread *th)
{
	bind_vcpu(mc, th);
	if (th->vcpu == NONE)
		return;
	update_thread(mc, th);
	update_cpu(mc, (uint32_t)th->on_cpu);
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
		.tid = (int32_t)tid, .pid = -1, .on_cpu = -1, .cpu = -1, .waker = -1, .vcpu = NONE, .since = mc->model->sink.now,
		.sched = THREAD_UNKNOWN, .status = STATUS_NULL, .waker_in = HISTORY_NULL, .woken_by = HISTORY_NULL,
		.arrived_at = INT64_MIN, .nice = NICE_UNKNOWN, .shown_group = -1, .group = -1, .throttled_since = INT64_MAX,
	};
	for (int i = 0; i < THREAD_ATTRS; i++)
		th->attr[i] = HISTORY_NONE;
	*slot = (uint64_t)(uintptr_t)th;
	group_join(mc, th);
	bind_vcpu(mc, th);
	return th;
}

static void free_thread(struct thread *th)
{
	free(th->container_attr);
	free(th->waits);
	free(th);
}

void thread_end(struct machine *mc, struct thread *th)
{
	if (th->on_cpu >= 0)
		cpu_set_unknown(mc, (uint32_t)th->on_cpu);
	if (th->in_quota || th->waits)
		group_quota_thread_end(mc, th, false);
	unbind_vcpu(mc, th);
	thread_set(mc, th, THREAD_STATUS, HISTORY_NULL);
	if (th->pid >= 0)
		thread_set(mc, th, THREAD_PID, HISTORY_NULL);  /* the first events of the next thread with this TID may lack its
		                                                * PID */
	throttled_end(mc, th);
	group_leave(mc, th);
	if (th->attr[THREAD_NICE] != HISTORY_NONE)
		thread_set(mc, th, THREAD_NICE, HISTORY_NULL);
	map_remove(&mc->thread, (uint64_t)th->tid);
	free_thread(th);
}

void thread_free_all(struct machine *mc)
{
	uint64_t tid, p;
	for (size_t at = 0; map_each(&mc->thread, &at, &tid, &p); )
		free_thread((struct thread *)(uintptr_t)p);
	map_release(&mc->thread);
}

/* Returns the name if threads with it exist in VMs only: drivers of virtual devices, agents of hypervisors; else NULL. */
static const char *find_vm_thread(const char *name)
{
	static const char *const names[] = { "vmwgfx", "vmtoolsd", "VBoxService", "VBoxClient", "qemu-ga", "spice-vdagentd",
		"hv_kvp_daemon", "hv_vss_daemon", "hv_balloon", "vballoon", "prltoolsd" };
	const char *driver = strncmp(name, "irq/", 4) == 0 ? strchr(name, '-') : NULL;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (strcmp(driver ? driver + 1 : name, names[i]) == 0)
			return names[i];
	return NULL;
}

void thread_rename(struct machine *mc, struct thread *th, const char *name)
{
	struct model_sink *sink = &mc->model->sink;
	if (*name)
		thread_set(mc, th, THREAD_NAME, sink_id(sink, name));
	if (mc->index == 0 || mc->is_virtual || !(mc->vm_thread = find_vm_thread(name)))
		return;
	mc->is_virtual = true;
	sink_set(sink, sink_attribute(sink, mc->root, &machine_schema[MACHINE_VIRTUAL], 0), 1);
}

/* Repeats the binding after new information about the thread. is_other: it is another thread than before. */
static void rebind_vcpu(struct machine *mc, struct thread *th, bool is_other)
{
	uint32_t before = th->vcpu;
	if (is_other)
		unbind_vcpu(mc, th);
	bind_vcpu(mc, th);
	if (th->vcpu == before)
		return;
	update_thread(mc, th);
	if (th->on_cpu >= 0)
		update_cpu(mc, (uint32_t)th->on_cpu);
}

/* Called when a thread with another name has the TID after a loss: that thread may not belong to the container. */
static void leave_container(struct machine *mc, struct thread *th)
{
	for (int i = 0; th->container_attr && !th->detached && i < THREAD_ATTRS; i++)
		if (th->container_attr[i] != HISTORY_NONE)
			sink_set(&mc->model->sink, th->container_attr[i], i == THREAD_STATUS ? THREAD_UNKNOWN : HISTORY_NULL);
	th->detached = th->container_attr != NULL;
}

void thread_learn_slow(struct machine *mc, struct thread *th, int64_t comm, int64_t pid)
{
	bool renamed = comm > 0 && comm != (int64_t)th->comm;
	bool was_stale = th->stale && comm > 0, learned = pid >= 0 && pid <= INT32_MAX && pid != th->pid;
	/* A new name means another process, unless the thread called exec; with the same name it may be the same process. */
	if (was_stale && th->pid >= 0 && pid != th->pid && (renamed || mc->has_pids)) {
		th->pid = -1;
		thread_set(mc, th, THREAD_PID, HISTORY_NULL);
	}
	if (was_stale && renamed)
		leave_container(mc, th);
	if (renamed) {
		th->comm = (uint32_t)comm;
		thread_rename(mc, th, mc->names.get(mc->names.of, comm));
	}
	th->stale = th->stale && comm <= 0;
	if (learned) {
		th->pid = (int32_t)pid;
		thread_set(mc, th, THREAD_PID, pid);
	}
	const struct machine *vm = th->vcpu == NONE ? NULL : mc->model->vcpu[th->vcpu].vm;
	bool is_other = learned && vm && vm->host_pid >= 0 && vm->host_pid != pid;
	if (learned || (was_stale && renamed))
		rebind_vcpu(mc, th, is_other || (was_stale && renamed));
}

void thread_set_cpu(struct machine *mc, struct thread *th, int64_t cpu)
{
	if (cpu < 0 || cpu > UINT16_MAX || cpu == th->cpu)
		return;
	th->cpu = (int32_t)cpu;
	th->since = mc->model->sink.now;
	thread_set(mc, th, THREAD_CPU, cpu);
}

void thread_clear_cpu(struct machine *mc, struct thread *th)
{
	if (th->cpu >= 0)
		thread_set(mc, th, THREAD_CPU, HISTORY_NULL);
	th->cpu = -1;
	th->since = mc->model->sink.now;
}

/* Returns true if the thread, which now runs on `cpu`, probably waited for this CPU since it was woken. sched_waking alone
 * names the CPU on which the thread slept, but the kernel may queue it on another one. An idle CPU runs a woken thread
 * within IDLE_LEAVE_MAX: if `cpu` was idle for longer meanwhile, it took the thread from another CPU. */
static bool has_probably_waited_for(const struct machine *mc, const struct thread *th, uint32_t cpu)
{
	const struct cpu *c = &mc->cpu[cpu];
	const int64_t busy_since = c->state == CPU_IDLE ? mc->model->sink.now : c->busy_since;
	return mc->waking_is_wakeup && !mc->has_migrations && th->woken == WOKEN_YES && c->state != CPU_UNSEEN &&
	       busy_since <= th->since + IDLE_LEAVE_MAX;
}

/* The time of the move between runqueues is unknown, so the CPU is unknown from the thread's last event, unless it is
 * assumed to be the one on which the thread runs now. */
void thread_check_move(struct machine *mc, struct thread *th, uint32_t cpu)
{
	struct vcpu *v = th->vcpu == NONE ? NULL : &mc->model->vcpu[th->vcpu];
	if (th->on_cpu >= 0 || th->sched != THREAD_PREEMPTED || th->cpu < 0 || (uint32_t)th->cpu == cpu)
		return;
	const bool is_assumed = has_probably_waited_for(mc, th, cpu);
	mc->assumed_cpus += is_assumed;
	thread_set_at(mc, th, th->since, THREAD_CPU, is_assumed ? (int64_t)cpu : HISTORY_NULL);
	th->cpu = is_assumed ? (int32_t)cpu : -1;
	if (v && v->pcpu >= 0) {
		const int64_t at = v->status_since > th->since ? v->status_since : th->since;
		sink_set_at(&mc->model->sink, at, v->attr_pcpu, is_assumed ? (int64_t)cpu : HISTORY_NULL);
		v->pcpu = th->cpu;
	}
}

/* Returns the time since which the thread may have waited on that CPU, or on any CPU if migrations are not recorded,
 * host ns; INT64_MAX: not at all. */
static int64_t busy_since(const struct machine *mc, int32_t cpu)
{
	const bool one = mc->has_migrations && cpu >= 0;
	const uint32_t from = one ? (uint32_t)cpu : 0, to = one ? (uint32_t)cpu + 1 : mc->cpus;
	int64_t since = INT64_MAX;
	for (uint32_t i = from; i < to && i < mc->cpus; i++)
		if (mc->cpu[i].state != CPU_UNSEEN && mc->cpu[i].state != CPU_IDLE && mc->cpu[i].busy_since < since)
			since = mc->cpu[i].busy_since;
	return since;
}

/* Makes the state of the thread unknown since `since`, because it may have slept or waited for a CPU; also that of a
 * guest thread current on it. */
static void set_sleep_unknown(struct machine *mc, struct thread *th, int64_t since)
{
	struct model *m = mc->model;
	struct vcpu *v = th->vcpu == NONE ? NULL : &m->vcpu[th->vcpu];
	since = since > th->status_since ? since : th->status_since;
	if (since >= m->sink.now)
		return;
	th->status = THREAD_UNKNOWN;
	th->status_since = since;
	thread_set_at(mc, th, since, THREAD_STATUS, THREAD_UNKNOWN);
	const bool is_asleep = v && (v->status == VCPU_IDLE || v->status == VCPU_HOST_BLOCKED);
	if (!is_asleep && !(v && mc->has_run_states && v->status != STATUS_NULL))
		return;
	v->status = VCPU_UNKNOWN;
	v->status_since = since > v->status_since ? since : v->status_since;
	sink_set_at(&m->sink, v->status_since, v->attr_status, VCPU_UNKNOWN);
	struct thread *current = v->vm->cpu[v->number].current;
	if (current && current->status == THREAD_VIRT_PREEMPTED)
		set_sleep_unknown(v->vm, current, since);
}

void thread_unrecorded_wakeup(struct machine *mc, struct thread *th, int32_t cpu)
{
	if (th->on_cpu < 0)
		set_sleep_unknown(mc, th, th->never_woken ? INT64_MIN : busy_since(mc, cpu));
}

void thread_unrecorded_change(struct machine *mc, struct thread *th)
{
	if (th->on_cpu < 0 && th->status != STATUS_NULL)
		set_sleep_unknown(mc, th, INT64_MIN);
}

void thread_write_waker(struct machine *mc, struct thread *th)
{
	const bool known = th->waker >= 0;
	int64_t by = known ? history_ref(mc->text_name, (uint32_t)th->waker) : HISTORY_NULL, at = th->waker_at;
	if (!known || mc->model->sink.now - at < SHORT_WAKEUP)
		at = mc->model->sink.now;
	else if (by == th->woken_by && at - 1 > th->woken_at)  /* 1 ns of null separates two wakings by the same waker */
		thread_set_at(mc, th, at - 1, THREAD_WOKEN_BY, HISTORY_NULL);
	thread_set_at(mc, th, at, THREAD_WOKEN_BY, by);
	thread_set(mc, th, THREAD_WOKEN_IN, known ? th->waker_in : HISTORY_NULL);
	th->woken_by = by;
	th->woken_at = at;
}

/* Adds the thread to its container and copies its known values there. */
static void enter_container(struct machine *mc, struct thread *th)
{
	th->container_attr = mem_new(THREAD_ATTRS, sizeof *th->container_attr);
	for (int i = 0; i < THREAD_ATTRS; i++)
		th->container_attr[i] = HISTORY_NONE;
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

/* Returns true if the thread can enter a container with this namespace: only the host has containers. */
static bool is_namespace(const struct machine *mc, const struct thread *th, int64_t ns)
{
	return !mc->parent && !mc->index && !th->container_attr && ns > 0 && ns <= UINT32_MAX;
}

void thread_set_pid_ns(struct machine *mc, struct thread *th, int64_t ns)
{
	if (!is_namespace(mc, th, ns) || th->pid_ns)
		return;
	th->pid_ns = (uint32_t)ns;
	if (ns != ROOT_PID_NS)
		enter_container(mc, th);
}

void thread_set_cgroup_ns(struct machine *mc, struct thread *th, int64_t ns)
{
	if (!is_namespace(mc, th, ns) || th->cgroup_ns)
		return;
	th->cgroup_ns = (uint32_t)ns;
	if (ns != ROOT_CGROUP_NS)
		enter_container(mc, th);
}
