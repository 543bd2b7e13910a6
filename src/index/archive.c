#include "index/archive.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef HAVE_ARCHIVE
#include <archive.h>
#include <archive_entry.h>
#endif

#include "base/clock.h"
#include "base/dlopen_library.h"
#include "base/mem.h"
#include "base/number.h"
#include "base/sandbox.h"

#define TAR_MAGIC_AT 257

const char *archive_kind(const unsigned char *head, size_t len)
{
	static const struct { const char *name; size_t at; const char *magic; size_t len; } kinds[] = {
		{ "gzip", 0, "\x1f\x8b", 2 }, { "zstd", 0, "\x28\xb5\x2f\xfd", 4 }, { "xz", 0, "\xfd" "7zXZ", 5 },
		{ "bzip2", 0, "BZh", 3 }, { "lz4", 0, "\x04\x22\x4d\x18", 4 }, { "zip", 0, "PK\x03\x04", 4 },
		{ "zip", 0, "PK\x05\x06", 4 }, { "7-Zip", 0, "7z\xbc\xaf\x27\x1c", 6 }, { "tar", TAR_MAGIC_AT, "ustar", 5 },
	};
	for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
		if (len >= kinds[i].at + kinds[i].len && memcmp(head + kinds[i].at, kinds[i].magic, kinds[i].len) == 0)
			return kinds[i].name;
	return NULL;
}

bool archive_clean_name(const char *name, char clean[ARCHIVE_NAME_MAX])
{
	size_t used = 0;
	while (*name) {
		const size_t len = strcspn(name, "/");
		const bool is_dot = len == 1 && name[0] == '.', is_up = len == 2 && name[0] == '.' && name[1] == '.';
		if (is_up || len > NAME_MAX || used + len + 2 > ARCHIVE_NAME_MAX)
			return false;
		if (len && !is_dot) {
			if (used)
				clean[used++] = '/';
			memcpy(clean + used, name, len);
			used += len;
		}
		name += len;
		name += *name == '/';
	}
	clean[used] = '\0';
	return used > 0;
}

#ifdef HAVE_ARCHIVE
#define SILENCE_NS (60 * NS_PER_S)     /* time without progress after which the child is killed */
#define BLOCK 65536                    /* bytes that libarchive reads at once */

#define ARCHIVE_CALLS(CALL) CALL(archive_, read_new) CALL(archive_, read_free) \
	CALL(archive_, read_support_filter_gzip) CALL(archive_, read_support_filter_zstd) \
	CALL(archive_, read_support_filter_xz) CALL(archive_, read_support_filter_bzip2) \
	CALL(archive_, read_support_filter_lz4) CALL(archive_, read_support_format_tar) \
	CALL(archive_, read_support_format_zip) CALL(archive_, read_support_format_7zip) \
	CALL(archive_, read_support_format_raw) CALL(archive_, read_support_format_empty) CALL(archive_, read_open_fd) \
	CALL(archive_, read_next_header) CALL(archive_, read_data_block) CALL(archive_, error_string) \
	CALL(archive_, format) CALL(archive_, entry_pathname) CALL(archive_, entry_filetype) CALL(archive_, entry_hardlink) \
	CALL(archive_, entry_mtime)
static struct { ARCHIVE_CALLS(LIBRARY_POINTER) } lib;  /* after library_load() succeeded */

/* Report of the child: a zero byte for each block written, then this struct. */
struct unpack_report {
	bool is_complete;
	uint64_t files, left_out;
	char why[200];
};

struct unpacker {
	struct archive *archive;
	const char *dir, *single;
	uint64_t left;           /* bytes that may still be written */
	int to;                  /* pipe to the parent */
	struct unpack_report report;
};

static bool fail(struct unpacker *u, const char *why)
{
	strncpy(u->report.why, why ? why : "damaged", sizeof u->report.why - 1);
	return false;
}

/* ---- the child */

