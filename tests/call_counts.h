/* Counts calls of malloc and of pthread_mutex_lock while `counting` is set. Replaces these functions in the program that
 * includes it; sanitizers keep their own malloc. */
#pragma once

#include <dlfcn.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

#include "slice.h"

static _Atomic bool counting;
static _Atomic unsigned allocations, locks;

#if !defined(__SANITIZE_ADDRESS__) && !__has_feature(address_sanitizer)
extern void *__libc_malloc(size_t n), *__libc_calloc(size_t n, size_t size), *__libc_realloc(void *p, size_t n);

void *malloc(size_t n)
{
	allocations += counting;
	return __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
	allocations += counting;
	return __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
	allocations += counting;
	return __libc_realloc(p, n);
}
#endif

int pthread_mutex_lock(pthread_mutex_t *m)
{
	static int (*real)(pthread_mutex_t *);
	if (!real)
		*(void **)&real = dlsym(RTLD_NEXT, "pthread_mutex_lock");
	locks += counting;
	return real(m);
}
