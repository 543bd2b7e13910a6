/* Examples of the commands. */
#ifndef STEALSCOPE_CLI_EXAMPLES_H
#define STEALSCOPE_CLI_EXAMPLES_H

/* Prints two examples of the command with which a usage line begins ("flow RECORDING VM/TID"); nothing if it has none. */
void examples_print(const char *usage);

#endif
