/* Sentences on the standard output. */
#ifndef STEALSCOPE_CLI_PROSE_H
#define STEALSCOPE_CLI_PROSE_H

/* Prints lines of words, broken to fit 80 columns; what follows a break is indented. */
void prose_print(const char *text);

#endif
