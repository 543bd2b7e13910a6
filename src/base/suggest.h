/* "Did you mean": the word nearest to what somebody typed. */
#ifndef STEALSCOPE_BASE_SUGGEST_H
#define STEALSCOPE_BASE_SUGGEST_H

#include <stddef.h>

/* How many letters must be added, dropped, changed or swapped with their neighbour to make b of a (upper and lower case
 * are one); at most `most` + 1, which says "more". */
size_t suggest_distance(const char *a, const char *b, size_t most);

struct suggestion {
	const char *typed;
	const char *nearest;  /* so far, borrowed; NULL: none is near */
	size_t distance;
};
#define SUGGESTION(typed) { (typed), NULL, 0 }

/* Looks at another word; it counts when no more than a third of the letters are wrong. */
void suggest(struct suggestion *s, const char *word);

#endif
