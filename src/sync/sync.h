/* Clocks: every guest's clock is brought to the host's (paper, section "Trace synchronization").
 *
 * host(t) is piecewise linear.  All arithmetic is exact to the ns: drift is a fixed-point number, products are
 * __int128.  Also finds which guest trace belongs to which VM, and which host thread is which vCPU. */
#ifndef STEALSCOPE_SYNC_SYNC_H
#define STEALSCOPE_SYNC_SYNC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "base/notes.h"
#include "base/progress.h"
#include "trace/trace.h"

enum sync_quality { SYNC_ABSENT, SYNC_INCOMPLETE, SYNC_APPROXIMATE, SYNC_ACCURATE, SYNC_FAIL };
extern const char *const sync_quality_name[];

/* host = ref_host + (t - ref_guest) * (1 + drift / 2^60), rounded down; alpha = 1 + drift / 2^60. */
struct clock_line {
	int64_t ref_guest, ref_host;  /* ns */
	int64_t drift;                /* units of 2^-60 */
};
int64_t clock_line_at(const struct clock_line *line, int64_t guest_ns);
double clock_line_ppm(const struct clock_line *line);

struct clock_point { int64_t guest, host; };

/* One edge of the corridor: `left` up to the first point, straight from point to point, `right` after the last one. */
struct clock_edge {
	struct clock_line left, right;
	struct clock_point *point;
	size_t points;  /* 0 = unknown */
};

/* One piece of a guest's clock: it holds from `from` (guest ns, included) to the next piece's.  Where the clock jumps, the
 * traces may leave it open when: then, in [unsure_from, unsure_to), this piece may hold or the one before, and the
 * corridor is that of both together.  The jump is `placed` when no event of the guest lies there. */
struct clock_piece {
	int64_t from;
	int64_t unsure_from, unsure_to;     /* guest ns; from lies in it, or is its end; equal = it is sure */
	bool placed;
	bool repeats;                       /* set back there: in which order events of those times came, nobody knows */
	struct clock_line line;
	struct clock_line lowest, highest;  /* of the least and the greatest drift that fit; equal to `line` = unknown */
	struct clock_edge low, high;        /* the corridor: the true clock lies between them */
	enum sync_quality quality;
	uint64_t pairs_ab, pairs_cd;        /* that bound it, by direction */
	uint64_t rejected;                  /* outliers */
};

struct clock_map {
	struct clock_piece *piece;  /* in order of from; the first one holds for all earlier times too */
	size_t pieces;
	int64_t known_from, known_to;  /* guest ns, included: it has a corridor at most there; equal = everywhere */
};
int64_t clock_map_at(const struct clock_map *map, int64_t guest_ns);                     /* guest -> host ns */
/* Width of the corridor at that guest time in ns, rounded up; -1 when it is unknown. */
int64_t clock_map_band(const struct clock_map *map, int64_t guest_ns);
/* The corridor itself: *low rounded down, *high up; false when it is unknown. */
bool clock_piece_bounds(const struct clock_piece *p, int64_t guest_ns, int64_t *low, int64_t *high);
bool clock_map_bounds(const struct clock_map *map, int64_t guest_ns, int64_t *low, int64_t *high);
/* The same, for times in order: where the last one was found is where the next one is looked for.  { 0 } to begin with. */
struct clock_near { size_t low, high; };
bool clock_map_bounds_near(const struct clock_map *map, int64_t guest_ns, struct clock_near *near, int64_t *low,
                           int64_t *high);
bool clock_map_knows(const struct clock_map *map, int64_t guest_ns);  /* that time is where it may have a corridor */
/* It is not known before or after these times; false: nothing is left, and what it says then is not to be used. */
bool clock_map_cut(struct clock_map *map, int64_t from, int64_t to);
bool clock_map_unsure(const struct clock_map *map, int64_t guest_ns);  /* it may be either of two pieces' time */
int64_t clock_edge_at(const struct clock_edge *edge, int64_t guest_ns);  /* rounded down; there must be points */
void clock_edge_shift(struct clock_edge *edge, int64_t ns);
void clock_map_shift(struct clock_map *map, int64_t ns);  /* lines and corridor; within the range of int64_t */
void clock_map_copy(struct clock_map *to, const struct clock_map *from);
/* *map takes a guest's time to that of the guest that runs it; makes that go on to the host, by that one's clock. */
void clock_map_compose(struct clock_map *map, const struct clock_map *outer);
void clock_map_release(struct clock_map *map);

/* SYNC_AUTO and SYNC_TSC take a clock that the TSC gives, if containment does not refute it; else the one goes by
 * events and containment, the other by containment. */
enum sync_method { SYNC_AUTO, SYNC_EVENTS, SYNC_CONTAINMENT, SYNC_OFFSET, SYNC_NONE, SYNC_TSC };
extern const char *const sync_method_name[];

/* How a vCPU's host thread was found. */
enum vcpu_evidence {
	VCPU_BY_SESSION, VCPU_BY_TRACER, VCPU_BY_SYNC, VCPU_BY_NAME, VCPU_BY_CONTAINMENT, VCPU_BY_ORDER, VCPU_BY_HINT
};
extern const char *const vcpu_evidence_name[];

struct sync_vcpu {
	unsigned number;         /* of the CPU in the guest */
	int32_t host_tid;        /* its thread on the machine that runs it */
	enum vcpu_evidence evidence;
	bool moved;              /* of the process that its VM has moved to */
};

