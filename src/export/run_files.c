#include "export/run_files.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

#define OPENED "/proc/self/fd/"

/* Creates a directory unless it exists, and opens it: what another user puts in its place from now on has no effect. A
 * link of another user is not followed. Returns -1 on failure. */
static int open_dir(int parent, const char *path, const char *shown, struct error *err)
{
	struct stat st;
	if (mkdirat(parent, path, 0777) != 0 && errno != EEXIST)
		return error_system(err, "choose another directory", "cannot create the directory %s", shown);
	const bool is_own_link = fstatat(parent, path, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISLNK(st.st_mode) &&
		(st.st_uid == geteuid() || st.st_uid == 0);
	const int fd = openat(parent, path, O_PATH | O_DIRECTORY | O_CLOEXEC | (is_own_link ? 0 : O_NOFOLLOW));
	return fd >= 0 ? fd : error_system(err, "choose another directory", "%s", shown);
}

int files_open(struct run_files *f, const char *dir, const char *suffix, int64_t run, struct error *err)
{
	const int fd = open_dir(AT_FDCWD, dir, dir, err);
	if (fd < 0)
		return -1;
	*f = (struct run_files){ .dir = mem_dup(dir), .suffix = suffix, .run = run, .fd = fd };
	return 0;
}

static void close_table(struct run_files *f)
{
	if (f->table_fd >= 0)
		close(f->table_fd);
	free(f->path);
	f->path = NULL;
}

/* Names the file in a message about it by its path. Returns -1. */
static int name_file(const struct run_files *f, struct error *err)
{
	const struct error of_opened = *err;
	const char *why = strstr(of_opened.text, ": ");
	if (strncmp(of_opened.text, OPENED, strlen(OPENED)) != 0 || !why)
		return -1;
	return error_repeat(err, of_opened.status, of_opened.remedy, "%s%s", f->path, why);
}

int files_begin(struct run_files *f, const struct export_shape *t, struct error *err)
{
	char *dir = mem_printf("%s/%s", f->dir, t->name);
	f->table_fd = open_dir(f->fd, t->name, dir, err);
	f->path = mem_printf("%s/%" PRId64 ".%s", dir, f->run, f->suffix);
	char *opened = mem_printf(OPENED "%d/%" PRId64 ".%s", f->table_fd, f->run, f->suffix);
	f->open = f->table_fd >= 0 && (atomic_file_begin(&f->save, opened, err) == 0 || name_file(f, err) == 0);
	if (!f->open)
		close_table(f);
	free(dir);
	free(opened);
	return f->open ? 0 : -1;
}

int files_end(struct run_files *f, int status, struct error *err)
{
	f->open = false;
	const int rc = atomic_file_end(&f->save, status, err);
	if (rc != 0 && status == 0)
		name_file(f, err);
	close_table(f);
	return rc;
}

void files_close(struct run_files *f)
{
	struct error ignored;
	if (f->open)
		files_end(f, -1, &ignored);
	close(f->fd);
	free(f->dir);
}
