#include "base/notes.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/text.h"

void notes_add(struct notes *n, const char *fmt, ...)
{
	if (!n)
		return;
	char raw[512], line[768];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(raw, sizeof raw, fmt, ap);
	va_end(ap);
	*ARRAY_PUSH(n->line, n->len, n->cap) = mem_dup(text_escape(line, sizeof line, raw));
}

void notes_release(struct notes *n)
{
	for (size_t i = 0; i < n->len; i++)
		free(n->line[i]);
	free(n->line);
	*n = (struct notes){ 0 };
}
