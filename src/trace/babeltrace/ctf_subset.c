#include "trace/babeltrace/ctf_subset.h"

#include <endian.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

static void made(struct excerpt *v, char *path)
{
	*ARRAY_PUSH(v->made, v->len, v->cap) = path;
}

static int link_to(struct excerpt *v, const char *dir, const char *name, struct error *err)
{
	char *target = mem_printf("%s/%s", dir, name), *path = mem_printf("%s/%s", v->dir, name);
	char *full = realpath(target, NULL);
	int status = full && symlink(full, path) == 0 ? 0 : error_system(err, NULL, "%s", target);
	if (status)
		free(path);
	else
		made(v, path);
	free(target);
	free(full);
	return status;
}

char *excerpts_open(const char *where, struct error *err)
{
	const char *env = getenv("TMPDIR");
	char *folder = mem_printf("%s/stealscope-XXXXXX", where ? where : env && *env ? env : "/tmp");
	if (mkdtemp(folder))
		return folder;
	error_system(err, "set TMPDIR to a folder with room", "cannot make a temporary folder %s", folder);
	free(folder);
	return NULL;
}

void excerpts_close(char *folder)
{
	char *const paths[] = { folder, NULL };
	FTS *fts = folder ? fts_open(paths, FTS_PHYSICAL | FTS_NOCHDIR, NULL) : NULL;
	for (FTSENT *e; fts && (e = fts_read(fts));)
		if (e->fts_info != FTS_D)
			remove(e->fts_path);
	if (fts)
		fts_close(fts);
	free(folder);
}

int excerpt_open(struct excerpt *v, const char *dir, const char *where, struct error *err)
{
	*v = (struct excerpt){ .dir = excerpts_open(where, err) };
	if (!v->dir)
		return -1;
	char *index = mem_printf("%s/index", v->dir);
	if (mkdir(index, 0700)) {
		error_system(err, NULL, "%s", index);
		free(index);
		excerpt_close(v);
		return -1;
	}
	made(v, index);
	if (link_to(v, dir, "metadata", err)) {
		excerpt_close(v);
		return -1;
	}
	return 0;
}

static void put32(FILE *out, uint32_t v)
{
	v = htobe32(v);
	fwrite(&v, sizeof v, 1, out);
}

static void put64(FILE *out, uint64_t v)
{
	v = htobe64(v);
	fwrite(&v, sizeof v, 1, out);
}

static void write_index(FILE *out, const struct stream_file *f, size_t first, size_t end)
{
	uint64_t rest = f->bytes;
	put32(out, 0xC1F1DCC1U);
	put32(out, 1);
	put32(out, 1);
	put32(out, 72);
	for (size_t i = first; i < end; i++) {
		const struct packet *p = &f->packet[i];
		const uint64_t size = i + 1 < end ? p->size : rest;  /* see ctf_subset.h */
		rest -= p->size;
		put64(out, p->offset);
		put64(out, size * 8);
		put64(out, p->size * 8);
		put64(out, p->begin);
		put64(out, p->end);
		put64(out, p->discarded);
		put64(out, f->stream_class);
		put64(out, f->instance);
		put64(out, p->sequence);
	}
}

int excerpt_add(struct excerpt *v, const struct stream_file *f, size_t first, size_t end, struct error *err)
{
	if (link_to(v, f->dir, f->name, err))
		return -1;
	char *path = mem_printf("%s/index/%s.idx", v->dir, f->name);
	FILE *out = fopen(path, "wbxe");
	if (!out) {
		error_system(err, "set TMPDIR to a folder with room", "%s", path);
		free(path);
		return -1;
	}
	made(v, path);
	write_index(out, f, first, end);
	int failed = ferror(out);
	if (fclose(out) || failed)
		return error_system(err, "set TMPDIR to a folder with room", "%s", path);
	return 0;
}

void excerpt_close(struct excerpt *v)
{
	while (v->len) {
		char *path = v->made[--v->len];
		if (unlink(path))
			rmdir(path);
		free(path);
	}
	free(v->made);
	if (v->dir)
		rmdir(v->dir);
	free(v->dir);
	*v = (struct excerpt){ 0 };
}
