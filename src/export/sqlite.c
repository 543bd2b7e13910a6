#include "export/sqlite.h"

#include <stddef.h>

struct sqlite_calls sqlite;

int sqlite_load(struct error *err)
{
	static const char *const name[] = { SQLITE_CALLS(LIBRARY_NAME) NULL };
	return library_load(SQLITE_FILE, "libsqlite3", name, &sqlite, err);
}
