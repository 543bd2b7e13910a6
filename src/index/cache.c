#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/atomic_file.h"
#include "index/provenance.h"

/* Only a single folder has a place of its own; anything else is known by a hash of all its names. */
static char *user_cache(const struct input *in, struct error *err)
{
	uint64_t h = HASH_BEGIN;
	for (size_t i = 0; i < in->specs; i++) {
		char *real = realpath(in->spec[i].dir, NULL);
		h = hash_text(hash_text(h, real ? real : in->spec[i].dir), "\n");
		free(real);
	}
	char name[32];
	snprintf(name, sizeof name, "%016" PRIx64 ".steal", h);
	char *path = save_user_file("XDG_CACHE_HOME", ".cache", name);
	if (!path) {
		error_set(err, STATUS_USAGE, "give the place: stealscope index WHAT -o FILE", "nowhere to keep the history");
		return NULL;
	}
	save_folders(path);
	char *slash = strrchr(path, '/');
	*slash = '\0';
	int why = access(path, W_OK) ? errno : 0;
	*slash = '/';
	if (why && access(path, F_OK)) {
		errno = why;
		error_system(err, "set XDG_CACHE_HOME to another folder, or give the place: stealscope index WHAT -o FILE",
		             "nowhere to keep the history: %s", path);
		free(path);
		return NULL;
	}
	return path;
}

char *cache_path(const struct input *in, struct error *err)
{
	if (in->folder && access(in->folder, W_OK) == 0)
		return mem_printf("%s/stealscope.steal", in->folder);
	return user_cache(in, err);
}

int cache_fits(const char *path, const struct input *in, char *why, size_t size, struct error *err)
{
	struct error damage = ERROR_INIT;
	char reason[512];
	why[0] = '\0';
	if (access(path, F_OK) != 0)
		return 0;
	struct history *h = history_open(path, &damage);
	if (!h) {
		snprintf(why, size, "%s", damage.text);
		return 0;
	}
	int stale = provenance_stale(h, in, reason, sizeof reason, err);
	history_close(h);
	if (stale == 1)
		snprintf(why, size, "%s: %s", path, reason);
	return stale < 0 ? -1 : !stale;
}
