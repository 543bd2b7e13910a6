/* Reader of raw pages, part in the main process: reads all files except the pages. */
#include "trace/pages/pages.h"

#include <dirent.h>
#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/base.h"
#include "base/file_open.h"
#include "base/yaml_file.h"

#define REMEDY "copy the whole directory of the recording again"
#define DESCRIPTION_MAX (8 << 20)      /* maximum size of a description file, bytes */
#define PAGE_MIN 1024
#define PAGE_MAX (1 << 24)
#define CPUS_MAX 65536
#define PLAIN_CPUS_MAX 1024  /* CPUs that are searched in a copy of tracefs */

/* ---- files */

/* Returns true if the errno value means that there is no regular file. */
static bool means_no_file(int why)
{
	return why == ENOENT || why == ENOTDIR || why == EISDIR || why == FILE_NOT_REGULAR;
}

/* Reads a file up to its current size; bytes appended later are ignored. Returns 0 or -1. */
static int read_text(FILE *f, const char *path, char **text, size_t *len, struct error *err)
{
	struct stat st;
	if (fstat(fileno(f), &st))
		return error_system(err, NULL, "%s", path);
	if (st.st_size > DESCRIPTION_MAX)
		return error_set(err, STATUS_INPUT, REMEDY, "%s: file too large", path);
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
	int status = f || means_no_file(errno) ? 0 : error_read(err, REMEDY, "%s", path);
	*text = NULL;
	*len = 0;
	if (f) {
		status = read_text(f, path, text, len, err);
		fclose(f);
	}
	free(path);
	return status;
}

/* Parses "        field: local_t commit;  offset:8;       size:8; signed:1;". */
static bool find_field(const char *text, const char *key, unsigned *offset, unsigned *size)
{
	const char *at = strstr(text, key);
	return at && sscanf(at + strlen(key), " offset:%9u; size:%9u;", offset, size) == 2;
}

bool page_header_parse(const char *text, struct page_header *p)
{
	unsigned size = 0;
	const bool known = find_field(text, " commit;", &p->length_offset, &p->length_size) &&
		find_field(text, " data;", &p->data_offset, &size);
	p->page = p->data_offset + size;
	return known && (p->length_size == 4 || p->length_size == 8) && p->length_offset >= 8 && p->page >= PAGE_MIN &&
	       p->page <= PAGE_MAX && p->data_offset >= p->length_offset + p->length_size && p->data_offset < p->page / 2;
}

static int read_header(struct pages *p, struct error *err)
{
	char *text;
	size_t len;
	if (pages_text(p, "header_page", &text, &len, err))
		return -1;
	const bool known = text && page_header_parse(text, &p->header);
	free(text);
	if (known)
		return 0;
	return error_set(err, STATUS_INPUT, REMEDY, "%s/header_page: unknown format", p->path);
}

/* ---- about.yaml */

#define DATE_ERROR (20 * NS_PER_MS)  /* assumed time from a guest's date(1) to its reading of the trace clock */

struct about_file { struct yaml_file file; yaml_node_t *root; struct error *err; };

static int read_integer(const struct about_file *a, yaml_node_t *map, const char *key, int64_t low, int64_t *out)
{
	yaml_node_t *node = yaml_member((struct yaml_file *)(uintptr_t)&a->file, map, key);
	return node ? yaml_integer(&a->file, node, low, INT64_MAX, out, a->err) : 0;
}

static int read_clock_sample(struct about_file *a, const char *key, struct page_clock *m)
{
	yaml_node_t *map = yaml_member(&a->file, a->root, key);
	return read_integer(a, map, "clock", 0, &m->count) || read_integer(a, map, "realtime", 0, &m->ns) ? -1 : 0;
}

/* Reads the error of the real time at the start. Earlier recordings lack it: then a guest's sample, which has no
 * CLOCK_MONOTONIC, is that of date(1), in seconds or ns. */
static int read_realtime_error(struct pages *p, struct about_file *a, int64_t realtime)
{
	yaml_node_t *map = yaml_member(&a->file, a->root, "started");
	p->realtime_error = map && yaml_member(&a->file, map, "monotonic") ? 0 : realtime % NS_PER_S ? DATE_ERROR : NS_PER_S;
	return map ? read_integer(a, map, "error", 0, &p->realtime_error) : 0;
}

/* Sets begin and end from the scale. */
static void set_limits(struct pages *p)
{
	int64_t since;
	p->begin = p->scale.ns;
	p->end = p->ended.count ? clock_scale_ns(&p->scale, (uint64_t)p->ended.count) : INT64_MAX;
	if (p->overwrite_ns && p->end != INT64_MAX && !__builtin_sub_overflow(p->end, p->overwrite_ns, &since) &&
	    since > p->begin)
		p->begin = since;
}

