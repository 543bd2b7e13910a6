/* Interface between truth.c (states), sim_request.c (requests), chain.c (causes) and sim_report.c (files); private to
 * them. */
#pragma once

#include "sim.h"

struct truth_out {
	FILE *interval, *pcpu, *request, *loss, *cause, *poll;
	FILE *throttled, *moves;  /* NULL: no groups of host threads */
	FILE *frequency, *progress, *steal;  /* NULL without --siblings; without --counters; without --steal-clock */
	char *dir;
};

/* ---- truth.c */
void truth_interval(struct sim *s, enum track_kind kind, const struct machine *m, int64_t id,
                    const struct truth_track *k, int64_t end);
void truth_write_user(struct cpu *c, int64_t end);
void truth_close_thread(struct thread *t, int64_t end);
bool truth_scheduled(const struct cpu *guest);  /* Returns true if the vCPU's thread has a CPU that executes. */
bool truth_executes(const struct cpu *c);

/* ---- sim_request.c */
void request_usage(struct thread *t);  /* Charges the time before a change of the thread's or its vCPU's state. */
