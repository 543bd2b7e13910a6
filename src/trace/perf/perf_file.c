/* Descriptions in a perf file: header, events, sections about the machine, and the records before the first sample. */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "trace/perf/perf_records.h"
#include "trace/perf/perf_sample.h"
#include "trace/tracecmd/dat_position.h"

#define ATTRS_MAX 4096
#define ATTR_MIN 64            /* size of the first version of struct perf_event_attr, bytes */
#define ATTR_MAX 4096
#define TEXT_MAX 4096
#define FEATURES 256
#define FEATURE_SIMPLEPERF 129  /* META_INFO of Android's simpleperf */
#define NAMES_MAX (16u << 20)  /* maximum size of the list of names, bytes */

enum perf_feature {
	FEATURE_TRACING_DATA = 1, FEATURE_HOSTNAME = 3, FEATURE_VERSION = 5, FEATURE_CPUS = 7, FEATURE_EVENTS = 12,
	FEATURE_SAMPLE_TIME = 21, FEATURE_DIR_FORMAT = 24, FEATURE_CLOCK_DATA = 29,
};
/* Bits of the flags of struct perf_event_attr. */
enum perf_flag { FLAG_FREQ = 10, FLAG_TRAILER = 18, FLAG_CLOCK = 25 };
/* Offsets in struct perf_event_attr, which all versions share. */
enum perf_attr_offset {
	ATTR_TYPE = 0, ATTR_SIZE = 4, ATTR_CONFIG = 8, ATTR_PERIOD = 16, ATTR_SAMPLE_TYPE = 24, ATTR_READ_FORMAT = 32,
	ATTR_FLAGS = 40, ATTR_CLOCK = 92
};

const char *perf_clock_name(int clock)
{
	switch (clock) {
	case PERF_CLOCK_DEFAULT: return "perf";
	case CLOCK_REALTIME: return "realtime";
	case CLOCK_MONOTONIC: return "monotonic";
	case CLOCK_MONOTONIC_RAW: return "monotonic_raw";
	case CLOCK_BOOTTIME: return "boottime";
	case CLOCK_TAI: return "tai";
	default: return "unknown";
	}
}

const struct perf_attr *perf_attr_find(const struct perf_file *f, uint64_t id)
{
	const uint64_t *index = map_find(&f->attr_by_id, id);
	return index ? &f->attr[*index - 1] : NULL;
}

/* ---- events */

/* Bits are stored from the lowest bit of the first byte in files of little-endian machines, from its highest bit in
 * others. */
static bool has_flag(const struct perf_file *f, const unsigned char *flags, enum perf_flag n)
{
	return flags[n / 8] >> (f->big_endian ? 7 - n % 8 : n % 8) & 1;
}

static struct perf_position attr_field(const struct perf_file *f, const unsigned char *attr, size_t size,
                                       enum perf_attr_offset at)
{
	return (struct perf_position){ attr + (at < size ? at : size), attr + size, f->big_endian, false };
}

/* Adds an event. Returns its index + 1; 0: damaged. */
static size_t add_attr(struct perf_file *f, const unsigned char *bytes, size_t size)
{
	if (size < ATTR_MIN || f->attrs >= ATTRS_MAX)
		return 0;
	struct perf_position type = attr_field(f, bytes, size, ATTR_TYPE), config = attr_field(f, bytes, size, ATTR_CONFIG),
		clock = attr_field(f, bytes, size, ATTR_CLOCK);
	struct perf_attr *a = ARRAY_PUSH(f->attr, f->attrs, f->attrs_cap);
	*a = (struct perf_attr){ .type = perf_get32(&type) };
	a->config = perf_get64(&config);
	a->period = perf_get64(&config);
	a->sample_type = perf_get64(&config);
	a->read_format = perf_get64(&config);
	a->is_sampled = has_flag(f, bytes + ATTR_FLAGS, FLAG_FREQ) || a->period > 1;
	a->has_trailer = has_flag(f, bytes + ATTR_FLAGS, FLAG_TRAILER);
	if (has_flag(f, bytes + ATTR_FLAGS, FLAG_CLOCK))
		f->clock = (int)perf_get32(&clock);
	return f->attrs;
}

