/* Starts the child processes, reads their messages, and ends them. */
#include "trace/isolation/decoder_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "base/sandbox.h"
#include "trace/isolation/ipc_receiver.h"
#include "trace/internal.h"

#define TICK_MS 20           /* timeout of poll() */
#define GRACE_MS 1000        /* time that a child has to exit after SIGTERM */
#define PIPE_SIZE (1 << 20)  /* bytes that a child can send before the parent reads them */

struct child {
	struct ipc_receiver receiver;
	const struct trace_reader *reader;
	pid_t pid;  /* 0: no child runs */
	int fd;
	bool is_stopping;
	int64_t last_message_ms;  /* time of the last message, or of the request to stop, ms */
	size_t retried_task;    /* index + 1 of the task that was restarted because a child died in it; 0: none */
};

static int64_t now_ms(void)
{
	return now_ns() / 1000000;
}

/* ---- one child */

static int start_child(struct child *c)
{
	struct decoder_job *t = c->receiver.job;
	const char *name = t->source->location[0]->path;
	int fd[2];
	if (sandbox_check_memory(name, &c->receiver.err))
		return -1;
	if (pipe2(fd, O_CLOEXEC))
		return error_system(&c->receiver.err, NULL, "%s: cannot create a pipe", name);
	fcntl(fd[1], F_SETPIPE_SZ, PIPE_SIZE);  /* failure is harmless: a smaller pipe is only slower */
	c->pid = fork();
	if (c->pid == 0) {
		close(fd[0]);
		sandbox_enter(&(struct sandbox){ .bytes = t->source->bytes, .network = c->reader->uses_network });
		decoder_child_run(t, c->receiver.next, fd[1]);
		_exit(0);
	}
	close(fd[1]);
	if (c->pid < 0) {
		close(fd[0]);
		c->pid = 0;
		return error_system(&c->receiver.err, NULL, "%s: cannot start a process", name);
	}
	c->fd = fd[0];
	ipc_receiver_next_child(&c->receiver);
	c->last_message_ms = now_ms();
	return 0;
}

static void kill_child(struct child *c)
{
	if (!c->pid)
		return;
	close(c->fd);
	kill(c->pid, SIGKILL);
	while (waitpid(c->pid, NULL, 0) < 0 && errno == EINTR)
		;
	c->pid = 0;
}

static void request_child_stop(struct child *c)
{
	if (!c->pid)
		return;
	kill(c->pid, SIGTERM);
	c->is_stopping = true;
	c->last_message_ms = now_ms();
}

/* Restarts the current task if its child died. Returns false if the task was restarted before or cannot be restarted.
 * Damaged input can kill a library, but so can a file that the system could not read: if a file is still unreadable,
 * *err of the receiver is set. */
static bool restart_after_system_error(struct child *c)
{
	struct ipc_receiver *e = &c->receiver;
	const struct source *s = e->job->source;
	if (e->has_ended || e->has_error || e->status || c->is_stopping || c->reader->endless ||
	    !s->location[0]->reader->describe)
		return false;
	const size_t task = e->next - e->has_begun;
	if (c->retried_task == task + 1)
		return false;
	c->retried_task = task + 1;
	for (size_t i = 0; i < s->locations && !e->status; i++)
		e->status = location_check_readable(s->location[i], &e->err);
	if (e->status)
		return false;
	ipc_receiver_discard_task(e);
	e->status = start_child(c);
	return !e->status;
}

/* Handles a child that finished, died or sent invalid messages. If tasks remain, starts another child that continues
 * after the task in which this one died. */
