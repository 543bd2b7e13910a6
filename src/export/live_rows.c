/* Writes the rows of the monitor to a sink. */
#include "base/base.h"
#include "base/hash.h"
#include "export/export.h"
#include "export/sink.h"

int export_live_check(const char *target, struct error *err)
{
	const struct sink_kind *k = sink_kind_find(target, err);
	if (!k)
		return -1;
	if ((k->ops->tables & TABLE_LIVE) != TABLE_LIVE)
		return error_set(err, STATUS_USAGE, "for example sqlite:FILE or postgresql://...", "--to %s: not for the monitor",
		                 k->scheme);
	return 0;
}

static int write_states(const struct export_live *rows, int64_t run, const char *host, const struct sink_ops *ops,
                        struct sink *sink, struct error *err)
{
	char machine[CELL_TEXT_MAX];
	if (ops->begin(sink, &tables[TABLE_LIVE_STATE], err))
		return -1;
	for (size_t i = 0; i < rows->states; i++) {
		const struct export_live_state *s = &rows->state[i];
		struct table_cell cell[LIVE_STATE_FIELD_COUNT] = {
			[COL_LIVE_STATE_RUN] = CELL_INT(run), [COL_LIVE_STATE_HOST] = CELL_TEXT(host),
			[COL_LIVE_STATE_TS] = CELL_INT(s->ts), [COL_LIVE_STATE_PERIOD] = CELL_INT(s->period),
			[COL_LIVE_STATE_MACHINE] = CELL_TEXT(text_sanitize(machine, sizeof machine, s->machine)),
			[COL_LIVE_STATE_CPU] = s->cpu < 0 ? CELL_NONE : CELL_INT(s->cpu), [COL_LIVE_STATE_TID] = CELL_INT(s->tid),
			[COL_LIVE_STATE_RAN] = CELL_INT(s->ran), [COL_LIVE_STATE_STOLEN] = CELL_INT(s->stolen),
			[COL_LIVE_STATE_THROTTLED] = CELL_INT(s->throttled), [COL_LIVE_STATE_BLOCKED] = CELL_INT(s->blocked),
			[COL_LIVE_STATE_LONGEST] = CELL_INT(s->longest),
		};
		if (ops->row(sink, cell, err))
			return -1;
	}
	return ops->end(sink, err);
}

static int write_steals(const struct export_live *rows, int64_t run, const char *host, const struct sink_ops *ops,
                        struct sink *sink, struct error *err)
{
	char machine[CELL_TEXT_MAX], culprit[CELL_TEXT_MAX];
	if (ops->begin(sink, &tables[TABLE_LIVE_STEAL], err))
		return -1;
	for (size_t i = 0; i < rows->steals; i++) {
		const struct export_live_steal *s = &rows->steal[i];
		struct table_cell cell[LIVE_STEAL_FIELD_COUNT] = {
			[COL_LIVE_STEAL_RUN] = CELL_INT(run), [COL_LIVE_STEAL_HOST] = CELL_TEXT(host),
			[COL_LIVE_STEAL_TS] = CELL_INT(s->ts), [COL_LIVE_STEAL_PERIOD] = CELL_INT(s->period),
			[COL_LIVE_STEAL_MACHINE] = CELL_TEXT(text_sanitize(machine, sizeof machine, s->machine)),
			[COL_LIVE_STEAL_CPU] = s->cpu < 0 ? CELL_NONE : CELL_INT(s->cpu), [COL_LIVE_STEAL_KIND] = CELL_TEXT(s->kind),
			[COL_LIVE_STEAL_CULPRIT] = CELL_TEXT(text_sanitize(culprit, sizeof culprit, s->culprit)),
			[COL_LIVE_STEAL_NS] = CELL_INT(s->ns),
		};
		if (ops->row(sink, cell, err))
			return -1;
	}
	return ops->end(sink, err);
}

int export_live(const struct export_live *rows, const char *target, struct error *err)
{
	const struct sink_kind *k = sink_kind_find(target, err);
	if (!k || !rows->states)
		return k ? 0 : -1;
	const int64_t begin = rows->state[0].ts;
	const struct export_live_state *last = &rows->state[rows->states - 1];
	char host[CELL_TEXT_MAX];
	const uint64_t from = hash_number(hash_text(HASH_BEGIN, rows->host), (uint64_t)begin);
	const uint64_t id = hash_end(hash_number(from, (uint64_t)last->ts));
	const struct sink_run run = { (int64_t)(id & INT64_MAX) | 1, begin, last->ts + last->period };
	text_escape(host, sizeof host, rows->host);
	struct sink *sink = k->ops->open(target + strlen(k->scheme), &run, err);
	if (!sink)
		return -1;
	int rc = write_states(rows, run.id, host, k->ops, sink, err);
	if (rc == 0)
		rc = write_steals(rows, run.id, host, k->ops, sink, err);
	return k->ops->close(sink, rc, err);
}
