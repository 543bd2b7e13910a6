#include "truth_cases.h"

#include <string.h>

#define COUNT(array) (sizeof(array) / sizeof *(array))

static void perfect(struct options *o)
{
	o->have_offset = o->have_drift = true;
	o->nested = o->seed % 2;
}

static void offset(struct options *o)
{
	o->containers = true;
	o->have_offset = o->have_drift = true;
	o->offset = INT64_C(7000000321);
	o->plain_names = o->bad_vcpu_id = o->seed % 2;
	o->late = o->seed % 3 == 0;
}

static void drift(struct options *o)
{
	o->beacon_hz = 50;
	o->duration = 800 * MS;
	o->late = o->seed % 3 == 1;
}

/* Hotplug of VMs and CPUs; the analysis must find which thread is which CPU, and when. */
static void hotplug(struct options *o)
{
	perfect(o);
	o->hotplug = true;
}

static void changing(struct options *o)
{
	drift(o);
	o->hotplug = true;
}

static void nested(struct options *o)
{
	drift(o);
	o->nested = true;
	if (o->seed % 4 == 0)
		o->scenario = "nested";
}

static void silent(struct options *o)
{
	o->beacon_hz = 0;
	o->duration = 800 * MS;
}

/* Sync events that are late, doubled or wrong. */
static void faulty(struct options *o)
{
	drift(o);
	o->sync_jitter = 200 * US;
	o->sync_dup = 100000;
	o->sync_bogus = 30000;
}

static void stepped(struct options *o)
{
	o->beacon_hz = 100;
	o->duration = 1200 * MS;
	o->step = 20 * MS;
}

/* Steps of all sizes, with few beacons or none: a step may be undetectable, and then the clock must not be called
 * accurate. */
static void stepped_any(struct options *o)
{
	static const int64_t step[] = { 50 * US, MS, 5 * MS, 20 * MS, 100 * MS };
	static const int64_t hz[] = { 100, 20, 0 };
	stepped(o);
	o->beacon_hz = hz[o->seed % COUNT(hz)];
	o->step = step[o->seed % COUNT(step)];
}

/* Steps shorter than most intervals between events: their time is not determined. */
static void stepped_little(struct options *o)
{
	stepped(o);
	o->step = 300 * US;
}

/* Steps back, of all sizes: some times occur twice. */
static void stepped_back(struct options *o)
{
	stepped_any(o);
	o->step = -o->step;
}

/* Steps near one end of the trace, so that few events show them. */
static void stepped_aside(struct options *o)
{
	static const int64_t step[] = { 50 * US, 300 * US, MS, 5 * MS, 20 * MS, 100 * MS };
	stepped(o);
	o->beacon_hz = 0;
	o->step = step[o->seed % COUNT(step)];
	o->step_at = (int64_t)(50000 + o->seed * 7919 % 290000);
	if (o->seed / COUNT(step) % 2)
		o->step_at = 1000000 - o->step_at;
}

/* Like stepped_aside(), with few beacons, most of them on one side of the step. */
static void stepped_seldom(struct options *o)
{
	static const int64_t hz[] = { 5, 2, 1 };

	stepped_aside(o);
	o->beacon_hz = hz[o->seed / 12 % COUNT(hz)];
	o->step = o->seed / 36 % 2 ? o->step : -o->step;
}

static void stepped_idle(struct options *o)
{
	static const char *const name[] = { "idle", "pulse", "critical_task", "residual_timer" };

	stepped_any(o);
	o->scenario = name[o->seed / 15 % COUNT(name)];
	o->step = o->seed / 60 % 2 ? o->step : -o->step;
}

static void lossy(struct options *o)
{
	perfect(o);
	o->lost = 100000;
	o->packet = 4096;
}

/* Hotplug with lost records, among them perhaps the begin, the end or the name of a vCPU's thread. */
static void lossy_hotplug(struct options *o)
{
	lossy(o);
	o->hotplug = true;
}

