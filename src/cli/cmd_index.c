/* stealscope index: build the state history of traces. */
#include <stdio.h>
#include <stdlib.h>

#include "cli/build.h"
#include "cli/cli.h"

int cmd_index(int argc, char **argv, struct error *err)
{
	struct input in = { 0 };
	const char *output = NULL;
	const struct opt opt[] = {
		{ "output", 'o', OPT_TEXT, "FILE", "the history file (default: the traces' cache)", &output, NULL },
		INPUT_OPTIONS(&in),
	};
	const struct opts opts = { "index WHAT...", "Builds the state history of the traces below WHAT.", opt,
	                           sizeof opt / sizeof *opt, 0, -1 };
	int first;
	if (opts_parse(&opts, argc, argv, &first, err))
		return -1;
	in.what = argv + first;
	in.whats = argc - first;
	int rc = input_resolve(&in, err);
	char *cache = NULL;
	if (rc == 0 && !output) {
		output = cache = cache_path(&in, err);
		rc = output ? 0 : -1;
	}
	if (rc == 0)
		rc = build_history(&in, output, err);
	if (rc == 0)
		printf("%s\n", output);
	free(cache);
	input_release(&in);
	return rc;
}
