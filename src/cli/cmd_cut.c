/* stealscope cut: a part of a history, as a history. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "base/atomic_file.h"
#include "cli/cli.h"
#include "cli/progress_bar.h"
#include "cli/query_context.h"
#include "cli/trace_input.h"

enum { NAMES_KEEP, NAMES_HASH };
static const char *const names_choice[] = { "keep", "hash", NULL };

/* Cuts the list at its commas, where it stands; the caller frees what is returned. */
static const char **split(char *list, size_t *n)
{
	const char **item = NULL;
	size_t cap = 0;
	for (char *name, *at = list; (name = strsep(&at, ","));)
		*ARRAY_PUSH(item, *n, cap) = name;
	return item;
}

/* A part in the place of the whole would be all that is left of it. */
static int refuse_itself(const struct history *h, const char *output, struct error *err)
{
	struct stat from, to;
	if (stat(history_file(h), &from) || stat(output, &to) || from.st_dev != to.st_dev || from.st_ino != to.st_ino)
		return 0;
	return error_set(err, STATUS_USAGE, "choose another name", "%s: is the history that is to be cut", output);
}

static int cut(const char *what, const char *output, const struct window_options *when, struct cut_options *o,
               struct error *err)
{
	char *operand = mem_dup(what);
	struct window window;
	struct progress_bar bar;
	struct history *h = what_open_named(operand, err);
	int rc = h ? window_parse(&window, when, h, err) : -1;
	if (rc == 0)
		rc = refuse_itself(h, output, err);
	if (rc == 0) {
		o->from = window.from;
		o->to = window.to;
		o->progress = progress_bar_begin(&bar, NULL);
		rc = cut_history(h, output, o, err);
		progress_bar_end(&bar);
	}
	free(operand);
	return what_close(h, rc, err);
}

int cmd_cut(int argc, char **argv, struct error *err)
{
	struct window_options when = { 0 };
	struct cut_options o = { 0 };
	const char *output = NULL, *machines = NULL;
	int names = NAMES_KEEP, first;
	const struct opt opt[] = {
		{ "output", 'o', OPT_TEXT, "FILE", "the history file to write", &output, NULL },
		WINDOW_OPTIONS(&when),
		{ "machines", 0, OPT_TEXT, "NAMES", "insides of these VMs and containers alone: A,B", &machines, NULL },
		{ "names", 0, OPT_CHOICE, "HOW", "keep, or hash: no original name stays in it", &names, names_choice },
		{ "key", 0, OPT_TEXT, "FILE", "--names hash: the same hashes in all cuts with it", &o.key, NULL },
	};
	const struct opts opts = { "cut WHAT -o FILE", "A part of a history, as a history with the same answers.", opt,
	                           sizeof opt / sizeof *opt, 1, 1 };
	if (opts_parse(&opts, argc, argv, &first, err))
		return -1;
	if (!output)
		return error_set(err, STATUS_USAGE, "give -o FILE", "cut: no file to write");
	if (o.key && names != NAMES_HASH)
		return error_set(err, STATUS_USAGE, "give --names hash, too", "--key: names are kept");
	if (save_spares(output, history_is_one, "a history", err))
		return -1;
	char *list = mem_dup(machines ? machines : "");
	o.machine = machines ? split(list, &o.machines) : NULL;
	o.aliases = names == NAMES_HASH;
	int rc = cut(argv[first], output, &when, &o, err);
	if (rc == 0)
		printf("%s\n", output);
	free((void *)o.machine);
	free(list);
	return rc;
}
