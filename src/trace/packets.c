#include "trace/packets.h"

#include <dirent.h>
#include <endian.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"

#define INDEX_MAGIC 0xC1F1DCC1U
#define INDEX_LONGEST (1L << 30)  /* bytes */
#define STREAM_MAGIC 0xC1FC1FC1U
#define HEAD_LONGEST 512          /* bytes of a packet within which its context is looked for */
#define HEADER 20                 /* bytes of a packet header that are looked for: magic and UUID */
#define STEP ((size_t)8 << 20)    /* bytes of a file that are held in memory at a time, about; whole pages */

/* The layout of LTTng's index files, all big endian. */
struct index_head { uint32_t magic, major, minor, entry_size; };
struct index_entry {
	uint64_t offset, packet_size, content_size, begin, end, discarded, stream_class;  /* sizes in bits */
	uint64_t instance, sequence;  /* since 1.1 */
};

static char *read_index(const struct stream_file *f, size_t *len)
{
	char *path = mem_printf("%s/index/%s.idx", f->dir, f->name);
	FILE *in = fopen(path, "rbe");
	struct stat st;
	char *data = NULL;
	free(path);
	*len = 0;
	if (in && fstat(fileno(in), &st) == 0 && S_ISREG(st.st_mode) && st.st_size < INDEX_LONGEST) {
		data = mem_new((size_t)st.st_size + 1, 1);
		*len = fread(data, 1, (size_t)st.st_size, in);
	}
	if (in)
		fclose(in);
	return data;
}

static void add_entry(struct stream_file *f, const struct index_entry *e)
{
	struct packet p = { be64toh(e->offset), be64toh(e->packet_size) / 8, be64toh(e->content_size),
		be64toh(e->begin), be64toh(e->end), be64toh(e->discarded), be64toh(e->sequence) };
	f->stream_class = be64toh(e->stream_class);
	f->instance = be64toh(e->instance);
	if (p.offset >= f->bytes) {
		f->missing += p.size;
		return;
	}
	if (p.size > f->bytes - p.offset) {
		f->missing += p.size - (f->bytes - p.offset);
		p.size = f->bytes - p.offset;
	}
	*ARRAY_PUSH(f->packet, f->packets, f->cap) = p;
}

/* Where the packet's context says what the index says of it: its times and sizes, 8 bytes each, one behind the other, in
 * either byte order, as LTTng writes them.  0: nowhere. */
static size_t find_context(const struct packet *p, const unsigned char *head, size_t len)
{
	const uint64_t bits = p->size * 8;
	const uint64_t le[] = { htole64(p->begin), htole64(p->end), htole64(p->content), htole64(bits) };
	const uint64_t be[] = { htobe64(p->begin), htobe64(p->end), htobe64(p->content), htobe64(bits) };
	const unsigned char *at = memmem(head, len, le, sizeof le);
	if (!at)
		at = memmem(head, len, be, sizeof be);
	return at ? (size_t)(at - head) : 0;
}

/* Drops the packets whose header is not what the index says, or begins otherwise than the others' (magic number, UUID,
 * stream).  When no header can be matched at all, this is another tracer's layout, and nothing is dropped. */
static void check_headers(struct stream_file *f)
{
	unsigned char first[HEAD_LONGEST], head[HEAD_LONGEST];
	size_t context = 0, kept = 0;
	char *path = mem_printf("%s/%s", f->dir, f->name);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	free(path);
	for (size_t i = 0; i < f->packets && fd >= 0 && !context; i++) {
		ssize_t n = pread(fd, first, sizeof first, (off_t)f->packet[i].offset);
		context = n > 0 ? find_context(&f->packet[i], first, (size_t)n) : 0;
	}
	for (size_t i = 0; i < f->packets && context; i++) {
		const struct packet p = f->packet[i];
		const bool is_cut = i + 1 == f->packets && f->missing;  /* its size here is what is left of it */
		ssize_t n = pread(fd, head, sizeof head, (off_t)p.offset);
		if (n >= (ssize_t)context && memcmp(head, first, context) == 0 &&
		    (is_cut || find_context(&p, head, (size_t)n) == context))
			f->packet[kept++] = p;
	}
	if (fd >= 0)
		close(fd);
	if (context) {
		f->damaged = f->packets - kept;
		f->packets = kept;
	}
}

