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
#define INDEX_LONGEST (1L << 30)  /* bytes */
#define STREAM_MAGIC 0xC1FC1FC1U
#define HEAD_LONGEST 512          /* bytes of a packet within which its context is looked for */
#define HEADER 20                 /* bytes of a packet header that are looked for: magic and UUID */
#define WINDOW ((size_t)1 << 18)  /* bytes of a file that are held in memory at a time */

/* The layout of LTTng's index files, all big endian. */
struct index_head { uint32_t magic, major, minor, entry_size; };
struct index_entry {
	uint64_t offset, packet_size, content_size, begin, end, discarded, stream_class;  /* sizes in bits */
	uint64_t instance, sequence;  /* since 1.1 */
};

static char *read_index(struct stream_file *f, size_t *len)
{
	char *path = mem_printf("%s/index/%s.idx", f->dir, f->name);
	FILE *in = file_open(path);
	struct stat st;
	char *data = NULL;
	free(path);
	*len = 0;
	f->misled = !in && (errno == EINVAL || errno == EISDIR);  /* it is no regular file */
	if (!in && !f->misled && errno != ENOENT && errno != ENOTDIR)
		f->why = errno;
	if (in && fstat(fileno(in), &st) == 0 && S_ISREG(st.st_mode) && st.st_size < INDEX_LONGEST) {
		data = mem_new((size_t)st.st_size + 1, 1);
		*len = fread(data, 1, (size_t)st.st_size, in);
		f->why = ferror(in) ? errno : f->why;
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
	if (fd < 0)
		f->why = errno;
	for (size_t i = 0; i < f->packets && fd >= 0 && !context; i++) {
		ssize_t n = pread(fd, first, sizeof first, (off_t)f->packet[i].offset);
		f->why = n < 0 ? errno : f->why;
		context = n > 0 ? find_context(&f->packet[i], first, (size_t)n) : 0;
	}
	for (size_t i = 0; i < f->packets && context; i++) {
		const struct packet p = f->packet[i];
		const bool is_cut = i + 1 == f->packets && f->missing;  /* its size here is what is left of it */
		ssize_t n = pread(fd, head, sizeof head, (off_t)p.offset);
		f->why = n < 0 ? errno : f->why;
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
	f->misled |= data && !good && !f->why;
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

/* A stretch of a file in memory.  (A mapped one would kill the program if the file became shorter.) */
struct file_window {
	int fd, why;         /* why: errno of a read that failed, else 0 */
	uint64_t len;        /* of the file */
	unsigned char *buf;  /* WINDOW bytes, of which `held` are those from `at` on */
	uint64_t at, held;
};

/* n bytes from `at` on, n <= HEAD_LONGEST; NULL: they are not there. */
static const unsigned char *window_at(struct file_window *w, uint64_t at, size_t n)
{
	if (at > w->len || n > w->len - at)
		return NULL;
	if (at < w->at || at + n > w->at + w->held) {
		const ssize_t got = pread(w->fd, w->buf, WINDOW, (off_t)at);
		w->why = got < 0 ? errno : w->why;
		w->at = at;
		w->held = got > 0 ? (uint64_t)got : 0;
	}
	return at + n <= w->at + w->held ? w->buf + (at - w->at) : NULL;
}

/* What a packet's context says, as LTTng and babeltrace's own writer write it: its times, the size of its content and its
 * own size, 8 bytes each, one behind the other; `at` is where the last of them is. */
struct context { uint64_t begin, end, content, size; };

static bool read_context(const struct packet *p, struct file_window *w, size_t at, bool big, struct context *c)
{
	const unsigned char *head = p->size < at + 8 ? NULL : window_at(w, p->offset, at + 8);
	if (!head)
		return false;
	head += at;
	*c = (struct context){ word_at(head - 24, big), word_at(head - 16, big), word_at(head - 8, big), word_at(head, big) };
	return c->size && c->size % 8 == 0 && c->size >> 40 == 0 && c->content <= c->size && c->content >= 8 * at &&
	       c->begin <= c->end && c->end >> 62 == 0;
}

/* Behind what the packet's context says is its end, and before the next packet, there is something that is none. */
static bool is_followed(const struct packet *p, struct file_window *w, const struct context *c)
{
	uint32_t magic = 0;
	if (c->size >= p->size * 8)
		return false;
	const unsigned char *at = window_at(w, p->offset + c->size / 8, sizeof magic);
	if (at)
		memcpy(&magic, at, sizeof magic);
	return magic != htobe32(STREAM_MAGIC) && magic != htole32(STREAM_MAGIC);
}

/* Where the packet's size is: the place at which most packets say what the distance to the next one is; or at which all
 * say less, so that something follows them that is no packet.  0: nowhere. */
static size_t find_size(const struct stream_file *f, struct file_window *w, bool big)
{
	unsigned same[HEAD_LONGEST] = { 0 }, less[HEAD_LONGEST] = { 0 };
	size_t best = 0, other = 0;
	const size_t packets = f->packets < 64 ? f->packets : 64;
	for (size_t i = 0; i < packets; i++) {
		for (size_t at = HEADER + 24; at + 8 <= HEAD_LONGEST; at++) {
			struct context c;
			const bool is_one = read_context(&f->packet[i], w, at, big, &c);
			same[at] += is_one && c.size == f->packet[i].size * 8;
			less[at] += is_one && is_followed(&f->packet[i], w, &c);
		}
	}
	for (size_t at = 0; at < HEAD_LONGEST; at++) {
		best = same[at] > same[best] ? at : best;
		other = less[at] > less[other] ? at : other;
	}
	return best || less[other] < packets ? best : other;
}

/* Takes the sizes that the headers say, and drops the packets whose header cannot be right. */
static void check_sizes(struct stream_file *f, struct file_window *w, bool big)
{
	const size_t at = find_size(f, w, big);
	size_t kept = 0;
	if (!at)
		return;
	for (size_t i = 0; i < f->packets; i++) {
		struct packet p = f->packet[i];
		struct context c;
		const bool is_last = i + 1 == f->packets;
		if (!read_context(&p, w, at, big, &c) || (c.size / 8 > p.size && !is_last)) {
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

/* Where the next packet begins, from `at` on: at the `wanted` bytes; the file's end: there is none. */
static uint64_t find_packet(struct file_window *w, const unsigned char wanted[HEADER], uint64_t at)
{
	for (const unsigned char *p; (p = window_at(w, at, HEADER)); at = w->at + w->held - (HEADER - 1)) {
		const size_t n = (size_t)(w->at + w->held - at);
		const unsigned char *found = memmem(p, n, wanted, HEADER);
		if (found)
			return at + (size_t)(found - p);
	}
	return w->len;
}

static void find_packets(struct stream_file *f, struct file_window *w)
{
	unsigned char first[HEADER];
	uint32_t magic;
	const unsigned char *head = window_at(w, 0, HEADER);
	if (!head)
		return;
	memcpy(first, head, HEADER);
	memcpy(&magic, head, sizeof magic);
	if (magic != htobe32(STREAM_MAGIC) && magic != htole32(STREAM_MAGIC))
		return;
	for (uint64_t at = 0, next; at < w->len; at = next) {
		next = find_packet(w, first, at + 1);
		*ARRAY_PUSH(f->packet, f->packets, f->cap) = (struct packet){ .offset = at, .size = next - at };
	}
	check_sizes(f, w, magic == htobe32(STREAM_MAGIC));
}

/* Every place where the first packet's magic number and UUID are seen again begins a packet. */
static void from_magic(struct stream_file *f)
{
	char *path = mem_printf("%s/%s", f->dir, f->name);
	struct file_window w = { .fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), .len = f->bytes };
	free(path);
	if (w.fd < 0) {
		f->why = errno;
		return;
	}
	w.buf = mem_new(1, WINDOW);
	find_packets(f, &w);
	f->why = w.why ? w.why : f->why;
	free(w.buf);
	close(w.fd);
}

static int by_name(const void *a, const void *b)
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
	const int why = errno;
	closedir(d);
	if (*n)
		qsort(*list, *n, sizeof **list, by_name);
	errno = why;
	return why ? -1 : 0;
}

bool stream_file_name(const char *name)
{
	const size_t len = strlen(name);
	return len && name[len - 1] >= '0' && name[len - 1] <= '9';
}

static void count_extra(struct stream_file *f)
{
	const struct packet *last = f->packets ? &f->packet[f->packets - 1] : NULL;
	f->extra = last && !f->damaged ? f->bytes - (last->offset + last->size) : 0;
}

void stream_file_index(struct stream_file *f)
{
	from_index(f);
	count_extra(f);
}

void stream_file_read(struct stream_file *f)
{
	if (!from_index(f) && !f->why)
		from_magic(f);
	count_extra(f);
}

static size_t read_head(const struct stream_file *f, unsigned char head[HEAD_LONGEST])
{
	char *path = mem_printf("%s/%s", f->dir, f->name);
	FILE *in = file_open(path);
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
