/* Recordings that `stealscope top` starts. See top_recorder.h. */
#include "cli/top_recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MESSAGE_NS (3 * NS_PER_S)  /* time for which a message of a failed child stays readable */

/* Starts this program. output -1: on the terminal; otherwise a process group of its own, which ends with this process. */
static pid_t start_program(const char *const *argv, int output)
{
	const pid_t parent = getpid(), child = fork();
	if (child)
		return child;
	sigset_t none;
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (output >= 0) {
		const int null = open("/dev/null", O_RDONLY | O_CLOEXEC);
		setpgid(0, 0);
		prctl(PR_SET_PDEATHSIG, SIGINT);
		if (null < 0 || getppid() != parent || dup2(null, STDIN_FILENO) < 0 || dup2(output, STDOUT_FILENO) < 0 ||
		    dup2(output, STDERR_FILENO) < 0)
			_exit(STATUS_SYSTEM);
	}
	execv("/proc/self/exe", (char **)(uintptr_t)argv);
	_exit(STATUS_SYSTEM);
}

/* Runs this program on the terminal and waits. If it fails, its message stays readable for a while. */
static int run_program(const char *const *argv, struct error *err)
{
	int status = 0;
	const pid_t child = start_program(argv, -1);
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		continue;
	if (child < 0)
		return error_system(err, NULL, "stealscope %s", argv[1]);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	const struct timespec pause = timespec_of(MESSAGE_NS);
	nanosleep(&pause, NULL);
	return error_set(err, STATUS_SYSTEM, NULL, "stealscope %s failed with status %d", argv[1],
	                 WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

int top_recorder_record(void *arg, int32_t tid, struct error *err)
{
	char view[64] = "view --fresh";
	(void)arg;
	if (tid >= 0)
		snprintf(view, sizeof view, "view --fresh --longest %d", tid);
	const char *const argv[] = { "stealscope", "record", "-t", "10s", "--then", view, NULL };
	return run_program(argv, err);
}

int top_recorder_open(void *arg, size_t i, int32_t tid, struct error *err)
{
	const struct top_recorder *r = arg;
	char number[16];
	snprintf(number, sizeof number, "%d", tid);
	const char *const longest[] = { "stealscope", "view", "--longest", number, r->snapshot[i], NULL };
	const char *const plain[] = { "stealscope", "view", r->snapshot[i], NULL };
	return run_program(tid >= 0 ? longest : plain, err);
}

/* ---- flight recording */

static void end_flight(struct top_recorder *r)
{
	if (r->flight) {
		kill(r->flight, SIGINT);
		while (waitpid(r->flight, NULL, 0) < 0 && errno == EINTR)
			continue;
		r->flight = 0;
	}
	if (r->output >= 0)
		close(r->output);
	r->output = -1;
}

int top_recorder_arm(void *arg, const char *trigger, struct error *err)
{
	struct top_recorder *r = arg;
	int end[2];
	if (r->flight)
		end_flight(r);
	if (pipe2(end, O_CLOEXEC))
		return error_system(err, NULL, "pipe");
	const time_t now = time(NULL);
	struct tm tm;
	localtime_r(&now, &tm);
	strftime(r->dir, sizeof r->dir, "stealscope-flight-%Y%m%d-%H%M%S", &tm);
	snprintf(r->trigger, sizeof r->trigger, "%s", trigger);
	const char *const argv[] = { "stealscope", "record", "--flight", "-t", "10s", "--no-index", "--trigger", r->trigger,
		"-o", r->dir, NULL };
	r->flight = start_program(argv, end[1]);
	close(end[1]);
	if (r->flight < 0) {
		r->flight = 0;
		close(end[0]);
		return error_system(err, NULL, "stealscope record");
	}
	fcntl(end[0], F_SETFL, O_NONBLOCK);
	r->output = end[0];
	r->line_len = 0;
	snprintf(r->state, sizeof r->state, "armed: stealscope record --flight -t 10s --trigger '%.150s'", r->trigger);
	return 0;
}

/* A line with a saved recording's directory, or a message. */
static void read_line(struct top_recorder *r, const char *line)
{
	const size_t n = strlen(r->dir);
	if (strncmp(line, r->dir, n) == 0 && line[n] == '/')
		*ARRAY_PUSH(r->snapshot, r->snapshots, r->cap) = mem_dup(line);
	else if (strncmp(line, "stealscope: ", 12) == 0 && strncmp(line, "stealscope: note", 16) != 0)
		text_escape(r->state, sizeof r->state, line + 12);
}

static void flight_ended(struct top_recorder *r)
{
	char reason[sizeof r->state];
	int status = 0;
	close(r->output);
	r->output = -1;
	while (waitpid(r->flight, &status, 0) < 0 && errno == EINTR)
		continue;
	r->flight = 0;
	snprintf(reason, sizeof reason, "%s", r->state);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		snprintf(r->state, sizeof r->state, "the flight recording has ended: %.150s", r->trigger);
	else
		snprintf(r->state, sizeof r->state, "not armed: %.700s", reason);
}

size_t top_recorder_flight(void *arg, const char **state)
{
	struct top_recorder *r = arg;
	char buf[4096];
	ssize_t n = -1;
	while (r->output >= 0 && (n = read(r->output, buf, sizeof buf)) > 0) {
		for (ssize_t i = 0; i < n; i++) {
			if (buf[i] == '\n') {
				r->line[r->line_len] = '\0';
				read_line(r, r->line);
				r->line_len = 0;
			} else if (r->line_len + 1 < sizeof r->line) {
				r->line[r->line_len++] = buf[i];
			}
		}
	}
	if (r->output >= 0 && n == 0)
		flight_ended(r);
	*state = r->state;
	return r->snapshots;
}

const char *top_recorder_snapshot(void *arg, size_t i)
{
	return ((const struct top_recorder *)arg)->snapshot[i];
}

void top_recorder_close(struct top_recorder *r)
{
	end_flight(r);
	for (size_t i = 0; i < r->snapshots; i++)
		free(r->snapshot[i]);
	free(r->snapshot);
}
