/* Data that the BPF program shares with user space through memory (private to live/). Times in ns of CLOCK_MONOTONIC. */
#pragma once

#ifdef __bpf__
typedef unsigned int u32;
typedef unsigned long long u64;
typedef long long s64;
#else
#include <stdint.h>
typedef uint32_t u32;
typedef uint64_t u64;
#endif

#include "base/published_page.h"

enum { LIVE_UNKNOWN, LIVE_RUNNING, LIVE_WAITING, LIVE_THROTTLED, LIVE_BLOCKED, LIVE_PAUSED, LIVE_STATES = 8 };

#define LIVE_VICTIMS 1024    /* threads; a power of two */
#define LIVE_HASH 4096       /* entries in the table of victims' TIDs */
#define LIVE_HASH_FACTOR 2654435769u
#define LIVE_HASH_SHIFT 20
#define LIVE_PROBES 16       /* entries in that table among which a TID is searched */
#define LIVE_FILTER 2048     /* bits: each victim's bit TID modulo LIVE_FILTER is set */
#define LIVE_LOG 128         /* a pCPU's switches */
#define LIVE_RUNS 64         /* tasks per pCPU and period with a time of their own */
#define LIVE_BINS 64         /* wait lengths by powers of two, ns */
#define LIVE_TOP 4           /* culprits that are counted separately per wait */
#define LIVE_CLIENTS 64      /* processes that counters are published to */
#define LIVE_PAIRS 32768     /* pairs of victim and culprit in a period */
#define LIVE_MARK_BITS 3
#define LIVE_SAME_CPU 0xffffffffu
#define LIVE_IF_WAITING 0x80u  /* with a state: change to it only from a state that waits */
#define LIVE_IF_RUNNING 0x40u  /* with a state: change to it only from LIVE_RUNNING */
#define LIVE_SHARED 0x10000u   /* with a victim's slot in a pair's key: not the time that the culprit had the
                                * pCPU, but the time that it ran on the core's other CPU while the victim ran */

/* Culprits: a TGID; or CULPRIT_VICTIM + slot; or one of these. 0: the idle task. */
#define CULPRIT_VICTIM 0x80000000u
#define CULPRIT_UNKNOWN 0x7fffffffu
#define CULPRIT_THROTTLED 0x7ffffffeu
#define CULPRIT_SEVERAL 0x7ffffffdu

/* Written by user space only. */
struct live_table {
	u32 slots;     /* victim slots in use: those below */
	u32 epoch;     /* its lowest bit: which pair map is in use */
	u32 spaces;    /* 0: PID namespaces are not read */
	u32 reserved;
	u64 filter[LIVE_FILTER / 64];
	u64 tid[LIVE_HASH];  /* TID << 32 | slot; 0: free */
};

/* Set before loading; the verifier removes the code that they exclude. */
struct live_constants {
	u32 steal;     /* 1: KVM's steal clock is read */
	u32 siblings;  /* 1: a core has two CPUs */
	long long steal_distance;  /* from a CPU's run queue to its steal clock. Both are per-CPU variables, and few
	                            * kernels let BPF programs resolve the latter's address */
};

struct live_entry {
	u64 ts;        /* time when the task got the pCPU */
	u32 culprit, tid;
	char comm[16];
	u32 tgid;
	u32 space;     /* its PID namespace's inode number; 0: not read */
};

/* A task's time on a pCPU in an epoch. Small, so that the table stays in the cache; the name is in live_cpu.run_comm. */
struct live_run {
	u64 ns;        /* 0: unused */
	u32 culprit, tid;
};

struct live_cpu {
	u64 head;      /* switch count */
	u32 throttled; /* victims that wait for this pCPU and are throttled, or 1 if that must be examined */
	u32 sibling;   /* 1 + its core's other CPU; 0: none, or several */
	u64 steal;     /* steal clock at the last switch, ns */
	u64 steal_address;  /* the steal clock's address in the kernel; 0: not known yet */
	u64 run_other[2];  /* time for which tasks had no place in run, ns */
	struct live_entry log[LIVE_LOG];
	struct live_run run[2][LIVE_RUNS];  /* by epoch */
	char run_comm[2][LIVE_RUNS][16];
};

struct live_victim {
	u64 mark;      /* time up to which this victim is accounted << LIVE_MARK_BITS | state */
	u32 cpu;       /* pCPU that it runs on or waits for */
	u32 tid;       /* 0: ended */
	u64 task;      /* its task_struct's address in the kernel; 0: unknown */
	u64 ns[LIVE_STATES];
	u64 waits, bin[LIVE_BINS];
	u64 wait_ns;   /* current wait's length up to the mark, throttled time included */
	struct { u64 ns; u32 culprit, unused; } top[LIVE_TOP];
	u64 top_other;
	u64 longest, longest_end;
	u32 longest_culprit, longest_cpu;
	u64 lost_ns;   /* waiting time for which the pair map had no place */
	u64 own_ns, other_ns, unsure_ns;  /* waiting time by the task that had the pCPU: of the same process or container;
	                                   * another one, or none; unknown */
	u64 sleeps;    /* that ended */
	u64 shared_ns; /* running time in which another task ran on the core's other CPU */
	u64 steal;     /* its pCPU's steal clock at the mark, ns */
	u64 stolen_run, stolen_wait;  /* gained by the steal clock while it ran, and while it waited */
	u64 stolen_wake;  /* gained by the steal clock of the idle CPU that then woke it */
	u32 tgid, space;  /* a task is its own if it has this space; if this is 0: this tgid */
	u32 client, entry;  /* its published counters' place: client 1 ..., the page's entry; client 0: none */
	u32 listed, unused;  /* listed: it is a victim of `top`, and a culprit of its own */
};

/* Actions on a page, with their arguments after the client and the entry. */
enum page_action {
	PAGE_OPEN,     /* flags, source, session, beat, resolution */
	PAGE_BEAT,     /* beat */
	PAGE_CLOSE,
	PAGE_THREAD    /* TID, 0: none. The counters become 0 */
};

struct live_pair_key { u32 victim, culprit; };
struct live_pair_value {
	u64 ns;
	u32 tid, unused;
	char comm[16];
};
