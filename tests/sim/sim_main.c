/* stealscope-sim: simulates a host and its guests; writes their traces and the truth. */
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/timefmt.h"
#include "simulate.h"

enum { O_SEED = 256, O_DURATION, O_EVENTS, O_PCPUS, O_BEACON, O_HOGS, O_BURST, O_OFFSET, O_DRIFT, O_PERFECT, O_LOST,
       O_DUP,
       O_BOGUS, O_JITTER, O_STEP, O_STEP_AT, O_PACKET, O_NO_KVM, O_NO_SCHED, O_NO_WAKEUPS, O_NO_TRUTH, O_PLAIN, O_BAD_ID, O_MISSING,
       O_LATE, O_CONTAINERS, O_NESTED, O_HOTPLUG, O_PLANT, O_WORK, O_SHARE, O_NICE, O_AFFINITY, O_WITHOUT, O_HIDE, O_POLL, O_SWAP,
       O_SIBLINGS, O_SLOWDOWN, O_COUNTERS, O_COUNTER_FAULTS, O_STEAL,
       O_QUOTA_FACTS };

static const struct option option[] = {
	{ "help", no_argument, NULL, 'h' }, { "version", no_argument, NULL, 'V' }, { "output", required_argument, NULL, 'o' },
	{ "seed", required_argument, NULL, O_SEED }, { "duration", required_argument, NULL, O_DURATION },
	{ "events", required_argument, NULL, O_EVENTS }, { "pcpus", required_argument, NULL, O_PCPUS },
	{ "beacon", required_argument, NULL, O_BEACON }, { "hogs", required_argument, NULL, O_HOGS },
	{ "burst", required_argument, NULL, O_BURST }, { "offset", required_argument, NULL, O_OFFSET },
	{ "drift", required_argument, NULL, O_DRIFT }, { "perfect-clocks", no_argument, NULL, O_PERFECT },
	{ "lost", required_argument, NULL, O_LOST }, { "sync-dup", required_argument, NULL, O_DUP },
	{ "sync-bogus", required_argument, NULL, O_BOGUS }, { "sync-jitter", required_argument, NULL, O_JITTER },
	{ "clock-step", required_argument, NULL, O_STEP }, { "clock-step-at", required_argument, NULL, O_STEP_AT },
	{ "packet", required_argument, NULL, O_PACKET }, { "no-kvm", no_argument, NULL, O_NO_KVM },
	{ "no-sched", no_argument, NULL, O_NO_SCHED },
	{ "no-wakeups", no_argument, NULL, O_NO_WAKEUPS },
	{ "no-truth", no_argument, NULL, O_NO_TRUTH }, { "plain-names", no_argument, NULL, O_PLAIN },
	{ "bad-vcpu-id", no_argument, NULL, O_BAD_ID }, { "missing", required_argument, NULL, O_MISSING },
	{ "late", no_argument, NULL, O_LATE }, { "containers", no_argument, NULL, O_CONTAINERS },
	{ "nested", no_argument, NULL, O_NESTED }, { "hotplug", no_argument, NULL, O_HOTPLUG },
	{ "plant", required_argument, NULL, O_PLANT }, { "work", required_argument, NULL, O_WORK },
	{ "poll", required_argument, NULL, O_POLL }, { "swap", required_argument, NULL, O_SWAP },
	{ "siblings", required_argument, NULL, O_SIBLINGS }, { "slowdown", required_argument, NULL, O_SLOWDOWN },
	{ "counters", no_argument, NULL, O_COUNTERS }, { "counter-faults", required_argument, NULL, O_COUNTER_FAULTS },
	{ "steal-clock", required_argument, NULL, O_STEAL }, { "quota-facts", required_argument, NULL, O_QUOTA_FACTS },
	{ "share", required_argument, NULL, O_SHARE }, { "nice", required_argument, NULL, O_NICE },
	{ "affinity", required_argument, NULL, O_AFFINITY }, { "without", required_argument, NULL, O_WITHOUT },
	{ "hide", required_argument, NULL, O_HIDE },
	{ NULL, 0, NULL, 0 },
};

