/* Histories without names, and pages of answers. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "cli/captured_command.h"
#include "cli/cli.h"
#include "cli/mcp_answers.h"

/* Characters of names that are not served: they would need escapes in lists and in JSON. */
#define UNSERVED "\"\\\n\r\t\033"

/* An open history. Commands get the path of its descriptor; answers show the name that the agent gave. */
struct history_file { char *recording, *name; int fd; };
struct long_answer { unsigned number; char *text; size_t length; };

struct mcp_answers {
	const char *directory;
	char *real;                     /* resolved path of the directory */
	struct history_file *history;   /* one per recording that was used */
	size_t histories;
	struct long_answer kept[MCP_KEPT];
	unsigned number;                /* number of the last long answer; 0: none */
};

struct mcp_answers *mcp_answers_begin(const char *directory, struct error *err)
{
	char *real = realpath(directory, NULL);
	struct stat st;
	if (!real || stat(real, &st)) {
		free(real);
		error_read(err, NULL, "%s", directory);
		return NULL;
	}
	if (!S_ISDIR(st.st_mode)) {
		free(real);
		error_set(err, STATUS_INPUT, "name the directory that holds the recordings", "%s: not a directory", directory);
		return NULL;
	}
	struct mcp_answers *a = mem_new(1, sizeof *a);
	a->directory = directory;
	a->real = real;
	return a;
}

void mcp_answers_end(struct mcp_answers *a)
{
	if (!a)
		return;
	for (size_t i = 0; i < a->histories; i++) {
		free(a->history[i].recording);
		free(a->history[i].name);
		close(a->history[i].fd);
	}
	for (size_t i = 0; i < MCP_KEPT; i++)
		free(a->kept[i].text);
	free(a->history);
	free(a->real);
	free(a);
}

/* ---- histories ---- */

/* Resolves the name of a recording. Returns its path, allocated, or NULL with *err set: a name that leads out of the
 * served directory is refused. */
static char *recording_path(struct mcp_answers *a, const char *recording, struct error *err)
{
	char *path = mem_printf("%s/%s", a->real, recording), *real = realpath(path, NULL);
	free(path);
	size_t n = strlen(a->real);
	bool inside = real && !recording[strcspn(recording, UNSERVED)] && strncmp(real, a->real, n) == 0 &&
	              (real[n] == '/' || real[n] == '\0' || n == 1);
	if (!inside) {
		free(real);
		error_set(err, STATUS_INPUT, "the tool `recordings` lists them", "%s: no such recording", recording);
		return NULL;
	}
	return real;
}

/* Indexes a recording into a file without a name. Returns its descriptor, or -1 with *err set. */
static int index_recording(char *path, struct error *err)
{
	const char *base = getenv("TMPDIR");
	char dir[PATH_MAX], file[PATH_MAX + 16], *text, *notes;
	if (snprintf(dir, sizeof dir, "%s/stealscope-mcp-XXXXXX", base && *base ? base : "/tmp") >= (int)sizeof dir ||
	    !mkdtemp(dir))
		return error_system(err, "set TMPDIR", "cannot make a temporary directory");
	snprintf(file, sizeof file, "%s/h.steal", dir);
	char *argv[] = { (char[]){ "index" }, path, (char[]){ "-o" }, file, NULL };
	int fd = -1, status = captured_command(cmd_index, 4, argv, MCP_SECONDS, &text, &notes, err);
	if (status == STATUS_OK)
		fd = open(file, O_RDONLY);  /* inherited by the children that read it */
	if (status == STATUS_OK && fd < 0)
		error_system(err, NULL, "cannot open the history");
	else if (status > 0)
		error_set(err, (enum status)status, NULL, "%.*s", (int)strcspn(notes, "\n"), notes);
	unlink(file);
	rmdir(dir);
	free(text);
	free(notes);
	return fd;
}

char *mcp_history(void *answers, const char *recording, struct error *err)
{
	struct mcp_answers *a = answers;
	char *path = recording_path(a, recording, err);
	if (!path)
		return NULL;
	size_t i = 0;
	while (i < a->histories && strcmp(a->history[i].recording, path) != 0)
		i++;
	if (i == a->histories) {
		struct stat st;
		bool file = stat(path, &st) == 0 && S_ISREG(st.st_mode) && strlen(path) > 6 &&
		            strcmp(path + strlen(path) - 6, ".steal") == 0;
		int fd = file ? open(path, O_RDONLY) : index_recording(path, err);
		if (fd < 0) {
			if (file)
				error_read(err, NULL, "%s", recording);
			free(path);
			return NULL;
		}
		a->history = mem_resize(a->history, a->histories + 1, sizeof *a->history);
		a->history[a->histories++] = (struct history_file){ path, mem_dup(recording), fd };
	} else {
		free(path);
	}
	return mem_printf("/proc/self/fd/%d", a->history[i].fd);
}

static int compare_names(const void *x, const void *y)
{
	return strcmp(*(char *const *)x, *(char *const *)y);
}

