/* Finds the targets for a text from the user: by name, TID, a name's start, or glob. */
#include "base/base.h"
#include "query/query_internal.h"

#include <fnmatch.h>
#include <strings.h>

#include "base/suggest.h"

#define NAME_TEXT 512  /* bytes of an escaped name */

/* Comparison of a name with the typed text. MATCH_SIMILAR finds names that match the typed glob, or that start with the
 * typed text if it is no glob. */
enum match_level { MATCH_EXACT, MATCH_SIMILAR };

static bool is_glob(const char *text)
{
	return strpbrk(text, "*?[") != NULL;
}

/* Compares a name, raw and escaped, with the typed text. */
static bool name_matches(const char *name, const char *typed, enum match_level level)
{
	char shown[NAME_TEXT];
	text_escape(shown, sizeof shown, name);
	if (level == MATCH_EXACT)
		return strcmp(name, typed) == 0 || strcmp(shown, typed) == 0;
	if (is_glob(typed))
		return fnmatch(typed, name, 0) == 0 || fnmatch(typed, shown, 0) == 0;
	size_t n = strlen(typed);
	return n > 0 && (strncmp(name, typed, n) == 0 || strncmp(shown, typed, n) == 0);
}

/* The same for a machine, which as a control group has also a path: "/system.slice/web.service". */
static bool machine_matches(const struct catalog *catalog, uint32_t machine, const char *typed, enum match_level level)
{
	const struct catalog_machine *m = &catalog->machine[machine];
	const char *path = m->group >= 0 ? catalog->group[m->group].path : "";
	return name_matches(m->name, typed, level) || (*typed == '/' && name_matches(path, typed, level));
}

struct name_search {
	const struct catalog *catalog;
	const char *typed;          /* text to compare: the whole text, or the part after the machine's name */
	enum match_level level;
	struct target *found;
	size_t len, cap;
	struct suggestion suggestion;     /* names similar to the typed text, for the error if nothing was found */
};

static void add_target(struct name_search *s, enum target_kind kind, uint32_t index)
{
	*ARRAY_PUSH(s->found, s->len, s->cap) = (struct target){ kind, index };
}

/* ---- Within a machine */

static int has_matching_name(void *arg, const struct interval *iv)
{
	struct name_search *s = arg;
	return name_matches(history_string(s->catalog->h, iv->value), s->typed, s->level);
}

/* once: leaves out threads of the host that belong to a container, where the same thread is found. */
static int add_threads(struct name_search *s, uint32_t machine, bool once, struct error *err)
{
	const struct catalog_machine *m = &s->catalog->machine[machine];
	int r = 0;
	for (uint32_t i = m->thread; i < m->thread + m->threads && r >= 0; i++)
		if (!(once && s->catalog->thread[i].in_container) &&
		    (r = catalog_each_name(s->catalog, i, has_matching_name, s, err)) > 0)
			add_target(s, TARGET_THREAD, i);
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
	const struct catalog_machine *m = &s->catalog->machine[machine];
	for (uint32_t i = m->cpu; i < m->cpu + m->cpus; i++) {
		char name[32];
		snprintf(name, sizeof name, "vCPU%u", s->catalog->cpu[i].number);
		if (name_matches(name + 1, s->typed, s->level) || name_matches(name, s->typed, s->level))
			add_target(s, TARGET_CPU, i);
	}
}

/* Finds "151 fibonacci", as in reports: the thread with that TID, if it ever had that name. */
static int add_tid_with_name(struct name_search *s, uint32_t machine, struct error *err)
{
	const size_t digits = strspn(s->typed, "0123456789");
	char *number = mem_printf("%.*s", (int)digits, s->typed);
	int32_t tid;
	int i = s->typed[digits] == ' ' && parse_number(number, &tid) ? catalog_find_thread(s->catalog, machine, tid) : -1;
	free(number);
	if (i < 0)
		return 0;
	struct name_search named = { .catalog = s->catalog, .typed = s->typed + digits + 1, .level = MATCH_EXACT };
	int r = name_matches(catalog_longest_name(s->catalog, (uint32_t)i), named.typed, MATCH_EXACT)
	        ? 1 : catalog_each_name(s->catalog, (uint32_t)i, has_matching_name, &named, err);
	if (r > 0)
		add_target(s, TARGET_THREAD, (uint32_t)i);
	return r < 0 ? -1 : 0;
}