static void add_id(struct perf_file *f, size_t attr, uint64_t id)
{
	*map_put(&f->attr_by_id, id, NULL) = attr;
}

/* Reads the header's events: descriptions, each with the section of its ids. */
static void read_attrs(struct perf_file *f, struct dat_position *w, uint64_t entry, uint64_t at, uint64_t bytes)
{
	unsigned char attr[ATTR_MAX];
	uint64_t all_ids = 0;
	w->is_bad |= entry < ATTR_MIN + 16 || entry > ATTR_MAX + 16 || bytes / (entry ? entry : 1) > ATTRS_MAX;
	for (uint64_t left = bytes; !w->is_bad && left >= entry; left -= entry, at += entry) {
		w->at = at;
		dat_read_bytes(w, attr, entry - 16);
		const uint64_t ids_at = dat_get64(w), ids = dat_get64(w) / 8;
		const size_t index = w->is_bad ? 0 : add_attr(f, attr, entry - 16);
		w->at = ids_at;
		all_ids += ids;
		w->is_bad |= !index || all_ids > f->bytes / 8;
		for (uint64_t i = 0; i < ids && !w->is_bad; i++)
			add_id(f, index, dat_get64(w));
	}
}

/* Pipe format: a description, then its ids. */
static void add_attr_record(struct perf_file *f, const struct perf_record *rec)
{
	if (rec->size < ATTR_MIN)
		return;
	struct perf_position size = attr_field(f, rec->body, rec->size, ATTR_SIZE);
	const uint32_t n = perf_get32(&size);
	const size_t index = n <= rec->size ? add_attr(f, rec->body, n) : 0;
	struct perf_position p = { rec->body + n, rec->body + rec->size, f->big_endian, !index };
	while (!p.is_bad && p.end - p.at >= 8)
		add_id(f, index, perf_get64(&p));
}

/* ---- sections */

static void get_text(struct dat_position *w, char *to, size_t size)
{
	char text[TEXT_MAX + 1];
	const uint32_t n = dat_get32(w);
	w->is_bad |= n > TEXT_MAX;
	if (w->is_bad)
		return;
	dat_read_bytes(w, text, n);
	text[n] = '\0';
	snprintf(to, size, "%.*s", (int)size - 1, text);
}

/* Reads the events' names, which are in the order of the descriptions. */
static void read_event_names(struct perf_file *f, struct dat_position *w)
{
	const uint32_t events = dat_get32(w), size = dat_get32(w);
	for (uint32_t i = 0; i < events && i < f->attrs && !w->is_bad; i++) {
		dat_skip_bytes(w, size);
		const uint32_t ids = dat_get32(w);
		get_text(w, f->attr[i].name, sizeof f->attr[i].name);
		dat_skip_bytes(w, (uint64_t)ids * 8);
	}
}

/* Reads a section. Damage of these texts and numbers does not prevent reading of the events. */
static void read_feature(struct perf_file *f, struct dat_position w, enum perf_feature kind)
{
	switch (kind) {
	case FEATURE_TRACING_DATA:
		f->formats_at = w.at;
		f->formats_end = w.size;
		break;
	case FEATURE_HOSTNAME:
		get_text(&w, f->hostname, sizeof f->hostname);
		break;
	case FEATURE_VERSION:
		get_text(&w, f->release, sizeof f->release);
		break;
	case FEATURE_CPUS:
		f->cpus = dat_get32(&w);
		break;
	case FEATURE_EVENTS:
		read_event_names(f, &w);
		break;
	case FEATURE_SAMPLE_TIME:
		f->first = dat_get64(&w);
		f->last = dat_get64(&w);
		break;
	case FEATURE_DIR_FORMAT:
		f->is_dir = dat_get64(&w) > 0;
		break;
	case FEATURE_CLOCK_DATA:
		dat_skip_bytes(&w, 8);  /* version, clock */
		f->clock_real = dat_get64(&w);
		f->clock_count = dat_get64(&w);
		break;
	}
	if (w.is_bad && kind == FEATURE_CLOCK_DATA)
		f->clock_real = f->clock_count = 0;
}

