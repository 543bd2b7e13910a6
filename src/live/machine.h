/* Data that machine.bpf.c shares with user space (private to live/). Times in ns of the run queues' clock. */
#pragma once

#include "live/collector.h"

#define MACHINE_LOG 2048       /* tenures of a CPU by tasks that others waited for */
#define MACHINE_ROWS 8192      /* processes of a period that waited, and that ended */
#define MACHINE_KEYS 65536     /* threads that are victims of their own */
#define MACHINE_BINS 64        /* powers of two of wait lengths, ns */

#define MACHINE_V2 (1ull << 63)  /* in the number of a group: it belongs to cgroup v2 */

/* A task had the CPU from `from` to `to`, and another one waited for it at the end at least. */
struct machine_entry { u64 from, to; u32 culprit /* key of machine_task */, unused; };

struct machine_cpu {
	u64 head;                  /* entries ever appended */
	struct machine_entry log[MACHINE_LOG];
};

/* Written by user space only. */
struct machine_control {
	u32 epoch;                 /* its lowest bit: the tables that count from now on */
	u32 lists;                 /* 1: list_tasks() prints the tasks; 0: it accounts the waits that go on */
	u32 keys;                  /* threads in the map of keys */
	u32 root;                  /* PID of the command of `run`, whose descendants are marked; 0: none */
};

/* Sums of a process in a period. */
struct machine_row {
	u64 throttled, waits, longest;
	u64 lost;                  /* waiting time for which the map of pairs had no place */
	u32 longest_culprit, marked;
	u32 bin[MACHINE_BINS];
};

/* A process of which threads ended in a period. */
struct machine_ended {
	u64 ran, group;
	u32 kernel, marked;
	char comm[16];
};

/* A task in the list. */
struct machine_task {
	u64 ran;                   /* since the last list */
	u64 at;                    /* time up to which all times of the task are counted */
	u64 group;                 /* inode number of its control group, and MACHINE_V2 */
	u32 tid, tgid, cpu, kernel /* 1: a kernel thread */;
	u32 key, marked;           /* key: TGID, or of a thread that is a victim of its own */
	u32 stopped, unused;       /* stopped: by a signal or a debugger */
	char comm[16];             /* of its process */
};
