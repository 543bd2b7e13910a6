/* Which places are parts of one machine's trace. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "trace/internal.h"
#include "trace/live/live.h"

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

/* Places come in the order of a walk: what lies below a folder stands together, and the farther two of them stand apart,
 * the higher up is the folder that holds both. */
struct walked { const struct place *dir; size_t n; };

/* One behind the last of those from i on that are all of its machine. */
static size_t run_end(const struct walked *p, size_t i)
{
	while (i + 1 < p->n && place_same_machine(&p->dir[i], &p->dir[i + 1]))
		i++;
	return i + 1;
}

/* May the machine of dir[run .. end) be given as the folder that is the first len bytes of a path of its?  Only if no other
 * machine's trace lies there. */
static bool folder_is_own(const struct walked *p, size_t run, size_t end, const char *path, size_t len)
{
	return len > 0 && !(run > 0 && is_below(p->dir[run - 1].path, path, len)) &&
	       !(end < p->n && is_below(p->dir[end].path, path, len));
}

/* How much of dir[i]'s path is its trace's folder, its machine having dir[run .. end); gives the first place behind it. */
static size_t take_machine(const struct walked *p, size_t run, size_t end, size_t i, size_t *len)
{
	const char *path = p->dir[i].path;
	size_t j = i + 1;
	*len = strlen(path);
	for (; j < end; j++) {
		size_t both = common_folder(path, p->dir[j].path);
		both = both < *len ? both : *len;
		if (!folder_is_own(p, run, end, path, both))
			break;
		*len = both;
	}
	while (j < p->n && is_below(p->dir[j].path, path, *len))
		j++;
	return j;
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
	const struct walked p = { dir, dirs };
	for (size_t i = 0, next, len, run = 0, end = 0; i < dirs; i = next) {
		for (; end <= i; end = run_end(&p, run))
			run = end;
		next = take_machine(&p, run, end, i, &len);
		*spec = mem_room(*spec, &cap, *n, sizeof **spec);
		(*spec)[(*n)++] = (struct trace_spec){ .dir = mem_printf("%.*s", (int)len, dir[i].path),
			.place = mem_resize(NULL, next - i, sizeof *dir), .places = next - i };
		memcpy((*spec)[*n - 1].place, dir + i, (next - i) * sizeof *dir);
	}
	for (size_t i = first; i < *n; i++)
		(*spec)[i].beside = *n - first > 1;
	free(dir);
	return 0;
}

void trace_spec_release(struct trace_spec *spec)
{
	free((char *)spec->dir);
	places_free(spec->place, spec->places);
}

void trace_specs_free(struct trace_spec *spec, size_t n)
{
	for (size_t i = 0; i < n; i++)
		trace_spec_release(&spec[i]);
	free(spec);
}
