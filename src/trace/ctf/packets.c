#include "trace/ctf/packets.h"

#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/file_open.h"
#include "base/mem.h"

#define INDEX_MAGIC 0xC1F1DCC1U
#define MAX_INDEX (1L << 30)  /* bytes */
#define STREAM_MAGIC 0xC1FC1FC1U
#define MAX_HEADER 512                 /* size of the start of a packet in which its context is searched, bytes */
#define MAGIC_AND_UUID 20              /* size of the start of a packet header: magic number and trace UUID, bytes */
#define WINDOW_SIZE ((size_t)1 << 18)  /* size of the part of a file in memory, bytes */

/* Format of LTTng's index files, big endian. Entries of version 1.0 (LTTng up to 2.7) end with the stream class. */
struct index_head { uint32_t magic, major, minor, entry_size; };
struct index_entry {
	uint64_t offset, packet_size, content_size, begin, end, discarded, stream_class;  /* sizes in bits */
	uint64_t instance, sequence;                                                      /* since version 1.1 */
};
#define ENTRY_SIZE(minor) ((minor) ? sizeof(struct index_entry) : offsetof(struct index_entry, instance))

static char *read_index(struct stream_file *f, size_t *len)
{
	char *path = mem_printf("%s/index/%s.idx", f->dir, f->name);
	FILE *in = file_open(path);
	struct stat st;
	char *data = NULL;
	free(path);
	*len = 0;
	f->index_damaged = !in && (errno == FILE_NOT_REGULAR || errno == EISDIR);  /* not a regular file */
	if (!in && !f->index_damaged && errno != ENOENT && errno != ENOTDIR)
		f->read_errno = errno;
	if (in && fstat(fileno(in), &st) == 0 && S_ISREG(st.st_mode) && st.st_size < MAX_INDEX) {
		data = mem_new((size_t)st.st_size + 1, 1);
		*len = fread(data, 1, (size_t)st.st_size, in);
		f->read_errno = ferror(in) ? errno : f->read_errno;
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
		f->missing_bytes += p.size;
		return;
	}
	if (p.size > f->bytes - p.offset) {
		f->missing_bytes += p.size - (f->bytes - p.offset);
		p.size = f->bytes - p.offset;
	}
	*ARRAY_PUSH(f->packet, f->packets, f->cap) = p;
}

/* Returns the offset of the packet context in the header: the 8-byte values begin, end, content size and packet size
 * from the index, in either byte order, as LTTng writes them. 0: not found. */
static size_t find_context_offset(const struct packet *p, const unsigned char *head, size_t len)
{
	const uint64_t bits = p->size * 8;
	const uint64_t le[] = { htole64(p->begin), htole64(p->end), htole64(p->content), htole64(bits) };
	const uint64_t be[] = { htobe64(p->begin), htobe64(p->end), htobe64(p->content), htobe64(bits) };
	const unsigned char *at = memmem(head, len, le, sizeof le);
	if (!at)
		at = memmem(head, len, be, sizeof be);
	return at ? (size_t)(at - head) : 0;
}

/* Removes packets with a header that contradicts the index, or that differs from other packets in magic number, UUID or
 * stream. If no packet has a context at a known offset, another tracer wrote the file and nothing is removed. */
static void check_headers(struct stream_file *f)
{
	unsigned char first[MAX_HEADER], head[MAX_HEADER];
	size_t offset = 0, n_kept = 0;
	char *path = mem_printf("%s/%s", f->dir, f->name);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	free(path);
	if (fd < 0)
		f->read_errno = errno;
	for (size_t i = 0; i < f->packets && fd >= 0 && !offset; i++) {
		ssize_t n = pread(fd, first, sizeof first, (off_t)f->packet[i].offset);
		f->read_errno = n < 0 ? errno : f->read_errno;
		offset = n > 0 ? find_context_offset(&f->packet[i], first, (size_t)n) : 0;
	}
	for (size_t i = 0; i < f->packets && offset; i++) {
		const struct packet p = f->packet[i];
		const bool is_cut = i + 1 == f->packets && f->missing_bytes;  /* p.size is not the packet's size, but what
		                                                               * remains of it in the file */
		ssize_t n = pread(fd, head, sizeof head, (off_t)p.offset);
		f->read_errno = n < 0 ? errno : f->read_errno;
		if (n >= (ssize_t)offset && memcmp(head, first, offset) == 0 &&
		    (is_cut || find_context_offset(&p, head, (size_t)n) == offset))
			f->packet[n_kept++] = p;
	}
	if (fd >= 0)
		close(fd);
	if (offset) {
		f->damaged_packets = f->packets - n_kept;
		f->packets = n_kept;
	}
}

