/* Triggers of a flight recording: conditions that are checked ten times a second, with data from /proc only (private to
 * record/).
 *
 *         gap(TARGET)>D             a thread waited for a CPU longer than D since the last check
 *         steal(TARGET)>P% [for D]  its threads waited more than P % of the last D (default 1 s);
 *                                   the vCPUs of a VM on average, other threads together
 *         throttled(GROUP)>P%       quotas throttled the group for more than P % of the last second, summed over CPUs
 *         log(FILE,TEXT)            a new line of the file contains the text
 *         load>N                    load average of the host over the last minute
 *         exit(COMMAND)             COMMAND, which a shell runs during the recording, has ended
 *         signal                    SIGUSR1; always active
 *
 * TARGET is a VM's name, VM/CPUn, any (each vCPU), thread:NAME, or a control group by its name or path. A trigger
 * that has fired fires again after it was false for a second, or after the time of triggers_arm(). Waiting times are the
 * kernel's sums (/proc/PID/schedstat), in ns. The kernel adds a wait when it ends; a wait longer than 1.5 s is also counted
 * while it lasts. */
#pragma once

#include "record/vm_discovery.h"

#define TRIGGER_PERIOD 100000000  /* ns between two checks */

struct triggers;

/* Parses n triggers. NULL with *err on a syntax error or an unknown VM. Borrows root, text and vm. */
struct triggers *triggers_new(const char *root, const char *const *text, size_t n, const struct vm *vm, size_t vms,
                              struct error *err);
void triggers_free(struct triggers *t);  /* NULL is allowed */

/* Starts to check at `now` (monotonic ns), and starts the commands of exit(); earlier waits do not count. hold: time after
 * which a trigger that stays true fires again, ns. */
void triggers_arm(struct triggers *t, int64_t now, int64_t hold);
/* Checks all triggers if TRIGGER_PERIOD has passed. Returns the text of a trigger that fires; NULL: none. */
const char *triggers_check(struct triggers *t, int64_t now);
