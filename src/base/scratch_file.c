#include "base/scratch_file.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/base.h"

static const char *const remedy = "set TMPDIR to a directory with free space";

int scratch_open(const char *dir, struct error *err)
{
	const char *const env = getenv("TMPDIR");
	if (!dir)
		dir = env && *env ? env : "/tmp";
	int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
	if (fd >= 0)
		return fd;
	char *path = mem_printf("%s/stealscope-XXXXXX", dir);
	fd = mkostemp(path, O_CLOEXEC);
	if (fd >= 0)
		unlink(path);
	else
		error_system(err, remedy, "cannot make a temporary file in %s", dir);
	free(path);
	return fd;
}

int scratch_write(int fd, const void *data, size_t len, int64_t at, struct error *err)
{
	for (const char *p = data; len;) {
		ssize_t n = pwrite(fd, p, len, at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			return error_system(err, remedy, "cannot write the temporary file");
		p += n;
		at += n;
		len -= (size_t)n;
	}
	return 0;
}

int scratch_read(int fd, void *data, size_t len, int64_t at, struct error *err)
{
	for (char *p = data; len;) {
		ssize_t n = pread(fd, p, len, at);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return error_system(err, NULL, "cannot read the temporary file");
		if (n == 0)
			return error_set(err, STATUS_SYSTEM, NULL, "the temporary file has become shorter");
		p += n;
		at += n;
		len -= (size_t)n;
	}
	return 0;
}
