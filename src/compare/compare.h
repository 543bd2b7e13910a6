/* What changed between two histories, or between two windows of one, and what explains it.
 *
 * Both sides are asked the same questions, slice of time by slice of time; what has the same name on both sides is
 * compared, whatever its TID or its time.  A change comes with an interval that holds for all of them together. */
#ifndef STEALSCOPE_COMPARE_COMPARE_H
#define STEALSCOPE_COMPARE_COMPARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/notes.h"
#include "query/query.h"

#define DIFF_SLICES 64          /* equal parts of a window */
#define DIFF_BLOCK 4            /* neighbours among them that are drawn together: what lasts as long stays together */
#define DIFF_LEVEL 0.99         /* of who asks for no other */
#define DIFF_SHORTEST 6400000   /* ns of a window */

#define DIFF_UNITS(X) X(UNIT_CPU, "cpu") X(UNIT_RATE, "1/s") X(UNIT_NS, "ns")
/* X(code, name, unit): cpu = ns for each ns; 1/s; ns = of a request. */
#define DIFF_QUANTITIES(X) \
	X(DIFF_LOST, "lost", UNIT_CPU)           /* wanted to run and did not; by whom */ \
	X(DIFF_RAN, "ran", UNIT_CPU) \
	X(DIFF_GAPS, "gaps", UNIT_RATE)          /* that begin */ \
	X(DIFF_WAKES, "wakes", UNIT_RATE)        /* ends of sleeps */ \
	X(DIFF_EXITS, "exits", UNIT_RATE)        /* of the vCPUs; by reason */ \
	X(DIFF_REQUESTS, "requests", UNIT_RATE)  /* that begin */ \
	X(DIFF_LATENCY, "latency", UNIT_NS)      /* the mean; by what the server did or who had its CPU */ \
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

/* In the order in which they come. */
#define DIFF_KINDS(X) X(DIFF_OF_REQUESTS, "requests") X(DIFF_OF_MACHINE, "machine") X(DIFF_OF_THREAD, "thread")
#define DIFF_CODE(code, name) code,
enum diff_kind { DIFF_KINDS(DIFF_CODE) DIFF_KIND_COUNT };
#undef DIFF_CODE
extern const char *const diff_kind_name[DIFF_KIND_COUNT];

struct diff_row {
	const char *subject;     /* escaped: "Debian", all threads "Debian/nginx", requests "Debian", "Debian/GET" */
	const char *by;          /* escaped: "host/burnP6", "hypervisor", "hlt"; "": the whole */
	uint8_t kind;            /* enum diff_kind */
	uint8_t quantity;        /* enum diff_quantity */
	double before, after;    /* in the quantity's unit */
	double change;           /* after - before */
	double low, high;        /* of the change */
	double explains;         /* of the whole's change; NAN where there is no such whole, or it is not proven to change */
	uint8_t alone;           /* 1: the first side alone has its machine, 2: the second; 0: both have it */
	bool found;              /* the interval leaves 0 out, and the change is worth a word */
};

struct diff {
	struct diff_row *row;    /* findings first: see diff.c for the order */
	size_t rows, found;      /* rows: all that was compared */
	size_t wholes;           /* of these; they share the level */
	size_t subjects;
	double level;
	void *keeps;             /* the texts */
};

struct diff_side {
	const struct topo *topo; /* borrowed */
	int64_t from, to;        /* ns, closed; within the history */
};

struct diff_options {
	double level;            /* that the intervals of all wholes together hold: 0.99 = equal sides show a finding once
	                            in a hundred times */
	struct notes *notes;     /* what could not be compared; may be NULL */
};

/* Cost: both histories' states are read once; those whose losses changed most (8), twice. */
int diff_of(const struct diff_side side[2], const struct diff_options *options, struct diff *out, struct error *err);
void diff_release(struct diff *d);

/* Whom a row is about, in a history: of threads of one name the one that lost most within [from, to].  False: there is
 * nobody of that name. */
bool diff_find(const struct topo *topo, const struct diff_row *row, int64_t from, int64_t to, struct subject *out);

