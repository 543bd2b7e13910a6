/* The source of all threads: samples whose victims are processes. */
#include "base/base.h"
#include "live/collection.h"
#include "live/machine_names.h"
#include "live/machine_source.h"

struct process {
	u32 key, tgid, kernel, marked;
	const struct live_thread *vcpu;  /* NULL: a process */
	const struct live_thread *vmm_of;  /* a vCPU of its VM; NULL: no VMM */
	uint64_t group;
	int64_t ran, most;         /* most: by one thread */
	int32_t cpu;               /* of that thread; -1: ended */
	int32_t victim;            /* index; -1: none */
	int64_t at;                /* time up to which it is counted; 0: ended */
	bool lives, stopped;
	char comm[16];
};

struct machine_build {
	struct live *l;
	struct live_sample *s;
	struct process *process;
	size_t len, cap;
	struct map by_key, by_culprit;
	size_t vcpus_cap, culprits_cap, pairs_cap;
};

static const struct live_thread *find_vcpu(const struct live_threads *all, u32 tid, u32 pid)
{
	for (size_t i = 0; i < all->len; i++)
		if ((u32)all->thread[i].tid == tid || (u32)all->thread[i].pid == pid)
			return &all->thread[i];
	return NULL;
}

/* key: TGID, or CULPRIT_VICTIM + TID of a vCPU. */
static struct process *find_process(struct machine_build *b, u32 key)
{
	bool is_new;
	uint64_t *at = map_put(&b->by_key, key, &is_new);
	if (is_new) {
		const u32 tid = key & ~CULPRIT_VICTIM;
		struct process *p = ARRAY_PUSH(b->process, b->len, b->cap);
		*at = b->len - 1;
		*p = (struct process){ .key = key, .tgid = tid, .cpu = -1, .victim = -1 };
		if (key & CULPRIT_VICTIM)
			p->vcpu = find_vcpu(&b->l->threads, tid, 0);
		else
			p->vmm_of = find_vcpu(&b->l->threads, 0, tid);
	}
	return &b->process[*at];
}

/* ---- processes */

static void add_tasks(struct machine_build *b, const struct machine_period *p)
{
	for (size_t i = 0; i < p->endeds; i++) {
		const struct machine_ended *e = &p->ended[i].value;
		struct process *x = find_process(b, p->ended[i].key);
		x->ran += (int64_t)e->ran;
		x->group = e->group;
		x->kernel = e->kernel;
		x->marked |= e->marked;
		memcpy(x->comm, e->comm, sizeof x->comm);
	}
	for (size_t i = 0; i < p->tasks; i++) {
		const struct machine_task *t = &p->task[i];
		struct process *x = find_process(b, t->key);
		x->ran += (int64_t)t->ran;
		x->at = (int64_t)t->at;
		x->stopped = t->stopped;
		x->marked |= t->marked;
		if ((int64_t)t->ran >= x->most) {
			x->most = (int64_t)t->ran;
			x->cpu = (int32_t)t->cpu;
		}
		if (!x->lives || t->tid == t->tgid) {
			x->group = t->group;
			x->kernel = t->kernel;
			memcpy(x->comm, t->comm, sizeof x->comm);
		}
		x->lives = true;
	}
}

static int32_t find_group(struct machine_build *b, const struct process *p)
{
	if (p->vcpu || p->vmm_of)
		return live_group_put(b->s, (p->vcpu ? p->vcpu : p->vmm_of)->machine, LIVE_VM);
	if (p->kernel)
		return live_group_put(b->s, "kernel threads", LIVE_KERNEL_THREADS);
	return live_group_put(b->s, machine_names_of_group(b->l->names, p->group), LIVE_CONTROL_GROUP);
}

