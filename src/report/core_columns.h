/* Columns of the time that a row shared its core, ran slowly or far from its memory (query.h, Shared cores). A table has
 * them only if the history contains the host's topology, and only those that it allows. Private to report/. */
#pragma once

#include "report/report.h"

#define CORE_COLUMNS 18  /* limit of the number of columns */

/* Fills out[] with the columns; returns their number: 0 if share is NULL. */
size_t core_columns(const struct core_share *share, struct column out[CORE_COLUMNS]);
/* Fills out[] with the values of these columns for a row of the answer. sharer: buffer for a name. */
void core_values(const struct catalog *catalog, const struct core_share *share, size_t row, int format,
                 char sharer[ACTOR_TEXT], struct value out[CORE_COLUMNS]);

/* Returns instructions per cycle; no value if unknown. */
struct value core_ipc_value(const struct core_counts *counts);
