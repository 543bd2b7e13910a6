/* Functions that fill struct input, shared by the files of index/. */
#pragma once

#include "index/index.h"

#define MACHINE_NAME_MAX 255  /* maximum length of a machine name given by the user, bytes; the same as for a directory's
                           * name */

/* Adds the machine with traces below dir. name and layout may be NULL; they are copied. Fails if there are several
 * machines. */
int input_add_machine(struct input *in, const char *dir, const char *name, enum trace_role role, const char *layout,
                      struct error *err);
/* Adds a guest that is listed with other machines: if the description of its trace is damaged, adds only a note. */
int input_add_listed_guest(struct input *in, const char *dir, const char *name, const char *layout, struct error *err);

/* Adds an empty hint for a guest. The pointer is valid until the next call. */
struct sync_hint *input_add_hint(struct input *in, const char *guest);

/* Names a domain of a Xen host, unless it has a name already. */
void input_name_domain(struct input *in, uint32_t id, const char *name);
#define DOMAIN_ID_MAX 32751  /* highest id of a domain */

/* Last step of input_resolve(): applies the options for all machines. Returns 0 or -1. */
int input_finish(struct input *in, struct error *err);

/* Returns the options that affect a history's content, as one line. Histories of the same traces with equal lines
 * are equal. */
char *input_options_text(const struct input *in);  /* the caller frees */
