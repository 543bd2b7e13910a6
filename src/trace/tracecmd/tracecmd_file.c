#include "trace/tracecmd/tracecmd_file.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "trace/tracecmd/dat_position.h"

#define MAGIC "\x17\x08\x44tracing"
#define MAGIC_LEN 10
#define OPTION_MAX (1U << 20)
#define CPUS_MAX 65536

enum option {
	OPTION_DONE = 0, OPTION_DATE = 1, OPTION_CPUSTAT = 2, OPTION_BUFFER = 3, OPTION_CLOCK = 4, OPTION_UNAME = 5,
	OPTION_OFFSET = 7, OPTION_VERSION = 9,
	OPTION_TRACEID = 11, OPTION_TIME_SHIFT = 12, OPTION_GUEST = 13, OPTION_TSC2NSEC = 14,
};

/* ---- options */

/* Copies word n of a text; n starts at 0. */
static void copy_word(char *to, size_t size, const char *text, unsigned n)
{
	for (; n; n--) {
		text += strcspn(text, " \n");
		text += strspn(text, " \n");
	}
	snprintf(to, size, "%.*s", (int)strcspn(text, " \n"), text);
}

static void read_clock(struct tracecmd_file *d, const char *text)
{
	const char *begin = strchr(text, '['), *end = begin ? strchr(begin, ']') : NULL;
	if (end)
		snprintf(d->clock, sizeof d->clock, "%.*s", (int)(end - begin - 1), begin + 1);
}

static void read_cpustat(struct tracecmd_file *d, const char *text)
{
	struct cpu_stat s = cpu_stat_parse(text);
	d->lost += s.lost;
	d->now = d->now == INT64_MAX || (s.now != INT64_MAX && s.now > d->now) ? s.now : d->now;
	if (sscanf(text, "CPU: %9u", &s.cpu) == 1)
		*ARRAY_PUSH(d->stat, d->stats, d->stats_cap) = s;
}

static void read_guest(struct tracecmd_file *d, struct dat_position *w)
{
	char name[256];
	dat_get_text(w, name, sizeof name);
	uint64_t id = dat_get64(w);
	if (w->is_bad)
		return;
	struct recorded_guest *g = ARRAY_PUSH(d->guest, d->guests, d->guests_cap);
	*g = (struct recorded_guest){ .name = mem_dup(name), .id = id };
	for (uint32_t n = dat_get32(w); n && g->vcpus < CPUS_MAX; n--) {
		const struct recorded_vcpu v = { dat_get32(w), dat_get32(w) };
		if (w->is_bad)
			break;
		*ARRAY_PUSH(g->vcpu, g->vcpus, g->vcpus_cap) = v;
	}
}

static void release_shifts(struct tracecmd_file *d)
{
	for (size_t i = 0; i < d->shifts; i++)
		free(d->time_shift[i].point);
	free(d->time_shift);
	d->time_shift = NULL;
	d->shifts = 0;
}

/* Reads the times, offsets and factors of one CPU. Returns false if the correction cannot be undone: with a factor other
 * than 1, the times were scaled from another clock. */
static bool read_cpu_shift(struct time_shift *s, struct dat_position *w)
{
	const size_t n = dat_get32(w);
	bool is_plain = !w->is_bad && n <= (w->size - w->at) / 24;
	s->point = is_plain ? mem_new(n, sizeof *s->point) : NULL;
	s->points = is_plain ? n : 0;
	for (size_t i = 0; i < s->points; i++)
		s->point[i].time = (int64_t)dat_get64(w);
	for (size_t i = 0; i < s->points; i++)
		s->point[i].offset = (int64_t)dat_get64(w);
	for (size_t i = 0; i < s->points; i++)
		is_plain = dat_get64(w) == 1 && is_plain;
	return is_plain && time_shift_is_valid(s);
}

static void read_shifts(struct tracecmd_file *d, struct dat_position *w)
{
	release_shifts(d);
	dat_skip_bytes(w, 8 + 4);  /* id of the host's recording; flags */
	const size_t cpus = dat_get32(w);
	bool is_plain = !w->is_bad && cpus <= CPUS_MAX;
	d->time_shift = is_plain ? mem_new(cpus, sizeof *d->time_shift) : NULL;
	for (; is_plain && d->shifts < cpus; d->shifts++)
		is_plain = read_cpu_shift(&d->time_shift[d->shifts], w);
	while (is_plain && w->at < w->size)
		is_plain = dat_get64(w) == 0 && !w->is_bad;  /* the factors' shifts */
	if (!is_plain)
		release_shifts(d);
}

/* Returns the uncompressed size of the chunks at [file.at, file.at + 4 + len), bytes; UINT64_MAX: damaged. */
static uint64_t unpacked_bytes(struct dat_position file, uint64_t len)
{
	uint64_t bytes = 0;
	if (file.size - file.at > len + 4)
		file.size = file.at + len + 4;
	for (uint32_t chunks = dat_get32(&file); chunks && !file.is_bad; chunks--) {
		uint32_t packed = dat_get32(&file);
		bytes += dat_get32(&file);
		dat_skip_bytes(&file, packed);
	}
	return file.is_bad ? UINT64_MAX : bytes;
}

