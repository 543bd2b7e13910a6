#include "cli/recording_list.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"
#include "cli/recording_lines.h"

#define ANSWER_MAX (4 << 20)  /* bytes of an answer that are read */

struct recording_list {
	struct recording_lines of;
	/* the recording that is being read: its line, -1: none; the child, the end of its pipe, and its answer so far */
	ptrdiff_t reading;
	pid_t child;
	int pipe;
	char *answer;
	size_t bytes, cap;
};

/* ---- reading */

static void exec_summary(const char *path, int output)
{
	const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (null >= 0 && dup2(null, STDIN_FILENO) >= 0 && dup2(output, STDOUT_FILENO) >= 0 && dup2(output, STDERR_FILENO) >= 0)
		execl("/proc/self/exe", "stealscope", "summary", path, "--format", "json", "--top", "1", (char *)NULL);
	_exit(STATUS_SYSTEM);
}

static void start_reading(struct recording_list *r, size_t i)
{
	int end[2];
	if (pipe2(end, O_CLOEXEC))
		return;
	fflush(NULL);
	r->child = fork();
	if (r->child == 0)
		exec_summary(r->of.line[i].recording->path, end[1]);
	close(end[1]);
	if (r->child < 0) {
		close(end[0]);
		return;
	}
	fcntl(end[0], F_SETFL, O_NONBLOCK);
	r->pipe = end[0];
	r->reading = (ptrdiff_t)i;
	r->bytes = 0;
}

/* Takes the answer of a child that ended. */
static void finish_reading(struct recording_list *r)
{
	int status = 0;
	while (waitpid(r->child, &status, 0) < 0 && errno == EINTR)
		continue;
	close(r->pipe);
	recording_lines_take(&r->of, (size_t)r->reading, r->answer);
	r->reading = -1;
}

/* Reads the bytes that are there. Returns true at the answer's end. */
static bool read_answer(struct recording_list *r)
{
	for (;;) {
		if (r->bytes + 4097 > r->cap)
			r->answer = mem_resize(r->answer, r->cap = 2 * r->cap + 8192, 1);
		const ssize_t n = read(r->pipe, r->answer + r->bytes, 4096);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0) {
			r->answer[r->bytes] = '\0';
			return n == 0 || errno != EAGAIN;
		}
		r->bytes = r->bytes + (size_t)n < ANSWER_MAX ? r->bytes + (size_t)n : r->bytes;
	}
}

/* Goes on with reading: the lines at `first` ... come first. Returns the pipe to wait for; -1: all is read. */
static int step(void *arg, const size_t *wanted, size_t n)
{
	struct recording_list *r = arg;
	if (r->reading >= 0 && read_answer(r))
		finish_reading(r);
	for (size_t k = 0; k < n && r->reading < 0; k++)
		if (!r->of.line[wanted[k]].shown.read)
			start_reading(r, wanted[k]);
	for (size_t i = 0; i < r->of.lines && r->reading < 0 && r->of.unread; i++)
		if (!r->of.line[i].shown.read)
			start_reading(r, i);
	return r->reading >= 0 ? r->pipe : -1;
}

/* ---- what keys do; the screen has left the terminal meanwhile */

static int run_program(char *const *argv, bool then_wait, struct error *err)
{
	int status = 0;
	const pid_t child = fork();
	if (child == 0) {
		sigset_t none;
		sigemptyset(&none);
		sigprocmask(SIG_SETMASK, &none, NULL);
		execv("/proc/self/exe", argv);
		_exit(STATUS_SYSTEM);
	}
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		continue;
	const bool failed = child < 0 || !WIFEXITED(status) || WEXITSTATUS(status);
	if (then_wait || failed) {
		char byte = ' ';
		fputs("\nEnter: back to the list ", stdout);
		fflush(stdout);
		while (byte != '\n' && byte != '\r' && read(STDIN_FILENO, &byte, 1) > 0)
			continue;
	}
	return failed ? error_set(err, STATUS_SYSTEM, NULL, "stealscope %s failed", argv[1]) : 0;
}

static int open_recording(void *arg, size_t i, struct error *err)
{
	const struct recording_list *r = arg;
	char *const argv[] = { "stealscope", "view", r->of.line[i].recording->path, NULL };
	return run_program(argv, false, err);
}

static int compare_recordings(void *arg, size_t i, size_t k, struct error *err)
{
	const struct recording_list *r = arg;
	char *const argv[] = { "stealscope", "diff", r->of.line[i].recording->path, r->of.line[k].recording->path, NULL };
	return run_program(argv, true, err);
}

static int write_ticket(void *arg, size_t i, char *message, size_t size, struct error *err)
{
	const struct recording_list *r = arg;
	const char *name = strrchr(r->of.line[i].recording->path, '/') + 1;
	char *file = mem_printf("%s.html", name);
	char *const argv[] = { "stealscope", "ticket", r->of.line[i].recording->path, "-o", file, NULL };
	const int rc = run_program(argv, false, err);
	text_escape(message, size, file);
	free(file);
	return rc;
}

/* Reads what is unread, then prints the lines. */
static int print_lines(struct recording_list *r, struct error *err)
{
	for (int fd; (fd = step(r, NULL, 0)) >= 0;)
		poll(&(struct pollfd){ fd, POLLIN, 0 }, 1, -1);
	recording_lines_print(&r->of, stdout);
	return fflush(stdout) ? error_system(err, NULL, "cannot write to standard output") : 0;
}

int recording_list_run(const char *dir, const struct recordings *found, const struct ui_options *options,
                       struct error *err)
{
	struct recording_list r = { .reading = -1 };
	recording_lines_begin(&r.of, dir, found);
	const struct ui_recordings list = { &r, dir, r.of.row, r.of.lines, step, open_recording, compare_recordings,
		write_ticket };
	const int rc = isatty(STDOUT_FILENO) && !options->script ? ui_recordings(&list, options, err) : print_lines(&r, err);
	if (r.reading >= 0) {
		kill(r.child, SIGTERM);
		close(r.pipe);
	}
	recording_lines_end(&r.of);
	free(r.answer);
	return rc;
}