/* Returns the victim of a process or vCPU; NULL: it is none. */
static struct live_vcpu *find_victim(struct machine_build *b, u32 key)
{
	struct process *p = find_process(b, key);
	char comm[17];
	if (p->victim >= 0)
		return &b->s->vcpu[p->victim];
	if ((b->l->request.command && !p->marked) || !p->comm[0])
		return NULL;
	p->victim = (int32_t)b->s->vcpus;
	struct live_vcpu *u = ARRAY_PUSH(b->s->vcpu, b->s->vcpus, b->vcpus_cap);
	*u = (struct live_vcpu){ .number = p->vcpu ? p->vcpu->number : -1, .tid = (int32_t)p->tgid,
		                     .pid = p->vcpu ? p->vcpu->pid : (int32_t)p->tgid, .cpu = p->cpu, .period = b->s->period,
		                     .vmm = -1, .top = -1, .longest_culprit = -1, .shared = -1, .sharer = -1 };
	u->ns.ran = p->ran;
	u->group = find_group(b, p);
	snprintf(comm, sizeof comm, "%.16s", p->comm);
	if (p->vcpu)
		memcpy(u->machine, p->vcpu->machine, sizeof u->machine);
	else
		text_escape(u->machine, sizeof u->machine, comm);
	return u;
}

/* ---- culprits */

static void describe(struct machine_build *b, u32 key, struct live_culprit *c)
{
	char comm[17], escaped[sizeof comm * TEXT_ESCAPED], all[2 * LIVE_NAME + sizeof escaped];
	if (culprit_fill_fixed(c, key))
		return;
	const struct process *p = find_process(b, key);
	c->pid = (int32_t)p->tgid;
	c->ran = p->ran;
	c->own = p->marked;
	c->group = p->group || p->kernel || p->vcpu || p->vmm_of ? find_group(b, p) : -1;
	if (p->vcpu || p->vmm_of)
		memcpy(c->machine, (p->vcpu ? p->vcpu : p->vmm_of)->machine, sizeof c->machine);
	if (p->vcpu) {
		c->kind = LIVE_VCPU;
		culprit_name_thread(c->name, p->vcpu);
		return;
	}
	c->kind = p->kernel ? LIVE_KERNEL : LIVE_PROCESS;
	snprintf(comm, sizeof comm, "%.16s", p->comm);
	text_escape(escaped, sizeof escaped, *comm ? comm : "(ended)");
	if (p->vmm_of) {
		c->kind = LIVE_VMM;
		snprintf(all, sizeof all, "%s's VMM (%s)", c->machine, escaped);
		text_cut(c->name, sizeof c->name, all);
		return;
	}
	const char *group = p->kernel || !p->group ? "/" : machine_names_of_group(b->l->names, p->group);
	if (strcmp(group, "/") == 0)
		snprintf(all, sizeof all, "host/%u %s", key, escaped);
	else
		snprintf(all, sizeof all, "%s/%s", group, escaped);
	text_cut(c->name, sizeof c->name, all);
}

static int32_t find_culprit(struct machine_build *b, u32 key)
{
	bool is_new;
	uint64_t *at = map_put(&b->by_culprit, key, &is_new);
	if (is_new) {
		const size_t i = b->s->culprits;
		*at = i;
		ARRAY_PUSH(b->s->culprit, b->s->culprits, b->culprits_cap);
		describe(b, key, &b->s->culprit[i]);
		return (int32_t)i;
	}
	return (int32_t)*at;
}

static void add_pair(struct machine_build *b, u32 victim, u32 culprit, uint64_t ns)
{
	struct live_vcpu *u = find_victim(b, victim);
	if (!u)
		return;
	const int32_t who = find_culprit(b, culprit == victim ? CULPRIT_OWN : culprit);
	*ARRAY_PUSH(b->s->pair, b->s->pairs, b->pairs_cap) = (struct live_pair){ (int32_t)(u - b->s->vcpu), who, (int64_t)ns };
	u->ns.stolen += (int64_t)ns;
	b->s->culprit[who].took += (int64_t)ns;
}

