/* stealscope top: shows, period by period, who takes CPU time from the VMs of this host. */
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/number.h"
#include "base/text.h"
#include "base/timefmt.h"
#include "cli/cli.h"
#include "cli/opts.h"
#include "cli/display_options.h"
#include "cli/top_recorder.h"
#include "live/live.h"
#include "report/report.h"
#include "ui/ui.h"

#define MAX_ASSERTIONS 32
#define TEXT_CULPRITS 3  /* culprits of a vCPU in text: the first ones */

static volatile sig_atomic_t stop;

static void on_signal(int sig)
{
	(void)sig;
	stop = 1;
}

/* An assertion "VM.COLUMN<PERCENT%"; VM "*": every VM. */
struct top_assertion {
	const char *text;
	char machine[LIVE_NAME];
	enum { ASSERT_STEAL, ASSERT_THROTTLED, ASSERT_RUN } column;
	double limit;
};

struct top_command {
	struct live_request request;
	struct opt_list pid, comm, assert;
	struct top_assertion assertion[MAX_ASSERTIONS];
	const char *periods, *delay;
	unsigned long rounds;      /* 0: no limit */
	int64_t period;            /* ns */
	bool batch, failed;
	struct report_how how;
	struct ui_options ui;
};

/* ---- batch */

static const struct column columns[] = {
	{ "time", "time", COL_CLOCK },
	{ "period_ns", NULL, COL_INT },
	{ "source", NULL, COL_UNCUT },
	{ "machine", "machine", COL_TEXT },
	{ "cpu", "vCPU", COL_INT },
	{ "tid", "TID", COL_INT },
	{ "host_cpu", "pCPU", COL_INT },
	{ "ran_ns", "ran", COL_DURATION },
	{ "stolen_ns", "stolen", COL_DURATION },
	{ "throttled_ns", "throttled", COL_DURATION },
	{ "paused_ns", NULL, COL_DURATION },
	{ "blocked_ns", NULL, COL_DURATION },
	{ "unknown_ns", NULL, COL_DURATION },
	{ "waits", "waits", COL_INT },
	{ "longest_ns", "max wait", COL_DURATION },
	{ "longest_culprit", NULL, COL_TEXT },
	{ "culprit_kind", NULL, COL_UNCUT },
	{ "culprit_pid", NULL, COL_INT },
	{ "culprit", "taken by", COL_TEXT },
	{ "culprit_ns", "of that", COL_DURATION },
	/* only if cores have two CPUs: running time beside a busy CPU of the core, and its longest user */
	{ "shared_ns", "shared", COL_DURATION },
	{ "top_sharer", "top sharer", COL_TEXT },
	{ "top_sharer_ns", NULL, COL_DURATION },
};
#define CORE_COLUMNS 3
#define OWN_COLUMNS 16  /* columns that do not concern a culprit */

static struct value value_of_int(int64_t n)
{
	return n < 0 ? VAL_NONE : VAL_INT(n);
}

/* Writes the row of a victim and one culprit; pair NULL: without culprit. */
static void report_victim(struct report *r, const struct live_sample *s, const struct live_vcpu *v,
                          const struct live_pair *pair)
{
	const struct live_culprit *c = pair ? &s->culprit[pair->culprit] : NULL;
	struct value value[sizeof columns / sizeof *columns] = {
		VAL_INT(s->wall), VAL_INT(s->period), VAL_SHOWN(s->source), VAL_SHOWN(v->machine), value_of_int(v->number),
		VAL_INT(v->tid), value_of_int(v->cpu), VAL_INT(v->ns.ran), VAL_INT(v->ns.stolen), VAL_INT(v->ns.throttled),
		VAL_INT(v->ns.paused), VAL_INT(v->ns.blocked), VAL_INT(v->ns.unknown), VAL_INT((int64_t)v->waits),
		VAL_INT(v->longest), v->longest_culprit < 0 ? VAL_NONE : VAL_SHOWN(s->culprit[v->longest_culprit].name),
		VAL_NONE, VAL_NONE, VAL_NONE, VAL_NONE, value_of_int(v->shared),
		v->sharer < 0 ? VAL_NONE : VAL_SHOWN(s->culprit[v->sharer].name),
		v->sharer < 0 ? VAL_NONE : VAL_INT(v->sharer_ns) };
	if (c) {
		value[OWN_COLUMNS] = VAL_SHOWN(live_kind_name[c->kind]);
		value[OWN_COLUMNS + 1] = c->pid ? VAL_INT(c->pid) : VAL_NONE;
		value[OWN_COLUMNS + 2] = VAL_SHOWN(c->name);
		value[OWN_COLUMNS + 3] = VAL_INT(pair->ns);
	}
	report_row(r, value);
}