static const char usage[] =
	"usage: stealscope-sim SCENARIO [N] [options] -o DIR\n"
	"\n"
	"Writes DIR/host, DIR/guest-NAME (CTF traces) and DIR/truth (CSV).  Scenarios:\n";

static const char options_text[] =
	"\n"
	"  -o, --output DIR        output directory (may exist)\n"
	"  --seed N                seed of all random numbers (1); same seed, same bytes\n"
	"  --duration T            simulated time, e.g. 3s, 250ms\n"
	"  --events N              stop after N records instead (k, M: thousand, million)\n"
	"  --pcpus N               CPUs of the host (1..64)\n"
	"  --siblings N            CPUs per core (1..8); also NUMA nodes and frequencies\n"
	"  --slowdown PERCENT      speed of a thread beside a busy CPU of its core; frequencies\n"
	"                          slow threads down, too (default: neither does)\n"
	"  --counters              instructions and cycles in the records of the host\n"
	"  --counter-faults F      reads per million at which a counter fails\n"
	"  --beacon HZ             beacons per second and vCPU (20); 0 = none\n"
	"  --hogs N, --burst N     requests: CPU hogs (1), mean requests per burst (3)\n"
	"  --work PERCENT          computation of a request (100)\n"
	"  --plant CAUSE           planted: vm, crowd, pin, light, idle, weight, exits,\n"
	"                          quota, slow, or none; tenant: hog, peer, quota, pause,\n"
	"                          migration, hotplug, quiet, or mix; victims: server,\n"
	"                          floor, own, recorder, or beside\n"
	"  --quota-facts KIND      facts on quotas of groups and VMs: switches (of throttled\n"
	"                          threads), queue (as before Linux 6.18), stat (cpu.stat),\n"
	"                          session (only groups), none\n"
	"  --steal-clock WHERE     guests record their steal clock: switch (and timers), tick\n"
	"  --share PERCENT         planted: weight of the server's vCPU (100: nice 0)\n"
	"  --nice LEVEL            planted: nice level of the server's vCPU (0)\n"
	"  --affinity MASK         planted: CPUs of the server's vCPU, one bit each\n"
	"  --without NAME          planted: cc, burnP6 or make is left out\n"
	"  --containers            random: some threads of the host live in a container\n"
	"  --hotplug               random: VMs, and their CPUs, come and go\n"
	"  --poll T                the host polls for halted vCPUs for up to T (0)\n"
	"  --swap SHARE            share of page faults that wait for the host (0)\n"
	"  --nested                nested handlers; random: VMs may run inside a VM\n"
	"  --offset T, --drift PPM of all guests' clocks, instead of the scenario's\n"
	"  --perfect-clocks        the same as --offset 0 --drift 0\n"
	"  --packet BYTES          size of the streams' packets (65536)\n"
	"  --no-truth              do not write DIR/truth\n"
	"faults:\n"
	"  --lost SHARE            share of the records to discard, in bursts (0..0.99)\n"
	"  --missing NAME          leave out that guest's trace, or \"host\" (repeatable)\n"
	"  --late                  random: some guests' traces begin late or end early\n"
	"  --no-sched              no sched events in all traces\n"
	"  --no-wakeups            no sched_waking, sched_wakeup and sched_wakeup_new\n"
	"  --hide NAME             threads of this name are current in no record\n"
	"  --no-kvm                no kvm events in the host's trace\n"
	"  --plain-names           all threads of a VM are called qemu-system-x86\n"
	"  --bad-vcpu-id           vcpu_id fields hold rubbish\n"
	"  --sync-jitter T         delays up to T around the hypercalls of the beacon\n"
	"  --sync-dup SHARE        share of sync events that occur twice\n"
	"  --sync-bogus SHARE      share of sync events with a wrong key\n"
	"  --clock-step T          guests' clocks jump ahead by T, or back (-T)\n"
	"  --clock-step-at SHARE   ... at this share of the duration (0.5)\n";