static void blind(struct options *o)
{
	perfect(o);
	o->no_kvm = true;
}

/* Hosts fetch memory for guests, and VMMs serve devices. */
static void swapping(struct options *o)
{
	perfect(o);
	o->swap = 500000;
}

/* Threads that progress more slowly beside a busy CPU of their core, and counters in the records of the host. */
static void cores(struct options *o)
{
	perfect(o);
	o->siblings = 2 + (int64_t)(o->seed % 3 == 2);
	o->slowdown = 40 + (int64_t)(o->seed % 50);
	o->counters = true;
	o->counter_faults = 5000;
}

static void absent(struct options *o)
{
	static const char *const name[] = { "Debian", "Ubuntu", "Fedora" };

	perfect(o);
	o->missing[o->missings++] = name[o->seed % 3];
}

/* The named scenarios, one after the other. */
static void named(struct options *o)
{
	static const char *const name[] = { "pulse", "fibonacci", "critical_task", "residual_timer", "overcommit", "churn",
	                                    "requests", "nested" };

	perfect(o);
	o->scenario = name[o->seed % COUNT(name)];
	o->number = 5;
	o->duration = o->seed % COUNT(name) == 4 ? 150 * MS : 900 * MS;
}

/* Draws an option from a bit of the mixed seed. */
static bool coin(const struct options *o, unsigned bit)
{
	return (o->seed + 1) * UINT64_C(0x9e3779b97f4a7c15) >> (20 + bit) & 1;
}

/* Combinations of options that the kinds above do not cover. */
static void mixed(struct options *o)
{
	static const char *const scenario[] = { "random", "random", "random", "planted", "chain", "ipi", "spin", "overcommit" };
	static const char *const plant[] = { "vm", "crowd", "pin", "light", "idle", "weight", "exits", "quota", "slow",
	                                     "none" };

	perfect(o);
	o->scenario = scenario[o->seed % COUNT(scenario)];
	o->number = 5;
	o->plant = plant[o->seed / COUNT(scenario) % COUNT(plant)];
	o->nice = coin(o, 0) ? -15 : coin(o, 1) ? 10 : 0;
	o->affinity = coin(o, 2) ? coin(o, 3) ? 1 : 3 : 0;
	o->swap = coin(o, 4) ? 500000 : 0;
	o->poll = coin(o, 5) ? 200 * US : 0;
	o->hotplug = coin(o, 6);
	o->nested = coin(o, 7);
	o->late = coin(o, 8);
	o->containers = coin(o, 9);
	o->bad_vcpu_id = coin(o, 11);
}

static void mixed_lost(struct options *o)
{
	mixed(o);
	o->plain_names = !o->hotplug && coin(o, 10);  /* a vCPU that never enters guest mode is recognized by its name alone */
	o->bad_vcpu_id = !o->plain_names && o->bad_vcpu_id;
	o->lost = 100000;
	o->packet = 4096;
}

static void mixed_clocks(struct options *o)
{
	static const int64_t hz[] = { 50, 20, 0 };

	mixed(o);
	o->have_offset = o->have_drift = false;
	o->duration = 800 * MS;
	o->beacon_hz = hz[o->seed / 7 % COUNT(hz)];
}

static void mixed_step(struct options *o)
{
	static const int64_t step[] = { 300 * US, 20 * MS, -5 * MS };

	mixed_clocks(o);
	o->duration = 1200 * MS;
	o->step = step[o->seed / 11 % COUNT(step)];
}

