#include "ui/core/text_filter.h"

#include <regex.h>

#include "base/base.h"

bool filter_is_regex(const char *filter)
{
	return filter[0] == '~';
}

bool filter_matches(const char *text, const char *filter)
{
	static struct { char filter[64]; regex_t re; bool compiled; } last;
	if (!filter_is_regex(filter))
		return strcasestr(text, filter) != NULL;
	if (strncmp(last.filter, filter, sizeof last.filter - 1) != 0) {
		if (last.compiled)
			regfree(&last.re);
		snprintf(last.filter, sizeof last.filter, "%.63s", filter);
		last.compiled = regcomp(&last.re, last.filter + 1, REG_EXTENDED | REG_ICASE | REG_NOSUB) == 0;
	}
	return last.compiled && regexec(&last.re, text, 0, NULL, 0) == 0;
}
