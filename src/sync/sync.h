/* Clock synchronization: maps the clock of each guest to the host's clock, and finds which VM each guest trace
 * belongs to and which host thread runs each vCPU. The method is that of the paper, section "Trace synchronization",
 * plus containment: each guest event lies between a VM entry and the next VM exit of its vCPU.
 *
 * A clock is piecewise linear. Arithmetic is exact to the ns: drift is a fixed-point number, products are __int128.
 *
 * The true time of an event lies within its clock's error bounds: a lower and an upper polyline around the
 * estimated line. Where no bounds exist the error is unknown. */
#pragma once

#include "base/base.h"
#include "base/notes.h"
#include "base/progress.h"
#include "sync/reason_table.h"
#include "trace/trace.h"

/* Reason why a clock or a VM is unknown. */
#define SYNC_REASON_CODE(code, name, text, advice) SYNC_REASON_##code,
enum sync_reason { SYNC_REASON_NONE, SYNC_REASONS(SYNC_REASON_CODE) SYNC_REASON_COUNT };
#undef SYNC_REASON_CODE
struct sync_reason_row { const char *name, *text, *advice; };
extern const struct sync_reason_row sync_reason_row[SYNC_REASON_COUNT];  /* indexed by enum sync_reason; texts of
                                                                          * SYNC_REASON_NONE are empty */

enum sync_quality { SYNC_ABSENT, SYNC_INCOMPLETE, SYNC_APPROXIMATE, SYNC_ACCURATE };
extern const char *const sync_quality_name[];

/* host = ref_host + (t - ref_guest) * (1 + drift / 2^60), rounded down. */
struct clock_line {
	int64_t ref_guest, ref_host;  /* ns */
	int64_t drift;                /* units of 2^-60 */
};
int64_t clock_line_at(const struct clock_line *line, int64_t guest_ns);
double clock_line_ppm(const struct clock_line *line);

struct clock_point { int64_t guest, host; };

/* One error bound, a polyline: the line `left` before the first point, straight between points, the line `right` after
 * the last point. */
struct clock_bound {
	struct clock_line left, right;
	struct clock_point *point;
	size_t points;  /* 0: the bound is unknown */
};

/* One linear segment of a guest's clock. It holds from the guest time `from` (ns, included) to the start of the next
 * segment.
 *
 * A clock step's time may be known only as an interval [ambiguous_from, ambiguous_to): either this segment or the
 * previous one holds there, and the error bounds include both. `placed`: no guest event lies in that interval. */
struct clock_segment {
	int64_t from;
	int64_t ambiguous_from, ambiguous_to;     /* guest ns; contains `from`, or ends there; empty: the step's time is
	                                           * exact */
	bool placed;
	bool repeats;                       /* the clock was set back here: the order of the events in the ambiguous interval
	                                     * is unknown */
	struct clock_line line;
	struct clock_line lowest, highest;  /* lines with the smallest and greatest drift that fit; equal to `line`: unknown */
	struct clock_bound low, high;        /* error bounds: the true clock lies between them */
	enum sync_quality quality;
	uint64_t pairs_ab, pairs_cd;        /* pairs that bound the segment: guest to host, host to guest */
	uint64_t rejected;                  /* pairs ignored as outliers */
};

struct clock_map {
	struct clock_segment *segment;  /* sorted by `from`; the first segment also holds for all earlier times */
	size_t segments;
	int64_t known_from, known_to;  /* guest ns, both included: range with error bounds; known_from == known_to:
	                                * everywhere */
};
int64_t clock_map_at(const struct clock_map *map, int64_t guest_ns);                     /* Converts guest ns to host ns. */
/* Returns the width of the error bounds at a guest time, ns, rounded up; -1: unknown. */
int64_t clock_map_error_width(const struct clock_map *map, int64_t guest_ns);
/* Gets the error bounds at a guest time: *low is rounded down, *high up. Returns false if they are unknown. */
bool clock_segment_bounds(const struct clock_segment *p, int64_t guest_ns, int64_t *low, int64_t *high);
bool clock_map_bounds(const struct clock_map *map, int64_t guest_ns, int64_t *low, int64_t *high);
/* The same for a sequence of ascending times: *hint keeps the positions of the last search; initialize it with { 0 }. */
struct clock_hint { size_t low, high; };
bool clock_map_bounds_hint(const struct clock_map *map, int64_t guest_ns, struct clock_hint *hint, int64_t *low,
                           int64_t *high);
/* Returns true if the clock, or each of its error bounds, is one that never decreases and drifts by less than 2 per mille:
 * in clock_steady_distance(ns) of guest time it then rises by at most ns. */
