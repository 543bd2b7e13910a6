/* Exports a history: fills the tables one by one and passes their rows to the target's sink. */
#include "export/export.h"

#include "base/json_field.h"
#include "base/hash.h"
#include "base/atomic_file.h"
#include "base/suggest.h"
#include "export/fill.h"
#include "index/index.h"

static int (*const fill[TABLE_COUNT])(struct filler *f) = {
	[TABLE_MACHINE] = fill_machines, [TABLE_CPU] = fill_cpus, [TABLE_THREAD] = fill_threads, [TABLE_NAME] = fill_names,
	[TABLE_VCPU_STATE] = fill_vcpu_states, [TABLE_THREAD_STATE] = fill_thread_states, [TABLE_RUNNING] = fill_running,
	[TABLE_GAP] = fill_gaps, [TABLE_FLOW] = fill_flow, [TABLE_STEAL] = fill_steal, [TABLE_STEAL_TOTAL] = fill_steal_total,
	[TABLE_CORE_TIME] = fill_core_time, [TABLE_CORE_SHARER] = fill_core_sharers, [TABLE_EXIT] = fill_exits,
	[TABLE_REQUEST] = fill_requests, [TABLE_CLOCK] = fill_clocks, [TABLE_LOSS] = fill_losses, [TABLE_RUN] = fill_runs,
};

int fill_row(struct filler *f, struct table_cell *cell)
{
	cell[0] = CELL_INT(f->run);
	f->rows++;
	return f->ops->row(f->sink, cell, f->err);
}

int fill_tick(struct filler *f, const char *phase, uint64_t done, uint64_t total)
{
	if (f->progress.tick && f->progress.tick(f->progress.arg, phase, done, total))
		return error_set(f->err, STATUS_CANCELLED, NULL, "cancelled");
	return 0;
}

struct table_cell fill_number(int64_t number)
{
	return number < 0 ? CELL_NONE : CELL_INT(number);
}

struct table_cell fill_machine(const struct filler *f, int32_t machine)
{
	return machine < 0 ? CELL_NONE : CELL_TEXT(f->machine[machine]);
}

struct table_cell fill_text(struct filler *f, enum bank bank, const char *raw)
{
	struct escaped *e = &f->escaped[bank][hash_end(hash_number(0, (uintptr_t)raw)) % BANK_TEXTS];
	if (e->raw != raw)
		text_escape(e->text, sizeof e->text, raw);
	e->raw = raw;
	return CELL_TEXT(e->text);
}

/* ---- Target and tables */

struct export_target export_target(size_t i)
{
	const struct sink_kind *k = &sink_kinds[i];
	return (struct export_target){ k->scheme, k->operand, k->description, k->ops != NULL };
}

const struct sink_kind *sink_kind_find(const char *target, struct error *err)
{
	char remedy[sizeof err->remedy] = "";
	const struct sink_kind *k = sink_kinds;
	while (k->scheme && strncmp(target, k->scheme, strlen(k->scheme)) != 0)
		k++;
	if (!k->scheme) {
		/* The text after the colon may contain a password: print only the scheme. */
		for (size_t i = 0, n = 0; sink_kinds[i].scheme && n < sizeof remedy; i++)
			n += (size_t)snprintf(remedy + n, sizeof remedy - n, "%s%s", i ? ", " : "see stealscope-export(1): ",
			                      sink_kinds[i].scheme);
		error_set(err, STATUS_USAGE, remedy, "--to: unknown target '%.*s'", (int)strcspn(target, ":"), target);
		return NULL;
	}
	if (!k->ops) {
		error_set(err, STATUS_USAGE, "install the development files of the library, and build again",
		          "--to %s: stealscope was built without %s",
		          k->scheme, k->library);
		return NULL;
	}
	if (!target[strlen(k->scheme)]) {
		error_set(err, STATUS_USAGE, NULL, "--to %s: the %s is missing", k->scheme, k->operand);
		return NULL;
	}
	return k;
}

/* Parses a list of table names, separated by commas, into TABLE_BIT() of each. */
static int parse_tables(const char *text, uint32_t *bits, struct error *err)
{
	*bits = 0;
	for (const char *at = text; *at || *bits == 0;) {
		size_t n = strcspn(at, ",");
		char *name = mem_printf("%.*s", (int)n, at);
		struct suggestion suggestion = SUGGESTION(name);
		unsigned t = 0;
		while (t < TABLE_COUNT && ((TABLE_LIVE >> t & 1) || strcmp(tables[t].name, name) != 0))
			suggest(&suggestion, tables[t++].name);
		if (t == TABLE_COUNT) {
			char remedy[80] = "stealscope-tables(5) lists them";
			if (suggestion.nearest)
				snprintf(remedy, sizeof remedy, "did you mean %s?", suggestion.nearest);
			error_set(err, STATUS_USAGE, remedy, "--only: unknown table '%s'", name);
			free(name);
			return -1;
		}
		free(name);
		*bits |= TABLE_BIT(t);
		at += n + (at[n] == ',');
	}
	return 0;
}

