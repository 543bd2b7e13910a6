#include "sync/search/jump.h"

#include <stdlib.h>

#include "base/mem.h"
#include "sync/estimate/fit.h"

/* An event about a jump.  +1: only the earlier of the two pieces can put it into guest mode, -1: only the later one. */
struct vote { int64_t t; int earlier; };

struct votes { struct vote *vote; size_t len, cap; };

static int by_time(const void *pa, const void *pb)
{
	const struct vote *a = pa, *b = pb;
	return a->t < b->t ? -1 : a->t > b->t;
}

/* Can the event lie in guest mode, somewhere in the piece's corridor? */
static bool possible(const struct seen *seen, unsigned cpu, const struct clock_piece *piece, int64_t t, size_t *near)
{
	int64_t low, high;
	if (!clock_piece_bounds(piece, t, &low, &high))
		low = high = clock_line_at(&piece->line, t);
	if (low < seen->host->begin || high > seen->host->end)
		return true;
	const struct vthread *th = vm_thread_at(seen->host, seen->vm, cpu, low);
	if (!th || vthread_blind(th, low, high))
		return th != NULL;
	(void)vthread_mode(th, high, near);
	return *near > 0 && th->window[*near - 1].to >= low;
}

static void ask(const struct seen *seen, const struct clock_piece *piece, int64_t from, int64_t to, struct votes *out)
{
	for (unsigned c = 0; c < seen->act->cpus; c++) {
		const struct activity_cpu *cpu = &seen->act->cpu[c];
		size_t near[2] = { 0, 0 };
		for (size_t i = activity_find(cpu, from); i < cpu->len && cpu->ts[i] <= to; i++) {
			int earlier = possible(seen, c, &piece[0], cpu->ts[i], &near[0]);
			int later = possible(seen, c, &piece[1], cpu->ts[i], &near[1]);
			*ARRAY_PUSH(out->vote, out->len, out->cap) = (struct vote){ cpu->ts[i], earlier - later };
		}
	}
	if (out->len > 0)
		qsort(out->vote, out->len, sizeof *out->vote, by_time);
}

/* So many events, from the first one on, suit the earlier piece, when most suit either as they should. */
static size_t best(const struct votes *v)
{
	int64_t sum = 0, most = 0;
	size_t at = 0;
	for (size_t i = 0; i < v->len; i++) {
		sum += v->vote[i].earlier;
		if (sum > most) {
			most = sum;
			at = i + 1;
		}
	}
	return at;
}

/* The events nearest to that place which say that the jump comes after, and before them; else those of the pairs. */
static void between_events(const struct votes *v, struct clock_piece *piece)
{
	size_t before = best(v), after = before;
	while (before > 0 && v->vote[before - 1].earlier <= 0)
		before--;
	while (after < v->len && v->vote[after].earlier >= 0)
		after++;
	if (before > 0)
		piece->unsure_from = v->vote[before - 1].t + 1;
	if (after < v->len)
		piece->unsure_to = v->vote[after].t;
}

/* A clock that is set ahead by `skips` ns skips as much of its time: the jump is in a stretch without events that is no
 * shorter.  From the first such stretch to the last. */
static void skip(const struct votes *v, int64_t skips, struct clock_piece *piece)
{
	int64_t last = piece->unsure_from - 1, from = piece->unsure_to, to = last, longest = 0;
	for (size_t i = 0; last < piece->unsure_to; i++) {
		const int64_t t = i < v->len && v->vote[i].t < piece->unsure_to ? v->vote[i].t : piece->unsure_to;
		if (t < piece->unsure_from)
			continue;
		if (t - last >= skips) {
			from = from < last + 1 ? from : last + 1;
			to = t;
			piece->from = t - last > longest ? t : piece->from;
			longest = t - last > longest ? t - last : longest;
		}
		last = t;
	}
	if (longest > 0) {
		piece->unsure_from = from;
		piece->unsure_to = to;
	}
}

/* Does no event lie where the jump may be? */
static bool is_empty(const struct votes *v, const struct clock_piece *piece)
{
	for (size_t i = 0; i < v->len; i++)
		if (v->vote[i].t >= piece->unsure_from && v->vote[i].t < piece->unsure_to)
			return false;
	return true;
}

bool jumps_place(const struct seen *seen, const struct pair_list *pairs, struct clock_map *clock)
{
	bool any = false;
	for (size_t i = 1; i < clock->pieces; i++) {
		struct clock_piece *piece = &clock->piece[i];
		struct votes votes = { NULL, 0, 0 };
		int64_t high, low, unused;
		if (!fit_jumps(clock, i))
			continue;
		any = true;
		fit_jump_limits(pairs, clock, i, seen->act->begin, seen->act->end);
		ask(seen, piece - 1, piece->unsure_from - 1, piece->unsure_to, &votes);
		between_events(&votes, piece);
		piece->from = piece->unsure_from;
		if (clock_piece_bounds(piece - 1, piece->from, &low, &unused) &&
		    clock_piece_bounds(piece, piece->from, &unused, &high) && low > high)
			skip(&votes, low - high, piece);
		piece->placed = seen->act->sliced == 0 && is_empty(&votes, piece);
		free(votes.vote);
	}
	return any;
}
