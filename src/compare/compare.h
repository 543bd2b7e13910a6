/* Comparison of two histories, or of two windows in one history (diff), and a recording's replay with hypothetical
 * changes (what-if).
 *
 * Diff: both sides answer the same queries for each of DIFF_SLICES time slices. Rows with equal names are compared,
 * whatever their TIDs and times. Every change comes with a confidence interval; all intervals share one confidence
 * level. */
#pragma once

#include "base/base.h"
#include "base/notes.h"
#include "query/query.h"

#define DIFF_SLICES 64          /* a window's equal slices */
#define DIFF_BLOCK 4            /* slices per bootstrap block: correlations up to this length are preserved */
#define DIFF_LEVEL 0.99         /* default confidence level */
#define DIFF_WINDOW_MIN 6400000   /* minimum window, ns */

#define DIFF_UNITS(X) X(UNIT_CPU, "cpu") X(UNIT_RATE, "1/s") X(UNIT_NS, "ns")
/* X(code, name, unit). Units: cpu = ns per ns; 1/s; ns = a request's duration. */
#define DIFF_QUANTITIES(X) \
	X(DIFF_LOST, "lost", UNIT_CPU)           /* runnable, but not running; parts by culprit */ \
	X(DIFF_RAN, "ran", UNIT_CPU) \
	X(DIFF_GAPS, "gaps", UNIT_RATE)          /* gaps that begin */ \
	X(DIFF_WAKES, "wakes", UNIT_RATE)        /* wakeups */ \
	X(DIFF_EXITS, "exits", UNIT_RATE)        /* the vCPUs' VM exits; parts by exit reason */ \
	X(DIFF_REQUESTS, "requests", UNIT_RATE)  /* requests that begin */ \
	X(DIFF_LATENCY, "latency", UNIT_NS)      /* mean; parts by the server's activity, or actor on its CPU */ \
	X(DIFF_P50, "latency_p50", UNIT_NS) \
	X(DIFF_P90, "latency_p90", UNIT_NS) \
	X(DIFF_P99, "latency_p99", UNIT_NS)
#define DIFF_CODE(code, name) code,
enum diff_unit { DIFF_UNITS(DIFF_CODE) };
#undef DIFF_CODE
#define DIFF_CODE(code, name, unit) code,
enum diff_quantity { DIFF_QUANTITIES(DIFF_CODE) DIFF_QUANTITY_COUNT };
#undef DIFF_CODE
extern const char *const diff_quantity_name[DIFF_QUANTITY_COUNT + 1];  /* NULL-terminated */
extern const char *const diff_unit_name[];
extern const enum diff_unit diff_unit_of[DIFF_QUANTITY_COUNT];

/* Target kinds, in the rows' order. */
#define DIFF_KINDS(X) X(DIFF_OF_REQUESTS, "requests") X(DIFF_OF_MACHINE, "machine") X(DIFF_OF_THREAD, "thread")
#define DIFF_CODE(code, name) code,
enum diff_kind { DIFF_KINDS(DIFF_CODE) DIFF_KIND_COUNT };
#undef DIFF_CODE
extern const char *const diff_kind_name[DIFF_KIND_COUNT];

struct diff_row {
	const char *target;      /* the target's name, escaped: machine "Debian", all threads with one name "Debian/nginx",
	                          * requests "Debian" or "Debian/GET" */
	const char *by;          /* the total's part, escaped: culprit "host/burnP6" or "hypervisor", exit reason "hlt"; "":
	                          * the total */
	uint8_t kind;            /* enum diff_kind */
	uint8_t quantity;        /* enum diff_quantity */
	double before, after;    /* the two sides' values, in the quantity's unit */
	double change;           /* after - before */
	double low, high;        /* the change's confidence interval */
	double explains;         /* share of the total's change; NAN: the row is a total, or the total did not change
	                          * significantly */
	uint8_t alone;           /* side that alone contains the target's machine: 1 = before, 2 = after; 0: both do */
	bool is_last;            /* findings_take_last() for the target's machine, on either side */
	bool found;              /* finding: the interval excludes 0, and the change is large enough to report */
};

struct diff {
	struct diff_row *row;    /* findings first; see diff.c for the order */
	size_t rows, found;      /* rows: all comparisons; found: findings among them */
	size_t totals;           /* totals tested; they share the confidence level */
	size_t targets;
	double level;
	void *texts;             /* the rows' names in memory; private */
};

struct diff_side {
	const struct catalog *catalog; /* borrowed */
	int64_t from, to;        /* window, ns, both ends included; within the history */
};

struct diff_options {
	double level;            /* joint confidence level for all totals' intervals: with 0.99, equal sides show a
	                          * finding once in 100 comparisons */
	struct notes *notes;     /* receives notes about data that could not be compared; may be NULL */
};

/* Compares two sides. Reads both histories' states once, and those for the 8 targets with the largest changes of
 * loss a second time. */
int diff_of(const struct diff_side side[2], const struct diff_options *options, struct diff *out, struct error *err);
void diff_release(struct diff *d);

