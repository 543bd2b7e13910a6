/* The tables that a history becomes: names, columns and types, described once for every sink.  Private to export/.
 *
 * Times are ns since the epoch on the host's clock; a row of time covers [ts, ts + dur - 1].  A CPU or thread is known by
 * its machine ("host", or the VM's or container's name) and its number there.  Texts from traces are escaped as in every
 * report (base/text.h).  Every table begins with run_id, by which a run that is loaded again replaces itself. */
#ifndef STEALSCOPE_EXPORT_TABLES_H
#define STEALSCOPE_EXPORT_TABLES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum field_type {
	FIELD_INT,
	FIELD_TIME,  /* an integer: ns since the epoch */
	FIELD_REAL,
	FIELD_TEXT,
};

/* X(code, name, type: the end of an enum field_type, may it be null?) */
#define MACHINE_FIELDS(X) \
	X(MACHINE_RUN, "run_id", INT, 0) \
	X(MACHINE_NAME, "machine", TEXT, 0) \
	X(MACHINE_SORT, "kind", TEXT, 0)             /* host, vm, container */ \
	X(MACHINE_BELOW, "parent", TEXT, 1)          /* the machine that runs it */ \
	X(MACHINE_UUID, "uuid", TEXT, 1)             /* of its trace; null: it was not traced */

#define CPU_FIELDS(X) \
	X(CPU_RUN, "run_id", INT, 0) \
	X(CPU_MACHINE, "machine", TEXT, 0) \
	X(CPU_NUMBER, "cpu", INT, 0) \
	X(CPU_HOST_TID, "host_tid", INT, 1)          /* of a vCPU: its first thread in the parent machine */

#define THREAD_FIELDS(X) \
	X(THREAD_RUN, "run_id", INT, 0) \
	X(THREAD_MACHINE, "machine", TEXT, 0) \
	X(THREAD_TID, "tid", INT, 0) \
	X(THREAD_START, "start_ns", TIME, 1)         /* of its first life in the history, */ \
	X(THREAD_END, "end_ns", TIME, 1)             /* and the last moment of its last one */ \
	X(THREAD_TITLE, "name", TEXT, 0)             /* that it held longest */ \
	X(THREAD_PROCESS_ID, "pid", INT, 1) \
	X(THREAD_PROCESS, "process", TEXT, 1)        /* name of the thread that has this number */

#define NAME_FIELDS(X) \
	X(NAME_RUN, "run_id", INT, 0) \
	X(NAME_MACHINE, "machine", TEXT, 0) \
	X(NAME_TID, "tid", INT, 0) \
	X(NAME_TS, "ts", TIME, 0) \
	X(NAME_DUR, "dur", INT, 0) \
	X(NAME_NAME, "name", TEXT, 0)

#define VCPU_STATE_FIELDS(X) \
	X(VCPU_STATE_RUN, "run_id", INT, 0) \
	X(VCPU_STATE_MACHINE, "machine", TEXT, 0) \
	X(VCPU_STATE_CPU, "cpu", INT, 0) \
	X(VCPU_STATE_TS, "ts", TIME, 0) \
	X(VCPU_STATE_DUR, "dur", INT, 0) \
	X(VCPU_STATE_STATE, "state", TEXT, 0)

#define THREAD_STATE_FIELDS(X) \
	X(THREAD_STATE_RUN, "run_id", INT, 0) \
	X(THREAD_STATE_MACHINE, "machine", TEXT, 0) \
	X(THREAD_STATE_TID, "tid", INT, 0) \
	X(THREAD_STATE_TS, "ts", TIME, 0) \
	X(THREAD_STATE_DUR, "dur", INT, 0) \
	X(THREAD_STATE_STATE, "state", TEXT, 0) \
	X(THREAD_STATE_CPU, "cpu", INT, 1)           /* at ts: where it runs, is queued, or ran last */

#define RUNNING_FIELDS(X) \
	X(RUNNING_RUN, "run_id", INT, 0) \
	X(RUNNING_MACHINE, "machine", TEXT, 0) \
	X(RUNNING_CPU, "cpu", INT, 0) \
	X(RUNNING_TS, "ts", TIME, 0) \
	X(RUNNING_DUR, "dur", INT, 0) \
	X(RUNNING_TID, "tid", INT, 0)                /* 0: idle */

