/* Files with the traces of several machines: each machine is a location FILE#MACHINE. */
#include <sys/stat.h>

#include "base/base.h"
#include "trace/internal.h"

#define NAME_SIZE 64

size_t trace_path_length(const char *name)
{
	struct stat st;
	const char *mark = strrchr(name, '#');
	if (!mark || mark == name || strchr(mark, '/') || stat(name, &st) == 0)
		return strlen(name);
	char *file = mem_printf("%.*s", (int)(mark - name), name);
	const bool is_file = stat(file, &st) == 0 && S_ISREG(st.st_mode);
	free(file);
	return is_file ? (size_t)(mark - name) : strlen(name);
}

void split_locations(struct trace_location **list, size_t *n, size_t first)
{
	struct trace_location *all = NULL;
	size_t len = 0, cap = 0;
	char name[NAME_SIZE];
	for (size_t i = first; i < *n; i++) {
		struct trace_location *p = &(*list)[i];
		if (!p->reader->split || !p->reader->split(p, 1, NULL, name, sizeof name)) {
			*ARRAY_PUSH(all, len, cap) = *p;
			continue;
		}
		struct trace_location machine = { .reader = p->reader, .is_file = p->is_file, .device = p->device,
			.inode = p->inode };
		for (size_t k = 0; p->reader->split(p, k, &machine, name, sizeof name); k++) {
			machine.path = mem_printf("%s#%s", p->path, name);
			*ARRAY_PUSH(all, len, cap) = machine;
			machine = (struct trace_location){ .reader = p->reader, .is_file = p->is_file, .device = p->device,
				.inode = p->inode };
		}
		location_release(p);
	}
	*list = mem_resize(*list, first + len + 1, sizeof **list);
	if (len)
		memcpy(*list + first, all, len * sizeof *all);
	*n = first + len;
	free(all);
}

int select_machine(struct trace_location *list, size_t *n, size_t first, const char *name, struct error *err)
{
	const size_t found = *n;
	char *names = mem_dup("");
	size_t kept = first;
	for (size_t i = first; i < found; i++) {
		if (strcmp(list[i].path, name) == 0) {
			list[kept++] = list[i];
			continue;
		}
		const char *mark = strrchr(list[i].path, '#');
		char *longer = mem_printf("%s%s%s", names, *names ? ", " : "", mark ? mark : "only one machine, without a number");
		free(names);
		names = longer;
		location_release(&list[i]);
	}
	*n = kept;
	const int status = kept > first ? 0 :
		error_set(err, STATUS_INPUT, "name one of its machines", "%s: the file has no such machine; it has: %s", name,
		          names);
	free(names);
	return status;
}
