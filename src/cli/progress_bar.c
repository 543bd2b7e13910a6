#include "cli/progress_bar.h"

#include <signal.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/base.h"

#define REDRAW_NS 100000000
#define BAR_CELLS 24

static volatile sig_atomic_t interrupted, drawn;  /* drawn: the terminal shows the bar, a line without line break */

static void on_interrupt(int sig)
{
	(void)sig;
	interrupted = 1;
}

/* Erases the bar before a signal ends the program. */
static void on_fatal(int sig)
{
	static const char end[] = "\r\033[K";
	if (drawn && write(STDERR_FILENO, end, sizeof end - 1) < 0)
		drawn = 0;
	raise(sig);  /* the signal is blocked until this handler returns; then it ends the program */
}

static const int fatal[] = { SIGHUP, SIGTERM, SIGQUIT };

static void catch_fatal_signals(void)
{
	struct sigaction sa = { .sa_handler = on_fatal, .sa_flags = (int)SA_RESETHAND }, old_action;
	sigemptyset(&sa.sa_mask);
	for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++)
		if (sigaction(fatal[i], NULL, &old_action) == 0 && old_action.sa_handler == SIG_DFL)
			sigaction(fatal[i], &sa, NULL);
}

static void catch_interrupt(void)
{
	interrupted = 0;
	struct sigaction sa = { .sa_handler = on_interrupt };
	sigemptyset(&sa.sa_mask);
	sa.sa_flags = (int)SA_RESETHAND;  /* a second Ctrl-C kills the process if the work does not respond */
	sigaction(SIGINT, &sa, NULL);
}

/* Formats a count: 1234567 -> "1.2 M". */
static void format_count(char buf[16], double n)
{
	const char *unit = n >= 1e9 ? " G" : n >= 1e6 ? " M" : n >= 1e3 ? " k" : "";
	double v = n >= 1e9 ? n / 1e9 : n >= 1e6 ? n / 1e6 : n >= 1e3 ? n / 1e3 : n;
	snprintf(buf, 16, "%.*f%s", v >= 100 || !*unit ? 0 : 1, v, unit);
}

/* Replaces the current line of the terminal, truncated to its width. */
static void put_line(const char *line)
{
	struct winsize ws = { 0 };
	int width = ioctl(STDERR_FILENO, TIOCGWINSZ, &ws) == 0 && ws.ws_col > 0 ? ws.ws_col : 80;
	drawn = 1;
	fprintf(stderr, "\r\033[K%.*s", width - 1, line);
}

static void draw_bar(const struct progress_bar *bar, uint64_t done, uint64_t total)
{
	double seconds = (double)(now_ns() - bar->phase_start) / 1e9;
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
		         total == PROGRESS_OPEN ? "  Ctrl-C: stop reading" : "");
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

static int progress_tick(void *arg, const char *phase, uint64_t done, uint64_t total)
{
	struct progress_bar *bar = arg;
	const int interrupted_now = interrupted;
	if (interrupted_now && total == PROGRESS_OPEN)
		catch_interrupt();  /* SIGINT ends only this open-ended phase; the next one cancels the work */
	if (!bar->tty)
		return interrupted_now;
	int64_t now = now_ns();
	if (!bar->phase || strcmp(bar->phase, phase) != 0) {
		bar->phase = phase;
		bar->phase_start = now;
	}
	if (now - bar->drawn >= REDRAW_NS) {
		bar->drawn = now;
		draw_bar(bar, done, total);
	}
	return interrupted_now;
}

struct progress progress_bar_begin(struct progress_bar *bar, const enum build_phase *step)
{
	*bar = (struct progress_bar){ .step = step, .tty = isatty(STDERR_FILENO) };
	catch_interrupt();
	if (bar->tty)
		catch_fatal_signals();
	return (struct progress){ progress_tick, bar };
}

void progress_bar_end(struct progress_bar *bar)
{
	struct sigaction old_action;
	signal(SIGINT, SIG_DFL);
	for (size_t i = 0; i < sizeof fatal / sizeof *fatal; i++)
		if (sigaction(fatal[i], NULL, &old_action) == 0 && old_action.sa_handler == on_fatal)
			signal(fatal[i], SIG_DFL);
	if (bar->tty && bar->drawn)
		fputs("\r\033[K", stderr);
	drawn = 0;
}