static void end_child(struct child *c, const char *reason, bool has_died)
{
	struct ipc_receiver *e = &c->receiver;
	struct source *s = e->job->source;
	kill_child(c);
	if (has_died && restart_after_system_error(c))
		return;
	if (e->has_error)
		e->status = e->next || !source_skip(s, &e->err) ? -1 : 0;
	else if (!e->status && !e->has_ended && !c->is_stopping && (!e->next || (!s->streams && !e->has_progress)))
		e->status = error_set(&e->err, STATUS_INPUT, s->reader->remedy, "%s: %s", s->location[0]->path, reason);
	else if (!e->status && !e->has_ended && e->has_begun)
		ipc_receiver_mark_damaged(e, reason);
	else if (!e->status && !e->has_ended)
		ipc_receiver_give_up(e, reason);
	s->user_stopped |= c->is_stopping && !s->truncation;
	ipc_receiver_finish_task(e);
	if (!e->status && !e->has_ended && !e->has_error && e->next < e->job->tasks)
		e->status = start_child(c);
}

static void read_child(struct child *c)
{
	struct ipc_receiver *e = &c->receiver;
	ssize_t n = read(c->fd, e->buf + e->used, IPC_BUFFER_SIZE - e->used);
	if (n < 0 && errno == EINTR)
		return;
	if (!c->is_stopping)
		c->last_message_ms = now_ms();
	if (n > 0) {
		e->used += (size_t)n;
		if (ipc_receiver_parse(e) && !e->has_error && !e->status)
			return;
	}
	end_child(c, c->is_stopping ? c->reader->silence_message : c->reader->crash_message, n <= 0);
}

/* ---- all children */

/* Waits for messages of the running children, at most TICK_MS, and handles them. */
static void poll_children(struct child *c, size_t n, struct pollfd *p)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (struct pollfd){ .fd = c[i].pid ? c[i].fd : -1, .events = POLLIN };
	if (poll(p, (nfds_t)n, TICK_MS) < 0)
		return;
	for (size_t i = 0; i < n; i++) {
		if (!c[i].pid)
			continue;
		if (p[i].revents)
			read_child(&c[i]);
		else if (now_ms() - c[i].last_message_ms > (c[i].is_stopping ? GRACE_MS : c[i].reader->silence_limit * 1000))
			end_child(&c[i], c[i].reader->silence_message, false);
	}
}

static void open_child(struct child *c, struct decoder_job *t, const struct decoder_run *run)
{
	*c = (struct child){ .reader = t->source->reader };
	ipc_receiver_open(&c->receiver, t, run);
	c->receiver.status = start_child(c);
}

/* Calls the tick function. The first request to stop ends the endless sources and keeps their data. Returns -1 if
 * loading was cancelled. */
static int call_tick(struct child *c, size_t n_open, const struct decoder_run *run, bool *is_stopping, struct error *err)
{
	if (!run->tick || !run->tick(run->arg))
		return 0;
	if (!c[0].reader->endless || *is_stopping)
		return error_set(err, STATUS_CANCELLED, NULL, "reading traces: interrupted");
	*is_stopping = true;
	for (size_t i = 0; i < n_open; i++)
		request_child_stop(&c[i]);
	return 0;
}

int decoder_jobs_run(struct decoder_job *const *job, size_t n, const struct decoder_run *run, struct error *err)
{
	struct child *c = mem_new(n + 1, sizeof *c);
	struct pollfd *p = mem_new(n + 1, sizeof *p);
	size_t n_open = 0, running = 0;
	bool is_stopping = false;
	int status = 0;
	while (!status && (n_open < n || running)) {
		for (; running < run->max_children && n_open < n; n_open++, running++)
			open_child(&c[n_open], job[n_open], run);
		poll_children(c, n_open, p);
		running = 0;
		for (size_t i = 0; i < n_open && !status; i++) {
			running += c[i].pid != 0;
			status = c[i].receiver.status;
			if (status && err)
				*err = c[i].receiver.err;
		}
		if (!status)
			status = call_tick(c, n_open, run, &is_stopping, err);
	}
	for (size_t i = 0; i < n_open; i++) {
		kill_child(&c[i]);
		ipc_receiver_release(&c[i].receiver);
	}
	free(c);
	free(p);
	return status;
}

void decoder_job_release(struct decoder_job *t)
{
	free(t->task);
	free(t->session);
}
