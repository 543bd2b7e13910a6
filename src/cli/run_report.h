/* The result of `stealscope run`: one line, and a form for CI systems. */
#pragma once

#include "cli/run_tally.h"

enum run_format { RUN_TEXT, RUN_CSV, RUN_JSON, RUN_JUNIT, RUN_GITHUB };

struct run_result {
	const char *command;
	int status;                /* its exit status as a shell shows it */
	bool failed;               /* an assertion does not hold */
	const char *limits;        /* why BPF is not used; NULL: it is */
	struct run_tally tally;
};

/* Writes the line to standard error, and another form to a file (NULL: standard output). */
int run_report(const struct run_result *r, enum run_format format, const char *file, struct error *err);
