/* The simulator's truth, read back from its CSV files, for tests. */
#ifndef STEALSCOPE_TESTS_TRUTH_FILE_H
#define STEALSCOPE_TESTS_TRUTH_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/strtab.h"
#include "history/history.h"

struct truth_interval {
	int64_t start, end;  /* host ns, closed */
	uint32_t value;      /* string id */
};

struct truth_attr {
	uint32_t path;       /* string id */
	struct truth_interval *iv;
	size_t n, cap;
};

/* guest = ref_guest + floor((host - ref_host) * (1 + rate / 2^60)) from host time `from` on. */
struct truth_clock {
	char machine[32];
	int64_t from, ref_host, ref_guest, rate;
};

struct truth_alias { char name[32], is[32]; };

struct truth_vcpu {
	char vm[32], parent[32];  /* the machine that runs it; "host" */
	unsigned number;
	int host_tid, host_pid, traced;
};

struct truth_span {
	char machine[32];
	int64_t first, last;  /* host ns of its records */
};

struct truth_file {
	struct strtab strings;
	struct map by_path;  /* string id -> index + 1 in attr */
	struct truth_attr *attr;
	size_t attrs, attr_cap;
	struct truth_clock *clock;
	size_t clocks, clock_cap;
	struct truth_span *span;
	size_t spans, span_cap;
	struct truth_vcpu *vcpu;
	size_t vcpus, vcpu_cap;
	struct truth_alias *alias;
	size_t aliases, alias_cap;
	int64_t begin, end;  /* first and last record of all */
};

bool truth_read(struct truth_file *t, const char *dir);  /* DIR/truth; false: cannot be read, said on stderr */
void truth_release(struct truth_file *t);
void truth_remove(const char *dir);  /* and all that was simulated there */
const struct truth_attr *truth_find(const struct truth_file *t, const char *path);
bool truth_is_process(const struct truth_file *t, const char *vm, const char *name);  /* "VM <its PID>" */
bool truth_traced(const struct truth_file *t, const char *path);  /* the machine whose attribute that is */
bool truth_nested(const struct truth_file *t, const char *path);  /* that machine runs inside a guest */
/* The time that the traces cover on which the attribute depends: the host's, and the guest's for what belongs to it. */
void truth_window(const struct truth_file *t, const char *path, int64_t *from, int64_t *to);
int64_t truth_guest_time(const struct truth_file *t, const char *machine, int64_t host);
bool truth_comes_twice(const struct truth_file *t, const char *machine, int64_t guest);  /* its clock was set back over that */

const char *truth_value(const struct truth_file *t, const char *path, int64_t when);  /* NULL: nothing */

/* The analysis knows that it does not know; of a VM perhaps nothing but that there is one. */
bool truth_untold(const char *found);
/* A value of a history as the truth spells it. */
const char *history_text_of(const struct history *h, uint32_t attr, int64_t value, char buf[32]);

#endif
