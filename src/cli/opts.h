/* Option table of a subcommand, used for parsing, --help and completion. */
#pragma once

#include "base/base.h"

enum opt_kind {
	OPT_FLAG,      /* bool *: set to true */
	OPT_TEXT,      /* const char **: borrowed from argv */
	OPT_LIST,      /* struct opt_list *: each occurrence is appended */
	OPT_COUNT,     /* unsigned *: a number >= 0 */
	OPT_PERCENT,   /* double *: a share 0..1; the argument is in percent: "1", "0.5%" */
	OPT_CHOICE,    /* int *: index into `choice`, a NULL-terminated array */
};

struct opt_list {
	const char **item;
	size_t len, cap;
};

struct opt {
	const char *name;            /* without "--" */
	char letter;                 /* short form, or 0 */
	enum opt_kind kind;
	const char *arg;             /* name of the argument in the help */
	const char *help;            /* NULL: the help omits the option; stealscope(1) describes it */
	void *dest;                  /* the value's destination, see opt_kind */
	const char *const *choice;   /* OPT_CHOICE: allowed values; OPT_TEXT: common values for completion; NULL-terminated */
};

struct opts {
	const char *usage;           /* "flow RECORDING VM/TID" */
	const char *about;           /* one line */
	const struct opt *opt;
	size_t len;
	int min_operands, max_operands;  /* operand count; max_operands < 0: no limit */
};

/* Options of commands that print an answer; how: struct report_how *. */
#define ANSWER_OPTIONS(how) \
	{ "format", 0, OPT_CHOICE, "FORMAT", "text, csv or json (also --limit, --after)", &(how)->format, \
	  report_formats }, \
	{ "limit", 0, OPT_COUNT, "N", NULL, &(how)->limit, NULL }, \
	{ "after", 0, OPT_TEXT, "NEXT", NULL, &(how)->after, NULL }

/* Parses the command line; the operands are then argv[*first .. argc - 1]. Handles --help and completion and exits with
 * status 0. */
int opts_parse(const struct opts *o, int argc, char **argv, int *first, struct error *err);
