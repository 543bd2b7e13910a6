/* Whom a command is about: the subject that the user named, or a list of those that may be meant. */
#ifndef STEALSCOPE_CLI_WHO_H
#define STEALSCOPE_CLI_WHO_H

#include "cli/scene.h"

/* Parses the operand.  Where several may be meant they are listed on stderr, with their lives and losses, worst first. */
/* All that may be meant, who lost most first; at least one.  The caller frees. */
int who_all(const struct scene *s, const char *text, struct subject **out, size_t *n, struct error *err);
int who_parse(const struct scene *s, const char *text, struct subject *out, struct error *err);

#endif
