/* Reads perf record's files (perf.data), in file and in pipe format, with either byte order.
 *
 * A file contains all CPUs' ring buffers, in pieces. perf empties the buffers in rounds, so the order of the records
 * is known within two rounds only (perf_queue.h). Each CPU becomes a stream. Tracepoints contain the same bytes as in
 * the kernel's trace buffers; their formats are in the file, so that ftrace's layout applies.
 *
 * Threads and processes: each sample contains the current thread's process. Records COMM, FORK and EXIT replace the
 * tracepoints task_rename, sched_process_fork and sched_process_exit where these were not recorded.
 *
 * Refused: files without formats (perf did not end normally), recordings of some processes only, and sampled tracepoints
 * (perf record -F, -c), because most of their events are missing. */
#pragma once

#include "base/map.h"
#include "trace/reader.h"

enum perf_event_type { PERF_HARDWARE = 0, PERF_SOFTWARE = 1, PERF_TRACEPOINT = 2 };
enum { PERF_CYCLES = 0, PERF_INSTRUCTIONS = 1 };  /* PERF_HARDWARE's config */

/* Bits in perf_attr.sample_type, in the order of a sample's fields (perf_event_open(2)). */
enum perf_sample_bit {
	SAMPLE_IP = 1 << 0, SAMPLE_TID = 1 << 1, SAMPLE_TIME = 1 << 2, SAMPLE_ADDR = 1 << 3, SAMPLE_READ = 1 << 4,
	SAMPLE_CALLCHAIN = 1 << 5, SAMPLE_ID = 1 << 6, SAMPLE_CPU = 1 << 7, SAMPLE_PERIOD = 1 << 8, SAMPLE_STREAM_ID = 1 << 9,
	SAMPLE_RAW = 1 << 10, SAMPLE_IDENTIFIER = 1 << 16,
};
#define SAMPLE_TRACEPOINT (SAMPLE_TID | SAMPLE_TIME | SAMPLE_CPU | SAMPLE_RAW)  /* required for a tracepoint */
enum perf_read_bit { READ_TIME_ENABLED = 1, READ_TIME_RUNNING = 2, READ_ID = 4, READ_GROUP = 8, READ_LOST = 16 };

/* An event that perf recorded. */
struct perf_attr {
	uint32_t type;
	uint64_t config;         /* a tracepoint's format id */
	uint64_t period, sample_type, read_format;
	bool is_sampled;         /* a frequency was given: not every event was recorded */
	bool has_trailer;        /* all records end with the fields of sample_type that identify time and CPU */
	char name[128];          /* "": not recorded */
};

#define PERF_CLOCK_DEFAULT (-1)

struct perf_file {
	char *path;
	uint64_t bytes;          /* the file's size, with the files beside it (perf record --threads) */
	bool big_endian;
	bool is_pipe;            /* written to a pipe: all descriptions are records */
	bool is_simpleperf;      /* written by Android's simpleperf */
	bool is_dir;             /* further records are in the files data.0, data.1, ... beside it */
	uint64_t data_at, data_end;  /* the records' offsets */
	uint64_t formats_at, formats_end;  /* offsets of the tracepoints' formats; 0: none */
	char hostname[256], release[64];   /* release: perf's; "": not recorded */
	uint32_t cpus;           /* possible CPU count; 0: not recorded */
	int clock;               /* clockid_t, or PERF_CLOCK_DEFAULT: the kernel scheduler's clock */
	bool is_tsc;             /* the default clock is the TSC, so that it is equal on all CPUs */
	uint64_t clock_count;    /* that clock's time, and real time, read at once; 0: not recorded */
	uint64_t clock_real;
	uint64_t first, last;    /* the first and the last sample's time, samples' clock; 0: not recorded */
	struct perf_attr *attr;
	size_t attrs, attrs_cap;
	struct map attr_by_id;   /* attribute index + 1 */
	struct map cpu_by_id;    /* CPU on which the event with this id was recorded */
	char *names;             /* lines "TID NAME" of the threads that existed at the start */
	size_t names_len, names_cap;
};

/* Reads a file's descriptions. Returns NULL, with *err set, if they are damaged, or if the recording is refused. */
struct perf_file *perf_file_read(const char *path, struct error *err);
void perf_file_free(struct perf_file *f);  /* f may be NULL */
/* Returns an id's attribute; NULL: unknown. */
const struct perf_attr *perf_attr_find(const struct perf_file *f, uint64_t id);
/* Returns the clock's name, for example "monotonic". */
const char *perf_clock_name(int clock);
#define PERF_REMEDY "record it again, and end perf with Ctrl-C"

extern const struct trace_reader perf_reader;

/* Operations that need libtraceevent: perf_child.c, or traceevent_none.c in a build without it. */
enum claim perf_claims(const char *name, const unsigned char *head, size_t len);
void *perf_enter(struct source *s, struct error *err);
int perf_decode(void *state, const struct stream_part *p, struct event_sink *out);