static void make_parents(char *path, size_t from)
{
	for (char *slash = path + from; (slash = strchr(slash, '/')); slash++) {
		*slash = '\0';
		mkdir(path, 0700);  /* an error shows when the file is created */
		*slash = '/';
	}
}

static bool write_block(struct unpacker *u, int fd, const void *data, size_t size, int64_t at)
{
	if (size > u->left)
		return fail(u, "unpacked it is larger than the limit of its size, or than the free disk space");
	u->left -= size;
	for (size_t done = 0; done < size;) {
		const ssize_t n = pwrite(fd, (const char *)data + done, size - done, at + (int64_t)done);
		if (n <= 0)
			return fail(u, strerror(n ? errno : ENOSPC));
		done += (size_t)n;
	}
	return write(u->to, "", 1) == 1;
}

static bool write_file(struct unpacker *u, int fd)
{
	for (;;) {
		const void *data;
		size_t size;
		la_int64_t at;
		const int status = lib.read_data_block(u->archive, &data, &size, &at);
		if (status == ARCHIVE_EOF)
			return true;
		if (status != ARCHIVE_OK)
			return fail(u, lib.error_string(u->archive));
		if (at < 0 || !write_block(u, fd, data, size, at))
			return u->report.why[0] ? false : fail(u, NULL);
	}
}

static bool unpack_entry(struct unpacker *u, struct archive_entry *e)
{
	char clean[ARCHIVE_NAME_MAX];
	const bool is_single = (lib.format(u->archive) & ARCHIVE_FORMAT_BASE_MASK) == ARCHIVE_FORMAT_RAW;
	const char *name = is_single ? u->single : lib.entry_pathname(e);
	const unsigned type = lib.entry_filetype(e);
	if (!name || !archive_clean_name(name, clean) || (type != AE_IFREG && type != AE_IFDIR) || lib.entry_hardlink(e)) {
		u->report.left_out++;
		return true;
	}
	if (++u->report.files > ARCHIVE_FILES_MAX)
		return fail(u, "it contains more than 100000 files");
	char *path = mem_printf("%s/%s", u->dir, clean);
	make_parents(path, strlen(u->dir) + 1);
	if (type == AE_IFDIR) {
		mkdir(path, 0700);
		free(path);
		return true;
	}
	const int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	const int why = errno;
	bool done = fd < 0 && why == EEXIST;  /* the first of several entries with this name counts */
	u->report.left_out += done;
	if (fd >= 0) {
		const struct timespec times[2] = { { 0, UTIME_NOW }, { lib.entry_mtime(e), 0 } };
		done = write_file(u, fd);
		if (!is_single)
			futimens(fd, times);
		close(fd);
	} else if (!done) {
		fail(u, strerror(why));
	}
	free(path);
	return done;
}

static struct archive *new_archive(void)
{
	struct archive *a = mem_checked(lib.read_new());
	lib.read_support_filter_gzip(a);
	lib.read_support_filter_zstd(a);
	lib.read_support_filter_xz(a);
	lib.read_support_filter_bzip2(a);
	lib.read_support_filter_lz4(a);
	lib.read_support_format_tar(a);
	lib.read_support_format_zip(a);
	lib.read_support_format_7zip(a);
	lib.read_support_format_raw(a);
	lib.read_support_format_empty(a);
	return a;
}

static void run_child(struct unpacker *u, int fd)
{
	struct archive_entry *e;
	u->archive = new_archive();
	int status = lib.read_open_fd(u->archive, fd, BLOCK);
	bool is_valid = status == ARCHIVE_OK;
	while (is_valid && ((status = lib.read_next_header(u->archive, &e)) == ARCHIVE_OK || status == ARCHIVE_WARN))
		is_valid = unpack_entry(u, e);
	u->report.is_complete = is_valid && status == ARCHIVE_EOF;
	if (!u->report.is_complete && !u->report.why[0])
		fail(u, lib.error_string(u->archive));
	if (write(u->to, &u->report, sizeof u->report) != sizeof u->report)
		_exit(1);
}