/* Two sentences, a line each, escaped: what changed most, and what explains it; or that nothing did.  The caller frees. */
char *diff_verdict(const struct diff *d);
/* "31.2% CPU", "120 /s", "5.21 ms"; `sign`: with + or -. */
char *diff_value_text(char *buf, size_t size, enum diff_quantity q, double v, bool sign);

/* "same": nothing is found.  "lost<+5%", "latency_p99<+2ms", "lost<0.1": no subject's change is proven to be as much;
 * shares of what was before, else in the quantity's unit. */
struct diff_assertion {
	bool same, relative;
	enum diff_quantity quantity;
	double limit;
};
int diff_assertion_parse(const char *text, struct diff_assertion *a, struct error *err);
/* True when it holds; else *worst is the row that breaks it most. */
bool diff_assertion_holds(const struct diff_assertion *a, const struct diff *d, const struct diff_row **worst);

/* ---- What if: the recorded demand, replayed on a host where something is different ------------------------------- */

#define WHATIF_CPUS 63       /* of a host, at most */

struct whatif_change {
	enum { WHATIF_WITHOUT, WHATIF_PIN, WHATIF_FREE, WHATIF_ADD_CPU, WHATIF_WEIGHT, WHATIF_NO_QUOTA } kind;
	uint32_t *thread;        /* of the host, indices into topo->thread: whom it is about */
	size_t threads;
	unsigned cpu;            /* of pin */
	double weight;           /* of weight: 1 = nice 0 */
};
/* "without host/burnP6", "without Ubuntu", "pin Debian/CPU0 -> CPU3", "free Debian" (to use any CPU), "add CPU",
 * "weight Debian 200" (100 = nice 0), "no quota Debian".  Whoever is named must be threads of the host, vCPUs or VMs that
 * the host runs. */
int whatif_parse(const struct topo *topo, const char *text, struct whatif_change *out, struct error *err);
/* Are these changes possible, all of them together? */
int whatif_check(const struct topo *topo, const struct whatif_change *change, size_t n, struct error *err);
void whatif_change_release(struct whatif_change *c);

/* DIFF_LOST stands for the time runnable without a CPU, of vCPUs and threads of the host alone. */
struct whatif_row {
	char *subject;           /* escaped */
	uint8_t kind, quantity;  /* enum diff_kind, diff_quantity */
	double recorded;         /* in the quantity's unit */
	double reproduced;       /* by the replay without any change */
	double value, low, high; /* with the changes */
	double held, held_then;  /* of a CPU: what quotas hold back, which is not waited, as recorded and with the changes */
	bool vague;              /* the interval is no answer: for a note, not for a table */
};

#define WHATIF_MISSES 0.25   /* of the waits: a replay that misses more proves nothing */

struct whatif {
	struct whatif_row *row;  /* requests, then machines, then threads */
	size_t rows, cap;
	double error;            /* of the waits that were recorded, what the replay reproduces wrongly */
	double missed;           /* the same, of the waits and what quotas held back */
	double guess;            /* of these the one that the changes are about: more than WHATIF_MISSES proves nothing */
	int64_t slice, credit;   /* ns, of the scheduler's model: found by calibration */
	size_t grouped;          /* threads of whose control groups the weights are known */
	bool doubted;            /* what threads weigh: it may be otherwise than their nice levels say, and matters */
};

/* Replays the window with the changes.  Refuses what cannot be known: no host, events lost, nested VMs.  Notes what is left
 * out.  Cost: O(n log n) in the host's bursts, some ten times over a part of them, four times over all. */
int whatif_of(const struct diff_side *side, const struct whatif_change *change, size_t changes, struct whatif *out,
              struct notes *notes, struct error *err);
void whatif_release(struct whatif *w);

/* The one change that would help a VM most, or that of a thread or vCPU: a sentence, escaped, which may be that and why
 * there is none.  The caller frees.  Cost: some ten replays. */
char *advise(const struct diff_side *side, const struct subject *who);

#endif
