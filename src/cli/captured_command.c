#include "cli/captured_command.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/sandbox.h"

char *captured_file(int fd, size_t *length)
{
	struct stat st;
	if (fstat(fd, &st) || st.st_size < 0 || st.st_size > INT_MAX)
		return NULL;
	char *text = mem_new((size_t)st.st_size + 1, 1);
	size_t n = 0;
	while (n < (size_t)st.st_size) {
		ssize_t got = pread(fd, text + n, (size_t)st.st_size - n, (off_t)n);
		if (got <= 0)
			break;
		n += (size_t)got;
	}
	*length = n;
	return text;
}

/* The child: runs the command with its output in `out` and ends with the exit status. */
static void run_child(int (*run)(int, char **, struct error *), int argc, char **argv, const struct captured_limits *limits,
                      int out, int messages)
{
	int null = open("/dev/null", O_RDONLY);
	if (null < 0 || dup2(null, 0) < 0 || dup2(out, 1) < 0 || dup2(messages, 2) < 0)
		_exit(STATUS_SYSTEM);
	signal(SIGTERM, SIG_DFL);
	signal(SIGINT, SIG_DFL);
	setenv("NO_COLOR", "1", 1);
	if (limits && limits->tmp)
		setenv("TMPDIR", limits->tmp, 1);
	if (limits)
		sandbox_limit_reads(limits->fd, limits->n);
	struct error err = ERROR_INIT;
	int status = STATUS_OK;
	if (run(argc, argv, &err)) {
		fprintf(stderr, "%s%s%s%s\n", err.text, err.remedy[0] ? " (" : "", err.remedy, err.remedy[0] ? ")" : "");
		status = (int)err.status;
	}
	if (fflush(stdout))
		status = STATUS_SYSTEM;
	fflush(stderr);
	_exit(status);
}

int captured_command(int (*run)(int, char **, struct error *), int argc, char **argv, unsigned seconds,
                     const struct captured_limits *limits, char **text, char **notes, struct error *err)
{
	*text = *notes = NULL;
	int out = memfd_create("answer", MFD_CLOEXEC), messages = memfd_create("messages", MFD_CLOEXEC);
	int status = 0, rc = -1;
	size_t length;
	fflush(NULL);
	pid_t child = out < 0 || messages < 0 ? -1 : fork();
	if (child == 0) {
		alarm(seconds);
		run_child(run, argc, argv, limits, out, messages);
	}
	if (child < 0) {
		error_system(err, NULL, "cannot run %s", argv[0]);
		goto close_files;
	}
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFSIGNALED(status)) {
		if (WTERMSIG(status) == SIGALRM)
			error_set(err, STATUS_SYSTEM, "ask for a shorter window", "%s took more than %d s", argv[0], (int)seconds);
		else
			error_set(err, STATUS_SYSTEM, NULL, "%s ended by signal %d", argv[0], WTERMSIG(status));
		goto close_files;
	}
	*text = captured_file(out, &length);
	*notes = captured_file(messages, &length);
	if (*text && *notes)
		rc = WEXITSTATUS(status);
	else
		error_system(err, NULL, "cannot read the answer of %s", argv[0]);
close_files:
	if (out >= 0)
		close(out);
	if (messages >= 0)
		close(messages);
	return rc;
}
