/* Tests the restrictions of a sandboxed child. Without landlock or seccomp in the kernel or the build, there are fewer. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sandbox.h"
#include "slice.h"

#define DIR "confine.tmp"
#define OUTSIDE "confine.outside"

static bool can_write(const char *path)
{
	const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	if (fd < 0)
		return false;
	close(fd);
	return unlink(path) == 0;
}

static bool can_read(const char *path)
{
	char byte;
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	const bool read_it = fd >= 0 && read(fd, &byte, 1) == 1;
	if (fd >= 0)
		close(fd);
	return read_it;
}

static bool can_connect_socket(void)
{
	const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd >= 0)
		close(fd);
	return fd >= 0 || errno != EPERM;
}

static bool can_execute_program(void)
{
	char *const argv[] = { NULL };
	execve("/nonexistent", argv, argv);  /* seccomp rejects the call before the kernel searches the file */
	return errno != EPERM;
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

static void ignore(int signal)
{
	(void)signal;
}

/* Returns true if a limit is missing, or can be raised again. */
static bool can_exceed(__rlimit_resource_t resource)
{
	struct rlimit r, more = { RLIM_INFINITY, RLIM_INFINITY };
	return getrlimit(resource, &r) || r.rlim_cur == RLIM_INFINITY || r.rlim_max > r.rlim_cur ||
	       (has_seccomp() && setrlimit(resource, &more) == 0);
}

/* Returns true if the child outlives its parent, or runs a signal handler of the parent. */
static bool can_depend_on_parent(void)
{
	int at_end = 0;
	struct sigaction sa;
	return prctl(PR_GET_PDEATHSIG, &at_end) || at_end != SIGKILL || sigaction(SIGTERM, NULL, &sa) || sa.sa_handler != SIG_DFL;
}

enum ability { CAN_READ = 1, CAN_WRITE = 2, CAN_WRITE_OUTSIDE = 4, CAN_CONNECT = 8, CAN_EXECUTE = 16, CAN_DUMP = 32,
               CAN_SIGNAL = 64, CAN_CHANGE_MODE = 128, CAN_EXCEED = 256, CAN_OUTLIVE = 512 };

/* Returns what a child in this sandbox can do, as a bit set. */
static int abilities_in(const struct sandbox *c)
{
	int pipe_fd[2];
	assert_int_equal(pipe(pipe_fd), 0);
	signal(SIGTERM, ignore);
	const pid_t pid = fork();
	if (pid == 0) {
		struct rlimit core;
		int can = 0;
		sandbox_enter(c);
		can = (can_read("/proc/self/stat") ? CAN_READ : 0) | (can_write(DIR "/x") ? CAN_WRITE : 0) |
			(can_write(OUTSIDE) ? CAN_WRITE_OUTSIDE : 0) | (can_connect_socket() ? CAN_CONNECT : 0) |
			(can_execute_program() ? CAN_EXECUTE : 0) | (getrlimit(RLIMIT_CORE, &core) || core.rlim_cur ? CAN_DUMP : 0) |
			(kill(getppid(), 0) == 0 ? CAN_SIGNAL : 0) | (fchmod(pipe_fd[1], 0600) == 0 ? CAN_CHANGE_MODE : 0) |
			(can_exceed(RLIMIT_FSIZE) || (!SANITIZED && can_exceed(RLIMIT_AS)) ? CAN_EXCEED : 0) |
			(can_depend_on_parent() ? CAN_OUTLIVE : 0);
		_exit(write(pipe_fd[1], &can, sizeof can) != sizeof can);
	}
	int status, can = 0;
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(read(pipe_fd[0], &can, sizeof can), sizeof can);
	close(pipe_fd[0]);
	close(pipe_fd[1]);
	return can;
}

static void test_confined(void **state)
{
	(void)state;
	assert_true(mkdir(DIR, 0700) == 0 || errno == EEXIST);
	const int can_write_outside = has_landlock() ? 0 : CAN_WRITE_OUTSIDE;
	const int can_execute = has_seccomp() ? 0 : CAN_EXECUTE;
	const int can_connect = has_seccomp() ? 0 : CAN_CONNECT;
	const int always = CAN_READ | can_write_outside | can_execute | can_connect | (has_seccomp() ? 0 : CAN_SIGNAL | CAN_CHANGE_MODE);
	assert_int_equal(abilities_in(&(struct sandbox){ 0 }), always | (can_write_outside ? CAN_WRITE : 0));
	assert_int_equal(abilities_in(&(struct sandbox){ .dir = DIR }), always | CAN_WRITE);
	assert_int_equal(abilities_in(&(struct sandbox){ .network = true }) & CAN_CONNECT, CAN_CONNECT);
	assert_int_equal(rmdir(DIR), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_confined) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
