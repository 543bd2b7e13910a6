/* stealscope record: records this host and its guests, and prints the result. */
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "cli/cli.h"
#include "cli/opts.h"
#include "cli/record_requests.h"
#include "cli/findings_print.h"
#include "live/live.h"
#include "record/record.h"
#include "report/report.h"

#define DEFAULT_DURATION 10000000000  /* duration of a recording or snapshot, ns */
#define DEFAULT_SNAPSHOTS 10   /* snapshots after which a flight recording ends */
#define HOUR (3600LL * NS_PER_S)

static volatile int stop, fire;

/* The first signal ends the recording; after a second one, the recorder does not wait for guests. */
static void on_signal(int sig)
{
	(void)sig;
	stop++;
}

static void on_fire(int sig)
{
	(void)sig;
	fire = 1;
}

static void catch_signals(void)
{
	static const int caught[] = { SIGINT, SIGTERM, SIGHUP };
	struct sigaction sa = { .sa_handler = on_signal }, old_action;
	sigemptyset(&sa.sa_mask);
	for (size_t i = 0; i < sizeof caught / sizeof *caught; i++)
		/* ignored under nohup(1) */
		if (caught[i] != SIGHUP || sigaction(SIGHUP, NULL, &old_action) || old_action.sa_handler != SIG_IGN)
			sigaction(caught[i], &sa, NULL);
	sa.sa_handler = on_fire;
	sigaction(SIGUSR1, &sa, NULL);
}

static void print_progress(void *arg, const char *line)
{
	char escaped[2048];
	(void)arg;
	fprintf(stderr, "stealscope: %s\n", text_sanitize(escaped, sizeof escaped, line));
}

static void print_error(const struct error *e)
{
	fprintf(stderr, "stealscope: %s%s%s%s\n", e->text, *e->remedy ? " (" : "", e->remedy, *e->remedy ? ")" : "");
}

/* ---- command line */

struct record_command {
	struct record_options o;
	struct record_request *requested;
	struct opt_list event, trigger, requests, guest_requests;
	const char *listed;    /* --list-requests */
	const char *duration, *max_snapshots;  /* option arguments */
	char *dir;             /* default output directory; NULL: -o is set */
	const char *next_command;  /* --then */
	bool check, cleanup, no_index, flight;
	struct counter_program *counters;  /* NULL: none */
	struct throttle_program *throttled;  /* NULL: no quotas, or no BPF */
	bool partial;          /* flight recording: a snapshot is incomplete */
	pid_t *child;          /* processes that index the snapshots */
	size_t children, children_cap;
	struct report_how how;
};

/* Parses the operands, "web" or "db=ssh:root@db3", in place. */
static void add_requested(struct record_command *w, char **operand, int operands)
{
	w->requested = mem_new((size_t)operands, sizeof *w->requested);
	for (int i = 0; i < operands; i++) {
		char *eq = strchr(operand[i], '=');
		if (eq)
			*eq = '\0';
		w->requested[i] = (struct record_request){ operand[i], eq ? eq + 1 : NULL };
	}
	w->o.requested = w->requested;
	w->o.n_requested = (size_t)operands;
}

static int parse_duration(struct record_command *w, struct error *err)
{
	w->o.duration = w->o.command || w->flight ? 0 : DEFAULT_DURATION;
	w->o.hold = w->flight ? DEFAULT_DURATION : 0;
	if (!w->duration)
		return 0;
	char seconds[TIME_TEXT];  /* a number without a unit: seconds */
	snprintf(seconds, sizeof seconds, "%s%s", w->duration, time_is_plain_number(w->duration) ? "s" : "");
	if (!time_parse_duration(seconds, &w->o.duration) || w->o.duration <= 0 || w->o.duration > (int64_t)1e15)
		return error_set(err, STATUS_USAGE, "for example -t 30s or -t 5min", "--time: not a duration: '%s'", w->duration);
	if (w->flight && (w->o.duration < NS_PER_S || w->o.duration > HOUR))
		return error_set(err, STATUS_USAGE, "use 1s to 1h", "--time: a flight recording cannot keep the last %s",
		                 w->duration);
	if (w->flight) {
		w->o.hold = w->o.duration;
		w->o.duration = 0;
	}
	return 0;
}

