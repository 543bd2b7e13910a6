/* Names of control groups (private to live/). */
#pragma once

#include "base/base.h"

struct machine_names;
struct machine_names *machine_names_new(const char *root);
void machine_names_free(struct machine_names *n);  /* NULL is allowed */
/* Begins a period: the tree may be walked again. */
void machine_names_begin(struct machine_names *n);
/* Returns a control group's name, escaped. id: struct machine_task.group. Valid until the next call. */
const char *machine_names_of_group(struct machine_names *n, uint64_t id);
/* Returns the name of a process's group. Valid until the next call. */
const char *machine_names_of_process(struct machine_names *n, int32_t pid);
bool machine_names_has(const struct machine_names *n, const char *name);
