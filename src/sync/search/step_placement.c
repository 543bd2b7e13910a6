#include "sync/search/step_placement.h"

#include <stdlib.h>

#include "base/mem.h"
#include "sync/fit/piecewise_fit.h"

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

/* Was a vCPU in guest mode, somewhere in that span of the host's time? */
static bool ran(const struct seen *seen, int64_t from, int64_t to)
{
	for (size_t i = 0; i < seen->vm->vcpus; i++) {
		const struct vthread *th = &seen->host->thread[seen->vm->vcpu[i].thread];
		const size_t k = span_find(th->window, th->windows, from);
		if (k < th->windows && th->window[k].from <= to)
			return true;
	}
	return false;
}

/* One CPU's events are in their order in any case. */
static bool is_shared(const struct activity *act)
{
	unsigned n = 0;
	for (unsigned c = 0; c < act->cpus; c++)
		n += act->cpu[c].len > 0;
	return n > 1;
}

/* While a clock stands still, so does the guest.  If it ran, the clock was set back, by `by` ns: as much of its time comes
 * twice, and one CPU's events after that may have times before those of another CPU's before it.  Of what a buffer shows
 * to come twice, the trace leaves out all. */
static void repeat(const struct seen *seen, const struct votes *v, int64_t by, struct clock_piece *piece)
{
	const struct trace_info *info = seen->act->of;
	int64_t from = piece->unsure_from, to = piece->unsure_to;
	for (size_t i = 0; i < v->len; i++) {
		const int64_t t = v->vote[i].t;
		from = v->vote[i].earlier > 0 && t > from ? t : from;
		to = v->vote[i].earlier < 0 && t < to ? t : to;
	}
	for (size_t i = 0; info && i < info->twices; i++) {
		if (info->twice[i].end < piece->unsure_from - by || info->twice[i].begin > piece->unsure_to + by)
			continue;
		if (info->twice[i].end >= piece->unsure_from && info->twice[i].end <= piece->unsure_to)
			piece->from = info->twice[i].end;  /* its losses begin in the earlier piece */
		from = info->twice[i].end > from ? info->twice[i].end : from;
		to = info->twice[i].begin < to ? info->twice[i].begin : to;
	}
	if (!is_shared(seen->act))
		return;
	piece->repeats = true;
	piece->unsure_from = from - by < piece->unsure_from ? from - by : piece->unsure_from;
	piece->unsure_to = to + by > piece->unsure_to ? to + by : piece->unsure_to;
}

/* Does no event lie where the jump may be? */
static bool is_empty(const struct votes *v, const struct clock_piece *piece)
{
	for (size_t i = 0; i < v->len; i++)
		if (v->vote[i].t >= piece->unsure_from && v->vote[i].t < piece->unsure_to)
			return false;
	return true;
}

/* What the clock is set ahead (> 0) or back (< 0) where the piece begins; 0: less than its corridors. */
static int64_t step_of(const struct clock_piece *piece, int64_t *most)
{
	int64_t low[2], high[2];
	*most = 0;
	if (!clock_piece_bounds(piece - 1, piece->from, &low[0], &high[0]) ||
	    !clock_piece_bounds(piece, piece->from, &low[1], &high[1]))
		return 0;
	*most = high[1] - low[0];
	return low[0] > high[1] ? low[0] - high[1] : high[0] < low[1] ? high[0] - low[1] : 0;
}

/* Does a buffer show that times came twice there, or did the guest run during the host's time that passes at a jump during
 * which its clock stands still, wherever that is?  Then it did not stand still. */
static bool ran_meanwhile(const struct seen *seen, const struct clock_piece *piece, int64_t most)
{
	const struct trace_info *info = seen->act->of;
	int64_t low, high, unused;
	for (size_t i = 0; info && i < info->twices; i++)
		if (info->twice[i].end >= piece->unsure_from - most && info->twice[i].begin <= piece->unsure_to + most)
			return true;
	return clock_piece_bounds(piece - 1, piece->unsure_to, &unused, &low) &&
	       clock_piece_bounds(piece, piece->unsure_from, &high, &unused) && (low >= high || ran(seen, low + 1, high - 1));
}

/* Has an event that only the later piece puts into guest mode an earlier time than one that only the earlier piece does? */
static bool is_mixed(const struct votes *v)
{
	bool later = false;
	for (size_t i = 0; i < v->len; i++) {
		if (later && v->vote[i].earlier > 0)
			return true;
		later = later || v->vote[i].earlier < 0;
	}
	return false;
}

/* Where the clock was set back by up to `most` ns. */
static void set_back(const struct seen *seen, int64_t most, struct votes *votes, struct clock_piece *piece)
{
	struct votes wide = { NULL, 0, 0 };
	ask(seen, piece - 1, piece->unsure_from - most, piece->unsure_to + most, &wide);
	if (is_mixed(&wide) || ran_meanwhile(seen, piece, most)) {
		repeat(seen, &wide, most, piece);
		free(votes->vote);
		*votes = wide;
	} else {
		free(wide.vote);
	}
}

/* Are rate and time of the piece so unsure there that a jump may look like a bend? */
static bool may_hide(const struct clock_piece *p, int64_t t)
{
	int64_t low, high;
	return clock_line_ppm(&p->highest) - clock_line_ppm(&p->lowest) > BEND_PPM && clock_piece_bounds(p, t, &low, &high)
	       && high - low > JUMP_NS;
}

/* Corridors that meet there are those of a clock that bends, unless other clocks suit one of the two as well. */
static bool may_jump(const struct clock_map *clock, size_t i)
{
	return clock->piece[i - 1].quality != SYNC_ACCURATE || clock->piece[i].quality != SYNC_ACCURATE || fit_jumps(clock, i);
}

bool jumps_place(const struct seen *seen, const struct pair_list *pairs, struct clock_map *clock)
{
	bool any = false;
	for (size_t i = 1; i < clock->pieces; i++) {
		struct clock_piece *piece = &clock->piece[i];
		struct votes votes = { NULL, 0, 0 };
		int64_t most;
		const bool jumps = may_jump(clock, i);
		if (!jumps && !may_hide(piece - 1, piece->from - 1) && !may_hide(piece, piece->from))
			continue;
		any = any || jumps;
		fit_jump_limits(pairs, clock, i, seen->act->begin, seen->act->end);
		ask(seen, piece - 1, piece->unsure_from - 1, piece->unsure_to, &votes);
		between_events(&votes, piece);
		if (jumps || piece->from < piece->unsure_from || piece->from > piece->unsure_to)
			piece->from = piece->unsure_from;
		const int64_t step = step_of(piece, &most);
		if (step > 0)
			skip(&votes, step, piece);
		else if (step < 0)
			set_back(seen, most, &votes, piece);
		piece->placed = seen->act->sliced == 0 && is_empty(&votes, piece);
		piece->repeats = piece->repeats && !piece->placed;
		free(votes.vote);
	}
	return any;
}
