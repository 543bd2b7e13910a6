/* Files of sinks that write a directory for each table, with a file for each run: DIR/TABLE/RUN.SUFFIX. Many tools read
 * such a directory as one table. Private to export/. */
#ifndef STEALSCOPE_EXPORT_RUN_FILES_H
#define STEALSCOPE_EXPORT_RUN_FILES_H

#include <stdbool.h>

#include "base/atomic_file.h"
#include "export/sink.h"

struct run_files {
	char *dir, *path;    /* path: of the current table's file, for messages; NULL: none */
	const char *suffix;  /* "csv" */
	int64_t run;
	int fd, table_fd;    /* directories: DIR, DIR/TABLE of the current table */
	bool open;           /* a table's file is open */
	struct save save;    /* file of the current table, if `open`: save.f */
};

/* Creates DIR. On failure there is nothing to close. */
int files_open(struct run_files *f, const char *dir, const char *suffix, int64_t run, struct error *err);
/* Creates a table's file. */
int files_begin(struct run_files *f, const struct export_shape *t, struct error *err);
/* Closes the table's file; it appears under its name only if status is 0. */
int files_end(struct run_files *f, int status, struct error *err);
/* Discards an open file and frees f's memory. */
void files_close(struct run_files *f);

#endif
