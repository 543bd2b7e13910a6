/* The host's own tracing, in an instance of tracefs that is ours alone: nobody else who traces is disturbed.
 *
 * An instance is called stealscope-PID-BEGUN after the process whose it is and the tick since boot at which that began, so
 * that what a dead recorder left is told from what a living one uses, with nothing else to be written or lost.
 * Built on libtracefs; without it everything here refuses. */
#ifndef STEALSCOPE_RECORD_TRACER_H
#define STEALSCOPE_RECORD_TRACER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

struct tracer;

/* Finds tracefs below root ("": where it is mounted; mounts it if `mount`).  Its folder is borrowed until the next call;
 * NULL with *err filled. */
const char *tracer_place(const char *root, bool mount, struct error *err);

/* Makes our instance, with tracing off.  tracer_free() removes it. */
struct tracer *tracer_new(const char *root, struct error *err);
void tracer_free(struct tracer *t);  /* NULL is allowed */
const char *tracer_folder(const struct tracer *t);
/* Removes instances whose processes are dead; how many, and in *left how many would not go. */
size_t tracer_clean(const char *root, size_t *left);

/* Turns on those of the events that the kernel has, sets clock and whether buffers turn over. */
int tracer_set_up(struct tracer *t, const char *clock, char *const *event, size_t events, struct error *err);
int tracer_resize(struct tracer *t, uint64_t kilobytes, struct error *err);
int tracer_switch(struct tracer *t, bool on, struct error *err);
int tracer_clear(struct tracer *t, struct error *err);

/* ---- buffers */

struct cpu_stats { uint64_t entries, overrun, dropped, bytes; };
struct cpu_stats cpu_stats_parse(const char *text);
uint64_t cpu_stats_lost(const struct cpu_stats *s);

unsigned tracer_cpus(const struct tracer *t);  /* the highest number + 1 */
struct cpu_stats tracer_stats(const struct tracer *t, unsigned cpu);

/* Opens every CPU's file pages/cpuN below the folder (a descriptor), to which its pages go. */
int tracer_drain_into(struct tracer *t, int folder, struct error *err);
/* Takes whole pages out of the buffers that are more than half full; all: everything, of all of them (tracing is off).
 * *bytes counts on. */
int tracer_drain(struct tracer *t, bool all, uint64_t *bytes, struct error *err);
void tracer_drain_end(struct tracer *t);

#endif