static void report_sample(struct report *r, const struct live_sample *s, size_t most)
{
	for (size_t i = 0; i < s->vcpus; i++) {
		size_t culprits = 0;
		for (size_t k = 0; k < s->pairs; k++) {
			if (s->pair[k].vcpu != (int32_t)i || culprits == most)
				continue;
			report_victim(r, s, &s->vcpu[i], &s->pair[k]);
			culprits++;
		}
		if (!culprits && (!s->is_guest || s->vcpu[i].ns.ran || s->vcpu[i].ns.stolen))
			report_victim(r, s, &s->vcpu[i], NULL);
	}
}

/* ---- assertions */

static int parse_assertion(const char *text, struct top_assertion *a, struct error *err)
{
	static const char *const column[] = { "steal", "throttled", "run" };
	const char *less = strchr(text, '<');
	char *end = NULL;
	const double limit = less ? strtod(less + 1, &end) : 0;
	a->text = text;
	a->limit = limit / 100;
	for (int i = 0; less && i < 3; i++) {
		const size_t n = strlen(column[i]);
		if ((size_t)(less - text) > n + 1 && less[-(long)n - 1] == '.' && strncmp(less - n, column[i], n) == 0 &&
		    end != less + 1 && strcmp(end, "%") == 0 && isfinite(limit) && limit >= 0) {
			a->column = (unsigned)i;
			snprintf(a->machine, sizeof a->machine, "%.*s", (int)((size_t)(less - text) - n - 1), text);
			return 0;
		}
	}
	return error_set(err, STATUS_USAGE, "for example 'web.steal<10%' or '*.throttled<5%'", "--assert: invalid: '%s'", text);
}

/* Checks the assertions: each vCPU of the machine, in each period. */
static int check_sample(struct top_command *t, const struct live_sample *s, struct error *err)
{
	for (size_t i = 0; i < t->assert.len; i++) {
		const struct top_assertion *a = &t->assertion[i];
		bool found = false;
		for (size_t k = 0; k < s->vcpus; k++) {
			const struct live_vcpu *v = &s->vcpu[k];
			if (strcmp(a->machine, "*") != 0 && strcmp(a->machine, v->machine) != 0)
				continue;
			const int64_t ns = a->column == ASSERT_STEAL ? v->ns.stolen :
			                   a->column == ASSERT_RUN ? v->ns.ran : v->ns.throttled;
			found = true;
			if ((double)ns >= a->limit * (double)s->period)
				return error_set(err, STATUS_ASSERTION, NULL, "%s does not hold: vCPU %d of %s has %.1f %%", a->text,
				                 v->number, v->machine, 100 * (double)ns / (double)s->period);
		}
		if (!found && strcmp(a->machine, "*") != 0)
			return error_set(err, STATUS_INPUT, "see stealscope record --check", "--assert %s: no VM has this name",
			                 a->text);
	}
	return 0;
}

/* ---- rounds */

static void wait_period(struct live *l, int64_t until)
{
	for (int64_t now = now_ns(); !stop && now < until; now = now_ns()) {
		const struct timespec ts = timespec_of(min64(until - now, NS_PER_S / 4));
		nanosleep(&ts, NULL);
		live_flush(l);
	}
}

static int run_batch(struct top_command *t, struct live *l, struct error *err)
{
	struct report_shape shape = REPORT_SHAPE_DROPPING("top", columns, "vCPU TID pCPU throttled waits");
	shape.columns -= live_has_siblings(l) ? 0 : CORE_COLUMNS;
	int rc = 0;
	int64_t next = now_ns();
	struct report *r = t->how.format == FORMAT_TEXT ? NULL : report_begin(stdout, t->how, &shape, NULL);
	if (live_limits(l))
		fprintf(stderr, "stealscope: without BPF, so culprits are lower bounds: %s\n", live_limits(l)->text);
	for (unsigned long i = 0; !stop && rc == 0 && (!t->rounds || i < t->rounds); i++) {
		struct live_sample s;
		next += t->period;
		wait_period(l, next);
		live_take(l, &s);
		if (!r) {
			struct report *page = report_begin(stdout, t->how, &shape, NULL);
			report_sample(page, &s, TEXT_CULPRITS);
			rc = report_end(page, err);
			fflush(stdout);
		} else {
			report_sample(r, &s, SIZE_MAX);
			fflush(stdout);
		}
		if (rc == 0)
			rc = check_sample(t, &s, err);
		live_sample_release(&s);
	}
	if (r && report_end(r, rc ? NULL : err))
		rc = -1;
	return rc;
}

