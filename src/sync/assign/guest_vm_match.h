/* One guest's trace against one VM of the host: is it this one, and how does its clock run (private to sync/). */
#ifndef STEALSCOPE_SYNC_ASSIGN_GUEST_VM_MATCH_H
#define STEALSCOPE_SYNC_ASSIGN_GUEST_VM_MATCH_H

#include "sync/assign/containment.h"
#include "sync/fit/piecewise_fit.h"
#include "sync/search/search.h"

#define CONTRADICTION_MAX 0.1  /* share of the pairs by events from which on they are no agreement */

#define SAMPLES 2

struct guest_view {
	const struct trace *trace;
	int64_t begin, end;
	bool sane;                /* its times can be computed with */
	bool again;               /* the same trace was given as another machine's; perhaps it was cut */
	unsigned workers;         /* threads for all guests together */
	const atomic_size_t *left;  /* guests that are still searched for */
	struct mark_list marks;
	struct mark_list few[SAMPLES];  /* of them: see mark_list_few() */
	struct activity activity;
	bool has_activity;        /* it is loaded when it is needed */
	const struct host_view *first;  /* who needed it first: its `quiet` says which times are left out, also later on */
};

/* Finds the marks; what stands above them is given. */
int guest_view_load(struct guest_view *g, struct error *err);
/* No machine that may run it keeps keys that a list so sparse does not. */
void guest_view_thin(struct guest_view *g, unsigned sparse);
/* What a search needed of it: a later one reads its activity again, and finds no marks. */
void guest_view_forget(struct guest_view *g);
void guest_view_release(struct guest_view *g);

/* A candidate: what the clock of `guest` is if it runs in `vm`. */
struct match {
	size_t guest, hypervisor, vm;  /* indices; vm = SIZE_MAX: that machine's trace shows no VM */
	struct vm_view view;      /* the VM with its vCPUs numbered by this match; owns its vcpu array */
	struct hypothesis h;      /* its clock, and what speaks for it and against it */
	enum sync_method method;
	struct pair_list events;  /* the pairs of synchronization events, judged */
	uint64_t unmatched;       /* ends without a partner */
	int64_t band_events, band_containment;
	double contradiction;     /* share of the pairs by events that contradict the others, 0..1 and more: a change of the
	                             clock that few pairs bear out counts for as many as it takes to see it */
	bool postponed;           /* its pairs do not agree, and mostly some other VM's do: see match_fit() */
	struct containment proof;
	double share;             /* of containment, -1 = not computable */
};

/* Fills *m from pairs, without a proof; m->h.pairs == 0 when there are none.  The pairs take the place of those in *m; the
 * list of one that is postponed is for the caller to use again. */
int match_events(const struct host_view *host, const struct vm_view *vm, const struct guest_view *guest,
                 struct match *m, struct error *err);
/* One that was postponed has no clock: here it gets one after all, and exactly what contradicts it. */
int match_fit(const struct host_view *host, const struct guest_view *guest, struct match *m, struct error *err);
/* Fills *m by containment alone; steps: see search_containment(). */
int match_containment(const struct host_view *host, const struct vm_view *vm, struct guest_view *guest,
                      bool steps, struct match *m, struct error *err);
/* Adds the pairs of containment to a match by events.  Leaves it as it is when they do not agree.  bands: what they alone
 * would leave of the clock is found out, too, which takes another fit. */
int match_both(const struct host_view *host, struct guest_view *guest, struct match *m, bool bands, struct error *err);
/* How many of the pairs no clock within the corridor bears; none where there is no corridor. */
size_t match_refusals(const struct pair_list *pairs, const struct clock_map *clock);
/* Some pairs were left out, or no clock within the corridor bears them, and none from there to an end of the list says that
 * they cannot be true, as of an outlier they would: cuts *out to where those begin that it bears. */
bool match_borne(const struct pair_list *pairs, const struct clock_map *clock, struct segment *out);
/* Fills *m with a clock that somebody gave: host = guest + offset. */
int match_offset(const struct host_view *host, const struct vm_view *vm, const struct guest_view *guest,
                 int64_t offset, struct match *m, struct error *err);
/* Do clearly more of the guest's events lie within guest mode by that clock than by others, ms away?  As a guest that is
 * none of this host does not, by whatever clock. */
int match_stands_out(const struct host_view *host, const struct guest_view *guest, struct match *m, bool *stands,
                     struct error *err);
/* Fills *m with the clock that the TSC gives: exact, if it is true. */
int match_tsc(const struct host_view *host, const struct vm_view *vm, const struct guest_view *guest,
              const struct clock_line *line, struct match *m, struct error *err);
/* How well m->h.clock contains; the first one reads beside it what match_both() needs of the guest. */
int match_prove_first(const struct host_view *host, struct guest_view *guest, struct match *m, struct error *err);
int match_prove(const struct host_view *host, const struct guest_view *guest, struct match *m, struct error *err);
bool match_agrees(const struct match *m);  /* hardly a pair contradicts the others */
/* It contains, and its pairs agree: it needs no second opinion. */
bool match_proved(const struct match *m);
/* Its pairs and its clock go: it is doubted, and they speak against no other one. */
void match_forget(struct match *m);
void match_release(struct match *m);

#endif