static void add_cpu(struct tracecmd_file *d, struct dat_position *file, unsigned buffer, unsigned cpu, uint64_t at,
                    uint64_t bytes, bool packed)
{
	if (!bytes)
		return;
	/* The CPUs' data do not overlap, so the sum of their sizes cannot exceed the file's size. */
	d->data += bytes < file->size ? bytes : file->size;
	if (at > file->size || bytes > file->size - at || d->data > file->size) {
		file->is_bad = true;
		return;
	}
	struct dat_position data = *file;
	data.at = at;
	if (packed)
		bytes = unpacked_bytes(data, bytes);
	file->is_bad |= bytes == UINT64_MAX;
	*ARRAY_PUSH(d->cpu, d->cpus, d->cpus_cap) = (struct tracecmd_file_cpu){ buffer, cpu, bytes, at, packed };
}

/* Version 7: adds the data of the CPUs of one buffer. */
static void read_buffer(struct tracecmd_file *d, struct dat_position *w, struct dat_position *file, unsigned *instances)
{
	char name[256], clock[sizeof d->clock];
	struct dat_position section = *file;
	section.at = dat_get64(w);
	dat_get_text(w, name, sizeof name);
	dat_get_text(w, clock, sizeof clock);
	const unsigned buffer = *name ? ++*instances : 0;
	/* trace-cmd restore also writes "local" if it does not know the clock; the kernel's text is in OPTION_CLOCK. */
	if (!*name && *clock && strcmp(clock, "local") != 0)
		memcpy(d->clock, clock, sizeof clock);
	if ((w->size - w->at) % 20 == 8 && !w->is_bad) {
		uint32_t page = dat_get32(w);
		d->page = page ? page : d->page;
	}
	const uint32_t cpus = dat_get32(w);
	dat_get16(&section);
	const bool packed = dat_get16(&section) & 1;
	file->is_bad |= section.is_bad;
	for (uint32_t i = 0; i < cpus && i < CPUS_MAX && !w->is_bad; i++) {
		const uint32_t cpu = dat_get32(w);
		const uint64_t at = dat_get64(w), bytes = dat_get64(w);
		if (!w->is_bad)
			add_cpu(d, file, buffer, cpu, at, bytes, packed);
	}
}

static void read_option(struct dat_position *file, unsigned id, struct dat_position *w, const char *text)
{
	struct tracecmd_file *d = file->tracecmd_file;
	char version[32];
	switch (id) {
	case OPTION_CPUSTAT:
		read_cpustat(d, text);
		break;
	case OPTION_CLOCK:
		if (!*d->clock)
			read_clock(d, text);
		break;
	case OPTION_UNAME:
		copy_word(d->hostname, sizeof d->hostname, text, 1);
		break;
	case OPTION_VERSION:
		copy_word(version, sizeof version, text, 0);
		snprintf(d->tracer, sizeof d->tracer, "trace-cmd %s", version);
		break;
	case OPTION_TRACEID:
		d->id = dat_get64(w);
		break;
	case OPTION_TIME_SHIFT:
		read_shifts(d, w);
		break;
	case OPTION_GUEST:
		read_guest(d, w);
		break;
	case OPTION_DATE:
		d->offset += (int64_t)(1000 * (uint64_t)strtoll(text, NULL, 0));  /* us */
		break;
	case OPTION_OFFSET:
		d->offset += strtoll(text, NULL, 0);
		break;
	case OPTION_TSC2NSEC:
		d->scaled = true;
		d->multiplier = dat_get32(w);
		d->shift = dat_get32(w) & 63;
		break;
	default:
		break;
	}
}

/* Reads a section's options. Returns the offset of the next section of options, which version 7 stores in the last
 * option; 0: none. */
static uint64_t read_options(struct dat_position *file, bool version7, unsigned *instances)
{
	for (;;) {
		const unsigned id = dat_get16(file);
		if (file->is_bad || (id == OPTION_DONE && !version7))
			return 0;
		const uint32_t len = dat_get32(file);
		if (len > OPTION_MAX) {
			dat_skip_bytes(file, len);
			continue;
		}
		unsigned char *bytes = mem_new(len + 1, 1);
		dat_read_bytes(file, bytes, len);
		struct dat_position w = { .fd = -1, .byte = bytes, .size = len, .swap = file->swap };
		uint64_t next = 0;
		if (id == OPTION_DONE)
			next = dat_get64(&w);
		else if (id == OPTION_BUFFER && version7)
			read_buffer(file->tracecmd_file, &w, file, instances);
		else if (!file->is_bad)
			read_option(file, id, &w, (char *)bytes);
		free(bytes);
		if (id == OPTION_DONE || file->is_bad)
			return next;
	}
}

