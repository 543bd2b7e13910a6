/* Writes a recording's metadata: about.yaml of each machine, and session.yaml (stealscope-session(5)). */
#pragma once

#include "record/session_facts.h"
#include "record/guest.h"
#include "record/host.h"

/* Ends a YAML file and writes it to a directory; a clock sample, if it is known, as a member `key` of `parent`. */
int metadata_save(struct yaml_out *o, int dir, const char *name, struct error *err);
void metadata_put_sample(struct yaml_out *o, int parent, const char *key, const struct clock_sample *m);

/* Write about.yaml of the host (or of this machine alone) and of a guest to the machine's directory. */
int metadata_write_host(const struct host *h, struct error *err);
int metadata_write_guest(const struct guest *g, const struct host *h, struct error *err);

/* Content of session.yaml. */
struct session_metadata {
	const struct host *host;
	struct guest *const *guest;        /* [guests], including guests that were not recorded */
	struct cgroups *const *before, *const *after;  /* [guests + 1]; the last entry is that of the host */
	size_t guests;
	const char *sync;                  /* synchronization method for index/; NULL: default */
};
/* Writes session.yaml to the recording's directory, a descriptor. */
int metadata_write_session(const struct session_metadata *s, int dir, struct error *err);

/* Finds a guest's TSC parameters, which must be equal for all vCPUs, before and after the recording. Returns false
 * with the reason in *why if they are unknown or not constant. */
bool metadata_find_tsc(const struct guest *g, const struct host *h, struct vm_tsc *tsc, const char **why);
