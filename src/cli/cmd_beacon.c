/* stealscope beacon: emits sync events from inside a guest. */
#include <signal.h>

#include "base/base.h"
#include "beacon/beacon.h"
#include "cli/cli.h"
#include "cli/opts.h"
#include "report/report.h"

static volatile int stop;

static void on_signal(int sig)
{
	(void)sig;
	stop = 1;
}

static const struct column columns[] = {
	{ "what", "what", COL_TEXT },
	{ "median_ns", "median", COL_DURATION },
};

/* Measures a pulse's cost. (Table 1 of the paper has the results with and without a tracing session.) */
static int print_measurement(const struct beacon_options *o, unsigned rounds, struct report_how how, struct error *err)
{
	struct beacon_cost cost;
	if (beacon_measure(o, rounds, &cost, err))
		return -1;
	static const struct report_shape shape = REPORT_SHAPE("beacon", columns);
	struct report *r = report_begin(stdout, how, &shape, NULL);
	report_row(r, (struct value[]){ VAL_TEXT("text in the kernel trace"), VAL_INT(cost.write_ns) });
	report_row(r, (struct value[]){ VAL_TEXT("hypercall round trip"), VAL_INT(cost.hypercall_ns) });
	report_row(r, (struct value[]){ VAL_TEXT("whole pulse"), VAL_INT(cost.pulse_ns) });
	return report_end(r, err);
}

static int run_beacon(const struct beacon_options *o, struct error *err)
{
	struct sigaction sa = { .sa_handler = on_signal };
	sigemptyset(&sa.sa_mask);
	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	struct beacon_counts counts;
	if (beacon_run(o, &stop, &counts, err))
		return -1;
	printf("uid %" PRIu32 ": %" PRIu64 " pulses, %" PRIu64 " times idle, %" PRIu64 " while tracing was off\n", counts.uid,
	       counts.pulses, counts.skipped, counts.not_traced);
	return 0;
}

int cmd_beacon(int argc, char **argv, struct error *err)
{
	struct beacon_options o = { .rate = 10 };
	const char *rate = NULL, *duration = NULL;
	unsigned rounds = 1000, uid = 0;
	bool measure = false;
	struct report_how how = REPORT_HOW;
	const struct opt opt[] = {
		{ "rate", 0, OPT_TEXT, "HZ", "pulses per second (default 10)", &rate, NULL },
		{ "duration", 0, OPT_TEXT, "TIME", "duration (default: until Ctrl-C)", &duration, NULL },
		{ "output", 0, OPT_TEXT, "FILE", "file for writing into the kernel trace", &o.output, NULL },
		{ "uid", 0, OPT_COUNT, "N", "number of this guest (default: drawn at random)", &uid, NULL },
		{ "keep-idle", 0, OPT_FLAG, NULL, "pulse even if the guest is idle", &o.keep_idle, NULL },
		{ "measure", 0, OPT_FLAG, NULL, "print the cost of a pulse", &measure, NULL },
		{ "rounds", 0, OPT_COUNT, "N", "number of measurements (default 1000)", &rounds, NULL },
		ANSWER_OPTIONS(&how),
	};
	const struct opts opts = { "beacon", "Emit clock-synchronization events; runs in a guest.", opt,
	                           sizeof opt / sizeof *opt, 0, 0 };
	int first;
	if (opts_parse(&opts, argc, argv, &first, err))
		return -1;
	o.uid = uid;
	char *rest = NULL;
	if (rate && ((o.rate = strtod(rate, &rest)), rest == rate || *rest || !(o.rate >= 0.01 && o.rate <= 10000)))
		return error_set(err, STATUS_USAGE, "use 0.01 to 10000", "--rate: not a rate: '%s'", rate);
	if (duration && (!time_parse_duration(duration, &o.duration) || o.duration <= 0))
		return error_set(err, STATUS_USAGE, "for example 30s or 5min", "--duration: not a duration: '%s'", duration);
	return measure ? print_measurement(&o, rounds, how, err) : run_beacon(&o, err);
}
