/* "Did you mean": finds the known word that is closest to a mistyped one. */
#pragma once

#include <stddef.h>

/* Counts the letters to insert, delete, change or swap with their neighbour to turn a into b, ignoring case;
 * max_distance + 1 if it is larger than max_distance. */
size_t suggest_distance(const char *a, const char *b, size_t max_distance);

struct suggestion {
	const char *typed;
	const char *nearest;     /* best match of the words compared, borrowed; NULL: none is close */
	size_t distance;
};
#define SUGGESTION(typed) { (typed), NULL, 0 }

/* Compares another word; it matches if at most a third of the letters differ. */
void suggest(struct suggestion *s, const char *word);
