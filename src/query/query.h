/* Questions asked of a history: who is there, execution flow, gaps, steal matrix.  Reads the history only. */
#ifndef STEALSCOPE_QUERY_QUERY_H
#define STEALSCOPE_QUERY_QUERY_H

#include <assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/error.h"
#include "base/notes.h"
#include "base/progress.h"
#include "base/schema.h"
#include "base/states.h"
#include "history/history.h"

/* ---- Who is there --------------------------------------------------------------------------------------- */

enum machine_kind { MACHINE_HOST, MACHINE_VM, MACHINE_CONTAINER };

struct topo_cpu {  /* attribute ids are HISTORY_NONE where the history lacks them */
	unsigned number;
	uint32_t machine;                       /* index */
	SCHEMA_IDS(CPU_ATTRIBUTES, CPU_ATTRS);   /* .status, .current, ... */
	int32_t host;                           /* vCPU only: index of the thread that executes it, or -1.  That thread
	                                           is the host's, or another guest's when the guest is nested */
};

struct topo_thread {
	int32_t tid;
	uint32_t machine;                       /* index */
	SCHEMA_IDS(THREAD_ATTRIBUTES, THREAD_ATTRS);  /* .status, .name, ... */
	int32_t role;                           /* threads that are a vCPU at times: index into topo->role; else -1 */
};

/* A vCPU that a TID executes at times.  TIDs are used again: another of its lives may be another vCPU, or none. */
struct topo_role {
	uint32_t vcpu;                          /* index of the cpu in topo->cpu */
	int32_t next;                           /* role of the same thread, or -1 */
};

struct topo_machine {
	const char *name;                       /* "host" for the host; unescaped: escape before printing */
	enum machine_kind kind;
	int32_t parent;                         /* VM: index of the machine that runs it; else and unknown -1 */
	bool runs_vms;                          /* it is the parent of one */
	uint32_t cpu, cpus;                     /* its CPUs are topo->cpu[cpu .. cpu + cpus - 1], by number */
	uint32_t thread, threads;               /* likewise topo->thread[], by TID */
};

struct topo {
	const struct history *h;                /* borrowed */
	struct topo_machine *machine;           /* the host first (if traced), VMs by name, then containers */
	struct topo_cpu *cpu;
	struct topo_thread *thread;
	struct topo_role *role;
	uint32_t machines, cpus, threads, roles;
	/* From the numbers of this history to ours, by the names of the states; unknown names count as UNKNOWN.
	 * The masks hold the file's numbers: bit n = state n means "wanted to run and could not". */
	uint8_t vcpu_state[HISTORY_STATES], thread_state[HISTORY_STATES];
	uint8_t out_reason[HISTORY_STATES];     /* likewise; unknown ones are OUT_REASON_COUNT */
	uint8_t poll_outcome[HISTORY_STATES];   /* likewise; unknown ones are POLL_UNTOLD */
	uint64_t vcpu_gap, thread_gap;          /* sets of states, in numbers of the file: gaps are made of them */
	uint64_t vcpu_lost;                     /* vcpu_gap and VMM */
	bool folded;                            /* no vCPU was ever HOST_BLOCKED: perhaps folded into PREEMPTED */
};

int topo_open(struct topo *topo, const struct history *h, struct error *err);
void topo_release(struct topo *topo);
int topo_find_machine(const struct topo *topo, const char *name);            /* index or -1; "host" = the host */
int topo_find_thread(const struct topo *topo, uint32_t machine, int32_t tid);  /* index or -1 */
int topo_find_cpu(const struct topo *topo, uint32_t machine, unsigned number); /* index or -1 */

/* What a reference names: the index of a machine, or -1, and its number. */
int topo_ref(const struct topo *topo, int64_t value, uint32_t *number);

