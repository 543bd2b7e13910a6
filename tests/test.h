/* What every cmocka test needs, in the order cmocka wants. */
#ifndef STEALSCOPE_TESTS_TEST_H
#define STEALSCOPE_TESTS_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Seconds that a test may take; PATIENCE times as many where programs are emulated. */
static inline unsigned patiently(unsigned s)
{
	const char *factor = getenv("PATIENCE");
	return factor ? s * (unsigned)atoi(factor) : s;
}

#define COUNT(array) (sizeof(array) / sizeof *(array))

#endif
