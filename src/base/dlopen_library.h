/* Libraries that only few commands need, loaded with dlopen() when a command needs them: every linked library slows down
 * every start (measured in doc/architecture.md).
 *
 * A list of functions, as CALL(prefix, name), defines the struct of pointers and the names to look up:
 *
 *     #define FOO_CALLS(CALL) CALL(foo_, open) CALL(foo_, close)
 *     static struct { FOO_CALLS(LIBRARY_POINTER) } foo;
 *     static const char *const foo_names[] = { FOO_CALLS(LIBRARY_NAME) NULL };
 *     if (library_load("libfoo.so.1", "libfoo", foo_names, &foo, err) == 0)
 *             foo.open(); */
#pragma once

#include "base/error.h"

#define LIBRARY_POINTER(prefix, name) __typeof__(prefix##name) *name;
#define LIBRARY_NAME(prefix, name) #prefix #name,

/* Loads a library and fills one pointer for each name up to NULL. file: soname, found by configure; package: package to
 * install if the library is missing. Returns 0, or -1 with *err if the library or a function is missing. The library
 * stays loaded; another call costs one look-up per name. Not thread-safe. */
int library_load(const char *file, const char *package, const char *const *name, void *pointers, struct error *err);
