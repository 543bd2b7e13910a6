/* stealscope top: shows, period by period, who takes CPU time from VMs, control groups and processes. */
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "base/base.h"
#include "cli/cli.h"
#include "cli/opts.h"
#include "cli/display_options.h"
#include "cli/live_assertion.h"
#include "cli/top_recorder.h"
#include "live/live.h"
#include "report/report.h"
#include "ui/ui.h"

#define MAX_ASSERTIONS 32
#define TEXT_VICTIMS 20
#define TEXT_CULPRITS 3  /* culprits of a vCPU in text: the first ones */

static volatile sig_atomic_t stop;

static void on_signal(int sig)
{
	(void)sig;
	stop = 1;
}

struct top_command {
	struct live_request request;
	struct opt_list pid, comm, assert;
	struct live_assertion assertion[MAX_ASSERTIONS];
	const char *periods, *delay, *top;
	size_t most;               /* victims in a table: the first ones; SIZE_MAX: all */
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
	{ "group", "group", COL_TEXT },
	{ "machine", "name", COL_TEXT },
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
#define OWN_COLUMNS 17  /* columns that do not concern a culprit */

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
		VAL_INT(s->wall), VAL_INT(v->period), VAL_SHOWN(s->source), VAL_SHOWN(s->group[v->group].name),
		VAL_SHOWN(v->machine), value_of_int(v->number),
		VAL_INT(v->tid), value_of_int(v->cpu), VAL_INT(v->ns.ran), VAL_INT(v->ns.stolen), VAL_INT(v->ns.throttled),
		VAL_INT(v->ns.paused), VAL_INT(v->ns.blocked), VAL_INT(v->ns.unknown),
		s->has_bpf ? VAL_INT((int64_t)v->waits) : VAL_NONE, s->has_bpf ? VAL_INT(v->longest) : VAL_NONE,
		v->longest_culprit < 0 ? VAL_NONE : VAL_SHOWN(s->culprit[v->longest_culprit].name),
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

static const struct live_sample *sorted;  /* for by_loss() */

static int by_loss(const void *a, const void *b)
{
	const struct live_times *x = &sorted->vcpu[*(const size_t *)a].ns, *y = &sorted->vcpu[*(const size_t *)b].ns;
	const int64_t m = x->stolen + x->throttled, n = y->stolen + y->throttled;
	return m != n ? (m < n) - (m > n) : (x->ran < y->ran) - (x->ran > y->ran);
}

/* Writes the first `victims` of a sample by lost time, each with `most` culprits. */
static void report_sample(struct report *r, const struct live_sample *s, size_t victims, size_t most)
{
	size_t *order = mem_new(s->vcpus + 1, sizeof *order);
	for (size_t i = 0; i < s->vcpus; i++)
		order[i] = i;
	sorted = s;
	qsort(order, s->vcpus, sizeof *order, by_loss);
	for (size_t n = 0; n < s->vcpus && n < victims; n++) {
		const struct live_vcpu *v = &s->vcpu[order[n]];
		size_t culprits = 0;
		for (size_t k = 0; k < s->pairs && culprits < most; k++) {
			if (s->pair[k].vcpu != (int32_t)order[n])
				continue;
			report_victim(r, s, v, &s->pair[k]);
			culprits++;
		}
		if (!culprits && (!s->is_guest || v->ns.ran || v->ns.stolen || v->ns.throttled))
			report_victim(r, s, v, NULL);
	}
	free(order);
}

/* Prints where the figures of a table come from, and what they cost. */
static void print_source(const struct live_sample *s)
{
	printf("source %s", s->source);
	if (s->cost_ns > 0)
		printf(", %.0f ns per switch of %.0f per second", s->cost_ns, (double)s->switches * 1e9 / (double)s->period);
	printf(", stealscope %.1f %% of a CPU; load %.1f", 100 * s->own_share, s->load);
	if (s->pressure >= 0)
		printf(", CPU pressure %.0f %% (PSI)", 100 * s->pressure);
	printf("\n");
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
	struct report_shape shape = REPORT_SHAPE_DROPPING("top", columns, "vCPU TID pCPU waits");
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
			print_source(&s);
			report_sample(page, &s, t->most, TEXT_CULPRITS);
			rc = report_end(page, err);
			fflush(stdout);
		} else {
			report_sample(r, &s, t->top ? t->most : SIZE_MAX, SIZE_MAX);
			fflush(stdout);
		}
		for (size_t k = 0; k < t->assert.len && rc == 0; k++)
			rc = live_assertion_check(&t->assertion[k], l, &s, err);
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
		{ "top", 0, OPT_TEXT, "N", "-b: the N victims that lost most (text: 20; 0: all)", &t->top, NULL },
		{ "assert", 0, OPT_LIST, "WHEN", "exit with 3 unless it holds: 'web.steal<10%'", &t->assert, NULL },
		{ "pid", 'p', OPT_LIST, "PID", "watch the threads of this process, or this thread", &t->pid, NULL },
		{ "comm", 0, OPT_LIST, "NAME", "watch all threads with this name", &t->comm, NULL },
		{ "no-bpf", 0, OPT_FLAG, NULL, "use schedstat: culprits are lower bounds", &t->request.without_bpf, NULL },
		{ "root", 0, OPT_TEXT, "DIR", "directory with proc, sys and run", &t->request.root, NULL },
		DISPLAY_OPTIONS(&t->ui, &theme_names),
		ANSWER_OPTIONS(&t->how),
	};
	const struct opts opts = { "top", "Show live who takes CPU time from VMs, groups and processes.", opt,
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
	t->most = t->top ? strtoul(t->top, &end, 10) : TEXT_VICTIMS;
	if (t->top && (end == t->top || *end || *t->top == '-'))
		return error_set(err, STATUS_USAGE, "for example --top 10", "--top: not a number: '%s'", t->top);
	if (t->most == 0)
		t->most = SIZE_MAX;
	if (t->assert.len > MAX_ASSERTIONS)
		return error_set(err, STATUS_USAGE, NULL, "--assert: more than %d", MAX_ASSERTIONS);
	for (size_t i = 0; i < t->assert.len; i++)
		if (live_assertion_parse(t->assert.item[i], &t->assertion[i], err))
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
