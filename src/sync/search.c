#include "sync/search.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define SEGMENT_NS 4000000000LL
#define SEGMENT_MAX_NS 12000000000LL
#define SEGMENT_TIMES 120     /* a segment with less activity is made longer */
#define SEARCH_MAX_NS 400000000000LL  /* a longer host trace is searched around a common begin or end alone */
#define ALIGNED_NS 90000000000LL
#define LOCKED_MAX 6
#define REACH_NS 150000        /* how far the coarse search may be off */
#define SHARE_MIN 0.995       /* of the activity must be contained */
#define EVIDENCE_MIN 40.0     /* nats */
#define PARTS_SHARE_MIN 0.98
#define PARTS_DEPTH 6
#define PART_NS 2000000000LL
#define STEP_FIND_NS 20000000LL
#define DISTINCT_NS 60000     /* two clocks nearer than this are one */
#define DOUBTED_NS 200000     /* how far from a clock that fits another one may be that fits too */

struct tally { uint64_t inside, outside; };

/* Containment of the activity under a clock. */
static struct tally count_contained(const struct host_view *host, const struct vm_view *vm, const struct activity *act,
                                    const struct clock_map *clock)
{
	struct tally n = { 0, 0 };
	for (unsigned c = 0; c < act->cpus; c++) {
		size_t near = 0;
		const struct vthread *last = NULL;
		for (size_t i = 0; i < act->cpu[c].len; i++) {
			int64_t t = clock_map_at(clock, act->cpu[c].ts[i]);
			if (t < host->begin || t > host->end)
				continue;
			const struct vthread *th = vm_thread_at(host, vm, c, t);
			if (th != last)
				near = 0;
			last = th;
			enum mode mode = th == NULL ? MODE_OUT : vthread_mode(th, t, &near);
			n.inside += mode == MODE_IN;
			n.outside += mode == MODE_OUT;
		}
	}
	return n;
}

static size_t times_in(const struct activity *act, struct segment seg)
{
	size_t n = 0;
	for (unsigned c = 0; c < act->cpus; c++)
		n += activity_find(&act->cpu[c], seg.to) - activity_find(&act->cpu[c], seg.from);
	return n;
}

/* A segment in the middle of the trace (or a third of the way, ...), long enough to say something. */
static struct segment choose_segment(const struct activity *act, double where, int64_t length)
{
	struct segment seg;
	int64_t all = act->end - act->begin;
	for (;; length *= 2) {
		if (length > all)
			length = all;
		seg.from = act->begin + (int64_t)((double)(all - length) * where);
		seg.to = seg.from + length;
		if (length == all || length >= SEGMENT_MAX_NS || times_in(act, seg) >= SEGMENT_TIMES)
			break;
	}
	if (seg.to - seg.from > SEGMENT_MAX_NS)
		seg.to = seg.from + SEGMENT_MAX_NS;
	return seg;
}

/* How a search is limited.  Any overlap of the traces, when the host's is short enough for that; else the traces
 * begin, or end, within ALIGNED_NS of each other. */
enum range { RANGE_ANY, RANGE_BEGIN, RANGE_END };

/* Where on the host's clock the middle of the segment may lie. */
static void choose_range(const struct host_view *host, const struct activity *act, struct segment seg, enum range range,
                         int64_t *from, int64_t *to)
{
	int64_t middle = seg.from + (seg.to - seg.from) / 2, at;
	*from = host->begin;
	*to = host->end;
	if (range == RANGE_ANY)
		return;
	at = range == RANGE_BEGIN ? host->begin + (middle - act->begin) : host->end - (act->end - middle);
	*from = at - ALIGNED_NS > *from ? at - ALIGNED_NS : *from;
	*to = at + ALIGNED_NS < *to ? at + ALIGNED_NS : *to;
}

static double coverage(const struct guess *g)
{
	return g->events == 0 ? 0 : (double)g->covered / g->events;
}

static int by_coverage(const void *pa, const void *pb)
{
	const struct guess *a = pa, *b = pb;
	double ca = coverage(a), cb = coverage(b);
	if (ca != cb)
		return ca > cb ? -1 : 1;
	return a->score > b->score ? -1 : a->score < b->score;
}

/* A corridor around a guess: what the sweep left open, and some more. */
static void seed_clock(const struct guess *g, struct segment seg, struct clock_map *clock)
{
	struct hull h;
	hull_init(&h);
	int64_t room = g->slack / 2 + 8000;
	const int64_t x[2] = { seg.from, seg.to };
	for (int i = 0; i < 2; i++) {
		int64_t y = g->at_host + (int64_t)((double)(x[i] - g->at_guest) * (1 + g->ppm / 1e6));
		hull_add(&h, HULL_UPPER, x[i], y + room);
		hull_add(&h, HULL_LOWER, x[i], y - room);
	}
	clock->piece = mem_new(1, sizeof *clock->piece);
	clock->pieces = 1;
	clock->piece[0].from = seg.from;
	hull_piece(&h, seg.from, DRIFT_LIMIT_PPM, &clock->piece[0]);
	hull_release(&h);
}