/* ---- the parent */

/* Receives the messages of the child until it ends. Returns false if it was killed: no progress, or cancelled. */
static bool receive(int from, int fd, uint64_t size, struct unpack_report *out, const struct progress *progress)
{
	char buf[BLOCK + sizeof *out];
	size_t used = 0;
	int64_t last = now_ns();
	off_t at = 0;
	for (;;) {
		struct pollfd p = { .fd = from, .events = POLLIN };
		const bool is_ready = poll(&p, 1, 50) > 0;
		const ssize_t n = is_ready ? read(from, buf + used, sizeof buf - used) : 0;
		const off_t now_at = lseek(fd, 0, SEEK_CUR);  /* the child shares the position */
		if (is_ready && n == 0)
			break;
		if (n > 0 || now_at != at)
			last = now_ns();
		at = now_at;
		used += n > 0 ? (size_t)n : 0;
		if (used > sizeof *out) {
			memmove(buf, buf + used - sizeof *out, sizeof *out);
			used = sizeof *out;
		}
		const bool is_cancelled = progress && progress->tick &&
			progress->tick(progress->arg, "unpacking", (uint64_t)at, size);
		if (is_cancelled || now_ns() - last > SILENCE_NS)
			return is_cancelled;
	}
	if (used == sizeof *out)
		memcpy(out, buf, sizeof *out);
	out->why[sizeof out->why - 1] = '\0';
	return false;
}

int archive_unpack(int fd, const char *path, const char *dir, const char *single, uint64_t max_bytes, uint64_t *left_out,
                   const struct progress *progress, struct error *err)
{
	static const char *const name[] = { ARCHIVE_CALLS(LIBRARY_NAME) NULL };
	struct stat st;
	int pipe_fd[2];
	if (library_load(LIBARCHIVE_FILE, "libarchive", name, &lib, err) || sandbox_check_memory(path, err))
		return -1;
	if (fstat(fd, &st) || pipe2(pipe_fd, O_CLOEXEC))
		return error_system(err, NULL, "%s", path);
	const pid_t child = fork();
	if (child == 0) {
		struct unpacker u = { .dir = dir, .single = single, .left = max_bytes, .to = pipe_fd[1] };
		close(pipe_fd[0]);
		sandbox_enter(&(struct sandbox){ .bytes = (uint64_t)st.st_size, .dir = dir });
		sandbox_limit_reads(&fd, 1);
		run_child(&u, fd);
		_exit(0);
	}
	close(pipe_fd[1]);
	struct unpack_report report = { .why = "damaged, or unpacking makes no progress" };
	const bool is_cancelled = child > 0 && receive(pipe_fd[0], fd, (uint64_t)st.st_size, &report, progress);
	close(pipe_fd[0]);
	if (child < 0)
		return error_system(err, NULL, "%s: cannot start a process", path);
	kill(child, SIGKILL);
	while (waitpid(child, NULL, 0) < 0 && errno == EINTR)
		;
	*left_out = report.left_out;
	if (is_cancelled)
		return error_set(err, STATUS_CANCELLED, NULL, "unpacking %s: interrupted", path);
	return report.is_complete ? 0 : error_set(err, STATUS_INPUT, "copy it again, or unpack it yourself",
	                                          "%s: cannot be unpacked: %s", path, report.why);
}
#else
int archive_unpack(int fd, const char *path, const char *dir, const char *single, uint64_t max_bytes, uint64_t *left_out,
                   const struct progress *progress, struct error *err)
{
	unsigned char head[ARCHIVE_HEAD];
	const ssize_t n = pread(fd, head, sizeof head, 0);
	(void)dir, (void)single, (void)max_bytes, (void)left_out, (void)progress;
	return error_set(err, STATUS_INPUT, "unpack it, or install libarchive-dev and rebuild",
	                 "%s: packed with %s, but this stealscope was built without libarchive", path,
	                 archive_kind(head, n < 0 ? 0 : (size_t)n));
}
#endif
