#include "record/watchdog.h"

#include <errno.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "record/probe_definitions.h"
#include "record/tracer.h"

/* Removes the instances and probes of dead recorders; unmount: tracefs's mount, too. */
static void remove_remains(const char *root, const char *tracefs, bool unmount)
{
	size_t failed = 0;
	for (int i = 0; i < 50; i++) {
		size_t failed_probes = 0;
		tracer_clean(root, &failed);
		probes_clean(root, tracefs, &failed_probes);
		if (!failed && !failed_probes)
			break;
		usleep(100000);
	}
	if (unmount)
		umount2(tracefs, 0);
}

/* Waits until the recorder is a zombie or gone: the kernel closes its descriptors, the lifeline among them, earlier. */
static void await_death(pid_t recorder)
{
	for (int i = 0; i < 50 && getppid() == recorder; i++)
		usleep(100000);
}

static _Noreturn void watch_recorder(pid_t recorder, const char *root, const char *tracefs, bool unmount, int lifeline)
{
	static const int ignored[] = { SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGUSR1 };
	char done = 0;
	ssize_t n;
	for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++)
		signal(ignored[i], SIG_IGN);
	setsid();
	for (int i = 0; i < lifeline; i++)
		close(i);
	syscall(SYS_close_range, (unsigned)lifeline + 1, ~0U, 0U);
	if (chdir("/"))
		_exit(1);
	do
		n = read(lifeline, &done, 1);
	while (n < 0 && errno == EINTR);
	if (n != 1) {  /* the recorder ended without removing its probes */
		await_death(recorder);
		remove_remains(root, tracefs, unmount);
	}
	_exit(0);
}

int watchdog_start(struct watchdog *w, const char *root, const char *tracefs, bool unmount, struct error *err)
{
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return error_system(err, NULL, "cannot start the watchdog");
	const pid_t recorder = getpid();
	w->pid = fork();
	if (w->pid == 0) {
		close(pair[1]);
		watch_recorder(recorder, root, tracefs, unmount, pair[0]);
	}
	close(pair[0]);
	w->fd = pair[1];
	if (w->pid >= 0)
		return 0;
	close(w->fd);
	return error_system(err, NULL, "cannot start the watchdog");
}

void watchdog_end(struct watchdog *w)
{
	const char done = 1;
	if (w->pid <= 0)
		return;
	if (send(w->fd, &done, 1, MSG_NOSIGNAL) < 0)
		kill(w->pid, SIGKILL);
	close(w->fd);
	while (waitpid(w->pid, NULL, 0) < 0 && errno == EINTR)
		continue;
}