/* Where the pairs lie that bound a clock, over SYNC_SPANS equal spans of the guest's trace.  A pair says that the clock
 * lies below it (SYNC_ABOVE) or above it; how far off it is, is its delay, of which step s means at most
 * sync_delay_bound(s) ns: 1, 2, 5, 10, 20, ...  Of containment only the nearest pair of each span is noted. */
#define SYNC_SPANS 64
#define SYNC_DELAY_STEPS 36
enum sync_side { SYNC_ABOVE, SYNC_BELOW };
enum sync_seen { SYNC_SEEN_EVENT = 1, SYNC_SEEN_CONTAINMENT = 2, SYNC_SEEN_OUTLIER = 4 };
struct sync_delays {
	uint8_t seen[2][SYNC_DELAY_STEPS][SYNC_SPANS];  /* by side; flags of enum sync_seen */
};
int64_t sync_delay_bound(unsigned step);    /* ns */
unsigned sync_delay_step(int64_t ns);       /* 0 for all up to 1 ns, the last one for all beyond it */
int64_t sync_span_ns(const struct trace_info *guest);  /* length of a span; the last one may be shorter */

/* A VM as the machine that runs it sees it, with its guest trace if there is one; or a guest trace that nobody runs, as
 * far as the traces tell. */
struct sync_vm {
	char *name;              /* unique: the guest trace's machine, else from the process, else the PID or a TID */
	size_t parent;           /* what runs it: 0 = the host, i + 1 = vm[i], which comes before this one */
	int32_t host_pid;        /* the VM's process there, -1 unknown */
	int32_t moved_pid;       /* the process there that it has moved to while it ran, -1 none */
	char *host_comm, *moved_comm;  /* their names, or ""; moved_comm NULL: it has not moved */
	const struct trace *guest;  /* borrowed; NULL: nobody traced this VM */
	struct sync_vcpu *vcpu;
	size_t vcpus;
	struct sync_life { int64_t from, to; } *life;  /* of vcpu[i]: host ns while that TID was it; TIDs are reused */
	struct clock_map clock;  /* to the host's; pieces == 0 without a guest trace */
	const char *doubt;       /* why nothing is known of its clock; NULL: something is */
	enum sync_method method; /* what gave the clock: events, containment, offset, tsc, none; auto = both kinds of pairs */
	/* Of its clock against that of the machine that runs it: */
	uint64_t pairs;          /* matched */
	uint64_t unmatched;      /* keys without a partner */
	int64_t band_events, band_containment;  /* ns, corridor in mid-trace by such pairs; -1 = none, or not asked */
	struct sync_delays delays;
	uint64_t inside, outside;  /* guest events inside their vCPU's guest mode, and not */
	uint64_t refuted;        /* of those outside: wherever in its corridor the clock is; by containment it has none then */
	bool adrift;             /* it may have stepped by anything, and nothing would tell: it has no corridor */
	double containment;      /* share 0..1 of guest events inside their vCPU's guest mode; -1 = not computable */
	int64_t worst_violation; /* ns outside it, of the worst event; -1 = not computable */
};

struct sync_result {
	const struct trace *host;  /* borrowed; NULL when only guests were traced */
	struct sync_vm *vm;
	size_t vms;
};

#define SYNC_NUDGE_MAX INT64_C(3600000000000)

/* What the user knows of a guest (a session file); it wins over everything that the traces suggest. */
struct sync_hint_vcpu { unsigned number; int32_t host_tid; };
struct sync_hint {
	char *guest;               /* its name */
	char *parent;              /* of the machine that runs it, "host" for the host; NULL: to be found out */
	bool has_offset;           /* its clock is known: that of the machine that runs it = guest + offset, ns */
	int64_t offset;
	/* Its TSC is known, if its trace has TSC times: that of the machine that runs it * ratio / 2^bits + offset, in cycles
	 * modulo 2^64, for the whole trace. */
	bool has_tsc;
	int64_t tsc_offset;
	uint64_t tsc_ratio;
	unsigned tsc_bits;
	int64_t nudge;             /* ns, added to the clock that is found or given; |nudge| <= SYNC_NUDGE_MAX */
	struct sync_hint_vcpu *vcpu;
	size_t vcpus;              /* 0: nothing is said of them; without `parent` they are threads of the host */
};

struct sync_options {
	enum sync_method method;
	bool audit;                /* with SYNC_NONE: a clock that a hint gives is taken, whatever the events say of it */
	int64_t offset;            /* SYNC_OFFSET: the clock of the machine that runs it = guest + offset, ns */
	const struct sync_hint *hint;
	size_t hints;
	bool bands;                /* what the pairs of containment alone leave of a clock is to be told, too */
	/* What else is to be done, by whoever has time while a host's windows keep one thread busy; not after a failure. */
	void (*meanwhile)(void *arg);  /* NULL: nothing */
	void *arg;
	unsigned workers;          /* threads; 0 = one per core */
	struct progress progress;
};

/* Synchronizes the traces.  Any of them with kvm events may run VMs.  Of several with the role of a host, all but one must
 * prove to be guests: their events lie within the guest mode of another's VM.  Else they are two hosts: refused.
 * The result borrows the traces. */
int sync_run(struct trace *const *trace, size_t n, const struct sync_options *options, struct sync_result *out,
             struct notes *notes, struct error *err);
void sync_result_release(struct sync_result *r);

#endif
