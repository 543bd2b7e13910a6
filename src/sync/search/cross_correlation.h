/* The coarse search: at which offset and drift does a guest's activity fall into its vCPUs' guest mode?  (Private to
 * sync/.)
 *
 * A segment of the guest's trace, in bins, is cross-correlated with the host's windows and with their edges (an
 * interrupt's handler runs right after the vm entry that injects it) for a range of offsets and for drifts of
 * -320..+320 ppm in steps; the highest peaks are candidates, nothing more.  Bins of 50 us tell where; over a long
 * range bins are longer, and so are segments, and what they find is searched again in bins of 50 us.
 * O(lags log(segment)) per CPU and step of the drift. */
#ifndef STEALSCOPE_SYNC_SEARCH_CROSS_CORRELATION_H
#define STEALSCOPE_SYNC_SEARCH_CROSS_CORRELATION_H

#include "sync/evidence/evidence.h"

#define GUESSES_MAX 48
#define BIN_NS 50000
#define DELAY_NS 15000   /* typical, from a vm entry to the first event and from the last one to the exit */
#define SHARE_LEAST 0.9  /* of the activity must lie in guest mode; less is no hypothesis */

/* host = at_host + (t - at_guest) * (1 + ppm / 1e6) */
struct guess {
	int64_t at_guest, at_host;  /* ns */
	double ppm;
	double score;               /* standard deviations of the correlation */
	unsigned covered, events;   /* after guess_sweep(): events of the sample that lie in guest mode */
	int64_t slack;              /* ns by which at_host can move without losing one of them */
};

struct guess_list {
	struct segment seg;               /* that they are about */
	struct guess guess[GUESSES_MAX];  /* best first */
	size_t n;
};

/* Where on the host's clock the middle of the segment may lie. */
struct range { int64_t from, to; };

/* Adds the guesses of a search in bins of bin ns to the list.  A segment has 2^17 bins at most. */
void coarse_search(const struct seen *seen, struct segment seg, struct range range, int64_t bin, struct guess_list *out);

/* Does no clock put enough of what happened in the middle of the segment into guest mode?  False: it is not known. */
bool guess_nowhere(const struct seen *seen, struct segment seg);

/* Moves the guess by at most `reach` ns to where most events of the segment lie in guest mode, and counts them. */
void guess_sweep(const struct seen *seen, struct segment seg, int64_t reach, unsigned sample, struct guess *g);

/* Share of the host's time from..to, 0..1, that the thread spends in guest mode; blind spans do not count. */
double vthread_duty(const struct host_view *host, const struct vthread *th, int64_t from, int64_t to);

#endif