static bool from_index(struct stream_file *f)
{
	size_t len;
	char *data = read_index(f, &len);
	struct index_head head;
	bool good = data && len >= sizeof head;
	if (good) {
		memcpy(&head, data, sizeof head);
		good = be32toh(head.magic) == INDEX_MAGIC && be32toh(head.major) == 1 && be32toh(head.minor) >= 1;
	}
	const size_t size = good ? be32toh(head.entry_size) : 0;
	good = good && size >= sizeof(struct index_entry) && size < 4096;
	uint64_t at = 0;
	for (size_t i = sizeof head; good && i + size <= len; i += size) {
		struct index_entry e;
		memcpy(&e, data + i, sizeof e);
		good = be64toh(e.offset) == at && be64toh(e.packet_size) && be64toh(e.packet_size) % 8 == 0 &&
		       be64toh(e.begin) <= be64toh(e.end);
		at += be64toh(e.packet_size) / 8;
		if (good)
			add_entry(f, &e);
	}
	free(data);
	if (!good)
		f->packets = 0, f->missing = 0;
	f->indexed = good && f->packets;
	if (f->indexed)
		check_headers(f);
	return f->indexed;
}

/* ---- without an index */

static uint64_t word_at(const unsigned char *p, bool big)
{
	uint64_t v;
	memcpy(&v, p, sizeof v);
	return big ? be64toh(v) : le64toh(v);
}

/* What a packet's context says, as LTTng and babeltrace's own writer write it: its times, the size of its content and its
 * own size, 8 bytes each, one behind the other; `at` is where the last of them is. */
struct context { uint64_t begin, end, content, size; };

static bool read_context(const struct packet *p, const unsigned char *map, size_t at, bool big, struct context *c)
{
	if (p->size < at + 8)
		return false;
	map += p->offset + at;
	*c = (struct context){ word_at(map - 24, big), word_at(map - 16, big), word_at(map - 8, big), word_at(map, big) };
	return c->size && c->size % 8 == 0 && c->size >> 40 == 0 && c->content <= c->size && c->content >= 8 * at &&
	       c->begin <= c->end && c->end >> 62 == 0;
}

/* Where the packet's size is: the place at which most packets say what the distance to the next one is.  0: nowhere. */
static size_t find_size(const struct stream_file *f, const unsigned char *map, bool big)
{
	size_t best = 0, most = 0;
	for (size_t at = HEADER + 24; at + 8 <= HEAD_LONGEST; at++) {
		size_t same = 0;
		struct context c;
		for (size_t i = 0; i < f->packets && i < 64; i++)
			same += read_context(&f->packet[i], map, at, big, &c) && c.size == f->packet[i].size * 8;
		if (same > most) {
			most = same;
			best = at;
		}
	}
	return best;
}

/* What comes before `at` is not needed for now; *from is where what was needed began. */
static void let_go(const unsigned char *map, size_t *from, size_t at)
{
	at -= at % STEP;
	if (at > *from) {
		madvise((void *)(map + *from), at - *from, MADV_DONTNEED);
		*from = at;
	}
}

/* Takes the sizes that the headers say, and drops the packets whose header cannot be right. */
static void check_sizes(struct stream_file *f, const unsigned char *map, bool big)
{
	const size_t at = find_size(f, map, big);
	size_t kept = 0, held = 0;
	if (!at)
		return;
	for (size_t i = 0; i < f->packets; i++) {
		struct packet p = f->packet[i];
		struct context c;
		const bool is_last = i + 1 == f->packets;
		let_go(map, &held, p.offset);
		if (!read_context(&p, map, at, big, &c) || (c.size / 8 > p.size && !is_last)) {
			f->damaged++;
			continue;
		}
		f->damaged += c.size / 8 < p.size;  /* what follows it is no packet */
		p.size = c.size / 8 < p.size ? c.size / 8 : p.size;
		f->packet[kept++] = p;
	}
	f->packets = kept;
	f->sized = true;
}