static bool read_packets_from_index(struct stream_file *f)
{
	size_t len;
	char *data = read_index(f, &len);
	struct index_head head;
	bool is_valid = data && len >= sizeof head;
	if (is_valid) {
		memcpy(&head, data, sizeof head);
		is_valid = be32toh(head.magic) == INDEX_MAGIC && be32toh(head.major) == 1;
	}
	const size_t size = is_valid ? be32toh(head.entry_size) : 0, known = is_valid ? ENTRY_SIZE(head.minor) : 0;
	is_valid = is_valid && size >= known && size < 4096;
	uint64_t at = 0;
	for (size_t i = sizeof head; is_valid && i + size <= len; i += size) {
		struct index_entry e = { 0 };
		memcpy(&e, data + i, known);
		is_valid = be64toh(e.offset) == at && be64toh(e.packet_size) && be64toh(e.packet_size) % 8 == 0 &&
		       be64toh(e.begin) <= be64toh(e.end);
		at += be64toh(e.packet_size) / 8;
		if (is_valid)
			add_entry(f, &e);
	}
	f->index_damaged |= data && !is_valid && !f->read_errno;
	free(data);
	if (!is_valid)
		f->packets = 0, f->missing_bytes = 0;
	f->has_index = is_valid && f->packets;
	if (f->has_index)
		check_headers(f);
	return f->has_index;
}

/* ---- without an index */

static uint64_t read_u64(const unsigned char *p, bool is_big)
{
	uint64_t v;
	memcpy(&v, p, sizeof v);
	return is_big ? be64toh(v) : le64toh(v);
}

/* Part of a file in memory. It is not mapped: if the file shrank, access to a mapping would kill the process. */
struct file_window {
	int fd, read_errno;  /* read_errno: errno of a failed read; 0: none */
	uint64_t len;        /* size of the file, bytes */
	unsigned char *buf;  /* WINDOW_SIZE bytes; the first `filled` are valid: the file starting at offset `at` */
	uint64_t at, filled;
};

/* Returns the address of n bytes (at most MAX_HEADER) of the file, starting at offset `at`; NULL: the file has no such
 * bytes, or cannot be read. */
static const unsigned char *window_at(struct file_window *w, uint64_t at, size_t n)
{
	if (at > w->len || n > w->len - at)
		return NULL;
	if (at < w->at || at + n > w->at + w->filled) {
		const ssize_t got = pread(w->fd, w->buf, WINDOW_SIZE, (off_t)at);
		w->read_errno = got < 0 ? errno : w->read_errno;
		w->at = at;
		w->filled = got > 0 ? (uint64_t)got : 0;
	}
	return at + n <= w->at + w->filled ? w->buf + (at - w->at) : NULL;
}

/* Context of a packet, as LTTng and babeltrace2 write it: begin, end, content size and packet size, 8 bytes each. */
struct context_fields { uint64_t begin, end, content, size; };

/* Reads the context of a packet; `at`: offset of the packet size. Returns false if the values are not plausible. */
static bool read_context(const struct packet *p, struct file_window *w, size_t at, bool is_big, struct context_fields *c)
{
	const unsigned char *head = p->size < at + 8 ? NULL : window_at(w, p->offset, at + 8);
	if (!head)
		return false;
	head += at;
	*c = (struct context_fields){ read_u64(head - 24, is_big), read_u64(head - 16, is_big), read_u64(head - 8, is_big),
		read_u64(head, is_big) };
	return c->size && c->size % 8 == 0 && c->size >> 40 == 0 && c->content <= c->size && c->content >= 8 * at &&
	       c->begin <= c->end && c->end >> 62 == 0;
}

