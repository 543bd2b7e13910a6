/* Sets of threads as targets: a process, all processes of one name, or a control group with the groups in it. The catalog
 * is opened again with the set as a container, so that each of its threads belongs to it alone. */
#include "query/thread_set.h"

#include "base/base.h"
#include "query/query_internal.h"

#define PROCESS "process:"

bool thread_set_contains(const struct thread_set *set, uint32_t machine, int32_t tid)
{
	size_t low = 0, high = set && set->machine == machine ? set->threads : 0;
	while (low < high) {
		const size_t middle = low + (high - low) / 2;
		if (set->tid[middle] < tid)
			low = middle + 1;
		else
			high = middle;
	}
	return set && set->machine == machine && low < set->threads && set->tid[low] == tid;
}

void thread_set_free(struct thread_set *set)
{
	if (!set)
		return;
	free(set->name);
	free(set->tid);
	free(set);
}

/* Returns true if the process has this number, or if its first thread has this name. */
static bool is_process(const struct catalog *c, uint32_t machine, int64_t pid, const char *typed)
{
	char number[24];
	snprintf(number, sizeof number, "%lld", (long long)pid);
	const int leader = pid > 0 && pid <= INT32_MAX ? catalog_find_thread(c, machine, (int32_t)pid) : -1;
	return pid > 0 && (strcmp(number, typed) == 0 ||
	                   (leader >= 0 && strcmp(catalog_longest_name(c, (uint32_t)leader), typed) == 0));
}

bool catalog_is_in_process(const struct catalog *c, uint32_t thread, const char *process)
{
	int64_t pid;
	return attribute_last_value(c, c->thread[thread].pid, &pid, NULL) == 0 &&
	       is_process(c, c->thread[thread].machine, pid, process);
}

/* Returns true if other groups are in the group. */
static bool is_outer(const struct catalog *c, const struct catalog_group *g)
{
	uint32_t members = 0;
	for (uint32_t i = 0; i < c->groups; i++)
		members += catalog_group_contains(c, g, i);
	return members > 1;
}

/* Returns the group whose path is the text, or the only one whose name is; NULL: none. Groups that are machines of the
 * catalog are left out, except for paths of groups with other groups in them. */
static const struct catalog_group *find_group(const struct catalog *c, const char *text)
{
	const struct catalog_group *named = NULL;
	bool is_free = catalog_find_machine(c, text) < 0;
	for (uint32_t i = 0; i < c->groups; i++) {
		const struct catalog_group *g = &c->group[i];
		const bool is_named = strcmp(g->name, text) == 0, is_path = strcmp(g->path, text) == 0;
		if (!(is_named || is_path) || (catalog_is_alone(c) && !is_outer(c, g)))
			continue;
		if (is_path)
			return g;
		is_free = is_free && !named;
		named = g;
	}
	return is_free ? named : NULL;
}

/* Returns the threads of a machine that belong to the process or to the groups; NULL: none, or an error (err->status). */
static struct thread_set *collect(const struct catalog *c, uint32_t machine, const char *process,
                                  const struct catalog_group *group, struct error *err)
{
	const struct catalog_machine *m = &c->machine[machine];
	struct thread_set *set = mem_new(1, sizeof *set);
	size_t cap = 0;
	set->machine = machine;
	set->group = group ? (int32_t)(group - c->group) : -1;
	for (uint32_t i = m->thread; i < m->thread + m->threads; i++) {
		int64_t value;
		if (attribute_last_value(c, group ? c->thread[i].group : c->thread[i].pid, &value, err)) {
			thread_set_free(set);
			return NULL;
		}
		if (group ? catalog_group_contains(c, group, value) : is_process(c, machine, value, process))
			*ARRAY_PUSH(set->tid, set->threads, cap) = c->thread[i].tid;
	}
	if (set->threads)
		return set;
	thread_set_free(set);
	return NULL;
}

