/* The threads whose waits are collected (private to live/). */
#pragma once

#include "live/collector.h"
#include "live/live.h"

/* A thread of a VM, or one that was asked for. */
struct live_thread {
	char machine[LIVE_NAME];
	int number;                /* vCPU; -1: none */
	int32_t tid, pid;
	uint64_t start;            /* start time in ticks since boot; identifies the thread together with the TID */
	int slot;                  /* in the BPF source; -1: none */
	bool seen;                 /* by the last search */
	bool is_new;               /* the counters below are not yet read */
	bool is_first;             /* its first period begins before it was watched */
	uint64_t ns[LIVE_STATES], waits, length[LIVE_LENGTHS], lost_ns, shared_ns;  /* counters at the end of the last period */
	uint64_t ran, delayed;     /* schedstat, ns */
	int64_t counted_to;        /* time up to which the last period counts it, ns; 0: none */
	uint64_t user, system, guest;  /* ticks */
};

struct live_threads {
	struct live_thread *thread;
	size_t len, cap;
	size_t hidden;             /* processes that could not be inspected */
	bool is_guest;             /* no VM and no request: the threads of this machine itself */
};

/* Finds the threads again: sets `seen` of those that still exist, appends new ones. with_all: without VMs and requests, the
 * threads of all processes. */
void live_threads_find(struct live_threads *t, const struct live_request *request, bool with_all);

struct bpf_source;
/* A collection's BPF source; NULL: it is not used (live.c). */
struct bpf_source *live_bpf(struct live *l);
bool live_reads_steal_clock(const struct live *l);
const struct live_threads *live_threads_of(const struct live *l);
/* Copies a record as it was at the time now. Waits are accounted up to the last flush only. */
struct live_victim live_victim_read(const struct live_victim *from, int64_t now);
/* Copies the record of a victim at the time now. */
struct live_victim live_victim_at(struct live *l, int slot, int64_t now);
/* Returns true if the steal clock of each CPU equals that of /proc/stat: its place in memory is inferred. */
bool live_steal_clock_is_right(const struct live *l);
/* Returns true if this machine is a VM. */
bool live_machine_is_guest(void);

/* ---- files of /proc */

/* Reads a file below root into buf, NUL-terminated. Returns false if it cannot be read. */
bool live_read(char *buf, size_t size, const char *root, const char *fmt, ...) __attribute__((format(printf, 4, 5)));

struct live_stat { char state; uint64_t flags, user, system, start, guest; int cpu; char comm[64]; };
/* Reads /proc/PID/task/TID/stat. comm is escaped. */
bool live_read_stat(const char *root, int32_t pid, int32_t tid, struct live_stat *s);
/* Reads the time that a thread ran and waited since its start, ns. */
bool live_read_schedstat(const char *root, int32_t pid, int32_t tid, uint64_t *ran, uint64_t *delayed);
/* Calls visit() for each number among the names of a directory below root. */
void live_each_number(const char *root, const char *dir, void (*visit)(void *arg, int32_t n), void *arg);
