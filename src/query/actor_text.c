/* An actor as text, for tables, for sentences and as a label: see enum actor_style. */
#include "base/base.h"
#include "query/query_internal.h"

struct actor_writer {
	const struct catalog *catalog;
	const struct actor *actor;
	const char *name;             /* raw; "": none */
	enum actor_style style;
	const struct target *self;
	char *buf;
	size_t size;
};

/* Returns true if the actor belongs to the machine of the text's target. */
static bool is_of_own_machine(const struct actor_writer *w)
{
	return w->self && w->actor->machine == (int32_t)target_machine(w->catalog, w->self);
}

static const char *machine_name(const struct actor_writer *w, char buf[256])
{
	const int32_t machine = w->actor->machine;
	if (machine >= 0 && w->style == ACTOR_SENTENCE && w->catalog->machine[machine].kind == MACHINE_HOST)
		return "the host";
	return text_escape(buf, 256, machine >= 0 ? w->catalog->machine[machine].name : "");
}

/* Writes "host/2101 burnP6", "Debian/vCPU0", or a machine. */
static void write_thread(const struct actor_writer *w)
{
	char machine[256], name[256];
	text_escape(machine, sizeof machine, w->actor->machine >= 0 ? w->catalog->machine[w->actor->machine].name : "");
	text_escape(name, sizeof name, w->name);
	if (w->style == ACTOR_LABEL)
		snprintf(w->buf, w->size, "%s", *name ? name : w->actor->tid < 0 ? machine : "");
	else if (w->actor->tid < 0)
		snprintf(w->buf, w->size, "%s%s%s", machine, *machine && *name ? "/" : "", name);
	else
		snprintf(w->buf, w->size, "%s/%" PRId32 "%s%s", machine, w->actor->tid, *name ? " " : "", name);
}

/* Writes a thread, a vCPU or a machine as a whole: "other threads of Debian", "threads of the host". */
static void write_worker(const struct actor_writer *w)
{
	char name[256];
	const struct actor *p = w->actor;
	const bool whole = p->machine >= 0 && p->tid < 0 && !*w->name;
	const int32_t outer = w->self ? w->catalog->machine[target_machine(w->catalog, w->self)].whole : -1;
	const bool own = is_of_own_machine(w) || (p->machine >= 0 && p->machine == outer);  /* outer: machine of its group */
	const bool is_host = p->machine >= 0 && w->catalog->machine[p->machine].kind == MACHINE_HOST;
	const bool sentence = w->style == ACTOR_SENTENCE;
	if (sentence && p->tid == 0)
		snprintf(w->buf, w->size, "an idle %sCPU of %s", is_host ? "" : "v", machine_name(w, name));
	else if (whole && (own || (sentence && is_host)))
		snprintf(w->buf, w->size, "%sthreads of %s", own && (sentence || w->self->kind != TARGET_MACHINE) ? "other " : "",
		         machine_name(w, name));
	else
		write_thread(w);
}

/* Writes "a timer interrupt of the host"; in tables "host timer interrupt". The kernel names a handler
 * "softirq/3-NET_RX" or "irq/27-virtio0"; some tracers only record "timer". */
static void write_handler(const struct actor_writer *w)
{
	char handler[256], machine[256];
	const bool has_number = strchr(w->name, '/'), is_vowel = !*w->name || strchr("aeiou", *w->name);
	machine_name(w, machine);
	const char *of = w->actor->machine >= 0 ? machine_name(w, machine) : "";
	text_escape(handler, sizeof handler, w->name);
	if (w->style != ACTOR_SENTENCE)
		snprintf(w->buf, w->size, "%s %s%s", of, handler, has_number ? "" : " interrupt");
	else if (has_number)
		snprintf(w->buf, w->size, "%s%s%s", handler, *of ? " of " : "", of);
	else
		snprintf(w->buf, w->size, "%s %s%sinterrupt%s%s", is_vowel ? "an" : "a", handler, *handler ? " " : "",
		         *of ? " of " : "", of);
}

/* Writes the actor as a thread or a handler, without regard to the text's target, into buf. */
static const char *plain_text(const struct actor_writer *w, uint32_t kind, const struct target *self, char buf[ACTOR_TEXT])
{
	struct actor actor = *w->actor;
	actor.kind = (uint16_t)kind;
	return actor_text(w->catalog, &actor, w->name, w->style, self, buf, ACTOR_TEXT);
}

