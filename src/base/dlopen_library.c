#include "base/dlopen_library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

static int refuse(const char *package, struct error *err)
{
	char mend[64];
	snprintf(mend, sizeof mend, "install %s", package);
	return error_set(err, STATUS_SYSTEM, mend, "%s", dlerror());
}

int on_demand(const char *file, const char *package, const char *const *name, void *pointers, struct error *err)
{
	void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return refuse(package, err);
	for (size_t i = 0; name[i]; i++) {
		void *call = dlsym(library, name[i]);
		if (!call)
			return refuse(package, err);
		memcpy((char *)pointers + i * sizeof call, &call, sizeof call);
	}
	return 0;
}