static bool number(const char *text, int64_t lo, int64_t hi, int64_t *out)
{
	char *end;
	long long v;

	errno = 0;
	v = strtoll(text, &end, 10);
	if (end == text || errno)
		return false;
	if ((*end == 'k' || *end == 'M') && v < INT64_C(1000000000)) {
		v *= *end == 'k' ? 1000 : 1000000;
		end++;
	}
	*out = v;
	return !*end && v >= lo && v <= hi;
}

/* Parses a decimal number times `scale`, rounded; lo and hi are in units of the text. */
static bool decimal(const char *text, double lo, double hi, double scale, int64_t *out)
{
	char *end;
	double v = strtod(text, &end);

	if (end == text || *end || !(v >= lo && v <= hi))
		return false;
	*out = (int64_t)llround(v * scale);
	return true;
}

static bool unsigned_option(int opt, const char *arg, struct options *o)
{
	int64_t v = 0;
	bool ok = true;

	switch (opt) {
	case O_SEED:
		ok = number(arg, 0, INT64_MAX, &v);
		o->seed = (uint64_t)v;
		break;
	case O_EVENTS:
		ok = number(arg, 1, INT64_C(100000000000), &v);
		o->events = (uint64_t)v;
		break;
	case O_PCPUS:
		ok = number(arg, 1, CPUS_MAX, &o->pcpus);
		break;
	case O_BEACON:
		ok = number(arg, 0, 10000, &o->beacon_hz);
		break;
	case O_SIBLINGS:
		ok = number(arg, 1, 8, &o->siblings);
		break;
	case O_SLOWDOWN:
		ok = number(arg, 1, 100, &o->slowdown);
		break;
	case O_COUNTER_FAULTS:
		ok = number(arg, 0, 1000000, &o->counter_faults);
		break;
	case O_HOGS:
		ok = number(arg, 0, 1000, &o->hogs);
		break;
	case O_SHARE:
		return number(arg, 1, 10000, &o->share);
	case O_AFFINITY:
		return number(arg, 1, INT64_MAX, &o->affinity);
	case O_NICE:
		return number(arg, -20, 19, &o->nice);
	case O_WORK:
		ok = number(arg, 1, 10000, &o->work);
		break;
	case O_BURST:
		ok = number(arg, 1, 30, &o->burst);
		break;
	default:
		ok = number(arg, 1024, 1 << 24, &o->packet);
		break;
	}
	return ok;
}

static bool steal_option(const char *arg, struct options *o)
{
	o->steal_reads = !strcmp(arg, "switch") ? STEAL_SWITCH : !strcmp(arg, "tick") ? STEAL_TICK : STEAL_NONE;
	return o->steal_reads != STEAL_NONE;
}

static bool quota_option(const char *arg, struct options *o)
{
	static const char *const facts[] = { "", "switches", "queue", "stat", "session", "none" };

	for (size_t i = QUOTA_SWITCHES; i < sizeof facts / sizeof *facts; i++)
		if (!strcmp(arg, facts[i])) {
			o->quota_facts = (uint8_t)i;
			return true;
		}
	return false;
}

static bool fault_option(int opt, const char *arg, struct options *o)
{
	switch (opt) {
	case O_OFFSET:
		o->have_offset = true;
		return time_parse_duration(arg, &o->offset);
	case O_DRIFT:
		o->have_drift = true;
		return decimal(arg, -1000, 1000, 1000, &o->drift_ppb);
	case O_LOST:
		return decimal(arg, 0, 0.99, 1e6, &o->lost);
	case O_DUP:
		return decimal(arg, 0, 1, 1e6, &o->sync_dup);
	case O_BOGUS:
		return decimal(arg, 0, 1, 1e6, &o->sync_bogus);
	case O_JITTER:
		return time_parse_duration(arg, &o->sync_jitter) && o->sync_jitter >= 0 && o->sync_jitter < SEC;
	case O_STEP:
		return time_parse_duration(arg, &o->step) && o->step > -SEC;  /* a guest's clock starts a few seconds after 0 */
	case O_POLL:
		return time_parse_duration(arg, &o->poll) && o->poll >= 0 && o->poll < SEC;
	case O_SWAP:
		return decimal(arg, 0, 1, 1e6, &o->swap);
	case O_STEP_AT:
		return decimal(arg, 0, 1, 1e6, &o->step_at);
	case O_DURATION:
		return time_parse_duration(arg, &o->duration) && o->duration > 0;
	case O_STEAL:
		return steal_option(arg, o);
	case O_QUOTA_FACTS:
		return quota_option(arg, o);
	default:
		return unsigned_option(opt, arg, o);
	}
}

