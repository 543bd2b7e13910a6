/* Coarse search for the offset and drift at which a guest's activity falls into the guest mode of its vCPUs (private to
 * sync/).
 *
 * An interval of the guest's trace, in bins, is cross-correlated with the host's windows and with their edges (an
 * interrupt handler runs right after the VM entry that injects the interrupt), for a range of offsets and for drifts of
 * -320..+320 ppm in steps. The highest peaks are estimates. Bins of 50 us are accurate enough; for a long range, bins
 * and intervals are longer, and the results are searched again in bins of 50 us. O(lags log(interval)) per CPU and step
 * of the drift. */
#pragma once

#include "sync/confidence.h"
#include "sync/evidence/evidence.h"

#define ESTIMATES_MAX 48
#define BIN_NS 50000
#define DELAY_NS 15000   /* typical delay from a VM entry to the first event, and from the last event to the VM exit, ns */

/* An estimated clock: host = at_host + (t - at_guest) * (1 + ppm / 1e6). */
struct offset_estimate {
	int64_t at_guest, at_host;  /* ns */
	double ppm;
	double score;               /* the peak's height, in standard deviations */
	unsigned covered, events;   /* after refine_offset(): events of the sample in guest mode, and all events of the
	                             * sample */
	int64_t tolerance;          /* ns by which at_host can change while the covered events stay in guest mode */
};

struct offset_list {
	struct ns_interval interval;               /* searched interval of the guest's trace */
	struct offset_estimate estimate[ESTIMATES_MAX];  /* best first */
	size_t n;
};

/* Searches all clocks that map the middle of the interval into the range of host time, in bins of `bin` ns, and adds the
 * peaks to *out. An interval has at most 2^17 bins. */
void cross_correlate(const struct evidence *evidence, struct ns_interval interval, struct ns_interval range, int64_t bin,
                     struct offset_list *out);

/* Returns true if no clock places enough events around the middle of the interval in guest mode; false: some clock may. */
bool offset_precheck_rejects(const struct evidence *evidence, struct ns_interval interval);

/* Moves the estimate by at most `reach` ns to the offset at which most events of the interval are in guest mode, and
 * counts them in `covered`. sample: maximum number of events tested. */
void refine_offset(const struct evidence *evidence, struct ns_interval interval, int64_t reach, unsigned sample,
                   struct offset_estimate *g);

/* Returns the share of host time [from, to] that the thread spends in guest mode, 0..1, unknown intervals excluded. */
double vthread_duty(const struct host_timeline *host, const struct vthread *th, int64_t from, int64_t to);
