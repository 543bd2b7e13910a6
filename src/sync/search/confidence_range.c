#include "sync/search/confidence_range.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"

#define DECOYS 8
#define DECOY_NS 7300000  /* from one to the next: no period that clocks tick with divides it */

/* Where the events lie that one window holds, or that lie between two. */
enum spot { OUT, AT_EDGE, INSIDE, SPOTS };

struct word { int64_t first, last; enum spot spot; };

struct words {
	struct word *word;
	size_t len, cap;
};

static int by_time(const void *pa, const void *pb)
{
	const struct word *a = pa, *b = pb;
	return a->first < b->first ? -1 : a->first > b->first;
}

static enum spot spot_of(const struct vthread *th, size_t near, int64_t low, int64_t high)
{
	if (near == 0 || th->window[near - 1].to < low)
		return OUT;
	const struct span *w = &th->window[near - 1];
	return low - w->from <= DELAY_NS || w->to - high <= DELAY_NS ? AT_EDGE : INSIDE;
}

/* What the events of a CPU say under the clock moved by `shift` ns. */
static void listen(const struct seen *seen, const struct clock_map *clock, int64_t shift, unsigned cpu, struct words *out)
{
	const struct activity_cpu *c = &seen->act->cpu[cpu];
	const struct vthread *last = NULL;
	struct clock_near edge = { 0 };
	size_t near = 0, window = 0;
	bool was_out = false;
	for (size_t i = 0; i < c->len; i++) {
		int64_t low, high;
		if (clock_map_unsure(clock, c->ts[i]) || !clock_map_bounds_near(clock, c->ts[i], &edge, &low, &high)
		    || (low += shift) < seen->host->begin || (high += shift) > seen->host->end)
			continue;
		const struct vthread *th = vm_thread_at(seen->host, seen->vm, cpu, low);
		if (!th || vthread_blind(th, low, high))
			continue;
		near = vthread_windows(th, high, th == last ? near : 0);
		const enum spot spot = spot_of(th, near, low, high);
		if (th != last || near != window || (spot == OUT) != was_out)
			*ARRAY_PUSH(out->word, out->len, out->cap) = (struct word){ c->ts[i], c->ts[i], spot };
		struct word *w = &out->word[out->len - 1];
		w->last = c->ts[i];
		w->spot = spot == AT_EDGE ? AT_EDGE : w->spot;
		last = th;
		window = near;
		was_out = spot == OUT;
	}
}

static void listen_all(const struct seen *seen, const struct clock_map *clock, int64_t shift, struct words *out)
{
	for (unsigned c = 0; c < seen->act->cpus; c++)
		listen(seen, clock, shift, c, out);
}

/* How often events lie there, of each spot. */
static void shares(const struct words *w, double share[SPOTS])
{
	for (int k = 0; k < SPOTS; k++)
		share[k] = 1;
	for (size_t i = 0; i < w->len; i++)
		share[w->word[i].spot]++;
	for (int k = 0; k < SPOTS; k++)
		share[k] /= (double)w->len + SPOTS;
}

/* What it says for the clock, in nats, that events lie there: how much more often they do than under clocks that are
 * wrong. */
static void weigh(const struct seen *seen, const struct clock_map *clock, const struct words *own, double nats[SPOTS])
{
	double is[SPOTS], chance[SPOTS];
	struct words other = { NULL, 0, 0 };
	for (int i = 1; i <= DECOYS; i++)
		listen_all(seen, clock, (i % 2 ? i : -i) * DECOY_NS, &other);
	shares(own, is);
	shares(&other, chance);
	for (int k = 0; k < SPOTS; k++)
		nats[k] = log(is[k] / chance[k]);
	free(other.word);
}

bool reach_find(const struct seen *seen, const struct clock_map *clock, double evidence, struct segment *out)
{
	struct words w = { NULL, 0, 0 };
	double nats[SPOTS], sum = 0;
	listen_all(seen, clock, 0, &w);
	weigh(seen, clock, &w, nats);
	if (w.len > 0)
		qsort(w.word, w.len, sizeof *w.word, by_time);
	*out = (struct segment){ INT64_MAX, INT64_MIN };
	for (size_t i = 0; i < w.len && out->from == INT64_MAX; i++)
		if ((sum += nats[w.word[i].spot]) >= evidence)
			out->from = w.word[i].last;
	sum = 0;
	for (size_t i = w.len; i-- > 0 && out->to == INT64_MIN;)
		if ((sum += nats[w.word[i].spot]) >= evidence)
			out->to = w.word[i].first;
	free(w.word);
	return out->from < out->to;
}