/* a number is only a TID, never a name */
static int add_in_machine(struct name_search *s, uint32_t machine, struct error *err)
{
	int32_t tid;
	if (!parse_number(s->typed, &tid)) {
		if (s->level == MATCH_EXACT && add_tid_with_name(s, machine, err))
			return -1;
		add_cpus(s, machine);
		return add_threads(s, machine, false, err);
	}
	int i = s->level == MATCH_EXACT ? catalog_find_thread(s->catalog, machine, tid) : -1;
	if (i >= 0)
		add_target(s, TARGET_THREAD, (uint32_t)i);
	return 0;
}

/* ---- All machines */

/* Finds MACHINE/REST. Names of machines and threads may contain slashes, so each split is tried. */
static int add_split(struct name_search *s, const char *text, const char *slash, struct error *err)
{
	char *name = mem_printf("%.*s", (int)(slash - text), text);
	int rc = 0;
	s->typed = slash + 1;
	for (uint32_t m = 0; m < s->catalog->machines && rc == 0; m++)
		if (machine_matches(s->catalog, m, name, s->level) || machine_matches(s->catalog, m, name, MATCH_EXACT))
			rc = add_in_machine(s, m, err);
	free(name);
	return rc;
}

/* Finds a TID without a machine: only where all threads are those of one machine. */
static void add_tid(struct name_search *s, int32_t tid)
{
	for (uint32_t m = 0; m < s->catalog->machines; m++) {
		const int i = catalog_find_thread(s->catalog, m, tid);
		if (i >= 0 && !s->catalog->thread[i].in_container)
			add_target(s, TARGET_THREAD, (uint32_t)i);
	}
}

static int search_machines(struct name_search *s, const char *text, enum match_level level, struct error *err)
{
	int32_t tid;
	int rc = 0;
	s->level = level;
	for (uint32_t m = 0; m < s->catalog->machines; m++)
		if (machine_matches(s->catalog, m, text, level))
			add_target(s, TARGET_MACHINE, m);
	for (const char *slash = strchr(text, '/'); slash && rc == 0 && s->len == 0; slash = strchr(slash + 1, '/'))
		rc = add_split(s, text, slash, err);
	if (s->len || !*text)
		return rc;
	if (parse_number(text, &tid)) {
		if (level == MATCH_EXACT && catalog_is_alone(s->catalog))
			add_tid(s, tid);
		return rc;
	}
	s->typed = text;  /* name of a thread of any machine */
	for (uint32_t m = 0; m < s->catalog->machines && rc == 0; m++)
		rc = add_threads(s, m, true, err);
	return rc;
}

int catalog_find_targets(const struct catalog *catalog, const char *text, struct target **found, size_t *n,
                         struct error *err)
{
	struct name_search s = { .catalog = catalog };
	int rc = search_machines(&s, text, MATCH_EXACT, err);
	if (rc == 0 && s.len == 0)
		rc = search_machines(&s, text, MATCH_SIMILAR, err);
	*found = s.found;
	*n = s.len;
	return rc;
}

/* ---- No target, or several */

static int suggest_name(void *arg, const struct interval *iv)
{
	struct name_search *s = arg;
	suggest(&s->suggestion, history_string(s->catalog->h, iv->value));
	return 0;
}

static void suggest_thread(struct name_search *s, uint32_t machine)
{
	const struct catalog_machine *m = &s->catalog->machine[machine];
	for (uint32_t i = m->thread; i < m->thread + m->threads; i++)
		catalog_each_name(s->catalog, i, suggest_name, s, NULL);
}

/* Returns "Debian/151 or host/151" for "151", because each machine has its own TIDs: at most three; NULL: none. */
static char *suggest_machines(const struct catalog *catalog, int32_t tid)
{
	char *all = NULL;
	for (uint32_t m = 0, named = 0; m < catalog->machines && named < 3; m++) {
		if (catalog_find_thread(catalog, m, tid) < 0)
			continue;
		named++;
		char *longer = mem_printf("%s%s%.30s/%d", all ? all : "", all ? " or " : "", catalog->machine[m].name, tid);
		free(all);
		all = longer;
	}
	return all;
}

/* Returns "Debian/CPU0 to CPU3", a machine's CPUs, if `name` looks like a CPU; NULL: it does not. */
static char *suggest_cpus(const struct catalog *catalog, uint32_t machine, const char *name)
{
	const struct catalog_machine *m = &catalog->machine[machine];
	name += *name == 'v';
	if (strncasecmp(name, "CPU", 3) != 0 || strspn(name + 3, "0123456789") != strlen(name + 3) || !m->cpus)
		return NULL;
	unsigned first = catalog->cpu[m->cpu].number, last = catalog->cpu[m->cpu + m->cpus - 1].number;
	return first == last ? mem_printf("%s/CPU%u", m->name, first) : mem_printf("%s/CPU%u to CPU%u", m->name, first, last);
}

