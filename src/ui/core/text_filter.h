/* Matches texts against what the user typed after \ or /: a part of the text, or after ~ a regular expression. */
#pragma once

#include <stdbool.h>

/* Returns true if the text matches the filter; case is ignored. "~REGEX": extended regular expression, as in egrep -i;
 * an invalid one matches nothing. The last expression stays compiled: call from one thread only. */
bool filter_matches(const char *text, const char *filter);
bool filter_is_regex(const char *filter);
