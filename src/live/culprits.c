#include "live/culprits.h"

#include "base/base.h"

#define KERNEL_THREAD 0x00200000u

const char *const live_kind_name[] = { "vcpu", "vmm", "process", "kernel", "idle", "quota", "several", "own",
                                         "unknown" };

static const struct live_thread *thread_of_process(const struct live_threads *all, int32_t pid)
{
	for (size_t i = 0; i < all->len; i++)
		if (all->thread[i].pid == pid)
			return &all->thread[i];
	return NULL;
}

void culprit_name_thread(char name[LIVE_NAME], const struct live_thread *v)
{
	char all[LIVE_NAME + 32];
	snprintf(all, sizeof all, v->number >= 0 ? "%s/vCPU%d" : "%s/%d", v->machine, v->number >= 0 ? v->number : v->tid);
	text_cut(name, LIVE_NAME, all);
}

bool culprit_fill_fixed(struct live_culprit *c, u32 key)
{
	static const struct { u32 key; enum live_kind kind; const char *name; } fixed[] = {
		{ 0, LIVE_IDLE, "idle CPU (wakeup)" }, { CULPRIT_UNKNOWN, LIVE_NOBODY, "unknown" },
		{ CULPRIT_THROTTLED, LIVE_QUOTA, "quota (cpu.max)" }, { CULPRIT_SEVERAL, LIVE_SEVERAL, "several" },
		{ CULPRIT_OWN, LIVE_OWN, "its own threads" },
	};
	*c = (struct live_culprit){ .ran = -1, .kind = LIVE_NOBODY, .group = -1 };
	for (size_t i = 0; i < sizeof fixed / sizeof *fixed; i++) {
		if (fixed[i].key == key) {
			c->kind = fixed[i].kind;
			snprintf(c->name, sizeof c->name, "%s", fixed[i].name);
			return true;
		}
	}
	return false;
}

static void describe_culprit(const struct culprit_index *x, u32 key, const char *comm, struct live_culprit *c)
{
	const struct live_thread *v;
	struct live_stat stat;
	char raw[17], escaped[sizeof raw * TEXT_ESCAPED], all[LIVE_NAME + sizeof escaped + 16];
	if (culprit_fill_fixed(c, key))
		return;
	if (key & CULPRIT_VICTIM) {
		const int32_t i = x->slot_thread[key & (LIVE_VICTIMS - 1)];
		if (i < 0) {
			snprintf(c->name, sizeof c->name, "a vCPU that ended");
			return;
		}
		v = &x->threads->thread[i];
		c->kind = LIVE_VCPU;
		c->pid = v->tid;
		memcpy(c->machine, v->machine, sizeof c->machine);
		culprit_name_thread(c->name, v);
		return;
	}
	c->pid = (int32_t)key;
	snprintf(raw, sizeof raw, "%.16s", comm);
	text_escape(escaped, sizeof escaped, raw);
	const bool lives = live_read_stat(x->root, c->pid, c->pid, &stat);
	v = thread_of_process(x->threads, c->pid);
	if (v && v->number >= 0) {
		c->kind = LIVE_VMM;
		memcpy(c->machine, v->machine, sizeof c->machine);
		snprintf(all, sizeof all, "%s's VMM (%s)", v->machine, escaped);
		text_cut(c->name, sizeof c->name, all);
		return;
	}
	c->kind = lives && stat.flags & KERNEL_THREAD ? LIVE_KERNEL : LIVE_PROCESS;
	snprintf(all, sizeof all, "host/%d %s", c->pid, lives ? stat.comm : escaped);
	text_cut(c->name, sizeof c->name, all);
}

int32_t culprit_index_put(struct culprit_index *x, u32 key, const char *comm)
{
	bool is_new;
	uint64_t *at = map_put(&x->by_key, key, &is_new);
	if (is_new) {
		*at = x->s->culprits;
		describe_culprit(x, key, comm, ARRAY_PUSH(x->s->culprit, x->s->culprits, x->cap));
	}
	return (int32_t)*at;
}
