/* Default names of machines. */
#include "base/base.h"
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

/* Returns the length of a file name without the usual ending of a trace's file. */
static size_t length_without_ending(const char *file, size_t len)
{
	static const char *const endings[] = { ".dat", ".data", ".pftrace", ".perfetto-trace" };
	for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
		const size_t n = strlen(endings[i]);
		if (len > n && memcmp(file + len - n, endings[i], n) == 0)
			return len - n;
	}
	return len;
}

/* Returns the name in the name of FILE#MACHINE: host.pftrace#0 -> host, host.pftrace#12 -> host#12. */
static char *numbered_machine(const char *file, const char *number)
{
	const int len = (int)length_without_ending(file, (size_t)(number - file));
	return mem_printf("%.*s%s", len, file, strcmp(number, "#0") == 0 ? "" : number);
}

/* Returns the machine's name in a file name: host.dat -> host, trace-web.dat -> web (trace-cmd record -A of the guest
 * web), trace.dat and perf.data -> "". */
static char *machine_in_file_name(const char *file)
{
	static const char *const prefix[] = { "trace", "perf" };
	size_t len = length_without_ending(file, strlen(file));
	for (size_t i = 0; i < sizeof prefix / sizeof *prefix; i++) {
		const size_t n = strlen(prefix[i]);
		if (strncmp(file, prefix[i], n) != 0)
			continue;
		if (len == n)
			return mem_dup("");
		if (file[n] == '-' && len > n + 1)
			return mem_printf("%.*s", (int)(len - n - 1), file + n + 1);
	}
	return mem_printf("%.*s", (int)len, file);
}

char *machine_name_of_file(const char *path, const char *recorded, const char *hostname)
{
	char *real = realpath(path, NULL);
	size_t end = strlen(real ? real : path);
	char *file = pop_component(real ? real : path, &end), *dir = pop_component(real ? real : path, &end);
	const size_t file_length = trace_path_length(path);
	char *of_file = path[file_length] ? numbered_machine(file, strrchr(file, '#')) : machine_in_file_name(file), *name;
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