/* Reads the table of sections after the records, and the sections. */
static void read_features(struct perf_file *f, struct dat_position *w, const uint64_t bits[FEATURES / 64])
{
	w->at = f->data_end;
	for (unsigned i = 0; i < FEATURES && !w->is_bad; i++) {
		if (!(bits[i / 64] >> i % 64 & 1))
			continue;
		const uint64_t at = dat_get64(w), bytes = dat_get64(w);
		struct dat_position section = *w;
		section.at = at;
		section.is_bad = at > w->size || bytes > w->size - at;
		section.size = section.is_bad ? 0 : at + bytes;
		w->is_bad |= section.is_bad && i == FEATURE_TRACING_DATA;
		if (!section.is_bad && !w->is_bad)
			read_feature(f, section, (enum perf_feature)i);
	}
}

static void read_header(struct perf_file *f, struct dat_position *w)
{
	uint64_t bits[FEATURES / 64];
	dat_skip_bytes(w, 8);  /* magic */
	const uint64_t size = dat_get64(w);
	f->data_end = f->bytes;
	f->is_pipe = size == 16;
	if (f->is_pipe) {
		f->data_at = size;
		return;
	}
	const uint64_t entry = dat_get64(w), attrs_at = dat_get64(w), attrs = dat_get64(w);
	f->data_at = dat_get64(w);
	const uint64_t data = dat_get64(w);
	dat_skip_bytes(w, 16);
	for (size_t i = 0; i < FEATURES / 64; i++)
		bits[i] = dat_get64(w);
	f->is_simpleperf = bits[FEATURE_SIMPLEPERF / 64] >> FEATURE_SIMPLEPERF % 64 & 1;
	w->is_bad |= f->data_at > f->bytes || data > f->bytes - f->data_at;
	if (w->is_bad)
		return;
	read_attrs(f, w, entry, attrs_at, attrs);
	if (w->is_bad || !data)
		return;  /* perf writes the size last, and sections after it */
	f->data_end = f->data_at + data;
	read_features(f, w, bits);
}

/* ---- records at the start */

struct perf_start {
	bool is_partial;         /* recorded without -a */
	bool lacks_library;      /* compressed, in a build without libzstd */
	bool has_kthreadd;       /* the thread kthreadd has the TID 2 */
	const char *damage;
};

static void add_name(struct perf_file *f, uint32_t tid, const char *name, size_t max_len)
{
	const size_t len = strnlen(name, max_len), line = len + 16;
	if (f->names_len + line > NAMES_MAX)
		return;
	if (f->names_cap - f->names_len < line) {
		f->names_cap = 2 * f->names_cap + line;
		f->names = mem_resize(f->names, f->names_cap, 1);
	}
	char *const at = f->names + f->names_len;
	const int n = snprintf(at, line, "%u %.*s", tid, (int)len, name);
	for (char *c = at; *c; c++)
		*c = *c == '\n' ? ' ' : *c;
	at[n] = '\n';
	f->names_len += (size_t)n + 1;
}

static void add_comm(struct perf_file *f, const struct perf_record *rec, struct perf_start *start)
{
	struct perf_sample end;
	size_t body;
	struct perf_position p = perf_position_of(rec, f->big_endian);
	if (!perf_trailer_parse(f, rec, &end, &body) || end.time || body < 8)
		return;
	perf_get32(&p);
	const uint32_t tid = perf_get32(&p);
	start->has_kthreadd |= tid == 2 && body > 16 && strncmp((const char *)p.at, "kthreadd", body - 8) == 0;
	if (tid && tid <= INT32_MAX)
		add_name(f, tid, (const char *)p.at, body - 8);
}

