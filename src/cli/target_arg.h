/* Parses the target operand of a command. */
#pragma once

#include "cli/query_context.h"

/* These functions may open the catalog of the context again, see catalog_select().
 *
 * Finds all targets that match the text, sorted by time lost. Returns -1 with *err if there is none. The caller frees
 * *out. */
int target_find_all(struct query_context *s, const char *text, struct target **out, size_t *n, struct error *err);
/* Finds the target that matches the text. Returns -1 with *err if there is none or several; several are listed on stderr
 * with their lifetimes and lost times. */
int target_parse(struct query_context *s, const char *text, struct target *out, struct error *err);
/* The same, but physical CPUs are an error, since they lose no time. */
int target_parse_victim(struct query_context *s, const char *text, struct target *out, struct error *err);
/* The same, but only a machine (for all its vCPUs) or a vCPU is accepted. */
int target_parse_vcpus(struct query_context *s, const char *text, struct target *out, struct error *err);
/* The same, but only a thread or CPU: of a process, the thread that lost most, which a line on stderr names. Other machines
 * are an error, the remedy of which names the threads that lost most. */
int target_parse_row(struct query_context *s, const char *text, struct target *out, struct error *err);
/* Returns true for a physical CPU. */
bool target_is_pcpu(const struct query_context *s, const struct target *target);