struct subject {
	enum subject_kind { SUBJECT_MACHINE, SUBJECT_CPU, SUBJECT_THREAD } kind;
	uint32_t index;  /* into topo->machine, ->cpu or ->thread */
};
/* Can it be told what is taken from it?  Not from a VM whose vCPUs no host was seen to run, nor from these. */
bool topo_is_watched(const struct topo *topo, const struct subject *s);
/* Is it a VM without that, or in one?  What is seen of its loss is the least that there was.  NULL: is any VM? */
bool topo_is_alone(const struct topo *topo, const struct subject *s);
/* All that an argument may mean: "Debian", "Debian/3525", "Debian/CPU0", "host/42", the name of a thread at any time
 * ("Debian/fibonacci", or "fibonacci" of any machine); if there is none of that name, those whose names begin so or match
 * the glob ("Debian/critical*", "vm0?/CPU0").  The caller frees *found. */
int topo_find_subjects(const struct topo *topo, const char *text, struct subject **found, size_t *n,
                       struct error *err);
/* The only one of them; none, or several, are refused, with what may have been meant in the mend. */
int topo_one_subject(const struct topo *topo, const char *text, const struct subject *found, size_t n,
                     struct subject *out, struct error *err);
/* Both. */
int topo_parse_subject(const struct topo *topo, const char *text, struct subject *out, struct error *err);
/* First and last moment at which a subject is there: 1, 0 = never, -1 = error.  Machines and CPUs always are. */
int topo_life(const struct topo *topo, const struct subject *s, int64_t *start, int64_t *end, struct error *err);
#define PARTY_TEXT 640  /* bytes into which any subject or party in words fits: a machine (MACHINE_NAME), TID, comm */
/* "Debian/3525 critical_task", escaped, the thread's longest-held name. */
char *topo_subject_text(const struct topo *topo, const struct subject *s, char *buf, size_t size);
uint32_t subject_machine(const struct topo *topo, const struct subject *s);
/* The raw name that a thread held longest; "" when it has none. */
const char *topo_longest_name(const struct topo *topo, uint32_t thread);

/* The notes on the input that make answers about this subject (NULL: any) within [from, to] doubtful: those about its
 * machine, about the machines that run that, and about nobody alone.  Adds copies to *out.  false: what the history
 * keeps of them is damaged. */
bool doubts_of(const struct topo *topo, const struct subject *s, int64_t from, int64_t to, struct notes *out);

/* ---- Questions that may take long ------------------------------------------------------------------------------ */

/* Answered in steps: flow_open() and its like ask, inquiry_step() works on it, flow_take() and its like give the
 * answer, once.  What is open may be closed between any two steps.  The topology is borrowed. */
struct inquiry;
/* Works for about ns, on all processors.  1 = answered, 0 = there is more to do, -1 = error. */
int inquiry_step(struct inquiry *q, int64_t ns, struct error *err);
double inquiry_done(const struct inquiry *q);  /* 0 .. 1 */
/* Steps to the end; `progress` may be NULL. */
int inquiry_run(struct inquiry *q, const struct progress *progress, struct error *err);
void inquiry_close(struct inquiry *q);         /* NULL is allowed */

/* ---- Execution flow (paper, Algorithms 1 and 2, Eq. 3) ----------------------------------------------------- */

/* X(code, name in csv and json) */
#define FLOW_KINDS(X) \
	X(FLOW_RUNNING, "running")        /* the analysed thread itself */ \
	X(FLOW_PREEMPTING, "preempting")  /* another thread has the CPU that ours waits for */ \
	X(FLOW_HYPERVISOR, "hypervisor")  /* VMM on behalf of the thread named */ \
	X(FLOW_IRQ, "irq")                /* an interrupt or softirq handler */ \
	X(FLOW_WAITING, "waiting")        /* the thread sleeps; the thread named is the one that wakes it */ \
	X(FLOW_IDLE_CPU, "idle-cpu")      /* runnable, yet the pCPU is idle: being woken, or not placed */ \
	X(FLOW_LIMITED, "limited")        /* held back although nobody else needs its CPU; the name says by what */ \
	X(FLOW_UNKNOWN, "unknown")        /* events were lost */
