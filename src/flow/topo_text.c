/* Names of subjects: what a person types, and what a report or the viewer shows.  Texts written here are escaped. */
#include "flow/flow_private.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"

#define NAME_TEXT 512  /* bytes of an escaped name in a message */

/* Calls fn for every value of a thread's Name within the history. */
static int each_name(const struct topo *topo, uint32_t thread, int (*fn)(void *, const struct interval *), void *arg,
                     struct error *err)
{
	struct history_cursor c;
	struct interval iv;
	uint32_t attr = topo->thread[thread].name;
	if (attr == HISTORY_NONE)
		return 0;
	if (history_range(&c, topo->h, attr, history_begin(topo->h), history_end(topo->h), err) < 0)
		return -1;
	int r;
	while ((r = history_range_next(&c, &iv, err)) > 0)
		if (iv.value != HISTORY_NULL && (r = fn(arg, &iv)) != 0)
			return r;
	return r;
}

struct search { const struct topo *topo; const char *text; };

static int is_called(void *arg, const struct interval *iv)
{
	const struct search *s = arg;
	const char *name = history_string(s->topo->h, iv->value);
	char shown[NAME_TEXT];
	return strcmp(name, s->text) == 0 || strcmp(text_escape(shown, sizeof shown, name), s->text) == 0;
}

static int refuse_ambiguous(const struct topo *topo, uint32_t machine, const char *name, const uint32_t *found,
                            size_t n, struct error *err)
{
	char mend[sizeof err->mend], shown[NAME_TEXT], system[NAME_TEXT];
	text_escape(system, 64, topo->machine[machine].name);
	size_t used = (size_t)snprintf(mend, sizeof mend, "say which:");
	size_t i = 0;
	for (; i < n && used + 96 < sizeof mend; i++)
		used += (size_t)snprintf(mend + used, sizeof mend - used, "%s %s/%" PRId32, i ? "," : "", system,
		                         topo->thread[found[i]].tid);
	if (i < n)
		snprintf(mend + used, sizeof mend - used, ", ...");
	text_escape(shown, sizeof shown, name);
	return error_set(err, STATUS_USAGE, mend, "%s/%s: %zu threads have that name", system, shown, n);
}

/* 1 = found, 0 = no thread has that name, -1 = error (also when several have it). */
static int find_by_name(const struct topo *topo, uint32_t machine, const char *name, struct subject *out,
                        struct error *err)
{
	const struct topo_machine *m = &topo->machine[machine];
	struct search s = { topo, name };
	uint32_t *found = NULL;
	size_t len = 0, cap = 0;
	int r = 0;
	for (uint32_t i = m->thread; i < m->thread + m->threads && r >= 0; i++)
		if ((r = each_name(topo, i, is_called, &s, err)) > 0)
			*ARRAY_PUSH(found, len, cap) = i;
	if (r >= 0 && len > 1)
		r = refuse_ambiguous(topo, machine, name, found, len, err);
	else if (r >= 0)
		r = len == 1;
	if (r > 0)
		*out = (struct subject){ SUBJECT_THREAD, found[0] };
	free(found);
	return r;
}

static bool parse_number(const char *text, int32_t *n)
{
	char *rest;
	if (*text < '0' || *text > '9')
		return false;
	long v = strtol(text, &rest, 10);
	*n = (int32_t)v;
	return *rest == '\0' && v <= INT32_MAX;
}

/* Of a machine: "3525", "CPU0", "vCPU0" or a thread's name. */
static int find_within(const struct topo *topo, uint32_t machine, const char *text, struct subject *out,
                       struct error *err)
{
	int32_t n;
	const char *cpu = *text == 'v' ? text + 1 : text;
	if (parse_number(text, &n)) {
		int i = topo_find_thread(topo, machine, n);
		*out = (struct subject){ SUBJECT_THREAD, (uint32_t)i };
		if (i >= 0)
			return 1;
	} else if (strncmp(cpu, "CPU", 3) == 0 && parse_number(cpu + 3, &n)) {
		int i = topo_find_cpu(topo, machine, (unsigned)n);
		*out = (struct subject){ SUBJECT_CPU, (uint32_t)i };
		if (i >= 0)
			return 1;
	}
	return find_by_name(topo, machine, text, out, err);
}

static int refuse_unknown(const struct topo *topo, const char *text, int machine, struct error *err)
{
	char shown[NAME_TEXT], mend[sizeof err->mend], name[64];
	text_escape(shown, sizeof shown, text);
	if (machine >= 0) {
		snprintf(mend, sizeof mend, "%s has threads by TID or name, and CPUs as CPU0",
		         text_escape(name, sizeof name, topo->machine[machine].name));
		return error_set(err, STATUS_USAGE, mend, "%s: no such thread or CPU in this history", shown);
	}
	bool bare = !strpbrk(text, "/:");  /* a thread's name or TID alone, perhaps */
	size_t used = (size_t)snprintf(mend, sizeof mend, "%s%.40s%smachines here:", bare ? "a thread is MACHINE/" : "",
	                               bare ? shown : "", bare ? "; " : "");
	for (uint32_t i = 0; i < topo->machines && used + 80 < sizeof mend; i++)
		used += (size_t)snprintf(mend + used, sizeof mend - used, "%s %s", i ? "," : "",
		                         text_escape(name, sizeof name, topo->machine[i].name));
	return error_set(err, STATUS_USAGE, topo->machines ? mend : NULL, "%s: no such machine in this history", shown);
}

int topo_parse_subject(const struct topo *topo, const char *text, struct subject *out, struct error *err)
{
	int machine = topo_find_machine(topo, text), known = -1;
	if (machine >= 0) {
		*out = (struct subject){ SUBJECT_MACHINE, (uint32_t)machine };
		return 0;
	}
	/* Names of machines and of threads may hold slashes: take the first split that names something. */
	for (const char *slash = strchr(text, '/'); slash; slash = strchr(slash + 1, '/')) {
		char *name = mem_printf("%.*s", (int)(slash - text), text);
		machine = topo_find_machine(topo, name);
		free(name);
		if (machine < 0)
			continue;
		known = machine;
		int r = find_within(topo, (uint32_t)machine, slash + 1, out, err);
		if (r != 0)
			return r > 0 ? 0 : -1;
	}
	return refuse_unknown(topo, text, known, err);
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
	if (each_name(topo, thread, add_name, &l, NULL) < 0 || l.names == 0)
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

char *topo_thread_name(const struct topo *topo, uint32_t thread, int64_t t, char *buf, size_t size)
{
	struct interval iv;
	if (topo->thread[thread].tid == 0)
		return text_escape(buf, size, "swapper");
	if (topo->thread[thread].name == HISTORY_NONE ||
	    history_stab(topo->h, topo->thread[thread].name, t, &iv, NULL) < 0 || iv.value == HISTORY_NULL)
		return text_escape(buf, size, "");
	return text_escape(buf, size, history_string(topo->h, iv.value));
}
