/* A Perfetto trace's contents: machines, and the position of each event bundle. */
#pragma once

#include "base/base.h"
#include "base/strtab.h"

enum {
	PERFETTO_CPUS_MAX = 65536,
	PERFETTO_STREAMS_MAX = 4096,   /* per machine */
	PERFETTO_MACHINES_MAX = 256,
	PERFETTO_EXPANSION_MAX = 64,   /* all decompressed packets' maximum ratio to the file */
	PERFETTO_PACKET_MAX = 64 << 20,  /* a packet's size, and that of the packets in a compressed one, bytes */
};

/* A packet's field numbers. */
enum packet_field {
	PACKET_FTRACE = 1, PACKET_PROCESS_TREE = 2, PACKET_CLOCKS = 6, PACKET_TIME = 8, PACKET_SEQUENCE = 10,
	PACKET_TRACK_EVENT = 11, PACKET_CONFIG = 33, PACKET_FTRACE_STATS = 34, PACKET_DROPPED = 42, PACKET_SYSTEM = 45,
	PACKET_DEFLATED = 50, PACKET_TIME_CLOCK = 58, PACKET_SERVICE = 69, PACKET_FIRST = 87, PACKET_UUID = 89,
	PACKET_MACHINE = 98, PACKET_REMOTE_CLOCKS = 107, PACKET_ZSTD = 133,
};

struct perfetto_bundle {
	uint64_t at;          /* offset, bytes */
	uint32_t len;         /* bytes */
	bool is_scratch;      /* the offset is in the scratch file; false: in the trace */
	bool follows_loss;    /* packets between the stream's previous bundle and this one are missing */
};

/* One CPU's bundles in one packet sequence. */
struct perfetto_stream {
	uint32_t sequence;
	uint16_t cpu;
	bool is_complete;     /* no packet is missing before its first bundle, as far as the packets show it */
	uint64_t bytes, drops, damages;  /* drops, damages: its sequence's and the file's, before the last bundle */
	struct perfetto_bundle *bundle;
	size_t bundles, bundles_cap;
};

enum builtin_clock { CLOCK_ID_REALTIME = 1, CLOCK_ID_BOOTTIME = 6 };
enum ftrace_clock { FTRACE_CLOCK_BOOT = 0, FTRACE_CLOCK_UNKNOWN = 1, FTRACE_CLOCK_LOCAL = 3 };

/* A bundle's field numbers. */
enum bundle_field {
	BUNDLE_CPU = 1, BUNDLE_EVENT = 2, BUNDLE_LOST = 3, BUNDLE_COMPACT = 4, BUNDLE_CLOCK = 5, BUNDLE_CLOCK_TIME = 6,
	BUNDLE_BOOT_TIME = 7, BUNDLE_ERROR = 8, BUNDLE_PREVIOUS_READ = 9, BUNDLE_PREVIOUS_END = 10, BUNDLE_DESCRIPTION = 11,
};

/* Offsets between clocks that were read at the same time, ns. */
struct clock_offsets {
	bool has_epoch, has_host, has_boot;
	int64_t epoch;        /* the machine's CLOCK_REALTIME - CLOCK_BOOTTIME */
	int64_t host;         /* the host's CLOCK_BOOTTIME - this machine's CLOCK_BOOTTIME, from the last synchronization */
	int64_t host_error;   /* its error at the time host_at (this machine's CLOCK_BOOTTIME); INT64_MAX: unknown */
	int64_t host_at;
	uint64_t ftrace;      /* the events' clock, enum ftrace_clock */
	int64_t boot;         /* CLOCK_BOOTTIME - the events' clock */
};

struct perfetto_counters {  /* the kernel's buffer counters, at the trace's start and end */
	bool has_start, has_end;
	uint64_t lost_at_start, lost_at_end;  /* events, all CPUs */
};

struct perfetto_machine {
	uint32_t id;             /* 0: the tracing service's machine */
	char name[256], kernel[256], architecture[64], service[128];  /* "": not recorded */
	struct clock_offsets clock;
	struct perfetto_counters counters;
	struct perfetto_stream *stream;
	size_t streams, streams_cap;
	struct map stream_by_cpu;  /* sequence << 16 | CPU -> stream index */
	struct map process_by_tid; /* TID -> process */
	struct map name_by_tid;    /* TID -> id in names */
	struct strtab names;
	size_t names_bytes;
	struct strtab enabled;     /* events that the configuration enables, "group/name" */
	bool has_config;
	uint64_t bytes;          /* the bundles' size */
};

struct perfetto_file {
	char *path;
	unsigned references;     /* locations that use it */
	int scratch;             /* the scratch file's descriptor; -1: none */
	int64_t scratch_bytes;
	uint64_t bytes;          /* the file's size */
	uint64_t unpackable;     /* bytes in compressed packets that may still be decompressed */
	struct perfetto_machine *machine;
	size_t machines, machines_cap;
	struct map sequence;     /* machine << 32 | sequence -> 2 * its packet losses + (has its first packet) */
	int64_t flushed_at;      /* CLOCK_BOOTTIME when the tracers' last flush began, ns; 0: not recorded */
	char uuid[40];
	size_t bundles;
	uint64_t packets, track_events;
	uint64_t damages;        /* damaged packet count */
	const char *damage;      /* last damage's reason; NULL: none */
	uint64_t damaged_at;     /* first damage's offset, bytes */
	bool ends_early;         /* the packets end before the file's end */
};

/* Scans the file. Returns NULL, with *err set, if it cannot be read. */
struct perfetto_file *perfetto_file_read(const char *path, struct error *err);
/* As perfetto_file_read(), for an open file. */
struct perfetto_file *perfetto_file_scan(int fd, const char *path, struct error *err);
void perfetto_file_release(struct perfetto_file *f);  /* drops a reference; f may be NULL */

/* Adds a packet's facts, except its bundle, to the machine. */
struct proto_field;
void perfetto_add_clocks(struct perfetto_machine *m, const struct proto_field *snapshot);
void perfetto_add_remote_clocks(struct perfetto_machine *m, const struct proto_field *sync);
void perfetto_add_processes(struct perfetto_machine *m, const struct proto_field *tree);
void perfetto_add_system(struct perfetto_machine *m, const struct proto_field *info);
void perfetto_add_counters(struct perfetto_machine *m, const struct proto_field *stats);
void perfetto_add_config(struct perfetto_machine *m, const struct proto_field *config);
/* Returns true if the tracing service's event begins a flush. */
bool perfetto_is_flush(const struct proto_field *service_event);

/* Decompresses a packet. Returns the packets in it, malloc'ed, with their size; NULL, with *why set, if it is damaged, too
 * long or not supported. codec: PACKET_DEFLATED or PACKET_ZSTD; *left: bytes that may still be decompressed. */
unsigned char *perfetto_unpack(enum packet_field codec, const unsigned char *data, size_t len, uint64_t *left, size_t *size,
                               const char **why);