#define FLOW_CODE(code, name) code,
enum flow_kind { FLOW_KINDS(FLOW_CODE) FLOW_KIND_COUNT };
#undef FLOW_CODE
extern const char *const flow_kind_name[FLOW_KIND_COUNT];

/* Who has the CPU, or what happens instead.  system: index of a machine, or -1 (nobody: waiting without waker, idle CPU,
 * limited, unknown). */
struct party {
	int32_t system;
	int32_t tid;         /* -1 when none; 0 = swapper */
	uint32_t name;       /* index into the names of the answer */
	uint32_t kind;       /* enum flow_kind; as wide as the rest, so that no byte of a party is undefined */
};
static_assert(sizeof(struct party) == 16, "parties are compared byte by byte");

static inline bool party_same(const struct party *a, const struct party *b)
{
	return memcmp(a, b, sizeof *a) == 0;
}

/* One piece of the flow. */
struct flow_interval {
	int64_t start, end;  /* ns, closed */
	uint32_t entry;      /* index into flow->entry */
	int16_t pcpu;        /* -1 when unknown */
};

/* Sum of all pieces of one party. */
struct flow_entry {
	struct party who;
	int64_t duration;    /* ns */
	int64_t lost;        /* ns of it that the subject was kept from running */
	double share;        /* D(T), Eq. 3: duration / (end - start + 1) of the window */
	uint64_t pieces;
	int64_t idled;       /* ns of it in pieces of IDLE_LIMITED and more */
	struct { int64_t start, ns; int16_t pcpu; } longest;  /* the first of the longest pieces */
};

/* What an entry had of one of the equal parts of the window. */
struct flow_cell {
	uint32_t entry, column;
	int64_t ns;
};

struct flow {
	int64_t start, end;             /* the window, cut to the life of the thread */
	struct flow_interval *interval; /* tiles [start, end]: interval[i].end + 1 == interval[i + 1].start; or none */
	size_t intervals;
	struct flow_entry *entry;       /* longest first */
	size_t entries;
	unsigned columns;
	struct flow_cell *cell;         /* by time; those that would be 0 are left out */
	size_t cells;
	char **name;                    /* raw names: escape before printing */
	size_t names;
};

/* The sums are always those of the whole window. */
struct flow_options {
	size_t intervals;               /* keep them if there are no more than that, else none; SIZE_MAX = all */
	unsigned columns;               /* parts of the window that get cells; 0 = none */
	bool no_idlers;                 /* an idle guest's vCPU that has a CPU is named itself, not the guest's idle task */
};

/* The flow of a thread over its life, or of a CPU, or the part of it within [from, to]: who had the CPU while the
 * subject wanted it.  An idle vCPU counts as waiting, for nobody. */
struct inquiry *flow_open(const struct topo *topo, const struct subject *s, int64_t from, int64_t to,
                          const struct flow_options *options, struct error *err);
void flow_take(struct inquiry *q, struct flow *out);
void flow_release(struct flow *f);
/* All of it at once.  NULL options: with all intervals, and without cells. */
int flow_of(const struct topo *topo, const struct subject *s, int64_t from, int64_t to,
            const struct flow_options *options, struct flow *out, struct error *err);
/* The interval that t stands in; the first or last one where t lies outside. */
size_t flow_piece_at(const struct flow *f, int64_t t);
/* First ns of column c of n equal parts of [start, end]; column n begins behind it. */
int64_t flow_column(int64_t start, int64_t end, unsigned c, unsigned n);
/* Adds the cells to lanes of `cells` columns each, lane[lane_of[entry] * cells ...]; UINT32_MAX: to none.  Exact when
 * cells == f->columns. */
void flow_paint(const struct flow *f, const uint32_t *lane_of, unsigned cells, int64_t *lane);

/* Who took most, for whom one line is room.  Of the machines the one that took most, and of that the party that took more
 * than half of its part, and as much as any other; where there is none the machine (tid -1; the hypervisor's work for the
 * subject itself counts as one of its own).  Somebody who is of none, as an idle CPU: where nobody's part is larger. */