/* Returns the process in "process:java" or "MACHINE/process:14770", and its machine, -1: any; NULL: no process. */
static const char *parse_process(const struct catalog *c, const char *text, int *machine)
{
	const char *found = strstr(text, PROCESS);
	*machine = -1;
	if (!found || (found > text && found[-1] != '/'))
		return NULL;
	if (found > text) {
		char *name = mem_printf("%.*s", (int)(found - text - 1), text);
		*machine = catalog_find_machine(c, name);
		free(name);
	}
	return found == text || *machine >= 0 ? found + strlen(PROCESS) : NULL;
}

int catalog_find_process(const struct catalog *c, const char *text)
{
	int machine, found = -1;
	const char *process = parse_process(c, text, &machine);
	for (uint32_t i = 0; i < c->threads && process; i++) {
		const bool is_here = machine < 0 ? !c->thread[i].in_container : c->thread[i].machine == (uint32_t)machine;
		if (is_here && (found < 0 || c->thread[i].tid == atoi(process)) && catalog_is_in_process(c, i, process))
			found = (int)i;
	}
	return found;
}

/* Returns the thread, in its container if it is in one. */
static struct target single_thread(const struct catalog *c, const struct thread_set *set)
{
	int found = -1;
	for (uint32_t m = c->machines; m-- > 0 && found < 0;)
		if (c->machine[m].whole == (int32_t)set->machine)
			found = catalog_find_thread(c, m, set->tid[0]);
	return (struct target){ TARGET_THREAD, (uint32_t)found };
}

/* Returns the set that the text names; NULL: none, or an error (err->status). */
static struct thread_set *find_set(const struct catalog *c, const char *text, struct error *err)
{
	int machine;
	const char *process = parse_process(c, text, &machine);
	const struct catalog_group *group = process ? NULL : find_group(c, text);
	struct thread_set *set = NULL, *other = NULL;
	for (uint32_t m = 0; (process || group) && m < c->machines && !other && err->status == STATUS_OK; m++) {
		if (c->machine[m].kind == MACHINE_CONTAINER || (machine >= 0 && machine != (int)m) || (group && m > 0))
			continue;
		other = set;
		set = collect(c, m, process, group, err);
		if (other && set)
			error_set(err, STATUS_USAGE, "name the machine: MACHINE/" PROCESS "NAME", "%s: processes of %s and %s", text,
			          c->machine[other->machine].name, c->machine[m].name);
		else if (other)
			set = other, other = NULL;
	}
	thread_set_free(other);
	if (err->status != STATUS_OK) {
		thread_set_free(set);
		return NULL;
	}
	if (set && !group)
		set->name = mem_dup(text);
	else if (set)
		set->name = mem_dup(*group->name && catalog_find_machine(c, group->name) < 0 ? group->name : group->path);
	return set;
}

/* Opens the catalog again, with a set (owned) or without one (NULL). */
static int reopen(struct catalog *c, struct thread_set *set, struct error *err)
{
	struct catalog other;
	if (catalog_open_set(&other, c->h, set, err))
		return -1;
	catalog_release(c);
	*c = other;
	return 0;
}

int catalog_select(struct catalog *c, const char *text, bool as_machine, struct target *out, struct error *err)
{
	const char *slash = strrchr(text, '/');
	const bool has_tid = slash && slash[1] && strspn(slash + 1, "0123456789") == strlen(slash + 1);
	char *owner = mem_printf("%.*s", has_tid ? (int)(slash - text) : 0, text);
	struct error why = ERROR_INIT;
	struct target *found = NULL;
	size_t n = 0;
	if (c->set && reopen(c, NULL, err)) {
		free(owner);
		return -1;
	}
	struct thread_set *set = find_set(c, text, &why), *of_thread = NULL;
	if (!set && has_tid && why.status == STATUS_OK && catalog_find_targets(c, text, &found, &n, &why) == 0 && n == 0)
		of_thread = find_set(c, owner, &why);
	free(found);
	free(owner);
	if (why.status != STATUS_OK) {
		*err = why;
		return -1;
	}
	if (set && set->threads == 1 && strstr(text, PROCESS) && !as_machine) {
		*out = single_thread(c, set);
		thread_set_free(set);
		return 1;
	}
	if (!set && !of_thread)
		return 0;
	if (reopen(c, set ? set : of_thread, err))
		return -1;
	*out = (struct target){ TARGET_MACHINE, c->machines - 1 };
	return set != NULL;
}
