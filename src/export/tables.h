/* Describes the exported tables for all sinks: names, columns and types. Private to export/.
 *
 * Times are ns since the epoch on the host's clock; a row with a duration covers [ts, ts + dur - 1]. A CPU or thread is
 * identified by its machine ("host", or the name of the VM or container) and its number. Texts from traces are escaped
 * as in every report (base/text.h). Every table begins with run_id, which a sink uses to replace older data of the run. */
#pragma once

#include "base/base.h"
#include "query/query.h"

enum field_type {
	FIELD_INT,
	FIELD_TIME,  /* integer: ns since the epoch */
	FIELD_REAL,
	FIELD_TEXT,
};

/* X(code, name, type: suffix of an enum field_type, nullable) */
#define MACHINE_FIELDS(X) \
	X(MACHINE_RUN, "run_id", INT, 0) \
	X(MACHINE_NAME, "machine", TEXT, 0) \
	X(MACHINE_SORT, "kind", TEXT, 0)             /* host, vm, container */ \
	X(MACHINE_BELOW, "parent", TEXT, 1)          /* machine that runs it */ \
	X(MACHINE_UUID, "uuid", TEXT, 1)             /* its trace's UUID; null: not traced */

#define CPU_FIELDS(X) \
	X(CPU_RUN, "run_id", INT, 0) \
	X(CPU_MACHINE, "machine", TEXT, 0) \
	X(CPU_NUMBER, "cpu", INT, 0) \
	X(CPU_HOST_TID, "host_tid", INT, 1)          /* vCPU: its first thread in the parent machine */

#define THREAD_FIELDS(X) \
	X(THREAD_RUN, "run_id", INT, 0) \
	X(THREAD_MACHINE, "machine", TEXT, 0) \
	X(THREAD_TID, "tid", INT, 0) \
	X(THREAD_START, "start_ns", TIME, 1)         /* start of the first thread with this TID */ \
	X(THREAD_END, "end_ns", TIME, 1)             /* end of the last thread with this TID */ \
	X(THREAD_TITLE, "name", TEXT, 0)             /* the name that the thread had longest */ \
	X(THREAD_PROCESS_ID, "pid", INT, 1) \
	X(THREAD_PROCESS, "process", TEXT, 1)        /* name of the thread with the TID `pid` */

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
	X(THREAD_STATE_CPU, "cpu", INT, 1)           /* CPU at ts on which the thread runs, is queued, or ran last */

#define RUNNING_FIELDS(X) \
	X(RUNNING_RUN, "run_id", INT, 0) \
	X(RUNNING_MACHINE, "machine", TEXT, 0) \
	X(RUNNING_CPU, "cpu", INT, 0) \
	X(RUNNING_TS, "ts", TIME, 0) \
	X(RUNNING_DUR, "dur", INT, 0) \
	X(RUNNING_TID, "tid", INT, 0)                /* 0: idle */

/* of_machine: 1: the row is a part of the machine's lost time (a VM's vCPUs, threads of the host and of containers); 0:
 * a VM's threads, which must not be added, since they lose the time that their vCPU lost, and time to each other. */
#define GAP_FIELDS(X) \
	X(GAP_RUN, "run_id", INT, 0) \
	X(GAP_MACHINE, "machine", TEXT, 0) \
	X(GAP_CPU, "cpu", INT, 1)                    /* exactly one of these two is set */ \
	X(GAP_TID, "tid", INT, 1) \
	X(GAP_NAME, "name", TEXT, 1) \
	X(GAP_OF_MACHINE, "of_machine", INT, 0) \
	X(GAP_START, "ts", TIME, 0) \
	X(GAP_DURATION, "dur", INT, 0) \
	X(GAP_STATE, "state", TEXT, 0)               /* of most of the gap */ \
	X(GAP_CULPRIT_MACHINE, "culprit_machine", TEXT, 1) \
	X(GAP_CULPRIT_TID, "culprit_tid", INT, 1) \
	X(GAP_CULPRIT_NAME, "culprit_name", TEXT, 0) \
	X(GAP_CULPRIT_KIND, "culprit_kind", TEXT, 0) /* kind of the execution flow */ \
	X(GAP_CULPRIT_NS, "culprit_ns", INT, 0)