/* of_machine: 1 where it is part of what the machine lost (the vCPUs of a VM, the threads of the host and of containers),
 * 0 for the threads of a VM, which lose the same time again and that to each other. */
#define GAP_FIELDS(X) \
	X(GAP_RUN, "run_id", INT, 0) \
	X(GAP_MACHINE, "machine", TEXT, 0) \
	X(GAP_CPU, "cpu", INT, 1)                    /* either of these two */ \
	X(GAP_TID, "tid", INT, 1) \
	X(GAP_NAME, "name", TEXT, 1) \
	X(GAP_OF_MACHINE, "of_machine", INT, 0) \
	X(GAP_TS, "ts", TIME, 0) \
	X(GAP_DUR, "dur", INT, 0) \
	X(GAP_STATE, "state", TEXT, 0)               /* of its longest part */ \
	X(GAP_THIEF_MACHINE, "thief_machine", TEXT, 1) \
	X(GAP_THIEF_TID, "thief_tid", INT, 1) \
	X(GAP_THIEF_NAME, "thief_name", TEXT, 0) \
	X(GAP_THIEF_KIND, "thief_kind", TEXT, 0)     /* kinds of the execution flow */ \
	X(GAP_THIEF_NS, "thief_ns", INT, 0)          /* of the thief, as gaps has it */

/* The pieces of every gap: who had the CPU meanwhile. */
#define FLOW_FIELDS(X) \
	X(FLOW_RUN, "run_id", INT, 0) \
	X(FLOW_MACHINE, "machine", TEXT, 0) \
	X(FLOW_CPU, "cpu", INT, 1) \
	X(FLOW_TID, "tid", INT, 1) \
	X(FLOW_TS, "ts", TIME, 0) \
	X(FLOW_DUR, "dur", INT, 0) \
	X(FLOW_KIND, "kind", TEXT, 0) \
	X(FLOW_THIEF_MACHINE, "thief_machine", TEXT, 1) \
	X(FLOW_THIEF_TID, "thief_tid", INT, 1) \
	X(FLOW_THIEF_NAME, "thief_name", TEXT, 0) \
	X(FLOW_PCPU, "pcpu", INT, 1)                 /* of the host, that it happened on */

/* What a victim lost to a thief in one second of the clock. */
#define STEAL_FIELDS(X) \
	X(STEAL_RUN, "run_id", INT, 0) \
	X(STEAL_BUCKET, "bucket_ts", TIME, 0) \
	X(STEAL_MACHINE, "victim_machine", TEXT, 0) \
	X(STEAL_CPU, "victim_cpu", INT, 1) \
	X(STEAL_TID, "victim_tid", INT, 1) \
	X(STEAL_NAME, "victim_name", TEXT, 1) \
	X(STEAL_OF_MACHINE, "of_machine", INT, 0) \
	X(STEAL_KIND, "kind", TEXT, 0) \
	X(STEAL_THIEF_MACHINE, "thief_machine", TEXT, 1) \
	X(STEAL_THIEF_TID, "thief_tid", INT, 1) \
	X(STEAL_THIEF_NAME, "thief_name", TEXT, 0) \
	X(STEAL_NS, "ns", INT, 0)

/* What a machine lost to thieves of one name in the whole run: what questions about many runs read, few rows whatever was
 * recorded. */
#define TAKEN_FIELDS(X) \
	X(TAKEN_RUN, "run_id", INT, 0) \
	X(TAKEN_MACHINE, "victim_machine", TEXT, 0) \
	X(TAKEN_KIND, "kind", TEXT, 0) \
	X(TAKEN_THIEF_MACHINE, "thief_machine", TEXT, 1) \
	X(TAKEN_THIEF_TID, "thief_tid", INT, 1)      /* null: several */ \
	X(TAKEN_THIEF_NAME, "thief_name", TEXT, 0) \
	X(TAKEN_NS, "ns", INT, 0)

#define EXIT_FIELDS(X) \
	X(EXIT_RUN, "run_id", INT, 0) \
	X(EXIT_MACHINE, "machine", TEXT, 0) \
	X(EXIT_CPU, "cpu", INT, 0) \
	X(EXIT_TS, "ts", TIME, 0) \
	X(EXIT_DUR, "dur", INT, 0) \
	X(EXIT_REASON, "reason", TEXT, 0)

