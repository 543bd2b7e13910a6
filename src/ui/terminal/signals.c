#include "ui/terminal/signals.h"

#include <sys/mman.h>
#include <termios.h>
#include <unistd.h>

#include "base/base.h"
#include "base/parallel.h"

#define RESTORE_MAX_BYTES 512

static const int flagged[] = { SIGWINCH, SIGCONT, SIGTSTP, SIGINT };
static const int fatal[] = { SIGHUP, SIGQUIT, SIGTERM, SIGSEGV, SIGABRT, SIGFPE, SIGILL, SIGPIPE, SIGXCPU };

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* State of the signal handlers: global, because handlers get no argument. */
static volatile sig_atomic_t arrived[NSIG], read_truncated;
static long guard_page;
static struct {
	volatile sig_atomic_t armed;
	int fd;
	char text[RESTORE_MAX_BYTES];
	size_t size;
	struct termios settings;
	bool has_settings;
} restore_state;
static struct sigaction before[NSIG];
static sigset_t mask_before;

static void on_flag(int signal)
{
	arrived[signal] = 1;
}

static void on_fatal(int signal)
{
	if (restore_state.armed) {
		restore_state.armed = 0;
		for (size_t at = 0; at < restore_state.size;) {
			ssize_t n = write(restore_state.fd, restore_state.text + at, restore_state.size - at);
			if (n <= 0)
				break;
			at += (size_t)n;
		}
		if (restore_state.has_settings)
			tcsetattr(restore_state.fd, TCSANOW, &restore_state.settings);
	}
	struct sigaction dfl = { .sa_handler = SIG_DFL };
	sigemptyset(&dfl.sa_mask);
	sigaction(signal, &dfl, NULL);
	raise(signal);  /* the signal is blocked until this handler returns; then it ends the program */
}

/* Handles SIGBUS beyond a truncated mapped file's end: maps a page of zeros there. All other cases are fatal. */
static void on_bus(int signal, siginfo_t *info, void *context)
{
	(void)context;
	size_t page = (size_t)guard_page;
	uintptr_t at = (uintptr_t)info->si_addr & ~(page - 1);
	if (info->si_code != BUS_ADRERR || page == 0 ||
	    mmap((void *)at, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		on_fatal(signal);
	else
		read_truncated = 1;
}

void signals_guard_reads(void)
{
	struct sigaction sa = { .sa_sigaction = on_bus, .sa_flags = SA_SIGINFO };
	sigfillset(&sa.sa_mask);
	guard_page = sysconf(_SC_PAGESIZE);
	sigaction(SIGBUS, &sa, &before[SIGBUS]);
}

void signals_end_reads(void)
{
	sigaction(SIGBUS, &before[SIGBUS], NULL);
}

bool signals_take_truncated(void)
{
	bool old = read_truncated != 0;
	read_truncated = 0;
	return old;
}

static void catch_signal(int signal, void (*handler)(int))
{
	struct sigaction sa = { .sa_handler = handler };
	sigfillset(&sa.sa_mask);
	sigaction(signal, &sa, &before[signal]);
}

void signals_begin(sigset_t *during)
{
	sigset_t block;
	sigemptyset(&block);
	for (size_t i = 0; i < COUNT(flagged); i++)
		sigaddset(&block, flagged[i]);
	sigprocmask(SIG_BLOCK, &block, &mask_before);
	*during = mask_before;
	for (size_t i = 0; i < COUNT(flagged); i++) {
		sigdelset(during, flagged[i]);
		catch_signal(flagged[i], on_flag);
	}
	restore_state.has_settings = tcgetattr(STDIN_FILENO, &restore_state.settings) == 0;
	for (size_t i = 0; i < COUNT(fatal); i++)
		catch_signal(fatal[i], on_fatal);
}

void signals_guard(int fd, const char *restore)
{
	restore_state.fd = fd;
	restore_state.size = strnlen(restore, RESTORE_MAX_BYTES);
	memcpy(restore_state.text, restore, restore_state.size);
	restore_state.armed = 1;
}

void signals_end(void)
{
	restore_state.armed = 0;
	for (size_t i = 0; i < COUNT(fatal); i++)
		sigaction(fatal[i], &before[fatal[i]], NULL);
	for (size_t i = 0; i < COUNT(flagged); i++)
		sigaction(flagged[i], &before[flagged[i]], NULL);
	sigprocmask(SIG_SETMASK, &mask_before, NULL);
}

bool signals_take(int signal)
{
	bool old = arrived[signal] != 0;
	arrived[signal] = 0;
	return old;
}

void signals_stop_self(void)
{
	struct sigaction ours, dfl = { .sa_handler = SIG_DFL };
	sigset_t stop, old;
	sigemptyset(&dfl.sa_mask);
	sigemptyset(&stop);
	sigaddset(&stop, SIGTSTP);
	sigaction(SIGTSTP, &dfl, &ours);
	raise(SIGTSTP);
	sigprocmask(SIG_UNBLOCK, &stop, &old);  /* SIGTSTP is delivered: the process stops here */
	sigprocmask(SIG_SETMASK, &old, NULL);
	sigaction(SIGTSTP, &ours, NULL);
}

int signals_start_thread(pthread_t *thread, void *(*run)(void *), void *arg)
{
	static const int crash_signals[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT };
	sigset_t all, old;
	sigfillset(&all);
	for (size_t i = 0; i < COUNT(crash_signals); i++)
		sigdelset(&all, crash_signals[i]);
	pthread_sigmask(SIG_SETMASK, &all, &old);
	int failed = parallel_thread(thread, run, arg);
	pthread_sigmask(SIG_SETMASK, &old, NULL);
	return failed ? -1 : 0;
}
