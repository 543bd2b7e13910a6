/* Functions of the SQLite library, which is loaded at run time. Private to export/. */
#pragma once

#include <sqlite3.h>

#include "base/dlopen_library.h"

#define SQLITE_CALLS(CALL) \
	CALL(sqlite3_, bind_double) CALL(sqlite3_, bind_int64) CALL(sqlite3_, bind_null) CALL(sqlite3_, bind_text) \
	CALL(sqlite3_, busy_timeout) CALL(sqlite3_, close) CALL(sqlite3_, column_count) CALL(sqlite3_, column_text) \
	CALL(sqlite3_, errcode) CALL(sqlite3_, errmsg) CALL(sqlite3_, exec) CALL(sqlite3_, finalize) \
	CALL(sqlite3_, open_v2) CALL(sqlite3_, prepare_v2) CALL(sqlite3_, reset) CALL(sqlite3_, step)
struct sqlite_calls { SQLITE_CALLS(LIBRARY_POINTER) };
extern struct sqlite_calls sqlite;  /* set by sqlite_load() */

/* Loads the library. Returns -1 with *err on failure. */
int sqlite_load(struct error *err);
