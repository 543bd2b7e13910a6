#include "base/file_open.h"

#include <fcntl.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

static bool is_null_device(const struct stat *st)
{
	return S_ISCHR(st->st_mode) && st->st_rdev == makedev(1, 3);
}

FILE *file_open(const char *path)
{
	struct stat st;
	FILE *f = NULL;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);  /* O_NONBLOCK: opening a pipe does not wait */
	if (fd < 0)
		return NULL;
	const bool failed = fstat(fd, &st) != 0, accepted = !failed && (S_ISREG(st.st_mode) || is_null_device(&st));
	if (accepted)
		f = fdopen(fd, "rb");
	if (!f) {
		const int why = failed || accepted ? errno : S_ISDIR(st.st_mode) ? EISDIR : FILE_NOT_REGULAR;
		close(fd);
		errno = why;
	}
	return f;
}
