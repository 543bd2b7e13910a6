/* Gaps, their pieces, and what they come to by thief and second. */
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/map.h"
#include "base/mem.h"
#include "export/fill.h"

#define BUCKET 1000000000  /* ns */

#define FEW 16     /* parties that are found by looking at each */

/* ns by party, in the order in which the parties come. */
struct party_sums {
	struct map by_hash;     /* probed upwards -> index; empty while there are few */
	struct tally_entry {
		struct party who;
		int32_t tid;        /* -1: none, or several */
		const char *name;
		int64_t ns;
	} *entry;
	size_t len, cap;
};

struct gaps {
	struct filler *f;
	struct party_sums tally;
	int64_t bucket;              /* steal: first ns of the second that the tally is of */
	struct subject victim;       /* likewise; has_victim: there is one */
	bool has_victim, of_machine;
	const char *victim_name;
};

static void tally_clear(struct party_sums *t)
{
	if (t->len > FEW)
		map_release(&t->by_hash);
	t->len = 0;
}

static void tally_release(struct party_sums *t)
{
	tally_clear(t);
	free(t->entry);
}

/* Where the party is in the map, or, new there, shall be. */
static uint64_t *tally_slot(struct party_sums *t, const struct party *who, bool *is_new)
{
	uint64_t hash = hash_number((uint64_t)(uint32_t)who->system << 32 | (uint32_t)who->tid, who->name), *at;
	hash = hash_end(hash_number(hash, who->kind));
	while (at = map_put(&t->by_hash, hash, is_new), !*is_new && !party_same(&t->entry[*at].who, who))
		hash++;
	return at;
}

static size_t tally_find(struct party_sums *t, const struct party *who)
{
	bool is_new;
	if (t->len <= FEW) {
		size_t i = 0;
		while (i < t->len && !party_same(&t->entry[i].who, who))
			i++;
		return i;
	}
	uint64_t *at = tally_slot(t, who, &is_new);
	if (is_new)
		*at = t->len;
	return (size_t)*at;
}

/* who may leave out which thread it is, whose TID is tid. */
static void tally_add(struct party_sums *t, const struct party *who, int32_t tid, const char *name, int64_t ns)
{
	bool is_new;
	size_t at = tally_find(t, who);
	if (at == t->len)
		*ARRAY_PUSH(t->entry, t->len, t->cap) = (struct tally_entry){ *who, tid, name, 0 };
	if (t->entry[at].tid != tid)
		t->entry[at].tid = -1;
	t->entry[at].ns += ns;
	for (size_t i = 0; at == FEW && i < t->len; i++)  /* they are no longer few */
		*tally_slot(t, &t->entry[i].who, &is_new) = i;
}

static struct table_cell victim_cpu(const struct filler *f, const struct subject *s)
{
	return s->kind == SUBJECT_CPU ? CELL_INT(f->topo->cpu[s->index].number) : CELL_NONE;
}

static struct table_cell victim_tid(const struct filler *f, const struct subject *s)
{
	return s->kind == SUBJECT_THREAD ? CELL_INT(f->topo->thread[s->index].tid) : CELL_NONE;
}

static struct table_cell victim_machine(const struct filler *f, const struct subject *s)
{
	return CELL_TEXT(f->machine[s->kind == SUBJECT_CPU ? f->topo->cpu[s->index].machine
	                                                   : f->topo->thread[s->index].machine]);
}

static struct table_cell victim_name(struct filler *f, const char *raw)
{
	return raw ? fill_text(f, BANK_VICTIM, raw) : CELL_NONE;
}

/* ---- gap */

/* As struct thief has it; a machine has no name. */
static struct tally_entry thief_of(const struct filler *f, const struct gap *gap, const struct party_sums *tally)
{
	struct thief thief;
	if (tally->len == 1)
		return tally->entry[0];
	struct flow_entry *entry = mem_new(tally->len, sizeof *entry);
	for (size_t i = 0; i < tally->len; i++)
		entry[i] = (struct flow_entry){ .who = tally->entry[i].who, .lost = tally->entry[i].ns };
	flow_thief(f->topo, &gap->subject, entry, tally->len, &thief);
	free(entry);
	for (size_t i = 0; i < tally->len; i++)
		if (thief.parties == 1 && party_same(&tally->entry[i].who, &thief.who))
			return tally->entry[i];
	return (struct tally_entry){ .who = thief.who, .tid = -1, .name = "", .ns = thief.ns };
}

static const char *state_name(const struct filler *f, const struct gap *g)
{
	uint32_t attr = g->subject.kind == SUBJECT_CPU ? f->topo->cpu[g->subject.index].status
	                                               : f->topo->thread[g->subject.index].status;
	return history_state_name(f->h, attr, (unsigned)g->state);
}

static int gap_row(struct gaps *g, const struct gap_piece *p)
{
	struct filler *f = g->f;
	const struct gap *gap = p->gap;
	const struct tally_entry thief = thief_of(f, gap, &g->tally);
	return fill_row(f, (struct table_cell[GAP_FIELD_COUNT]){
		[COL_GAP_MACHINE] = victim_machine(f, &gap->subject), [COL_GAP_CPU] = victim_cpu(f, &gap->subject),
		[COL_GAP_TID] = victim_tid(f, &gap->subject), [COL_GAP_NAME] = victim_name(f, p->victim),
		[COL_GAP_OF_MACHINE] = CELL_INT(p->of_machine), [COL_GAP_TS] = CELL_INT(gap->start),
		[COL_GAP_DUR] = CELL_INT(gap->end - gap->start + 1), [COL_GAP_STATE] = fill_text(f, BANK_STATE, state_name(f, gap)),
		[COL_GAP_THIEF_MACHINE] = fill_machine(f, thief.who.system), [COL_GAP_THIEF_TID] = fill_number(thief.tid),
		[COL_GAP_THIEF_NAME] = fill_text(f, BANK_THIEF, thief.name),
		[COL_GAP_THIEF_KIND] = CELL_TEXT(flow_kind_name[thief.who.kind]),
		[COL_GAP_THIEF_NS] = CELL_INT(thief.ns) });
}

