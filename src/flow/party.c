/* Who an entry of a flow is, in words. */
#include "flow/flow_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

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

char *flow_party_text(const struct topo *topo, int32_t system, int32_t tid, const char *name, enum flow_kind kind,
                      char *buf, size_t size)
{
	char who[600], handler[256];
	const char *known = name && *name ? name : "";
	switch (kind) {
	case FLOW_IDLE_CPU:
		snprintf(buf, size, "idle CPU");
		break;
	case FLOW_UNKNOWN:
		if (*known)
			text_escape(buf, size, known);
		else
			snprintf(buf, size, "unknown (events lost)");
		break;
	case FLOW_HYPERVISOR:
		snprintf(buf, size, "hypervisor for %s", thread_text(topo, system, tid, name, who, sizeof who));
		break;
	case FLOW_IRQ:
		/* "irq/27-virtio0" says what it is, "timer" does not */
		snprintf(buf, size, "%s %s%s", system >= 0 ? thread_text(topo, system, -1, NULL, who, sizeof who) : "",
		         text_escape(handler, sizeof handler, known), strchr(known, '/') ? "" : " interrupt");
		break;
	case FLOW_WAITING:
		if (system < 0)
			snprintf(buf, size, "waiting%s%s", *known ? " for " : "", text_escape(handler, sizeof handler, known));
		else
			snprintf(buf, size, "waiting for %s", thread_text(topo, system, tid, name, who, sizeof who));
		break;
	case FLOW_RUNNING:
	case FLOW_PREEMPTING:
	case FLOW_KIND_COUNT:
		thread_text(topo, system, tid, name, buf, size);
	}
	return buf;
}
