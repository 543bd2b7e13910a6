/* How the parts of index/ fill a struct input. */
#ifndef STEALSCOPE_INDEX_INPUT_H
#define STEALSCOPE_INDEX_INPUT_H

#include "index/index.h"

#define MACHINE_NAME 255  /* bytes at most of a machine's name that is given, as a folder's may have */

/* Adds the one machine whose traces lie below dir (name and layout may be NULL; copied). */
int input_add_machine(struct input *in, const char *dir, const char *name, enum trace_role role, const char *layout,
                      struct error *err);

/* A new hint about the guest of that name; the pointer holds until the next one is added. */
struct sync_hint *input_add_hint(struct input *in, const char *guest);

/* The last part of input_resolve(): what is for all machines. */
int input_finish(struct input *in, struct error *err);

/* The options that shape a history, as one line: two histories of the same traces are alike when it is equal. */
char *input_shape(const struct input *in);  /* the caller frees */

#endif
