/* trace-cmd's files (trace.dat, versions 6 and 7): whose they are, and how much should be in them.
 *
 * Reads only what stands outside the ring buffers' data, with its own bounds checks, in any build: libtracecmd does not
 * tell these things, and ends a CPU's data silently where it cannot read on.  trace-cmd.dat.v6(5) and v7(5) describe the
 * format. */
#ifndef STEALSCOPE_TRACE_TRACECMD_TRACECMD_FILE_H
#define STEALSCOPE_TRACE_TRACECMD_TRACECMD_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"
#include "trace/pages/buffer_counters.h"
#include "trace/reader.h"
#include "trace/tracecmd/tracecmd_offset.h"

struct dat_cpu {         /* the data of one CPU in one of the file's buffers */
	unsigned buffer, cpu;  /* buffer 0 is the main one, the others are instances (trace-cmd record -B) */
	uint64_t bytes;        /* of pages, uncompressed */
};

struct dat {
	char *path;
	char hostname[256], tracer[64], clock[32];  /* "" when not said */
	uint64_t id;         /* of the recording, 0: none */
	uint64_t bytes;      /* of the file */
	uint64_t data;       /* of those, in CPUs' buffers */
	uint64_t lost;       /* overrun and dropped, of all */
	unsigned page;       /* bytes */
	struct cpu_stat *stat;  /* of each CPU's main buffer when the recording had ended */
	size_t stats, stats_cap;
	int64_t now;         /* the latest of them */
	bool shifted;        /* libtracecmd corrects the times to the host's clock by what trace-cmd measured */
	struct shift *shift; /* by CPU: how to take that away again; NULL: it cannot be */
	size_t shifts;
	bool scaled;         /* TSC cycles can be converted to ns */
	struct dat_cpu *cpu;
	size_t cpus, cpus_cap;
	struct recorded_guest *guest;
	size_t guests, guests_cap;
};

/* Refuses a file that is cut short, or damaged in what is read here. */
struct dat *dat_read(const char *path, struct error *err);
void dat_free(struct dat *d);  /* NULL is allowed */

#endif