static void read_version7(struct dat_position *file)
{
	char word[64];
	unsigned instances = 0;
	dat_get_text(file, word, sizeof word);  /* the compression's name, then its version */
	dat_get_text(file, word, sizeof word);
	uint64_t next = dat_get64(file);
	while (next && !file->is_bad) {
		file->is_bad = next < file->at;  /* sections are appended, so offsets increase; decreasing ones could form an
		                                  * endless loop */
		file->at = next;
		dat_skip_bytes(file, 16);  /* section header */
		next = read_options(file, true, &instances);
	}
}

static void read_version6(struct dat_position *file)
{
	char word[256];
	unsigned instances = 0;
	dat_get_text(file, word, sizeof word);  /* header_page, then header_event */
	dat_skip_bytes(file, dat_get64(file));
	dat_get_text(file, word, sizeof word);
	dat_skip_bytes(file, dat_get64(file));
	for (uint32_t n = dat_get32(file); n && !file->is_bad; n--)
		dat_skip_bytes(file, dat_get64(file));
	for (uint32_t systems = dat_get32(file); systems && !file->is_bad; systems--) {
		dat_get_text(file, word, sizeof word);
		for (uint32_t n = dat_get32(file); n && !file->is_bad; n--)
			dat_skip_bytes(file, dat_get64(file));
	}
	dat_skip_bytes(file, dat_get32(file));  /* kallsyms, printk formats, command lines */
	dat_skip_bytes(file, dat_get32(file));
	dat_skip_bytes(file, dat_get64(file));
	const uint32_t cpus = dat_get32(file);
	dat_read_bytes(file, word, 10);
	if (memcmp(word, "options  ", 9) == 0) {
		read_options(file, false, &instances);
		dat_read_bytes(file, word, 10);
	}
	for (uint32_t i = 0; memcmp(word, "flyrecord", 9) == 0 && i < cpus && i < CPUS_MAX && !file->is_bad; i++) {
		const uint64_t at = dat_get64(file), bytes = dat_get64(file);
		if (!file->is_bad)
			add_cpu(file->tracecmd_file, file, 0, i, at, bytes, false);
	}
}

static int read_file(struct dat_position *file, struct error *err)
{
	char magic[MAGIC_LEN], version[8];
	unsigned char big_endian, long_size;
	dat_read_bytes(file, magic, sizeof magic);
	dat_get_text(file, version, sizeof version);
	dat_read_bytes(file, &big_endian, 1);
	dat_read_bytes(file, &long_size, 1);
	file->swap = (BYTE_ORDER == BIG_ENDIAN) != (big_endian != 0);
	file->tracecmd_file->page = dat_get32(file);
	if (!file->is_bad && memcmp(magic, MAGIC, MAGIC_LEN) != 0)
		return error_set(err, STATUS_INPUT, "name a file recorded by trace-cmd", "%s: not a trace-cmd file",
		                 file->tracecmd_file->path);
	if (strcmp(version, "7") == 0)
		read_version7(file);
	else if (strcmp(version, "6") == 0)
		read_version6(file);
	else if (!file->is_bad)
		return error_set(err, STATUS_INPUT, "trace-cmd convert --file-version 7",
		                 "%s: unsupported version %.7s of a trace-cmd file (supported: 6, 7)", file->tracecmd_file->path,
		                 version);
	errno = *file->why;
	if (*file->why)
		return error_system(err, NULL, "%s", file->tracecmd_file->path);
	if (file->is_bad)
		return error_set(err, STATUS_INPUT, "copy the file again after trace-cmd has finished",
		                 "%s: trace-cmd file truncated or damaged", file->tracecmd_file->path);
	return 0;
}

struct tracecmd_file *tracecmd_file_read(const char *path, struct error *err)
{
	struct tracecmd_file *d = mem_new(1, sizeof *d);
	struct stat st;
	d->path = mem_dup(path);
	d->now = INT64_MAX;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int status = -1;
	if (fd < 0 || fstat(fd, &st)) {
		error_read(err, "make it readable for you", "%s", path);
	} else {
		int why = 0;
		struct dat_position file = { .tracecmd_file = d, .fd = fd, .size = (uint64_t)st.st_size, .why = &why };
		d->bytes = file.size;
		status = read_file(&file, err);
	}
	if (fd >= 0)
		close(fd);
	if (d->scaled)
		release_shifts(d);  /* the corrections are in cycles, the times in ns */
	if (!status)
		return d;
	tracecmd_file_free(d);
	return NULL;
}

void tracecmd_file_free(struct tracecmd_file *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < d->guests; i++) {
		free(d->guest[i].name);
		free(d->guest[i].vcpu);
	}
	free(d->guest);
	release_shifts(d);
	free(d->cpu);
	free(d->stat);
	free(d->path);
	free(d);
}
