/* Which of several streams, each in order of time, comes next: a tournament.  Every match keeps who lost it, so a stream
 * that goes on meets those on its way up alone, and its number tells which these are: the processor has nothing to guess.
 * Equal times go by the stream's number.  One step: O(log n), or O(1) while the first one stays the first. */
#ifndef STEALSCOPE_BASE_TOURNAMENT_H
#define STEALSCOPE_BASE_TOURNAMENT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>

#include "base/int128.h"
#include "base/mem.h"

struct contender {
	int64_t t;
	uint64_t who;      /* of the stream; with TOURNAMENT_OVER it comes after all that go on */
};

#define TOURNAMENT_OVER (UINT64_C(1) << 32)

struct tournament {
	struct contender first;
	int64_t rival;     /* the first one stays the first before that */
	size_t width;      /* a power of 2, at least as many as there are streams */
	size_t len;        /* that are not over */
	int128 *match;     /* [1, width): the rank of who lost there; of those who won 2 i and 2 i + 1, the final is 1 */
};

/* Its rank: by time, then by number. */
static inline int128 tournament_rank(struct contender c)
{
	return (int128)((uint128)c.t << 64 | c.who);
}

static inline struct contender tournament_of_rank(int128 rank)
{
	return (struct contender){ (int64_t)(rank >> 64), (uint64_t)rank };
}

/* From its place up, whoever loses stays.  Who wins is as good as chance, and compilers make no branch of it here. */
static inline void tournament_play(struct tournament *m, struct contender who)
{
	int128 c = tournament_rank(who);
	for (size_t i = (m->width + (uint32_t)who.who) / 2; i > 0; i /= 2) {
		const int128 other = m->match[i];
		m->match[i] = other < c ? c : other;
		c = other < c ? other : c;
	}
	m->first = tournament_of_rank(c);
	m->rival = INT64_MAX;
	for (size_t i = (m->width + (uint32_t)m->first.who) / 2; i > 0; i /= 2) {
		const int64_t t = (int64_t)(m->match[i] >> 64);
		m->rival = t < m->rival ? t : m->rival;
	}
}

/* Who of n comes first; next[i] is of who = i. */
static inline void tournament_open(struct tournament *m, const struct contender *next, size_t n)
{
	*m = (struct tournament){ .width = 1 };
	while (m->width < n)
		m->width *= 2;
	int128 *won = mem_new(2 * m->width, sizeof *won);
	m->match = mem_new(m->width, sizeof *m->match);
	for (size_t i = 0; i < m->width; i++) {
		const struct contender c = i < n ? next[i] : (struct contender){ INT64_MAX, i | TOURNAMENT_OVER };
		won[m->width + i] = tournament_rank(c);
		m->len += !(c.who & TOURNAMENT_OVER);
	}
	for (size_t i = m->width; i-- > 1;) {
		const bool left = won[2 * i] < won[2 * i + 1];
		won[i] = won[2 * i + !left];
		m->match[i] = won[2 * i + left];
	}
	m->first = tournament_of_rank(won[1]);
	m->rival = INT64_MIN;
	free(won);
}

/* The first one's next time is t; or it is over. */
static inline void tournament_next(struct tournament *m, int64_t t)
{
	if (t < m->rival)
		m->first.t = t;
	else
		tournament_play(m, (struct contender){ t, m->first.who });
}

static inline void tournament_leave(struct tournament *m)
{
	m->len--;
	tournament_play(m, (struct contender){ INT64_MAX, m->first.who | TOURNAMENT_OVER });
}

static inline void tournament_close(struct tournament *m)
{
	free(m->match);
	m->match = NULL;
}

#endif
