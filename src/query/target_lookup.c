/* Whom a person means: names, TIDs, beginnings of names, globs. */
#include "query/query_internal.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/suggest.h"
#include "base/text.h"

#define NAME_TEXT 512  /* bytes of an escaped name */

/* How a name is compared with what was typed: each finds more than the one before. */
enum likeness { THE_SAME, ALIKE };  /* ALIKE: it matches the glob that was typed, or begins so where that is none */

static bool is_glob(const char *text)
{
	return strpbrk(text, "*?[") != NULL;
}

/* Names are typed as they are, or as they are shown. */
static bool fits(const char *name, const char *typed, enum likeness how)
{
	char shown[NAME_TEXT];
	text_escape(shown, sizeof shown, name);
	if (how == THE_SAME)
		return strcmp(name, typed) == 0 || strcmp(shown, typed) == 0;
	if (is_glob(typed))
		return fnmatch(typed, name, 0) == 0 || fnmatch(typed, shown, 0) == 0;
	size_t n = strlen(typed);
	return n > 0 && (strncmp(name, typed, n) == 0 || strncmp(shown, typed, n) == 0);
}

struct name_search {
	const struct topo *topo;
	const char *typed;          /* a name, or the part of it behind the machine's */
	enum likeness how;
	struct subject *found;
	size_t len, cap;
	struct suggestion near;     /* of a second look, when nothing was found */
};

static void add(struct name_search *s, enum subject_kind kind, uint32_t index)
{
	*ARRAY_PUSH(s->found, s->len, s->cap) = (struct subject){ kind, index };
}

/* ---- Within a machine */

static int is_called(void *arg, const struct interval *iv)
{
	struct name_search *s = arg;
	return fits(history_string(s->topo->h, iv->value), s->typed, s->how);
}

