/* Layouts: the event kinds' arguments, matching of text patterns, thread states. */
#include "trace/layout/layout.h"

#include <errno.h>

#include "base/hash.h"

static const struct role roles[EVENT_KIND_COUNT][EVENT_ARGS] = {
	[EV_SWITCH] = { { "prev_tid", false, true }, { "next_tid", false, true }, { "prev_state", false, false },
		{ "prev_comm", true, false }, { "next_comm", true, false }, { "next_prio", false, false } },
	[EV_WAKING] = { { "tid", false, true }, { "comm", true, false }, { "target_cpu", false, false },
		{ "flags", false, false } },
	[EV_WAKEUP] = { { "tid", false, true }, { "comm", true, false }, { "target_cpu", false, false } },
	[EV_MIGRATE] = { { "tid", false, true }, { "dest_cpu", false, false }, { "orig_cpu", false, false } },
	[EV_FORK] = { { "parent_tid", false, false }, { "child_tid", false, true }, { "child_pid", false, false },
		{ "child_comm", true, false }, { "child_ns", false, false } },
	[EV_EXEC] = { { "tid", false, false }, { "filename", true, false } },
	[EV_EXIT] = { { "tid", false, false } },
	[EV_RENAME] = { { "tid", false, true }, { "comm", true, true } },
	[EV_PROCESS] = { { "tid", false, true }, { "pid", false, false }, { "comm", true, false },
		{ "state", false, false }, { "cpu", false, false }, { "type", false, false } },
	[EV_PROCESS_NS] = { { "tid", false, true }, { "ns", false, true }, { "vtid", false, false } },
	[EV_PROCESS_CGROUP] = { { "tid", false, true }, { "ns", false, true } },
	[EV_VCPU_ENTRY] = { { "vcpu", false, false }, { "reason", false, false } },
	[EV_VCPU_EXIT] = { { "vcpu", false, false }, { "reason", false, false }, { "isa", false, false },
		{ "ip", false, false }, { "ret", false, false } },
	[EV_USERSPACE_EXIT] = { { "reason", false, false }, { "error", false, false } },
	[EV_INJECT] = { { "vector", false, true } },
	[EV_ACCEPT] = { { "apic", false, true }, { "vector", false, true } },
	[EV_MSI] = { { "address", false, true }, { "data", false, true } },
	[EV_IPI] = { { "icr", false, true }, { "apic", false, false } },
	[EV_VCPU_WAKEUP] = { { "ns", false, true }, { "waited", false, true } },
	[EV_HALT_POLL] = { { "vcpu", false, false }, { "ns", false, true }, { "old", false, false } },
	[EV_VCPU_STATE] = { { "vm", false, false }, { "vcpu", false, true }, { "state", false, true }, { "old", false, true },
		{ "name", true, false }, { "idle_ns", false, false } },
	[EV_VCPU_STOP] = { { "vm", false, false }, { "vcpu", false, false }, { "cap", false, false } },
	[EV_VM] = { { "vm", false, true }, { "exists", false, true } },
	[EV_HYPERCALL] = { { "nr", false, true }, { "a0", false, false }, { "a1", false, false } },
	[EV_IRQ_ENTRY] = { { "number", false, false }, { "name", true, false } },
	[EV_IRQ_EXIT] = { { "number", false, false }, { "name", true, false } },
	[EV_SOFTIRQ_ENTRY] = { { "number", false, false }, { "name", true, false } },
	[EV_SOFTIRQ_EXIT] = { { "number", false, false }, { "name", true, false } },
	[EV_TIMER_ENTRY] = { { "timer", false, false }, { "function", false, false }, { "now", false, false } },
	[EV_TIMER_EXIT] = { { "timer", false, false }, { "function", false, false } },
	[EV_CONTENTION_BEGIN] = { { "address", false, true }, { "flags", false, false } },
	[EV_CONTENTION_END] = { { "address", false, true }, { "ret", false, false } },
	[EV_FUTEX_BEGIN] = { { "address", false, false }, { "op", false, true }, { "value", false, false } },
	[EV_FUTEX_END] = { { "address", false, false }, { "ret", false, false } },
	[EV_SYNC] = { { NULL, false, false }, { "key", false, false }, { "uid", false, false } },
	[EV_MARK] = { { NULL, false, false }, { "id", false, false } },
	[EV_PROBE] = { { NULL, false, false }, { "key", false, false }, { "name", true, false }, { "stack", false, false },
	             { "label", true, false } },
	[EV_FREQUENCY] = { { "khz", false, true }, { "cpu", false, false } },
	[EV_COUNTERS] = { { "instructions", false, false }, { "cycles", false, false } },
	[EV_THROTTLED] = { { "tid", false, false }, { "on", false, false } },
	[EV_GROUP] = { { "group", false, false }, { "ns", false, false } },
	[EV_GROUP_MOVE] = { { "tid", false, true }, { "path", true, true } },
	[EV_STEAL] = { { "ns", false, false } },
	[EV_NAMED] = { { "name", true, false } },
};

const struct role *layout_role(enum event_kind kind, unsigned arg)
{
	return arg < EVENT_ARGS && roles[kind][arg].name ? &roles[kind][arg] : NULL;
}