/* Parts of gaps; in each part one actor had the CPU. */
#define FLOW_FIELDS(X) \
	X(FLOW_RUN, "run_id", INT, 0) \
	X(FLOW_MACHINE, "machine", TEXT, 0) \
	X(FLOW_CPU, "cpu", INT, 1) \
	X(FLOW_TID, "tid", INT, 1) \
	X(FLOW_TS, "ts", TIME, 0) \
	X(FLOW_DUR, "dur", INT, 0) \
	X(FLOW_KIND, "kind", TEXT, 0) \
	X(FLOW_CULPRIT_MACHINE, "culprit_machine", TEXT, 1) \
	X(FLOW_CULPRIT_TID, "culprit_tid", INT, 1) \
	X(FLOW_CULPRIT_NAME, "culprit_name", TEXT, 0) \
	X(FLOW_PCPU, "pcpu", INT, 1)                 /* host CPU that the actor used */

#define STEAL_BUCKET_NS INT64_C(1000000000)  /* time range of a row of the table steal, ns */
/* Time that a victim lost to a culprit in one second of the host's clock. */
#define STEAL_FIELDS(X) \
	X(STEAL_RUN, "run_id", INT, 0) \
	X(STEAL_BUCKET, "bucket_ts", TIME, 0) \
	X(STEAL_MACHINE, "victim_machine", TEXT, 0) \
	X(STEAL_CPU, "victim_cpu", INT, 1) \
	X(STEAL_TID, "victim_tid", INT, 1) \
	X(STEAL_NAME, "victim_name", TEXT, 1) \
	X(STEAL_OF_MACHINE, "of_machine", INT, 0) \
	X(STEAL_KIND, "kind", TEXT, 0) \
	X(STEAL_CULPRIT_MACHINE, "culprit_machine", TEXT, 1) \
	X(STEAL_CULPRIT_TID, "culprit_tid", INT, 1) \
	X(STEAL_CULPRIT_NAME, "culprit_name", TEXT, 0) \
	X(STEAL_NS, "ns", INT, 0)

/* Time that a machine lost to all culprits with one name in the whole run: a small table for queries over many runs. */
#define STEAL_TOTAL_FIELDS(X) \
	X(STEAL_TOTAL_RUN, "run_id", INT, 0) \
	X(STEAL_TOTAL_MACHINE, "victim_machine", TEXT, 0) \
	X(STEAL_TOTAL_KIND, "kind", TEXT, 0) \
	X(STEAL_TOTAL_CULPRIT_MACHINE, "culprit_machine", TEXT, 1) \
	X(STEAL_TOTAL_CULPRIT_TID, "culprit_tid", INT, 1)      /* null: several threads */ \
	X(STEAL_TOTAL_CULPRIT_NAME, "culprit_name", TEXT, 0) \
	X(STEAL_TOTAL_NS, "ns", INT, 0)

/* Running time of a vCPU, or of a thread that is no vCPU, by the use of its core in the whole run (query.h, Shared cores).
 * Only with the host's topology. */
#define CORE_TIME_FIELDS(X) \
	X(CORE_TIME_RUN, "run_id", INT, 0) \
	X(CORE_TIME_MACHINE, "machine", TEXT, 0) \
	X(CORE_TIME_CPU, "cpu", INT, 1)              /* exactly one of these two is set */ \
	X(CORE_TIME_TID, "tid", INT, 1) \
	X(CORE_TIME_NAME, "name", TEXT, 1) \
	X(CORE_TIME_RAN, "ran_ns", INT, 0) \
	X(CORE_TIME_ALONE, "alone_ns", INT, 0) \
	X(CORE_TIME_SHARED, "shared_ns", INT, 0) \
	X(CORE_TIME_UNKNOWN, "unknown_ns", INT, 0) \
	X(CORE_TIME_SLOW, "slow_ns", INT, 0) \
	X(CORE_TIME_CLOCKED, "clocked_ns", INT, 0) \
	X(CORE_TIME_REMOTE, "remote_ns", INT, 0) \
	X(CORE_TIME_PLACED, "placed_ns", INT, 0) \
	X(CORE_TIME_MOVES, "moves", INT, 0) \
	X(CORE_TIME_LLC_MOVES, "llc_moves", INT, 0) \
	X(CORE_TIME_NODE_MOVES, "node_moves", INT, 0) \
	X(CORE_TIME_COUNTED, "counted_ns", INT, 1)   /* null, like the next two: no hardware counters */ \
	X(CORE_TIME_INSTRUCTIONS, "instructions", INT, 1) \
	X(CORE_TIME_CYCLES, "cycles", INT, 1)

