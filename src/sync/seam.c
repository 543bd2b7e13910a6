#include "sync/seam.h"

#include <stdlib.h>

#include "base/mem.h"

#define JUMP_NS 20000     /* by which the corridors of two pieces may miss each other where they meet */

/* An event that only one of the two pieces puts into guest mode. */
struct vote { int64_t t; int earlier; };  /* +1: the earlier one does, -1: the later one */

struct votes { struct vote *vote; size_t len, cap; };

static int by_time(const void *pa, const void *pb)
{
	const struct vote *a = pa, *b = pb;
	return a->t < b->t ? -1 : a->t > b->t;
}

static bool contains(const struct versus *v, unsigned cpu, const struct clock_line *line, int64_t t, size_t *near)
{
	int64_t at = clock_line_at(line, t);
	const struct vthread *th = vm_thread_at(v->host, v->vm, cpu, at);
	return th != NULL && vthread_mode(th, at, near) == MODE_IN;
}

static void ask(const struct versus *v, const struct clock_piece *piece, int64_t from, int64_t to, struct votes *out)
{
	for (unsigned c = 0; c < v->act->cpus; c++) {
		const struct activity_cpu *cpu = &v->act->cpu[c];
		size_t near[2] = { 0, 0 };
		for (size_t i = activity_find(cpu, from); i < cpu->len && cpu->ts[i] < to; i++) {
			int earlier = contains(v, c, &piece[0].line, cpu->ts[i], &near[0]);
			int later = contains(v, c, &piece[1].line, cpu->ts[i], &near[1]);
			if (earlier != later)
				*ARRAY_PUSH(out->vote, out->len, out->cap) = (struct vote){ cpu->ts[i], earlier - later };
		}
	}
}

/* The time from which on the later piece suits most events. */
static int64_t best(const struct votes *v, int64_t unless)
{
	int64_t sum = 0, most = 0, at = v->len > 0 ? v->vote[0].t : unless;
	for (size_t i = 0; i < v->len; i++) {
		sum += v->vote[i].earlier;
		if (sum > most) {
			most = sum;
			at = v->vote[i].t + 1;
		}
	}
	return at;
}

static bool contradicts(const struct pair *p, const struct clock_line *line)
{
	int64_t off = p->y - clock_line_at(line, p->x);
	return !p->rejected && (p->side == HULL_UPPER ? off < 0 : off > 0);
}

/* The times between which the pairs leave the seam: guest ns, from excluded. */
static void limit(const struct pair_list *pairs, const struct clock_piece *piece, int64_t *from, int64_t *to)
{
	for (size_t i = 0; i < pairs->len; i++) {
		const struct pair *p = &pairs->pair[i];
		if (p->x > *from && p->x < piece[1].from && contradicts(p, &piece[1].line))
			*from = p->x;
		if (p->x < *to && p->x >= piece[1].from && contradicts(p, &piece[0].line))
			*to = p->x;
	}
}

bool seam_jumps(const struct clock_map *clock, size_t i)
{
	int64_t at = clock->piece[i].from, low, high, low_before, high_before;
	return !clock_map_bounds(clock, at, &low, &high) || !clock_map_bounds(clock, at - 1, &low_before, &high_before)
	       || low > high_before + JUMP_NS || low_before > high + JUMP_NS;
}

void seams_place(const struct versus *v, const struct pair_list *pairs, struct clock_map *clock)
{
	for (size_t i = 1; i < clock->pieces; i++) {
		struct clock_piece *piece = &clock->piece[i];
		struct votes votes = { NULL, 0, 0 };
		if (!seam_jumps(clock, i))
			continue;
		int64_t before = i == 1 ? v->act->begin : piece[-1].from;
		int64_t after = i + 1 == clock->pieces ? v->act->end : piece[1].from;
		int64_t from = before + (piece->from - before) / 2, to = piece->from + (after - piece->from) / 2;
		limit(pairs, piece - 1, &from, &to);
		ask(v, piece - 1, from + 1, to, &votes);
		if (votes.len > 0)
			qsort(votes.vote, votes.len, sizeof *votes.vote, by_time);
		piece->from = best(&votes, piece->from);
		free(votes.vote);
	}
}
