/* Table of actors, and actors as text. */
#include "query/culprit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/text.h"

static uint64_t actor_hash(const struct actor *p)
{
	return hash_end(hash_number((uint64_t)(uint32_t)p->tid << 32 | p->name,
	                            (uint64_t)p->reason << 40 ^ (uint64_t)(uint32_t)p->machine << 8 ^ p->kind));
}

/* Returns the number of the actor; adds the actor if it is new. hash: actor_hash() of the actor. */
static __attribute__((noinline)) uint32_t actors_find(struct actors *p, const struct actor *actor, uint64_t hash)
{
	uint32_t *recent = &p->recent[hash % ACTORS_RECENT];
	for (;; hash++) {
		bool is_new;
		uint64_t *at = map_put(&p->by_hash, hash, &is_new);
		if (is_new) {
			*at = p->len;
			*ARRAY_PUSH(p->actor, p->len, p->cap) = *actor;
		}
		if (actor_same(&p->actor[*at], actor)) {
			*recent = (uint32_t)*at + 1;
			return (uint32_t)*at;
		}
	}
}

uint32_t actors_put(struct actors *p, const struct actor *actor)
{
	const uint64_t hash = actor_hash(actor);
	const uint32_t recent = p->recent[hash % ACTORS_RECENT];
	return recent && actor_same(&p->actor[recent - 1], actor) ? recent - 1 : actors_find(p, actor, hash);
}

void actors_release(struct actors *p)
{
	free(p->actor);
	map_release(&p->by_hash);
	*p = (struct actors){ 0 };
}

static const char *thread_text(const struct catalog *catalog, int32_t system, int32_t tid, const char *name, char *buf,
                               size_t size)
{
	char machine[256], shown[256];
	text_escape(machine, sizeof machine, system >= 0 ? catalog->machine[system].name : "");
	text_escape(shown, sizeof shown, name ? name : "");
	if (tid < 0)
		snprintf(buf, size, "%s%s%s", machine, *machine && *shown ? "/" : "", shown);
	else
		snprintf(buf, size, "%s/%" PRId32 "%s%s", machine, tid, *shown ? " " : "", shown);
	return buf;
}

char *actor_text(const struct catalog *catalog, const struct actor *actor, const char *name, char *buf, size_t size)
{
	char thread[600] = "", handler[256];
	struct actor waker = *actor;
	waker.kind = actor->tid < 0 ? FLOW_IRQ : FLOW_PREEMPTING;
	const char *known = name && *name ? name : "";
	switch ((enum flow_kind)actor->kind) {
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
		snprintf(buf, size, "hypervisor for %s", thread_text(catalog, actor->machine, actor->tid, name, thread,
		                                                     sizeof thread));
		break;
	case FLOW_IRQ:
		/* "irq/27-virtio0" is clearly an interrupt, "timer" needs the word */
		if (actor->machine >= 0)
			thread_text(catalog, actor->machine, -1, NULL, thread, sizeof thread);
		snprintf(buf, size, "%s %s%s", thread, text_escape(handler, sizeof handler, known),
		         strchr(known, '/') ? "" : " interrupt");
		break;
	case FLOW_WAITING:
		if (actor->machine < 0)
			snprintf(buf, size, "waiting%s%s", *known ? " for " : "", text_escape(handler, sizeof handler, known));
		else
			snprintf(buf, size, "waiting for %s", actor_text(catalog, &waker, name, thread, sizeof thread));
		break;
	case FLOW_CURRENT:
		if (actor->tid == 0)
			snprintf(thread, sizeof thread, "idle CPU");
		else
			thread_text(catalog, actor->machine, actor->tid, name, thread, sizeof thread);
		snprintf(buf, size, "%s or provider", thread);
		break;
	case FLOW_RUNNING:
	case FLOW_PREEMPTING:
	case FLOW_KIND_COUNT:
		thread_text(catalog, actor->machine, actor->tid, name, buf, size);
	}
	return buf;
}

const char *actor_name_text(const struct actor *actor, const char *name, char buf[ACTOR_TEXT])
{
	if (actor->kind != FLOW_CURRENT)
		return name;
	snprintf(buf, ACTOR_TEXT, "%s or provider", actor->tid == 0 ? "idle CPU" : name);
	return buf;
}

char *actor_shown(const struct catalog *catalog, const struct actor *actor, const char *name, char *buf, size_t size)
{
	char text[600];
	const bool is_idle = actor->kind == FLOW_IDLE_CPU || (actor->kind == FLOW_CURRENT && actor->tid == 0);
	const bool is_nobody = is_idle || actor->kind == FLOW_LIMITED || actor->kind == FLOW_WAITING;
	if (actor->kind == FLOW_WAITING && actor->machine < 0 && !(name && *name))
		snprintf(text, sizeof text, "asleep on the host");
	else
		actor_text(catalog, actor, name, text, sizeof text);
	snprintf(buf, size, "%s%.*s%s", is_nobody ? "(" : "", (int)sizeof text, text, is_nobody ? ")" : "");
	return buf;
}
