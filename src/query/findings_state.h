/* State of a query for findings. Private to findings.c, which reads the history, findings_choose.c, which selects
 * victims, and findings_rank.c, which ranks findings. */
#pragma once

#include "query/culprit.h"
#include "query/finding_causes.h"
#include "query/gap_sums.h"
#include "query/stepped_query.h"

#define SIMILAR_SHARE 0.95     /* of losses as similar as this, the larger share of the time wanted comes first */
#define SLEEPERS 4   /* threads with a critical path */
#define SLEEPER_SHARE 0.1      /* minimum share of its life that a thread with a chain slept */

/* Tiers of victims. Of the last tier only one is a victim, and only if no other target is: hosts that run VMs, and the
 * control domain of Xen. */
enum victim_tier { TIER_GUESTS, TIER_THREADS, TIER_LAST, TIERS };

/* Time that an actor took from a victim. */
struct actor_loss {
	int64_t ns;
	uint64_t intervals;
	struct cause_interval longest;  /* see culprit_sums.precision */
};

struct victim {
	struct target target;
	struct demand demand;
	enum victim_tier tier;
	int64_t bound;               /* upper bound of the time that others took, ns */
	bool has_sums;               /* the sums contain its rows */
};

enum findings_phase {
	PHASE_SUMS, PHASE_CHOOSE, PHASE_EXITS, PHASE_FEW_SUMS, PHASE_VICTIMS, PHASE_CHAINS, PHASE_LOCKS, PHASE_END
};

struct findings_query {
	struct query q;
	struct target target;        /* the only victim: valid if has_target */
	bool has_target;
	enum findings_phase phase;
	struct resolver r;
	bool open;
	struct culprit_sums sums;    /* of the gaps of all candidates; few: of likely victims */
	bool few, has_all_sums;
	struct victim *victim;       /* by tier, largest bound first */
	size_t victims, victims_cap, at;
	unsigned concluded[TIERS];   /* victims with findings */
	int64_t best[TIERS];         /* largest loss to others so far, ns */
	bool *dark;                  /* by machine: its trace has no scheduler event */
	int64_t *others;             /* by machine: what others took from a group, ns; -1: not read, or no group */
	struct victim vmm;           /* VM with the largest share of VMM time ... */
	struct gap_rows rows;        /* ... its vCPUs, and the exits of the current one */
	size_t row;
	bool walking;
	struct gap_walk walk;
	struct cause_interval exit;  /* its longest exit; end < start: none */
	uint64_t exits;
	struct victim sleeper[SLEEPERS];  /* threads that were delayed and slept, largest loss first */
	size_t sleepers;
	struct query *sub;           /* running query of this phase; NULL: none */
	struct delay_chain chain;    /* the largest one */
	struct demand chain_demand;  /* of its target */
	bool is_spread;              /* many VMs took the worst victim's time */
	int64_t lock_ns, lock_waits; /* waits for locks while a culprit kept the holder off its CPU */
	struct actor lock_culprit;   /* culprit that took most of them; machine -1: none */
	bool observed;               /* some thread or vCPU is known to have run */
	bool guests, alone;          /* there are VMs; and none of them has a source of stolen time */
	bool no_wakeups;             /* the waits of threads that slept before are invisible */
	double worst_share;          /* largest share lost of the time wanted, of all candidates ... */
	struct target worst;         /* ... and its target; valid if worst_share > 0 */
	/* Findings so far: */
	struct ranked_finding {
		struct finding finding;
		enum victim_tier tier;
		unsigned rank;           /* enum loss_rank, or LOSS_RANKS: smaller causes of the only victim */
		bool is_event;           /* a pause or migration */
		int64_t weight;          /* ns */
	} *entry;
	size_t entries, entries_cap;
	struct findings answer;
};

static inline int64_t demand_wanted(const struct demand *d)
{
	return d->ran + d->lost;
}

/* Returns true if a warning on the target (NULL: on any machine) has this code; NOTE_CODE_COUNT: if it has this kind. */
bool findings_have_note(const struct findings_query *v, const struct target *target, enum note_code code,
                        enum note_kind kind);
/* Selects the victims and sleepers by their demands. */
int findings_choose(struct findings_query *v, struct error *err);
/* Returns the loss that the limit judges with this part of it, the gaps or the VM exits: if neither is above the limit, the
 * larger part answers for both. */
int64_t findings_loss(const struct findings_query *v, const struct victim *victim, int64_t part);
/* Adds the findings that follow from a victim's causes. */
void findings_conclude(struct findings_query *v, const struct victim *victim, const struct cause_list *causes);
/* Returns the largest finding on time that others took directly; NULL: none. */
const struct ranked_finding *findings_first_direct(const struct findings_query *v);
/* Adds the chain, the locks, or what is to be said if there is no finding; sorts, and makes the answer. */
int findings_rank(struct findings_query *v, struct error *err);