/* Returns true if the bytes after the packet, by the size in its context, are not the start of another packet. */
static bool is_followed_by_garbage(const struct packet *p, struct file_window *w, const struct context_fields *c)
{
	uint32_t magic = 0;
	if (c->size >= p->size * 8)
		return false;
	const unsigned char *at = window_at(w, p->offset + c->size / 8, sizeof magic);
	if (at)
		memcpy(&magic, at, sizeof magic);
	return magic != htobe32(STREAM_MAGIC) && magic != htole32(STREAM_MAGIC);
}

/* Finds the offset of the packet size in the headers: the offset at which most packets contain the distance to the next
 * packet, or at which all packets contain a smaller size, so that garbage follows each packet. 0: not found. */
static size_t find_size_offset(const struct stream_file *f, struct file_window *w, bool is_big)
{
	unsigned n_equal[MAX_HEADER] = { 0 }, n_smaller[MAX_HEADER] = { 0 };
	size_t best = 0, best_smaller = 0;
	const size_t packets = f->packets < 64 ? f->packets : 64;
	for (size_t i = 0; i < packets; i++) {
		for (size_t at = MAGIC_AND_UUID + 24; at + 8 <= MAX_HEADER; at++) {
			struct context_fields c;
			const bool is_one = read_context(&f->packet[i], w, at, is_big, &c);
			n_equal[at] += is_one && c.size == f->packet[i].size * 8;
			n_smaller[at] += is_one && is_followed_by_garbage(&f->packet[i], w, &c);
		}
	}
	for (size_t at = 0; at < MAX_HEADER; at++) {
		best = n_equal[at] > n_equal[best] ? at : best;
		best_smaller = n_smaller[at] > n_smaller[best_smaller] ? at : best_smaller;
	}
	return best || n_smaller[best_smaller] < packets ? best : best_smaller;
}

/* Sets the packet sizes from the headers, and removes packets with an invalid header. */
static void check_sizes(struct stream_file *f, struct file_window *w, bool is_big)
{
	const size_t at = find_size_offset(f, w, is_big);
	size_t n_kept = 0;
	if (!at)
		return;
	for (size_t i = 0; i < f->packets; i++) {
		struct packet p = f->packet[i];
		struct context_fields c;
		const bool is_last = i + 1 == f->packets;
		if (!read_context(&p, w, at, is_big, &c) || (c.size / 8 > p.size && !is_last)) {
			f->damaged_packets++;
			continue;
		}
		f->damaged_packets += c.size / 8 < p.size;  /* garbage follows the packet */
		p.size = c.size / 8 < p.size ? c.size / 8 : p.size;
		f->packet[n_kept++] = p;
	}
	f->packets = n_kept;
	f->has_sizes = true;
}

/* Returns the offset of the next packet at or after `at`, found by the bytes in `pattern`; the file's size: none. */
static uint64_t find_packet(struct file_window *w, const unsigned char pattern[MAGIC_AND_UUID], uint64_t at)
{
	for (const unsigned char *p; (p = window_at(w, at, MAGIC_AND_UUID)); at = w->at + w->filled - (MAGIC_AND_UUID - 1)) {
		const size_t n = (size_t)(w->at + w->filled - at);
		const unsigned char *found = memmem(p, n, pattern, MAGIC_AND_UUID);
		if (found)
			return at + (size_t)(found - p);
	}
	return w->len;
}

