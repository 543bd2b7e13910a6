/* What one side of a comparison says of every quantity, slice by slice.  Private to compare/. */
#ifndef STEALSCOPE_COMPARE_DIFF_LEDGER_H
#define STEALSCOPE_COMPARE_DIFF_LEDGER_H

#include "base/map.h"
#include "compare/compare.h"

#define LEDGER_MOST 65536  /* series; what is beyond goes to "(others)" */

/* Waits of one kind: ns, and each squared. */
struct waits { double ns, squares; };

/* What of a loss another recording of the same may show otherwise: random_variation.c. */
struct chance {
	struct waits all, clocked;  /* clocked: those that hang on how clocks fall together */
	double rates;               /* 1/ns^2: of its clocks, each squared */
};

/* One quantity of one subject: num / den in each slice. */
struct series {
	char *subject, *by;       /* escaped */
	uint8_t kind, quantity;
	double most;              /* CPUs that the subject can run, or wait for, at once; 0: nothing says */
	double num[DIFF_SLICES], den[DIFF_SLICES];
	struct chance chance;     /* of lost */
};

/* The latencies of the requests of one kind. */
struct latencies {
	char *subject;
	struct latency { double ns; unsigned slice; } *item;
	size_t len, cap;
};

struct ledger {
	const struct topo *topo;
	int64_t edge[DIFF_SLICES + 1];   /* slice i is [edge[i], edge[i + 1] - 1] */
	struct map by_hash;              /* of a series' names, probed upwards -> its index */
	struct series **series;
	size_t len, cap;
	struct latencies *latencies;     /* by kind of request: few */
	size_t latency_kinds, latency_cap;
	struct notes notes;
};

void ledger_init(struct ledger *l, const struct diff_side *side);
void ledger_release(struct ledger *l);
/* The series of that name, new ones all 0 with the slices' lengths as denominators: ns, or s for rates; of requests 0. */
struct series *ledger_series(struct ledger *l, enum diff_kind kind, const char *subject, enum diff_quantity q,
                             const char *by);
struct series *ledger_find(const struct ledger *l, const struct series *like);
struct latencies *ledger_latencies(struct ledger *l, const char *subject);
unsigned ledger_slice(const struct ledger *l, int64_t t);  /* that t is in; clamped */

#define SUBJECT_TEXT 300
/* "Debian", or "Debian/nginx": what the names of two histories have in common. */
char *ledger_subject(const struct topo *topo, const struct subject *s, char buf[SUBJECT_TEXT]);

/* The machine that a subject is, or is on; of requests the one that answers them. */
bool ledger_find_machine(const struct topo *topo, const char *subject, struct subject *out);
/* comparability.c: machines that one side alone has, or with other CPUs; what both sides are. */
void sides_note(const struct diff_side side[2], struct notes *notes);

/* Who a party is, without its TID: "host/burnP6", "hypervisor", "idle CPU". */
char *ledger_party(const struct topo *topo, const struct party *who, const char *name, char buf[SUBJECT_TEXT]);

/* The waits and wakes of one thread or vCPU, one after the other; begins as { 0 }. */
struct chance_walk {
	struct waits all, woken;    /* woken: waits that begin with a wake */
	int64_t wait;               /* ns, so far */
	int64_t first, last, apart; /* ns: wakes, 0: none; how far the last was from the one before */
	size_t wakes, alike;        /* distances, and those that are like the one before */
	bool waking;
};
void chance_wake(struct chance_walk *c, int64_t at);
void chance_wait(struct chance_walk *c, int64_t ns, bool wakes);  /* a piece of a wait */
void chance_runs(struct chance_walk *c);                          /* no wait */
double chance_clock(const struct chance_walk *c);  /* 1/ns: how often it wakes by the clock; 0: it does not */
/* How far chance may put two recordings apart: CPUs lost, where each is of so many ns; gaps per ns. */
double chance_of_loss(const struct chance side[2], const double span[2]);
double chance_of_gaps(const struct chance side[2]);

/* rates.c: what every machine and thread ran and lost, its gaps, wakes and exits. */
int ledger_add_rates(struct ledger *l, struct error *err);
/* request_kinds.c: latencies, and what they are made of. */
int ledger_add_requests(struct ledger *l, struct error *err);
struct request;
/* "Debian", "Debian/GET". */
char *request_kind(const struct request *r, char buf[SUBJECT_TEXT]);
/* culprit_changes.c: to whom those lost time whose loss `wanted` names: 1 for each series to be looked into. */
int ledger_add_thieves(struct ledger *l, bool (*wanted)(void *arg, enum diff_kind kind, const char *subject), void *arg,
                       struct error *err);

#endif
