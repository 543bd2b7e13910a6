/* The subcommands of `stealscope latency`, and what they share. */
#ifndef STEALSCOPE_CLI_LATENCY_CMD_H
#define STEALSCOPE_CLI_LATENCY_CMD_H

#include "cli/query_context.h"
#include "latency/latency.h"

int latency_requests(int argc, char **argv, struct error *err);
int latency_train(int argc, char **argv, struct error *err);
int latency_report(int argc, char **argv, struct error *err);
int latency_assert(int argc, char **argv, struct error *err);

/* The requests of WHAT. */
struct asked_requests {
	char *what;              /* borrowed */
	struct requests requests;
	struct origin origin;
};

struct run_options {
	struct window_options when;
	const char *machine, *id;
	const char *model;       /* file, or NULL */
	bool culprits;
	struct report_how how;
};

#define RUN_OPTIONS(o) \
	WINDOW_OPTIONS(&(o)->when), \
	{ "machine", 0, OPT_TEXT, "NAME", "only requests served by this machine", &(o)->machine, NULL }
#define MODEL_OPTION(o) { "model", 'm', OPT_TEXT, "FILE", "predict with this model (latency train)", &(o)->model, NULL }

/* Reads them, and predicts when there is a model.  A history without any request is refused.
 * Call run_release() in any case. */
int run_read(struct asked_requests *r, char *what, const struct run_options *o, struct error *err);
void run_release(struct asked_requests *r);

/* What an answer about several runs rests on; origin_release() it. */
struct origin run_origins(const struct asked_requests *run, size_t n);

/* latency_csv.c: `latency train --csv`. */
struct csv_options {
	const char *baseline, *output;
	const char *latency, *out;   /* columns; NULL: found by name */
	struct opt_list input;       /* columns; empty: all that are numbers */
	unsigned rows;
};
int latency_train_csv(char **file, size_t n, const struct csv_options *o, struct error *err);

#endif
