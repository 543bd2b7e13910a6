/* Access to libbabeltrace2: its CTF plugin and its errors. */
#pragma once

#include <babeltrace2/babeltrace.h>

#include "base/error.h"

/* Finds the plugin and disables the library's log. Thread-safe. Returns 0 or -1. */
int library_find_ctf(const bt_plugin **plugin, struct error *err);

/* Moves the calling thread's libbabeltrace2 error to *err as "OBJECT: REASON". The reason is the root cause without
 * trailing details (addresses, component names). Returns -1. */
int library_error(struct error *err, const char *object);
