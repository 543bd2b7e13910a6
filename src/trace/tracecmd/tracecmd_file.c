#include "trace/tracecmd/tracecmd_file.h"

#include <byteswap.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

#define MAGIC "\x17\x08\x44tracing"
#define MAGIC_LEN 10
#define OPTION_LONGEST (1U << 20)
#define MOST_CPUS 65536

enum option {
	OPTION_DONE = 0, OPTION_CPUSTAT = 2, OPTION_BUFFER = 3, OPTION_CLOCK = 4, OPTION_UNAME = 5, OPTION_VERSION = 9,
	OPTION_TRACEID = 11, OPTION_TIME_SHIFT = 12, OPTION_GUEST = 13, OPTION_TSC2NSEC = 14,
};

/* A walk through the file, or through the bytes of one option. */
struct dat_walk {
	struct dat *dat;
	int fd;                    /* -1: of bytes */
	const unsigned char *byte;
	uint64_t at, size;
	bool swap;                 /* its byte order is not ours */
	bool bad;                  /* it ended too early */
	int *why;                  /* of a file: errno when it could not be read, else 0 */
};

static void get(struct dat_walk *w, void *to, size_t n)
{
	memset(to, 0, n);
	if (w->bad || w->at > w->size || n > w->size - w->at) {
		w->bad = true;
		return;
	}
	if (w->fd < 0) {
		memcpy(to, w->byte + w->at, n);
	} else {
		const ssize_t got = pread(w->fd, to, n, (off_t)w->at);
		*w->why = got < 0 ? errno : *w->why;
		w->bad = got != (ssize_t)n;
	}
	w->at += n;
}

static void skip(struct dat_walk *w, uint64_t n)
{
	w->bad |= w->at > w->size || n > w->size - w->at;
	w->at += w->bad ? 0 : n;
}

static uint16_t get16(struct dat_walk *w)
{
	uint16_t v;
	get(w, &v, sizeof v);
	return w->swap ? bswap_16(v) : v;
}

static uint32_t get32(struct dat_walk *w)
{
	uint32_t v;
	get(w, &v, sizeof v);
	return w->swap ? bswap_32(v) : v;
}

static uint64_t get64(struct dat_walk *w)
{
	uint64_t v;
	get(w, &v, sizeof v);
	return w->swap ? bswap_64(v) : v;
}

/* A string with its terminating zero; what does not fit is left out. */
static void get_text(struct dat_walk *w, char *to, size_t size)
{
	size_t n = 0;
	for (;;) {
		char c;
		get(w, &c, 1);
		if (w->bad || !c)
			break;
		if (n + 1 < size)
			to[n++] = c;
	}
	to[n] = '\0';
}

/* ---- options */

/* The n-th word of a text, n = 0 is the first. */
static void keep_word(char *to, size_t size, const char *text, unsigned n)
{
	for (; n; n--) {
		text += strcspn(text, " \n");
		text += strspn(text, " \n");
	}
	snprintf(to, size, "%.*s", (int)strcspn(text, " \n"), text);
}

static void take_clock(struct dat *d, const char *text)
{
	const char *begin = strchr(text, '['), *end = begin ? strchr(begin, ']') : NULL;
	if (end)
		snprintf(d->clock, sizeof d->clock, "%.*s", (int)(end - begin - 1), begin + 1);
}

static void take_cpustat(struct dat *d, const char *text)
{
	struct cpu_stat s = cpu_stat_parse(text);
	d->lost += s.lost;
	d->now = d->now == INT64_MAX || (s.now != INT64_MAX && s.now > d->now) ? s.now : d->now;
	if (sscanf(text, "CPU: %9u", &s.cpu) == 1)
		*ARRAY_PUSH(d->stat, d->stats, d->stats_cap) = s;
}

static void take_guest(struct dat *d, struct dat_walk *w)
{
	char name[256];
	get_text(w, name, sizeof name);
	uint64_t id = get64(w);
	if (w->bad)
		return;
	struct recorded_guest *g = ARRAY_PUSH(d->guest, d->guests, d->guests_cap);
	*g = (struct recorded_guest){ .name = mem_dup(name), .id = id };
	for (uint32_t n = get32(w); n && g->vcpus < MOST_CPUS; n--) {
		const struct recorded_vcpu v = { get32(w), get32(w) };
		if (w->bad)
			break;
		*ARRAY_PUSH(g->vcpu, g->vcpus, g->vcpus_cap) = v;
	}
}

static void drop_shifts(struct dat *d)
{
	for (size_t i = 0; i < d->shifts; i++)
		free(d->shift[i].point);
	free(d->shift);
	d->shift = NULL;
	d->shifts = 0;
}

/* Times, offsets and factors of one CPU.  A factor means that another clock was converted: no line through points. */
static bool take_cpu_shift(struct shift *s, struct dat_walk *w)
{
	const size_t n = get32(w);
	bool plain = !w->bad && n <= (w->size - w->at) / 24;
	s->point = plain ? mem_new(n, sizeof *s->point) : NULL;
	s->points = plain ? n : 0;
	for (size_t i = 0; i < s->points; i++)
		s->point[i].time = (int64_t)get64(w);
	for (size_t i = 0; i < s->points; i++)
		s->point[i].offset = (int64_t)get64(w);
	for (size_t i = 0; i < s->points; i++)
		plain = get64(w) == 1 && plain;
	return plain && shift_is_sane(s);
}

