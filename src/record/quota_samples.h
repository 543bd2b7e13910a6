/* Samples the throttled time of control groups with a quota into the host's trace while it is recorded: ten times a second,
 * and at both ends, "stealscope group NUMBER NS" into trace_marker, with the group's number in session.yaml and its
 * cpu.stat. Groups that appear during the recording are not sampled. Costs two system calls per group and sample. */
#pragma once

#include "record/cgroups.h"

struct quota_samples;
/* Takes the first sample. tracer: the tracefs instance's directory, which must be recording. NULL: no group has a
 * quota. */
struct quota_samples *quota_samples_begin(const struct cgroups *groups, const char *root, const char *tracer);
void quota_samples_tick(struct quota_samples *s);  /* Takes a sample if it is time; NULL is allowed. */
void quota_samples_end(struct quota_samples *s);   /* Takes the last sample, and frees *s; NULL is allowed. */
