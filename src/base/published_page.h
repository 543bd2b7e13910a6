/* Counters that a collector (`stealscope monitor --publish`) publishes to a process: the shared page's layout, and
 * the socket's protocol. The collector, its BPF program and the marking library include this file.
 *
 * A process connects to the socket (SOCK_SEQPACKET) and gets one message: 4 bytes, PUBLISHED_VERSION, with a descriptor. It
 * maps PUBLISHED_BYTES of the descriptor for reading. Then it sends each thread's TID, 4 bytes each, as the process
 * itself sees the TID; the thread's counters appear in an entry of the page. There is no other answer.
 *
 * Entry 0 of the page is the header. An entry is written by one CPU at a time, with a sequence number that is odd while
 * the entry changes. All counters only grow. Times: ns, CLOCK_MONOTONIC of the collector. */
#pragma once

#define PUBLISHED_SOCKET "/run/stealscope-live/socket"
#define PUBLISHED_MAGIC 0x6e627273u  /* "srbn" */
#define PUBLISHED_VERSION 1
#define PUBLISHED_ENTRIES 256u       /* with the header */
#define PUBLISHED_ENTRY_BYTES 128u
#define PUBLISHED_BYTES (PUBLISHED_ENTRIES * PUBLISHED_ENTRY_BYTES)

enum published_counter {
	PUBLISHED_STOLEN,    /* runnable while others had the CPU or it was idle, and throttled, ns */
	PUBLISHED_THROTTLED, /* part of it because of a quota, ns */
	PUBLISHED_WAIT,      /* runnable while own threads had the CPU, ns */
	PUBLISHED_MIXED,     /* one of these, it is unknown which, ns */
	PUBLISHED_BLOCKED,   /* not runnable, ns */
	PUBLISHED_UNKNOWN,   /* no state known, ns */
	PUBLISHED_SWITCHES,  /* wait count */
	PUBLISHED_WAKEUPS,   /* sleeps that ended */
	PUBLISHED_COUNTERS
};

/* State since `updated`. */
enum published_state { PUBLISHED_IS_RUNNING, PUBLISHED_IS_WAITING, PUBLISHED_IS_BLOCKED };

/* The header's flags. */
#define PUBLISHED_HOST_UNSEEN 1u   /* this machine is a VM, and what its host takes is not in the counters */

struct published_header {
	unsigned magic, version;
	unsigned source;           /* enum srbn_source */
	unsigned flags;
	unsigned closed;           /* 1: the collector has ended */
	unsigned unused;
	unsigned long long session;    /* differs between two pages */
	unsigned long long beat;       /* changes at least once a second while the collector lives */
	unsigned long long resolution; /* ns: an entry may lag behind by this */
	unsigned long long unused2[10];
};

struct published_thread {
	unsigned seq;
	unsigned tid;              /* as the process sent it; 0: unused entry */
	unsigned state, unused;
	unsigned long long updated;
	unsigned long long counter[PUBLISHED_COUNTERS];
	unsigned long long unused2[5];
};

/* A host shares the counters of a VM's vCPUs in memory of the VM (`monitor --share`): the header and the entries as above,
 * entry 1 + N for vCPU N with TID 1 + N; then an entry of this kind for each. The VM cannot be trusted: the host only
 * writes. */
#define SHARED_BYTES (2 * PUBLISHED_BYTES)
#define SHARED_NAME 112

struct shared_culprit {
	unsigned seq, unused;
	unsigned long long took;   /* part of the last period in which it had the pCPU while the vCPU waited, ns; 0: none */
	char name[SHARED_NAME];    /* NUL-terminated */
};

_Static_assert(sizeof(struct shared_culprit) == PUBLISHED_ENTRY_BYTES, "layout of a culprit");
_Static_assert(sizeof(struct published_header) == PUBLISHED_ENTRY_BYTES, "layout of the header");
_Static_assert(sizeof(struct published_thread) == PUBLISHED_ENTRY_BYTES, "layout of an entry");