static int parse_flight_options(struct record_command *w, struct error *err)
{
	char *rest = NULL;
	w->o.trigger = w->trigger.item;
	w->o.triggers = w->trigger.len;
	w->o.max_snapshots = DEFAULT_SNAPSHOTS;
	if (!w->flight && (w->trigger.len || w->max_snapshots))
		return error_set(err, STATUS_USAGE, "add --flight", "--trigger and --keep require --flight");
	if (w->max_snapshots)
		w->o.max_snapshots = strtoul(w->max_snapshots, &rest, 10);
	if (rest && (rest == w->max_snapshots || *rest || *w->max_snapshots == '-' || !w->o.max_snapshots))
		return error_set(err, STATUS_USAGE, "for example --keep 10", "--keep: not a number above 0: '%s'",
		                 w->max_snapshots);
	return 0;
}

/* Returns the default name of the output directory; the caller frees. */
static char *default_dir(void)
{
	char text[64];
	const time_t now = time(NULL);
	struct tm tm;
	localtime_r(&now, &tm);
	strftime(text, sizeof text, "stealscope-%Y%m%d-%H%M%S", &tm);
	return mem_dup(text);
}

static int parse_options(struct record_command *w, int argc, char **argv, struct error *err)
{
	static const char *const clocks[] = { "auto", "x86-tsc", "mono", NULL };
	static const char *const steal_sources[] = { "auto", "event_probes", "kernel_probes", "sched_stat_runtime",
		"return_probe", "none", NULL };
	const struct opt opt[] = {
		{ "time", 't', OPT_TEXT, "DURATION", "duration (default: 10s, or until COMMAND ends)", &w->duration, NULL },
		{ "output", 'o', OPT_TEXT, "DIR", "output directory (default: stealscope-TIME)", &w->o.output, NULL },
		{ "check", 0, OPT_FLAG, NULL, "dry run: print what would be recorded", &w->check, NULL },
		{ "cleanup", 0, OPT_FLAG, NULL, "remove remains of killed recordings", &w->cleanup, NULL },
		{ "host-only", 0, OPT_FLAG, NULL, "do not trace guests", &w->o.host_only, NULL },
		{ "guest-only", 0, OPT_FLAG, NULL, "record this machine as a guest, without its host",
		  &w->o.guest_only, NULL },
		{ "steal", 0, OPT_TEXT, "SOURCE", "source of stolen time in guests", &w->o.steal, steal_sources },
		{ "event", 'e', OPT_LIST, "SYSTEM:NAME", "record this event as well", &w->event, NULL },
		{ "counters", 0, OPT_FLAG, NULL, "record instructions and cycles of the host's CPUs", &w->o.counters, NULL },
		{ "xen-events", 0, OPT_TEXT, "CLASS,...", "in dom0: record hypercalls, hvm as well", &w->o.xen_events, NULL },
		{ "requests", 0, OPT_LIST, "SPEC", "record requests of a server by probes: nginx", &w->requests, NULL },
		{ "guest-requests", 0, OPT_LIST, "SPEC", "the same for programs in the guests", &w->guest_requests, NULL },
		{ "request-labels", 0, OPT_FLAG, NULL, "with the texts of requests, such as queries", &w->o.request_labels,
		  NULL },
		{ "list-requests", 0, OPT_TEXT, "PATH", "print what a program offers, or: tables", &w->listed, NULL },
		{ "clock", 0, OPT_TEXT, "CLOCK", "auto, x86-tsc or mono", &w->o.clock, clocks },
		{ "flight", 0, OPT_FLAG, NULL, "save the last DURATION at each trigger", &w->flight, NULL },
		{ "trigger", 0, OPT_LIST, "WHEN", "gap(VM)>20ms, steal(VM)>30% for 1s, load>8, ...", &w->trigger, NULL },
		{ "keep", 0, OPT_TEXT, "N", "--flight: end after N snapshots (default: 10)", &w->max_snapshots, NULL },
		{ "then", 0, OPT_TEXT, "COMMAND", "then run 'view', 'explain web/CPU0' ... on it", &w->next_command, NULL },
		{ "no-index", 0, OPT_FLAG, NULL, "do not index the recording, print no answer", &w->no_index, NULL },
		{ "root", 0, OPT_TEXT, "DIR", "directory with proc, sys and run", &w->o.root, NULL },
		ANSWER_OPTIONS(&w->how),
	};
	const struct opts opts = { "record [VM[=ACCESS]...] [-- COMMAND]",
	                           "Record this host and its virtual machines, and show who took CPU time.\nACCESS to a "
	                           "guest: ssh:[USER@]HOST, qga:, vsock:[CID]:PORT, cmd:COMMAND or none.",
	                           opt, sizeof opt / sizeof *opt, 0, -1 };
	int first, own_argc = 1;
	while (own_argc < argc && strcmp(argv[own_argc], "--") != 0)
		own_argc++;
	w->o.command = own_argc + 1 < argc ? argv + own_argc + 1 : NULL;
	if (opts_parse(&opts, own_argc, argv, &first, err))
		return -1;
	w->o.event = w->event.item;
	w->o.events = w->event.len;
	w->o.request_spec = w->requests.item;
	w->o.request_specs = w->requests.len;
	w->o.guest_request_spec = w->guest_requests.item;
	w->o.guest_request_specs = w->guest_requests.len;
	add_requested(w, argv + first, own_argc - first);
	if (w->o.guest_only && w->o.host_only)
		return error_set(err, STATUS_USAGE, "use one of them", "--guest-only and --host-only exclude each other");
	return parse_duration(w, err) || parse_flight_options(w, err) ? -1 : 0;
}

