/* Traces the host in a private tracefs instance, so that other users of tracing are not disturbed.
 *
 * An instance is named stealscope-PID-START: the recorder's PID and start time in ticks since boot. The name shows
 * whether the recorder still lives, so that instances of dead recorders can be removed. */
#pragma once

#include "base/base.h"

struct tracer;

/* Returns the path of tracefs; NULL with *err if it is not accessible. root "": this machine's tracefs, which is
 * mounted if necessary and `mount`. The path is valid until the next call. */
const char *tracer_find_tracefs(const char *root, bool mount, struct error *err);

/* Creates an instance for this process, with tracing off. NULL with *err on failure. tracer_free() removes the instance. */
struct tracer *tracer_new(const char *root, struct error *err);
void tracer_free(struct tracer *t);  /* NULL is allowed */
/* Returns the instance's directory. */
const char *tracer_dir(const struct tracer *t);
/* Removes instances of dead recorders. Returns the number removed; *failed: number that could not be removed. */
size_t tracer_clean(const char *root, size_t *failed);

/* Sets the trace clock and overwrite mode, and enables the events, which must exist. */
int tracer_set_up(struct tracer *t, const char *clock, char *const *event, size_t events, struct error *err);
/* Sets each CPU's buffer size. */
int tracer_resize(struct tracer *t, uint64_t kilobytes, struct error *err);
/* Switches tracing on or off. */
int tracer_switch(struct tracer *t, bool on, struct error *err);
/* Clears the buffers. */
int tracer_clear(struct tracer *t, struct error *err);

/* ---- buffers */

/* Counters of a CPU's buffer; overrun: events overwritten; dropped: events not written. */
struct cpu_stats { uint64_t entries, overrun, dropped, bytes; };
/* Parses per_cpu/cpuN/stats. */
struct cpu_stats cpu_stats_parse(const char *text);
/* Returns overrun + dropped. */
uint64_t cpu_stats_lost(const struct cpu_stats *s);

unsigned tracer_cpus(const struct tracer *t);  /* highest CPU number + 1 */
struct cpu_stats tracer_stats(const struct tracer *t, unsigned cpu);

/* Creates a file pages/cpuN for every CPU in a directory, given as a descriptor; tracer_drain() writes to these files. */
int tracer_drain_into(struct tracer *t, int dir, struct error *err);
/* Writes full pages of buffers that are more than half full to the files. all: writes all data of all buffers; tracing
 * must be off. Adds the size to *bytes. */
int tracer_drain(struct tracer *t, bool all, uint64_t *bytes, struct error *err);
/* Closes the files. */
void tracer_drain_end(struct tracer *t);