/* Sets scale, begin and end. Uses the rate that the recorder measured; if there is none, which is the case for some
 * guests, derives the rate from the guest's real time at start and stop. */
static int set_scale(struct pages *p, struct about_file *a, const char *clock, int64_t millihertz,
                     struct page_clock begun, struct page_clock ended)
{
	const int64_t ns = ended.ns - begun.ns, count = ended.count - begun.count;
	p->scale = (struct clock_scale){ .count = (uint64_t)begun.count, .ns = begun.ns, .millihertz = (uint64_t)millihertz };
	if (strcmp(clock, "mono") == 0) {
		p->scale.millihertz = CLOCK_SCALE_NS;
	} else if (strcmp(clock, "x86-tsc") != 0) {
		return yaml_refuse(&a->file, a->root, a->err, "unknown clock: '%s'", clock);
	} else if (millihertz) {
		p->scale.is_tsc = true;
	} else if (begun.ns && begun.count && ns > 0 && count > 0) {
		const int128 rate = (int128)count * CLOCK_SCALE_NS / ns;
		p->scale.millihertz = rate > 0 && rate < INT64_MAX ? (uint64_t)rate : 0;
	}
	if (!p->scale.millihertz)
		return yaml_refuse(&a->file, a->root, a->err, "the rate of the tracer's clock is missing");
	p->counts_tsc = strcmp(clock, "x86-tsc") == 0;
	set_limits(p);
	if (p->end < p->begin)
		return yaml_refuse(&a->file, a->root, a->err, "the recording ends before it begins");
	return 0;
}

/* Reads the identity that the provider of a guest alone knows best. */
static void read_vm_id(struct pages *p, struct about_file *a)
{
	static const char *const keys[] = { "instance_id", "uuid", "serial" };
	yaml_node_t *alone = yaml_member(&a->file, a->root, "guest_only");
	yaml_node_t *vm = alone ? yaml_member(&a->file, alone, "vm") : NULL;
	const char *id = NULL;
	p->guest_only = alone != NULL;
	for (size_t i = 0; vm && !id && i < sizeof keys / sizeof *keys; i++)
		id = yaml_scalar(yaml_member(&a->file, vm, keys[i]));
	snprintf(p->vm_id, sizeof p->vm_id, "%s", id ? id : "");
}

static int read_members(struct pages *p, struct about_file *a)
{
	int64_t millihertz = 0, lost = 0, overwrite_ns = 0;
	struct page_clock begun = { 0 }, ended = { 0 };
	const char *clock = yaml_scalar(yaml_member(&a->file, a->root, "clock"));
	const char *hostname = yaml_scalar(yaml_member(&a->file, a->root, "hostname"));
	snprintf(p->hostname, sizeof p->hostname, "%s", hostname ? hostname : "");
	read_vm_id(p, a);
	if (read_integer(a, a->root, "millihertz", 1, &millihertz) || read_integer(a, a->root, "lost", 0, &lost) ||
	    read_integer(a, a->root, "kept", 1, &overwrite_ns) ||
	    read_clock_sample(a, "started", &begun) || read_clock_sample(a, "stopped", &ended) ||
	    read_realtime_error(p, a, begun.ns))
		return -1;
	p->lost = (uint64_t)lost;
	p->overwrite_ns = overwrite_ns;
	p->ended = ended;
	return set_scale(p, a, clock ? clock : "", millihertz, begun, ended);
}

static int read_about(struct pages *p, struct error *err)
{
	struct about_file a = { .err = err };
	char *path = mem_printf("%s/about.yaml", p->path);
	int status = yaml_file_read(&a.file, path, REMEDY, err);
	free(path);
	if (status)
		return -1;
	a.root = yaml_root(&a.file);
	status = a.root ? read_members(p, &a) : yaml_refuse(&a.file, NULL, err, "the file is empty");
	yaml_file_release(&a.file);
	return status;
}

/* ---- CPUs */

ORDER_BY(by_number, struct pages_cpu, RISING(cpu))

static int add_cpu(struct pages *p, unsigned number, uint64_t bytes, struct error *err)
{
	char name[32], *text;
	size_t len;
	struct pages_cpu *c = ARRAY_PUSH(p->cpu, p->cpus, p->cpus_cap);
	*c = (struct pages_cpu){ .cpu = number, .bytes = bytes };
	snprintf(name, sizeof name, "stats/cpu%u", number);
	const int status = pages_text(p, name, &text, &len, err);
	c->has_stat = text && *text;
	if (c->has_stat)
		c->stat = cpu_stat_parse(text);
	c->stat.cpu = number;
	free(text);
	return status;
}