const struct test_case test_case[] = {
	{ "perfect", SYNC_NONE, perfect, .slack = -1, .true_sync = true },
	{ "named", SYNC_NONE, named, .slack = -1, .true_sync = true },
	{ "offset", SYNC_OFFSET, offset, .slack = -1, .true_sync = true },
	{ "hotplug", SYNC_NONE, hotplug, .slack = -1 },
	{ "no-kvm", SYNC_NONE, blind, .slack = -1, .true_sync = true },
	{ "no-guest", SYNC_NONE, absent, .slack = -1, .true_sync = true, .may_not_know = true },
	{ "swap", SYNC_NONE, swapping, .slack = -1, .true_sync = true },
	{ "cores", SYNC_NONE, cores, .slack = -1, .true_sync = true },
	{ "drift", SYNC_AUTO, drift, .slack = 2 },
	{ "changing", SYNC_AUTO, changing, .slack = 2 },
	{ "nested", SYNC_AUTO, nested, .slack = 6, .finds_roles = true },  /* each level rounds */
	{ "no-sync", SYNC_AUTO, silent, .slack = 2, .only_long = true },
	{ "faulty-sync", SYNC_AUTO, faulty, .slack = 2 },
	{ "clock-step", SYNC_AUTO, stepped, .slack = 2 },
	{ "any-step", SYNC_AUTO, stepped_any, .slack = 2 },
	{ "small-step", SYNC_AUTO, stepped_little, .slack = 2 },
	{ "back-step", SYNC_AUTO, stepped_back, .slack = 2, .may_not_know = true, .only_named = true },
	{ "idle-step", SYNC_AUTO, stepped_idle, .slack = 2, .may_not_know = true, .only_named = true },
	{ "aside-step", SYNC_AUTO, stepped_aside, .slack = 2, .only_named = true },
	{ "seldom-step", SYNC_AUTO, stepped_seldom, .slack = 2, .may_not_know = true, .only_named = true },
	{ "lost", SYNC_NONE, lossy, .slack = -1, .true_sync = true, .may_not_know = true },
	{ "lost-hotplug", SYNC_NONE, lossy_hotplug, .slack = -1, .may_not_know = true },
	{ "mixed", SYNC_NONE, mixed, .slack = -1, .only_named = true },
	{ "mixed-lost", SYNC_NONE, mixed_lost, .slack = -1, .may_not_know = true, .only_named = true },
	{ "mixed-clocks", SYNC_AUTO, mixed_clocks, .slack = 6, .only_named = true },
	{ "mixed-step", SYNC_AUTO, mixed_step, .slack = 6, .may_not_know = true, .only_named = true },
};

/* Seeds with clocks that were once wrong with confidence: other offsets also contained all events of a guest, or some
 * events fitted the clock both before and after a step. Also seeds in which a TID was reused by another process while
 * the end of the first thread and the beginning of the second were lost, a trace whose only interrupt is interrupted by a
 * loss, and one whose simulation was wrong. */
