/* Options of a subcommand as a table: it drives the parsing (getopt_long) and `--help`. */
#ifndef STEALSCOPE_CLI_OPTS_H
#define STEALSCOPE_CLI_OPTS_H

#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

enum opt_kind {
	OPT_FLAG,      /* bool *: set to true */
	OPT_TEXT,      /* const char **: borrowed from argv */
	OPT_LIST,      /* struct opt_list *: every occurrence appended */
	OPT_COUNT,     /* unsigned *: a number >= 0 */
	OPT_PERCENT,   /* double *: a share 0..1, written as "1", "0.5%" or "1%" (percent) */
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
	const char *help;
	void *dest;
	const char *const *choice;   /* OPT_CHOICE; OPT_TEXT: what is usual, for completion; NULL-terminated */
};

struct opts {
	const char *usage;           /* "flow WHAT VM/TID" */
	const char *about;           /* one line */
	const struct opt *opt;
	size_t len;
	int least, most;             /* operands allowed; most < 0: no limit */
};

/* struct report_how *. */
#define ANSWER_OPTIONS(how) \
	{ "format", 0, OPT_CHOICE, "FORMAT", "text, csv or json", &(how)->format, report_formats }, \
	{ "limit", 0, OPT_COUNT, "N", "json: at most N rows (default 10000; 0 = all)", &(how)->limit, NULL }, \
	{ "after", 0, OPT_TEXT, "NEXT", "json: the page behind the one that said this is next", &(how)->after, NULL }

/* Parses; operands are then argv[*first .. argc - 1].  Prints help and exits 0 on --help, words
 * likewise on complete_is_asked(). */
int opts_parse(const struct opts *o, int argc, char **argv, int *first, struct error *err);

#endif
