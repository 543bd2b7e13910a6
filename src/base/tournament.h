/* Tournament tree of losers: merges sorted streams. Each match stores its loser, so a stream that advances replays only
 * the matches on its path to the root, which depend only on its number: no unpredictable branches. Equal times are
 * ordered by stream number. A step costs O(log n), or O(1) while the same stream stays first. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/int128.h"
#include "base/mem.h"

struct contender {
	int64_t t;
	uint64_t stream;         /* number of the stream; with TOURNAMENT_ENDED (the stream has ended) it is ordered after all
	                          * others */
};

#define TOURNAMENT_ENDED (UINT64_C(1) << 32)

struct tournament {
	struct contender first;
	int64_t runner_up;       /* the first stream stays first until this time, ns */
	size_t width;      /* a power of 2, at least the stream count */
	size_t len;              /* streams that have not ended */
	int128 *match;           /* match[i], 1 <= i < width: rank of the loser of the match between the winners of matches 2
	                          * i and 2 i + 1; match 1 is the final */
};

/* Returns a contender's rank: by time, then by stream number. */
static inline int128 tournament_rank(struct contender c)
{
	return (int128)((uint128)c.t << 64 | c.stream);
}

static inline struct contender tournament_from_rank(int128 rank)
{
	return (struct contender){ (int64_t)(rank >> 64), (uint64_t)rank };
}

/* Replays the matches from a stream's leaf to the root. Winners are as good as random, so compilers must not branch on
 * them. */
static inline void tournament_play(struct tournament *m, struct contender next)
{
	int128 c = tournament_rank(next);
	for (size_t i = (m->width + (uint32_t)next.stream) / 2; i > 0; i /= 2) {
		const int128 other = m->match[i];
		m->match[i] = other < c ? c : other;
		c = other < c ? other : c;
	}
	m->first = tournament_from_rank(c);
	m->runner_up = INT64_MAX;
	for (size_t i = (m->width + (uint32_t)m->first.stream) / 2; i > 0; i /= 2) {
		const int64_t t = (int64_t)(m->match[i] >> 64);
		m->runner_up = t < m->runner_up ? t : m->runner_up;
	}
}

/* Sets up the tree for n streams; next[i].stream must be i. */
static inline void tournament_open(struct tournament *m, const struct contender *next, size_t n)
{
	*m = (struct tournament){ .width = 1 };
	while (m->width < n)
		m->width *= 2;
	int128 *won = mem_new(2 * m->width, sizeof *won);
	m->match = mem_new(m->width, sizeof *m->match);
	for (size_t i = 0; i < m->width; i++) {
		const struct contender c = i < n ? next[i] : (struct contender){ INT64_MAX, i | TOURNAMENT_ENDED };
		won[m->width + i] = tournament_rank(c);
		m->len += !(c.stream & TOURNAMENT_ENDED);
	}
	for (size_t i = m->width; i-- > 1;) {
		const bool left_wins = won[2 * i] < won[2 * i + 1];
		won[i] = won[2 * i + !left_wins];
		m->match[i] = won[2 * i + left_wins];
	}
	m->first = tournament_from_rank(won[1]);
	m->runner_up = INT64_MIN;
	free(won);
}

/* Sets the time of the first stream's next element; tournament_leave() ends the stream instead. */
static inline void tournament_next(struct tournament *m, int64_t t)
{
	if (t < m->runner_up)
		m->first.t = t;
	else
		tournament_play(m, (struct contender){ t, m->first.stream });
}

static inline void tournament_leave(struct tournament *m)
{
	m->len--;
	tournament_play(m, (struct contender){ INT64_MAX, m->first.stream | TOURNAMENT_ENDED });
}

static inline void tournament_close(struct tournament *m)
{
	free(m->match);
	m->match = NULL;
}
