#include "base/dlopen_library.h"

#include <dlfcn.h>

#include "base/base.h"

#ifdef STATIC_PROGRAM
int library_load(const char *file, const char *package, const char *const *name, void *pointers, struct error *err)
{
	(void)file;
	(void)name;
	(void)pointers;
	return error_set(err, STATUS_SYSTEM, "use a stealscope with shared libraries, e.g. of a package",
	                 "this static program does not contain %s", package);
}
#else
static int refuse_library(const char *package, struct error *err)
{
	char remedy[64];
	snprintf(remedy, sizeof remedy, "install %s", package);
	return error_set(err, STATUS_SYSTEM, remedy, "%s", dlerror());
}

int library_load(const char *file, const char *package, const char *const *name, void *pointers, struct error *err)
{
	void *library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return refuse_library(package, err);
	for (size_t i = 0; name[i]; i++) {
		void *call = dlsym(library, name[i]);
		if (!call)
			return refuse_library(package, err);
		memcpy((char *)pointers + i * sizeof call, &call, sizeof call);
	}
	return 0;
}
#endif
