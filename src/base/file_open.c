#include "base/file_open.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

FILE *file_open(const char *path)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);  /* no file waits; pipes and terminals might */
	if (fd < 0)
		return NULL;
	int known = fstat(fd, &st);
	FILE *f = known == 0 && S_ISREG(st.st_mode) ? fdopen(fd, "rb") : NULL;
	if (!f) {
		int why = known != 0 || S_ISREG(st.st_mode) ? errno : S_ISDIR(st.st_mode) ? EISDIR : EINVAL;
		close(fd);
		errno = why;
	}
	return f;
}
