/* Fills the tables gap, flow (the parts of gaps), steal (sums by culprit and second) and steal_total. */
#include "base/base.h"
#include "base/hash.h"
#include "export/fill.h"

#define LINEAR_MAX 16     /* actors up to which a linear search is used */

/* Sums of lost time by actor, in order of first appearance. */
struct actor_sums {
	struct map by_hash;     /* hash of an actor -> index in `entry`, with linear probing; empty up to LINEAR_MAX actors */
	struct tally_entry {
		struct actor actor;
		int32_t tid;        /* the culprit's TID; -1: none, or several */
		const char *name;
		int64_t ns;
	} *entry;
	size_t len, cap;
};

struct gaps {
	struct filler *f;
	struct actor_sums tally;
	int64_t bucket;             /* table steal: start of the second that is summed, ns */
	struct target victim;       /* victim of the current sums; valid if has_victim */
	bool has_victim, of_machine;
	const char *victim_name;
};

static void tally_clear(struct actor_sums *t)
{
	if (t->len > LINEAR_MAX)
		map_release(&t->by_hash);
	t->len = 0;
}

static void tally_release(struct actor_sums *t)
{
	tally_clear(t);
	free(t->entry);
}

/* Returns the slot of an actor in the map, which may be new. */
static uint64_t *tally_slot(struct actor_sums *t, const struct actor *actor, bool *is_new)
{
	uint64_t hash = hash_number((uint64_t)(uint32_t)actor->machine << 32 | (uint32_t)actor->tid, actor->name), *at;
	hash = hash_end(hash_number(hash, actor->kind));
	while (at = map_put(&t->by_hash, hash, is_new), !*is_new && !actor_same(&t->entry[*at].actor, actor))
		hash++;
	return at;
}

static size_t tally_find(struct actor_sums *t, const struct actor *actor)
{
	bool is_new;
	if (t->len <= LINEAR_MAX) {
		size_t i = 0;
		while (i < t->len && !actor_same(&t->entry[i].actor, actor))
			i++;
		return i;
	}
	uint64_t *at = tally_slot(t, actor, &is_new);
	if (is_new)
		*at = t->len;
	return (size_t)*at;
}

/* Adds ns to the sum of an actor. tid: TID of the culprit, also if `actor` combines several threads. */
static void tally_add(struct actor_sums *t, const struct actor *actor, int32_t tid, const char *name, int64_t ns)
{
	bool is_new;
	size_t at = tally_find(t, actor);
	if (at == t->len)
		*ARRAY_PUSH(t->entry, t->len, t->cap) = (struct tally_entry){ *actor, tid, name, 0 };
	if (t->entry[at].tid != tid)
		t->entry[at].tid = -1;
	t->entry[at].ns += ns;
	for (size_t i = 0; at == LINEAR_MAX && i < t->len; i++)  /* more than LINEAR_MAX actors: add all to the map */
		*tally_slot(t, &t->entry[i].actor, &is_new) = i;
}

static struct table_cell victim_cpu(const struct filler *f, const struct target *target)
{
	return target->kind == TARGET_CPU ? CELL_INT(f->catalog->cpu[target->index].number) : CELL_NONE;
}

static struct table_cell victim_tid(const struct filler *f, const struct target *target)
{
	return target->kind == TARGET_THREAD ? CELL_INT(f->catalog->thread[target->index].tid) : CELL_NONE;
}

static struct table_cell victim_machine(const struct filler *f, const struct target *target)
{
	return CELL_TEXT(f->machine[target->kind == TARGET_CPU ? f->catalog->cpu[target->index].machine
	                                                   : f->catalog->thread[target->index].machine]);
}

static struct table_cell victim_name(struct filler *f, const char *raw)
{
	return raw ? fill_text(f, BANK_VICTIM, raw) : CELL_NONE;
}

/* ---- gap */

/* Returns a gap's top culprit, as flow_top_culprit() determines it; its name is "" if it combines several actors. */
static struct tally_entry top_culprit(const struct filler *f, const struct gap *gap, const struct actor_sums *tally)
{
	struct top_culprit culprit;
	if (tally->len == 1)
		return tally->entry[0];
	struct flow_entry *entry = mem_new(tally->len, sizeof *entry);
	for (size_t i = 0; i < tally->len; i++)
		entry[i] = (struct flow_entry){ .actor = tally->entry[i].actor, .lost = tally->entry[i].ns };
	flow_top_culprit(f->catalog, &gap->target, entry, tally->len, &culprit);
	free(entry);
	for (size_t i = 0; i < tally->len; i++)
		if (culprit.actors == 1 && actor_same(&tally->entry[i].actor, &culprit.actor))
			return tally->entry[i];
	return (struct tally_entry){ .actor = culprit.actor, .tid = -1, .name = "", .ns = culprit.ns };
}

