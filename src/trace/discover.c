/* Which places are parts of one machine's trace. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "trace/internal.h"
#include "trace/live.h"

/* The deepest folder that holds both paths, as the length of the prefix of a. */
static size_t common_folder(const char *a, const char *b)
{
	size_t slash = 0, i = 0;
	for (; a[i] && a[i] == b[i]; i++)
		if (a[i] == '/')
			slash = i;
	if ((!a[i] && (!b[i] || b[i] == '/')) || (!b[i] && a[i] == '/'))
		return i;
	return slash;
}

static bool is_below(const char *path, const char *dir, size_t len)
{
	return strncmp(path, dir, len) == 0 && (path[len] == '/' || !path[len]);
}

/* May machine of dir[i] be given as the folder dir[i].path[0..len)?  Only if no other machine's trace lies there. */
static bool folder_is_own(const struct place *dir, size_t n, size_t i, size_t len)
{
	for (size_t j = 0; j < n; j++)
		if (!place_same_machine(&dir[i], &dir[j]) && is_below(dir[j].path, dir[i].path, len))
			return false;
	return len > 0;
}

int trace_discover(const char *root, struct trace_spec **spec, size_t *n, struct notes *notes, struct error *err)
{
	struct place *dir = NULL;
	size_t dirs = 0, cap = *n;
	const size_t first = *n;
	if (trace_is_live(root))
		return live_discover(root, spec, n, err);
	if (places_find(root, &dir, &dirs, notes, err)) {
		places_free(dir, dirs);
		return -1;
	}
	bool *taken = mem_new(dirs, sizeof *taken);
	for (size_t i = 0; i < dirs; i++) {
		if (taken[i])
			continue;
		size_t len = strlen(dir[i].path);
		for (size_t j = i + 1; j < dirs; j++) {
			if (taken[j] || !place_same_machine(&dir[i], &dir[j]))
				continue;
			size_t both = common_folder(dir[i].path, dir[j].path);
			both = both < len ? both : len;
			if (!folder_is_own(dir, dirs, i, both))
				continue;
			len = both;
			taken[j] = true;
		}
		for (size_t j = i + 1; j < dirs; j++)
			taken[j] |= is_below(dir[j].path, dir[i].path, len);
		*spec = mem_room(*spec, &cap, *n, sizeof **spec);
		(*spec)[(*n)++] = (struct trace_spec){ .dir = mem_printf("%.*s", (int)len, dir[i].path) };
	}
	for (size_t i = first; i < *n; i++)
		(*spec)[i].beside = *n - first > 1;
	free(taken);
	places_free(dir, dirs);
	return 0;
}

void trace_specs_free(struct trace_spec *spec, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free((char *)spec[i].dir);
	free(spec);
}
