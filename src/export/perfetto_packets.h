/* Packets of Perfetto's protobuf trace format. Each machine is a process with groups of tracks.
 *
 * The few fields that are needed are encoded here without a protobuf library: numbers as varints, texts and nested
 * messages with their length. The field numbers are defined in protos/perfetto/trace. Private to export/. */
#pragma once

#include <stdio.h>

#include "export/sink.h"

/* X(code, name): groups of tracks of a machine */
#define TRACK_GROUPS(X) \
	X(GROUP_VCPU_STATE, "vCPU states") \
	X(GROUP_VCPU_GAP, "gaps of vCPUs") \
	X(GROUP_STEAL, "lost, ns in a second") \
	X(GROUP_RUNNING, "CPUs") \
	X(GROUP_THREAD, "threads") \
	X(GROUP_THREAD_GAP, "gaps of threads")
#define GROUP_CODE(code, name) code,
enum track_group { TRACK_GROUPS(GROUP_CODE) TRACK_GROUP_COUNT };
#undef GROUP_CODE
extern const char *const track_group_name[TRACK_GROUP_COUNT];

/* A track: a CPU or thread of a machine. */
struct track {
	uint32_t machine;    /* 1, 2, ... in the order of the table machine */
	enum track_group group;
	int64_t number;      /* CPU number, or TID */
};

/* An argument of a slice. */
struct slice_arg { const char *key; const struct table_cell *cell; enum field_type type; };
#define SLICE_ARGS 6  /* most arguments of a slice */

/* Each writes one packet; ts and dur in ns, ts since the epoch. */
void packet_machine(FILE *f, uint32_t machine, const char *name);
void packet_track(FILE *f, const struct track *t, const char *name);  /* before the track's first slice */
void packet_slice(FILE *f, const struct track *t, int64_t ts, int64_t dur, const char *name, const struct slice_arg *arg,
                  size_t args);
/* Flow at time ts from one track's slice to another track's slice; id: 1, 2, ... */
void packet_flow(FILE *f, const struct track *from, const struct track *to, int64_t ts, uint64_t id);
void packet_counter(FILE *f, const struct track *t, int64_t ts, int64_t ns);