/* Returns true for the list of recorded threads of a recording with -a. */
static bool is_any_thread(const struct perf_file *f, const struct perf_record *rec)
{
	struct perf_position p = perf_position_of(rec, f->big_endian);
	const uint64_t n = perf_get64(&p), first = perf_get64(&p);
	return p.is_bad || n != 1 || first == UINT64_MAX;
}

/* Stores the CPUs of ids. */
static void add_id_cpus(struct perf_file *f, const struct perf_record *rec)
{
	struct perf_position p = perf_position_of(rec, f->big_endian);
	for (uint64_t n = perf_get64(&p); n && p.end - p.at >= 32; n--) {
		const uint64_t id = perf_get64(&p);
		perf_get64(&p);
		*map_put(&f->cpu_by_id, id, NULL) = perf_get64(&p);
		perf_get64(&p);
	}
}

static void add_feature_record(struct perf_file *f, const struct perf_record *rec)
{
	struct perf_position p = perf_position_of(rec, f->big_endian);
	const uint64_t kind = perf_get64(&p);
	const bool swap = f->big_endian != (BYTE_ORDER == BIG_ENDIAN);
	if (p.is_bad || kind >= FEATURES || kind == FEATURE_TRACING_DATA || kind == FEATURE_DIR_FORMAT)
		return;
	int why = 0;
	read_feature(f, (struct dat_position){ .fd = -1, .byte = p.at, .size = (uint64_t)(p.end - p.at), .swap = swap,
		.why = &why }, (enum perf_feature)kind);
}

static int read_start(struct perf_file *f, int fd, struct perf_start *start)
{
	struct perf_records r;
	struct perf_record rec = { 0 };
	int got;
	perf_records_open(&r, f, fd, f->data_at, f->data_end);
	r.is_packed_end = true;
	while ((got = perf_records_next(&r, &rec)) > 0 && rec.type != RECORD_SAMPLE && !r.damage) {
		if (rec.type == RECORD_ATTR && f->is_pipe)
			add_attr_record(f, &rec);
		else if (rec.type == RECORD_FEATURE && f->is_pipe)
			add_feature_record(f, &rec);
		else if (rec.type == RECORD_TRACING_DATA && f->is_pipe) {
			f->formats_at = rec.at + PERF_RECORD_HEAD + rec.size;
			f->formats_end = r.at;
		} else if (rec.type == RECORD_COMM)
			add_comm(f, &rec, start);
		else if (rec.type == RECORD_TIME_CONV)
			f->is_tsc = true;
		else if (rec.type == RECORD_ID_INDEX)
			add_id_cpus(f, &rec);
		else if (rec.type == RECORD_THREAD_MAP)
			start->is_partial = !is_any_thread(f, &rec);
	}
	/* Without the kernel's second thread, perf ran in a pid namespace: its TIDs are not those of the tracepoints. */
	f->names_len = start->has_kthreadd ? f->names_len : 0;
	start->damage = r.damage;
	start->lacks_library = r.lacks_library;
	perf_records_close(&r);
	return got < 0 ? -1 : 0;
}

/* ---- checks */

/* Returns true if the ids of all events are at the same place in a sample: at its start, or after the same fields. */
static bool has_ids(const struct perf_file *f)
{
	static const uint64_t before = SAMPLE_IP | SAMPLE_TID | SAMPLE_TIME | SAMPLE_ADDR;
	static const uint64_t after = SAMPLE_STREAM_ID | SAMPLE_CPU;
	const uint64_t first = f->attr[0].sample_type;
	for (size_t i = 0; i < f->attrs && f->attrs > 1; i++) {
		const uint64_t type = f->attr[i].sample_type;
		if ((type ^ first) & SAMPLE_IDENTIFIER || !(type & (SAMPLE_IDENTIFIER | SAMPLE_ID)) ||
		    (!(type & SAMPLE_IDENTIFIER) && (type ^ first) & (before | after)))
			return false;
	}
	return true;
}

