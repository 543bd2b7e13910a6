/* Who had the CPU, as sentences have it: "a timer interrupt of the host", "the hypervisor, which worked for it". */
#include "query/explain.h"

#include <string.h>

#include "base/text.h"

/* The kernel calls a handler "softirq/3-NET_RX" or "irq/27-virtio0"; "timer" is of a tracer that tells no more. */
static void tell_handler(const struct topo *topo, const struct party *p, const char *name, char *buf, size_t size)
{
	char handler[256], own[256], of[280] = "";
	const bool is_vowel = !*name || strchr("aeiou", *name);
	text_escape(handler, sizeof handler, name);
	if (p->system >= 0 && topo->machine[p->system].kind == MACHINE_HOST)
		snprintf(of, sizeof of, " of the host");
	else if (p->system >= 0)
		snprintf(of, sizeof of, " of %s", text_escape(own, sizeof own, topo->machine[p->system].name));
	if (strchr(handler, '/'))
		snprintf(buf, size, "%s%s", handler, of);
	else
		snprintf(buf, size, "%s %s%sinterrupt%s", is_vowel ? "an" : "a", handler, *handler ? " " : "", of);
}

/* A thread, a vCPU, or a machine as a whole. */
static void tell_worker(const struct topo *topo, const struct party *p, const char *name, const struct subject *self,
                        char *buf, size_t size)
{
	char machine[256] = "the host";
	struct party plain = *p;
	const char *other = self && p->system == (int32_t)subject_machine(topo, self) ? "other " : "";
	const bool is_host = p->system >= 0 && topo->machine[p->system].kind == MACHINE_HOST;
	plain.kind = FLOW_PREEMPTING;
	if (p->system >= 0 && !is_host)
		text_escape(machine, sizeof machine, topo->machine[p->system].name);
	if (p->tid == 0)
		snprintf(buf, size, "an idle %sCPU of %s", is_host ? "" : "v", machine);
	else if (p->system < 0 || p->tid > 0 || *name)
		party_text(topo, &plain, name, buf, size);
	else if (is_host || *other)
		snprintf(buf, size, "%sthreads of %s", other, machine);
	else
		snprintf(buf, size, "%s", machine);
}

static bool is_self(const struct topo *topo, const struct party *p, const struct subject *self)
{
	if (!self || p->system != (int32_t)subject_machine(topo, self))
		return false;
	if (self->kind == SUBJECT_MACHINE)
		return p->tid < 0;
	return self->kind == SUBJECT_THREAD && topo->thread[self->index].tid == p->tid;
}

char *explain_party(const struct topo *topo, const struct party *p, const char *name, const struct subject *self, char *buf,
                    size_t size)
{
	char worker[NAME_TEXT];
	struct party waker = *p;
	bool own;
	name = name ? name : "";
	switch ((enum flow_kind)p->kind) {
	case FLOW_IRQ:
		tell_handler(topo, p, name, buf, size);
		break;
	case FLOW_HYPERVISOR:
		tell_worker(topo, p, name, NULL, worker, sizeof worker);
		own = p->tid == 0 && self && p->system == (int32_t)subject_machine(topo, self);
		snprintf(buf, size, "the hypervisor, which worked for %s",
		         is_self(topo, p, self) ? "it" : own ? "its idle vCPU" : worker);
		break;
	case FLOW_WAITING:
		waker.kind = p->tid < 0 ? FLOW_IRQ : FLOW_PREEMPTING;
		snprintf(buf, size, "a sleep of its vCPU's thread on the host%s%s", p->system < 0 ? "" : ", until woken by ",
		         p->system < 0 ? "" : explain_party(topo, &waker, name, NULL, worker, sizeof worker));
		break;
	case FLOW_UNKNOWN:
		snprintf(buf, size, "something that the trace does not show");
		break;
	case FLOW_IDLE_CPU:
		snprintf(buf, size, "waiting although its CPU was idle");
		break;
	case FLOW_LIMITED:
		snprintf(buf, size, "%s", advice_limit(name) ? advice_limit(name) : "a limit");
		break;
	case FLOW_RUNNING:
	case FLOW_PREEMPTING:
	case FLOW_KIND_COUNT:
		tell_worker(topo, p, name, self, buf, size);
	}
	return buf;
}
