#include "history/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <signal.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "history/format.h"

#define BUFFER (4 * OUT_RESERVE)
#define TEMP_TRIES 100u
#define WRITE_START_BYTES (8u << 20)  /* bytes after which the kernel is asked to start writing */

static ssize_t write_some(int fd, const uint8_t *p, size_t size, int64_t offset)
{
	return offset < 0 ? write(fd, p, size) : pwrite(fd, p, size, offset);
}

/* Blocks SIGXFSZ: a write beyond RLIMIT_FSIZE raises it, and it kills the process; blocked, the write fails with EFBIG. */
static void block_xfsz(sigset_t *xfsz, sigset_t *old)
{
	sigemptyset(xfsz);
	sigaddset(xfsz, SIGXFSZ);
	pthread_sigmask(SIG_BLOCK, xfsz, old);
}

/* Removes a SIGXFSZ caused by the write, and restores the signal mask. Sets errno to `result`; returns 0, or -1 if it is
 * not 0. */
static int unblock_xfsz(const sigset_t *xfsz, const sigset_t *old, int result)
{
	if (result == EFBIG && !sigismember(old, SIGXFSZ))
		sigtimedwait(xfsz, NULL, &(struct timespec){ 0, 0 });
	pthread_sigmask(SIG_SETMASK, old, NULL);
	errno = result;
	return result ? -1 : 0;
}

int write_all(int fd, const void *data, size_t size, int64_t offset)
{
	sigset_t xfsz, old;
	block_xfsz(&xfsz, &old);
	const uint8_t *p = data;
	int result = 0;
	while (size) {
		ssize_t n = write_some(fd, p, size, offset);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			result = n ? errno : ENOSPC;
			break;
		}
		p += n;
		size -= (size_t)n;
		offset = offset < 0 ? offset : offset + n;
	}
	return unblock_xfsz(&xfsz, &old, result);
}

int out_cannot_write(const struct out *o, struct error *err)
{
	const char *remedy = errno == ENOSPC || errno == EDQUOT ? "free some space or write elsewhere"
		: errno == EFBIG ? "raise the file size limit (ulimit -f)" : NULL;
	return error_system(err, remedy, "cannot write %s", o->path);
}

/* Returns true if linkat(2) can name the unnamed file, which without privileges needs /proc. */
static bool can_link(int fd)
{
	char name[32];
	snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
	struct stat here, there;
	return !fstat(fd, &here) && !stat(name, &there) && here.st_dev == there.st_dev && here.st_ino == there.st_ino;
}

static char *temp_name(const struct out *o, unsigned n)
{
	char *copy = mem_dup(o->path);
	char *name = mem_printf(".%.200s.%ld-%u.tmp", basename(copy), (long)getpid(), n);
	free(copy);
	return name;
}

static int open_file(struct out *o, bool named, struct error *err)
{
	o->fd = named ? -1 : openat(o->dir_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0666);
	if (o->fd >= 0 && can_link(o->fd))
		return 0;
	if (o->fd >= 0)
		close(o->fd);
	for (unsigned n = 0; n < TEMP_TRIES; n++) {
		o->temp = temp_name(o, n);
		o->fd = openat(o->dir_fd, o->temp, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0666);
		if (o->fd >= 0)
			return 0;
		free(o->temp);
		o->temp = NULL;
		if (errno != EEXIST)
			break;
	}
	return error_system(err, "choose a writable directory", "cannot create %s", o->path);
}

