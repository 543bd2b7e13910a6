/* The BPF source for all threads of this machine (private to live/). */
#pragma once

#include "base/base.h"
#include "live/machine.h"

struct machine_source;

/* Loads and attaches the program. root: PID whose descendants are marked, before it starts any; 0: none. The kernel
 * detaches it when the process ends, however it ends. Returns NULL with *err. */
struct machine_source *machine_source_open(unsigned cpus, u32 root, struct error *err);
void machine_source_close(struct machine_source *m);
/* Accounts the waits that go on, and takes sums out of the kernel's tables before these are full. Cost: 1 us for each task
 * of the machine. */
void machine_source_flush(struct machine_source *m);

/* Makes a thread a victim and a culprit of its own, with the key CULPRIT_VICTIM + TID, from the next list or flush on. */
void machine_source_add(struct machine_source *m, u32 tid);
void machine_source_remove(struct machine_source *m, u32 tid);

/* What a period contains. The arrays belong to the caller. */
struct machine_period {
	int64_t end;               /* of the sums, CLOCK_MONOTONIC, ns */
	struct machine_task *task;
	size_t tasks;
	struct machine_period_row { u32 key; struct machine_row value; } *row;
	size_t rows;
	struct machine_period_ended { u32 key; struct machine_ended value; } *ended;
	size_t endeds;
	struct machine_period_pair { struct live_pair_key key; u64 ns; } *pair;
	size_t pairs;
};

/* Lists the tasks, and takes the sums since the last call. Waits until the last run that adds to them is over. */
void machine_source_take(struct machine_source *m, struct machine_period *p);
void machine_period_release(struct machine_period *p);
/* Returns the time that the programs took since the start by the kernel's statistics, ns, and the number of runs of the
 * switch program while they were on. */
bool machine_source_cost(struct machine_source *m, u64 *ns, u64 *runs);
/* Switches the kernel's statistics on or off; they cost time themselves. */
void machine_source_measure(struct machine_source *m, bool on);
