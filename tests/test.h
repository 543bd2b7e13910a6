/* Headers that every cmocka test needs, in the order that cmocka requires. */
#pragma once

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Returns the time limit of a test, s: multiplied by PATIENCE if set, for emulated programs. */
static inline unsigned timeout_seconds(unsigned s)
{
	const char *factor = getenv("PATIENCE");
	return factor ? s * (unsigned)atoi(factor) : s;
}

#define COUNT(array) (sizeof(array) / sizeof *(array))
