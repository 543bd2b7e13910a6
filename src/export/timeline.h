/* Rows as a timeline: tracks of slices, flows from thief to victim, counters.  What the rows mean is said once
 * (timeline.c); a format says how they are written.  Private to export/. */
#ifndef STEALSCOPE_EXPORT_TIMELINE_H
#define STEALSCOPE_EXPORT_TIMELINE_H

#include <stdio.h>

#include "export/sink.h"

/* X(code, what the tracks of a machine are) */
#define TIMELINE_GROUPS(X) \
	X(GROUP_VCPU_STATE, "vCPU states") \
	X(GROUP_VCPU_GAP, "gaps of vCPUs") \
	X(GROUP_STEAL, "lost, ms in a second") \
	X(GROUP_RUNNING, "CPUs") \
	X(GROUP_THREAD, "threads") \
	X(GROUP_THREAD_GAP, "gaps of threads")
#define GROUP_CODE(code, name) code,
enum timeline_group { TIMELINE_GROUPS(GROUP_CODE) TIMELINE_GROUP_COUNT };
#undef GROUP_CODE
extern const char *const timeline_group_name[TIMELINE_GROUP_COUNT];

/* A row on the screen: a CPU or thread of a machine. */
struct track {
	uint32_t machine;    /* from 1 on, in the order of their rows */
	enum timeline_group group;
	int64_t number;      /* of the CPU, or TID */
};

/* What stands beside a slice. */
struct slice_arg { const char *key; const struct table_cell *cell; enum field_type type; };
#define SLICE_ARGS 6

struct timeline_ops {
	bool relative;  /* times count from the begin of the run */
	void (*begin)(FILE *f, int64_t origin);
	void (*machine)(FILE *f, uint32_t machine, const char *name);
	void (*track)(FILE *f, const struct track *t, const char *name);  /* before what happens on it */
	void (*slice)(FILE *f, const struct track *t, int64_t ts, int64_t dur, const char *name, const struct slice_arg *arg,
	              size_t args);
	/* From the slice of one track at that time to that of the other; id: a number of its own, from 1 on. */
	void (*flow)(FILE *f, const struct track *from, const struct track *to, int64_t ts, uint64_t id);
	void (*counter)(FILE *f, const struct track *t, int64_t ts, int64_t ns);
	void (*end)(FILE *f);
};

#define TIMELINE_TABLES (TABLE_BIT(TABLE_MACHINE) | TABLE_BIT(TABLE_CPU) | TABLE_BIT(TABLE_THREAD) | \
	TABLE_BIT(TABLE_VCPU_STATE) | TABLE_BIT(TABLE_THREAD_STATE) | TABLE_BIT(TABLE_RUNNING) | TABLE_BIT(TABLE_GAP) | \
	TABLE_BIT(TABLE_FLOW) | TABLE_BIT(TABLE_STEAL))

struct sink *timeline_open(const struct timeline_ops *ops, const char *target, const struct sink_run *run,
                           struct error *err);
int timeline_begin(struct sink *s, const struct export_shape *t, struct error *err);
int timeline_row(struct sink *s, const struct table_cell *c, struct error *err);
int timeline_end(struct sink *s, struct error *err);
int timeline_close(struct sink *s, int status, struct error *err);

#endif