#define REQUEST_FIELDS(X) \
	X(REQUEST_RUN, "run_id", INT, 0) \
	X(REQUEST_MACHINE, "machine", TEXT, 0) \
	X(REQUEST_ID, "request", TEXT, 0) \
	X(REQUEST_TID, "tid", INT, 1) \
	X(REQUEST_TS, "ts", TIME, 0) \
	X(REQUEST_DUR, "dur", INT, 0) \
	X(REQUEST_LOW, "provider_low_ns", INT, 0) \
	X(REQUEST_HIGH, "provider_high_ns", INT, 0) \
	X(REQUEST_CULPRIT, "culprit", TEXT, 1)

/* A row for each piece of a clock, as `stealscope sync` has it. */
#define CLOCK_FIELDS(X) \
	X(CLOCK_RUN, "run_id", INT, 0) \
	X(CLOCK_MACHINE, "machine", TEXT, 0) \
	X(CLOCK_FROM, "from_ts", TIME, 0) \
	X(CLOCK_METHOD, "method", TEXT, 0) \
	X(CLOCK_QUALITY, "quality", TEXT, 0) \
	X(CLOCK_DOUBT, "doubt", TEXT, 1) \
	X(CLOCK_PAIRS, "pairs", INT, 0) \
	X(CLOCK_REJECTED, "rejected", INT, 0) \
	X(CLOCK_ALPHA, "alpha_ppm", REAL, 0) \
	X(CLOCK_BAND_START, "band_start_ns", INT, 1) \
	X(CLOCK_BAND_MID, "band_mid_ns", INT, 1) \
	X(CLOCK_BAND_END, "band_end_ns", INT, 1) \
	X(CLOCK_CONTAINMENT, "containment", REAL, 1) \
	X(CLOCK_WORST, "worst_violation_ns", INT, 1)

/* A row for each trace: what its tracer recorded and lost. */
#define LOSS_FIELDS(X) \
	X(LOSS_RUN, "run_id", INT, 0) \
	X(LOSS_MACHINE, "machine", TEXT, 0) \
	X(LOSS_TRACER, "tracer", TEXT, 0) \
	X(LOSS_UUID, "uuid", TEXT, 0) \
	X(LOSS_EVENTS, "events", INT, 0) \
	X(LOSS_LOST, "lost", INT, 0) \
	X(LOSS_UNCOUNTED, "uncounted", INT, 0)       /* places where nobody knows how many */

#define RUN_FIELDS(X) \
	X(RUN_RUN, "run_id", INT, 0) \
	X(RUN_HOST, "host", TEXT, 1)                 /* its recorded name */ \
	X(RUN_STARTED, "started", TIME, 0) \
	X(RUN_SPAN, "span_ns", INT, 0) \
	X(RUN_PROGRAM, "program", TEXT, 0)           /* that built the history */ \
	X(RUN_OPTIONS, "options", TEXT, 0) \
	X(RUN_QUALITY, "clock_quality", TEXT, 1)     /* of the worst of its clocks; null: there is one clock */ \
	X(RUN_BAND, "band_ns", INT, 1)               /* the widest; null: one of them is unknown, or there is one clock */ \
	X(RUN_LOST, "lost_events", INT, 0) \
	X(RUN_DOUBTS, "doubts", INT, 0)              /* notes on its traces that are reasons to doubt answers */

/* X(code, LIST, name, what one row is), in the order in which they are filled.  The run comes last: where each table is a
 * file of its own it says that the others are whole. */
