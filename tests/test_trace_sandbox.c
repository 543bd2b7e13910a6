/* What a confined child can do, and what not; without landlock or seccomp, in the kernel or the build, it can do more. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "trace/isolation/sandbox.h"

#define FOLDER "confine.tmp"
#define OUTSIDE "confine.outside"

static bool may_write(const char *path)
{
	const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		return false;
	close(fd);
	return unlink(path) == 0;
}

static bool may_read(const char *path)
{
	char byte;
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	const bool read_it = fd >= 0 && read(fd, &byte, 1) == 1;
	if (fd >= 0)
		close(fd);
	return read_it;
}

static bool may_connect(void)
{
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0)
		close(fd);
	return fd >= 0 || errno != EPERM;
}

static bool may_execute(void)
{
	char *const argv[] = { NULL };
	execve("/nonexistent", argv, argv);  /* the rules come before the look for it */
	return errno != EPERM;
}

enum able { CAN_READ = 1, CAN_WRITE = 2, CAN_WRITE_OUTSIDE = 4, CAN_CONNECT = 8, CAN_EXECUTE = 16, CAN_DUMP = 32 };

/* What a child that is so confined is able to. */
static int able(const struct confinement *c)
{
	const pid_t pid = fork();
	if (pid == 0) {
		struct rlimit core;
		confine(c);
		const int can = (may_read("/proc/self/stat") ? CAN_READ : 0) | (may_write(FOLDER "/x") ? CAN_WRITE : 0) |
			(may_write(OUTSIDE) ? CAN_WRITE_OUTSIDE : 0) | (may_connect() ? CAN_CONNECT : 0) |
			(may_execute() ? CAN_EXECUTE : 0) | (getrlimit(RLIMIT_CORE, &core) || core.rlim_cur ? CAN_DUMP : 0);
		_exit(can);
	}
	int status;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static bool has_landlock(void)
{
#if defined HAVE_LANDLOCK
	return syscall(SYS_landlock_create_ruleset, NULL, 0, 1U) > 0;
#else
	return false;
#endif
}

static bool has_seccomp(void)
{
#ifdef HAVE_SECCOMP
	return prctl(PR_GET_SECCOMP) == 0;
#else
	return false;
#endif
}

static void test_confined(void **state)
{
	(void)state;
	assert_true(mkdir(FOLDER, 0700) == 0 || errno == EEXIST);
	const int written = has_landlock() ? 0 : CAN_WRITE_OUTSIDE;
	const int called = has_seccomp() ? 0 : CAN_EXECUTE;
	const int connected = has_seccomp() ? 0 : CAN_CONNECT;
	assert_int_equal(able(&(struct confinement){ 0 }), CAN_READ | (written ? CAN_WRITE : 0) | written | called | connected);
	assert_int_equal(able(&(struct confinement){ .folder = FOLDER }), CAN_READ | CAN_WRITE | written | called | connected);
	assert_int_equal(able(&(struct confinement){ .network = true }) & CAN_CONNECT, CAN_CONNECT);
	assert_int_equal(rmdir(FOLDER), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_confined) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