static void write_hypervisor(const struct actor_writer *w)
{
	char worker[ACTOR_TEXT];
	const struct actor *p = w->actor;
	const bool of_target = is_of_own_machine(w) && (w->self->kind == TARGET_MACHINE ? p->tid < 0
	                       : w->self->kind == TARGET_THREAD && w->catalog->thread[w->self->index].tid == p->tid);
	if (w->style == ACTOR_LABEL)
		snprintf(w->buf, w->size, "hypervisor");
	else if (w->style != ACTOR_SENTENCE)
		snprintf(w->buf, w->size, "hypervisor for %s", plain_text(w, FLOW_PREEMPTING, NULL, worker));
	else if (of_target)
		snprintf(w->buf, w->size, "the hypervisor (VM exits)");
	else
		snprintf(w->buf, w->size, "the hypervisor for %s", p->tid == 0 && is_of_own_machine(w) ? "its idle vCPU"
		         : plain_text(w, FLOW_PREEMPTING, NULL, worker));
}

static void write_waiting(const struct actor_writer *w)
{
	char waker[ACTOR_TEXT];
	const bool sentence = w->style == ACTOR_SENTENCE;
	const char *start = sentence ? "a sleep of its vCPU's thread on the host" : "waiting";
	if (w->actor->machine >= 0)
		snprintf(w->buf, w->size, "%s%s%s", start, sentence ? ", woken by " : " for ",
		         plain_text(w, w->actor->tid < 0 ? FLOW_IRQ : FLOW_PREEMPTING, NULL, waker));
	else if (w->style == ACTOR_SHOWN && !*w->name)
		snprintf(w->buf, w->size, "asleep on the host");
	else
		snprintf(w->buf, w->size, "%s%s%s", start, *w->name && !sentence ? " for " : "",
		         sentence ? "" : text_escape(waker, sizeof waker, w->name));
}

/* A thread, handler or idle task that is current on the vCPU, which the provider may have taken. */
static void write_current(const struct actor_writer *w)
{
	char text[ACTOR_TEXT];
	const bool sentence = w->style == ACTOR_SENTENCE;
	if (w->actor->tid == 0)
		snprintf(text, sizeof text, "%s", sentence ? "wakeup latency" : "idle CPU");
	else
		plain_text(w, sentence && w->actor->tid < 0 && *w->name ? FLOW_IRQ : FLOW_PREEMPTING, w->self, text);
	snprintf(w->buf, w->size, "%.*s or %sprovider", (int)sizeof text, text, sentence ? "the " : "");
}

static void write_limit(const struct actor_writer *w)
{
	const unsigned reason = w->actor->reason;
	const struct out_reason_row *row = &out_reason_row[reason];
	const char *name = reason < OUT_REASON_COUNT ? out_reason_name[reason] : row->label;
	snprintf(w->buf, w->size, "%s", w->style == ACTOR_SENTENCE ? row->words : w->style == ACTOR_PLAIN ? name : row->label);
}

static void write_actor(const struct actor_writer *w)
{
	switch ((enum flow_kind)w->actor->kind) {
	case FLOW_IDLE_CPU:
		snprintf(w->buf, w->size, "%s", w->style == ACTOR_SENTENCE ? "waiting on an idle CPU" : "idle CPU");
		break;
	case FLOW_LIMITED:
		write_limit(w);
		break;
	case FLOW_UNKNOWN:
		if (w->style != ACTOR_SENTENCE && *w->name)
			text_escape(w->buf, w->size, w->name);
		else
			snprintf(w->buf, w->size, "%s", w->style == ACTOR_SENTENCE ? "something not in the trace" : "unknown");
		break;
	case FLOW_HYPERVISOR:
		write_hypervisor(w);
		break;
	case FLOW_IRQ:
		write_handler(w);
		break;
	case FLOW_WAITING:
		write_waiting(w);
		break;
	case FLOW_CURRENT:
		write_current(w);
		break;
	case FLOW_RUNNING:
	case FLOW_PREEMPTING:
	case FLOW_KIND_COUNT:
		write_worker(w);
	}
}

char *actor_text(const struct catalog *catalog, const struct actor *actor, const char *name, enum actor_style style,
                 const struct target *self, char *buf, size_t size)
{
	char text[ACTOR_TEXT - 8];
	struct actor_writer w = { catalog, actor, name ? name : "", style, self, buf, size };
	const bool is_idle = actor->kind == FLOW_IDLE_CPU || (actor->kind == FLOW_CURRENT && actor->tid == 0);
	if (style != ACTOR_SHOWN || !(is_idle || actor->kind == FLOW_LIMITED || actor->kind == FLOW_WAITING)) {
		write_actor(&w);
		return buf;
	}
	w.buf = text;
	w.size = sizeof text;
	write_actor(&w);
	snprintf(buf, size, "(%.*s)", (int)sizeof text, text);
	return buf;
}

const char *actor_name_text(const struct actor *actor, const char *name, char buf[ACTOR_TEXT])
{
	if (actor->kind != FLOW_CURRENT)
		return name;
	snprintf(buf, ACTOR_TEXT, "%s or provider", actor->tid == 0 ? "idle CPU" : name);
	return buf;
}