/* Files of CPUs in a copy of tracefs, beside the formats' directory. */
static const char *const plain_formats[] = { "per_cpu/cpu%u/trace_pipe_raw", "traces/cpu%u", "cpu%u",
                                             "cpu%u/trace_pipe_raw" };

char *pages_cpu_path(const struct pages *p, unsigned cpu)
{
	const char *at = p->cpu_format, *next;
	while ((next = strstr(at + 1, "%u")))  /* the last one: the directory may contain it, too */
		at = next;
	return mem_printf("%.*s%u%s", (int)(at - p->cpu_format), p->cpu_format, cpu, at + 2);
}

/* Checks the file trace_clock of a copy of tracefs, if it was copied: "local [global] mono". */
static int check_plain_clock(const struct pages *p, struct error *err)
{
	char *text, clock[32] = "";
	size_t len;
	if (pages_text(p, "../trace_clock", &text, &len, err))
		return -1;
	const char *open = text ? strchr(text, '[') : NULL;
	if (open)
		sscanf(open, "[%31[^]]]", clock);
	free(text);
	if (strcmp(clock, "x86-tsc") == 0 || strcmp(clock, "counter") == 0)
		return error_set(err, STATUS_INPUT, "record with the clock mono", "%s: the unit of its clock '%s' is unknown",
		                 p->path, clock);
	return 0;
}

/* Finds the pages of a copy of tracefs, in the first place that has any. */
static int find_plain_cpus(struct pages *p, struct error *err)
{
	p->is_plain = true;
	p->formats = ".";
	p->scale = (struct clock_scale){ .millihertz = CLOCK_SCALE_NS };
	p->end = INT64_MAX;
	for (size_t i = 0; i < sizeof plain_formats / sizeof *plain_formats && !p->cpus; i++) {
		free(p->cpu_format);
		p->cpu_format = mem_printf("%s/../%s", p->path, plain_formats[i]);
		for (unsigned cpu = 0; cpu < PLAIN_CPUS_MAX; cpu++) {
			struct stat st;
			char *path = pages_cpu_path(p, cpu);
			if (stat(path, &st) == 0 && S_ISREG(st.st_mode) && st.st_size)
				*ARRAY_PUSH(p->cpu, p->cpus, p->cpus_cap) =
					(struct pages_cpu){ .cpu = cpu, .bytes = (uint64_t)st.st_size, .stat.cpu = cpu };
			free(path);
		}
	}
	if (p->cpus)
		return check_plain_clock(p, err);
	return error_set(err, STATUS_INPUT, "copy per_cpu/cpuN/trace_pipe_raw of each CPU beside events/",
	                 "%s: formats of events, but no pages of a CPU beside them", p->path);
}

static int find_cpus(struct pages *p, struct error *err)
{
	char *path = mem_printf("%s/pages", p->path);
	p->cpu_format = mem_printf("%s/cpu%%u", path);
	p->formats = "events";
	DIR *dir = opendir(path);
	int status = dir ? 0 : error_read(err, REMEDY, "%s", path);
	for (struct dirent *e; status == 0 && (e = readdir(dir));) {
		unsigned number;
		char rest;
		struct stat st;
		if (sscanf(e->d_name, "cpu%5u%c", &number, &rest) == 1 && number < CPUS_MAX &&
		    fstatat(dirfd(dir), e->d_name, &st, 0) == 0 && S_ISREG(st.st_mode))
			status = add_cpu(p, number, (uint64_t)st.st_size, err);
	}
	free(path);
	if (dir)
		closedir(dir);
	ARRAY_SORT(p->cpu, p->cpus, by_number);
	return status;
}

static bool is_formats_dir(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
	return strcmp(name, "events") == 0 || strcmp(name, "formats") == 0;
}

struct pages *pages_read(const char *path, struct error *err)
{
	struct pages *p = mem_new(1, sizeof *p);
	p->path = mem_dup(path);
	char *about = mem_printf("%s/about.yaml", path);
	const bool is_plain = access(about, F_OK) != 0 && is_formats_dir(path);
	free(about);
	if (read_header(p, err) == 0 &&
	    (is_plain ? find_plain_cpus(p, err) : read_about(p, err) ? -1 : find_cpus(p, err)) == 0)
		return p;
	pages_free(p);
	return NULL;
}

