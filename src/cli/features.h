/* Optional parts of this program, chosen by configure. */
#pragma once

/* Prints the version, and one line for each part that this program lacks. */
void features_print(void);