bool clock_map_is_steady(const struct clock_map *map);
bool clock_map_has_steady_bounds(const struct clock_map *map);
int64_t clock_steady_distance(int64_t host_ns);
/* Returns true if the time is in [known_from, known_to]. */
bool clock_map_has_bounds(const struct clock_map *map, int64_t guest_ns);
/* Restricts the range with error bounds to [from, to], guest ns. Returns false if the remaining range is empty;
 * known_from and known_to are then invalid. */
bool clock_map_cut(struct clock_map *map, int64_t from, int64_t to);
/* Returns true if it is unknown which of two segments holds. */
bool clock_map_is_ambiguous(const struct clock_map *map, int64_t guest_ns);
/* Returns the host time of the bound, rounded down; the bound must have points. */
int64_t clock_bound_at(const struct clock_bound *edge, int64_t guest_ns);
void clock_bound_shift(struct clock_bound *edge, int64_t ns);
/* Shifts lines and bounds by ns of host time; the result must fit int64_t. */
void clock_map_shift(struct clock_map *map, int64_t ns);
void clock_map_copy(struct clock_map *to, const struct clock_map *from);
/* Composes a nested guest's clock: *map leads from the guest to the outer guest, `outer` from the outer guest to the
 * host. */
void clock_map_compose(struct clock_map *map, const struct clock_map *outer);
void clock_map_release(struct clock_map *map);

/* A clock's source. As an option, SYNC_AUTO and SYNC_TSC use the clock computed from the TSC unless containment
 * contradicts it; then SYNC_AUTO uses sync events and containment, SYNC_TSC containment alone. */
enum sync_method { SYNC_AUTO, SYNC_EVENTS, SYNC_CONTAINMENT, SYNC_OFFSET, SYNC_NONE, SYNC_TSC };
extern const char *const sync_method_name[];

/* Evidence that a host thread runs a vCPU. */
enum vcpu_evidence {
	VCPU_BY_SESSION, VCPU_BY_TRACER, VCPU_BY_SYNC, VCPU_BY_NAME, VCPU_BY_CONTAINMENT, VCPU_BY_ORDER, VCPU_BY_KVM_VCPU_ID,
	VCPU_BY_HYPERVISOR
};
extern const char *const vcpu_evidence_name[];

struct sync_vcpu {
	unsigned number;         /* CPU number in the guest */
	int32_t host_tid;        /* thread on the machine that runs the VM */
	enum vcpu_evidence evidence;
	bool moved;              /* thread belongs to the destination process of a live migration */
};

/* Histogram of the sync pairs that bound a clock, for `sync --plot`: the distances between clock and pairs, in
 * logarithmic steps, for each of SYNC_DELAY_SLICES equal slices of the guest's trace. A pair is an upper bound of the
 * clock (SYNC_ABOVE) or a lower bound (SYNC_BELOW). Step s stands for distances up to sync_delay_bound(s): 1, 2, 5, 10,
 * 20, ... ns. Of the pairs by containment, only the closest pair of each slice is recorded. */
#define SYNC_DELAY_SLICES 64
#define SYNC_DELAY_STEPS 36
enum sync_side { SYNC_ABOVE, SYNC_BELOW };
enum sync_pair_kind { SYNC_PAIR_EVENT = 1, SYNC_PAIR_CONTAINMENT = 2, SYNC_PAIR_OUTLIER = 4 };
struct sync_delays {
	uint8_t seen[2][SYNC_DELAY_STEPS][SYNC_DELAY_SLICES];  /* by enum sync_side; flags of enum sync_pair_kind */
};
int64_t sync_delay_bound(unsigned step);    /* Returns a step's greatest distance, ns. */
/* Returns a distance's step; 0: up to 1 ns; the last step includes all greater distances. */
unsigned sync_delay_step(int64_t ns);
/* Returns a slice's length, ns; the last slice may be shorter. */
int64_t sync_delay_slice_ns(const struct trace_info *guest);

