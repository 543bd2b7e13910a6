#include "base/file_open.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

FILE *file_open(const char *path)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);  /* O_NONBLOCK: opening a pipe or terminal does not wait */
	if (fd < 0)
		return NULL;
	int failed = fstat(fd, &st);
	FILE *f = failed == 0 && S_ISREG(st.st_mode) ? fdopen(fd, "rb") : NULL;
	if (!f) {
		int why = failed != 0 || S_ISREG(st.st_mode) ? errno : S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
		close(fd);
		errno = why;
	}
	return f;
}
