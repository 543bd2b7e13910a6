#include "export/run_files.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/mem.h"

static int make_dir(const char *path, struct error *err)
{
	if (mkdir(path, 0777) == 0 || errno == EEXIST)
		return 0;
	return error_system(err, "choose another directory", "cannot create the directory %s", path);
}

int files_open(struct run_files *f, const char *dir, const char *suffix, int64_t run, struct error *err)
{
	if (make_dir(dir, err))
		return -1;
	*f = (struct run_files){ .dir = mem_dup(dir), .suffix = suffix, .run = run };
	return 0;
}

int files_begin(struct run_files *f, const struct export_shape *t, struct error *err)
{
	char *dir = mem_printf("%s/%s", f->dir, t->name);
	char *path = mem_printf("%s/%" PRId64 ".%s", dir, f->run, f->suffix);
	f->open = make_dir(dir, err) == 0 && atomic_file_begin(&f->save, path, err) == 0;
	free(dir);
	free(path);
	return f->open ? 0 : -1;
}

int files_end(struct run_files *f, int status, struct error *err)
{
	f->open = false;
	return atomic_file_end(&f->save, status, err);
}

void files_close(struct run_files *f)
{
	struct error ignored;
	if (f->open)
		files_end(f, -1, &ignored);
	free(f->dir);
}
