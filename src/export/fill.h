/* What fills the tables from a history.  Private to export/. */
#ifndef STEALSCOPE_EXPORT_FILL_H
#define STEALSCOPE_EXPORT_FILL_H

#include <json-c/json.h>

#include "base/progress.h"
#include "export/sink.h"
#include "query/query.h"

#define FILL_TEXT CELL_TEXT_MOST  /* bytes of an escaped text */

/* Escaped texts used lately, by the addresses of the raw ones, which stay where they are while a table is filled.  Texts of
 * one row come from different banks. */
enum bank { BANK_VICTIM, BANK_THIEF, BANK_STATE, BANKS };
#define BANK_TEXTS 64
struct escaped { const char *raw; char text[FILL_TEXT]; };

struct filler {
	const struct topo *topo;
	const struct history *h;
	struct json_object *doc;      /* what the history says of its origin */
	int64_t run;
	char **machine;               /* escaped names, by index */
	const struct sink_ops *ops;
	struct sink *sink;
	struct escaped (*escaped)[BANK_TEXTS];  /* [BANKS] */
	uint64_t rows;                /* of the table at hand */
	struct progress progress;
	struct error *err;
};

/* A row of the table at hand; the number of the run is put into its first cell.  -1 on failure. */
int fill_row(struct filler *f, struct table_cell *cell);
/* Now and then in long tables: -1 when the user cancelled. */
int fill_tick(struct filler *f, const char *phase, uint64_t done, uint64_t total);

/* Cells of what may be absent: numbers below 0, nobody. */
struct table_cell fill_number(int64_t number);
struct table_cell fill_text(struct filler *f, enum bank bank, const char *raw);
struct table_cell fill_machine(const struct filler *f, int32_t machine);

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
int fill_taken(struct filler *f);
int fill_requests(struct filler *f);
int fill_clocks(struct filler *f);
int fill_losses(struct filler *f);
int fill_runs(struct filler *f);

#endif