const char *event_arg_name(enum event_kind kind, unsigned arg, bool *is_text)
{
	const struct role *role = layout_role(kind, arg);
	*is_text = role && role->is_text;
	if (arg == 1 && kind == EV_STEAL)
		return "own";
	if (arg == 2 && kind == EV_COUNTERS)
		return "is_difference";
	if (arg == 0 && (kind == EV_SYNC || kind == EV_MARK || kind == EV_PROBE))  /* set by the rule, not by a field */
		return kind == EV_SYNC ? "end" : "op";
	return role ? role->name : NULL;
}

static const char *enum_word(const char *const *words, size_t n, int64_t v)
{
	return v >= 0 && (uint64_t)v < n ? words[v] : NULL;
}

const char *event_arg_word(const struct event *ev, unsigned arg)
{
	static const char *const ends[] = { "a", "b", "c", "d", "send", "receive" };
	static const char *const ops[] = { "start", "yield", "resume", "end", "drop", "receive" };
	static const char *const states[] = { "runnable", "blocked", "dead", "uninterruptible" };
	if (ev->kind == EV_SYNC && arg == 0)
		return enum_word(ends, sizeof ends / sizeof *ends, ev->arg[arg]);
	if ((ev->kind == EV_MARK || ev->kind == EV_PROBE) && arg == 0)
		return enum_word(ops, sizeof ops / sizeof *ops, ev->arg[arg]);
	static const char *const run_states[] = { "running", "runnable", "blocked", "offline" };
	if (ev->kind == EV_VCPU_STATE && (arg == 2 || arg == 3))
		return enum_word(run_states, sizeof run_states / sizeof *run_states, ev->arg[arg]);
	const bool is_state = (ev->kind == EV_SWITCH && arg == 2) || (ev->kind == EV_PROCESS && arg == 3);
	return is_state ? enum_word(states, sizeof states / sizeof *states, ev->arg[arg]) : NULL;
}

static void fields_release(struct fields *f)
{
	for (size_t i = 0; i < f->len; i++)
		free(f->f[i].path);
	free(f->f);
}

static void rule_release(struct rule *r)
{
	for (size_t i = 0; i < r->names; i++)
		free(r->name[i]);
	free(r->name);
	for (size_t i = 0; i < EVENT_ARGS; i++)
		fields_release(&r->arg[i]);
	for (size_t i = 0; i < r->whens; i++)
		fields_release(&r->when[i].field);
	free(r->when);
	fields_release(&r->text);
	free(r->pattern);
	free(r->per_cpu);
	free(r->per_cpu_more);
	free(r->states.known);
}

void layout_free(struct layout *l)
{
	if (!l)
		return;
	for (size_t i = 0; i < l->rules; i++)
		rule_release(&l->rule[i]);
	free(l->rule);
	free(l->named);
	free(l->prefixed);
	fields_release(&l->cpu);
	fields_release(&l->tid);
	fields_release(&l->pid);
	fields_release(&l->comm);
	free(l->name);
	free(l->file);
	free(l);
}

/* Returns a word's value: its number, or for other words a hash (FNV-1a) that is never negative. */
static int64_t word_value(const char *word, size_t len)
{
	char buf[32];
	if (len < sizeof buf) {
		memcpy(buf, word, len);
		buf[len] = '\0';
		char *end;
		errno = 0;
		unsigned long long v = strtoull(buf, &end, 0);
		if (buf[0] >= '0' && buf[0] <= '9' && !*end && !errno)
			return (int64_t)(v & INT64_MAX);
	}
	return (int64_t)(hash_bytes(HASH_BEGIN, word, len) & INT64_MAX);
}

static bool is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

bool layout_match(const char *pattern, const char *text, size_t max_len, int64_t value[2])
{
	static const struct { const char *text; size_t len; int slot; } placeholders[] = {
		{ "{key}", 5, 0 }, { "{id}", 4, 0 }, { "{uid}", 5, 1 },
	};
	const char *const end = text + strnlen(text, max_len);
	value[0] = value[1] = EVENT_ABSENT;
	while (*pattern) {
		size_t h = *pattern == '{' ? 0 : 3;
		while (h < 3 && strncmp(pattern, placeholders[h].text, placeholders[h].len) != 0)
			h++;
		if (h == 3) {
			if (text == end || *pattern++ != *text++)
				return false;
			continue;
		}
		const char *const word = text;
		while (text < end && !is_space(*text))
			text++;
		if (text == word)
			return false;
		value[placeholders[h].slot] = word_value(word, (size_t)(text - word));
		pattern += placeholders[h].len;
	}
	while (text < end && is_space(*text))  /* echo appends a newline */
		text++;
	return text == end;
}

/* Returns the length of a name before LAYOUT_NAME_SUFFIX; SIZE_MAX: the name does not end with it. */
static size_t prefix_length(const char *name)
{
	const size_t n = strlen(name), suffix = sizeof LAYOUT_NAME_SUFFIX - 1;
	return n > suffix && strcmp(name + n - suffix, LAYOUT_NAME_SUFFIX) == 0 ? n - suffix : SIZE_MAX;
}

bool layout_has_suffix(const char *name)
{
	return prefix_length(name) != SIZE_MAX;
}

const char *layout_match_name(const char *pattern, const char *name)
{
	const size_t n = prefix_length(pattern);
	return n != SIZE_MAX && strncmp(pattern, name, n) == 0 && name[n] ? name + n : NULL;
}

int64_t layout_run_state(const struct states *s, int64_t value)
{
	const uint64_t v = (uint64_t)value & s->mask;
	for (size_t i = 0; i < s->len; i++)
		if (v == (uint64_t)s->known[i].value)
			return s->known[i].state;
	return v & s->dead ? RUN_DEAD : s->other;
}
