/* Stacks for flame graphs: a line "machine;thread;kind;thief ns" for what every thread lost to every thief; of machines
 * that were not traced, for what their vCPUs lost. */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/atomic_file.h"
#include "base/strtab.h"
#include "export/sink.h"

struct sink {
	struct save save;
	const struct export_shape *table;
	struct map untraced;         /* machines without a trace, so without threads: hashes of their names */
	char *victim;                /* "machine;thread" at hand, or NULL */
	struct strtab thieves;       /* of it: "kind;thief" */
	int64_t *ns;                 /* by thief */
	size_t len, cap;
};

static struct sink *open_folded(const char *target, const struct sink_run *run, struct error *err)
{
	struct sink *s = mem_new(1, sizeof *s);
	(void)run;
	if (save_begin(&s->save, target, err)) {
		free(s);
		return NULL;
	}
	strtab_init(&s->thieves);
	return s;
}

/* A frame: ';' stands between them. */
static char *frame(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
static char *frame(const char *fmt, ...)
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
		fprintf(s->save.f, "%s;%s %" PRId64 "\n", s->victim, strtab_get(&s->thieves, (uint32_t)i + 1), s->ns[i]);
	free(s->victim);
	s->victim = NULL;
	s->len = 0;
	strtab_release(&s->thieves);
	strtab_init(&s->thieves);
}

static char *victim_of(const struct table_cell *c)
{
	char *machine = frame("%s", c[COL_STEAL_MACHINE].text), *who, *both;
	if (c[COL_STEAL_TID].absent)
		who = frame("vCPU%" PRId64, c[COL_STEAL_CPU].number);
	else
		who = frame("%" PRId64 " %s", c[COL_STEAL_TID].number, c[COL_STEAL_NAME].text);
	both = mem_printf("%s;%s", machine, who);
	free(machine);
	free(who);
	return both;
}

static void add_steal(struct sink *s, const struct table_cell *c)
{
	if (c[COL_STEAL_TID].absent && !map_find(&s->untraced, hash_text(HASH_BEGIN, c[COL_STEAL_MACHINE].text)))
		return;
	char *victim = victim_of(c);
	if (!s->victim || strcmp(victim, s->victim) != 0) {
		end_victim(s);
		s->victim = victim;
	} else {
		free(victim);
	}
	const char *machine = c[COL_STEAL_THIEF_MACHINE].absent ? "" : c[COL_STEAL_THIEF_MACHINE].text;
	char tid[16] = "", *thief;
	if (!c[COL_STEAL_THIEF_TID].absent)
		snprintf(tid, sizeof tid, "%" PRId64 " ", c[COL_STEAL_THIEF_TID].number);
	thief = frame("%s%s%s%s", machine, *machine ? "/" : "", tid, c[COL_STEAL_THIEF_NAME].text);
	char *stack = mem_printf("%s;%s", c[COL_STEAL_KIND].text, *thief ? thief : "nobody");
	uint32_t id = strtab_put(&s->thieves, stack);
	while (s->len < id)
		*ARRAY_PUSH(s->ns, s->len, s->cap) = 0;
	s->ns[id - 1] += c[COL_STEAL_NS].number;
	free(thief);
	free(stack);
}

static int begin(struct sink *s, const struct export_shape *t, struct error *err)
{
	(void)err;
	s->table = t;
	return 0;
}

static int row(struct sink *s, const struct table_cell *c, struct error *err)
{
	if (table_code(s->table) == TABLE_STEAL)
		add_steal(s, c);
	else if (c[COL_MACHINE_UUID].absent)
		map_put(&s->untraced, hash_text(HASH_BEGIN, c[COL_MACHINE_NAME].text), NULL);
	return ferror(s->save.f) ? error_system(err, "make room there", "%s", s->save.path) : 0;
}

static int end(struct sink *s, struct error *err)
{
	(void)err;
	end_victim(s);
	return 0;
}

static int close_folded(struct sink *s, int status, struct error *err)
{
	status = save_end(&s->save, status, err);
	strtab_release(&s->thieves);
	map_release(&s->untraced);
	free(s->victim);
	free(s->ns);
	free(s);
	return status;
}

const struct sink_ops sink_folded = { TABLE_BIT(TABLE_MACHINE) | TABLE_BIT(TABLE_STEAL), open_folded, begin, row, end,
	close_folded };
