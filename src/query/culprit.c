/* Who has the CPU: parties by number, and in words. */
#include "query/culprit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/text.h"

static uint64_t party_hash(const struct party *p)
{
	return hash_end(hash_number((uint64_t)(uint32_t)p->tid << 32 | p->name, (uint64_t)(uint32_t)p->system << 8 ^ p->kind));
}

/* Among all of them; a new one is added. */
static __attribute__((noinline)) uint32_t find(struct parties *p, const struct party *who, uint64_t hash)
{
	uint32_t *recent = &p->recent[hash % PARTIES_RECENT];
	for (;; hash++) {
		bool is_new;
		uint64_t *at = map_put(&p->by_hash, hash, &is_new);
		if (is_new) {
			*at = p->len;
			*ARRAY_PUSH(p->party, p->len, p->cap) = *who;
		}
		if (party_same(&p->party[*at], who)) {
			*recent = (uint32_t)*at + 1;
			return (uint32_t)*at;
		}
	}
}

uint32_t parties_put(struct parties *p, const struct party *who)
{
	const uint64_t hash = party_hash(who);
	const uint32_t recent = p->recent[hash % PARTIES_RECENT];
	return recent && party_same(&p->party[recent - 1], who) ? recent - 1 : find(p, who, hash);
}

void parties_release(struct parties *p)
{
	free(p->party);
	map_release(&p->by_hash);
	*p = (struct parties){ 0 };
}

static const char *thread_text(const struct topo *topo, int32_t system, int32_t tid, const char *name, char *buf,
                               size_t size)
{
	char machine[256], shown[256];
	text_escape(machine, sizeof machine, system >= 0 ? topo->machine[system].name : "");
	text_escape(shown, sizeof shown, name ? name : "");
	if (tid < 0)
		snprintf(buf, size, "%s%s%s", machine, *machine && *shown ? "/" : "", shown);
	else
		snprintf(buf, size, "%s/%" PRId32 "%s%s", machine, tid, *shown ? " " : "", shown);
	return buf;
}

char *party_text(const struct topo *topo, const struct party *who, const char *name, char *buf, size_t size)
{
	char thread[600] = "", handler[256];
	struct party waker = *who;
	waker.kind = who->tid < 0 ? FLOW_IRQ : FLOW_PREEMPTING;
	const char *known = name && *name ? name : "";
	switch ((enum flow_kind)who->kind) {
	case FLOW_IDLE_CPU:
		snprintf(buf, size, "idle CPU");
		break;
	case FLOW_LIMITED:
		snprintf(buf, size, "%s", *known ? text_escape(handler, sizeof handler, known) : "limit");
		break;
	case FLOW_UNKNOWN:
		if (*known)
			text_escape(buf, size, known);
		else
			snprintf(buf, size, "unknown");
		break;
	case FLOW_HYPERVISOR:
		snprintf(buf, size, "hypervisor for %s", thread_text(topo, who->system, who->tid, name, thread, sizeof thread));
		break;
	case FLOW_IRQ:
		/* "irq/27-virtio0" says what it is, "timer" does not */
		if (who->system >= 0)
			thread_text(topo, who->system, -1, NULL, thread, sizeof thread);
		snprintf(buf, size, "%s %s%s", thread, text_escape(handler, sizeof handler, known),
		         strchr(known, '/') ? "" : " interrupt");
		break;
	case FLOW_WAITING:
		if (who->system < 0)
			snprintf(buf, size, "waiting%s%s", *known ? " for " : "", text_escape(handler, sizeof handler, known));
		else
			snprintf(buf, size, "waiting for %s", party_text(topo, &waker, name, thread, sizeof thread));
		break;
	case FLOW_RUNNING:
	case FLOW_PREEMPTING:
	case FLOW_KIND_COUNT:
		thread_text(topo, who->system, who->tid, name, buf, size);
	}
	return buf;
}

char *party_shown(const struct topo *topo, const struct party *who, const char *name, char *buf, size_t size)
{
	char text[600];
	const bool is_nobody = who->kind == FLOW_IDLE_CPU || who->kind == FLOW_LIMITED || who->kind == FLOW_WAITING;
	if (who->kind == FLOW_WAITING && who->system < 0 && !(name && *name))
		snprintf(text, sizeof text, "asleep on the host");
	else
		party_text(topo, who, name, text, sizeof text);
	snprintf(buf, size, "%s%.*s%s", is_nobody ? "(" : "", (int)sizeof text, text, is_nobody ? ")" : "");
	return buf;
}