struct trial { struct clock_map clock; struct lock lock; struct tally tally; bool ambiguous; };

static bool distinct(const struct trial *a, const struct trial *b, const struct activity *act)
{
	int64_t middle = act->begin + (act->end - act->begin) / 2;
	return llabs(clock_map_at(&a->clock, middle) - clock_map_at(&b->clock, middle)) > DISTINCT_NS;
}

static double share_of(const struct tally *t)
{
	uint64_t all = t->inside + t->outside;
	return all == 0 ? 0 : (double)t->inside / (double)all;
}

/* Judges the best of the trials against the rest. */
static void judge(const struct activity *act, const struct trial *trial, size_t n, size_t best, struct found *out)
{
	const struct trial *b = &trial[best];
	out->share = share_of(&b->tally);
	out->sure = false;
	out->doubt = NULL;
	if (out->share < SHARE_MIN)
		out->doubt = "no offset puts its events into guest mode";
	else if (b->lock.evidence < EVIDENCE_MIN)
		out->doubt = "its activity is too little to tell the right offset from chance";
	for (size_t i = 0; i < n && out->doubt == NULL; i++)
		if (i != best && distinct(&trial[i], b, act) && trial[i].tally.outside <= 3 * b->tally.outside + 10 &&
		    2 * trial[i].tally.inside > b->tally.inside)
			out->doubt = "several offsets fit its events equally well";
	for (size_t i = 0; i < b->clock.pieces && out->doubt == NULL; i++)
		if (b->clock.piece[i].quality != SYNC_ACCURATE)
			out->doubt = "its activity does not bound its clock";
	out->sure = out->doubt == NULL;
}

/* A corridor of DOUBTED_NS to both sides of every piece of a clock. */
static void doubted_clock(const struct clock_map *clock, const struct activity *act, struct clock_map *wide)
{
	wide->piece = mem_new(clock->pieces, sizeof *wide->piece);
	wide->pieces = clock->pieces;
	for (size_t i = 0; i < clock->pieces; i++) {
		struct hull h;
		hull_init(&h);
		const int64_t x[2] = { i == 0 ? act->begin : clock->piece[i].from,
			i + 1 == clock->pieces ? act->end : clock->piece[i + 1].from };
		for (int k = 0; k < 2; k++) {
			int64_t y = clock_line_at(&clock->piece[i].line, x[k]);
			hull_add(&h, HULL_UPPER, x[k], y + DOUBTED_NS);
			hull_add(&h, HULL_LOWER, x[k], y - DOUBTED_NS);
		}
		wide->piece[i].from = clock->piece[i].from;
		hull_piece(&h, x[0], DRIFT_LIMIT_PPM, &wide->piece[i]);
		hull_release(&h);
	}
}

/* Is the corridor of `a` within that of `b`, give or take a tenth, at both ends and in the middle? */
static bool as_narrow(const struct clock_map *a, const struct clock_map *b, const struct activity *act)
{
	for (int i = 0; i <= 2; i++) {
		int64_t t = act->begin + (act->end - act->begin) / 2 * i;
		int64_t wa = clock_map_band(a, t), wb = clock_map_band(b, t);
		if (wa < 0 || wb < 0 || wa > wb + wb / 10 + 1)
			return false;
	}
	return true;
}

/* The lock of a trial began in a corridor that was guessed; what it found is right if the guess was, and another guess
 * nearby may lead to other windows that contain all events as well.  Here it begins again in a corridor so wide that
 * the true clock cannot be missed, and decides only what can be decided.  Where that ends at the same corridor, no
 * other clock fits.  Where it stays wider, that is what is known. */
static void doubt_guess(const struct host_view *host, const struct vm_view *vm, const struct activity *act,
                        struct trial *t)
{
	struct trial wide = { .tally = { 0, 0 } };
	if (t->clock.pieces == 0)
		return;
	doubted_clock(&t->clock, act, &wide.clock);
	lock_clock(host, vm, act, NULL, &wide.clock, &wide.lock);
	wide.tally = count_contained(host, vm, act, &wide.clock);
	bool better = share_of(&wide.tally) >= share_of(&t->tally);
	if (wide.clock.pieces != t->clock.pieces && !better) {
		clock_map_release(&wide.clock);
		return;
	}
	bool same = as_narrow(&wide.clock, &t->clock, act);
	for (size_t i = 0; i < wide.clock.pieces && !better; i++)
		wide.clock.piece[i].line = t->clock.piece[i].line;
	if (better || !same) {
		clock_map_release(&t->clock);
		t->clock = wide.clock;
		t->lock = better ? wide.lock : t->lock;
		t->tally = better ? wide.tally : t->tally;
	} else {
		clock_map_release(&wide.clock);
	}
	t->ambiguous = !same && (!better || wide.lock.ambiguous > 0);
}

