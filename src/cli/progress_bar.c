#include "cli/progress_bar.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"

#define REDRAW_NS 100000000
#define BAR_CELLS 24

static volatile sig_atomic_t interrupted, drawn;  /* drawn: there is a line, without an end */

static void on_interrupt(int sig)
{
	(void)sig;
	interrupted = 1;
}

/* Whoever looks at the terminal next begins on a line of their own. */
static void on_fatal(int sig)
{
	static const char end[] = "\r\033[K";
	if (drawn && write(STDERR_FILENO, end, sizeof end - 1) < 0)
		drawn = 0;
	raise(sig);  /* blocked until this handler returns; then it ends the program */
}

static const int fatal[] = { SIGHUP, SIGTERM, SIGQUIT };

static void listen_for_ends(void)
{
	struct sigaction sa = { .sa_handler = on_fatal, .sa_flags = (int)SA_RESETHAND }, was;
	sigemptyset(&sa.sa_mask);
	for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++)
		if (sigaction(fatal[i], NULL, &was) == 0 && was.sa_handler == SIG_DFL)
			sigaction(fatal[i], &sa, NULL);
}

static void listen_for_interrupt(void)
{
	interrupted = 0;
	struct sigaction sa = { .sa_handler = on_interrupt };
	sigemptyset(&sa.sa_mask);
	sa.sa_flags = (int)SA_RESETHAND;  /* a second Ctrl-C kills, should the work not listen */
	sigaction(SIGINT, &sa, NULL);
}

/* 1234567 -> "1.23 M" */
static void format_count(char buf[16], double n)
{
	const char *unit = n >= 1e9 ? " G" : n >= 1e6 ? " M" : n >= 1e3 ? " k" : "";
	double v = n >= 1e9 ? n / 1e9 : n >= 1e6 ? n / 1e6 : n >= 1e3 ? n / 1e3 : n;
	snprintf(buf, 16, "%.*f%s", v >= 100 || !*unit ? 0 : 1, v, unit);
}

/* One line that the terminal does not break: the next one is to take its place. */
static void put_line(const char *line)
{
	struct winsize ws = { 0 };
	int width = ioctl(STDERR_FILENO, TIOCGWINSZ, &ws) == 0 && ws.ws_col > 0 ? ws.ws_col : 80;
	drawn = 1;
	fprintf(stderr, "\r\033[K%.*s", width - 1, line);
}

static void draw(const struct progress_bar *bar, uint64_t done, uint64_t total)
{
	double seconds = (double)(now_ns() - bar->begun) / 1e9;
	double rate = seconds > 0 ? (double)done / seconds : 0;
	char line[160], count[16], speed[16], phase[48];
	if (bar->step && *bar->step < PROGRESS_STEPS)
		snprintf(phase, sizeof phase, "%d/%d %s", (int)*bar->step + 1, PROGRESS_STEPS, bar->phase);
	else
		snprintf(phase, sizeof phase, "%s", bar->phase);
	format_count(count, (double)done);
	format_count(speed, rate);
	if (total == 0 || total == PROGRESS_OPEN) {
		snprintf(line, sizeof line, "%-12s %s  %s/s%s", phase, count, speed,
		         total == PROGRESS_OPEN ? "  Ctrl-C: enough" : "");
		put_line(line);
		return;
	}
	if (done > total)
		done = total;
	int full = (int)((double)BAR_CELLS * (double)done / (double)total);
	int used = snprintf(line, sizeof line, "%-12s [%.*s%*s] %3d %%", phase, full, "########################",
	                    BAR_CELLS - full, "", (int)(100 * (double)done / (double)total));
	if (rate > 0 && used > 0 && (size_t)used < sizeof line)
		snprintf(line + used, sizeof line - (size_t)used, "  %s/s  ETA %.0f s", speed, (double)(total - done) / rate);
	put_line(line);
}

static int tick(void *arg, const char *phase, uint64_t done, uint64_t total)
{
	struct progress_bar *bar = arg;
	const int enough = interrupted;
	if (enough && total == PROGRESS_OPEN)
		listen_for_interrupt();  /* this one ends the phase, another one the work */
	if (!bar->tty)
		return enough;
	int64_t now = now_ns();
	if (!bar->phase || strcmp(bar->phase, phase) != 0) {
		bar->phase = phase;
		bar->begun = now;
	}
	if (now - bar->drawn >= REDRAW_NS) {
		bar->drawn = now;
		draw(bar, done, total);
	}
	return enough;
}

struct progress progress_bar_begin(struct progress_bar *bar, const enum build_phase *step)
{
	*bar = (struct progress_bar){ .step = step, .tty = isatty(STDERR_FILENO) };
	listen_for_interrupt();
	if (bar->tty)
		listen_for_ends();
	return (struct progress){ tick, bar };
}

void progress_bar_end(struct progress_bar *bar)
{
	struct sigaction was;
	signal(SIGINT, SIG_DFL);
	for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++)
		if (sigaction(fatal[i], NULL, &was) == 0 && was.sa_handler == on_fatal)
			signal(fatal[i], SIG_DFL);
	if (bar->tty && bar->drawn)
		fputs("\r\033[K", stderr);
	drawn = 0;
}
