#include "ui/terminal/signals.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <termios.h>
#include <unistd.h>

#include "base/parallel.h"

#define RESTORE_LONGEST 512

static const int flagged[] = { SIGWINCH, SIGCONT, SIGTSTP, SIGINT };
static const int fatal[] = { SIGHUP, SIGQUIT, SIGTERM, SIGSEGV, SIGABRT, SIGFPE, SIGILL, SIGPIPE, SIGXCPU };

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* A signal handler has no argument to carry its state: this is what it may touch. */
static volatile sig_atomic_t arrived[NSIG], torn;
static long guard_page;
static struct {
	volatile sig_atomic_t armed;
	int fd;
	char text[RESTORE_LONGEST];
	size_t size;
	struct termios settings;
	bool has_settings;
} guard;
static struct sigaction before[NSIG];
static sigset_t mask_before;

static void on_flag(int signal)
{
	arrived[signal] = 1;
}

static void on_fatal(int signal)
{
	if (guard.armed) {
		guard.armed = 0;
		for (size_t at = 0; at < guard.size;) {
			ssize_t n = write(guard.fd, guard.text + at, guard.size - at);
			if (n <= 0)
				break;
			at += (size_t)n;
		}
		if (guard.has_settings)
			tcsetattr(guard.fd, TCSANOW, &guard.settings);
	}
	struct sigaction dfl = { .sa_handler = SIG_DFL };
	sigemptyset(&dfl.sa_mask);
	sigaction(signal, &dfl, NULL);
	raise(signal);  /* blocked until this handler returns; then it ends the program */
}

/* SIGBUS beyond the end of a mapped file: a page of zeros takes its place.  Anything else is fatal. */
static void on_bus(int signal, siginfo_t *info, void *context)
{
	(void)context;
	size_t page = (size_t)guard_page;
	uintptr_t at = (uintptr_t)info->si_addr & ~(page - 1);
	if (info->si_code != BUS_ADRERR || page == 0 ||
	    mmap((void *)at, page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED)
		on_fatal(signal);
	else
		torn = 1;
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

bool signals_take_torn(void)
{
	bool was = torn != 0;
	torn = 0;
	return was;
}

static void catch(int signal, void (*handler)(int))
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
		catch(flagged[i], on_flag);
	}
	guard.has_settings = tcgetattr(STDIN_FILENO, &guard.settings) == 0;
	for (size_t i = 0; i < COUNT(fatal); i++)
		catch(fatal[i], on_fatal);
}

void signals_guard(int fd, const char *restore)
{
	guard.fd = fd;
	guard.size = strnlen(restore, RESTORE_LONGEST);
	memcpy(guard.text, restore, guard.size);
	guard.armed = 1;
}

void signals_end(void)
{
	guard.armed = 0;
	for (size_t i = 0; i < COUNT(fatal); i++)
		sigaction(fatal[i], &before[fatal[i]], NULL);
	for (size_t i = 0; i < COUNT(flagged); i++)
		sigaction(flagged[i], &before[flagged[i]], NULL);
	sigprocmask(SIG_SETMASK, &mask_before, NULL);
}

bool signals_take(int signal)
{
	bool was = arrived[signal] != 0;
	arrived[signal] = 0;
	return was;
}

void signals_stop_self(void)
{
	struct sigaction ours, dfl = { .sa_handler = SIG_DFL };
	sigset_t stop, was;
	sigemptyset(&dfl.sa_mask);
	sigemptyset(&stop);
	sigaddset(&stop, SIGTSTP);
	sigaction(SIGTSTP, &dfl, &ours);
	raise(SIGTSTP);
	sigprocmask(SIG_UNBLOCK, &stop, &was);  /* it stops here */
	sigprocmask(SIG_SETMASK, &was, NULL);
	sigaction(SIGTSTP, &ours, NULL);
}

int signals_start_thread(pthread_t *thread, void *(*run)(void *), void *arg)
{
	static const int own[] = { SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT };
	sigset_t all, was;
	sigfillset(&all);
	for (size_t i = 0; i < COUNT(own); i++)
		sigdelset(&all, own[i]);
	pthread_sigmask(SIG_SETMASK, &all, &was);
	int failed = parallel_thread(thread, run, arg);
	pthread_sigmask(SIG_SETMASK, &was, NULL);
	return failed ? -1 : 0;
}
