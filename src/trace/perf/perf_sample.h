/* Fields of a sample, and of the end of other records. Private to perf/. */
#pragma once

#include "trace/perf/perf_records.h"

struct perf_sample {
	const struct perf_attr *attr;  /* NULL: unknown */
	uint64_t id;             /* of the event on its CPU; 0: not recorded */
	uint64_t time;           /* the file's clock; 0: not recorded, or written by perf itself */
	uint32_t cpu;            /* UINT32_MAX: not recorded */
	int32_t pid, tid;        /* -1: not recorded */
	const unsigned char *raw;  /* the tracepoint's record; NULL: none */
	uint32_t raw_size;
	int64_t instructions, cycles;  /* values of hardware counters in the event's group; EVENT_ABSENT: none */
};

/* Parses a record of type RECORD_SAMPLE. Returns false if it is damaged. */
bool perf_sample_parse(const struct perf_file *f, const struct perf_record *rec, struct perf_sample *s);
/* Returns true if the TID that perf recorded is not that of the tracepoint: perf ran in a pid namespace. */
bool perf_sample_has_namespace(const struct perf_file *f, const struct perf_sample *s);
/* Parses the end of another record: time, CPU, thread and id. *body: size of the part before it, bytes. Returns false if
 * the record has no such end, or if it is damaged. */
bool perf_trailer_parse(const struct perf_file *f, const struct perf_record *rec, struct perf_sample *s, size_t *body);
