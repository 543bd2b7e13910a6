/* stealscope record: this host and its guests, recorded at the same time, and what that shows. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/timefmt.h"
#include "cli/cli.h"
#include "cli/opts.h"
#include "cli/worst_vcpu.h"
#include "record/record.h"
#include "report/report.h"

#define USUAL 10000000000  /* ns that are recorded when nothing is said */
#define USUAL_MOST 10      /* that are kept of a flight */
#define SECOND 1000000000
#define HOUR (3600LL * SECOND)

static volatile int stop, fire;

/* The first one ends the recording, the second one does not wait for guests. */
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
	struct sigaction sa = { .sa_handler = on_signal }, was;
	sigemptyset(&sa.sa_mask);
	for (size_t i = 0; i < sizeof caught / sizeof *caught; i++)
		if (caught[i] != SIGHUP || sigaction(SIGHUP, NULL, &was) || was.sa_handler != SIG_IGN)  /* nohup(1) */
			sigaction(caught[i], &sa, NULL);
	sa.sa_handler = on_fire;
	sigaction(SIGUSR1, &sa, NULL);
}

static void say(void *arg, const char *line)
{
	char escaped[2048];
	(void)arg;
	fprintf(stderr, "stealscope: %s\n", text_escape(escaped, sizeof escaped, line));
}

/* ---- what the user writes */

struct wanted_recording {
	struct record_options o;
	struct record_wish *wish;
	struct opt_list event, trigger;
	const char *duration, *most;
	char *folder;
	const char *then;
	bool check, cleanup, no_index, flight;
	bool half;             /* of a flight that was kept something is missing */
	pid_t *child;          /* that indexes what was kept of a flight */
	size_t children, children_cap;
	struct report_how how;
};

/* "web", or "db=ssh:root@db3". */
static void add_wishes(struct wanted_recording *w, char **operand, int operands)
{
	w->wish = mem_new((size_t)operands, sizeof *w->wish);
	for (int i = 0; i < operands; i++) {
		char *eq = strchr(operand[i], '=');
		if (eq)
			*eq = '\0';
		w->wish[i] = (struct record_wish){ operand[i], eq ? eq + 1 : NULL };
	}
	w->o.wish = w->wish;
	w->o.wishes = (size_t)operands;
}

static int read_duration(struct wanted_recording *w, struct error *err)
{
	w->o.duration = w->o.command ? 0 : USUAL;
	if (w->flight)
		w->o.hold = USUAL;
	if (!w->duration)
		return 0;
	if (!time_parse_duration(w->duration, &w->o.duration) || w->o.duration <= 0 || w->o.duration > (int64_t)1e15)
		return error_set(err, STATUS_USAGE, "-t 30s, -t 5min", "--time: not a duration: '%s'", w->duration);
	if (w->flight && (w->o.duration < SECOND || w->o.duration > HOUR))
		return error_set(err, STATUS_USAGE, "from 1s to 1h", "--time: a flight cannot keep %s", w->duration);
	if (w->flight) {
		w->o.hold = w->o.duration;
		w->o.duration = 0;
	}
	return 0;
}

static int read_flight(struct wanted_recording *w, struct error *err)
{
	char *rest = NULL;
	w->o.trigger = w->trigger.item;
	w->o.triggers = w->trigger.len;
	w->o.most = USUAL_MOST;
	if (!w->flight && (w->trigger.len || w->most))
		return error_set(err, STATUS_USAGE, "--flight", "--trigger and --keep are of flights");
	if (w->most)
		w->o.most = strtoul(w->most, &rest, 10);
	if (rest && (rest == w->most || *rest || *w->most == '-' || !w->o.most))
		return error_set(err, STATUS_USAGE, "--keep 10", "--keep: not a number: '%s'", w->most);
	return 0;
}

/* The folder of a recording that nobody named. */
static char *usual_folder(void)
{
	char text[64];
	const time_t now = time(NULL);
	struct tm tm;
	localtime_r(&now, &tm);
	strftime(text, sizeof text, "stealscope-%Y%m%d-%H%M%S", &tm);
	return mem_dup(text);
}