const struct pinned pinned[] = {
	{ "no-sync", 11 }, { "no-sync", 28 }, { "no-sync", 34 }, { "faulty-sync", 40 }, { "clock-step", 900005 },
	{ "any-step", 3000005 }, { "any-step", 2077910 }, { "any-step", 2077940 }, { "any-step", 2077958 },
	{ "any-step", 1000780 }, { "any-step", 1001570 }, { "any-step", 1000195 }, { "any-step", 1000355 },
	{ "clock-step", 900008 }, { "no-sync", 900055 }, { "hotplug", 900015 }, { "hotplug", 900059 },
	{ "lost-hotplug", 2077919 }, { "lost-hotplug", 2077924 }, { "lost-hotplug", 2077930 }, { "lost-hotplug", 1000039 },
	{ "lost-hotplug", 2078026 }, { "lost-hotplug", 3000021 }, { "lost-hotplug", 3000042 }, { "nested", 3000118 },
	{ "lost-hotplug", 1000098 }, { "lost-hotplug", 1000127 }, { "lost-hotplug", 1000225 },
	{ "hotplug", 1001316 }, { "lost-hotplug", 1002885 },
	{ "lost-hotplug", 9300040 }, { "lost-hotplug", 1000467 }, { "lost-hotplug", 1000535 },
	{ "lost-hotplug", 1000475 }, { "lost-hotplug", 1001004 }, { "lost-hotplug", 1001030 },
	{ "nested", 2077981 }, { "nested", 2078047 }, { "nested", 2078050 }, { "nested", 2078323 }, { "nested", 2078158 },
	{ "nested", 6300319 },
	{ "nested", 1000633 }, { "nested", 1001350 }, { "nested", 1001758 }, { "changing", 1001842 },
	{ "aside-step", 41 }, { "aside-step", 66 }, { "aside-step", 139 }, { "aside-step", 204 },
	{ "aside-step", 293 }, { "aside-step", 295 }, { "aside-step", 297 },
	{ "aside-step", 4000017 }, { "aside-step", 7400155 },
	{ "aside-step", 7400442 }, { "aside-step", 7400550 }, { "aside-step", 7400599 }, { "aside-step", 7400662 },
	{ "aside-step", 7400670 }, { "aside-step", 7400699 }, { "aside-step", 7400768 }, { "aside-step", 7403058 },
	{ "back-step", 3 }, { "back-step", 8 }, { "back-step", 9 }, { "back-step", 33 }, { "back-step", 82 },
	{ "back-step", 6000011 }, { "back-step", 6002102 },
	{ "any-step", 3000059 }, { "any-step", 3000124 }, { "any-step", 4000136 },
	{ "swap", 6300625 }, { "swap", 7400049 }, { "faulty-sync", 7401895 },
	{ "any-step", 6300077 }, { "any-step", 6300902 }, { "any-step", 1000460 }, { "any-step", 1000895 },
	{ "small-step", 1001017 }, { "small-step", 1001676 }, { "small-step", 6300143 }, { "small-step", 6300534 },
	{ "small-step", 6300905 }, { "small-step", 7401260 },
	{ "hotplug", 7401739 }, { "lost-hotplug", 7401739 }, { "hotplug", 7403089 }, { "hotplug", 7403189 },
	{ "hotplug", 7401635 }, { "no-guest", 7401792 }, { "back-step", 27 }, { "no-sync", 7403344 },
	{ "no-sync", 5000008 }, { "any-step", 5000003 },
	{ "mixed-lost", 7404048 }, { "mixed-lost", 7404045 }, { "mixed-lost", 7404189 }, { "mixed-lost", 7404103 },
	{ "mixed-lost", 13300000 },
	{ "mixed", 7406032 }, { "mixed", 13100002 }, { "mixed-clocks", 9300049 }, { "mixed-clocks", 1000025 },
	{ "any-step", 9100100 },
	{ "back-step", 1000092 }, { "back-step", 9100026 }, { "back-step", 9100151 }, { "back-step", 6900196 },
	{ "back-step", 8500098 }, { "back-step", 9100046 }, { "back-step", 8500010 }, { "any-step", 7200020 },
	{ "any-step", 8540054 }, { "back-step", 8540054 },
	{ "seldom-step", 5 }, { "seldom-step", 9 }, { "seldom-step", 11 }, { "seldom-step", 24 }, { "seldom-step", 31 },
	{ "seldom-step", 98 }, { "aside-step", 883001 }, { "seldom-step", 720008 },
	{ "lost", 7777045 }, { "nested", 7777013 },
};
const size_t test_cases = COUNT(test_case), pinneds = COUNT(pinned);

static const struct pinned must_be_known[] = { { "any-step", 4000136 }, { "back-step", 6000011 }, { "no-sync", 5000008 },
	{ "any-step", 5000003 }, { "aside-step", 883001 },
	{ "seldom-step", 720008 } };

bool pinned_needs_clock(const char *name, uint64_t seed)
{
	bool is = false;

	for (size_t i = 0; i < COUNT(must_be_known); i++)
		is = is || (must_be_known[i].seed == seed && strcmp(must_be_known[i].name, name) == 0);
	return is;
}
