#include "record/proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <unistd.h>

#define MAX_NAMES (1 << 22)

static char *proc_path(const char *root, const char *fmt, va_list ap) __attribute__((format(printf, 2, 0)));

static char *proc_path(const char *root, const char *fmt, va_list ap)
{
	char rest[PATH_MAX];
	vsnprintf(rest, sizeof rest, fmt, ap);
	return mem_printf("%s%s", root, rest);
}

/* Declares `path`, formatted from `root`, `fmt` and the arguments after `fmt`; the function frees it. */
#define WITH_PATH(path) \
	va_list ap; \
	va_start(ap, fmt); \
	char *path = proc_path(root, fmt, ap); \
	va_end(ap)

/* Reads a file to its end, since files in /proc report no size. Returns NULL on failure. */
static char *read_all(const char *path, size_t *len)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	size_t cap = 4096, used = 0;
	ssize_t n = -1;
	char *text = fd < 0 ? NULL : mem_new(cap, 1);
	while (text && used < PROC_MAX && (n = read(fd, text + used, cap - used - 1)) > 0) {
		used += (size_t)n;
		if (used == cap - 1)
			text = mem_resize(text, cap *= 2, 1);
	}
	if (fd >= 0)
		close(fd);
	if (n != 0) {
		free(text);
		return NULL;
	}
	text[used] = '\0';
	if (len)
		*len = used;
	return text;
}

char *proc_text(const char *root, size_t *len, const char *fmt, ...)
{
	WITH_PATH(path);
	char *text = read_all(path, len);
	free(path);
	return text;
}

static char *first_line(const char *path)
{
	char *text = read_all(path, NULL);
	if (text)
		text[strcspn(text, "\n")] = '\0';
	if (text && *text)
		return text;
	free(text);
	return NULL;
}

char *proc_line(const char *root, const char *fmt, ...)
{
	WITH_PATH(path);
	char *line = first_line(path);
	free(path);
	return line;
}

bool proc_number(const char *root, int64_t *n, const char *fmt, ...)
{
	WITH_PATH(path);
	char *line = first_line(path), *rest = NULL;
	free(path);
	errno = 0;
	const long long x = line ? strtoll(line, &rest, 10) : 0;
	const bool parsed = line && rest != line && !errno;
	if (parsed)
		*n = x;
	free(line);
	return parsed;
}

char *proc_link(const char *root, const char *fmt, ...)
{
	WITH_PATH(path);
	char target[PATH_MAX];
	const ssize_t n = readlink(path, target, sizeof target - 1);
	free(path);
	if (n < 0)
		return NULL;
	target[n] = '\0';
	return mem_dup(target);
}

bool proc_exists(const char *root, const char *fmt, ...)
{
	WITH_PATH(path);
	const bool exists = access(path, F_OK) == 0;
	free(path);
	return exists;
}

char *proc_field(const char *text, const char *key)
{
	const size_t n = strlen(key);
	for (const char *line = text; line && *line; line = strchr(line, '\n'), line += line != NULL) {
		if (strncmp(line, key, n) != 0 || !strchr(": \t", line[n]) || !line[n])
			continue;
		const char *value = line + n + strspn(line + n, ": \t");
		return mem_printf("%.*s", (int)strcspn(value, "\n"), value);
	}
	return NULL;
}

char *proc_stat_word(const char *root, int32_t pid, int32_t tid, unsigned k)
{
	char *text = proc_text(root, NULL, "/proc/%d/task/%d/stat", pid, tid);
	const char *at = text ? strrchr(text, ')') : NULL;
	char *word = NULL;
	if (at)
		at++;
	for (unsigned i = 0; at; i++) {
		at += strspn(at, " ");
		const size_t n = strcspn(at, " \n");
		if (n == 0 || i == k) {
			word = n ? mem_printf("%.*s", (int)n, at) : NULL;
			break;
		}
		at += n;
	}
	free(text);
	return word;
}

uint64_t proc_start_time(const char *root, int32_t pid)
{
	char *word = proc_stat_word(root, pid, pid, 19), *state = proc_stat_word(root, pid, pid, 0);
	uint64_t ticks = 0;
	const bool ended = !state || *state == 'Z' || *state == 'X';
	if (ended || !word || !proc_parse_number(word, UINT64_MAX, &ticks))
		ticks = 0;
	free(word);
	free(state);
	return ticks;
}

bool proc_parse_number(const char *text, uint64_t max, uint64_t *n)
{
	char *rest;
	errno = 0;
	if (*text < '0' || *text > '9')
		return false;
	const unsigned long long x = strtoull(text, &rest, 10);
	if (*rest || errno || x > max)
		return false;
	*n = x;
	return true;
}

static int by_number(const void *a, const void *b)
{
	const char *x = *(char *const *)a, *y = *(char *const *)b;
	uint64_t m, n;
	if (proc_parse_number(x, UINT64_MAX, &m) && proc_parse_number(y, UINT64_MAX, &n) && m != n)
		return m < n ? -1 : 1;
	return strcmp(x, y);
}

char **proc_names(const char *root, const char *prefix, size_t *n, const char *fmt, ...)
{
	WITH_PATH(path);
	DIR *dir = opendir(path);
	char **name = NULL;
	size_t cap = 0;
	free(path);
	*n = 0;
	for (struct dirent *e; dir && *n < MAX_NAMES && (e = readdir(dir));)
		if (e->d_name[0] != '.' && strncmp(e->d_name, prefix, strlen(prefix)) == 0)
			*ARRAY_PUSH(name, *n, cap) = mem_dup(e->d_name);
	if (dir)
		closedir(dir);
	ARRAY_SORT(name, *n, by_number);
	return name;
}

void proc_names_free(char **name, size_t n)
{
	for (size_t i = 0; i < n; i++)
		free(name[i]);
	free(name);
}
