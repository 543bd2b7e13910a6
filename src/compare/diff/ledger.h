/* Ledger: all quantities on one side, by slice. Private to compare/. */
#pragma once

#include "base/map.h"
#include "compare/compare.h"

#define LEDGER_MAX 65536  /* most series; further ones are added to "(others)" */

/* Sums over waits: ns, and squares of ns. */
struct waits { double ns, squares; };

/* Data for a loss's random variation between recordings: random_variation.c. */
struct variation {
	struct waits all_waits, timer_waits;  /* timer_waits: waits that depend on the timer phases */
	double squared_rates;    /* squared timer rates, summed, 1/ns^2 */
};

/* One target's quantity: num / den in each slice. */
struct series {
	char *target, *by;       /* the target's and the part's names, escaped; by "": the total */
	uint8_t kind, quantity;
	double max;              /* CPUs that the target can use at the same time; 0: unknown */
	double num[DIFF_SLICES], den[DIFF_SLICES];
	struct variation variation;  /* DIFF_LOST only */
};

/* Latencies for one request kind. */
struct latencies {
	char *target;
	struct latency { double ns; unsigned slice; } *item;
	size_t len, cap;
};

struct ledger {
	const struct catalog *catalog;
	int64_t edge[DIFF_SLICES + 1];  /* slice i is [edge[i], edge[i + 1] - 1], ns */
	struct map by_hash;      /* hash over a series' names, with linear probing -> index into `series` */
	struct series **series;
	size_t len, cap;
	struct latencies *latencies;  /* one entry per request kind */
	size_t latency_kinds, latency_cap;
	struct notes notes;
};

void ledger_init(struct ledger *l, const struct diff_side *side);
void ledger_release(struct ledger *l);
/* Returns the series with these names. A new one has num 0 and the slices' lengths as den: in ns, in s for rates; 0 for
 * latencies. */
struct series *ledger_series(struct ledger *l, enum diff_kind kind, const char *target, enum diff_quantity q,
                             const char *by);
struct series *ledger_find(const struct ledger *l, const struct series *like);
struct latencies *ledger_latencies(struct ledger *l, const char *target);
unsigned ledger_slice(const struct ledger *l, int64_t t);  /* index for the slice that contains t; clamped */

#define TARGET_TEXT 300
/* Writes a name that is comparable between histories, escaped: "Debian", or "Debian/nginx". */
char *ledger_target(const struct catalog *catalog, const struct target *target, char buf[TARGET_TEXT]);

/* Finds a target's machine by name; for requests, the answering machine. Returns false if there is none. */
bool ledger_find_machine(const struct catalog *catalog, const char *target, struct target *out);
/* Notes differences between the sides that limit the comparison (comparability.c). */
void comparability_note(const struct diff_side side[2], struct notes *notes);

/* Writes an actor's name, without TID, escaped: "host/burnP6", "hypervisor", "idle CPU". */
char *ledger_actor(const struct catalog *catalog, const struct actor *actor, const char *name, char buf[TARGET_TEXT]);

/* One thread's or vCPU's wait and wakeup statistics, called in time order. Initialize to { 0 }. */
struct wait_statistics {
	struct waits all_waits, wakeup_waits;  /* wakeup_waits: waits that begin with a wakeup */
	int64_t current_wait;    /* the current wait's length, ns; 0: none */
	int64_t first_wakeup, last_wakeup, last_period;  /* wakeup times, ns (0: none), and the time between the last two */
	size_t periods, similar_periods;  /* periods: compared period count; similar_periods: those similar to the
	                                   * period before */
	bool begins_with_wakeup;
};
void variation_add_wakeup(struct wait_statistics *c, int64_t at);
void variation_add_wait(struct wait_statistics *c, int64_t ns, bool wakes);  /* adds a wait's part */
void variation_end_wait(struct wait_statistics *c);                          /* ends a wait */
double variation_timer_rate(const struct wait_statistics *c);  /* its timer wakeup rate, 1/ns; 0: not periodic */
/* Return the change between two recordings that different timer phases may cause: of a loss, in CPUs (window: the
 * sides' window lengths, ns); of the gap count, per ns. */
double variation_of_loss(const struct variation side[2], const double window[2]);
double variation_of_gaps(const struct variation side[2]);

/* Adds each machine's and thread's run time, loss, gaps, wakeups and exits (rates.c). */
int ledger_add_rates(struct ledger *l, struct error *err);
/* Adds request latencies and their parts (request_kinds.c). */
int ledger_add_requests(struct ledger *l, struct error *err);
struct request;
/* Writes a request's machine and kind, escaped: "Debian", "Debian/GET". */
char *request_kind(const struct request *r, char buf[TARGET_TEXT]);
/* Adds the culprits of the losses for which `wanted` returns true (culprit_changes.c). */
int ledger_add_culprits(struct ledger *l, bool (*wanted)(void *arg, enum diff_kind kind, const char *target), void *arg,
                       struct error *err);