struct thief {
	struct party who;    /* FLOW_RUNNING: nobody took anything */
	int64_t ns;
	size_t parties;      /* whose part this is: 1, or those of the machine */
};
/* Of what the subject lost to these. */
void flow_thief(const struct topo *topo, const struct subject *self, const struct flow_entry *entry, size_t n,
                struct thief *out);
/* What stands, for people, before the name of a thief that is the subject's own machine: "others in ", "threads of "; or
 * "". */
const char *thief_own(const struct topo *topo, const struct subject *self, const struct party *thief);

/* ---- Gaps and steal ----------------------------------------------------------------------------------------- */

/* A maximal interval in which a vCPU or thread wanted to run and was kept from it: vCPU PREEMPTED, HOST_BLOCKED or WAKING,
 * thread PREEMPTED or VIRT_PREEMPTED (a vCPU wants a pCPU, which it has while the hypervisor works for it; a thread wants a
 * vCPU that executes).  "Lost", in every report, is the gaps and of a vCPU what it is served.  Culprits are the entries of
 * the flow within the gap, longest first. */
struct gap {
	struct subject subject;
	int64_t start, end;
	int64_t state;                  /* in which most of it was spent, of equal ones that of the least number in the file:
	                                 * history_state_name() */
};
/* The next (direction > 0) or previous gap of a CPU or thread after/before t.  1 = found, 0 = none, -1 = error. */
int gap_find(const struct topo *topo, const struct subject *s, int64_t t, int direction, struct gap *out,
             struct error *err);
/* The gap that t stands in.  1 = found, 0 = t is in no gap, -1 = error. */
int gap_at(const struct topo *topo, const struct subject *s, int64_t t, struct gap *out, struct error *err);
/* Exact ns that a subject lost within [t0, t1], from the state sums alone.  O(log n) per row.
 * A VM is the sum of its vCPUs; the host and a container that of their threads.  Threads that are a vCPU count for
 * the VM alone, those of a container for the container alone. */
int steal_time(const struct topo *topo, const struct subject *s, int64_t t0, int64_t t1, int64_t *ns,
               struct error *err);

/* What a subject wanted of a CPU and what it got, from the state sums alone: O(log n) per row.  Lost is steal_time().
 * Machines as there. */
struct demand {
	int64_t ran, lost;       /* ns; it wanted both together */
	int64_t served;          /* ns of lost: of vCPUs, in which the hypervisor had the CPU for them; that is no gap */
	int64_t slept;           /* ns */
	int64_t alive;           /* ns in which it was there: all of these, and what is unknown */
	unsigned rows;           /* that were added up: the vCPUs of a VM */
};
int demand_of(const struct topo *topo, const struct subject *s, int64_t t0, int64_t t1, struct demand *out,
              struct error *err);

/* ---- All gaps, one after the other ----------------------------------------------------------------------------- */

/* Who had the CPU during a piece of a gap; the pieces of a gap tile it. */
struct gap_piece {
	const struct gap *gap;
	bool of_machine;         /* its machine's loss is made up of such rows: as in steal_time() */
	const char *victim;      /* raw: the name that a thread held longest; NULL: it is a vCPU */
	int64_t start, end;
	struct party who;        /* its name is ... */
	const char *name;        /* ... this, raw */
	int pcpu;                /* -1 when unknown */
};
/* Calls fn for every piece of every gap within [from, to] of every vCPU, and of every thread that is not one: row by row,
 * in each in order of time; behind the last of all, once with NULL.  Names live until then.  Stops when fn returns other
 * than 0, and returns that; -1 on error.  Memory does not grow with the history.  progress->tick may be NULL; its unit is
 * rows. */
int gap_each_piece(const struct topo *topo, int64_t from, int64_t to, int (*fn)(void *arg, const struct gap_piece *p),
                   void *arg, const struct progress *progress, struct error *err);
/* Those of one subject alone: the rows of gap_list_of(). */
int gap_each_piece_of(const struct topo *topo, const struct subject *s, int64_t from, int64_t to,
                      int (*fn)(void *arg, const struct gap_piece *p), void *arg, struct error *err);