static int gap_row(struct gaps *g, const struct gap_interval *p)
{
	struct filler *f = g->f;
	const struct gap *gap = p->gap;
	const struct tally_entry culprit = top_culprit(f, gap, &g->tally);
	const int32_t machine = culprit.actor.machine;
	return fill_row(f, (struct table_cell[GAP_FIELD_COUNT]){
		[COL_GAP_MACHINE] = victim_machine(f, &gap->target), [COL_GAP_CPU] = victim_cpu(f, &gap->target),
		[COL_GAP_TID] = victim_tid(f, &gap->target), [COL_GAP_NAME] = victim_name(f, p->victim),
		[COL_GAP_OF_MACHINE] = CELL_INT(p->of_machine), [COL_GAP_START] = CELL_INT(gap->start),
		[COL_GAP_DURATION] = CELL_INT(gap->end - gap->start + 1),
		[COL_GAP_STATE] = fill_text(f, BANK_STATE, target_state_name(f->catalog, &gap->target, gap->state)),
		[COL_GAP_CULPRIT_MACHINE] = machine < 0 ? CELL_NONE
		                            : fill_text(f, BANK_MACHINE, f->catalog->machine[machine].name),
		[COL_GAP_CULPRIT_TID] = culprit.actor.tid < 0 ? CELL_NONE : CELL_INT(culprit.actor.tid),
		[COL_GAP_CULPRIT_NAME] = fill_text(f, BANK_CULPRIT, culprit.name),
		[COL_GAP_CULPRIT_KIND] = fill_text(f, BANK_KIND, flow_kind_name[culprit.actor.kind]),
		[COL_GAP_CULPRIT_NS] = CELL_INT(culprit.ns) });
}

static int add_to_gap(void *arg, const struct gap_interval *p)
{
	struct gaps *g = arg;
	if (!p)
		return 0;
	tally_add(&g->tally, &p->actor, p->actor.tid, p->name, p->end - p->start + 1);
	if (p->end < p->gap->end)
		return 0;
	int rc = gap_row(g, p);
	tally_clear(&g->tally);
	return rc;
}

/* ---- flow */

static int flow_row(void *arg, const struct gap_interval *p)
{
	struct gaps *g = arg;
	if (!p)
		return 0;
	const struct target *s = &p->gap->target;
	return fill_row(g->f, (struct table_cell[FLOW_FIELD_COUNT]){
		[COL_FLOW_MACHINE] = victim_machine(g->f, s), [COL_FLOW_CPU] = victim_cpu(g->f, s),
		[COL_FLOW_TID] = victim_tid(g->f, s), [COL_FLOW_TS] = CELL_INT(p->start),
		[COL_FLOW_DUR] = CELL_INT(p->end - p->start + 1), [COL_FLOW_KIND] = CELL_TEXT(flow_kind_name[p->actor.kind]),
		[COL_FLOW_CULPRIT_MACHINE] = fill_machine(g->f, p->actor.machine),
		[COL_FLOW_CULPRIT_TID] = fill_number(p->actor.tid),
		[COL_FLOW_CULPRIT_NAME] = fill_text(g->f, BANK_CULPRIT, p->name),
		[COL_FLOW_PCPU] = fill_number(p->pcpu) });
}

/* ---- steal */