#define TABLES(X) \
	X(TABLE_MACHINE, MACHINE_FIELDS, "machine", "host, VM or container") \
	X(TABLE_CPU, CPU_FIELDS, "cpu", "pCPU or vCPU") \
	X(TABLE_THREAD, THREAD_FIELDS, "thread", "TID of a machine") \
	X(TABLE_NAME, NAME_FIELDS, "name", "a thread's name over time") \
	X(TABLE_VCPU_STATE, VCPU_STATE_FIELDS, "vcpu_state", "interval of a vCPU's state") \
	X(TABLE_THREAD_STATE, THREAD_STATE_FIELDS, "thread_state", "interval of a thread's state") \
	X(TABLE_RUNNING, RUNNING_FIELDS, "running", "interval of a thread on a CPU") \
	X(TABLE_GAP, GAP_FIELDS, "gap", "wanted to run and could not") \
	X(TABLE_FLOW, FLOW_FIELDS, "flow", "piece of a gap: who had the CPU") \
	X(TABLE_STEAL, STEAL_FIELDS, "steal", "lost by a victim to a thief in one second") \
	X(TABLE_TAKEN, TAKEN_FIELDS, "taken", "lost by a machine to a thief in the whole run") \
	X(TABLE_EXIT, EXIT_FIELDS, "exit", "a vCPU out of guest mode for a reason") \
	X(TABLE_REQUEST, REQUEST_FIELDS, "request", "request, and the provider's share of it") \
	X(TABLE_CLOCK, CLOCK_FIELDS, "clock", "piece of a guest's clock") \
	X(TABLE_LOSS, LOSS_FIELDS, "loss", "trace, and what its tracer lost") \
	X(TABLE_RUN, RUN_FIELDS, "run", "the recording itself")

#define TABLE_CODE(code, list, name, what) code,
enum table_code { TABLES(TABLE_CODE) TABLE_COUNT };
#undef TABLE_CODE

/* The fields of TABLE_X are X_RUN and on; X_FIELD_COUNT is behind the last. */
#define FIELD_CODE(code, name, type, null) COL_##code,
enum machine_field { MACHINE_FIELDS(FIELD_CODE) MACHINE_FIELD_COUNT };
enum cpu_field { CPU_FIELDS(FIELD_CODE) CPU_FIELD_COUNT };
enum thread_field { THREAD_FIELDS(FIELD_CODE) THREAD_FIELD_COUNT };
enum name_field { NAME_FIELDS(FIELD_CODE) NAME_FIELD_COUNT };
enum vcpu_state_field { VCPU_STATE_FIELDS(FIELD_CODE) VCPU_STATE_FIELD_COUNT };
enum thread_state_field { THREAD_STATE_FIELDS(FIELD_CODE) THREAD_STATE_FIELD_COUNT };
enum running_field { RUNNING_FIELDS(FIELD_CODE) RUNNING_FIELD_COUNT };
enum gap_field { GAP_FIELDS(FIELD_CODE) GAP_FIELD_COUNT };
enum flow_field { FLOW_FIELDS(FIELD_CODE) FLOW_FIELD_COUNT };
enum steal_field { STEAL_FIELDS(FIELD_CODE) STEAL_FIELD_COUNT };
enum taken_field { TAKEN_FIELDS(FIELD_CODE) TAKEN_FIELD_COUNT };
enum exit_field { EXIT_FIELDS(FIELD_CODE) EXIT_FIELD_COUNT };
enum request_field { REQUEST_FIELDS(FIELD_CODE) REQUEST_FIELD_COUNT };
enum clock_field { CLOCK_FIELDS(FIELD_CODE) CLOCK_FIELD_COUNT };
enum loss_field { LOSS_FIELDS(FIELD_CODE) LOSS_FIELD_COUNT };
enum run_field { RUN_FIELDS(FIELD_CODE) RUN_FIELD_COUNT };
#undef FIELD_CODE

#define TABLE_BIT(code) (1U << (code))
#define TABLE_ALL (TABLE_BIT(TABLE_COUNT) - 1)
#define TABLE_MOST_FIELDS 16

struct table_field {
	const char *name;
	enum field_type type;
	bool nullable;
};

struct export_shape {
	const char *name, *what;
	const struct table_field *field;
	size_t fields;
};
extern const struct export_shape tables[TABLE_COUNT];

/* The field that tells when a row of a long table happened, by which databases cut it up; -1: it is short. */
int table_time(const struct export_shape *t);

#define CELL_TEXT_MOST 1024  /* bytes of the longest text, its NUL included */

/* One value, of the type of its field. */
struct table_cell {
	bool absent;
	int64_t number;    /* INT, TIME */
	double real;       /* REAL */
	const char *text;  /* TEXT: escaped, valid UTF-8; borrowed until the row is taken */
};
#define CELL_INT(i) ((struct table_cell){ .number = (i) })
#define CELL_REAL(r) ((struct table_cell){ .real = (r) })
#define CELL_TEXT(s) ((struct table_cell){ .text = (s) })
#define CELL_NONE ((struct table_cell){ .absent = true })

#endif
