/* Completes the last word of a command line for shells. The scripts in completion/ run `stealscope [COMMAND]
 * --__complete WORD...`, which prints a line for each candidate: the word, a tab, its description. The line ":file"
 * means that file names are possible, too. */
#pragma once

#include <stdbool.h>

#include "cli/opts.h"

/* Returns true if the command line requests completion. */
bool completion_requested(int argc, char **argv);

/* Prints a candidate with its description if it begins with the typed text. */
void complete_word(const char *typed, const char *word, const char *about);

/* Completes the options and operands of a command. */
void complete_arguments(const struct opts *o, int argc, char **argv);