/* The same for each of n cells, cell i being [edge[i], edge[i + 1] - 1]: ns, added to ran[n] and lost[n]. */
int demand_cells(const struct topo *topo, const struct subject *s, const int64_t *edge, unsigned n, int64_t *ran,
                 int64_t *lost, struct error *err);

/* ---- Who suffers ------------------------------------------------------------------------------------------------ */

/* What was taken from a machine or a thread.  Lost is as in struct demand; gaps, and what is told of them, as below. */
struct summary_row {
	struct subject who;
	int64_t start, end;      /* its life, cut to the window; closed */
	struct demand demand;
	uint64_t gaps;           /* from here on 0 until its gaps have been looked at */
	int64_t p50, p90, p99;   /* of their lengths, nearest rank */
	struct gap longest;      /* the first of the longest: of the vCPU or thread that had it, cut to the window */
	/* As struct thief has it.  FLOW_HYPERVISOR of a machine: it was served for longer. */
	struct party thief;
	int64_t thief_ns;
};

/* X(code, name, what comes first) */
#define SUMMARY_ORDERS(X) \
	X(SUMMARY_BY_LOST, "lost", "who lost most; guests before the host") \
	X(SUMMARY_BY_SHARE, "share", "who lost most of the time in which it wanted to run") \
	X(SUMMARY_BY_LONGEST, "longest", "the longest gap") \
	X(SUMMARY_BY_P99, "p99", "the longest p99 of gaps") \
	X(SUMMARY_BY_GAPS, "gaps", "most gaps") \
	X(SUMMARY_BY_RAN, "ran", "who ran most") \
	X(SUMMARY_BY_LIFE, "life", "who lived longest") \
	X(SUMMARY_BY_ID, "id", "the machines in their order, threads by TID")
#define SUMMARY_ORDER(code, name, first) code,
enum summary_order { SUMMARY_ORDERS(SUMMARY_ORDER) SUMMARY_ORDER_COUNT };
#undef SUMMARY_ORDER

struct summary {
	int64_t start, end;
	struct summary_row *row;  /* machines, then threads that are no vCPU; the host's last, else who lost most first */
	size_t machines, rows;    /* row[machines .. rows - 1] are threads */
	char **name;
	size_t names;
	bool gaps;                /* what is known of gaps is in it */
	enum summary_order by;    /* how the rows are sorted */
};

struct summary_options {
	const struct subject *only;  /* this machine and its threads; NULL = all */
	int64_t from, to;
	bool gaps;                   /* false: demands alone, O(log n) per row */
};

extern const char *const summary_order_name[SUMMARY_ORDER_COUNT + 1];  /* NULL-terminated */
/* Machines and threads each among themselves. */
void summary_sort(struct summary *s, const struct topo *topo, enum summary_order by);

struct inquiry *summary_open(const struct topo *topo, const struct summary_options *options);
void summary_take(struct inquiry *q, struct summary *out);
/* All of it at once. */
int summary_of(const struct topo *topo, const struct summary_options *options, struct summary *out, struct error *err);
void summary_release(struct summary *s);

/* ---- Lists of gaps -------------------------------------------------------------------------------------------- */

/* Numbers by length: bin i has those from 2^i to 2^(i + 1) - 1 ns, the first one also 0. */
#define LENGTH_BINS 63
unsigned length_bin(int64_t ns);

struct gap_options {
	int64_t from, to;        /* gaps are cut to this window */
	int64_t min;             /* leave out shorter ones, ns */
	size_t top;              /* keep that many, the longest; 0 = all */
};

struct gap_item {
	struct gap gap;
	size_t culprit;          /* list->culprit[culprit .. culprit + culprits - 1], longest first, ... */
	size_t culprits;         /* ... durations add up to the gap, shares are of the gap */
	struct thief thief;      /* of them */
};

