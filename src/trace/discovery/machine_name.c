/* Default names of machines. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "trace/internal.h"

/* Returns the last component of the path path[0 .. *end), malloc'ed, and moves *end to the start of that component. */
static char *pop_component(const char *path, size_t *end)
{
	size_t stop = *end;
	while (stop > 1 && path[stop - 1] == '/')
		stop--;
	size_t begin = stop;
	while (begin && path[begin - 1] != '/')
		begin--;
	*end = begin;
	return mem_printf("%.*s", (int)(stop - begin), path + begin);
}

/* Returns "web" for "guest-web"; NULL for names without this prefix. */
static const char *guest_name(const char *dir)
{
	static const char guest[] = "guest-";
	const size_t n = sizeof guest - 1;
	return strncmp(dir, guest, n) == 0 && dir[n] ? dir + n : NULL;
}

char *machine_name_of_dir(const char *path)
{
	size_t end = strlen(path);
	char *dir = pop_component(path, &end), *above = pop_component(path, &end);
	const char *guest = guest_name(dir) ? guest_name(dir) : guest_name(above);
	char *name = mem_dup(guest ? guest : dir);
	free(above);
	free(dir);
	return name;
}

/* Returns the machine's name in a file name: host.dat -> host, trace-web.dat -> web (trace-cmd record -A of the guest
 * web), trace.dat -> "". */
static char *machine_in_file_name(const char *file)
{
	static const char ending[] = ".dat", prefix[] = "trace";
	size_t len = strlen(file), n = sizeof ending - 1;
	if (len > n && strcmp(file + len - n, ending) == 0)
		len -= n;
	if (strncmp(file, prefix, sizeof prefix - 1) == 0) {
		if (len == sizeof prefix - 1)
			return mem_dup("");
		if (file[sizeof prefix - 1] == '-' && len > sizeof prefix) {
			file += sizeof prefix;
			len -= sizeof prefix;
		}
	}
	return mem_printf("%.*s", (int)len, file);
}

char *machine_name_of_file(const char *path, const char *recorded, const char *hostname)
{
	char *real = realpath(path, NULL);
	size_t end = strlen(real ? real : path);
	char *file = pop_component(real ? real : path, &end), *dir = pop_component(real ? real : path, &end);
	char *of_file = machine_in_file_name(file), *name;
	if (guest_name(dir))
		name = mem_dup(guest_name(dir));
	else if (recorded && (*recorded || *of_file))
		name = mem_dup(*recorded ? recorded : of_file);
	else if (*hostname)
		name = mem_dup(hostname);
	else
		name = mem_dup(*of_file || !*dir ? *of_file ? of_file : file : dir);
	free(of_file);
	free(file);
	free(dir);
	free(real);
	return name;
}
