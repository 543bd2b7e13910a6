/* Contents of trace-cmd's files (trace.dat, versions 6 and 7; trace-cmd.dat.v6(5), v7(5)) outside the ring buffers:
 * machine, clock, guests, and the expected amount of data.
 *
 * Reads the file with its own bounds checks, in any build. */
#pragma once

#include "base/base.h"
#include "trace/pages/buffer_counters.h"
#include "trace/reader.h"
#include "trace/tracecmd/tracecmd_offset.h"

struct tracecmd_file_cpu {         /* data of one CPU in one of the file's buffers */
	unsigned buffer, cpu;  /* 0: the main buffer; 1, 2, ...: instances (trace-cmd record -B) */
	uint64_t bytes;        /* the uncompressed pages' size */
	uint64_t at;           /* offset of the data in the file */
	bool packed;           /* the data is chunks of compressed pages */
};

struct tracecmd_file {
	char *path;
	char hostname[256], tracer[64], clock[32];  /* "": not recorded */
	uint64_t id;         /* the recording's id; 0: none */
	uint64_t bytes;      /* the file's size, bytes */
	uint64_t data;       /* size of the CPU buffers in the file, bytes */
	uint64_t lost;       /* events overrun and dropped, sum of all CPUs */
	unsigned page;       /* page size, bytes */
	struct cpu_stat *stat;  /* counters of each CPU's main buffer, read after the recording */
	size_t stats, stats_cap;
	int64_t now;         /* latest `now` of the counters, ns; INT64_MAX: unknown */
	struct time_shift *time_shift; /* corrections to the host's clock by CPU, as trace-cmd measured them; NULL: none */
	size_t shifts;
	bool scaled;         /* the file contains a conversion from TSC cycles to ns: */
	uint32_t multiplier, shift;  /* ns = cycles * multiplier >> shift */
	int64_t offset;      /* added to all times (trace-cmd --date, --ts-offset), ns */
	struct tracecmd_file_cpu *cpu;
	size_t cpus, cpus_cap;
	struct recorded_guest *guest;
	size_t guests, guests_cap;
};

/* Reads the file. Returns NULL, with *err set, if the file is truncated, or damaged in the parts read here. */
struct tracecmd_file *tracecmd_file_read(const char *path, struct error *err);
void tracecmd_file_free(struct tracecmd_file *d);  /* d may be NULL */