/* Returns a similar name: "Debian/fibonacci" for "Debian/fibonaci", "Debian" for "Debain"; NULL: none. The caller frees
 * it. */
static char *suggest_target(const struct catalog *catalog, const char *text)
{
	int32_t tid;
	if (parse_number(text, &tid))
		return suggest_machines(catalog, tid);
	for (const char *slash = strchr(text, '/'); slash; slash = strchr(slash + 1, '/')) {
		char *name = mem_printf("%.*s", (int)(slash - text), text);
		struct name_search s = { .catalog = catalog, .suggestion = SUGGESTION(slash + 1) };
		int machine = catalog_find_machine(catalog, name);
		char *suggested = machine >= 0 ? suggest_cpus(catalog, (uint32_t)machine, slash + 1) : NULL;
		if (machine >= 0 && !suggested)
			suggest_thread(&s, (uint32_t)machine);
		if (!suggested && s.suggestion.nearest)
			suggested = mem_printf("%s/%s", name, s.suggestion.nearest);
		free(name);
		if (machine >= 0)
			return suggested;
	}
	size_t head = strcspn(text, "/");
	char *name = mem_printf("%.*s", (int)head, text);
	struct suggestion suggestion = SUGGESTION(name);
	for (uint32_t m = 0; m < catalog->machines; m++)
		suggest(&suggestion, catalog->machine[m].name);
	char *suggested = suggestion.nearest ? mem_printf("%s%s", suggestion.nearest, text + head) : NULL;
	free(name);
	return suggested;
}

static int error_unknown_target(const struct catalog *catalog, const char *text, struct error *err)
{
	char remedy[sizeof err->remedy], *nearest = suggest_target(catalog, text);
	size_t used = nearest ? (size_t)snprintf(remedy, sizeof remedy, "did you mean %.100s? ", nearest) : 0;
	used += (size_t)snprintf(remedy + used, sizeof remedy - used,
	                         "CPUs are MACHINE/CPU0, threads MACHINE/TID, processes process:NAME; machines here:");
	for (uint32_t i = 0; i < catalog->machines && used + 80 < sizeof remedy; i++)
		used += (size_t)snprintf(remedy + used, sizeof remedy - used, "%s %.60s", i ? "," : "", catalog->machine[i].name);
	free(nearest);
	return error_set(err, STATUS_USAGE, catalog->machines ? remedy : NULL,
	                 "%s: no such machine, CPU, process or thread in this history", *text ? text : "''");
}

static int error_ambiguous_target(const struct catalog *catalog, const char *text, const struct target *found, size_t n,
                                  struct error *err)
{
	char remedy[sizeof err->remedy], name[NAME_TEXT];
	size_t used = (size_t)snprintf(remedy, sizeof remedy, "name one of these:"), i = 0;
	for (; i < n && used + 96 < sizeof remedy; i++) {
		catalog_target_text(catalog, &found[i], name, sizeof name);
		if (found[i].kind == TARGET_THREAD)
			name[strcspn(name, " ")] = '\0';
		used += (size_t)snprintf(remedy + used, sizeof remedy - used, "%s %.80s", i ? "," : "", name);
	}
	if (i < n)
		snprintf(remedy + used, sizeof remedy - used, ", ...");
	bool threads = true;
	for (i = 0; i < n; i++)
		threads = threads && found[i].kind == TARGET_THREAD;
	return error_set(err, STATUS_USAGE, remedy, "%s: %zu %s", text, n, threads ? "threads have that name"
	                 : "targets match");
}

int catalog_single_target(const struct catalog *catalog, const char *text, const struct target *found, size_t n,
                       struct target *out, struct error *err)
{
	if (n == 0)
		return error_unknown_target(catalog, text, err);
	if (n > 1)
		return error_ambiguous_target(catalog, text, found, n, err);
	*out = found[0];
	return 0;
}

int catalog_parse_target(const struct catalog *catalog, const char *text, struct target *out, struct error *err)
{
	struct target *found;
	size_t n;
	int rc = catalog_find_targets(catalog, text, &found, &n, err);
	if (rc == 0)
		rc = catalog_single_target(catalog, text, found, n, out, err);
	free(found);
	return rc;
}
