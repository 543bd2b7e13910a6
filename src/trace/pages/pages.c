/* What the program itself does with a recording: it reads all but the pages. */
#include "trace/pages/pages.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/file_open.h"
#include "base/mem.h"
#include "base/yaml_file.h"

#define MEND "copy the whole folder of the recording again"
#define LONGEST (8 << 20)      /* bytes of a file of names */
#define PAGE_LEAST 1024
#define PAGE_MOST (1 << 24)
#define MOST_CPUS 65536

/* ---- files */

/* Is that what errno says of a name behind which there is no file? */
static bool is_none(int why)
{
	return why == ENOENT || why == ENOTDIR || why == EISDIR || why == EINVAL;
}

/* What is behind its length comes too late. */
static int read_text(FILE *f, const char *path, char **text, size_t *len, struct error *err)
{
	struct stat st;
	if (fstat(fileno(f), &st))
		return error_system(err, NULL, "%s", path);
	if (st.st_size > LONGEST)
		return error_set(err, STATUS_INPUT, MEND, "%s: is too long", path);
	char *all = mem_new((size_t)st.st_size + 1, 1);
	*len = fread(all, 1, (size_t)st.st_size, f);
	all[*len] = '\0';
	if (ferror(f)) {
		free(all);
		return error_system(err, NULL, "%s", path);
	}
	*text = all;
	return 0;
}

int pages_text(const struct pages *p, const char *name, char **text, size_t *len, struct error *err)
{
	char *path = mem_printf("%s/%s", p->path, name);
	FILE *f = file_open(path);
	int rc = f || is_none(errno) ? 0 : error_read(err, MEND, "%s", path);
	*text = NULL;
	*len = 0;
	if (f) {
		rc = read_text(f, path, text, len, err);
		fclose(f);
	}
	free(path);
	return rc;
}

/* "	field: local_t commit;	offset:8;	size:8;	signed:1;" */
static bool find_field(const char *text, const char *what, unsigned *offset, unsigned *size)
{
	const char *at = strstr(text, what);
	return at && sscanf(at + strlen(what), " offset:%9u; size:%9u;", offset, size) == 2;
}

static int read_header(struct pages *p, struct error *err)
{
	unsigned size = 0;
	char *text;
	size_t len;
	if (pages_text(p, "header_page", &text, &len, err))
		return -1;
	const bool known = text && find_field(text, " commit;", &p->length_at, &p->length_size) &&
		find_field(text, " data;", &p->data_at, &size);
	free(text);
	p->page = p->data_at + size;
	if (known && (p->length_size == 4 || p->length_size == 8) && p->length_at >= 8 && p->page >= PAGE_LEAST &&
	    p->page <= PAGE_MOST && p->data_at >= p->length_at + p->length_size && p->data_at < p->page / 2)
		return 0;
	return error_set(err, STATUS_INPUT, MEND, "%s/header_page: is not understood", p->path);
}

/* ---- about.yaml */

struct about { struct yaml_file file; yaml_node_t *root; struct error *err; };

static int get(const struct about *a, yaml_node_t *map, const char *key, int64_t low, int64_t *out)
{
	yaml_node_t *node = yaml_member((struct yaml_file *)(uintptr_t)&a->file, map, key);
	return node ? yaml_integer(&a->file, node, low, INT64_MAX, out, a->err) : 0;
}

struct told_loss { int64_t count, ns; };  /* 0: not said */

static int get_moment(struct about *a, const char *key, struct told_loss *m)
{
	yaml_node_t *map = yaml_member(&a->file, a->root, key);
	return get(a, map, "clock", 0, &m->count) || get(a, map, "realtime", 0, &m->ns) ? -1 : 0;
}

