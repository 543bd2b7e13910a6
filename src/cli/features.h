/* Optional parts of this program, chosen by configure. */
#ifndef STEALSCOPE_CLI_FEATURES_H
#define STEALSCOPE_CLI_FEATURES_H

/* Prints the version, and one line for each part that this program lacks. */
void features_print(void);

#endif