static int parse(struct wanted_recording *w, int argc, char **argv, struct error *err)
{
	static const char *const clocks[] = { "auto", "x86-tsc", "mono", NULL };
	const struct opt opt[] = {
		{ "time", 't', OPT_TEXT, "DURATION", "how long (default: 10s, or as long as COMMAND runs)", &w->duration, NULL },
		{ "output", 'o', OPT_TEXT, "DIR", "folder of the recording (default: stealscope-TIME)", &w->o.output, NULL },
		{ "check", 0, OPT_FLAG, NULL, "only say what would be recorded, and what not", &w->check, NULL },
		{ "cleanup", 0, OPT_FLAG, NULL, "remove what killed recordings left here and in guests", &w->cleanup, NULL },
		{ "host-only", 0, OPT_FLAG, NULL, "go into no guest", &w->o.host_only, NULL },
		{ "event", 'e', OPT_LIST, "SYSTEM:NAME", "record this event, too", &w->event, NULL },
		{ "clock", 0, OPT_TEXT, "CLOCK", "auto, x86-tsc or mono", &w->o.clock, clocks },
		{ "flight", 0, OPT_FLAG, NULL, "keep the last DURATION whenever a trigger fires", &w->flight, NULL },
		{ "trigger", 0, OPT_LIST, "WHEN", "gap(VM)>20ms, steal(VM)>30% for 1s, load>8, ...", &w->trigger, NULL },
		{ "keep", 0, OPT_TEXT, "N", "end a flight when N were kept (default: 10)", &w->most, NULL },
		{ "then", 0, OPT_TEXT, "WORDS", "what to do with it: 'view', 'explain web/CPU0' ...", &w->then, NULL },
		{ "no-index", 0, OPT_FLAG, NULL, "do not index it, nor say what it shows", &w->no_index, NULL },
		{ "root", 0, OPT_TEXT, "DIR", "where /proc, /sys and /run are found", &w->o.root, NULL },
		ANSWER_OPTIONS(&w->how),
	};
	const struct opts opts = { "record [VM[=WAY]...] [-- COMMAND]",
	                           "Records this host and its virtual machines, and says who took what from whom.\n"
	                           "WAY, into a guest: ssh:[USER@]HOST, qga:, vsock:[CID]:PORT, agent:, cmd:COMMAND,\nor none.",
	                           opt, sizeof opt / sizeof *opt, 0, -1 };
	int first, own = 1;
	while (own < argc && strcmp(argv[own], "--") != 0)
		own++;
	w->o.command = own + 1 < argc ? argv + own + 1 : NULL;
	if (opts_parse(&opts, own, argv, &first, err))
		return -1;
	w->o.event = w->event.item;
	w->o.events = w->event.len;
	add_wishes(w, argv + first, own - first);
	return read_duration(w, err) || read_flight(w, err) ? -1 : 0;
}

/* ---- what comes of it */

static const struct column columns[] = {
	{ "machine", "machine", COL_TEXT },
	{ "cpus", "CPUs", COL_INT },
	{ "through", "through", COL_TEXT },
	{ "recorded", "recorded", COL_TEXT },
	{ "about", "what", COL_TEXT },
	{ "why", NULL, COL_TEXT },
	{ "mend", NULL, COL_TEXT },
};

static int print_check(const struct record_result *r, struct report_how how, struct error *err)
{
	static const struct report_shape shape = REPORT_SHAPE("record-check", columns);
	struct report *report = report_begin(stdout, how, &shape, NULL);
	for (size_t i = 0; i < r->machines; i++) {
		const struct record_machine *m = &r->machine[i];
		report_row(report, (struct value[]){
			VAL_TEXT(m->name), m->cpus ? VAL_INT((int64_t)m->cpus) : VAL_NONE, VAL_TEXT(m->through),
			VAL_TEXT(m->recorded ? "yes" : m->asked ? "no" : "host's side"), VAL_TEXT(m->about), VAL_SHOWN(m->why.text),
			VAL_SHOWN(m->why.mend) });
	}
	return report_end(report, err);
}

static void print_machine(const struct record_machine *m)
{
	const char *lost = "a shorter time, fewer events on that machine, or more memory for its buffers";
	char line[2048];
	if (*m->why.text)
		snprintf(line, sizeof line, "%s: %s: %s%s%s%s", m->name, m->recorded ? "recorded, but" : "not recorded",
		         m->why.text, *m->why.mend ? " (" : "", m->why.mend, *m->why.mend ? ")" : "");
	else if (m->lost)
		snprintf(line, sizeof line, "%s: %llu events were lost (%s)", m->name, (unsigned long long)m->lost, lost);
	else
		return;
	say(NULL, line);
}

/* Returns whether all is there, as a status. */
static int tell(const struct record_result *r, struct error *err)
{
	for (size_t i = 0; i < r->machines; i++)
		print_machine(&r->machine[i]);
	if (WIFEXITED(r->command_status) && WEXITSTATUS(r->command_status))
		fprintf(stderr, "stealscope: the command ended with status %d\n", WEXITSTATUS(r->command_status));
	if (r->whole)
		return 0;
	return error_set(err, STATUS_INCOMPLETE, "see above", "not all that was asked for was recorded");
}