/* The rate is that which the recorder measured; of a guest for which it could not, that by the guest's own clock. */
static int set_scale(struct pages *p, struct about *a, const char *clock, int64_t millihertz, struct told_loss begun,
                     struct told_loss ended)
{
	const int64_t ns = ended.ns - begun.ns, count = ended.count - begun.count;
	p->scale = (struct trace_scale){ .count = (uint64_t)begun.count, .ns = begun.ns, .millihertz = (uint64_t)millihertz };
	if (strcmp(clock, "mono") == 0) {
		p->scale.millihertz = TRACE_SCALE_NS;
	} else if (strcmp(clock, "x86-tsc") != 0) {
		return yaml_refuse(&a->file, a->root, a->err, "no such clock is known: '%s'", clock);
	} else if (millihertz) {
		p->scale.is_tsc = true;
	} else if (begun.ns && begun.count && ns > 0 && count > 0) {
		const int128 rate = (int128)count * TRACE_SCALE_NS / ns;
		p->scale.millihertz = rate > 0 && rate < INT64_MAX ? (uint64_t)rate : 0;
	}
	if (!p->scale.millihertz)
		return yaml_refuse(&a->file, a->root, a->err, "the rate of its clock is not said");
	p->begin = trace_scale_ns(&p->scale, (uint64_t)begun.count);
	p->end = ended.count ? trace_scale_ns(&p->scale, (uint64_t)ended.count) : INT64_MAX;
	if (p->end < p->begin)
		return yaml_refuse(&a->file, a->root, a->err, "it ends before it begins");
	return 0;
}

static int read_members(struct pages *p, struct about *a)
{
	int64_t millihertz = 0, lost = 0, kept = 0;
	struct told_loss begun = { 0 }, ended = { 0 };
	const char *clock = yaml_scalar(yaml_member(&a->file, a->root, "clock"));
	const char *hostname = yaml_scalar(yaml_member(&a->file, a->root, "hostname"));
	snprintf(p->hostname, sizeof p->hostname, "%s", hostname ? hostname : "");
	if (get(a, a->root, "millihertz", 1, &millihertz) || get(a, a->root, "lost", 0, &lost) ||
	    get(a, a->root, "kept", 1, &kept) ||
	    get_moment(a, "started", &begun) || get_moment(a, "stopped", &ended))
		return -1;
	p->lost = (uint64_t)lost;
	if (set_scale(p, a, clock ? clock : "", millihertz, begun, ended))
		return -1;
	int64_t since;
	p->kept = kept;
	if (kept && p->end != INT64_MAX && !__builtin_sub_overflow(p->end, kept, &since) && since > p->begin)
		p->begin = since;
	return 0;
}

static int read_about(struct pages *p, struct error *err)
{
	struct about a = { .err = err };
	char *path = mem_printf("%s/about.yaml", p->path);
	int rc = yaml_file_read(&a.file, path, MEND, err);
	free(path);
	if (rc)
		return -1;
	a.root = yaml_root(&a.file);
	rc = a.root ? read_members(p, &a) : yaml_refuse(&a.file, NULL, err, "it is empty");
	yaml_file_release(&a.file);
	return rc;
}

/* ---- CPUs */

static int by_number(const void *a, const void *b)
{
	const struct pages_cpu *x = a, *y = b;
	return x->cpu < y->cpu ? -1 : x->cpu > y->cpu;
}

static int add_cpu(struct pages *p, unsigned number, uint64_t bytes, struct error *err)
{
	char name[32], *text;
	size_t len;
	struct pages_cpu *c = ARRAY_PUSH(p->cpu, p->cpus, p->cpus_cap);
	*c = (struct pages_cpu){ .cpu = number, .bytes = bytes };
	snprintf(name, sizeof name, "stats/cpu%u", number);
	const int rc = pages_text(p, name, &text, &len, err);
	c->has_stat = text && *text;
	if (c->has_stat)
		c->stat = cpu_stat_parse(text);
	c->stat.cpu = number;
	free(text);
	return rc;
}

