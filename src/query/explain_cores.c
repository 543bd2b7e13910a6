/* Sentences on the running time on a busy core, below the base frequency, or far from the memory. */
#include "base/base.h"
#include "query/explain.h"

#define SHARERS_NAMED 3
#define MOVES_PER_SECOND 10  /* rate of moves from which they are worth a sentence */
#define IS_LARGE(part, whole) ((part) > 0 && (part) >= (whole) / 20)  /* smaller parts are not worth a sentence */

/* Writes "2.10 s (53 %)": a part of the running time. */
static const char *part_of_ran(int64_t ns, const struct core_time *t, char buf[64])
{
	char d[TIME_TEXT];
	snprintf(buf, 64, "%s (%.0f %%)", time_duration(d, ns), 100.0 * (double)ns / (double)t->ran);
	return buf;
}

static void write_sharers(struct explanation *s, const struct core_share *share, const struct core_row *row)
{
	const struct core_sharer *sharer = &share->sharer[row->sharer];
	const size_t n = row->sharers < SHARERS_NAMED ? row->sharers : SHARERS_NAMED;
	char ran[TIME_TEXT], a[64], d[TIME_TEXT], name[NAME_TEXT];
	fprintf(s->to, "It ran %s, of that %s with ", time_duration(ran, row->time.ran),
	        part_of_ran(row->time.shared, &row->time, a));
	if (row->sharers == 1) {
		fprintf(s->to, "%s on the same core.\n",
		        actor_text(s->catalog, &sharer->actor, share->name[sharer->actor.name],
		                   ACTOR_SENTENCE, NULL, name, sizeof name));
		return;
	}
	fputs("others on the same core: ", s->to);
	for (size_t i = 0; i < n; i++)
		fprintf(s->to, "%s%s %s", i ? ", " : "",
		        actor_text(s->catalog, &sharer[i].actor, share->name[sharer[i].actor.name],
		                   ACTOR_SENTENCE, NULL, name, sizeof name),
		        time_duration(d, sharer[i].ns));
	if (row->sharers > n)
		fprintf(s->to, ", %zu more", row->sharers - n);
	fputs(".\n", s->to);
}

/* Writes the instructions per cycle, alone on the core and beside the sharers. */
static void write_ipc(struct explanation *s, const struct core_share *share, const struct core_row *row)
{
	const bool alone = share->siblings && IS_LARGE(row->alone.ns, row->time.ran);
	size_t n = 0;
	char name[NAME_TEXT];
	if (!IS_LARGE(row->counts.ns, row->time.ran))
		return;
	fprintf(s->to, "It executed %.2f instructions per cycle", core_ipc(&row->counts));
	if (alone)
		fprintf(s->to, ": %.2f alone on its core", core_ipc(&row->alone));
	for (size_t i = row->sharer; i < row->sharer + row->sharers && n < SHARERS_NAMED; i++) {
		const struct core_sharer *sharer = &share->sharer[i];
		if (!IS_LARGE(sharer->counts.ns, row->time.ran))
			continue;
		fprintf(s->to, "%s%.2f beside %s", alone || n ? ", " : ": ", core_ipc(&sharer->counts),
		        actor_text(s->catalog, &sharer->actor, share->name[sharer->actor.name],
		                   ACTOR_SENTENCE, NULL, name, sizeof name));
		n++;
	}
	fputs(".\n", s->to);
}

static void write_moves(struct explanation *s, const struct core_time *t)
{
	char ran[TIME_TEXT];
	fprintf(s->to, "It moved %" PRId64 " times to another CPU of the host in %s of running time", t->moves,
	        time_duration(ran, t->ran));
	if (t->llc_moves)
		fprintf(s->to, ", %" PRId64 " times to another last-level cache", t->llc_moves);
	if (t->node_moves)
		fprintf(s->to, ", %" PRId64 " times to another NUMA node", t->node_moves);
	fputs(".\n", s->to);
}

int explain_cores(struct explanation *s, struct error *err)
{
	struct core_share share;
	char a[64];
	if (!s->catalog->has_cores && !s->catalog->has_counters)
		return 0;
	if (query_answer(core_share_open(s->catalog, &s->target, 1, s->f->start, s->f->end), &share, err) < 0)
		return -1;
	const struct core_time *t = &share.row[0].time;
	if (IS_LARGE(t->shared, t->ran))
		write_sharers(s, &share, &share.row[0]);
	if (share.counters)
		write_ipc(s, &share, &share.row[0]);
	if (IS_LARGE(t->slow, t->ran))
		fprintf(s->to, "It ran %s on a CPU below %d %% of the base frequency.\n", part_of_ran(t->slow, t, a), SLOW_PERCENT);
	if (IS_LARGE(t->remote, t->ran))
		fprintf(s->to, "It ran %s on another NUMA node than most of the memory of its VM.\n", part_of_ran(t->remote, t, a));
	if (t->moves > MOVES_PER_SECOND && t->moves / MOVES_PER_SECOND >= t->ran / 1000000000)
		write_moves(s, t);
	core_share_release(&share);
	return 0;
}
