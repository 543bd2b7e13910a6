/* The shipped layouts, compiled in: embed.awk converts layouts/(name).yaml to layout_texts.h. */
#include "trace/layout/layout.h"

#include <string.h>

#include "base/mem.h"
#include "trace/layout_texts.h"

const char *layout_shipped(size_t i)
{
	return i < sizeof shipped / sizeof *shipped ? shipped[i].name : NULL;
}

char *layout_shipped_text(size_t i)
{
	size_t len = 0;
	for (const char *const *line = shipped[i].line; *line; line++)
		len += strlen(*line);
	char *text = mem_new(len + 1, 1), *end = text;
	for (const char *const *line = shipped[i].line; *line; line++) {
		size_t n = strlen(*line);
		memcpy(end, *line, n);
		end += n;
	}
	return text;
}
