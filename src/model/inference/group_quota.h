/* Bounds the time for which quotas kept threads, also those of vCPUs, off their CPUs, from the throttled time of their
 * control groups (cpu.stat), where no event shows it.
 *
 * cpu.stat counts a throttled interval of a group when it ends. A wait of a thread may be its quota's if the counter of its
 * group, or of a group above, grew between the wait's start and the first sample after its end: then the whole wait is
 * OUT_QUOTA_OR_OTHERS, without a culprit, because the samples do not show which part. If the counter did not grow, others
 * had the CPU. Without samples, the counters at both ends decide the same for the whole recording. A part of a vCPU's wait
 * for which vcpu_throttling.h finds a reason is not one of these waits.
 *
 * A wait in which the thread moved to another group is divided there; the counter of the group that it left may grow up to
 * a period later. Waits in groups whose limit is unknown are counted for a note.
 *
 * Waits are kept until the next sample, at most GROUP_WAITS per thread; of more, the shortest neighbours are joined. Cost:
 * O(1) per wait, O(threads) per sample of a group. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#define GROUP_WAITS 512

/* Waits of a thread that ended after the last sample, in order. */
struct group_waits {
	unsigned len;
	struct group_wait {
		int64_t from, to;
		int32_t group;
		bool has_moved;  /* ends since the thread moved, perhaps while its group was throttled */
	} wait[GROUP_WAITS];
};

/* Samples of one group's counter. */
struct group_growth {
	int64_t ns;       /* last value; -1: no sample yet */
	int64_t at;       /* time of the last sample, host ns; INT64_MIN: none */
	int64_t grew_at;  /* time of the last sample with growth, host ns; INT64_MIN: none */
	int64_t first_ns; /* first value */
	int64_t exact;    /* ns of throttled time by events, of all threads in it */
};