/* ---- results */

static const struct column columns[] = {
	{ "machine", "machine", COL_TEXT },
	{ "cpus", "CPUs", COL_INT },
	{ "through", "through", COL_TEXT },
	{ "recorded", "recorded", COL_TEXT },
	{ "about", "what", COL_TEXT },
	{ "why", NULL, COL_TEXT },
	{ "remedy", NULL, COL_TEXT },
};

static int print_check(const struct record_result *r, struct report_how how, struct error *err)
{
	static const struct report_shape shape = REPORT_SHAPE("record-check", columns);
	struct report *report = report_begin(stdout, how, &shape, NULL);
	for (size_t i = 0; i < r->machines; i++) {
		const struct record_machine *m = &r->machine[i];
		report_row(report, (struct value[]){
			VAL_TEXT(m->name), m->cpus ? VAL_INT((int64_t)m->cpus) : VAL_NONE, VAL_TEXT(m->through),
			VAL_TEXT(m->recorded ? "yes" : m->requested ? "no" : "host's side"), VAL_TEXT(m->about), VAL_SHOWN(m->why.text),
			VAL_SHOWN(m->why.remedy) });
	}
	return report_end(report, err);
}

static void print_machine(const struct record_machine *m)
{
	const char *remedy = "record for a shorter time, fewer events, or with more memory for buffers";
	char line[2048];
	if (*m->why.text)
		snprintf(line, sizeof line, "%s: %s: %s%s%s%s", m->name, m->recorded ? "recorded, but" : "not recorded",
		         m->why.text, *m->why.remedy ? " (" : "", m->why.remedy, *m->why.remedy ? ")" : "");
	else if (m->lost)
		snprintf(line, sizeof line, "%s: %llu events were lost (%s)", m->name, (unsigned long long)m->lost, remedy);
	else
		return;
	print_progress(NULL, line);
}

