/* Cache of histories: a cached history's path, and whether the history is current. */
#include <errno.h>
#include <unistd.h>

#include "base/base.h"
#include "base/hash.h"
#include "base/atomic_file.h"
#include "index/provenance.h"

/* Returns a path in the user's cache directory, with a hash of all trace directories as the file name. Creates the
 * directories. Returns NULL, with *err set, if no file can be created there. */
char *cache_path_of_user(const struct input *in, struct error *err)
{
	uint64_t h = HASH_BEGIN;
	for (size_t i = 0; i < in->specs; i++) {
		char *real = realpath(in->spec[i].dir, NULL);
		h = hash_text(hash_text(h, real ? real : in->spec[i].dir), "\n");
		free(real);
	}
	char name[32];
	snprintf(name, sizeof name, "%016" PRIx64 ".steal", h);
	char *path = user_file_path("XDG_CACHE_HOME", ".cache", name);
	if (!path) {
		error_set(err, STATUS_USAGE, "name the output: stealscope index RECORDING -o FILE",
		          "no directory found for the history");
		return NULL;
	}
	make_parent_dirs(path);
	char *slash = strrchr(path, '/');
	*slash = '\0';
	int why = access(path, W_OK) ? errno : 0;
	*slash = '/';
	if (why && access(path, F_OK)) {
		errno = why;
		error_system(err, "set XDG_CACHE_HOME to another directory, or name the output: stealscope index RECORDING -o FILE",
		             "cannot write the history to the directory of %s", path);
		free(path);
		return NULL;
	}
	return path;
}

char *cache_path(const struct input *in, struct error *err)
{
	if (in->dir && access(in->dir, W_OK) == 0)
		return mem_printf("%s/" CACHE_NAME, in->dir);
	return cache_path_of_user(in, err);
}

int cache_is_current(const char *path, const struct input *in, char *why, size_t size, struct error *err)
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
