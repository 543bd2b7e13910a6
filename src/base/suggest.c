#include "base/suggest.h"

#include <ctype.h>
#include <stdbool.h>
#include <string.h>

#define LONGEST 64  /* bytes of a word that are compared */

static int lower(char c)
{
	return tolower((unsigned char)c);
}

static size_t least(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Optimal string alignment: row i holds the distances of the first i letters of a to all beginnings of b. */
size_t suggest_distance(const char *a, const char *b, size_t most)
{
	size_t n = strnlen(a, LONGEST), m = strnlen(b, LONGEST);
	size_t row[3][LONGEST + 1];
	for (size_t j = 0; j <= m; j++)
		row[0][j] = j;
	for (size_t i = 1; i <= n; i++) {
		size_t *now = row[i % 3], *before = row[(i + 2) % 3], *first = row[(i + 1) % 3];
		now[0] = i;
		for (size_t j = 1; j <= m; j++) {
			bool same = lower(a[i - 1]) == lower(b[j - 1]);
			now[j] = least(least(before[j], now[j - 1]) + 1, before[j - 1] + !same);
			if (i > 1 && j > 1 && lower(a[i - 1]) == lower(b[j - 2]) && lower(a[i - 2]) == lower(b[j - 1]))
				now[j] = least(now[j], first[j - 2] + 1);
		}
	}
	return least(row[n % 3][m], most + 1);
}

void suggest(struct suggestion *s, const char *word)
{
	size_t most = strnlen(s->typed, LONGEST) / 3;
	most = s->nearest && s->distance ? least(most, s->distance - 1) : most;
	size_t distance = suggest_distance(s->typed, word, most);
	if (distance > most || (s->nearest && distance >= s->distance))
		return;
	s->nearest = word;
	s->distance = distance;
}