static int add_threads(struct name_search *s, uint32_t machine, struct error *err)
{
	const struct topo_machine *m = &s->topo->machine[machine];
	int r = 0;
	for (uint32_t i = m->thread; i < m->thread + m->threads && r >= 0; i++)
		if ((r = topo_each_name(s->topo, i, is_called, s, err)) > 0)
			add(s, SUBJECT_THREAD, i);
	return r < 0 ? -1 : 0;
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

static void add_cpus(struct name_search *s, uint32_t machine)
{
	const struct topo_machine *m = &s->topo->machine[machine];
	for (uint32_t i = m->cpu; i < m->cpu + m->cpus; i++) {
		char name[32];
		snprintf(name, sizeof name, "vCPU%u", s->topo->cpu[i].number);
		if (fits(name + 1, s->typed, s->how) || fits(name, s->typed, s->how))
			add(s, SUBJECT_CPU, i);
	}
}

/* "151 fibonacci", as reports have it: the thread of that TID, if it ever had that name. */
static int add_shown(struct name_search *s, uint32_t machine, struct error *err)
{
	const size_t digits = strspn(s->typed, "0123456789");
	char *number = mem_printf("%.*s", (int)digits, s->typed);
	int32_t tid;
	int i = s->typed[digits] == ' ' && parse_number(number, &tid) ? topo_find_thread(s->topo, machine, tid) : -1;
	free(number);
	if (i < 0)
		return 0;
	struct name_search named = { .topo = s->topo, .typed = s->typed + digits + 1, .how = THE_SAME };
	int r = fits(topo_longest_name(s->topo, (uint32_t)i), named.typed, THE_SAME)
	        ? 1 : topo_each_name(s->topo, (uint32_t)i, is_called, &named, err);
	if (r > 0)
		add(s, SUBJECT_THREAD, (uint32_t)i);
	return r < 0 ? -1 : 0;
}

/* A number is a TID and nothing else. */
static int add_within(struct name_search *s, uint32_t machine, struct error *err)
{
	int32_t tid;
	if (!parse_number(s->typed, &tid)) {
		if (s->how == THE_SAME && add_shown(s, machine, err))
			return -1;
		add_cpus(s, machine);
		return add_threads(s, machine, err);
	}
	int i = s->how == THE_SAME ? topo_find_thread(s->topo, machine, tid) : -1;
	if (i >= 0)
		add(s, SUBJECT_THREAD, (uint32_t)i);
	return 0;
}

/* ---- All */

/* MACHINE/REST; names of machines and of threads may hold slashes: each split may be meant. */
static int add_split(struct name_search *s, const char *text, const char *slash, struct error *err)
{
	char *name = mem_printf("%.*s", (int)(slash - text), text);
	int rc = 0;
	s->typed = slash + 1;
	for (uint32_t m = 0; m < s->topo->machines && rc == 0; m++)
		if (fits(s->topo->machine[m].name, name, s->how) || fits(s->topo->machine[m].name, name, THE_SAME))
			rc = add_within(s, m, err);
	free(name);
	return rc;
}

static int search(struct name_search *s, const char *text, enum likeness how, struct error *err)
{
	int32_t tid;
	int rc = 0;
	s->how = how;
	for (uint32_t m = 0; m < s->topo->machines; m++)
		if (fits(s->topo->machine[m].name, text, how))
			add(s, SUBJECT_MACHINE, m);
	for (const char *slash = strchr(text, '/'); slash && rc == 0 && s->len == 0; slash = strchr(slash + 1, '/'))
		rc = add_split(s, text, slash, err);
	if (s->len || !*text || parse_number(text, &tid))
		return rc;
	s->typed = text;  /* a thread's name, of whatever machine */
	for (uint32_t m = 0; m < s->topo->machines && rc == 0; m++)
		rc = add_threads(s, m, err);
	return rc;
}

int topo_find_subjects(const struct topo *topo, const char *text, struct subject **found, size_t *n,
                       struct error *err)
{
	struct name_search s = { .topo = topo };
	int rc = search(&s, text, THE_SAME, err);
	if (rc == 0 && s.len == 0)
		rc = search(&s, text, ALIKE, err);
	*found = s.found;
	*n = s.len;
	return rc;
}

/* ---- Nobody, or several */

static int suggest_name(void *arg, const struct interval *iv)
{
	struct name_search *s = arg;
	suggest(&s->near, history_string(s->topo->h, iv->value));
	return 0;
}

static void suggest_thread(struct name_search *s, uint32_t machine)
{
	const struct topo_machine *m = &s->topo->machine[machine];
	for (uint32_t i = m->thread; i < m->thread + m->threads; i++)
		topo_each_name(s->topo, i, suggest_name, s, NULL);
}

/* "Debian/151 or host/151" of "151", since each machine counts its threads for itself: up to three of them, or NULL. */
static char *suggest_machines(const struct topo *topo, int32_t tid)
{
	char *all = NULL;
	for (uint32_t m = 0, named = 0; m < topo->machines && named < 3; m++) {
		if (topo_find_thread(topo, m, tid) < 0)
			continue;
		named++;
		char *longer = mem_printf("%s%s%.30s/%d", all ? all : "", all ? " or " : "", topo->machine[m].name, tid);
		free(all);
		all = longer;
	}
	return all;
}

/* "Debian/CPU0 to CPU3": which CPUs a machine has where `name` is like one's; or NULL. */
static char *suggest_cpus(const struct topo *topo, uint32_t machine, const char *name)
{
	const struct topo_machine *m = &topo->machine[machine];
	name += *name == 'v';
	if (strncasecmp(name, "CPU", 3) != 0 || strspn(name + 3, "0123456789") != strlen(name + 3) || !m->cpus)
		return NULL;
	unsigned first = topo->cpu[m->cpu].number, last = topo->cpu[m->cpu + m->cpus - 1].number;
	return first == last ? mem_printf("%s/CPU%u", m->name, first) : mem_printf("%s/CPU%u to CPU%u", m->name, first, last);
}

/* "Debian/fibonacci" of "Debian/fibonaci", or "Debian" of "Debain"; the caller frees, NULL: nothing is near. */
static char *suggest_subject(const struct topo *topo, const char *text)
{
	int32_t tid;
	if (parse_number(text, &tid))
		return suggest_machines(topo, tid);
	for (const char *slash = strchr(text, '/'); slash; slash = strchr(slash + 1, '/')) {
		char *name = mem_printf("%.*s", (int)(slash - text), text);
		struct name_search s = { .topo = topo, .near = SUGGESTION(slash + 1) };
		int machine = topo_find_machine(topo, name);
		char *whole = machine >= 0 ? suggest_cpus(topo, (uint32_t)machine, slash + 1) : NULL;
		if (machine >= 0 && !whole)
			suggest_thread(&s, (uint32_t)machine);
		if (!whole && s.near.nearest)
			whole = mem_printf("%s/%s", name, s.near.nearest);
		free(name);
		if (machine >= 0)
			return whole;
	}
	size_t head = strcspn(text, "/");
	char *name = mem_printf("%.*s", (int)head, text);
	struct suggestion near = SUGGESTION(name);
	for (uint32_t m = 0; m < topo->machines; m++)
		suggest(&near, topo->machine[m].name);
	char *whole = near.nearest ? mem_printf("%s%s", near.nearest, text + head) : NULL;
	free(name);
	return whole;
}

static int refuse_unknown(const struct topo *topo, const char *text, struct error *err)
{
	char mend[sizeof err->mend], *nearest = suggest_subject(topo, text);
	size_t used = nearest ? (size_t)snprintf(mend, sizeof mend, "did you mean %.100s? ", nearest) : 0;
	used += (size_t)snprintf(mend + used, sizeof mend - used, "CPUs are MACHINE/CPU0, threads MACHINE/TID; machines here:");
	for (uint32_t i = 0; i < topo->machines && used + 80 < sizeof mend; i++)
		used += (size_t)snprintf(mend + used, sizeof mend - used, "%s %.60s", i ? "," : "", topo->machine[i].name);
	free(nearest);
	return error_set(err, STATUS_USAGE, topo->machines ? mend : NULL,
	                 "%s: no such machine, CPU or thread in this history", *text ? text : "''");
}

static int refuse_ambiguous(const struct topo *topo, const char *text, const struct subject *found, size_t n,
                            struct error *err)
{
	char mend[sizeof err->mend], who[NAME_TEXT];
	size_t used = (size_t)snprintf(mend, sizeof mend, "say which:"), i = 0;
	for (; i < n && used + 96 < sizeof mend; i++) {
		topo_subject_text(topo, &found[i], who, sizeof who);
		if (found[i].kind == SUBJECT_THREAD)
			who[strcspn(who, " ")] = '\0';
		used += (size_t)snprintf(mend + used, sizeof mend - used, "%s %.80s", i ? "," : "", who);
	}
	if (i < n)
		snprintf(mend + used, sizeof mend - used, ", ...");
	bool threads = true;
	for (i = 0; i < n; i++)
		threads = threads && found[i].kind == SUBJECT_THREAD;
	return error_set(err, STATUS_USAGE, mend, "%s: %zu %s", text, n, threads ? "threads have that name" : "may be meant");
}

int topo_one_subject(const struct topo *topo, const char *text, const struct subject *found, size_t n,
                     struct subject *out, struct error *err)
{
	if (n == 0)
		return refuse_unknown(topo, text, err);
	if (n > 1)
		return refuse_ambiguous(topo, text, found, n, err);
	*out = found[0];
	return 0;
}

int topo_parse_subject(const struct topo *topo, const char *text, struct subject *out, struct error *err)
{
	struct subject *found;
	size_t n;
	int rc = topo_find_subjects(topo, text, &found, &n, err);
	if (rc == 0)
		rc = topo_one_subject(topo, text, found, n, out, err);
	free(found);
	return rc;
}