/* Time that it ran while the sharer ran on another CPU of the same core. */
#define CORE_SHARER_FIELDS(X) \
	X(CORE_SHARER_RUN, "run_id", INT, 0) \
	X(CORE_SHARER_MACHINE, "machine", TEXT, 0) \
	X(CORE_SHARER_CPU, "cpu", INT, 1) \
	X(CORE_SHARER_TID, "tid", INT, 1) \
	X(CORE_SHARER_NAME, "name", TEXT, 1) \
	X(CORE_SHARER_KIND, "kind", TEXT, 0) \
	X(CORE_SHARER_WITH_MACHINE, "sharer_machine", TEXT, 1) \
	X(CORE_SHARER_WITH_TID, "sharer_tid", INT, 1)  /* null: a vCPU, or a handler */ \
	X(CORE_SHARER_WITH_NAME, "sharer_name", TEXT, 0) \
	X(CORE_SHARER_NS, "ns", INT, 0) \
	X(CORE_SHARER_COUNTED, "counted_ns", INT, 1)  /* null, like the next two: no hardware counters */ \
	X(CORE_SHARER_INSTRUCTIONS, "instructions", INT, 1) \
	X(CORE_SHARER_CYCLES, "cycles", INT, 1)

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

/* One row per clock segment, as in `stealscope sync`. */
#define CLOCK_FIELDS(X) \
	X(CLOCK_RUN, "run_id", INT, 0) \
	X(CLOCK_MACHINE, "machine", TEXT, 0) \
	X(CLOCK_FROM, "from_ts", TIME, 0) \
	X(CLOCK_METHOD, "method", TEXT, 0) \
	X(CLOCK_QUALITY, "quality", TEXT, 0) \
	X(CLOCK_REASON, "reason", TEXT, 1) \
	X(CLOCK_PAIRS, "pairs", INT, 0) \
	X(CLOCK_REJECTED, "rejected", INT, 0) \
	X(CLOCK_ALPHA, "alpha_ppm", REAL, 0) \
	X(CLOCK_BAND_START, "error_start_ns", INT, 1) \
	X(CLOCK_BAND_MID, "error_mid_ns", INT, 1) \
	X(CLOCK_BAND_END, "error_end_ns", INT, 1) \
	X(CLOCK_CONTAINMENT, "containment", REAL, 1) \
	X(CLOCK_WORST, "worst_violation_ns", INT, 1)

/* One row per trace: recorded and lost events. */
#define LOSS_FIELDS(X) \
	X(LOSS_RUN, "run_id", INT, 0) \
	X(LOSS_MACHINE, "machine", TEXT, 0) \
	X(LOSS_TRACER, "tracer", TEXT, 0) \
	X(LOSS_UUID, "uuid", TEXT, 0) \
	X(LOSS_EVENTS, "events", INT, 0) \
	X(LOSS_LOST, "lost", INT, 0) \
	X(LOSS_UNCOUNTED, "uncounted", INT, 0)       /* gaps in the trace with an unknown lost event count */

