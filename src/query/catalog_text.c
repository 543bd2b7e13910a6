/* Names of targets as reports and the viewer show them. All texts written here are escaped. */
#include "base/base.h"
#include "query/query_internal.h"

#define NAME_TEXT 512  /* bytes of an escaped name in a message */

int catalog_each_name(const struct catalog *catalog, uint32_t thread, int (*fn)(void *, const struct interval *), void *arg,
                      struct error *err)
{
	struct history_cursor c;
	struct interval iv;
	uint32_t attr = catalog->thread[thread].name;
	if (attr == HISTORY_NONE)
		return 0;
	if (history_range(&c, catalog->h, attr, history_first(catalog->h), history_last(catalog->h), err) < 0)
		return -1;
	int r;
	while ((r = history_range_next(&c, &iv, err)) > 0)
		if (iv.value != HISTORY_NULL && (r = fn(arg, &iv)) != 0)
			return r;
	return r;
}

int catalog_lifetime(const struct catalog *catalog, const struct target *target, int64_t *start, int64_t *end,
                     struct error *err)
{
	*start = history_begin(catalog->h);
	*end = history_end(catalog->h);
	return target->kind != TARGET_THREAD
	       ? 1 : attribute_lifetime(catalog, catalog->thread[target->index].status, start, end, err);
}

struct name_times {
	struct { int64_t value, ns; } name[16];
	size_t names;
};

static int name_times_add(void *arg, const struct interval *iv)
{
	struct name_times *l = arg;
	size_t i = 0;
	while (i < l->names && l->name[i].value != iv->value)
		i++;
	if (i == sizeof l->name / sizeof *l->name)
		return 1;  /* too many names: compares only the first ones */
	if (i == l->names) {
		l->name[l->names].value = iv->value;
		l->name[l->names++].ns = 0;
	}
	l->name[i].ns += iv->end - iv->start;
	return 0;
}

const char *catalog_longest_name(const struct catalog *catalog, uint32_t thread)
{
	struct name_times l = { .names = 0 };
	size_t best = 0;
	if (catalog->thread[thread].tid == 0)
		return "swapper";
	if (catalog_each_name(catalog, thread, name_times_add, &l, NULL) < 0 || l.names == 0)
		return "";
	for (size_t i = 1; i < l.names; i++)
		if (l.name[i].ns > l.name[best].ns)
			best = i;
	return history_string(catalog->h, l.name[best].value);
}

char *catalog_target_text(const struct catalog *catalog, const struct target *target, char *buf, size_t size)
{
	char machine[NAME_TEXT], name[NAME_TEXT];
	if (target->kind == TARGET_MACHINE)
		return text_escape(buf, size, catalog->machine[target->index].name);
	if (target->kind == TARGET_CPU) {
		const struct catalog_cpu *cpu = &catalog->cpu[target->index];
		const struct catalog_machine *m = &catalog->machine[cpu->machine];
		snprintf(buf, size, "%s/%sCPU%u", text_escape(machine, sizeof machine, m->name),
		         m->kind == MACHINE_VM ? "v" : "", cpu->number);
		return buf;
	}
	const struct catalog_thread *th = &catalog->thread[target->index];
	text_escape(name, sizeof name, catalog_longest_name(catalog, target->index));
	snprintf(buf, size, "%s/%" PRId32 "%s%s",
	         text_escape(machine, sizeof machine, catalog->machine[th->machine].name), th->tid, *name ? " " : "", name);
	return buf;
}

char *catalog_operand_text(const struct catalog *catalog, const struct target *target, char *buf, size_t size)
{
	char machine[NAME_TEXT];
	text_escape(machine, sizeof machine, catalog->machine[target_machine(catalog, target)].name);
	if (target->kind == TARGET_CPU)
		snprintf(buf, size, "%s/CPU%u", machine, catalog->cpu[target->index].number);
	else if (target->kind == TARGET_THREAD)
		snprintf(buf, size, "%s/%" PRId32, machine, catalog->thread[target->index].tid);
	else
		snprintf(buf, size, "%s", machine);
	return buf;
}

char *catalog_view_command(const struct catalog *catalog, const struct target *target, int64_t at, char *buf, size_t size)
{
	char row[ACTOR_TEXT], time[TIME_TEXT];
	char *word = shell_word(catalog_operand_text(catalog, target, row, sizeof row));
	snprintf(buf, size, "view FILE --row %s --at %s", word, time_clock(time, at, 6));
	free(word);
	return buf;
}

char *summary_row_text(const struct catalog *catalog, const struct summary_row *row, bool is_key, char *buf, size_t size)
{
	char machine[NAME_TEXT], name[NAME_TEXT], tid[16] = "", threads[32] = "";
	if (!row->group)
		return catalog_target_text(catalog, &row->target, buf, size);
	text_escape(machine, sizeof machine, catalog->machine[target_machine(catalog, &row->target)].name);
	text_escape(name, sizeof name, row->group);
	if (row->group_tid >= 0)
		snprintf(tid, sizeof tid, "%" PRId32 "%s", row->group_tid, *name ? " " : "");
	if (!is_key)
		snprintf(threads, sizeof threads, " (%" PRIu32 " thread%s)", row->threads, row->threads == 1 ? "" : "s");
	snprintf(buf, size, "%s/%s%s%s", machine, tid, name, threads);
	return buf;
}