/* ---- Export */

/* Returns the run's id: a hash of traces and options, > 0 because some databases have no unsigned numbers. */
static int64_t run_number(const struct history *h, struct json_object *doc)
{
	uint64_t n = hash_end(hash_number(provenance_traces_hash(h), hash_text(HASH_BEGIN, json_member_text(doc, "shape"))));
	n &= INT64_MAX;
	return n ? (int64_t)n : 1;
}

static int fill_table(struct filler *f, enum table_code t, struct export_result *out)
{
	f->rows = 0;
	memset(f->escaped, 0, BANKS * sizeof *f->escaped);
	if (f->ops->begin(f->sink, &tables[t], f->err) || fill[t](f) || f->ops->end(f->sink, f->err))
		return -1;
	out->table[out->tables++] = (struct export_table){ tables[t].name, tables[t].description, f->rows };
	return 0;
}

static int fill_all(struct filler *f, uint32_t selected, struct export_result *out)
{
	for (unsigned t = 0; t < TABLE_COUNT; t++)
		if ((selected >> t & 1) && fill_table(f, (enum table_code)t, out))
			return -1;
	return history_damage(f->h, f->err);
}

bool export_takes_spans(const char *target)
{
	for (const struct sink_kind *k = sink_kinds; k->scheme; k++)
		if (strncmp(target, k->scheme, strlen(k->scheme)) == 0)
			return k->write_spans != NULL;
	return false;
}

static int write_all(struct filler *f, const struct sink_kind *k, const struct export_options *o, uint32_t selected,
                     struct export_result *out)
{
	const struct catalog *catalog = f->catalog;
	const struct sink_run run = { f->run, history_begin(f->h), history_end(f->h) };
	const char *target = o->target + strlen(k->scheme);
	char kind[64];
	snprintf(kind, sizeof kind, "output of %s%s", k->scheme, k->operand);
	if (k->is_replaceable && refuse_overwrite(target, k->is_replaceable, kind, f->err))
		return -1;
	f->ops = k->ops;
	f->sink = k->ops->open(target, &run, f->err);
	if (!f->sink)
		return -1;
	f->machine = mem_new(catalog->machines, sizeof *f->machine);
	for (uint32_t i = 0; i < catalog->machines; i++)
		f->machine[i] = text_escape(mem_new(FILL_TEXT, 1), FILL_TEXT, catalog->machine[i].name);
	f->escaped = mem_new(BANKS, sizeof *f->escaped);
	out->run = f->run;
	out->table = mem_new(TABLE_COUNT, sizeof *out->table);
	int rc = fill_all(f, selected & k->ops->tables & ~TABLE_LIVE, out);
	rc = k->ops->close(f->sink, rc, f->err);
	for (uint32_t i = 0; i < catalog->machines; i++)
		free(f->machine[i]);
	free(f->machine);
	free(f->escaped);
	return rc;
}

static int write_spans(struct filler *f, const struct sink_kind *k, const struct export_options *o,
                       struct export_result *out)
{
	const char *target = o->target + strlen(k->scheme);
	if (k->is_replaceable && refuse_overwrite(target, k->is_replaceable, "a file of spans", f->err))
		return -1;
	return k->write_spans(f->catalog, o->spans, f->run, target, out, f->err);
}

int export_history(const struct catalog *catalog, const struct export_options *options, struct export_result *out,
                   struct error *err)
{
	uint32_t selected = TABLE_ALL;
	*out = (struct export_result){ 0 };
	const struct sink_kind *k = sink_kind_find(options->target, err);
	if (!k || (options->only && parse_tables(options->only, &selected, err)))
		return -1;
	struct filler f = { .catalog = catalog, .h = catalog->h, .progress = options->progress, .err = err };
	f.doc = provenance_load(catalog->h, err);
	if (!f.doc)
		return -1;
	f.run = run_number(catalog->h, f.doc);
	out->run = f.run;
	int rc = k->write_spans ? write_spans(&f, k, options, out) : write_all(&f, k, options, selected, out);
	json_object_put(f.doc);
	return rc;
}

void export_result_release(struct export_result *r)
{
	free(r->table);
	*r = (struct export_result){ 0 };
}
