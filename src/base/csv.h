/* Splits a line of csv into fields. A header only, because the marking library links nothing else of base/. */
#pragma once

#include <stdbool.h>
#include <stddef.h>

/* Returns the next field of *s, unquoted in place, and advances *s; NULL: no more fields. A field may be quoted (""
 * inside is one quote); a line break always ends the line. */
static inline char *csv_field(char **s)
{
	if (!*s)
		return NULL;
	char *field = *s, *to = field, *from = field;
	bool quoted = *from == '"';
	if (quoted)
		from++;
	for (; *from && *from != '\n' && *from != '\r'; from++) {
		if (quoted && *from == '"') {
			if (from[1] != '"') {
				quoted = false;
				continue;
			}
			from++;
		} else if (!quoted && *from == ',') {
			break;
		}
		*to++ = *from;
	}
	*s = *from == ',' ? from + 1 : NULL;
	*to = '\0';
	return field;
}