static int add_to_gap(void *arg, const struct gap_piece *p)
{
	struct gaps *g = arg;
	if (!p)
		return 0;
	tally_add(&g->tally, &p->who, p->who.tid, p->name, p->end - p->start + 1);
	if (p->end < p->gap->end)
		return 0;
	int rc = gap_row(g, p);
	tally_clear(&g->tally);
	return rc;
}

/* ---- flow */

static int flow_row(void *arg, const struct gap_piece *p)
{
	struct gaps *g = arg;
	if (!p)
		return 0;
	const struct subject *s = &p->gap->subject;
	return fill_row(g->f, (struct table_cell[FLOW_FIELD_COUNT]){
		[COL_FLOW_MACHINE] = victim_machine(g->f, s), [COL_FLOW_CPU] = victim_cpu(g->f, s),
		[COL_FLOW_TID] = victim_tid(g->f, s), [COL_FLOW_TS] = CELL_INT(p->start),
		[COL_FLOW_DUR] = CELL_INT(p->end - p->start + 1), [COL_FLOW_KIND] = CELL_TEXT(flow_kind_name[p->who.kind]),
		[COL_FLOW_THIEF_MACHINE] = fill_machine(g->f, p->who.system), [COL_FLOW_THIEF_TID] = fill_number(p->who.tid),
		[COL_FLOW_THIEF_NAME] = fill_text(g->f, BANK_THIEF, p->name),
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
			[COL_STEAL_KIND] = CELL_TEXT(flow_kind_name[e->who.kind]),
			[COL_STEAL_THIEF_MACHINE] = fill_machine(f, e->who.system), [COL_STEAL_THIEF_TID] = fill_number(e->tid),
			[COL_STEAL_THIEF_NAME] = fill_text(f, BANK_THIEF, e->name),
			[COL_STEAL_NS] = CELL_INT(e->ns) }))
			return -1;
	}
	tally_clear(&g->tally);
	return 0;
}

static int64_t bucket_of(int64_t t)
{
	return t - (t % BUCKET + BUCKET) % BUCKET;
}

/* Cut where a second ends. */
static int add_to_steal(void *arg, const struct gap_piece *p)
{
	struct gaps *g = arg;
	if (!p)
		return steal_rows(g);
	const struct subject *s = &p->gap->subject;
	for (int64_t from = p->start; from <= p->end;) {
		int64_t bucket = bucket_of(from), next = bucket + BUCKET;
		int64_t to = next - 1 < p->end ? next - 1 : p->end;
		bool same = g->has_victim && g->victim.kind == s->kind && g->victim.index == s->index && g->bucket == bucket;
		if (!same && steal_rows(g))
			return -1;
		g->victim = *s;
		g->victim_name = p->victim;
		g->of_machine = p->of_machine;
		g->has_victim = true;
		g->bucket = bucket;
		tally_add(&g->tally, &p->who, p->who.tid, p->name, to - from + 1);
		from = to + 1;
	}
	return 0;
}

/* ---- taken: threads of one name are one thief, since hosts may run thousands of those a second */

static int taken_rows(struct gaps *g)
{
	struct filler *f = g->f;
	for (size_t i = 0; i < g->tally.len; i++) {
		const struct tally_entry *e = &g->tally.entry[i];
		if (fill_row(f, (struct table_cell[TAKEN_FIELD_COUNT]){
			[COL_TAKEN_MACHINE] = victim_machine(f, &g->victim), [COL_TAKEN_KIND] = CELL_TEXT(flow_kind_name[e->who.kind]),
			[COL_TAKEN_THIEF_MACHINE] = fill_machine(f, e->who.system), [COL_TAKEN_THIEF_TID] = fill_number(e->tid),
			[COL_TAKEN_THIEF_NAME] = fill_text(f, BANK_THIEF, e->name), [COL_TAKEN_NS] = CELL_INT(e->ns) }))
			return -1;
	}
	tally_clear(&g->tally);
	return 0;
}

static int add_to_taken(void *arg, const struct gap_piece *p)
{
	struct gaps *g = arg;
	if (!p || (g->has_victim && subject_machine(g->f->topo, &g->victim) != subject_machine(g->f->topo, &p->gap->subject)))
		if (taken_rows(g))
			return -1;
	if (!p)
		return 0;
	g->victim = p->gap->subject;
	g->has_victim = true;
	struct party named = p->who;
	named.tid = -1;
	if (p->of_machine)
		tally_add(&g->tally, &named, p->who.tid, p->name, p->end - p->start + 1);
	return 0;
}

/* ---- All of them */

static int each(struct filler *f, int (*fn)(void *, const struct gap_piece *))
{
	struct gaps g = { .f = f };
	int rc = gap_each_piece(f->topo, history_begin(f->h), history_end(f->h), fn, &g, &f->progress, f->err);
	tally_release(&g.tally);
	return rc;
}

int fill_gaps(struct filler *f) { return each(f, add_to_gap); }
int fill_flow(struct filler *f) { return each(f, flow_row); }
int fill_steal(struct filler *f) { return each(f, add_to_steal); }
int fill_taken(struct filler *f) { return each(f, add_to_taken); }
