#include "base/mem.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

enum { LINE = 64 };  /* bytes of a cache's line on most processors */

static void *checked(void *p)
{
	if (!p) {
		fputs("stealscope: out of memory (free memory, or raise its limit: ulimit -v)\n", stderr);
		exit(STATUS_SYSTEM);
	}
	return p;
}

void *mem_new(size_t n, size_t size)
{
	return checked(calloc(n ? n : 1, size ? size : 1));
}

void *mem_lines(size_t bytes)
{
	const size_t whole = (bytes + LINE - 1) / LINE * LINE;
	return memset(checked(aligned_alloc(LINE, whole)), 0, whole);
}

void *mem_resize(void *p, size_t n, size_t size)
{
	if (size && n > SIZE_MAX / 2 / size)
		return checked(NULL);
	size_t bytes = n * size;
	return checked(realloc(p, bytes ? bytes : 1));
}

char *mem_dup(const char *s)
{
	return s ? checked(strdup(s)) : NULL;
}

char *mem_printf(const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	char *s = NULL;
	if (vasprintf(&s, fmt, ap) < 0)
		s = NULL;
	va_end(ap);
	return checked(s);
}

void *mem_room(void *array, size_t *cap, size_t len, size_t size)
{
	if (len < *cap)
		return array;
	*cap = *cap ? 2 * *cap : 8;
	return mem_resize(array, *cap, size);
}
