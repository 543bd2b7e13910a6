/* Prints sentences on the standard output. */
#ifndef STEALSCOPE_CLI_PROSE_H
#define STEALSCOPE_CLI_PROSE_H

/* Prints lines wrapped to 80 columns; continuation lines are indented. Commands in parentheses, as "(stealscope gaps
 * FILE web)", are not wrapped, and FILE is replaced by `file`; file NULL: these commands are omitted. */
void prose_print(const char *text, const char *file);

#endif
