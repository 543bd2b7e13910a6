/* Links of a terminal (OSC 8) to a place in a recording, where terminal_skips_osc():
 * stealscope://HOST/PATH?row=ROW&at=TIME. */
#pragma once

#include "base/base.h"

/* Returns the link to a time of a row, malloc'ed. Only letters, digits and "-._~/" stay as they are. */
char *place_link_make(const char *file, const char *row, const char *at);
/* Prints the text as a link; without a link ("" or NULL) only the text. */
void place_link_print(FILE *out, const char *link, const char *text);

/* A link's parts, owned; NULL: absent. */
struct place_link { char *path, *row, *at; };
/* Returns 1 and fills *out if the text is a link, 0 if it is none, -1 with *err if it is damaged or of another host. */
int place_link_parse(const char *text, struct place_link *out, struct error *err);
void place_link_release(struct place_link *l);
