/* The list of the recordings in a directory, one verdict per line: a screen, or text where stdout is no terminal. */
#pragma once

#include "index/index.h"
#include "ui/ui.h"

/* Shows or prints the recordings of `dir`. Reads the unread ones meanwhile, in child processes, and keeps the lines in
 * the user's cache. Returns 0, or -1. */
int recording_list_run(const char *dir, const struct recordings *found, const struct ui_options *options,
                       struct error *err);