char *mcp_recordings(struct mcp_answers *a)
{
	DIR *dir = opendir(a->real);
	char **name = NULL, *text = NULL;
	size_t n = 0, length = 0;
	for (struct dirent *e; dir && (e = readdir(dir));) {
		struct stat st;
		if (e->d_name[0] == '.' || fstatat(dirfd(dir), e->d_name, &st, 0) || e->d_name[strcspn(e->d_name, UNSERVED)])
			continue;
		if (S_ISDIR(st.st_mode) || (strlen(e->d_name) > 6 && strcmp(e->d_name + strlen(e->d_name) - 6, ".steal") == 0)) {
			name = mem_resize(name, n + 1, sizeof *name);
			name[n++] = mem_dup(e->d_name);
		}
	}
	if (dir)
		closedir(dir);
	if (n)
		qsort(name, n, sizeof *name, compare_names);
	FILE *f = open_memstream(&text, &length);
	if (!f)
		abort();
	for (size_t i = 0; i < n; i++) {
		fprintf(f, "%s\n", name[i]);
		free(name[i]);
	}
	fputs(".\n", f);
	fclose(f);
	free(name);
	return text;
}

/* ---- pages ---- */

/* Returns the end of the page that begins at `begin`: after the last line that fits, or inside a longer line, between two
 * characters. */
static size_t page_end(const char *text, size_t begin, size_t length)
{
	if (length - begin <= MCP_PAGE)
		return length;
	size_t end = begin + MCP_PAGE;
	for (size_t i = end; i > begin; i--)
		if (text[i - 1] == '\n')
			return i;
	while (end > begin + 1 && ((unsigned char)text[end] & 0xc0) == 0x80)
		end--;
	return end;
}

static char *page_text(const struct long_answer *l, size_t begin)
{
	size_t end = page_end(l->text, begin, l->length);
	if (end == l->length)
		return mem_dup(l->text + begin);
	return mem_printf("%.*s[%zu of %zu bytes; continue with handle \"%u:%zu\"]\n", (int)(end - begin), l->text + begin, end,
	                  l->length, l->number, end);
}

char *mcp_continue(struct mcp_answers *a, const char *handle, struct error *err)
{
	unsigned number;
	size_t begin;
	char rest;
	if (sscanf(handle, "%u:%zu%c", &number, &begin, &rest) != 2 || !number)
		goto unknown;
	struct long_answer *l = &a->kept[number % MCP_KEPT];
	if (l->number != number || begin >= l->length || ((unsigned char)l->text[begin] & 0xc0) == 0x80)
		goto unknown;
	return page_text(l, begin);
unknown:
	error_set(err, STATUS_USAGE, "call the tool again", "%s: no such handle; the last %d long answers are kept", handle,
	          (int)MCP_KEPT);
	return NULL;
}

/* Writes `text` with the path of a descriptor replaced by the name of the recording. In JSON, slashes are escaped. */
static char *replace_path(char *text, const char *path, const char *name)
{
	size_t n = strlen(path), length;
	char *result, *found = strstr(text, path);
	if (!found)
		return text;
	FILE *f = open_memstream(&result, &length);
	if (!f)
		abort();
	char *from = text;
	for (; found; found = strstr(found + n, path))
		if (found[n] < '0' || found[n] > '9') {
			fprintf(f, "%.*s%s", (int)(found - from), from, name);
			from = found + n;
		}
	fputs(from, f);
	fclose(f);
	free(text);
	return result;
}

static char *name_recordings(const struct mcp_answers *a, char *text)
{
	for (size_t i = 0; i < a->histories; i++) {
		char plain[40], escaped[40];
		snprintf(plain, sizeof plain, "/proc/self/fd/%d", a->history[i].fd);
		snprintf(escaped, sizeof escaped, "\\/proc\\/self\\/fd\\/%d", a->history[i].fd);
		text = replace_path(replace_path(text, plain, a->history[i].name), escaped, a->history[i].name);
	}
	return text;
}

/* Returns the first page of an answer, whose text is taken over. */
static char *first_page(struct mcp_answers *a, char *text)
{
	size_t length = strlen(text);
	if (length <= MCP_PAGE)
		return text;
	unsigned number = ++a->number;
	struct long_answer *l = &a->kept[number % MCP_KEPT];
	free(l->text);
	*l = (struct long_answer){ number, text, length };
	return page_text(l, 0);
}

/* Runs `picture` with a text file as its output, which becomes *text. */
static int run_picture(int argc, char **argv, char **text, char **notes, struct error *err)
{
	char dir[] = "/tmp/stealscope-mcp-XXXXXX", file[64];
	if (!mkdtemp(dir))
		return error_system(err, NULL, "cannot make a temporary directory");
	snprintf(file, sizeof file, "%s/picture.txt", dir);
	char **all = mem_new((size_t)argc + 3, sizeof *all);
	memcpy(all, argv, (size_t)argc * sizeof *all);
	all[argc] = (char[]){ "-o" };
	all[argc + 1] = file;
	int status = captured_command(cmd_picture, argc + 2, all, MCP_SECONDS, text, notes, err);
	int fd = status == STATUS_OK ? open(file, O_RDONLY | O_CLOEXEC) : -1;
	if (fd >= 0) {
		size_t length;
		char *picture = captured_file(fd, &length);
		close(fd);
		if (picture) {
			free(*text);
			*text = picture;
		}
	}
	unlink(file);
	rmdir(dir);
	free(all);
	return status;
}

char *mcp_run(struct mcp_answers *a, int (*run)(int, char **, struct error *), int argc, char **argv, bool picture,
              bool *failed, struct error *err)
{
	char *text, *notes;
	int status = picture ? run_picture(argc, argv, &text, &notes, err)
	                     : captured_command(run, argc, argv, MCP_SECONDS, &text, &notes, err);
	if (status < 0)
		return NULL;
	*failed = status != STATUS_OK;
	char *answer = mem_printf("%s%s%s", text, *text && *notes ? "\n" : "", notes);
	free(text);
	free(notes);
	return first_page(a, name_recordings(a, answer));
}
