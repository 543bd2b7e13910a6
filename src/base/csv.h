/* The fields of one line of csv.  In a header, because the marking library takes nothing else from base/. */
#ifndef STEALSCOPE_BASE_CSV_H
#define STEALSCOPE_BASE_CSV_H

#include <stdbool.h>
#include <stddef.h>

/* Takes the next field off *s, unquoted in place; NULL when none is left.  Quotes are understood around a field
 * ("" inside is one quote); a line break ends the line wherever it stands. */
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

#endif