/* Handles options without an argument, and --missing. Returns false for others. */
static bool flag_option(int opt, struct options *o)
{
	switch (opt) {
	case 'o':
		o->out = optarg;
		return true;
	case O_PERFECT:
		o->have_offset = o->have_drift = true;
		o->offset = o->drift_ppb = 0;
		return true;
	case O_NO_KVM:
		return o->no_kvm = true;
	case O_NO_SCHED:
		return o->no_sched = true;
	case O_NO_WAKEUPS:
		return o->no_wakeups = true;
	case O_NO_TRUTH:
		return o->no_truth = true;
	case O_PLAIN:
		return o->plain_names = true;
	case O_BAD_ID:
		return o->bad_vcpu_id = true;
	case O_CONTAINERS:
		return o->containers = true;
	case O_HOTPLUG:
		return o->hotplug = true;
	case O_COUNTERS:
		return o->counters = true;
	case O_NESTED:
		return o->nested = true;
	case O_LATE:
		return o->late = true;
	case O_PLANT:
		o->plant = optarg;
		return true;
	case O_WITHOUT:
		o->without = optarg;
		return true;
	case O_HIDE:
		o->hide = optarg;
		return true;
	case O_MISSING:
		if (o->missings < sizeof o->missing / sizeof *o->missing)
			o->missing[o->missings++] = optarg;
		return true;
	default:
		return false;
	}
}

static int refuse(const char *object, const char *reason)
{
	fprintf(stderr, "stealscope-sim: %s: %s (stealscope-sim --help)\n", object, reason);
	return STATUS_USAGE;
}

static int parse(int argc, char **argv, struct options *o)
{
	int opt;

	while ((opt = getopt_long(argc, argv, "ho:V", option, NULL)) != -1) {
		if (opt == 'h') {
			fputs(usage, stdout);
			scenario_list(stdout);
			fputs(options_text, stdout);
			return -1;
		}
		if (opt == 'V') {
			puts("stealscope-sim " PACKAGE_VERSION);
			return -1;
		}
		if (opt == '?')
			return STATUS_USAGE;
		if (!flag_option(opt, o) && !fault_option(opt, optarg, o))
			return refuse(optarg, "not a value for this option");
	}
	if (optind >= argc)
		return refuse("no scenario", "name one");
	o->scenario = argv[optind++];
	if (optind < argc && !number(argv[optind++], 1, 250, &o->number))
		return refuse(argv[optind - 1], "not a number of VMs from 1 to 250");
	if (optind < argc)
		return refuse(argv[optind], "one scenario at a time");
	if (!o->out)
		return refuse("no output directory", "use -o DIR");
	return 0;
}

int main(int argc, char **argv)
{
	struct options o = { .seed = 1, .number = 8, .beacon_hz = 20, .hogs = 1, .burst = 3, .packet = 65536,
	                     .step_at = 500000 };
	struct error err = ERROR_INIT;
	struct sim_result r;
	char text[TIME_TEXT];
	int status = parse(argc, argv, &o);

	if (status)
		return status < 0 ? 0 : status;
	if (simulate(&o, &r, &err) < 0) {
		fprintf(stderr, "stealscope-sim: %s%s%s%s\n", err.text, *err.remedy ? " (" : "", err.remedy, *err.remedy ? ")"
		        : "");
		return (int)err.status;
	}
	fprintf(stderr, "stealscope-sim: %s: %" PRIu64 " records over %s\n", o.out, r.records,
	        time_duration(text, r.end - r.begin));
	return STATUS_OK;
}
