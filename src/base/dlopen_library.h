/* Libraries that few commands need, loaded by the first that does: what is linked to, every start waits for (HACKING has
 * the figures).
 *
 * A list of functions, as CALL(prefix, name), makes the struct of pointers and the names to look up:
 *
 *     #define FOO_CALLS(CALL) CALL(foo_, open) CALL(foo_, close)
 *     static struct { FOO_CALLS(ON_DEMAND_POINTER) } foo;
 *     static const char *const foo_names[] = { FOO_CALLS(ON_DEMAND_NAME) NULL };
 *     if (on_demand("libfoo.so.1", "libfoo", foo_names, &foo, err) == 0)
 *             foo.open();
 */
#ifndef STEALSCOPE_BASE_DLOPEN_LIBRARY_H
#define STEALSCOPE_BASE_DLOPEN_LIBRARY_H

#include "base/error.h"

#define ON_DEMAND_POINTER(prefix, name) __typeof__(prefix##name) *name;
#define ON_DEMAND_NAME(prefix, name) #prefix #name,

/* file: the library's soname, which configure finds; package: what to install where it is not there.  Fills the pointers,
 * one for each name up to NULL; -1 and *err where that is impossible.  The library stays; loading it again costs a look-up
 * of each name.  Not for two threads at a time. */
int on_demand(const char *file, const char *package, const char *const *name, void *pointers, struct error *err);

#endif
