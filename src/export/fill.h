/* Functions that fill the exported tables from a history, one for each table. Private to export/. */
#pragma once

#include <json-c/json.h>

#include "base/progress.h"
#include "export/sink.h"
#include "query/query.h"

#define FILL_TEXT CELL_TEXT_MAX  /* bytes of an escaped text */

/* Cache of escaped texts; the key is the raw text's address, which does not change while a table is filled. An
 * entry may be replaced by the next text of its bank, so the texts of one row use different banks. */
enum bank { BANK_VICTIM, BANK_CULPRIT, BANK_STATE, BANK_MACHINE, BANK_KIND, BANKS };
#define BANK_TEXTS 64
struct escaped { const char *raw; char text[FILL_TEXT]; };

struct filler {
	const struct catalog *catalog;
	const struct history *h;
	struct json_object *doc;      /* provenance stored in the history */
	int64_t run;                  /* the run's id */
	char **machine;               /* the machines' escaped names, by index in the catalog */
	const struct sink_ops *ops;
	struct sink *sink;
	struct escaped (*escaped)[BANK_TEXTS];  /* [BANKS]: cache */
	uint64_t rows;                /* rows of the current table */
	struct progress progress;
	struct error *err;
};

/* Sets the run id in the first cell and passes the row to the sink. Returns -1 on failure. */
int fill_row(struct filler *f, struct table_cell *cell);
/* Reports progress. Returns -1 if the user cancelled the export. */
int fill_tick(struct filler *f, const char *phase, uint64_t done, uint64_t total);

/* Make cells: a number (null if negative), an escaped text, the name of a machine (null if negative). */
struct table_cell fill_number(int64_t number);
struct table_cell fill_text(struct filler *f, enum bank bank, const char *raw);
struct table_cell fill_machine(const struct filler *f, int32_t machine);

/* Fill one table each. Return -1 on failure. */
int fill_machines(struct filler *f);
int fill_cpus(struct filler *f);
int fill_threads(struct filler *f);
int fill_names(struct filler *f);
int fill_vcpu_states(struct filler *f);
int fill_thread_states(struct filler *f);
int fill_running(struct filler *f);
int fill_exits(struct filler *f);
int fill_gaps(struct filler *f);
int fill_flow(struct filler *f);
int fill_steal(struct filler *f);
int fill_steal_total(struct filler *f);
int fill_core_time(struct filler *f);
int fill_core_sharers(struct filler *f);
int fill_requests(struct filler *f);
int fill_clocks(struct filler *f);
int fill_losses(struct filler *f);
int fill_runs(struct filler *f);
