/* What is written of a recording beside its pages: about.yaml of each machine, and session.yaml
 * (stealscope-session(5)). */
#ifndef STEALSCOPE_RECORD_METADATA_H
#define STEALSCOPE_RECORD_METADATA_H

#include "record/session_facts.h"
#include "record/guest.h"
#include "record/host.h"

int about_host(const struct host *h, struct error *err);
int about_guest(const struct guest *g, const struct host *h, struct error *err);

struct session_facts {
	const struct host *host;
	struct guest *const *guest;        /* [guests]; those that were not recorded too */
	struct cgroups *const *before, *const *after;  /* [guests + 1]: the last ones are the host's */
	size_t guests;
	const char *sync;                  /* or NULL */
};
/* Below the folder of the recording, a descriptor. */
int about_session(const struct session_facts *s, int folder, struct error *err);

/* The one TSC of all its vCPUs, before and after; false, with the reason: there is none that could be relied on. */
bool about_tsc(const struct guest *g, const struct host *h, struct vm_tsc *tsc, const char **why);

#endif