#define RUN_FIELDS(X) \
	X(RUN_RUN, "run_id", INT, 0) \
	X(RUN_HOST, "host", TEXT, 1)                 /* the host's recorded name */ \
	X(RUN_STARTED, "started", TIME, 0) \
	X(RUN_SPAN, "span_ns", INT, 0) \
	X(RUN_PROGRAM, "program", TEXT, 0)           /* version of stealscope that built the history */ \
	X(RUN_OPTIONS, "options", TEXT, 0) \
	X(RUN_QUALITY, "clock_quality", TEXT, 1)     /* worst quality of all clocks; null: only one machine is traced */ \
	X(RUN_BAND, "band_ns", INT, 1)               /* largest error bound; null: one is unknown, or no guest is traced */ \
	X(RUN_LOST, "lost_events", INT, 0) \
	X(RUN_WARNINGS, "warnings", INT, 0)          /* warnings about the traces */

/* Rows of `stealscope monitor`; run_id is the transaction's id. */
#define LIVE_STATE_FIELDS(X) \
	X(LIVE_STATE_RUN, "run_id", INT, 0) \
	X(LIVE_STATE_HOST, "host", TEXT, 0) \
	X(LIVE_STATE_TS, "ts", TIME, 0) \
	X(LIVE_STATE_PERIOD, "period_ns", INT, 0) \
	X(LIVE_STATE_MACHINE, "machine", TEXT, 0) \
	X(LIVE_STATE_CPU, "cpu", INT, 1)             /* null: a thread that is no vCPU */ \
	X(LIVE_STATE_TID, "host_tid", INT, 0) \
	X(LIVE_STATE_RAN, "ran", INT, 0) \
	X(LIVE_STATE_STOLEN, "stolen", INT, 0) \
	X(LIVE_STATE_THROTTLED, "throttled", INT, 0) \
	X(LIVE_STATE_BLOCKED, "blocked", INT, 0) \
	X(LIVE_STATE_LONGEST, "longest", INT, 0)     /* longest wait, ns */

#define LIVE_STEAL_FIELDS(X) \
	X(LIVE_STEAL_RUN, "run_id", INT, 0) \
	X(LIVE_STEAL_HOST, "host", TEXT, 0) \
	X(LIVE_STEAL_TS, "ts", TIME, 0) \
	X(LIVE_STEAL_PERIOD, "period_ns", INT, 0) \
	X(LIVE_STEAL_MACHINE, "victim_machine", TEXT, 0) \
	X(LIVE_STEAL_CPU, "victim_cpu", INT, 1) \
	X(LIVE_STEAL_KIND, "culprit_kind", TEXT, 0) \
	X(LIVE_STEAL_CULPRIT, "culprit", TEXT, 0) \
	X(LIVE_STEAL_NS, "ns", INT, 0)

/* X(code, LIST, name, meaning of a row), in the order in which tables are written. The table `run` comes last: its
 * presence shows that the other tables are complete. */
#define TABLES(X) \
	X(TABLE_MACHINE, MACHINE_FIELDS, "machine", "host, VM or container") \
	X(TABLE_CPU, CPU_FIELDS, "cpu", "pCPU or vCPU") \
	X(TABLE_THREAD, THREAD_FIELDS, "thread", "TID of a machine") \
	X(TABLE_NAME, NAME_FIELDS, "name", "a thread's name over time") \
	X(TABLE_VCPU_STATE, VCPU_STATE_FIELDS, "vcpu_state", "interval of a vCPU's state") \
	X(TABLE_THREAD_STATE, THREAD_STATE_FIELDS, "thread_state", "interval of a thread's state") \
	X(TABLE_RUNNING, RUNNING_FIELDS, "running", "interval of a thread on a CPU") \
	X(TABLE_GAP, GAP_FIELDS, "gap", "interval in which a vCPU or thread was runnable and did not run") \
	X(TABLE_FLOW, FLOW_FIELDS, "flow", "part of a gap: who had the CPU") \
	X(TABLE_STEAL, STEAL_FIELDS, "steal", "time lost by a victim to a culprit in one second") \
	X(TABLE_STEAL_TOTAL, STEAL_TOTAL_FIELDS, "steal_total", "time lost by a machine to a culprit in the whole run") \
	X(TABLE_CORE_TIME, CORE_TIME_FIELDS, "core_time", "running time of a vCPU or thread by the use of its core") \
	X(TABLE_CORE_SHARER, CORE_SHARER_FIELDS, "core_sharer", "time that a vCPU or thread shared its core with another one") \
	X(TABLE_EXIT, EXIT_FIELDS, "exit", "VM exit: a vCPU out of guest mode") \
	X(TABLE_REQUEST, REQUEST_FIELDS, "request", "request, and the provider's share of it") \
	X(TABLE_CLOCK, CLOCK_FIELDS, "clock", "segment of a guest's clock") \
	X(TABLE_LOSS, LOSS_FIELDS, "loss", "trace, with recorded and lost events") \
	X(TABLE_LIVE_STATE, LIVE_STATE_FIELDS, "live_state", "vCPU in a period of the monitor") \
	X(TABLE_LIVE_STEAL, LIVE_STEAL_FIELDS, "live_steal", "time that a vCPU lost to a culprit in a period of the monitor") \
	X(TABLE_RUN, RUN_FIELDS, "run", "the recording itself")