static void add_waits(struct machine_build *b, const struct machine_period *p)
{
	for (size_t i = 0; i < p->rows; i++) {
		const struct machine_row *r = &p->row[i].value;
		struct live_vcpu *u = find_victim(b, p->row[i].key);
		if (!u)
			continue;
		u->ns.throttled = (int64_t)r->throttled;
		u->waits = r->waits;
		for (int k = 0; k < LIVE_LENGTHS; k++)
			u->length[k] = r->bin[k];
		u->longest = (int64_t)r->longest;
		const u32 who = r->longest_culprit == p->row[i].key ? CULPRIT_OWN : r->longest_culprit;
		u->longest_culprit = r->longest ? find_culprit(b, who) : -1;
		if (r->lost)
			add_pair(b, p->row[i].key, CULPRIT_UNKNOWN, r->lost);
	}
	for (size_t i = 0; i < p->pairs; i++)
		add_pair(b, p->pair[i].key.victim, p->pair[i].key.culprit, p->pair[i].ns);
	live_sort_pairs(b->s);
}

/* A thread counts for the CPU that it used last. */
static void add_cpu_use(struct machine_build *b, const struct machine_period *p)
{
	struct map used = MAP_INIT;
	for (size_t i = 0; i < p->tasks; i++)
		if (p->task[i].ran && p->task[i].tid && p->task[i].cpu < b->s->cpus)
			*map_put(&used, (uint64_t)p->task[i].cpu << 32 | p->task[i].key, NULL) += p->task[i].ran;
	size_t at = 0;
	uint64_t key, ns;
	while (map_each(&used, &at, &key, &ns))
		live_use_cpu(b->s, (unsigned)(key >> 32), find_culprit(b, (u32)key), (int64_t)min64((int64_t)ns, b->s->period));
	map_release(&used);
}

/* What is the period's left is sleep, or a stop. The kernel's ticks tell which part of a vCPU's time its VMM used. */
static void finish_victims(struct machine_build *b)
{
	for (size_t i = 0; i < b->len; i++) {
		const struct process *p = &b->process[i];
		struct live_vcpu *u = p->victim >= 0 ? &b->s->vcpu[p->victim] : NULL;
		struct live_thread *t = (struct live_thread *)(uintptr_t)p->vcpu;
		if (!u)
			continue;
		if (t && p->at)
			u->period = live_own_period(t, p->at, u->period);
		const struct live_times ns = u->ns;
		const int64_t rest = max64(u->period - ns.ran - ns.stolen - ns.throttled, 0);
		u->ns.paused = p->stopped ? rest : 0;
		u->ns.blocked = rest - u->ns.paused;
		if (t)
			u->vmm = live_vmm_time(b->l, t, u->ns.ran);
	}
}

static void begin(struct live *l)
{
	struct machine_period p;
	machine_source_take(l->machine, &p);  /* the first visit of a task counts its earlier wait in the new tables */
	machine_period_release(&p);
	machine_source_take(l->machine, &p);
	for (size_t i = 0; i < p.tasks; i++) {
		const struct live_thread *t = p.task[i].key & CULPRIT_VICTIM ? find_vcpu(&l->threads, p.task[i].tid, 0) : NULL;
		if (t)
			live_own_period((struct live_thread *)(uintptr_t)t, (int64_t)p.task[i].at, 0);
	}
	machine_period_release(&p);
}

static void take(struct live *l, struct live_sample *s)
{
	struct machine_build b = { .l = l, .s = s, .by_key = MAP_INIT, .by_culprit = MAP_INIT };
	struct machine_period p;
	s->by_process = true;
	machine_names_begin(l->names);
	machine_source_take(l->machine, &p);
	live_end_period(l, s, p.end);
	add_tasks(&b, &p);
	add_waits(&b, &p);
	for (size_t i = 0; i < b.len; i++)
		if ((b.process[i].ran > 0 || b.process[i].vcpu) && b.process[i].key)
			find_victim(&b, b.process[i].key);
	add_cpu_use(&b, &p);
	finish_victims(&b);
	machine_period_release(&p);
	free(b.process);
	map_release(&b.by_key);
	map_release(&b.by_culprit);
}

static void flush(struct live *l)
{
	machine_source_flush(l->machine);
}

static bool cost(struct live *l, u64 *ns, u64 *runs)
{
	return machine_source_cost(l->machine, ns, runs);
}

static void measure(struct live *l, bool on)
{
	machine_source_measure(l->machine, on);
}

const struct live_source_ops machine_ops = { "bpf", begin, take, flush, cost, measure };
