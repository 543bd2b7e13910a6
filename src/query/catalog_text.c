/* Names of subjects, as a report or the viewer shows them.  Texts written here are escaped. */
#include "query/query_internal.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/text.h"

#define NAME_TEXT 512  /* bytes of an escaped name in a message */

int topo_each_name(const struct topo *topo, uint32_t thread, int (*fn)(void *, const struct interval *), void *arg,
                   struct error *err)
{
	struct history_cursor c;
	struct interval iv;
	uint32_t attr = topo->thread[thread].name;
	if (attr == HISTORY_NONE)
		return 0;
	if (history_range(&c, topo->h, attr, history_first(topo->h), history_last(topo->h), err) < 0)
		return -1;
	int r;
	while ((r = history_range_next(&c, &iv, err)) > 0)
		if (iv.value != HISTORY_NULL && (r = fn(arg, &iv)) != 0)
			return r;
	return r;
}

int topo_life(const struct topo *topo, const struct subject *s, int64_t *start, int64_t *end, struct error *err)
{
	*start = history_begin(topo->h);
	*end = history_end(topo->h);
	return s->kind == SUBJECT_THREAD ? flow_life(topo, topo->thread[s->index].status, start, end, err) : 1;
}

struct longest {
	struct { int64_t value, ns; } name[16];
	size_t names;
};

static int add_name(void *arg, const struct interval *iv)
{
	struct longest *l = arg;
	size_t i = 0;
	while (i < l->names && l->name[i].value != iv->value)
		i++;
	if (i == sizeof l->name / sizeof *l->name)
		return 1;  /* more names than anybody needs: decide among the first ones */
	if (i == l->names) {
		l->name[l->names].value = iv->value;
		l->name[l->names++].ns = 0;
	}
	l->name[i].ns += iv->end - iv->start;
	return 0;
}

const char *topo_longest_name(const struct topo *topo, uint32_t thread)
{
	struct longest l = { .names = 0 };
	size_t best = 0;
	if (topo->thread[thread].tid == 0)
		return "swapper";
	if (topo_each_name(topo, thread, add_name, &l, NULL) < 0 || l.names == 0)
		return "";
	for (size_t i = 1; i < l.names; i++)
		if (l.name[i].ns > l.name[best].ns)
			best = i;
	return history_string(topo->h, l.name[best].value);
}

char *topo_subject_text(const struct topo *topo, const struct subject *s, char *buf, size_t size)
{
	char system[NAME_TEXT], name[NAME_TEXT];
	if (s->kind == SUBJECT_MACHINE)
		return text_escape(buf, size, topo->machine[s->index].name);
	if (s->kind == SUBJECT_CPU) {
		const struct topo_cpu *cpu = &topo->cpu[s->index];
		const struct topo_machine *m = &topo->machine[cpu->machine];
		snprintf(buf, size, "%s/%sCPU%u", text_escape(system, sizeof system, m->name),
		         m->kind == MACHINE_VM ? "v" : "", cpu->number);
		return buf;
	}
	const struct topo_thread *th = &topo->thread[s->index];
	text_escape(name, sizeof name, topo_longest_name(topo, s->index));
	snprintf(buf, size, "%s/%" PRId32 "%s%s",
	         text_escape(system, sizeof system, topo->machine[th->machine].name), th->tid, *name ? " " : "", name);
	return buf;
}