int out_open(struct out *o, const char *path, unsigned block, bool named, struct error *err)
{
	*o = (struct out){ .fd = -1, .dir_fd = -1, .block = block };
	o->path = mem_dup(path);
	char *copy = mem_dup(path);
	o->dir = mem_dup(dirname(copy));
	free(copy);
	struct stat st;
	o->dir_fd = open(o->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (o->dir_fd < 0) {
		error_system(err, errno == EACCES ? "choose a writable directory" : "choose an existing directory",
		             "cannot create %s", path);
		out_discard(o);
		return -1;
	}
	if (!stat(path, &st) && !S_ISREG(st.st_mode)) {
		error_set(err, STATUS_SYSTEM, "choose another name", "cannot create %s: it exists and is not a regular file",
		          path);
		out_discard(o);
		return -1;
	}
	if (open_file(o, named, err)) {
		out_discard(o);
		return -1;
	}
	crc32c_init(&o->crc);
	o->cap = BUFFER + 2 * (size_t)block;
	o->buf = mem_new(o->cap, 1);
	o->len = HEADER_BYTES;  /* the header: zeros until the history is finished */
	return 0;
}

void out_discard(struct out *o)
{
	if (o->temp)
		unlinkat(o->dir_fd, o->temp, 0);
	if (o->fd >= 0)
		close(o->fd);
	if (o->dir_fd >= 0)
		close(o->dir_fd);
	free(o->path);
	free(o->dir);
	free(o->temp);
	free(o->buf);
	free(o->sum);
	*o = (struct out){ .fd = -1, .dir_fd = -1 };
}

/* Adds a block's checksum. Block 0 is summed without the header, which has its own checksum. */
static void sum_block(struct out *o, const uint8_t *p, size_t size, uint64_t offset)
{
	size_t skip = offset < HEADER_BYTES ? HEADER_BYTES - offset : 0;
	if (skip > size)
		skip = size;
	*ARRAY_PUSH(o->sum, o->sums, o->sums_cap) = crc32c(&o->crc, p + skip, size - skip);
}

/* Starts writing finished blocks to the disk early, so that the final fsync() is short. */
static void start_writing(struct out *o)
{
	if (o->base - o->write_started < WRITE_START_BYTES)
		return;
	(void)sync_file_range(o->fd, (off_t)o->write_started, (off_t)(o->base - o->write_started), SYNC_FILE_RANGE_WRITE);
	o->write_started = o->base;
}

/* Writes the full blocks of the buffer. */
static int flush_blocks(struct out *o, struct error *err)
{
	size_t full_blocks = o->len & ~((size_t)o->block - 1);
	for (size_t at = 0; at < full_blocks; at += o->block)
		sum_block(o, o->buf + at, o->block, o->base + at);
	if (write_all(o->fd, o->buf, full_blocks, (int64_t)o->base))
		return out_cannot_write(o, err);
	memmove(o->buf, o->buf + full_blocks, o->len - full_blocks);
	o->base += full_blocks;
	o->len -= full_blocks;
	start_writing(o);
	return 0;
}

uint8_t *out_reserve(struct out *o, size_t size, struct error *err)
{
	if (o->cap - o->len < size && flush_blocks(o, err))
		return NULL;
	return o->buf + o->len;
}

int out_write(struct out *o, const void *data, size_t size, struct error *err)
{
	const uint8_t *from = data;
	while (size) {
		size_t n = size < OUT_RESERVE ? size : OUT_RESERVE;
		uint8_t *p = out_reserve(o, n, err);
		if (!p)
			return -1;
		memcpy(p, from, n);
		out_commit(o, n);
		from += n;
		size -= n;
	}
	return 0;
}

int out_align(struct out *o, struct error *err)
{
	return out_write(o, (const uint8_t[8]){ 0 }, (size_t)(-out_offset(o) & 7), err);
}

int out_flush(struct out *o, struct error *err)
{
	if (flush_blocks(o, err))
		return -1;
	return write_all(o->fd, o->buf, o->len, (int64_t)o->base) ? out_cannot_write(o, err) : 0;
}

int out_seal(struct out *o, struct error *err)
{
	if (flush_blocks(o, err))
		return -1;
	if (!o->len)
		return 0;
	sum_block(o, o->buf, o->len, o->base);
	if (write_all(o->fd, o->buf, o->len, (int64_t)o->base))
		return out_cannot_write(o, err);
	o->base += o->len;
	o->len = 0;
	return 0;
}

int out_write_at(struct out *o, const void *data, size_t size, uint64_t offset, struct error *err)
{
	return write_all(o->fd, data, size, (int64_t)offset) ? out_cannot_write(o, err) : 0;
}

/* Links the unnamed file to its name. If a file has that name, links the new file to a temporary name, for a rename: a
 * link cannot replace a file. */
static int link_name(struct out *o, const char *name)
{
	char from[32];
	snprintf(from, sizeof from, "/proc/self/fd/%d", o->fd);
	int result = linkat(AT_FDCWD, from, o->dir_fd, name, AT_SYMLINK_FOLLOW);
	for (unsigned n = 0; result && errno == EEXIST && n < TEMP_TRIES; n++) {
		char *temp = temp_name(o, n);
		result = linkat(AT_FDCWD, from, o->dir_fd, temp, AT_SYMLINK_FOLLOW);
		if (!result)
			o->temp = temp;
		else
			free(temp);
	}
	return result;
}

static int rename_to_path(struct out *o, const char *name)
{
	if (fsync(o->fd) || (!o->temp && link_name(o, name)))
		return -1;
	if (o->temp && renameat(o->dir_fd, o->temp, o->dir_fd, name))
		return -1;
	free(o->temp);
	o->temp = NULL;
	return 0;
}

int out_publish(struct out *o, struct error *err)
{
	char *copy = mem_dup(o->path);
	int result = rename_to_path(o, basename(copy)) ? out_cannot_write(o, err) : 0;
	if (!result)
		fsync(o->dir_fd);  /* on failure only durability is lost */
	free(copy);
	out_discard(o);
	return result;
}

int out_scratch(const struct out *o, struct error *err)
{
	int fd = openat(o->dir_fd, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	for (unsigned n = 0; fd < 0 && n < TEMP_TRIES; n++) {
		char *name = temp_name(o, TEMP_TRIES + n);
		fd = openat(o->dir_fd, name, O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0600);
		if (fd >= 0)
			unlinkat(o->dir_fd, name, 0);
		free(name);
		if (fd < 0 && errno != EEXIST)
			break;
	}
	if (fd < 0)
		error_system(err, NULL, "cannot create a scratch file in the directory of %s", o->path);
	return fd;
}
