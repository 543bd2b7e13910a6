/* stealscope cut: saves a window, and some machines, of a history as a smaller history file. */
#include <sys/stat.h>

#include "base/atomic_file.h"
#include "base/base.h"
#include "cli/cli.h"
#include "cli/progress_bar.h"
#include "cli/query_context.h"
#include "cli/trace_input.h"

enum { NAMES_ORIGINAL, NAMES_HASH };
static const char *const names_choice[] = { "keep", "hash", NULL };

/* Splits a list at its commas in place. Returns the items, which the caller frees; *n: their number. */
static const char **split_list(char *list, size_t *n)
{
	const char **item = NULL;
	size_t cap = 0;
	for (char *name, *at = list; (name = strsep(&at, ","));)
		*ARRAY_PUSH(item, *n, cap) = name;
	return item;
}

/* Returns -1 if the output file is the input history. */
static int check_not_input(const struct history *h, const char *output, struct error *err)
{
	struct stat from, to;
	if (stat(history_file(h), &from) || stat(output, &to) || from.st_dev != to.st_dev || from.st_ino != to.st_ino)
		return 0;
	return error_set(err, STATUS_USAGE, "choose another name", "%s: the output file is the input history", output);
}

static int run_cut(const char *recording, const char *output, const struct window_options *when, struct cut_options *o,
               struct error *err)
{
	char *operand = mem_dup(recording);
	struct window window;
	struct progress_bar bar;
	struct history *h = trace_input_open_named(operand, err);
	int rc = h ? window_parse(&window, when, h, err) : -1;
	if (rc == 0)
		rc = check_not_input(h, output, err);
	if (rc == 0) {
		o->from = window.from;
		o->to = window.to;
		o->progress = progress_bar_begin(&bar, NULL);
		rc = cut_history(h, output, o, err);
		progress_bar_end(&bar);
	}
	free(operand);
	return trace_input_close(h, rc, err);
}

int cmd_cut(int argc, char **argv, struct error *err)
{
	struct window_options when = { 0 };
	struct cut_options o = { 0 };
	const char *output = NULL, *machines = NULL;
	int names = NAMES_ORIGINAL, first;
	const struct opt opt[] = {
		{ "output", 'o', OPT_TEXT, "FILE", "the history file to write", &output, NULL },
		WINDOW_OPTIONS(&when),
		{ "machines", 0, OPT_TEXT, "NAMES", "only the threads of these VMs and containers: A,B", &machines, NULL },
		{ "names", 0, OPT_CHOICE, "HOW", "keep, or hash: remove all original names", &names, names_choice },
		{ "key", 0, OPT_TEXT, "FILE", "--names hash: key file for equal hashes in several cuts", &o.key, NULL },
	};
	const struct opts opts = { "cut RECORDING -o FILE", "Save a part of a history as a smaller file to share.", opt,
	                           sizeof opt / sizeof *opt, 1, 1 };
	if (opts_parse(&opts, argc, argv, &first, err))
		return -1;
	if (!output)
		return error_set(err, STATUS_USAGE, "use -o FILE", "cut: no output file specified");
	if (o.key && names != NAMES_HASH)
		return error_set(err, STATUS_USAGE, "add --names hash", "--key requires --names hash");
	if (refuse_overwrite(output, history_is_history_file, "a history", err))
		return -1;
	char *list = mem_dup(machines ? machines : "");
	o.machine = machines ? split_list(list, &o.machines) : NULL;
	o.aliases = names == NAMES_HASH;
	int rc = run_cut(argv[first], output, &when, &o, err);
	if (rc == 0)
		printf("%s\n", output);
	free((void *)o.machine);
	free(list);
	return rc;
}
