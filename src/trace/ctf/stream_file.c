#include "trace/ctf/stream_file.h"

#include <dirent.h>
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>

#include "base/file_open.h"

#define INDEX_MAGIC 0xC1F1DCC1U
#define MAX_INDEX (1L << 30)  /* bytes */
#define COMPARED_BYTES 512  /* size of the start of a file that is compared, bytes */

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
		be64toh(e->begin), be64toh(e->end), be64toh(e->discarded) };
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

void stream_file_read_index(struct stream_file *f)
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
	ARRAY_SORT(*list, *n, compare_name);
	errno = read_errno;
	return read_errno ? -1 : 0;
}

bool stream_file_has_stream_name(const char *name)
{
	const size_t len = strlen(name);
	return len && name[len - 1] >= '0' && name[len - 1] <= '9';
}

static size_t read_file_head(const struct stream_file *f, unsigned char head[COMPARED_BYTES])
{
	char *path = mem_printf("%s/%s", f->dir, f->name);
	FILE *in = file_open(path);
	size_t n = in ? fread(head, 1, COMPARED_BYTES, in) : 0;
	if (in)
		fclose(in);
	free(path);
	return n;
}

bool stream_files_same(const struct stream_file *a, size_t n, const struct stream_file *b, size_t m)
{
	unsigned char x[COMPARED_BYTES], y[COMPARED_BYTES];
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