static void find_packets(struct stream_file *f, struct file_window *w)
{
	unsigned char first[MAGIC_AND_UUID];
	uint32_t magic;
	const unsigned char *head = window_at(w, 0, MAGIC_AND_UUID);
	if (!head)
		return;
	memcpy(first, head, MAGIC_AND_UUID);
	memcpy(&magic, head, sizeof magic);
	if (magic != htobe32(STREAM_MAGIC) && magic != htole32(STREAM_MAGIC))
		return;
	for (uint64_t at = 0, next; at < w->len; at = next) {
		next = find_packet(w, first, at + 1);
		*ARRAY_PUSH(f->packet, f->packets, f->cap) = (struct packet){ .offset = at, .size = next - at };
	}
	check_sizes(f, w, magic == htobe32(STREAM_MAGIC));
}

/* Finds packets by the magic number and UUID of the first packet. */
static void find_packets_by_magic(struct stream_file *f)
{
	char *path = mem_printf("%s/%s", f->dir, f->name);
	struct file_window w = { .fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), .len = f->bytes };
	free(path);
	if (w.fd < 0) {
		f->read_errno = errno;
		return;
	}
	w.buf = mem_new(1, WINDOW_SIZE);
	find_packets(f, &w);
	f->read_errno = w.read_errno ? w.read_errno : f->read_errno;
	free(w.buf);
	close(w.fd);
}

static int compare_name(const void *a, const void *b)
{
	return strcmp(((const struct stream_file *)a)->name, ((const struct stream_file *)b)->name);
}

int stream_files_list(const char *dir, struct stream_file **list, size_t *n)
{
	size_t cap = 0;
	DIR *d = opendir(dir);
	*list = NULL;
	*n = 0;
	if (!d)
		return -1;
	errno = 0;
	for (struct dirent *e; (e = readdir(d)); errno = 0) {
		struct stat st;
		if (e->d_name[0] == '.' || strcmp(e->d_name, "metadata") == 0 ||
		    fstatat(dirfd(d), e->d_name, &st, 0) || !S_ISREG(st.st_mode) || !st.st_size)
			continue;
		struct stream_file *f = ARRAY_PUSH(*list, *n, cap);
		*f = (struct stream_file){ .dir = mem_dup(dir), .name = mem_dup(e->d_name),
			.bytes = (uint64_t)st.st_size };
	}
	const int read_errno = errno;
	closedir(d);
	if (*n)
		qsort(*list, *n, sizeof **list, compare_name);
	errno = read_errno;
	return read_errno ? -1 : 0;
}

bool stream_file_has_stream_name(const char *name)
{
	const size_t len = strlen(name);
	return len && name[len - 1] >= '0' && name[len - 1] <= '9';
}

static void count_extra(struct stream_file *f)
{
	const struct packet *last = f->packets ? &f->packet[f->packets - 1] : NULL;
	f->extra_bytes = last && !f->damaged_packets ? f->bytes - (last->offset + last->size) : 0;
}

void stream_file_read_index(struct stream_file *f)
{
	read_packets_from_index(f);
	count_extra(f);
}

void stream_file_find_packets(struct stream_file *f)
{
	if (!read_packets_from_index(f) && !f->read_errno)
		find_packets_by_magic(f);
	count_extra(f);
}

static size_t read_file_head(const struct stream_file *f, unsigned char head[MAX_HEADER])
{
	char *path = mem_printf("%s/%s", f->dir, f->name);
	FILE *in = file_open(path);
	size_t n = in ? fread(head, 1, MAX_HEADER, in) : 0;
	if (in)
		fclose(in);
	free(path);
	return n;
}

bool stream_files_same(const struct stream_file *a, size_t n, const struct stream_file *b, size_t m)
{
	unsigned char x[MAX_HEADER], y[MAX_HEADER];
	for (size_t i = 0; i < n && n == m; i++) {
		if (strcmp(a[i].name, b[i].name) != 0 || a[i].bytes != b[i].bytes)
			return false;
		size_t len = read_file_head(&a[i], x);
		if (read_file_head(&b[i], y) != len || memcmp(x, y, len) != 0)
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
	if (!f->has_index || first == 0 || first >= f->packets)
		return false;
	const struct packet *a = &f->packet[first - 1], *b = &f->packet[first];
	return a->discarded == b->discarded && b->sequence == a->sequence + 1 && a->end <= b->begin;
}
