/* Actors as parts of a sentence: "a timer interrupt of the host", "the hypervisor (VM exits)". */
#include "query/explain.h"

#include <string.h>

#include "base/text.h"

/* The kernel names a handler "softirq/3-NET_RX" or "irq/27-virtio0"; some tracers only record "timer". */
static void write_handler(const struct catalog *catalog, const struct actor *p, const char *name, char *buf, size_t size)
{
	char handler[256], own[256], of[280] = "";
	const bool is_vowel = !*name || strchr("aeiou", *name);
	text_escape(handler, sizeof handler, name);
	if (p->machine >= 0 && catalog->machine[p->machine].kind == MACHINE_HOST)
		snprintf(of, sizeof of, " of the host");
	else if (p->machine >= 0)
		snprintf(of, sizeof of, " of %s", text_escape(own, sizeof own, catalog->machine[p->machine].name));
	if (strchr(handler, '/'))
		snprintf(buf, size, "%s%s", handler, of);
	else
		snprintf(buf, size, "%s %s%sinterrupt%s", is_vowel ? "an" : "a", handler, *handler ? " " : "", of);
}

/* Writes a thread, a vCPU, or a machine as a whole. */
static void write_worker(const struct catalog *catalog, const struct actor *p, const char *name, const struct target *self,
                         char *buf, size_t size)
{
	char machine[256] = "the host";
	struct actor plain = *p;
	const char *other = self && p->machine == (int32_t)target_machine(catalog, self) ? "other " : "";
	const bool is_host = p->machine >= 0 && catalog->machine[p->machine].kind == MACHINE_HOST;
	plain.kind = FLOW_PREEMPTING;
	if (p->machine >= 0 && !is_host)
		text_escape(machine, sizeof machine, catalog->machine[p->machine].name);
	if (p->tid == 0)
		snprintf(buf, size, "an idle %sCPU of %s", is_host ? "" : "v", machine);
	else if (p->machine < 0 || p->tid > 0 || *name)
		actor_text(catalog, &plain, name, buf, size);
	else if (is_host || *other)
		snprintf(buf, size, "%sthreads of %s", other, machine);
	else
		snprintf(buf, size, "%s", machine);
}

static bool is_self(const struct catalog *catalog, const struct actor *p, const struct target *self)
{
	if (!self || p->machine != (int32_t)target_machine(catalog, self))
		return false;
	if (self->kind == TARGET_MACHINE)
		return p->tid < 0;
	return self->kind == TARGET_THREAD && catalog->thread[self->index].tid == p->tid;
}

char *actor_in_sentence(const struct catalog *catalog, const struct actor *p, const char *name, const struct target *self,
                        char *buf, size_t size)
{
	char worker[NAME_TEXT];
	struct actor waker = *p;
	bool own;
	name = name ? name : "";
	switch ((enum flow_kind)p->kind) {
	case FLOW_IRQ:
		write_handler(catalog, p, name, buf, size);
		break;
	case FLOW_HYPERVISOR:
		write_worker(catalog, p, name, NULL, worker, sizeof worker);
		own = p->tid == 0 && self && p->machine == (int32_t)target_machine(catalog, self);
		if (is_self(catalog, p, self))
			snprintf(buf, size, "the hypervisor (VM exits)");
		else
			snprintf(buf, size, "the hypervisor for %s", own ? "its idle vCPU" : worker);
		break;
	case FLOW_WAITING:
		waker.kind = p->tid < 0 ? FLOW_IRQ : FLOW_PREEMPTING;
		snprintf(buf, size, "a sleep of its vCPU's thread on the host%s%s", p->machine < 0 ? "" : ", woken by ",
		         p->machine < 0 ? "" : actor_in_sentence(catalog, &waker, name, NULL, worker, sizeof worker));
		break;
	case FLOW_UNKNOWN:
		snprintf(buf, size, "something not in the trace");
		break;
	case FLOW_IDLE_CPU:
		snprintf(buf, size, "waiting on an idle CPU");
		break;
	case FLOW_LIMITED:
		snprintf(buf, size, "%s", limit_phrase(name) ? limit_phrase(name) : "a limit");
		break;
	case FLOW_CURRENT:
		if (p->tid == 0)
			snprintf(worker, sizeof worker, "wakeup latency");
		else if (p->tid < 0 && *name)
			write_handler(catalog, p, name, worker, sizeof worker);
		else
			write_worker(catalog, p, name, self, worker, sizeof worker);
		snprintf(buf, size, "%s or the provider", worker);
		break;
	case FLOW_RUNNING:
	case FLOW_PREEMPTING:
	case FLOW_KIND_COUNT:
		write_worker(catalog, p, name, self, buf, size);
	}
	return buf;
}
