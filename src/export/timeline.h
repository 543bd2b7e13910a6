/* Common part of the sinks for trace viewers: converts rows to slices and counters on tracks, and to flows from culprit
 * to victim. A format (perfetto, chrome) implements struct timeline_ops. Private to export/. */
#ifndef STEALSCOPE_EXPORT_TIMELINE_H
#define STEALSCOPE_EXPORT_TIMELINE_H

#include <stdio.h>

#include "export/sink.h"

/* X(code, name): groups of tracks of a machine */
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

/* A track: a CPU or thread of a machine. */
struct track {
	uint32_t machine;    /* 1, 2, ... in the order of the table machine */
	enum timeline_group group;
	int64_t number;      /* CPU number, or TID */
};

/* An argument of a slice. */
struct slice_arg { const char *key; const struct table_cell *cell; enum field_type type; };
#define SLICE_ARGS 6  /* maximum number of arguments of a slice */

struct timeline_ops {
	bool relative;  /* times are relative to the start of the run; otherwise to the epoch */
	void (*begin)(FILE *f, int64_t origin);
	void (*machine)(FILE *f, uint32_t machine, const char *name);
	void (*track)(FILE *f, const struct track *t, const char *name);  /* called before the track's first slice */
	void (*slice)(FILE *f, const struct track *t, int64_t ts, int64_t dur, const char *name, const struct slice_arg *arg,
	              size_t args);
	/* Flow at time ts from the slice of one track to the slice of another; id: 1, 2, ... */
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