#define TABLE_CODE(code, list, name, description) code,
enum table_code { TABLES(TABLE_CODE) TABLE_COUNT };
#undef TABLE_CODE

/* The fields of TABLE_X start at X_RUN; X_FIELD_COUNT is their number. */
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
enum steal_total_field { STEAL_TOTAL_FIELDS(FIELD_CODE) STEAL_TOTAL_FIELD_COUNT };
enum core_time_field { CORE_TIME_FIELDS(FIELD_CODE) CORE_TIME_FIELD_COUNT };
enum core_sharer_field { CORE_SHARER_FIELDS(FIELD_CODE) CORE_SHARER_FIELD_COUNT };
enum exit_field { EXIT_FIELDS(FIELD_CODE) EXIT_FIELD_COUNT };
enum request_field { REQUEST_FIELDS(FIELD_CODE) REQUEST_FIELD_COUNT };
enum clock_field { CLOCK_FIELDS(FIELD_CODE) CLOCK_FIELD_COUNT };
enum loss_field { LOSS_FIELDS(FIELD_CODE) LOSS_FIELD_COUNT };
enum live_state_field { LIVE_STATE_FIELDS(FIELD_CODE) LIVE_STATE_FIELD_COUNT };
enum live_steal_field { LIVE_STEAL_FIELDS(FIELD_CODE) LIVE_STEAL_FIELD_COUNT };
enum run_field { RUN_FIELDS(FIELD_CODE) RUN_FIELD_COUNT };
#undef FIELD_CODE

#define TABLE_BIT(code) (1U << (code))
#define TABLE_ALL (TABLE_BIT(TABLE_COUNT) - 1)
/* Tables that the monitor fills; a history has no rows for them. */
#define TABLE_LIVE (TABLE_BIT(TABLE_LIVE_STATE) | TABLE_BIT(TABLE_LIVE_STEAL))
#define TABLE_FIELDS_MAX 20

struct table_field {
	const char *name;
	enum field_type type;
	bool nullable;
};

struct export_shape {
	const char *name, *description;
	const struct table_field *field;
	size_t fields;
};
extern const struct export_shape tables[TABLE_COUNT];

/* Returns the index of the time field by which databases partition a table; -1: none. */
int table_time(const struct export_shape *t);
/* How a database writes the columns of a new table: by type, and the texts before and after the type of a column. */
struct column_syntax { const char *type[FIELD_TEXT + 1], *required[2], *nullable[2]; };
/* Returns the columns of a table for CREATE TABLE; the caller frees. */
char *table_columns(const struct export_shape *t, const struct column_syntax *syntax);

#define CELL_TEXT_MAX 1024  /* maximum bytes of a text, with the NUL */

/* A value; the type is that of the field. */
struct table_cell {
	bool absent;       /* null */
	int64_t number;    /* INT, TIME */
	double real;       /* REAL */
	const char *text;  /* TEXT: escaped, valid UTF-8; must be valid until the sink's row() returns */
};
#define CELL_INT(i) ((struct table_cell){ .number = (i) })
#define CELL_REAL(r) ((struct table_cell){ .real = (r) })
#define CELL_TEXT(s) ((struct table_cell){ .text = (s) })
#define CELL_NONE ((struct table_cell){ .absent = true })