/* How long gaps are: all of at least `min`, also those beyond `top`. */
struct gap_lengths {
	struct subject who;      /* a vCPU or a thread */
	uint64_t count;
	int64_t total;           /* ns */
	int64_t p50, p90, p99, longest;  /* nearest rank; 0 when there are none */
	uint64_t bin[LENGTH_BINS];
};

struct gap_list {
	struct gap_item *item;   /* longest first, then by time */
	size_t items;
	struct flow_entry *culprit;
	size_t culprits;
	struct gap_lengths all;
	struct gap_lengths *row; /* of each vCPU or thread that has gaps, the longest time first */
	size_t rows;
	char **name;             /* raw names: escape before printing */
	size_t names;
};

/* The gaps of a vCPU, a thread, a VM (those of its vCPUs), the host or a container (those of its threads); of all
 * VMs when s is NULL.
 * With min <= 1, total == steal_time() of the same window. */
struct inquiry *gap_list_open(const struct topo *topo, const struct subject *s, const struct gap_options *options);
void gap_list_take(struct inquiry *q, struct gap_list *out);
/* All of it at once. */
int gap_list_of(const struct topo *topo, const struct subject *s, const struct gap_options *options,
                struct gap_list *out, struct error *err);
void gap_list_release(struct gap_list *l);

/* ---- Who took it from whom ------------------------------------------------------------------------------------ */

enum steal_by { STEAL_BY_MACHINE, STEAL_BY_THREAD };

struct steal_cell {
	struct party victim;     /* FLOW_RUNNING.  By machine: tid is -1 and name 0, of thieves too */
	struct party thief;
	int64_t ns;
	double share;            /* of what the victim lost in all: the cells of a victim add up to 1 */
};

struct steal {
	int64_t start, end;
	enum steal_by by;
	struct subject victim;   /* the only one, if ... */
	bool is_one;             /* ... it is a vCPU or a thread: what the cells call it may be its machine */
	struct steal_cell *cell; /* by victim, the one that lost most first; then by thief, likewise */
	size_t cells;
	char **name;
	size_t names;
};

struct steal_options {
	enum steal_by by;
	const struct subject *only;  /* victims: a machine, vCPU or thread; NULL = all */
	int64_t from, to;
	size_t most;             /* cells by thread: if there are more, all is given by machine; 0 = any number */
};

/* What every victim lost to every thief within [from, to].  Victims by machine: a VM loses what its vCPUs do, the
 * host and containers what their threads do, as in steal_time().  Victims by thread: every thread that is not
 * a vCPU; only a vCPU: that, of its machine's name.  Conservation: the cells of a victim add up to its steal_time(). */
struct inquiry *steal_open(const struct topo *topo, const struct steal_options *options);
void steal_take(struct inquiry *q, struct steal *out);
/* All of it at once. */
int steal_matrix(const struct topo *topo, enum steal_by by, const struct subject *only, int64_t from, int64_t to,
                 struct steal *out, struct error *err);
void steal_release(struct steal *s);

/* ---- VM exits --------------------------------------------------------------------------------------------------- */


/* The exits of a vCPU for one reason, or those of one of its guest's threads. */
struct exit_row {
	uint32_t vcpu;           /* index into topo->cpu */
	int32_t tid;             /* the guest's current thread, 0 = its idle task; -1: of all threads, or not known */
	uint32_t name;           /* of it: index into the list's names */
	uint32_t reason;         /* likewise: as the kernel of that architecture calls it, or its number */
	uint64_t count;          /* exits that begin in the window */
	uint64_t timed;          /* of these, those whose re-entry was recorded; the times below are theirs */
	int64_t total;           /* ns from the exit to the re-entry, also where that is beyond the window */
	int64_t min, p99, max;   /* ns; p99 by nearest rank; 0 when none is timed */
	int64_t max_at;          /* when the longest began, the first of them */
	uint64_t bin[LENGTH_BINS];  /* timed ones by length */
};

struct exit_list {
	struct exit_row *row;    /* by vCPU; within one the reason that took longest first */
	size_t rows;
	char **name;             /* raw names: escape before printing */
	size_t names;
	unsigned vcpus, silent;  /* that were asked about; those of them without any exit in the history */
};

