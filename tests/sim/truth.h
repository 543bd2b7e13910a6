/* Between truth.c (states), request.c (requests) and report.c (files). */
#ifndef STEALSCOPE_SIM_TRUTH_H
#define STEALSCOPE_SIM_TRUTH_H

#include "sim.h"

struct truth_out {
	FILE *interval, *who, *request, *loss, *cause, *poll;
	char *dir;
};

/* truth.c */
void truth_interval(struct sim *s, enum track_kind kind, const struct machine *m, int64_t id,
                    const struct truth_track *k, int64_t end);
void truth_write_who(struct cpu *c, int64_t end);
void truth_close_thread(struct thread *t, int64_t end);
bool truth_scheduled(const struct cpu *guest);  /* its thread has a CPU that executes */
bool truth_executes(const struct cpu *c);

/* request.c */
void request_usage(struct thread *t);  /* after a change of its state or its vCPU's: books the time before it */

#endif