/* Prints errors of machines and the command. Returns -1 with *err if the recording is incomplete. */
static int print_result(const struct record_result *r, struct error *err)
{
	for (size_t i = 0; i < r->machines; i++)
		print_machine(&r->machine[i]);
	if (WIFEXITED(r->command_status) && WEXITSTATUS(r->command_status))
		fprintf(stderr, "stealscope: the command ended with status %d\n", WEXITSTATUS(r->command_status));
	if (r->complete)
		return 0;
	return error_set(err, STATUS_INCOMPLETE, "see above", "the recording is incomplete");
}

static int check_recording(struct record_command *w, struct error *err)
{
	struct record_result r;
	w->o.explains = true;
	int rc = record_check(&w->o, &r, err);
	if (rc == 0) {
		bool complete = true;
		rc = print_check(&r, w->how, err);
		for (size_t i = 0; i < r.machines; i++) {
			complete &= !r.machine[i].requested || r.machine[i].recorded;
			if (w->how.format == FORMAT_TEXT && *r.machine[i].why.text)
				printf("%s: %s%s%s%s\n", r.machine[i].name, r.machine[i].why.text, *r.machine[i].why.remedy ? " (" : "",
				       r.machine[i].why.remedy, *r.machine[i].why.remedy ? ")" : "");
		}
		if (rc == 0 && !complete)
			rc = error_set(err, STATUS_INCOMPLETE, "the messages above contain remedies",
			               "some machines cannot be recorded");
	}
	record_release(&r);
	return rc;
}

/* Executes a stealscope command on the recording: "explain web/CPU0" -> stealscope explain DIR web/CPU0. Does not
 * return. */
static void exec_command(const char *words, char *dir)
{
	char *copy = mem_dup(words), *rest = NULL;
	char **argv = mem_new(strlen(words) / 2 + 5, sizeof *argv);
	size_t n = 0;
	argv[n++] = "stealscope";
	for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		argv[n++] = word;
		if (n == 2)
			argv[n++] = dir;
	}
	execv("/proc/self/exe", argv);
	_exit(STATUS_SYSTEM);
}

static int run_next_command(const char *words, char *dir, struct error *err)
{
	int status = 0;
	fflush(NULL);
	const pid_t child = fork();
	if (child == 0)
		exec_command(words, dir);
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		continue;
	if (child < 0)
		return error_system(err, NULL, "--then %s", words);
	if (status == 0)
		return 0;
	const enum status exit_status = WIFEXITED(status) ? (enum status)WEXITSTATUS(status) : STATUS_SYSTEM;
	const char *url = strstr(words, "://");  /* hides an argument that may contain a password */
	return error_set(err, exit_status, "the recording was saved; run the command by hand", "--then '%.*s%s' failed",
	                 url ? (int)(url - words) : (int)strlen(words), words, url ? "://..." : "");
}

/* Runs --then or prints the default answer. A failure here does not replace an incomplete recording's status, and is
 * printed. */
static int show_answer(const struct record_command *w, int status, struct error *err)
{
	struct error why = ERROR_INIT;
	if (w->no_index || stop > 1)
		return status;
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	char *dir = mem_dup(w->o.output);
	const int rc = w->next_command ? run_next_command(w->next_command, dir, &why) : findings_print_recording(dir, &why);
	free(dir);
	if (rc && status == 0)
		*err = why;
	else if (rc)
		print_error(&why);
	return rc ? -1 : status;
}