struct exit_options {
	const struct subject *only;  /* a machine, a vCPU, its host thread, a guest's thread; the host and NULL: all VMs */
	int64_t from, to;
	bool by_thread;          /* rows by guest thread, too: their sums are those of the vCPU */
	/* NULL, or it is told when each exit begins (`reason`: index into the list's names), and the list has no rows. */
	void (*begins)(void *arg, uint32_t vcpu, uint32_t reason, int64_t t);
	void *arg;
};

/* From the exit to the next entry of the same vCPU, as `perf kvm stat` counts.  NULL and *err: a subject without exits of
 * its own, as a CPU of the host. */
struct inquiry *exits_open(const struct topo *topo, const struct exit_options *options, struct error *err);
void exits_take(struct inquiry *q, struct exit_list *out);
void exits_release(struct exit_list *l);

/* ---- What a vCPU waits for -------------------------------------------------------------------------------------- */

#define WAIT_KINDS(X) \
	X(WAIT_TIMER, "timer")      /* its guest's own, or one of its host for it */ \
	X(WAIT_IPI, "ipi")          /* another vCPU of the same guest */ \
	X(WAIT_NET, "net")          /* a thread that moves its packets, or a packet */ \
	X(WAIT_DEVICE, "device")    /* another thread of its monitor, or a device's interrupt */ \
	X(WAIT_TASK, "task")        /* any other thread of the host */ \
	X(WAIT_STOPPED, "stopped")  /* its monitor, which stops the machine, or lets it go on: a pause, a migration */ \
	X(WAIT_UNKNOWN, "unknown")  /* nothing tells */
#define WAIT_CODE(code, name) code,
enum wait_kind { WAIT_KINDS(WAIT_CODE) WAIT_KIND_COUNT };
#undef WAIT_CODE
extern const char *const wait_kind_name[WAIT_KIND_COUNT];

/* The sleeps of an idle vCPU that one party ended. */
struct wait_row {
	uint32_t vcpu;           /* index into topo->cpu; of a thread's sleeps UINT32_MAX */
	enum wait_kind kind;
	struct party by;         /* the thread that woke it, or the handler (tid -1); system -1: nobody known */
	uint64_t count;
	int64_t total;           /* ns asleep, within the window */
	double share;            /* of all its sleeps */
};

struct wait_list {
	struct wait_row *row;    /* by vCPU, longest first */
	size_t rows;
	char **name;             /* raw names: escape before printing */
	size_t names;
};

/* Of a vCPU, those of a VM, or all (NULL): by what the host alone tells.  Of a thread: all its sleeps. */
int waits_of(const struct topo *topo, const struct subject *s, int64_t from, int64_t to, struct wait_list *out,
             struct error *err);
void waits_release(struct wait_list *l);

/* ---- Guilty timers (paper, Fig. 15) --------------------------------------------------------------------------- */

/* A process (or the bare idle task) of a guest that wakes an otherwise idle vCPU again and again. */
struct periodic {
	int32_t system, tid;     /* tid 0: the guest's idle task handled a timer, no thread ran */
	uint32_t name;
	uint32_t vcpu;           /* index into topo->cpu */
	int64_t period;          /* ns, median distance of wakeups */
	double regular;          /* share of the distances within a tenth of the period or of its double */
	uint64_t wakeups;
	int64_t busy;            /* ns that the vCPU's thread was on a pCPU for it */
	int64_t cost;            /* ns during which it kept others from a pCPU */
	uint64_t switches;       /* how many of the wakeups did that */
};

struct periodic_list {
	struct periodic *item;   /* greatest cost first */
	size_t items;
	char **name;
	size_t names;
};

int gap_periodic(const struct topo *topo, int64_t from, int64_t to, struct periodic_list *out, struct error *err);
void periodic_release(struct periodic_list *l);

#include "query/causes.h"
#include "query/host_only.h"
#include "query/query_text.h"

#endif