/* A VM with its guest trace if the guest was traced; or a guest trace that belongs to no known VM. */
struct sync_vm {
	char *name;                    /* unique: machine name of the guest trace, or name of the process, or "VM <pid>", or
	                                * "VM of TID <tid>" */
	size_t parent;                 /* machine that runs the VM; 0: host; i + 1: vm[i], which precedes this VM */
	int32_t host_pid;              /* process of the VM on its parent machine; -1: unknown */
	int32_t migrated_pid;             /* destination process of a live migration; -1: none */
	char *host_comm, *migrated_comm;  /* names of these processes or ""; migrated_comm NULL: no migration */
	const struct trace *guest;     /* borrowed; NULL: the guest was not traced */
	struct sync_vcpu *vcpu;
	size_t vcpus;
	struct sync_vcpu_lifetime { int64_t from, to; } *life;  /* lifetime of vcpu[i], host ns */
	struct clock_map clock;   /* guest to host; segments == 0: no guest trace */
	enum sync_reason reason;  /* why the clock is unknown; SYNC_REASON_NONE: the clock is known */
	enum sync_method method;  /* the clock's source; SYNC_AUTO: sync events and containment */
	/* Relative to the machine that runs the VM: */
	uint64_t pairs;          /* sync pairs */
	uint64_t unmatched;      /* sync events without a partner */
	int64_t error_width_events, error_width_containment;  /* width of the error bounds in the middle of the trace from
	                                                       * pairs of one source alone, ns; -1: no such pairs, or not
	                                                       * requested */
	struct sync_delays delays;
	uint64_t inside, outside;  /* guest events inside and outside their vCPU's guest mode */
	uint64_t contradictions;   /* events outside guest mode for every clock within the error bounds; a clock by
	                            * containment with such events has no bounds */
	bool has_given_rate;       /* the trace contains TSC cycles, converted with sync_options.tsc_hz */
	bool unverified;           /* a clock step of unknown size cannot be excluded: no error bounds */
	double containment;        /* inside / (inside + outside), 0..1; -1: no event to judge */
	int64_t worst_violation;   /* greatest distance of an event from guest mode, ns; -1: no event to judge */
};

struct sync_result {
	const struct trace *host;  /* borrowed; NULL: only guests were traced */
	struct sync_vm *vm;
	size_t vms;
};

#define TSC_HZ_MIN INT64_C(200000000)
#define TSC_HZ_MAX INT64_C(20000000000)
#define SYNC_MANUAL_OFFSET_MAX INT64_C(3600000000000)

/* Facts about a guest specified by the user (session file). They override the evidence in the traces. */
struct sync_hint_vcpu { unsigned number; int32_t host_tid; };
struct sync_hint {
	char *guest;               /* the guest's name */
	char *parent;              /* machine that runs the guest, "host" for the host; NULL: unknown */
	bool has_offset;           /* the clock is given: time on the parent machine = guest + offset, ns */
	int64_t offset;
	/* The TSCs' relation, for traces with TSC timestamps: guest's TSC = parent's TSC * ratio / 2^bits + offset, in
	 * cycles modulo 2^64, for the whole trace. */
	bool has_tsc;
	int64_t tsc_offset;
	uint64_t tsc_ratio;
	unsigned tsc_bits;
	int64_t manual_offset;             /* ns, added to the estimated or given clock; at most SYNC_MANUAL_OFFSET_MAX in
	                                    * absolute value */
	struct sync_hint_vcpu *vcpu;
	size_t vcpus;              /* 0: not specified; TIDs are those of the host if `parent` is NULL */
};

struct sync_options {
	enum sync_method method;
	bool audit;                /* with SYNC_NONE: use a clock given by a hint even if events contradict it */
	int64_t offset;            /* SYNC_OFFSET: time on the parent machine = guest + offset, ns */
	int64_t tsc_hz;            /* frequency of the TSC where nothing in the traces implies it; 0: not given */
	const struct sync_hint *hint;
	size_t hints;
	bool bands;                /* also compute the error bounds that containment alone yields */
	/* The caller's unrelated work, run in a worker thread while the traces are read; skipped after a failure. */
	void (*background_task)(void *arg);  /* NULL: none */
	void *arg;
	unsigned workers;          /* threads; 0 = one per core */
	struct progress progress;
};

/* Synchronizes the traces. Any machine with kvm events may run VMs. If several traces have ROLE_HOST, all but one must
 * be proven to be guests (their events lie within the guest mode of another machine's VM); otherwise the call fails with
 * STATUS_INPUT. The result borrows the traces; sync_result_release() frees the result. Returns 0, or -1 with *err set. */
int sync_run(struct trace *const *trace, size_t n, const struct sync_options *options, struct sync_result *out,
             struct notes *notes, struct error *err);
void sync_result_release(struct sync_result *r);

/* Measures the rate of a TSC from the timer expirations of a trace with times in cycles (in_cycles). Returns 1, 0 = too few
 * timer events, -1 = error. */
int sync_tsc_rate(const struct trace *trace, uint64_t *millihertz, struct error *err);
