/* Requests on the clocks of their vCPUs' work.  Private to compare/. */
#ifndef STEALSCOPE_COMPARE_WHATIF_REQUEST_REPLAY_H
#define STEALSCOPE_COMPARE_WHATIF_REQUEST_REPLAY_H

#include "compare/whatif/scheduler_replay.h"

struct served {
	char kind[SUBJECT_TEXT];
	int64_t start, latency;
	int64_t background;      /* ns of it: handlers, the hypervisor, and threads of its machine that do little */
	struct replay_task *first, *last;  /* the vCPUs' where it begins and ends */
	int64_t begins, ends;    /* their work by then */
};

struct served_list {
	struct served *item;
	size_t len, cap;
};

/* The complete requests of the window whose servers run in VMs of the host. */
int served_read(struct served_list *l, const struct wants *w, struct notes *notes, struct error *err);
void served_release(struct served_list *l);
/* ns that the replay makes of it; NAN: it does not end there.  `by_clock`: it comes when it did, as soon as its vCPU runs,
 * even if that is behind with its work. */
double served_again(const struct served *s, bool by_clock);
/* When it is answered in the replay.  INT64_MIN: never. */
int64_t served_ends(const struct served *s);

#endif
