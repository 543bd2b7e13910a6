/* A folder for each table and in it a file for each run, DIR/TABLE/RUN.SUFFIX, as tools that read a folder as one table
 * want it.  Private to export/. */
#ifndef STEALSCOPE_EXPORT_RUN_FILES_H
#define STEALSCOPE_EXPORT_RUN_FILES_H

#include <stdbool.h>

#include "base/atomic_file.h"
#include "export/sink.h"

struct run_files {
	char *dir;
	const char *suffix;  /* "csv" */
	int64_t run;
	bool open;
	struct save save;    /* while open: save.f, save.path */
};

/* Makes DIR.  On failure there is nothing to close. */
int files_open(struct run_files *f, const char *dir, const char *suffix, int64_t run, struct error *err);
/* The file of a table appears when it has ended with status 0. */
int files_begin(struct run_files *f, const struct export_shape *t, struct error *err);
int files_end(struct run_files *f, int status, struct error *err);
void files_close(struct run_files *f);

#endif
