/* Sentences on the standard output. */
#ifndef STEALSCOPE_CLI_PROSE_H
#define STEALSCOPE_CLI_PROSE_H

/* Prints lines of words, broken to fit 80 columns; what follows a break is indented.  Commands in parentheses, as
 * "(stealscope gaps FILE web)", are not broken, and are about `file`: they can be pasted.  NULL: they have none. */
void prose_print(const char *about, const char *file);

#endif
