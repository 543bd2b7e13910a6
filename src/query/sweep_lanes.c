/* Lanes of a sweep: who has each pCPU, and sums of blocks of that. */
#include "query/steal_sweep.h"

#include "base/bisect.h"
#include "base/mem.h"

static void lane_add(struct sweep *s, struct lane *lane, const struct resolution *p, int64_t t)
{
	uint32_t culprit = sweep_put_culprit(s, &p->actor);
	if (lane->len && lane->interval[lane->len - 1].culprit == culprit &&
	    lane->interval[lane->len - 1].host_thread == p->host_thread)
		return;
	*ARRAY_PUSH(lane->interval, lane->len, lane->cap) = (struct lane_interval){ t, p->host_thread, culprit };
	s->lane_intervals++;
}

int sweep_fill_lanes(struct sweep *s, int64_t from, int64_t to)
{
	s->lane_intervals = 0;
	for (uint32_t i = 0; i < s->catalog->cpus; i++) {
		struct target cpu = { TARGET_CPU, i };
		struct lane *lane = &s->lane[i];
		lane->len = 0;
		if (s->catalog->machine[s->catalog->cpu[i].machine].kind != MACHINE_HOST)
			continue;
		for (int64_t t = from;; t = s->r.until + 1) {
			struct resolution p;
			resolver_trim(&s->r);
			s->r.until = to;
			if (resolve_target(&s->r, &cpu, t, &p) < 0)
				return -1;
			lane_add(s, lane, &p, t);
			if (s->lane_intervals > s->capacity)
				return 0;
			if (s->r.until >= to)
				break;
		}
	}
	return 1;
}

/* Adds time to a sum of the last block of a level. at: by culprit, index + 1 of its last sum in any block. */
static void level_add(struct sweep *s, struct lane_level *l, const struct lane_sum *p)
{
	const struct culprit_ns *taken = &p->taken;
	while (s->sum_at_len <= taken->culprit)
		*ARRAY_PUSH(s->sum_at, s->sum_at_len, s->sum_at_cap) = 0;
	uint32_t *at = &s->sum_at[taken->culprit];
	const size_t first = l->first[l->blocks - 1];
	struct lane_sum *same = *at > first && *at <= l->len ? &l->sum[*at - 1] : NULL;
	if (!same || same->taken.culprit != taken->culprit || same->host_thread != p->host_thread) {
		*ARRAY_PUSH(l->sum, l->len, l->cap) = *p;
		*at = (uint32_t)l->len;
	} else {
		same->taken.ns += taken->ns;
		culprit_add_later(&same->taken, taken->intervals, taken->longest, taken->longest_start);
	}
}

/* Returns true if no culprit follows itself in intervals [first, last]. */
static bool has_changes(const struct lane_interval *interval, size_t first, size_t last)
{
	for (size_t i = first; i <= last; i++)
		if (i && interval[i].culprit == interval[i - 1].culprit)
			return false;
	return true;
}

/* Returns true if all parts of a block have sums. */
static bool have_sums(const struct lane_level *below, size_t first, size_t end)
{
	for (size_t i = first; i < end; i++)
		if (below->first[i] == below->first[i + 1])
			return false;
	return true;
}

void lane_add_levels(struct sweep *s, struct lane *lane)
{
	for (int k = 0; k < LANE_LEVELS; k++) {
		struct lane_level *l = &lane->level[k];
		const size_t parts = k ? lane->level[k - 1].blocks : lane->len ? lane->len - 1 : 0;
		l->len = l->blocks = 0;
		for (size_t i = 0; i + LANE_BLOCK <= parts; i += LANE_BLOCK) {
			*ARRAY_PUSH(l->first, l->blocks, l->block_cap) = (uint32_t)l->len;
			if (k ? !have_sums(&lane->level[k - 1], i, i + LANE_BLOCK) : !has_changes(lane->interval, i, i + LANE_BLOCK))
				continue;
			for (size_t n = i; k == 0 && n < i + LANE_BLOCK; n++) {
				const struct lane_interval *p = &lane->interval[n];
				const int64_t ns = p[1].start - p->start;
				level_add(s, l, &(struct lane_sum){ { p->culprit, 1, ns, ns, p->start }, p->host_thread });
			}
			for (size_t n = k ? lane->level[k - 1].first[i] : 0; k && n < lane->level[k - 1].first[i + LANE_BLOCK]; n++)
				level_add(s, l, &lane->level[k - 1].sum[n]);
		}
		*ARRAY_PUSH(l->first, l->blocks, l->block_cap) = (uint32_t)l->len;
		l->blocks--;
	}
}

size_t lane_find(const struct lane *lane, size_t hint, int64_t t)
{
	size_t at = 0;
	if (hint >= lane->len || lane->interval[hint].start > t)
		hint = 0;
	BISECT_FROM(at, hint, lane->len, lane->interval[at].start <= t);
	return at > 0 ? at - 1 : 0;
}
