/* Reads the simulator's truth from its CSV files, for tests. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/map.h"
#include "base/strtab.h"
#include "history/history.h"

struct truth_interval {
	int64_t start, end; /* host ns, both included */
	uint32_t value;     /* string id */
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
	char vm[32], parent[32];  /* machine that runs it; "host" */
	unsigned number;
	int host_tid, host_pid, traced;
};

struct truth_span {
	char machine[32];
	int64_t first, last;  /* times of its first and last record, host ns */
};

struct truth_file {
	struct strtab strings;
	struct map by_path; /* string id -> index + 1 in attr */
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
	int64_t begin, end; /* first and last record of all traces */
};

/* Reads DIR/truth. Returns false, after a message on stderr, if that fails. */
bool truth_read(struct truth_file *t, const char *dir);
void truth_release(struct truth_file *t);
void truth_remove(const char *dir);  /* Removes the directory of a simulation. */
const struct truth_attr *truth_find(const struct truth_file *t, const char *path);
/* Returns true if the name is "VM <PID>" of that VM. */
bool truth_is_process(const struct truth_file *t, const char *vm, const char *name);
bool truth_traced(const struct truth_file *t, const char *path);  /* Returns true if the attribute's machine is traced. */
bool truth_nested(const struct truth_file *t, const char *path);  /* Returns true if that machine runs inside a guest. */
/* Gets the time that is covered by all traces on which the attribute depends: the host's, and the guest's for attributes
 * of a guest. */
void truth_window(const struct truth_file *t, const char *path, int64_t *from, int64_t *to);
int64_t truth_guest_time(const struct truth_file *t, const char *machine, int64_t host);
/* Returns true if a clock set back makes that guest time occur twice. */
bool truth_is_repeated(const struct truth_file *t, const char *machine, int64_t guest);

/* Returns the value at that time; NULL: none. */
const char *truth_value(const struct truth_file *t, const char *path, int64_t when);

/* Returns true for values that mean unknown; an unsynchronized VM may only be known to exist. */
bool truth_is_unknown(const char *found);
/* Returns a value of a history in the spelling of the truth. */
const char *history_text_of(const struct history *h, uint32_t attr, int64_t value, char buf[32]);