/* Prints the result of a snapshot and starts a process that indexes it, while the flight recording continues. */
static void report_snapshot(void *arg, const char *dir, const struct record_result *r)
{
	struct record_command *w = arg;
	struct error err = ERROR_INIT;
	printf("%s\n", dir);
	w->partial |= print_result(r, &err) != 0;
	fflush(NULL);
	if (w->no_index)
		return;
	const pid_t child = fork();
	if (child == 0) {
		char *copy = mem_dup(dir);
		signal(SIGINT, SIG_IGN);
		signal(SIGTERM, SIG_DFL);
		const int rc = w->next_command ? run_next_command(w->next_command, copy, &err)
		                               : findings_print_recording(copy, &err);
		if (rc)
			print_error(&err);
		fflush(NULL);
		_exit(rc ? 1 : 0);
	}
	if (child > 0)
		*ARRAY_PUSH(w->child, w->children, w->children_cap) = child;
}

static int run_flight(struct record_command *w, struct error *err)
{
	struct record_result r;
	w->o.on_snapshot = report_snapshot;
	int rc = record_run(&w->o, &r, err);
	for (size_t i = 0; i < w->children; i++)
		while (waitpid(w->child[i], NULL, 0) < 0 && errno == EINTR)
			if (stop > 1)
				kill(w->child[i], SIGTERM);
	free(w->child);
	if (rc == 0 && r.machines && !r.complete && *r.machine[0].why.text)  /* it ended early */
		rc = error_repeat(err, r.machine[0].why.status, r.machine[0].why.remedy, "%s", r.machine[0].why.text);
	record_release(&r);
	if (rc == 0 && w->partial)
		rc = error_set(err, STATUS_INCOMPLETE, "see above", "the recording is incomplete");
	return rc;
}

/* Starts to read hardware counters, if they are requested and there are any. */
static void open_counters(struct record_command *w)
{
	struct error why = ERROR_INIT;
	if (!w->o.counters)
		return;
	if (w->o.guest_only)
		error_set(&why, STATUS_USAGE, NULL, "--guest-only records no hardware counters");
	else
		w->counters = counter_program_open(live_hardware_counters, &why);
	w->o.counters = w->counters != NULL;
	if (!w->counters)
		fprintf(stderr, "stealscope: recording without hardware counters: %s%s%s%s\n", why.text, *why.remedy ? " (" : "",
		        why.remedy, *why.remedy ? ")" : "");
}

/* Starts to print throttled threads if there are quotas. Without BPF, cpu.stat bounds the throttled time. */
static void open_throttled(struct record_command *w)
{
	if (record_has_quotas(w->o.root))
		w->throttled = throttle_program_open(NULL);
	w->o.throttled = w->throttled != NULL;
}

static int run_record(struct record_command *w, struct error *err)
{
	struct record_result r;
	if (!w->o.output)
		w->o.output = w->dir = default_dir();
	if (w->flight)
		return run_flight(w, err);
	int rc = record_run(&w->o, &r, err);
	if (rc == 0) {
		printf("%s\n", w->o.output);
		rc = show_answer(w, print_result(&r, err), err);
	}
	record_release(&r);
	return rc;
}

int cmd_record(int argc, char **argv, struct error *err)
{
	struct record_command w = {
		.o = { .root = "", .clock = "auto", .stop = &stop, .fire = &fire, .on_message = print_progress }, .how = REPORT_HOW
	};
	int rc = parse_options(&w, argc, argv, err);
	w.o.arg = &w;
	if (rc == 0 && w.listed) {
		rc = record_requests_print(strcmp(w.listed, "tables") == 0 ? "" : w.listed, w.how, err);
	} else if (rc == 0) {
		catch_signals();
		if (!w.cleanup)
			open_counters(&w);
		if (!w.cleanup && !w.check)
			open_throttled(&w);
		rc = w.cleanup ? record_cleanup(&w.o, err) : w.check ? check_recording(&w, err) : run_record(&w, err);
	}
	counter_program_close(w.counters);
	throttle_program_close(w.throttled);
	free(w.requested);
	free(w.event.item);
	free(w.trigger.item);
	free(w.requests.item);
	free(w.guest_requests.item);
	free(w.dir);
	return rc;
}
