#include "trace/babeltrace/ctf_subset.h"

#include <endian.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

static void add_created(struct ctf_subset *v, char *path)
{
	*ARRAY_PUSH(v->created, v->len, v->cap) = path;
}

static int add_link(struct ctf_subset *v, const char *dir, const char *name, struct error *err)
{
	char *target = mem_printf("%s/%s", dir, name), *path = mem_printf("%s/%s", v->dir, name);
	char *full = realpath(target, NULL);
	int status = full && symlink(full, path) == 0 ? 0 : error_system(err, NULL, "%s", target);
	if (status)
		free(path);
	else
		add_created(v, path);
	free(target);
	free(full);
	return status;
}

char *temp_dir_make(const char *parent, struct error *err)
{
	const char *env = getenv("TMPDIR");
	char *dir = mem_printf("%s/stealscope-XXXXXX", parent ? parent : env && *env ? env : "/tmp");
	if (mkdtemp(dir))
		return dir;
	error_system(err, "set TMPDIR to a directory with free space", "cannot create a temporary directory %s", dir);
	free(dir);
	return NULL;
}

void temp_dir_remove(char *dir)
{
	char *const paths[] = { dir, NULL };
	FTS *fts = dir ? fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL) : NULL;
	for (FTSENT *e; fts && (e = fts_read(fts));)
		if (e->fts_info != FTS_D)
			remove(e->fts_path);
	if (fts)
		fts_close(fts);
	free(dir);
}

int ctf_subset_open(struct ctf_subset *v, const char *dir, const char *parent, struct error *err)
{
	*v = (struct ctf_subset){ .dir = temp_dir_make(parent, err) };
	if (!v->dir)
		return -1;
	char *index = mem_printf("%s/index", v->dir);
	if (mkdir(index, 0700)) {
		error_system(err, NULL, "%s", index);
		free(index);
		ctf_subset_close(v);
		return -1;
	}
	add_created(v, index);
	if (add_link(v, dir, "metadata", err)) {
		ctf_subset_close(v);
		return -1;
	}
	return 0;
}

static void write_u32(FILE *out, uint32_t v)
{
	v = htobe32(v);
	fwrite(&v, sizeof v, 1, out);
}

static void write_u64(FILE *out, uint64_t v)
{
	v = htobe64(v);
	fwrite(&v, sizeof v, 1, out);
}

static void write_index(FILE *out, const struct stream_file *f, size_t first, size_t end)
{
	uint64_t rest = f->bytes;
	write_u32(out, 0xC1F1DCC1U);
	write_u32(out, 1);
	write_u32(out, 1);
	write_u32(out, 72);
	for (size_t i = first; i < end; i++) {
		const struct packet *p = &f->packet[i];
		const uint64_t size = i + 1 < end ? p->size : rest;  /* the last size is too large, see ctf_subset.h */
		rest -= p->size;
		write_u64(out, p->offset);
		write_u64(out, size * 8);
		write_u64(out, p->size * 8);
		write_u64(out, p->begin);
		write_u64(out, p->end);
		write_u64(out, p->discarded);
		write_u64(out, f->stream_class);
		write_u64(out, f->instance);
		write_u64(out, p->sequence);
	}
}

int ctf_subset_add(struct ctf_subset *v, const struct stream_file *f, size_t first, size_t end, struct error *err)
{
	if (add_link(v, f->dir, f->name, err))
		return -1;
	char *path = mem_printf("%s/index/%s.idx", v->dir, f->name);
	FILE *out = fopen(path, "wbxe");
	if (!out) {
		error_system(err, "set TMPDIR to a directory with free space", "%s", path);
		free(path);
		return -1;
	}
	add_created(v, path);
	write_index(out, f, first, end);
	int failed = ferror(out);
	if (fclose(out) || failed)
		return error_system(err, "set TMPDIR to a directory with free space", "%s", path);
	return 0;
}

void ctf_subset_close(struct ctf_subset *v)
{
	while (v->len) {
		char *path = v->created[--v->len];
		if (unlink(path))
			rmdir(path);
		free(path);
	}
	free(v->created);
	if (v->dir)
		rmdir(v->dir);
	free(v->dir);
	*v = (struct ctf_subset){ 0 };
}
