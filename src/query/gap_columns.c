/* Columns of a gap: their table and their values. */
#include "query/gap_columns.h"

#include "query/query.h"

#define FIELD(X, code, name, heading, type, pane_heading, pane_columns, ...) \
	[GAP_COLUMN_##code] = { name, heading, GAP_TYPE_##type, pane_heading, pane_columns },
#define OTHER_FIELD(X, code, name, heading, type, pane_heading, pane_columns) \
	FIELD(X, code, name, heading, type, pane_heading, pane_columns, )
const struct gap_column gap_column[GAP_COLUMN_COUNT] = { GAP_COLUMN_LIST(FIELD, OTHER_FIELD, ) };
#undef FIELD
#undef OTHER_FIELD

static const char *state_name(const struct catalog *catalog, const struct gap *g)
{
	uint32_t attr = g->target.kind == TARGET_CPU ? catalog->cpu[g->target.index].status
	                                               : catalog->thread[g->target.index].status;
	return history_state_name(catalog->h, attr, (unsigned)g->state);
}

struct gap_value gap_value(const struct gap_record *row, enum gap_column_code code, char *buf)
{
	const struct gap *g = row->gap;
	const struct actor *culprit = row->culprit;
	const int64_t length = g->end - g->start + 1;
	switch (code) {
	case GAP_COLUMN_START:
		return (struct gap_value){ .number = g->start };
	case GAP_COLUMN_END:
		return (struct gap_value){ .number = g->end };
	case GAP_COLUMN_DURATION:
		return (struct gap_value){ .number = length };
	case GAP_COLUMN_TARGET:
		return (struct gap_value){ .is_escaped = true,
		                           .text = catalog_target_text(row->catalog, &g->target, buf, ACTOR_TEXT) };
	case GAP_COLUMN_STATE:
		return (struct gap_value){ .text = state_name(row->catalog, g) };
	case GAP_COLUMN_CULPRIT_SHARE:
		return (struct gap_value){ .share = (double)row->culprit_ns / (double)length };
	case GAP_COLUMN_CULPRIT_MACHINE:
		if (culprit->machine < 0)
			break;
		return (struct gap_value){ .text = row->catalog->machine[culprit->machine].name };
	case GAP_COLUMN_CULPRIT_TID:
		return (struct gap_value){ .absent = culprit->tid < 0, .number = culprit->tid };
	case GAP_COLUMN_CULPRIT_NAME:
		return (struct gap_value){ .text = buf ? actor_name_text(culprit, row->culprit_name, buf) : row->culprit_name };
	case GAP_COLUMN_CULPRIT_KIND:
		return (struct gap_value){ .text = flow_kind_name[culprit->kind] };
	case GAP_COLUMN_CULPRIT_NS:
		return (struct gap_value){ .number = row->culprit_ns };
	case GAP_COLUMN_COUNT:
		break;
	}
	return (struct gap_value){ .absent = true };
}
