/* Groups locations into machines. */
#include "base/base.h"
#include "trace/internal.h"
#include "trace/live/live.h"

/* Returns the deepest directory that contains both paths, as the length of a prefix of a. */
static size_t common_dir(const char *a, const char *b)
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

/* Locations in the order of the directory walk: all locations below a directory are adjacent, so the directory that
 * contains two locations depends only on the range between them. */
struct location_list { const struct trace_location *dir; size_t n; };

/* Returns the end of the range of locations, starting at i, that belong to the same machine. */
static size_t machine_run_end(const struct location_list *p, size_t i)
{
	while (i + 1 < p->n && location_same_machine(&p->dir[i], &p->dir[i + 1]))
		i++;
	return i + 1;
}

/* Returns true if the first len bytes of path are a directory without traces of other machines than that of dir[run ..
 * end). */
static bool is_exclusive_dir(const struct location_list *p, size_t run, size_t end, const char *path, size_t len)
{
	return len > 0 && !(run > 0 && is_below(p->dir[run - 1].path, path, len)) &&
	       !(end < p->n && is_below(p->dir[end].path, path, len));
}

/* Finds the directory that represents the machine of dir[run .. end), starting at location i: sets *len to the length of
 * this prefix of dir[i]'s path. Returns the index of the first location outside that directory. */
static size_t machine_dir(const struct location_list *p, size_t run, size_t end, size_t i, size_t *len)
{
	const char *path = p->dir[i].path;
	size_t j = i + 1;
	*len = strlen(path);
	for (; j < end; j++) {
		size_t both = common_dir(path, p->dir[j].path);
		both = both < *len ? both : *len;
		if (!is_exclusive_dir(p, run, end, path, both))
			break;
		*len = both;
	}
	while (j < p->n && is_below(p->dir[j].path, path, *len))
		j++;
	return j;
}

static int discover(const char *root, struct trace_spec **spec, size_t *n, bool or_skip, struct notes *notes,
                    struct error *err)
{
	struct trace_location *dir = NULL;
	size_t dirs = 0, cap = *n;
	const size_t first = *n;
	if (trace_is_live(root))
		return live_discover(root, spec, n, err);
	if (find_locations(root, &dir, &dirs, or_skip, notes, err)) {
		locations_free(dir, dirs);
		return -1;
	}
	const struct location_list p = { dir, dirs };
	for (size_t i = 0, next, len, run = 0, end = 0; i < dirs; i = next) {
		for (; end <= i; end = machine_run_end(&p, run))
			run = end;
		next = machine_dir(&p, run, end, i, &len);
		*spec = array_grow(*spec, &cap, *n, sizeof **spec);
		(*spec)[(*n)++] = (struct trace_spec){ .dir = mem_printf("%.*s", (int)len, dir[i].path),
			.location = mem_resize(NULL, next - i, sizeof *dir), .locations = next - i };
		memcpy((*spec)[*n - 1].location, dir + i, (next - i) * sizeof *dir);
	}
	for (size_t i = first; i < *n; i++)
		(*spec)[i].skippable = or_skip || *n - first > 1;
	free(dir);
	return 0;
}

int trace_discover(const char *root, struct trace_spec **spec, size_t *n, struct notes *notes, struct error *err)
{
	return discover(root, spec, n, false, notes, err);
}

int trace_discover_or_skip(const char *root, struct trace_spec **spec, size_t *n, struct notes *notes, struct error *err)
{
	return discover(root, spec, n, true, notes, err);
}

void trace_spec_release(struct trace_spec *spec)
{
	free((char *)spec->dir);
	locations_free(spec->location, spec->locations);
}

void trace_specs_free(struct trace_spec *spec, size_t n)
{
	for (size_t i = 0; i < n; i++)
		trace_spec_release(&spec[i]);
	free(spec);
}