/* Finds a row's target in a history; among threads with one name, the thread that lost most within [from, to].
 * Returns false if the history has no such target. */
bool diff_find(const struct catalog *catalog, const struct diff_row *row, int64_t from, int64_t to, struct target *out);

/* Returns two lines, escaped: the largest change and its explanation; or that nothing changed, and the change that may
 * be undetected. The caller frees the text. */
char *diff_verdict(const struct diff *d);
/* Formats a value with its unit: "31.2%" of a CPU, "120/s", "5.21 ms". `sign`: positive values get a '+'. */
char *diff_value_text(char *buf, size_t size, enum diff_quantity q, double v, bool sign);

/* Assertion about a diff. "same": there is no finding. "lost<+5%", "latency_p99<+2ms", "lost<0.1": no total's change is
 * surely as large as the limit (no interval lies above it); a percentage is relative to the value before, other limits
 * have the quantity's unit. "web.service.lost<+5%", "Debian/nginx.lost<+5%": only those of this target. */
struct diff_assertion {
	const char *target;      /* not terminated, borrowed from the text */
	size_t target_length;    /* 0: all targets */
	bool same, relative;
	enum diff_quantity quantity;
	double limit;
};
int diff_assertion_parse(const char *text, struct diff_assertion *a, struct error *err);
/* Returns true if the diff compared the assertion's target. */
bool diff_assertion_applies(const struct diff_assertion *a, const struct diff *d);
/* Returns true if the assertion holds. Otherwise *worst is the row that exceeds the limit most. */
bool diff_assertion_holds(const struct diff_assertion *a, const struct diff *d, const struct diff_row **worst);

/* ---- What if: the recorded demand, replayed on a host where something is different ------------------------------- */

#define WHATIF_CPUS 63       /* most CPUs that a replayed host may have */

struct whatif_change {
	enum { WHATIF_WITHOUT, WHATIF_PIN, WHATIF_FREE, WHATIF_ADD_CPU, WHATIF_WEIGHT, WHATIF_NO_QUOTA } kind;
	uint32_t *thread;        /* affected host threads, indices into catalog->thread */
	size_t threads;
	unsigned cpu;            /* WHATIF_PIN: the CPU's number */
	double weight;           /* WHATIF_WEIGHT: new weight; 1 = nice 0 */
};
/* Parses a change: "without host/burnP6", "without Ubuntu", "pin Debian/CPU0 -> CPU3", "free Debian" (allow all CPUs),
 * "add CPU", "weight Debian 200" (100 = nice 0), "no quota Debian". Targets are host threads, vCPUs, and VMs of the
 * host. */
int whatif_parse(const struct catalog *catalog, const char *text, struct whatif_change *out, struct error *err);
/* Checks that the host can be replayed, that its CPUs suffice, and that the changes do not contradict each other. */
int whatif_check(const struct catalog *catalog, const struct whatif_change *change, size_t n, struct error *err);
void whatif_change_release(struct whatif_change *c);

/* Result for one target's quantity. DIFF_LOST is the time runnable without a CPU, and exists for VMs and host
 * threads only. */
struct whatif_row {
	char *target;           /* escaped */
	uint8_t kind, quantity;  /* enum diff_kind, diff_quantity */
	double recorded;         /* recorded value, in the quantity's unit */
	double reproduced;       /* value in the replay without changes */
	double value, low, high;  /* value in the replay with the changes, and its interval */
	double throttled;        /* recorded time off the CPU because of quotas, not in `recorded`; per CPU */
	double throttled_changed;  /* the same in the replay with the changes */
	bool vague;              /* the interval is too wide to be an answer: reported in a note, not in the table */
};

#define WHATIF_ERROR_MAX 0.25   /* a usable replay's maximum relative error in the waits */

struct whatif {
	struct whatif_row *row;  /* order: requests, machines, threads */
	size_t rows, cap;
	double error;            /* the waits' relative error in the replay without changes */
	double quota_error;      /* the same error, relative to waits plus time off the CPU because of quotas */
	double target_error;     /* error that decides whether the replay is usable: quota_error if a change lifts a quota,
	                          * otherwise error */
	int64_t slice, credit;   /* the scheduler model's calibrated parameters, ns */
	size_t grouped;          /* threads with known cgroup weights */
	bool weights_uncertain;  /* competing threads' relative weights may differ from their nice levels */
};

/* Replays the window with the changes. Fails for recordings without a host, with lost events, or with nested VMs. Notes
 * skipped requests and omitted rows. Cost: O(n log n) in the bursts of the host's threads; some 70 replays of a part of
 * the window for calibration, and up to 22 of all of it. */
int whatif_of(const struct diff_side *side, const struct whatif_change *change, size_t changes, struct whatif *out,
              struct notes *notes, struct error *err);
void whatif_release(struct whatif *w);

/* Finds the change that helps a VM most; for a vCPU or thread, its VM. Returns a sentence, escaped: the recommended
 * change, or that there is none and the reason. The caller frees the text. Cost: calibration, and replays of some 10
 * changes. */
char *advise(const struct diff_side *side, const struct target *target);
