/* What may stand for the last word of a command line: asked by the scripts in completion/ as
 * `stealscope [COMMAND] --__complete WORD...`.  A line for each: the word, a tab, what it is.  ":file": a file may too. */
#ifndef STEALSCOPE_CLI_COMPLETE_H
#define STEALSCOPE_CLI_COMPLETE_H

#include <stdbool.h>

#include "cli/opts.h"

/* Is that what is asked, rather than for the command to be run? */
bool complete_is_asked(int argc, char **argv);

/* For a word that may be one of several, with what it is. */
void complete_word(const char *typed, const char *word, const char *about);

/* For the options and operands of a command. */
void complete_arguments(const struct opts *o, int argc, char **argv);

#endif
