/* Client of mark_server: sends COUNT requests, AT_ONCE at a time, each of SLICES slices; prints latencies in us.
 *
 * usage: mark_client SOCKET COUNT AT_ONCE SLICES */
#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#define MAX_PARALLEL 64

static int64_t now_us(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000LL + t.tv_nsec / 1000;
}

static int connect_to(const char *path)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	if (strlen(path) >= sizeof at.sun_path)
		return -1;
	memcpy(at.sun_path, path, strlen(path) + 1);
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0 && connect(fd, (struct sockaddr *)&at, sizeof at)) {
		const int saved_errno = errno;
		close(fd);
		errno = saved_errno;
		return -1;
	}
	return fd;
}

/* Sends one request. A server that has just started may not listen yet: retries for up to a minute. */
static int send_request(const char *path, const char *slices)
{
	int fd;
	for (int tries = 0; (fd = connect_to(path)) < 0 && (errno == ENOENT || errno == ECONNREFUSED) && tries < 600; tries++)
		nanosleep(&(struct timespec){ 0, 100000000 }, NULL);
	if (fd >= 0 && write(fd, slices, strlen(slices)) < 0) {
		close(fd);
		return -1;
	}
	return fd;
}

int main(int argc, char **argv)
{
	if (argc != 5) {
		fputs("usage: mark_client SOCKET COUNT AT_ONCE SLICES\n", stderr);
		return 1;
	}
	long count = strtol(argv[2], NULL, 10), once = strtol(argv[3], NULL, 10);
	if (once < 1 || once > MAX_PARALLEL)
		once = 1;
	for (long done = 0; done < count;) {
		int fd[MAX_PARALLEL];
		int64_t begun[MAX_PARALLEL];
		long n = 0;
		for (; n < once && done + n < count; n++) {
			begun[n] = now_us();
			fd[n] = send_request(argv[1], argv[4]);
			if (fd[n] < 0) {
				fprintf(stderr, "mark_client: %s: %s\n", argv[1], strerror(errno));
				return 1;
			}
		}
		for (long i = 0; i < n; i++) {
			char answer[8];
			if (read(fd[i], answer, sizeof answer) <= 0)
				return 1;
			printf("%lld\n", (long long)(now_us() - begun[i]));
			close(fd[i]);
		}
		done += n;
	}
	return 0;
}
