/* Subcommands of stealscope latency, and functions common to them. */
#pragma once

#include "cli/query_context.h"
#include "latency/latency.h"

int latency_requests(int argc, char **argv, struct error *err);
int latency_traces(int argc, char **argv, struct error *err);
int latency_train(int argc, char **argv, struct error *err);
int latency_report(int argc, char **argv, struct error *err);
int latency_assert(int argc, char **argv, struct error *err);

/* Spans of a file, as requests (latency_spans.c). */
struct span_options {
	const char *file;        /* --spans; NULL: the recording's requests */
	const char *clock_error; /* --clock-error, a duration; NULL: default */
	const char *machine_of;  /* --machine-of, see struct span_clocks; NULL: none */
	bool whole;              /* as in struct spans */
};
#define SPAN_OPTIONS(o) \
	{ "spans", 0, OPT_TEXT, "FILE", "requests from spans (OTLP, Jaeger, Zipkin)", &(o)->file, NULL }, \
	{ "machine-of", 0, OPT_TEXT, "MAP", "KEY=VALUE=MACHINE: machine of spans by attribute", \
	  &(o)->machine_of, NULL }, \
	{ "clock-error", 0, OPT_TEXT, "TIME", "largest clock error of spans and trace", &(o)->clock_error, NULL }
/* Fails if the options contradict each other. *error: the duration, -1: default. */
int span_options_check(const struct span_options *o, int64_t *error, struct error *err);
/* Returns the clocks of the machines of a recording. error: largest error, -1: default. NULL with *err on failure, and if
 * the options name a machine that the recording does not have. */
struct span_clocks *span_clocks_open(const struct catalog *catalog, const struct span_options *o, int64_t error,
                                     struct error *err);
void span_clocks_close(struct span_clocks *clocks);  /* NULL is allowed */
/* Reads the file and converts its spans to requests. Always call spans_release(), and requests_release() if it returns
 * 0. */
int span_requests_read(const struct catalog *catalog, const struct span_options *o, const struct requests_options *options,
                       struct spans *spans, struct requests *out, struct notes *notes, struct error *err);

/* Fails because no span is a request of the recording; the first note contains the reason. */
int span_requests_none(const char *file, const struct notes *notes, struct error *err);

/* A recording's requests. */
struct latency_run {
	char *recording;  /* borrowed */
	struct requests requests;
	struct spans spans;
	char *inputs;     /* names of the model's inputs for people, escaped; NULL: no model */
	struct origin origin;
};

struct run_options {
	struct window_options when;
	const char *machine, *id;
	const char *model;       /* model file; NULL: no predictions */
	bool culprits, cores;    /* determine the culprits; the features of cores and counters */
	struct span_options spans;
	struct report_how how;
};

#define RUN_OPTIONS(o) \
	WINDOW_OPTIONS(&(o)->when), \
	{ "machine", 0, OPT_TEXT, "NAME", "only requests served by this machine", &(o)->machine, NULL }
#define MODEL_OPTION(o) { "model", 'm', OPT_TEXT, "FILE", "predict with this model (latency train)", &(o)->model, NULL }

/* Reads a recording's requests, with predictions if o->model is set. A recording without requests is an error.
 * Always call run_release(). */
int run_read(struct latency_run *r, char *recording, const struct run_options *o, struct error *err);
void run_release(struct latency_run *r);

/* Returns the combined provenance of n runs; call origin_release(). */
struct origin run_origins(const struct latency_run *run, size_t n);

/* Options of latency train --csv (latency_csv.c). */
struct csv_options {
	const char *baseline, *output;
	const char *latency, *out;   /* column names; NULL: default names */
	struct opt_list input;       /* column names; empty: all numeric columns */
	unsigned rows;               /* maximum rows of the model; 0: default */
};
int latency_train_csv(char **file, size_t n, const struct csv_options *o, struct error *err);