/* Where the next packet begins, from `at` on; `len`: there is none. */
static size_t find_packet(const unsigned char *map, size_t len, size_t at, size_t *held)
{
	unsigned char wanted[HEADER];
	memcpy(wanted, map, sizeof wanted);
	for (; len - at >= HEADER; at += STEP) {
		const size_t n = len - at < STEP + HEADER - 1 ? len - at : STEP + HEADER - 1;
		const unsigned char *found = memmem(map + at, n, wanted, sizeof wanted);
		let_go(map, held, at);
		if (found)
			return (size_t)(found - map);
		if (n < STEP)
			break;
	}
	return len;
}

/* Every place where the first packet's magic number and UUID are seen again begins a packet. */
static void from_magic(struct stream_file *f)
{
	char *path = mem_printf("%s/%s", f->dir, f->name);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	const size_t len = (size_t)f->bytes;
	const unsigned char *map = fd >= 0 && len >= HEADER ? mmap(NULL, len, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
	free(path);
	if (fd >= 0)
		close(fd);
	if (map == MAP_FAILED)
		return;
	uint32_t magic;
	memcpy(&magic, map, sizeof magic);
	const bool big = magic == htobe32(STREAM_MAGIC);
	if (big || magic == htole32(STREAM_MAGIC)) {
		size_t held = 0;
		for (size_t at = 0, next; at < len; at = next) {
			next = find_packet(map, len, at + 1, &held);
			*ARRAY_PUSH(f->packet, f->packets, f->cap) = (struct packet){ .offset = at, .size = next - at };
		}
		check_sizes(f, map, big);
	}
	munmap((void *)map, len);
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct stream_file *)a)->name, ((const struct stream_file *)b)->name);
}

void stream_files_list(const char *dir, struct stream_file **list, size_t *n)
{
	size_t cap = 0;
	DIR *d = opendir(dir);
	*list = NULL;
	*n = 0;
	for (struct dirent *e; d && (e = readdir(d));) {
		struct stat st;
		if (e->d_name[0] == '.' || strcmp(e->d_name, "metadata") == 0 ||
		    fstatat(dirfd(d), e->d_name, &st, 0) || !S_ISREG(st.st_mode) || !st.st_size)
			continue;
		struct stream_file *f = ARRAY_PUSH(*list, *n, cap);
		*f = (struct stream_file){ .dir = mem_dup(dir), .name = mem_dup(e->d_name),
			.bytes = (uint64_t)st.st_size };
	}
	if (d)
		closedir(d);
	if (*n)
		qsort(*list, *n, sizeof **list, by_name);
}

void stream_file_read(struct stream_file *f)
{
	if (!from_index(f))
		from_magic(f);
	const struct packet *last = f->packets ? &f->packet[f->packets - 1] : NULL;
	f->extra = last && !f->damaged ? f->bytes - (last->offset + last->size) : 0;
}

static size_t read_head(const struct stream_file *f, unsigned char head[HEAD_LONGEST])
{
	char *path = mem_printf("%s/%s", f->dir, f->name);
	FILE *in = fopen(path, "rbe");
	size_t n = in ? fread(head, 1, HEAD_LONGEST, in) : 0;
	if (in)
		fclose(in);
	free(path);
	return n;
}

bool stream_files_same(const struct stream_file *a, size_t n, const struct stream_file *b, size_t m)
{
	unsigned char x[HEAD_LONGEST], y[HEAD_LONGEST];
	for (size_t i = 0; i < n && n == m; i++) {
		if (strcmp(a[i].name, b[i].name) != 0 || a[i].bytes != b[i].bytes)
			return false;
		size_t len = read_head(&a[i], x);
		if (read_head(&b[i], y) != len || memcmp(x, y, len) != 0)
			return false;
	}
	return n == m && n > 0;
}

void stream_files_free(struct stream_file *list, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		free(list[i].dir);
		free(list[i].name);
		free(list[i].packet);
	}
	free(list);
}

bool packets_may_cut(const struct stream_file *f, size_t first)
{
	if (!f->indexed || first == 0 || first >= f->packets)
		return false;
	const struct packet *a = &f->packet[first - 1], *b = &f->packet[first];
	return a->discarded == b->discarded && b->sequence == a->sequence + 1 && a->end <= b->begin;
}
