/* Sink folded: writes folded stacks for flame graphs, a line "machine;thread;kind;culprit ns" with the time that a
 * thread lost to a culprit. For machines without a trace, vCPUs replace threads. */
#include <stdarg.h>

#include "base/base.h"
#include "base/hash.h"
#include "base/atomic_file.h"
#include "base/strtab.h"
#include "export/sink.h"

struct sink {
	struct save save;
	const struct export_shape *table;
	struct map untraced;         /* hashes of the names of machines without a trace, and so without threads */
	char *victim;                /* current victim, "machine;thread"; NULL: none */
	struct strtab culprits;      /* culprits of the current victim: "kind;culprit" */
	int64_t *ns;                 /* time lost to each culprit, by its id - 1 */
	size_t len, cap;
};

static struct sink *open_folded(const char *target, const struct sink_run *run, struct error *err)
{
	struct sink *s = mem_new(1, sizeof *s);
	(void)run;
	if (atomic_file_begin(&s->save, target, err)) {
		free(s);
		return NULL;
	}
	strtab_init(&s->culprits);
	return s;
}

/* Formats a frame of a stack; escapes ';', which separates frames. The caller frees. */
static char *stack_frame(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static char *stack_frame(const char *fmt, ...)
{
	char raw[2048];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(raw, sizeof raw, fmt, ap);
	va_end(ap);
	char *text = mem_new(4 * strlen(raw) + 1, 1), *to = text;
	for (const char *at = raw; *at; at++) {
		if (*at == ';')
			to = stpcpy(to, "\\x3b");
		else
			*to++ = *at;
	}
	return text;
}

static void end_victim(struct sink *s)
{
	for (size_t i = 0; s->victim && i < s->len; i++)
		fprintf(s->save.f, "%s;%s %" PRId64 "\n", s->victim, strtab_get(&s->culprits, (uint32_t)i + 1), s->ns[i]);
	free(s->victim);
	s->victim = NULL;
	s->len = 0;
	strtab_release(&s->culprits);
	strtab_init(&s->culprits);
}

static char *victim_frame(const struct table_cell *c)
{
	char *machine = stack_frame("%s", c[COL_STEAL_MACHINE].text), *victim, *both;
	if (c[COL_STEAL_TID].absent)
		victim = stack_frame("vCPU%" PRId64, c[COL_STEAL_CPU].number);
	else
		victim = stack_frame("%" PRId64 " %s", c[COL_STEAL_TID].number, c[COL_STEAL_NAME].text);
	both = mem_printf("%s;%s", machine, victim);
	free(machine);
	free(victim);
	return both;
}

static void add_steal(struct sink *s, const struct table_cell *c)
{
	if (c[COL_STEAL_TID].absent && !map_find(&s->untraced, hash_text(HASH_BEGIN, c[COL_STEAL_MACHINE].text)))
		return;
	char *victim = victim_frame(c);
	if (!s->victim || strcmp(victim, s->victim) != 0) {
		end_victim(s);
		s->victim = victim;
	} else {
		free(victim);
	}
	const char *machine = c[COL_STEAL_CULPRIT_MACHINE].absent ? "" : c[COL_STEAL_CULPRIT_MACHINE].text;
	char tid[16] = "", *culprit;
	if (!c[COL_STEAL_CULPRIT_TID].absent)
		snprintf(tid, sizeof tid, "%" PRId64 " ", c[COL_STEAL_CULPRIT_TID].number);
	culprit = stack_frame("%s%s%s%s", machine, *machine ? "/" : "", tid, c[COL_STEAL_CULPRIT_NAME].text);
	char *stack = mem_printf("%s;%s", c[COL_STEAL_KIND].text, *culprit ? culprit : "nobody");
	uint32_t id = strtab_put(&s->culprits, stack);
	while (s->len < id)
		*ARRAY_PUSH(s->ns, s->len, s->cap) = 0;
	s->ns[id - 1] += c[COL_STEAL_NS].number;
	free(culprit);
	free(stack);
}

static int folded_begin(struct sink *s, const struct export_shape *t, struct error *err)
{
	(void)err;
	s->table = t;
	return 0;
}

static int folded_row(struct sink *s, const struct table_cell *c, struct error *err)
{
	if (table_code(s->table) == TABLE_STEAL)
		add_steal(s, c);
	else if (c[COL_MACHINE_UUID].absent)
		map_put(&s->untraced, hash_text(HASH_BEGIN, c[COL_MACHINE_NAME].text), NULL);
	return ferror(s->save.f) ? error_system(err, "free disk space", "%s", s->save.path) : 0;
}

static int folded_end(struct sink *s, struct error *err)
{
	(void)err;
	end_victim(s);
	return 0;
}

static int close_folded(struct sink *s, int status, struct error *err)
{
	status = atomic_file_end(&s->save, status, err);
	strtab_release(&s->culprits);
	map_release(&s->untraced);
	free(s->victim);
	free(s->ns);
	free(s);
	return status;
}

const struct sink_ops sink_folded = {
	TABLE_BIT(TABLE_MACHINE) | TABLE_BIT(TABLE_STEAL), open_folded, folded_begin, folded_row, folded_end, close_folded
};
