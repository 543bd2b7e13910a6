/* Examples of the commands. */
#pragma once

/* Prints two examples of the command with which a usage line begins ("flow RECORDING VM/TID"); nothing if it has none. */
void examples_print(const char *usage);
