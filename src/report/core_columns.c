#include "report/core_columns.h"

/* Facts that a column needs. */
enum core_fact { NEEDS_CORES, NEEDS_SIBLINGS, NEEDS_FREQUENCIES, NEEDS_NODES, NEEDS_COUNTERS, NEEDS_COUNTED_SIBLINGS };

enum core_value { ALONE, SHARED, SHARED_SHARE, SHARER, SHARER_NS, SLOW, SLOW_SHARE, REMOTE, REMOTE_SHARE, MOVES, LLC_MOVES,
                  NODE_MOVES, INSTRUCTIONS, CYCLES, COUNTED, IPC, IPC_ALONE, IPC_SHARED };

static const struct { enum core_value value; enum core_fact fact; struct column column; } columns[CORE_COLUMNS] = {
	{ ALONE, NEEDS_SIBLINGS, { "alone_ns", NULL, COL_DURATION } },
	{ SHARED, NEEDS_SIBLINGS, { "shared_ns", NULL, COL_DURATION } },
	{ SHARED_SHARE, NEEDS_SIBLINGS, { "shared_share", "shared%", COL_SHARE } },
	{ SHARER, NEEDS_SIBLINGS, { "top_sharer", "top sharer", COL_TEXT } },
	{ SHARER_NS, NEEDS_SIBLINGS, { "top_sharer_ns", NULL, COL_DURATION } },
	{ SLOW, NEEDS_FREQUENCIES, { "slow_ns", NULL, COL_DURATION } },
	{ SLOW_SHARE, NEEDS_FREQUENCIES, { "slow_share", "slow%", COL_SHARE } },
	{ REMOTE, NEEDS_NODES, { "remote_ns", NULL, COL_DURATION } },
	{ REMOTE_SHARE, NEEDS_NODES, { "remote_share", "remote%", COL_SHARE } },
	{ MOVES, NEEDS_CORES, { "moves", NULL, COL_INT } },
	{ LLC_MOVES, NEEDS_CORES, { "llc_moves", NULL, COL_INT } },
	{ NODE_MOVES, NEEDS_CORES, { "node_moves", NULL, COL_INT } },
	{ INSTRUCTIONS, NEEDS_COUNTERS, { "instructions", NULL, COL_INT } },
	{ CYCLES, NEEDS_COUNTERS, { "cycles", NULL, COL_INT } },
	{ COUNTED, NEEDS_COUNTERS, { "counted_ns", NULL, COL_DURATION } },
	{ IPC, NEEDS_COUNTERS, { "ipc", "IPC", COL_REAL } },
	{ IPC_ALONE, NEEDS_COUNTED_SIBLINGS, { "ipc_alone", NULL, COL_REAL } },
	{ IPC_SHARED, NEEDS_COUNTED_SIBLINGS, { "ipc_shared", NULL, COL_REAL } },
};

static bool is_known(const struct core_share *s, enum core_fact fact)
{
	switch (fact) {
	case NEEDS_CORES: return s->cores;
	case NEEDS_SIBLINGS: return s->siblings;
	case NEEDS_FREQUENCIES: return s->frequencies;
	case NEEDS_NODES: return s->nodes;
	case NEEDS_COUNTERS: return s->counters;
	case NEEDS_COUNTED_SIBLINGS: break;
	}
	return s->counters && s->siblings;
}

size_t core_columns(const struct core_share *share, struct column out[CORE_COLUMNS])
{
	size_t n = 0;
	for (size_t i = 0; share && i < CORE_COLUMNS; i++)
		if (is_known(share, columns[i].fact))
			out[n++] = columns[i].column;
	return n;
}

struct value core_ipc_value(const struct core_counts *counts)
{
	return counts->cycles > 0 ? VAL_REAL(core_ipc(counts)) : VAL_NONE;
}

/* Returns the share of the running time; no value if the target never ran. */
static struct value share_of(int64_t part, int64_t ran)
{
	return ran > 0 ? VAL_REAL((double)part / (double)ran) : VAL_NONE;
}

static struct value value_of(enum core_value value, const struct core_row *row, const struct core_sharer *sharer,
                             const char *name)
{
	const struct core_time *t = &row->time;
	switch (value) {
	case ALONE: return VAL_INT(t->alone);
	case SHARED: return VAL_INT(t->shared);
	case SHARED_SHARE: return share_of(t->shared, t->ran);
	case SHARER: return sharer ? VAL_SHOWN(name) : VAL_NONE;
	case SHARER_NS: return sharer ? VAL_INT(sharer->ns) : VAL_NONE;
	case SLOW: return t->clocked ? VAL_INT(t->slow) : VAL_NONE;
	case SLOW_SHARE: return share_of(t->slow, t->clocked);
	case REMOTE: return t->placed ? VAL_INT(t->remote) : VAL_NONE;
	case REMOTE_SHARE: return share_of(t->remote, t->placed);
	case MOVES: return VAL_INT(t->moves);
	case LLC_MOVES: return VAL_INT(t->llc_moves);
	case NODE_MOVES: return VAL_INT(t->node_moves);
	case INSTRUCTIONS: return row->counts.ns ? VAL_INT(row->counts.instructions) : VAL_NONE;
	case CYCLES: return row->counts.ns ? VAL_INT(row->counts.cycles) : VAL_NONE;
	case COUNTED: return VAL_INT(row->counts.ns);
	case IPC: return core_ipc_value(&row->counts);
	case IPC_ALONE: return core_ipc_value(&row->alone);
	case IPC_SHARED: break;
	}
	return core_ipc_value(&row->shared);
}

void core_values(const struct catalog *catalog, const struct core_share *share, size_t row, int format,
                 char name[ACTOR_TEXT], struct value out[CORE_COLUMNS])
{
	const struct core_row *r = &share->row[row];
	const struct core_sharer *sharer = r->sharers ? &share->sharer[r->sharer] : NULL;
	size_t n = 0;
	name[0] = '\0';
	if (sharer && format == FORMAT_TEXT)
		actor_text(catalog, &sharer->actor, share->name[sharer->actor.name], ACTOR_SHOWN, NULL, name, ACTOR_TEXT);
	else if (sharer)
		actor_text(catalog, &sharer->actor, share->name[sharer->actor.name], ACTOR_PLAIN, NULL, name, ACTOR_TEXT);
	for (size_t i = 0; i < CORE_COLUMNS; i++)
		if (is_known(share, columns[i].fact))
			out[n++] = value_of(columns[i].value, r, sharer, name);
}
