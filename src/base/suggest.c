#include "base/suggest.h"

#include <ctype.h>

#include "base/base.h"

#define WORD_MAX 64  /* most bytes of a word that are compared */

static int lower_letter(char c)
{
	return tolower((unsigned char)c);
}

static size_t min_distance(size_t a, size_t b)
{
	return a < b ? a : b;
}

/* Computes the optimal string alignment distance: row i has the distances between the two_before i letters of a and all
 * prefixes of b. */
size_t suggest_distance(const char *a, const char *b, size_t max_distance)
{
	size_t n = strnlen(a, WORD_MAX), m = strnlen(b, WORD_MAX);
	size_t row[3][WORD_MAX + 1];
	for (size_t j = 0; j <= m; j++)
		row[0][j] = j;
	for (size_t i = 1; i <= n; i++) {
		size_t *current = row[i % 3], *before = row[(i + 2) % 3], *two_before = row[(i + 1) % 3];
		current[0] = i;
		for (size_t j = 1; j <= m; j++) {
			bool same = lower_letter(a[i - 1]) == lower_letter(b[j - 1]);
			current[j] = min_distance(min_distance(before[j], current[j - 1]) + 1, before[j - 1] + !same);
			if (i > 1 && j > 1 && lower_letter(a[i - 1]) == lower_letter(b[j - 2]) &&
			    lower_letter(a[i - 2]) == lower_letter(b[j - 1]))
				current[j] = min_distance(current[j], two_before[j - 2] + 1);
		}
	}
	return min_distance(row[n % 3][m], max_distance + 1);
}

void suggest(struct suggestion *s, const char *word)
{
	size_t max_distance = strnlen(s->typed, WORD_MAX) / 3;
	max_distance = s->nearest && s->distance ? min_distance(max_distance, s->distance - 1) : max_distance;
	size_t distance = suggest_distance(s->typed, word, max_distance);
	if (distance > max_distance || (s->nearest && distance >= s->distance))
		return;
	s->nearest = word;
	s->distance = distance;
}