/* One segment: the whole way from the coarse search to a judgement. */
static void attempt(const struct host_view *host, const struct vm_view *vm, const struct activity *act,
                    struct segment seg, enum range range, struct found *out)
{
	struct guess guess[GUESSES_MAX];
	struct trial trial[LOCKED_MAX] = { 0 };
	size_t n = 0, trials = 0, best = 0;
	int64_t from, to;
	choose_range(host, act, seg, range, &from, &to);
	coarse_search(host, vm, act, seg, from, to, guess, &n);
	for (size_t i = 0; i < n; i++)
		guess_sweep(host, vm, act, seg, REACH_NS, 300, &guess[i]);
	/* The best half of those to be locked by correlation, the others by coverage. */
	size_t first = n < LOCKED_MAX / 2 ? n : LOCKED_MAX / 2;
	qsort(guess + first, n - first, sizeof *guess, by_coverage);
	if (n > LOCKED_MAX)
		n = LOCKED_MAX;
	for (size_t i = 0; i < n; i++) {
		/* A guest with short delays wants a fine drift before its events fall into place. */
		for (int64_t reach = REACH_NS / 5; reach > 500 && (reach == REACH_NS / 5 || coverage(&guess[i]) < 1); reach /= 5)
			guess_sweep(host, vm, act, seg, reach, 3000, &guess[i]);
		if (coverage(&guess[i]) < 0.9)
			continue;
		struct trial *t = &trial[trials++];
		seed_clock(&guess[i], seg, &t->clock);
		lock_clock(host, vm, act, NULL, &t->clock, &t->lock);
		t->tally = count_contained(host, vm, act, &t->clock);
	}
	for (size_t i = 1; i < trials; i++)
		if (share_of(&trial[i].tally) > share_of(&trial[best].tally))
			best = i;
	out->doubt = "no offset puts its events into guest mode";
	if (trials > 0) {
		doubt_guess(host, vm, act, &trial[best]);
		judge(act, trial, trials, best, out);
		for (size_t i = 0; i < trial[best].clock.pieces && trial[best].ambiguous && out->sure; i++)
			trial[best].clock.piece[i].quality = SYNC_APPROXIMATE;
		out->clock = trial[best].clock;
		out->lock = trial[best].lock;
		trial[best].clock = (struct clock_map){ NULL, 0 };
	}
	for (size_t i = 0; i < trials; i++)
		clock_map_release(&trial[i].clock);
}

/* The whole trace with one line; false when none is proved. */
static bool solve_whole(const struct host_view *host, const struct vm_view *vm, const struct activity *act,
                        struct found *out)
{
	static const struct try { enum range range; double where; int64_t length; } any[] = {
		{ RANGE_ANY, 0.5, SEGMENT_NS }, { RANGE_ANY, 0.25, 2 * SEGMENT_NS }, { RANGE_ANY, 0.8, 3 * SEGMENT_NS },
	}, aligned[] = {
		{ RANGE_BEGIN, 0.001, SEGMENT_NS }, { RANGE_END, 0.999, SEGMENT_NS },
		{ RANGE_BEGIN, 0.002, 3 * SEGMENT_NS }, { RANGE_END, 0.998, 3 * SEGMENT_NS },
	};
	bool is_short = host->end - host->begin <= SEARCH_MAX_NS;
	const struct try *tries = is_short ? any : aligned;
	size_t n = is_short ? sizeof any / sizeof *any : sizeof aligned / sizeof *aligned;
	for (size_t i = 0; i < n && !out->sure; i++) {
		struct segment seg = choose_segment(act, tries[i].where, tries[i].length);
		struct found f = { .doubt = out->doubt };
		if (seg.to <= seg.from)
			break;
		attempt(host, vm, act, seg, tries[i].range, &f);
		if (f.sure || f.share > out->share) {
			found_release(out);
			*out = f;
		} else {
			found_release(&f);
		}
		if (seg.to - seg.from >= act->end - act->begin)
			break;  /* the other segments are the same one */
	}
	return out->sure;
}

/* ---- a clock that steps: the parts of the trace that one line fits, one after another */

static struct activity view_of(const struct activity *a, int64_t from, int64_t to)
{
	struct activity v = *a;
	v.cpu = mem_new(a->cpus, sizeof *v.cpu);
	v.len = 0;
	v.begin = from;
	v.end = to;
	for (unsigned c = 0; c < a->cpus; c++) {
		size_t first = activity_find(&a->cpu[c], from);
		v.cpu[c].ts = a->cpu[c].ts + first;
		v.cpu[c].len = activity_find(&a->cpu[c], to) - first;
		v.len += v.cpu[c].len;
	}
	return v;
}