static int check(struct wanted_recording *w, struct error *err)
{
	struct record_result r;
	int rc = record_check(&w->o, &r, err);
	if (rc == 0) {
		bool whole = true;
		rc = print_check(&r, w->how, err);
		for (size_t i = 0; i < r.machines; i++) {
			whole &= !r.machine[i].asked || r.machine[i].recorded;
			if (w->how.format == FORMAT_TEXT && *r.machine[i].why.text)
				printf("%s: %s%s%s%s\n", r.machine[i].name, r.machine[i].why.text, *r.machine[i].why.mend ? " (" : "",
				       r.machine[i].why.mend, *r.machine[i].why.mend ? ")" : "");
		}
		if (rc == 0 && !whole)
			rc = error_set(err, STATUS_INCOMPLETE, "each row says what to do", "not all of it can be recorded");
	}
	record_release(&r);
	return rc;
}

/* "explain web/CPU0" -> stealscope explain DIR web/CPU0, in a process of its own. */
static void become(const char *words, char *folder)
{
	char *copy = mem_dup(words), *rest = NULL;
	char **argv = mem_new(strlen(words) / 2 + 5, sizeof *argv);
	size_t n = 0;
	argv[n++] = "stealscope";
	for (char *word = strtok_r(copy, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
		argv[n++] = word;
		if (n == 2)
			argv[n++] = folder;
	}
	execv("/proc/self/exe", argv);
	_exit(STATUS_SYSTEM);
}

static int go_on(const char *words, char *folder, struct error *err)
{
	int status = 0;
	fflush(NULL);
	const pid_t child = fork();
	if (child == 0)
		become(words, folder);
	while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
		continue;
	if (child < 0)
		return error_system(err, NULL, "--then %s", words);
	if (status == 0)
		return 0;
	const enum status own = WIFEXITED(status) ? (enum status)WEXITSTATUS(status) : STATUS_SYSTEM;
	const char *url = strstr(words, "://");  /* what stands there may be a password */
	return error_set(err, own, "the recording is there: try it by hand", "--then '%.*s%s' failed",
	                 url ? (int)(url - words) : (int)strlen(words), words, url ? "://..." : "");
}

/* What it shows.  The recording is there, and its own status counts, whatever comes of this. */
static int show(const struct wanted_recording *w, int status, struct error *err)
{
	struct error why = ERROR_INIT;
	if (w->no_index || stop > 1)
		return status;
	signal(SIGINT, SIG_DFL);
	signal(SIGTERM, SIG_DFL);
	char *folder = mem_dup(w->o.output);
	const int rc = w->then ? go_on(w->then, folder, &why) : verdict_print(folder, &why);
	free(folder);
	if (rc && status == 0)
		*err = why;
	return rc ? -1 : status;
}

/* One was kept of a flight, which goes on meanwhile. */
static void keep(void *arg, const char *folder, const struct record_result *r)
{
	struct wanted_recording *w = arg;
	struct error err = ERROR_INIT;
	printf("%s\n", folder);
	w->half |= tell(r, &err) != 0;
	fflush(NULL);
	if (w->no_index)
		return;
	const pid_t child = fork();
	if (child == 0) {
		char *copy = mem_dup(folder);
		signal(SIGINT, SIG_IGN);
		signal(SIGTERM, SIG_DFL);
		const int rc = w->then ? go_on(w->then, copy, &err) : verdict_print(copy, &err);
		fflush(NULL);
		_exit(rc ? 1 : 0);
	}
	if (child > 0)
		*ARRAY_PUSH(w->child, w->children, w->children_cap) = child;
}

static int fly(struct wanted_recording *w, struct error *err)
{
	struct record_result r;
	w->o.kept = keep;
	int rc = record_run(&w->o, &r, err);
	for (size_t i = 0; i < w->children; i++)
		while (waitpid(w->child[i], NULL, 0) < 0 && errno == EINTR)
			if (stop > 1)
				kill(w->child[i], SIGTERM);
	free(w->child);
	record_release(&r);
	if (rc == 0 && w->half)
		rc = error_set(err, STATUS_INCOMPLETE, "see above", "not all that was asked for was recorded");
	return rc;
}

static int record(struct wanted_recording *w, struct error *err)
{
	struct record_result r;
	if (!w->o.output)
		w->o.output = w->folder = usual_folder();
	if (w->flight)
		return fly(w, err);
	int rc = record_run(&w->o, &r, err);
	if (rc == 0) {
		printf("%s\n", w->o.output);
		rc = show(w, tell(&r, err), err);
	}
	record_release(&r);
	return rc;
}

int cmd_record(int argc, char **argv, struct error *err)
{
	struct wanted_recording w = { .o = { .root = "", .clock = "auto", .stop = &stop, .fire = &fire, .say = say },
		.how = REPORT_HOW };
	int rc = parse(&w, argc, argv, err);
	w.o.arg = &w;
	if (rc == 0) {
		catch_signals();
		rc = w.cleanup ? record_cleanup(&w.o, err) : w.check ? check(&w, err) : record(&w, err);
	}
	free(w.wish);
	free(w.event.item);
	free(w.trigger.item);
	free(w.folder);
	return rc;
}
