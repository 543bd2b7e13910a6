/* Families of terminal types, by the first letters of $TERM. */
#pragma once

#include <stdbool.h>

/* Returns the common type that a terminal of this type resembles ("xterm-256color"), static; NULL: another family. */
const char *terminal_family(const char *type);
/* Returns true if fd is a terminal of a family that skips OSC sequences that it does not know: others may print them. */
bool terminal_skips_osc(int fd);