/* Locks the clock on [from, to] alone; true when that part is contained, with one line. */
static bool holds(const struct host_view *host, const struct vm_view *vm, const struct activity *act,
                  const struct clock_map *start, int64_t from, int64_t to, struct clock_map *clock, struct lock *lock)
{
	struct activity v = view_of(act, from, to);
	clock_map_copy(clock, start);
	lock_clock(host, vm, &v, NULL, clock, lock);
	struct tally t = count_contained(host, vm, &v, clock);
	free(v.cpu);
	return share_of(&t) >= SHARE_MIN && clock->pieces == 1;
}

/* Moves one end of the part [*from, *to] on which the clock holds as far as it goes. */
static void stretch(const struct host_view *host, const struct vm_view *vm, const struct activity *act, int64_t *from,
                    int64_t *to, bool right, struct found *f)
{
	int64_t *edge = right ? to : from, bad = right ? act->end + 1 : act->begin - 1;
	for (int64_t step = *to - *from; llabs(bad - *edge) > STEP_FIND_NS;) {
		/* Doubling steps first; halves of what is left once an end that fails is known. */
		int64_t left = llabs(bad - *edge), by = left / 2 < step ? left / 2 : step;
		if (step >= left - 1 && (bad > act->end || bad < act->begin))
			by = left - 1;
		int64_t next = right ? *edge + by : *edge - by;
		struct clock_map clock;
		struct lock lock;
		if (!holds(host, vm, act, &f->clock, right ? *from : next, right ? next : *to, &clock, &lock)) {
			bad = next;
			clock_map_release(&clock);
			continue;
		}
		step *= 2;
		clock_map_release(&f->clock);
		f->clock = clock;
		f->lock = lock;
		*edge = next;
	}
}

static void append(struct clock_map *map, struct clock_map *more)
{
	map->piece = mem_resize(map->piece, map->pieces + more->pieces, sizeof *map->piece);
	if (more->pieces > 0)
		memcpy(map->piece + map->pieces, more->piece, more->pieces * sizeof *more->piece);
	map->pieces += more->pieces;
	free(more->piece);
	*more = (struct clock_map){ NULL, 0 };
}

static void solve_parts(const struct host_view *host, const struct vm_view *vm, const struct activity *act, int depth,
                        struct found *out)
{
	struct segment seg = choose_segment(act, 0.3, PART_NS);
	if (depth > PARTS_DEPTH || seg.to - seg.from < PART_NS / 4)
		return;
	struct activity v = view_of(act, seg.from, seg.to);
	struct found f = { 0 };
	attempt(host, vm, &v, seg, RANGE_ANY, &f);
	free(v.cpu);
	int64_t from = seg.from, to = seg.to;
	if (!f.sure || f.clock.pieces != 1) {
		/* Perhaps the step is in here: try what lies on both sides. */
		found_release(&f);
		to = from = seg.from + (seg.to - seg.from) / 2;
		depth++;
	} else {
		stretch(host, vm, act, &from, &to, true, &f);
		stretch(host, vm, act, &from, &to, false, &f);
		f.clock.piece[0].from = from;
	}
	struct activity before = view_of(act, act->begin, from - 1), after = view_of(act, to + 1, act->end);
	if (from - act->begin > PART_NS / 4)
		solve_parts(host, vm, &before, depth + 1, out);
	append(&out->clock, &f.clock);
	out->lock.pairs += f.lock.pairs;
	out->lock.used += f.lock.used;
	if (act->end - to > PART_NS / 4)
		solve_parts(host, vm, &after, depth + 1, out);
	free(before.cpu);
	free(after.cpu);
}

void search_containment(const struct host_view *host, const struct vm_view *vm, const struct activity *act,
                        bool steps, struct found *out)
{
	memset(out, 0, sizeof *out);
	out->doubt = "no offset puts its events into guest mode";
	if (!steps) {
		solve_whole(host, vm, act, out);
		return;
	}
	if (host->end - host->begin > SEARCH_MAX_NS)
		return;
	struct found parts = { 0 };
	solve_parts(host, vm, act, 0, &parts);
	struct tally t = count_contained(host, vm, act, &parts.clock);
	parts.share = share_of(&t);
	if (parts.clock.pieces > 0 && parts.share >= PARTS_SHARE_MIN) {
		found_release(out);
		*out = parts;
		out->sure = true;
		out->doubt = NULL;
		return;
	}
	found_release(&parts);
}

void found_release(struct found *f)
{
	clock_map_release(&f->clock);
}