static int find_cpus(struct pages *p, struct error *err)
{
	char *path = mem_printf("%s/pages", p->path);
	DIR *dir = opendir(path);
	int rc = dir ? 0 : error_read(err, MEND, "%s", path);
	for (struct dirent *e; rc == 0 && (e = readdir(dir));) {
		unsigned number;
		char rest;
		struct stat st;
		if (sscanf(e->d_name, "cpu%5u%c", &number, &rest) == 1 && number < MOST_CPUS &&
		    fstatat(dirfd(dir), e->d_name, &st, 0) == 0 && S_ISREG(st.st_mode))
			rc = add_cpu(p, number, (uint64_t)st.st_size, err);
	}
	free(path);
	if (dir)
		closedir(dir);
	if (p->cpus)
		qsort(p->cpu, p->cpus, sizeof *p->cpu, by_number);
	return rc;
}

struct pages *pages_read(const char *path, struct error *err)
{
	struct pages *p = mem_new(1, sizeof *p);
	p->path = mem_dup(path);
	if (read_header(p, err) == 0 && read_about(p, err) == 0 && find_cpus(p, err) == 0)
		return p;
	pages_free(p);
	return NULL;
}

void pages_free(struct pages *p)
{
	if (!p)
		return;
	free(p->cpu);
	free(p->path);
	free(p);
}

/* ---- the reader */

static int describe(struct place *p, struct error *err)
{
	struct pages *d = p->data = pages_read(p->path, err);
	if (!d)
		return -1;
	for (size_t i = 0; i < d->cpus; i++)
		p->bytes += d->cpu[i].bytes;
	p->lost = d->lost;
	p->scale = d->scale;
	snprintf(p->meta.hostname, sizeof p->meta.hostname, "%s", d->hostname);
	snprintf(p->meta.tracer, sizeof p->meta.tracer, "stealscope record");
	return pages_text(d, "saved_cmdlines", &p->saved_names, &p->saved_bytes, err);
}

static void forget(struct place *p)
{
	pages_free(p->data);
}

static int open_folder(struct source *s, struct error *err)
{
	const struct pages *p = s->place[0]->data;
	(void)err;
	for (size_t i = 0; i < p->cpus; i++)
		*ARRAY_PUSH(s->stream, s->streams, s->streams_cap) =
			(struct source_stream){ .name = mem_printf("of CPU %u", p->cpu[i].cpu), .bytes = p->cpu[i].bytes };
	return 0;
}

/* When the page at the file's present place begins, ns; false: there is none.  It goes on to the next page. */
static bool next_page(const struct pages *p, FILE *f, int64_t *ns)
{
	uint64_t count;  /* its time comes first, in our byte order */
	if (fread(&count, sizeof count, 1, f) != 1 || fseek(f, (long)(p->page - sizeof count), SEEK_CUR))
		return false;
	*ns = trace_scale_ns(&p->scale, count);
	return true;
}

/* By where the pages say that they begin.  One of them may be damaged: from the first page behind which the window may
 * begin to the last one that may begin before it ends. */
static void narrow(const struct source *s, const struct trace_window *only, struct stretch *stretch)
{
	const struct pages *p = s->place[0]->data;
	char *path = mem_printf("%s/pages/cpu%u", p->path, p->cpu[stretch->stream].cpu);
	FILE *f = file_open(path);
	bool begun = false;
	int64_t ns;
	free(path);
	if (!f)
		return;  /* decoding says why */
	stretch->to = 0;
	for (uint64_t i = 0; next_page(p, f, &ns); i++) {
		begun |= ns >= only->from;
		stretch->from = !begun ? i : stretch->from;
		stretch->to = ns <= only->to ? i + 1 : stretch->to;
	}
	stretch->to = stretch->to > stretch->from ? stretch->to : stretch->from;
	fclose(f);
}

#define DIED "libtraceevent does not survive reading it"
const struct trace_reader pages_reader = {
	.name = "libtraceevent", .apart = true, .alone = true, .patience = 60, .died = DIED, .silent = DIED,
	.mend = MEND, .unit = "page",
	.claims = pages_claims, .describe = describe, .forget = forget, .open = open_folder, .narrow = narrow,
	.enter = pages_enter, .decode = pages_decode,
};
