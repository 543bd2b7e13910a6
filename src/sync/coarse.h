/* The coarse search: at which offset and drift does a guest's activity fall into its vCPUs' guest mode?  (Private to
 * sync/.)
 *
 * A segment of the guest's trace, in bins of 50 us, is cross-correlated with the host's windows and with their edges
 * (an interrupt's handler runs right after the vm entry that injects it) for a range of offsets and for drifts of
 * -320..+320 ppm in steps; the highest peaks are candidates, nothing more. */
#ifndef STEALSCOPE_SYNC_COARSE_H
#define STEALSCOPE_SYNC_COARSE_H

#include "sync/activity.h"
#include "sync/vms.h"

#define GUESSES_MAX 48

/* host = at_host + (t - at_guest) * (1 + ppm / 1e6) */
struct guess {
	int64_t at_guest, at_host;  /* ns */
	double ppm;
	double score;               /* standard deviations of the correlation */
	unsigned covered, events;   /* after guess_sweep(): events of the sample that lie in guest mode */
	int64_t slack;              /* ns by which at_host can move without losing one of them */
};

struct segment { int64_t from, to; };  /* guest ns */

/* Fills guess[0..*n), best first.  at_from and at_to: host times between which the middle of the segment may lie. */
void coarse_search(const struct host_view *host, const struct vm_view *vm, const struct activity *act,
                   struct segment seg, int64_t at_from, int64_t at_to, struct guess guess[GUESSES_MAX], size_t *n);

/* Moves the guess by at most `reach` ns to where most events of the segment lie in guest mode, and counts them. */
void guess_sweep(const struct host_view *host, const struct vm_view *vm, const struct activity *act,
                 struct segment seg, int64_t reach, unsigned sample, struct guess *g);

/* Share of the time, 0..1, that the thread spends in guest mode; blind spans do not count. */
double vthread_duty(const struct host_view *host, const struct vthread *th);

#endif
