/* Whom a command is about: the subject that the user named, or a list of those that may be meant. */
#ifndef STEALSCOPE_CLI_TARGET_ARG_H
#define STEALSCOPE_CLI_TARGET_ARG_H

#include "cli/query_context.h"

/* All that may be meant, who lost most first; at least one.  The caller frees. */
int who_all(const struct scene *s, const char *text, struct subject **out, size_t *n, struct error *err);
/* Parses the operand.  Where several may be meant they are listed on stderr, with their lives and losses, worst first. */
int who_parse(const struct scene *s, const char *text, struct subject *out, struct error *err);
/* The same of whom something can be taken: no CPU of the host. */
int who_parse_victim(const struct scene *s, const char *text, struct subject *out, struct error *err);
/* A machine, whose vCPUs are meant, or one of these. */
int who_parse_vcpus(const struct scene *s, const char *text, struct subject *out, struct error *err);
bool who_is_pcpu(const struct scene *s, const struct subject *who);  /* a CPU of the host */

#endif