static void take_shifts(struct dat *d, struct dat_walk *w)
{
	drop_shifts(d);
	d->shifted = true;
	skip(w, 8 + 4);  /* the host's id; flags */
	const size_t cpus = get32(w);
	bool plain = !w->bad && cpus <= MOST_CPUS;
	d->shift = plain ? mem_new(cpus, sizeof *d->shift) : NULL;
	for (; plain && d->shifts < cpus; d->shifts++)
		plain = take_cpu_shift(&d->shift[d->shifts], w);
	while (plain && w->at < w->size)
		plain = get64(w) == 0 && !w->bad;  /* binary places of the factors */
	if (!plain)
		drop_shifts(d);
}

/* Bytes of the pages in a row of compressed pieces that lies at [file.at, file.at + 4 + len). */
static uint64_t unpacked_bytes(struct dat_walk file, uint64_t len)
{
	uint64_t bytes = 0;
	if (file.size - file.at > len + 4)
		file.size = file.at + len + 4;
	for (uint32_t chunks = get32(&file); chunks && !file.bad; chunks--) {
		uint32_t packed = get32(&file);
		bytes += get32(&file);
		skip(&file, packed);
	}
	return file.bad ? UINT64_MAX : bytes;
}

static void take_cpu(struct dat *d, struct dat_walk *file, unsigned buffer, unsigned cpu, uint64_t at, uint64_t bytes,
                     bool packed)
{
	if (!bytes)
		return;
	/* The data of different CPUs are different: together they cannot be larger than the file. */
	d->data += bytes < file->size ? bytes : file->size;
	if (at > file->size || bytes > file->size - at || d->data > file->size) {
		file->bad = true;
		return;
	}
	struct dat_walk data = *file;
	data.at = at;
	if (packed)
		bytes = unpacked_bytes(data, bytes);
	file->bad |= bytes == UINT64_MAX;
	*ARRAY_PUSH(d->cpu, d->cpus, d->cpus_cap) = (struct dat_cpu){ buffer, cpu, bytes };
}

/* Version 7: where the data of a buffer's CPUs are. */
static void take_buffer(struct dat *d, struct dat_walk *w, struct dat_walk *file, unsigned *instances)
{
	char name[256], clock[sizeof d->clock];
	struct dat_walk section = *file;
	section.at = get64(w);
	get_text(w, name, sizeof name);
	get_text(w, clock, sizeof clock);
	const unsigned buffer = *name ? ++*instances : 0;
	/* "local" is also what trace-cmd restore writes where it knows none; the kernel's own words are an option. */
	if (!*name && *clock && strcmp(clock, "local") != 0)
		memcpy(d->clock, clock, sizeof clock);
	if ((w->size - w->at) % 20 == 8 && !w->bad) {
		uint32_t page = get32(w);
		d->page = page ? page : d->page;
	}
	const uint32_t cpus = get32(w);
	get16(&section);
	const bool packed = get16(&section) & 1;
	file->bad |= section.bad;
	for (uint32_t i = 0; i < cpus && i < MOST_CPUS && !w->bad; i++) {
		const uint32_t cpu = get32(w);
		const uint64_t at = get64(w), bytes = get64(w);
		if (!w->bad)
			take_cpu(d, file, buffer, cpu, at, bytes, packed);
	}
}

static void take_option(struct dat_walk *file, unsigned id, struct dat_walk *w, const char *text)
{
	struct dat *d = file->dat;
	char version[32];
	switch (id) {
	case OPTION_CPUSTAT:
		take_cpustat(d, text);
		break;
	case OPTION_CLOCK:
		if (!*d->clock)
			take_clock(d, text);
		break;
	case OPTION_UNAME:
		keep_word(d->hostname, sizeof d->hostname, text, 1);
		break;
	case OPTION_VERSION:
		keep_word(version, sizeof version, text, 0);
		snprintf(d->tracer, sizeof d->tracer, "trace-cmd %s", version);
		break;
	case OPTION_TRACEID:
		d->id = get64(w);
		break;
	case OPTION_TIME_SHIFT:
		take_shifts(d, w);
		break;
	case OPTION_GUEST:
		take_guest(d, w);
		break;
	case OPTION_TSC2NSEC:
		d->scaled = true;
		break;
	default:
		break;
	}
}

