
#include <stdarg.h>

#include "base/base.h"

enum { LINE = 64 };  /* cache line of most processors, bytes */

void *mem_checked(void *p)
{
	if (!p) {
		fputs("stealscope: out of memory (free memory, or raise its limit: ulimit -v)\n", stderr);
		exit(STATUS_SYSTEM);
	}
	return p;
}

void *mem_new(size_t n, size_t size)
{
	return mem_checked(calloc(n ? n : 1, size ? size : 1));
}

void *mem_cache_lines(size_t bytes)
{
	const size_t rounded = (bytes + LINE - 1) / LINE * LINE;
	return memset(mem_checked(aligned_alloc(LINE, rounded)), 0, rounded);
}

void *mem_resize(void *p, size_t n, size_t size)
{
	if (size && n > SIZE_MAX / 2 / size)
		return mem_checked(NULL);
	size_t bytes = n * size;
	return mem_checked(realloc(p, bytes ? bytes : 1));
}

char *mem_dup(const char *s)
{
	return s ? mem_checked(strdup(s)) : NULL;
}

char *mem_printf(const char *fmt, ...)
{
	va_list ap;
	va_start(ap, fmt);
	char *s = NULL;
	if (vasprintf(&s, fmt, ap) < 0)
		s = NULL;
	va_end(ap);
	return mem_checked(s);
}

void *array_grow(void *array, size_t *cap, size_t len, size_t size)
{
	if (len < *cap)
		return array;
	*cap = *cap ? 2 * *cap : 8;
	return mem_resize(array, *cap, size);
}
