/* Descriptions of common terminals, compiled in: for machines without a terminfo database, and for terminals newer than
 * the machine's database. */
#pragma once

/* Finds a description for a terminal type without an entry in the database. On success, sets $TERMINFO to the
 * description, so that ncurses reads it from there, and returns its name, a static string. Returns NULL if no
 * description fits. Not thread-safe. */
const char *terminfo_fallback(const char *type);