/* Reads options up to the last of a section; version 7's last one says where the next section is (0: nowhere). */
static uint64_t read_options(struct dat_walk *file, bool version7, unsigned *instances)
{
	for (;;) {
		const unsigned id = get16(file);
		if (file->bad || (id == OPTION_DONE && !version7))
			return 0;
		const uint32_t len = get32(file);
		if (len > OPTION_LONGEST) {
			skip(file, len);
			continue;
		}
		unsigned char *bytes = mem_new(len + 1, 1);
		get(file, bytes, len);
		struct dat_walk w = { .fd = -1, .byte = bytes, .size = len, .swap = file->swap };
		uint64_t next = 0;
		if (id == OPTION_DONE)
			next = get64(&w);
		else if (id == OPTION_BUFFER && version7)
			take_buffer(file->dat, &w, file, instances);
		else if (!file->bad)
			take_option(file, id, &w, (char *)bytes);
		free(bytes);
		if (id == OPTION_DONE || file->bad)
			return next;
	}
}

static void read_version7(struct dat_walk *file)
{
	char word[64];
	unsigned instances = 0;
	get_text(file, word, sizeof word);  /* compression, and its version */
	get_text(file, word, sizeof word);
	uint64_t next = get64(file);
	while (next && !file->bad) {
		file->bad = next < file->at;  /* sections are appended: else it would be a file without end */
		file->at = next;
		skip(file, 16);  /* the section's header */
		next = read_options(file, true, &instances);
	}
}

static void read_version6(struct dat_walk *file)
{
	char word[256];
	unsigned instances = 0;
	get_text(file, word, sizeof word);  /* header_page, then header_event */
	skip(file, get64(file));
	get_text(file, word, sizeof word);
	skip(file, get64(file));
	for (uint32_t n = get32(file); n && !file->bad; n--)
		skip(file, get64(file));
	for (uint32_t systems = get32(file); systems && !file->bad; systems--) {
		get_text(file, word, sizeof word);
		for (uint32_t n = get32(file); n && !file->bad; n--)
			skip(file, get64(file));
	}
	skip(file, get32(file));  /* kallsyms, formats of printk, command lines */
	skip(file, get32(file));
	skip(file, get64(file));
	const uint32_t cpus = get32(file);
	get(file, word, 10);
	if (memcmp(word, "options  ", 9) == 0) {
		read_options(file, false, &instances);
		get(file, word, 10);
	}
	for (uint32_t i = 0; memcmp(word, "flyrecord", 9) == 0 && i < cpus && i < MOST_CPUS && !file->bad; i++) {
		const uint64_t at = get64(file), bytes = get64(file);
		if (!file->bad)
			take_cpu(file->dat, file, 0, i, at, bytes, false);
	}
}

static int read_file(struct dat_walk *file, struct error *err)
{
	char magic[MAGIC_LEN], version[8];
	unsigned char big_endian, long_size;
	get(file, magic, sizeof magic);
	get_text(file, version, sizeof version);
	get(file, &big_endian, 1);
	get(file, &long_size, 1);
	file->swap = (BYTE_ORDER == BIG_ENDIAN) != (big_endian != 0);
	file->dat->page = get32(file);
	if (!file->bad && memcmp(magic, MAGIC, MAGIC_LEN) != 0)
		return error_set(err, STATUS_INPUT, "give a file that trace-cmd recorded", "%s: not a trace-cmd file",
		                 file->dat->path);
	if (strcmp(version, "7") == 0)
		read_version7(file);
	else if (strcmp(version, "6") == 0)
		read_version6(file);
	else if (!file->bad)
		return error_set(err, STATUS_INPUT, "trace-cmd convert --file-version 7",
		                 "%s: a trace-cmd file of version %.7s; 6 and 7 can be read", file->dat->path, version);
	errno = *file->why;
	if (*file->why)
		return error_system(err, NULL, "%s", file->dat->path);
	if (file->bad)
		return error_set(err, STATUS_INPUT, "copy the file again, when trace-cmd has ended",
		                 "%s: a trace-cmd file that is cut short or damaged", file->dat->path);
	return 0;
}

struct dat *dat_read(const char *path, struct error *err)
{
	struct dat *d = mem_new(1, sizeof *d);
	struct stat st;
	d->path = mem_dup(path);
	d->now = INT64_MAX;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int status = -1;
	if (fd < 0 || fstat(fd, &st)) {
		error_read(err, "make it readable for you", "%s", path);
	} else {
		int why = 0;
		struct dat_walk file = { .dat = d, .fd = fd, .size = (uint64_t)st.st_size, .why = &why };
		d->bytes = file.size;
		status = read_file(&file, err);
	}
	if (fd >= 0)
		close(fd);
	if (d->scaled)
		drop_shifts(d);  /* they are of cycles, and the times of ns */
	if (d->shifted && !d->shift) {  /* these were not corrected, the times are */
		d->now = INT64_MAX;
		for (size_t i = 0; i < d->stats; i++)
			d->stat[i].now = INT64_MAX;
	}
	if (!status)
		return d;
	dat_free(d);
	return NULL;
}

void dat_free(struct dat *d)
{
	if (!d)
		return;
	for (size_t i = 0; i < d->guests; i++) {
		free(d->guest[i].name);
		free(d->guest[i].vcpu);
	}
	free(d->guest);
	drop_shifts(d);
	free(d->cpu);
	free(d->stat);
	free(d->path);
	free(d);
}