void pages_free(struct pages *p)
{
	if (!p)
		return;
	free(p->cpu);
	free(p->cpu_format);
	free(p->path);
	free(p);
}

/* ---- the reader */

static int describe_dir(struct trace_location *p, struct error *err)
{
	struct pages *d = p->data = pages_read(p->path, err);
	if (!d)
		return -1;
	for (size_t i = 0; i < d->cpus; i++)
		p->bytes += d->cpu[i].bytes;
	p->lost = d->lost;
	p->scale = d->scale;
	snprintf(p->meta.hostname, sizeof p->meta.hostname, "%s", d->hostname);
	snprintf(p->meta.vm_id, sizeof p->meta.vm_id, "%s", d->vm_id);
	p->meta.guest_only = d->guest_only;
	p->meta.is_monotonic = !d->counts_tsc;
	p->meta.realtime_error = d->realtime_error;
	snprintf(p->meta.tracer, sizeof p->meta.tracer, d->is_plain ? "copy of tracefs" : "stealscope record");
	if (d->is_plain) {  /* the directory around the formats contains the trace */
		char *slash = strrchr(p->path, '/');
		char *around = slash ? mem_printf("%.*s", (int)(slash - p->path), p->path) : mem_dup(".");
		free(p->path);
		p->path = around;
	}
	return pages_text(d, d->is_plain ? "../saved_cmdlines" : "saved_cmdlines", &p->saved_names, &p->saved_bytes, err);
}

static void forget_dir(struct trace_location *p)
{
	pages_free(p->data);
}

/* A Xen host's TSC is usually that of its domains, so the given rate replaces the measured one, unless that is of
 * another TSC. */
static void set_tsc_rate(struct trace_location *p, uint64_t millihertz)
{
	struct pages *d = p->data;
	const uint64_t measured = d->scale.millihertz;
	if (!d->counts_tsc || (measured > millihertz ? measured - millihertz : millihertz - measured) > millihertz / 100)
		return;
	d->scale.millihertz = millihertz;
	d->scale.is_tsc = true;
	set_limits(d);
	p->scale = d->scale;
}

static int open_dir(struct source *s, struct error *err)
{
	const struct pages *p = s->location[0]->data;
	(void)err;
	for (size_t i = 0; i < p->cpus; i++)
		*ARRAY_PUSH(s->stream, s->streams, s->streams_cap) =
			(struct source_stream){ .name = mem_printf("of CPU %u", p->cpu[i].cpu), .bytes = p->cpu[i].bytes };
	return 0;
}

/* Reads the start time of the next page, ns. Returns false at the file's end. */
static bool next_page(const struct pages *p, FILE *f, int64_t *ns)
{
	uint64_t count;  /* a page starts with its time, in native byte order */
	if (fread(&count, sizeof count, 1, f) != 1 || fseek(f, (long)(p->header.page - sizeof count), SEEK_CUR))
		return false;
	*ns = clock_scale_ns(&p->scale, count);
	return true;
}

/* Reduces *stream_part to the pages that may contain events of the window, by the pages' start times: from the
 * last page before the first one that begins inside or after the window, to the last page that begins before the end of
 * the window. The range is correct even if one of the start times is damaged. */
static void narrow_part(const struct source *s, const struct trace_window *window, struct stream_part *stream_part)
{
	const struct pages *p = s->location[0]->data;
	char *path = pages_cpu_path(p, p->cpu[stream_part->stream].cpu);
	FILE *f = file_open(path);
	bool begun = false;
	int64_t ns;
	free(path);
	if (!f)
		return;  /* decoding reports the error */
	stream_part->to = 0;
	for (uint64_t i = 0; next_page(p, f, &ns); i++) {
		begun |= ns >= window->from;
		stream_part->from = !begun ? i : stream_part->from;
		stream_part->to = ns <= window->to ? i + 1 : stream_part->to;
	}
	stream_part->to = stream_part->to > stream_part->from ? stream_part->to : stream_part->from;
	fclose(f);
}

const struct trace_reader pages_reader = {
	.name = "libtraceevent",
	IN_CHILD("libtraceevent crashed or hung while reading it"),
	.is_whole_machine = true,
	.remedy = REMEDY,
	.unit = "page",
	.claims = pages_claims,
	.describe = describe_dir,
	.forget = forget_dir,
	.set_tsc_rate = set_tsc_rate,
	.open = open_dir,
	.narrow = narrow_part,
	.enter = pages_enter,
	.decode = pages_decode,
};