static int run_screen(struct top_command *t, struct live *l, struct error *err)
{
	struct top_recorder recorder = TOP_RECORDER_INIT;
	const struct ui_top_actions actions = { &recorder, top_recorder_record, top_recorder_arm, top_recorder_flight,
		top_recorder_snapshot, top_recorder_open };
	const int rc = ui_top(l, t->period, t->rounds, &t->ui, &actions, err);
	top_recorder_close(&recorder);
	return rc;
}

static int parse_options(struct top_command *t, int argc, char **argv, struct error *err)
{
	const struct theme_names theme_names = display_options_themes();
	const struct opt opt[] = {
		{ "batch", 'b', OPT_FLAG, NULL, "print tables instead of the screen", &t->batch, NULL },
		{ "periods", 'n', OPT_TEXT, "N", "end after N periods (-b: default 1; 0: no end)", &t->periods, NULL },
		{ "delay", 'd', OPT_TEXT, "SECONDS", "length of a period (default: 2)", &t->delay, NULL },
		{ "assert", 0, OPT_LIST, "WHEN", "exit with 3 unless it holds: 'web.steal<10%'", &t->assert, NULL },
		{ "pid", 'p', OPT_LIST, "PID", "watch this process or thread as well", &t->pid, NULL },
		{ "comm", 0, OPT_LIST, "NAME", "watch all threads with this name as well", &t->comm, NULL },
		{ "no-bpf", 0, OPT_FLAG, NULL, "use schedstat: culprits are lower bounds", &t->request.without_bpf, NULL },
		{ "root", 0, OPT_TEXT, "DIR", "directory with proc, sys and run", &t->request.root, NULL },
		DISPLAY_OPTIONS(&t->ui, &theme_names),
		ANSWER_OPTIONS(&t->how),
	};
	const struct opts opts = { "top", "Show live who takes CPU time from the VMs of this host.", opt,
	                           sizeof opt / sizeof *opt, 0, 0 };
	int first;
	char *end = NULL;
	if (opts_parse(&opts, argc, argv, &first, err))
		return -1;
	const double seconds = t->delay ? strtod(t->delay, &end) : 2;
	if (t->delay && (end == t->delay || (*end && strcmp(end, "s") != 0) || !(seconds >= 0.1 && seconds <= 3600)))
		return error_set(err, STATUS_USAGE, "for example -d 2", "--delay: not between 0.1 and 3600 seconds: '%s'",
		                 t->delay);
	t->period = (int64_t)(seconds * 1e9);
	t->batch |= t->how.format != FORMAT_TEXT || t->assert.len > 0;
	t->rounds = t->periods ? strtoul(t->periods, &end, 10) : t->batch;
	if (t->periods && (end == t->periods || *end || *t->periods == '-'))
		return error_set(err, STATUS_USAGE, "for example -n 5", "--periods: not a number: '%s'", t->periods);
	if (t->assert.len > MAX_ASSERTIONS)
		return error_set(err, STATUS_USAGE, NULL, "--assert: more than %d", MAX_ASSERTIONS);
	for (size_t i = 0; i < t->assert.len; i++)
		if (parse_assertion(t->assert.item[i], &t->assertion[i], err))
			return -1;
	t->request.pid = t->pid.item;
	t->request.pids = t->pid.len;
	t->request.comm = t->comm.item;
	t->request.comms = t->comm.len;
	return 0;
}

int cmd_top(int argc, char **argv, struct error *err)
{
	struct top_command t = { .request = { .root = "" }, .how = REPORT_WHOLE(FORMAT_TEXT) };
	struct sigaction sa = { .sa_handler = on_signal };
	int rc = parse_options(&t, argc, argv, err);
	if (rc == 0 && !t.batch && (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)))
		rc = error_set(err, STATUS_SYSTEM, "use -b", "top: standard input and output must be a terminal");
	struct live *l = rc == 0 ? live_open(&t.request, err) : NULL;
	if (l && t.batch) {
		sigaction(SIGINT, &sa, NULL);
		sigaction(SIGTERM, &sa, NULL);
		rc = run_batch(&t, l, err);
	} else if (l) {
		rc = run_screen(&t, l, err);
	} else {
		rc = -1;
	}
	live_close(l);
	free(t.pid.item);
	free(t.comm.item);
	free(t.assert.item);
	return rc;
}