static int steal_rows(struct gaps *g)
{
	struct filler *f = g->f;
	for (size_t i = 0; i < g->tally.len; i++) {
		const struct tally_entry *e = &g->tally.entry[i];
		if (fill_row(f, (struct table_cell[STEAL_FIELD_COUNT]){
			[COL_STEAL_BUCKET] = CELL_INT(g->bucket), [COL_STEAL_MACHINE] = victim_machine(f, &g->victim),
			[COL_STEAL_CPU] = victim_cpu(f, &g->victim), [COL_STEAL_TID] = victim_tid(f, &g->victim),
			[COL_STEAL_NAME] = victim_name(f, g->victim_name), [COL_STEAL_OF_MACHINE] = CELL_INT(g->of_machine),
			[COL_STEAL_KIND] = CELL_TEXT(flow_kind_name[e->actor.kind]),
			[COL_STEAL_CULPRIT_MACHINE] = fill_machine(f, e->actor.machine), [COL_STEAL_CULPRIT_TID] = fill_number(e->tid),
			[COL_STEAL_CULPRIT_NAME] = fill_text(f, BANK_CULPRIT, e->name),
			[COL_STEAL_NS] = CELL_INT(e->ns) }))
			return -1;
	}
	tally_clear(&g->tally);
	return 0;
}

static int64_t bucket_start(int64_t t)
{
	return t - (t % STEAL_BUCKET_NS + STEAL_BUCKET_NS) % STEAL_BUCKET_NS;
}

/* Adds an interval to the sums of its victim, split at full seconds. p NULL: end of all gaps. */
static int add_to_steal(void *arg, const struct gap_interval *p)
{
	struct gaps *g = arg;
	if (!p)
		return steal_rows(g);
	const struct target *s = &p->gap->target;
	for (int64_t from = p->start; from <= p->end;) {
		int64_t bucket = bucket_start(from), next = bucket + STEAL_BUCKET_NS;
		int64_t to = next - 1 < p->end ? next - 1 : p->end;
		bool same = g->has_victim && g->victim.kind == s->kind && g->victim.index == s->index && g->bucket == bucket;
		if (!same && steal_rows(g))
			return -1;
		g->victim = *s;
		g->victim_name = p->victim;
		g->of_machine = p->of_machine;
		g->has_victim = true;
		g->bucket = bucket;
		tally_add(&g->tally, &p->actor, p->actor.tid, p->name, to - from + 1);
		from = to + 1;
	}
	return 0;
}

/* ---- steal_total: threads with equal names are one culprit, since hosts may start thousands of threads per second */

static int steal_total_rows(struct gaps *g)
{
	struct filler *f = g->f;
	for (size_t i = 0; i < g->tally.len; i++) {
		const struct tally_entry *e = &g->tally.entry[i];
		if (fill_row(f, (struct table_cell[STEAL_TOTAL_FIELD_COUNT]){
			[COL_STEAL_TOTAL_MACHINE] = victim_machine(f, &g->victim),
			[COL_STEAL_TOTAL_KIND] = CELL_TEXT(flow_kind_name[e->actor.kind]),
			[COL_STEAL_TOTAL_CULPRIT_MACHINE] = fill_machine(f, e->actor.machine),
			[COL_STEAL_TOTAL_CULPRIT_TID] = fill_number(e->tid),
			[COL_STEAL_TOTAL_CULPRIT_NAME] = fill_text(f, BANK_CULPRIT, e->name), [COL_STEAL_TOTAL_NS] = CELL_INT(e->ns) }))
			return -1;
	}
	tally_clear(&g->tally);
	return 0;
}

static int add_to_steal_total(void *arg, const struct gap_interval *p)
{
	struct gaps *g = arg;
	if (!p ||
	    (g->has_victim && target_machine(g->f->catalog, &g->victim) != target_machine(g->f->catalog, &p->gap->target)))
		if (steal_total_rows(g))
			return -1;
	if (!p)
		return 0;
	g->victim = p->gap->target;
	g->has_victim = true;
	struct actor named = p->actor;
	named.tid = -1;
	if (p->of_machine)
		tally_add(&g->tally, &named, p->actor.tid, p->name, p->end - p->start + 1);
	return 0;
}

/* ---- Public functions */

static int for_each_gap(struct filler *f, int (*fn)(void *, const struct gap_interval *))
{
	struct gaps g = { .f = f };
	int rc = gap_each_interval(f->catalog, history_begin(f->h), history_end(f->h), fn, &g, &f->progress, f->err);
	tally_release(&g.tally);
	return rc;
}

int fill_gaps(struct filler *f) { return for_each_gap(f, add_to_gap); }
int fill_flow(struct filler *f) { return for_each_gap(f, flow_row); }
int fill_steal(struct filler *f) { return for_each_gap(f, add_to_steal); }
int fill_steal_total(struct filler *f) { return for_each_gap(f, add_to_steal_total); }
