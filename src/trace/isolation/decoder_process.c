/* Child processes: they are started, confined, waited for, and end. */
#include "trace/isolation/decoder_process.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/clock.h"
#include "trace/isolation/sandbox.h"
#include "trace/isolation/ipc_receiver.h"
#include "trace/internal.h"

#define TICK 20               /* ms */
#define GRACE 1000            /* ms that a child may take to stop */
#define PIPE (1 << 20)        /* bytes that a child may be ahead */

struct child {
	struct ear ear;
	const struct trace_reader *reader;
	pid_t pid;                /* 0: none runs */
	int fd;
	bool stopping;
	int64_t heard;            /* or since when it is stopping, ms */
	size_t again;             /* the task at which a child died that was begun anew, + 1 */
};

static int64_t now_ms(void)
{
	return now_ns() / 1000000;
}

/* ---- one child */

static int start(struct child *c)
{
	struct told *t = c->ear.told;
	const char *name = t->source->place[0]->path;
	int fd[2];
	if (pipe2(fd, O_CLOEXEC))
		return error_system(&c->ear.err, NULL, "%s: cannot make a pipe", name);
	fcntl(fd[1], F_SETPIPE_SZ, PIPE);  /* where it may not be as long, it is as good but slower */
	c->pid = fork();
	if (c->pid == 0) {
		close(fd[0]);
		confine(&(struct confinement){ t->source->bytes, t->source->folder, c->reader->online });
		tell_all(t, c->ear.next, fd[1]);
		_exit(0);
	}
	close(fd[1]);
	if (c->pid < 0) {
		close(fd[0]);
		c->pid = 0;
		return error_system(&c->ear.err, NULL, "%s: cannot start a process", name);
	}
	c->fd = fd[0];
	ear_next_child(&c->ear);
	c->heard = now_ms();
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

static void ask_to_stop(struct child *c)
{
	if (!c->pid)
		return;
	kill(c->pid, SIGTERM);
	c->stopping = true;
	c->heard = now_ms();
}

/* Libraries die of damage, but also of what the system could not read: then it is an error, if it is not over. */
static bool begin_again(struct child *c)
{
	struct ear *e = &c->ear;
	const struct source *s = e->told->source;
	if (e->ended || e->refused || e->status || c->stopping || c->reader->endless || !s->place[0]->reader->describe)
		return false;
	const size_t task = e->next - e->begun;
	if (c->again == task + 1)
		return false;
	c->again = task + 1;
	for (size_t i = 0; i < s->places && !e->status; i++)
		e->status = place_read(s->place[i], &e->err);
	if (e->status)
		return false;
	ear_forget(e);
	e->status = start(c);
	return !e->status;
}

/* The child has said all, died, or is not to be believed.  Another one goes on behind the stream it died of. */
static void end(struct child *c, const char *why, bool died)
{
	struct ear *e = &c->ear;
	struct source *s = e->told->source;
	kill_child(c);
	if (died && begin_again(c))
		return;
	if (e->refused)
		e->status = e->next || !source_leave_out(s, &e->err) ? -1 : 0;
	else if (!e->status && !e->ended && !c->stopping && (!e->next || (!s->streams && !e->alive)))
		e->status = error_set(&e->err, STATUS_INPUT, s->reader->mend, "%s: %s", s->place[0]->path, why);
	else if (!e->status && !e->ended && e->begun)
		ear_broken(e, why);
	else if (!e->status && !e->ended)
		ear_give_up(e, why);
	s->stopped |= c->stopping && !s->cut;
	ear_leave(e);
	if (!e->status && !e->ended && !e->refused && e->next < e->told->tasks)
		e->status = start(c);
}

static void hear(struct child *c)
{
	struct ear *e = &c->ear;
	ssize_t n = read(c->fd, e->buf + e->used, EAR_BUFFER - e->used);
	if (n < 0 && errno == EINTR)
		return;
	if (!c->stopping)
		c->heard = now_ms();
	if (n > 0) {
		e->used += (size_t)n;
		if (ear_take(e) && !e->refused && !e->status)
			return;
	}
	end(c, c->stopping ? c->reader->silent : c->reader->died, n <= 0);
}

/* ---- all of them */

/* Waits for words of the running children. */
static void listen_to(struct child *c, size_t n, struct pollfd *p)
{
	for (size_t i = 0; i < n; i++)
		p[i] = (struct pollfd){ .fd = c[i].pid ? c[i].fd : -1, .events = POLLIN };
	if (poll(p, (nfds_t)n, TICK) < 0)
		return;
	for (size_t i = 0; i < n; i++) {
		if (!c[i].pid)
			continue;
		if (p[i].revents)
			hear(&c[i]);
		else if (now_ms() - c[i].heard > (c[i].stopping ? GRACE : c[i].reader->patience * 1000))
			end(&c[i], c[i].reader->silent, false);
	}
}

static void begin(struct child *c, struct told *t, const struct told_work *work)
{
	*c = (struct child){ .reader = t->source->reader };
	ear_open(&c->ear, t, work);
	c->ear.status = start(c);
}

/* One turn of the tick.  The first answer "enough" stops sources that have no end of their own. */
static int ask(struct child *c, size_t begun, const struct told_work *work, bool *stopping, struct error *err)
{
	if (!work->tick || !work->tick(work->arg))
		return 0;
	if (!c[0].reader->endless || *stopping)
		return error_set(err, STATUS_CANCELLED, NULL, "reading traces: interrupted");
	*stopping = true;
	for (size_t i = 0; i < begun; i++)
		ask_to_stop(&c[i]);
	return 0;
}

int told_read(struct told *const *told, size_t n, const struct told_work *work, struct error *err)
{
	struct child *c = mem_new(n + 1, sizeof *c);
	struct pollfd *p = mem_new(n + 1, sizeof *p);
	size_t begun = 0, running = 0;
	bool stopping = false;
	int status = 0;
	while (!status && (begun < n || running)) {
		for (; running < work->most && begun < n; begun++, running++)
			begin(&c[begun], told[begun], work);
		listen_to(c, begun, p);
		running = 0;
		for (size_t i = 0; i < begun && !status; i++) {
			running += c[i].pid != 0;
			status = c[i].ear.status;
			if (status && err)
				*err = c[i].ear.err;
		}
		if (!status)
			status = ask(c, begun, work, &stopping, err);
	}
	for (size_t i = 0; i < begun; i++) {
		kill_child(&c[i]);
		ear_release(&c[i].ear);
	}
	free(c);
	free(p);
	return status;
}

void told_release(struct told *t)
{
	free(t->task);
	free(t->session);
}
