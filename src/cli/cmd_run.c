/* stealscope run: runs a command, and reports how much of its CPU time others took. */
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "cli/cli.h"
#include "cli/live_assertion.h"
#include "cli/opts.h"
#include "cli/run_report.h"
#include "cli/run_tally.h"

#define MAX_ASSERTIONS 32
#define NO_PROGRAM 127     /* exit status of shells for a program that does not exist */
#define NO_PERMISSION 126

struct run_command {
	char **argv;
	struct opt_list assert;
	struct live_assertion assertion[MAX_ASSERTIONS];
	int format;
	const char *output;
	bool without_bpf;
	pid_t child;
	int gate;                  /* the child waits until it is closed */
	struct run_result result;
};

/* Signals that are meant for the command. A terminal sends its own to the command as well. */
static const int passed_on[] = { SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGALRM, SIGWINCH };
static volatile sig_atomic_t target;

static void pass_on(int sig, siginfo_t *from, void *context)
{
	(void)context;
	if (target > 0 && from->si_code <= 0)  /* not from the kernel */
		kill((pid_t)target, sig);
}

static void note_end(int sig)
{
	(void)sig;
}

/* Ends waits when the child ends; keeps this process alive for its report. */
static void catch_signals(sigset_t *during)
{
	const struct sigaction pass = { .sa_sigaction = pass_on, .sa_flags = SA_SIGINFO | SA_RESTART };
	const struct sigaction end = { .sa_handler = note_end };
	sigset_t blocked;
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGCHLD);
	sigprocmask(SIG_BLOCK, &blocked, during);
	sigaction(SIGCHLD, &end, NULL);
	for (size_t i = 0; i < sizeof passed_on / sizeof *passed_on; i++)
		sigaction(passed_on[i], &pass, NULL);
	signal(SIGINT, SIG_IGN);
	signal(SIGQUIT, SIG_IGN);
}

/* Starts the command behind a gate. It has the signal actions and the mask of this process at its start. */
static int start(struct run_command *r, struct error *err)
{
	int gate[2];
	char byte;
	if (pipe(gate))
		return error_system(err, NULL, "pipe");
	fflush(NULL);
	r->child = fork();
	if (r->child < 0)
		return error_system(err, NULL, "fork");
	if (r->child == 0) {
		close(gate[1]);
		while (read(gate[0], &byte, 1) < 0 && errno == EINTR)
			continue;
		close(gate[0]);
		execvp(r->argv[0], r->argv);
		fprintf(stderr, "stealscope: %s: %s\n", r->argv[0], strerror(errno));
		_exit(errno == ENOENT ? NO_PROGRAM : NO_PERMISSION);
	}
	close(gate[0]);
	r->gate = gate[1];
	return 0;
}

/* Returns when the command has ended, which stays to be reaped. */
static void watch(struct run_command *r, struct run_meter *m, const sigset_t *during)
{
	for (;;) {
		const struct timespec pause = timespec_of(run_meter_pause(m));
		siginfo_t end = { .si_pid = 0 };
		while (waitid(P_ALL, 0, &end, WEXITED | WNOWAIT | WNOHANG) == 0 && end.si_pid && end.si_pid != r->child) {
			waitpid(end.si_pid, NULL, 0);  /* an orphan of the command */
			end.si_pid = 0;
		}
		if (end.si_pid == r->child)
			break;
		pselect(0, NULL, NULL, NULL, &pause, during);
		run_meter_poll(m);
	}
}

static int check(struct run_command *r)
{
	struct live_times ns = { .ran = r->result.tally.ran, .stolen = r->result.tally.others,
		                     .throttled = r->result.tally.throttled };
	int failed = 0;
	for (size_t i = 0; i < r->assert.len; i++) {
		const struct live_assertion *a = &r->assertion[i];
		const double share = run_share(&r->result.tally, live_assertion_time(a, &ns));
		if (share < a->limit)
			continue;
		fprintf(stderr, "stealscope: %s does not hold: %.1f %%\n", r->assert.item[i], 100 * share);
		failed = STATUS_ASSERTION;
	}
	return failed;
}

static const char *const formats[] = { "text", "csv", "json", "junit", "github", NULL };

static int parse_options(struct run_command *r, int argc, char **argv, struct error *err)
{
	const struct opt opt[] = {
		{ "format", 0, OPT_CHOICE, "FORMAT", "csv, json, junit or github: the result once more", &r->format, formats },
		{ "output", 'o', OPT_TEXT, "FILE", "file for --format (default: standard output)", &r->output, NULL },
		{ "assert", 0, OPT_LIST, "WHEN", "exit with 3 unless it holds: 'lost<5%', 'throttled<1%'", &r->assert, NULL },
		{ "no-bpf", 0, OPT_FLAG, NULL, "use schedstat: no names, lower bounds", &r->without_bpf, NULL },
	};
	const struct opts opts = { "run -- COMMAND ...", "Run a command, and say how much of its CPU time others took.", opt,
	                           sizeof opt / sizeof *opt, 0, 0 };
	int first, own = 1;
	while (own < argc && strcmp(argv[own], "--") != 0)
		own++;
	if (opts_parse(&opts, own, argv, &first, err))
		return -1;
	if (own + 1 >= argc)
		return error_set(err, STATUS_USAGE, "for example stealscope run -- make", "run: no command after '--'");
	r->argv = argv + own + 1;
	if (r->assert.len > MAX_ASSERTIONS)
		return error_set(err, STATUS_USAGE, NULL, "--assert: more than %d", MAX_ASSERTIONS);
	for (size_t i = 0; i < r->assert.len; i++) {
		char *text = mem_printf("*.%s", r->assert.item[i]);
		const int rc = live_assertion_parse(text, &r->assertion[i], err);
		free(text);
		if (rc)
			return error_set(err, STATUS_USAGE, "for example 'lost<5%' or 'throttled<1%'", "--assert: invalid: '%s'",
			                 r->assert.item[i]);
	}
	return 0;
}

/* Ends this process as the command ended. */
static void end_alike(int status, int failed)
{
	fflush(NULL);
	if (WIFSIGNALED(status)) {
		signal(WTERMSIG(status), SIG_DFL);
		sigset_t all;
		sigfillset(&all);
		sigprocmask(SIG_UNBLOCK, &all, NULL);
		raise(WTERMSIG(status));
		exit(128 + WTERMSIG(status));
	}
	exit(WEXITSTATUS(status) ? WEXITSTATUS(status) : failed);
}

int cmd_run(int argc, char **argv, struct error *err)
{
	struct run_command r = { .gate = -1 };
	struct error limits = ERROR_INIT;
	sigset_t during;
	int status = 0;
	if (parse_options(&r, argc, argv, err) || start(&r, err))
		return -1;
	target = r.child;
	catch_signals(&during);
	struct run_meter *m = run_meter_open(r.child, r.without_bpf, &limits);
	close(r.gate);
	watch(&r, m, &during);
	run_meter_poll(m);  /* the counters of a command that has ended can be read until it is reaped */
	while (waitpid(r.child, &status, 0) < 0 && errno == EINTR)
		continue;
	target = 0;
	run_meter_close(m, &r.result.tally);
	r.result.command = r.argv[0];
	r.result.status = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	r.result.limits = limits.text[0] ? limits.text : NULL;
	const int failed = check(&r);
	r.result.failed = failed != 0;
	const int rc = run_report(&r.result, (enum run_format)r.format, r.output, err);
	free(r.assert.item);
	if (rc == 0)
		end_alike(status, failed);
	return rc;
}
