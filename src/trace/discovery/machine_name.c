/* Names of machines whose user gave none. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "trace/internal.h"

/* The last part of path[0..end), which is moved to where it begins; the slashes before it are left out of *end too. */
static char *last_part(const char *path, size_t *end)
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

/* "guest-web" -> "web"; NULL for other folders. */
static const char *named_guest(const char *folder)
{
	static const char guest[] = "guest-";
	const size_t n = sizeof guest - 1;
	return strncmp(folder, guest, n) == 0 && folder[n] ? folder + n : NULL;
}

char *naming_folder(const char *dir)
{
	size_t end = strlen(dir);
	char *folder = last_part(dir, &end), *above = last_part(dir, &end);
	const char *guest = named_guest(folder) ? named_guest(folder) : named_guest(above);
	char *name = mem_dup(guest ? guest : folder);
	free(above);
	free(folder);
	return name;
}

/* host.dat -> host, trace-web.dat -> web (what trace-cmd record -A calls the guest web), trace.dat -> "" */
static char *stem(const char *file)
{
	static const char ending[] = ".dat", usual[] = "trace";
	size_t len = strlen(file), n = sizeof ending - 1;
	if (len > n && strcmp(file + len - n, ending) == 0)
		len -= n;
	if (strncmp(file, usual, sizeof usual - 1) == 0) {
		if (len == sizeof usual - 1)
			return mem_dup("");
		if (file[sizeof usual - 1] == '-' && len > sizeof usual) {
			file += sizeof usual;
			len -= sizeof usual;
		}
	}
	return mem_printf("%.*s", (int)len, file);
}

char *naming_file(const char *path, const char *recorded, const char *hostname)
{
	char *real = realpath(path, NULL);
	size_t end = strlen(real ? real : path);
	char *file = last_part(real ? real : path, &end), *folder = last_part(real ? real : path, &end);
	char *of_file = stem(file), *name;
	if (named_guest(folder))
		name = mem_dup(named_guest(folder));
	else if (recorded && (*recorded || *of_file))
		name = mem_dup(*recorded ? recorded : of_file);
	else if (*hostname)
		name = mem_dup(hostname);
	else
		name = mem_dup(*of_file || !*folder ? *of_file ? of_file : file : folder);
	free(of_file);
	free(file);
	free(folder);
	free(real);
	return name;
}
