/* srbn_read_history(): queries one request of a history through the stealscope program.
 *
 * A separate process, so that the marking library needs only libc. No shell: the arguments are passed unchanged. */
#include "beacon/stealscope-mark.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/csv.h"

extern char **environ;

#define COLUMNS 11  /* csv columns of `latency requests` */

/* request,machine,start,end,latency_ns,provider_low_ns,provider_high_ns,predicted_ns,ci_low_ns,ci_high_ns,culprit */
static bool parse_row(char *line, srbn_t request, struct srbn_history_data *data)
{
	char *field[COLUMNS], wanted[24];
	for (int i = 0; i < COLUMNS; i++)
		if (!(field[i] = csv_field(&line)))
			return false;
	snprintf(wanted, sizeof wanted, "%" PRIu64, request);
	if (strcmp(field[0], wanted))
		return false;
	data->latency_ns = strtoll(field[4], NULL, 10);
	data->cloud_latency_low_ns = strtoll(field[5], NULL, 10);
	data->cloud_latency_high_ns = strtoll(field[6], NULL, 10);
	data->cloud_latency_ns = *field[7] ? strtoll(field[7], NULL, 10) : -1;
	snprintf(data->culprit, sizeof data->culprit, "%s", field[10]);
	return true;
}

/* Starts the program with its stdout in a pipe. Returns the read end, or -1 with errno. */
static int start_program(const char *history, const char *model, srbn_t request, pid_t *pid)
{
	char id[24];
	const char *program = secure_getenv("STEALSCOPE");
	snprintf(id, sizeof id, "%" PRIu64, request);
	if (!program || !*program)
		program = "stealscope";
	const char *argv[] = { program, "latency", "requests", "--format", "csv", "--request", id,
	                       model ? "--model" : "--", model ? model : history, model ? "--" : NULL, history, NULL };
	int ends[2];
	if (pipe2(ends, O_CLOEXEC))
		return -1;
	posix_spawn_file_actions_t actions;
	int failed = posix_spawn_file_actions_init(&actions);
	if (!failed) {
		failed = posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
		if (!failed)
			failed = posix_spawnp(pid, program, &actions, NULL, (char *const *)(uintptr_t)argv, environ);
		posix_spawn_file_actions_destroy(&actions);
	}
	close(ends[1]);
	if (failed) {
		close(ends[0]);
		errno = failed;
		return -1;
	}
	return ends[0];
}

static int wait_for_program(pid_t pid)
{
	int status = 0;
	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return -1;
	}
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	errno = ECHILD;
	return -1;
}

int srbn_read_history(const char *history, const char *model, srbn_t request, struct srbn_history_data *data)
{
	int saved = errno;
	pid_t pid;
	memset(data, 0, sizeof *data);
	int fd = start_program(history, model, request, &pid);
	if (fd < 0)
		return -1;
	FILE *f = fdopen(fd, "r");
	bool found = false;
	char *line = NULL;
	size_t size = 0;
	while (f && getline(&line, &size, f) >= 0)
		found = parse_row(line, request, data) || found;
	free(line);
	if (f)
		fclose(f);
	else
		close(fd);
	if (wait_for_program(pid))
		return -1;
	errno = found ? saved : ENOENT;
	return found ? 0 : -1;
}