/* Checks that the records can be parsed, and that the tracepoints are complete. */
static int check_attrs(const struct perf_file *f, const struct perf_start *start, struct error *err)
{
	size_t tracepoints = 0;
	if (!has_ids(f))
		return error_set(err, STATUS_INPUT, "record it with a perf since 3.12",
		                 "%s: its events have ids at different places", f->path);
	for (size_t i = 0; i < f->attrs; i++) {
		const struct perf_attr *a = &f->attr[i];
		const char *name = *a->name ? a->name : "a tracepoint";
		tracepoints += a->type == PERF_TRACEPOINT;
		if (a->type != PERF_TRACEPOINT)
			continue;
		if ((a->sample_type & SAMPLE_TRACEPOINT) != SAMPLE_TRACEPOINT)
			return error_set(err, STATUS_INPUT, "record it with perf record -a -R",
			                 "%s: %s was recorded without its fields, time or CPU", f->path, name);
		if (a->is_sampled)
			return error_set(err, STATUS_INPUT, "record it without -F, and with -c 1",
			                 "%s: %s was sampled, so that most of its events are missing", f->path, name);
	}
	if (!tracepoints)
		return error_set(err, STATUS_INPUT, "record it with perf record -a -e sched:sched_switch ...",
		                 "%s: contains no tracepoints, only samples of CPUs", f->path);
	if (start->is_partial)
		return error_set(err, STATUS_INPUT, "record all processes: perf record -a",
		                 "%s: contains only the events of some processes", f->path);
	return 0;
}

static int check(const struct perf_file *f, const struct dat_position *w, const struct perf_start *start, struct error *err)
{
	if (w->is_bad || !f->attrs)
		return error_set(err, STATUS_INPUT, "copy the file again after perf has finished",
		                 "%s: perf.data file truncated or damaged", f->path);
	if (check_attrs(f, start, err))
		return -1;
	if (start->lacks_library)
		return error_set(err, STATUS_INPUT, "record it without -z",
		                 "%s: compressed, and this stealscope was built without libzstd", f->path);
	if (!f->formats_at && f->is_simpleperf)
		return error_set(err, STATUS_INPUT, "record with Perfetto and its data source linux.ftrace",
		                 "%s: a file of simpleperf, which does not store the formats of tracepoints", f->path);
	if (!f->formats_at)
		return error_set(err, STATUS_INPUT, PERF_REMEDY, "%s: %s", f->path,
		                 f->is_pipe && start->damage ? start->damage :
		                 "the formats of its tracepoints are missing, because perf did not end normally");
	return 0;
}

struct perf_file *perf_file_read(const char *path, struct error *err)
{
	struct perf_file *f = mem_new(1, sizeof *f);
	struct perf_start start = { 0 };
	struct stat st;
	unsigned char magic[8] = { 0 };
	int why = 0, status = 0;
	f->path = mem_dup(path);
	f->clock = PERF_CLOCK_DEFAULT;
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || fstat(fd, &st) || pread(fd, magic, sizeof magic, 0) < 0) {
		status = error_read(err, "make it readable for you", "%s", path);
	} else {
		f->bytes = (uint64_t)st.st_size;
		f->big_endian = magic[0] == '2';
		struct dat_position w = { .fd = fd, .size = f->bytes, .why = &why,
			.swap = f->big_endian != (BYTE_ORDER == BIG_ENDIAN) };
		read_header(f, &w);
		if (!w.is_bad && !why && read_start(f, fd, &start))
			why = errno;
		errno = why;
		status = why ? error_system(err, NULL, "%s", path) : check(f, &w, &start, err);
	}
	if (fd >= 0)
		close(fd);
	if (!status)
		return f;
	perf_file_free(f);
	return NULL;
}

void perf_file_free(struct perf_file *f)
{
	if (!f)
		return;
	map_release(&f->attr_by_id);
	map_release(&f->cpu_by_id);
	free(f->attr);
	free(f->names);
	free(f->path);
	free(f);
}
