/* Control groups of a machine and their threads. `record` reads them from /sys and /proc; session files contain them as
 * YAML (stealscope-session(5)); the model writes them as attributes of the history. */
#pragma once

#include "base/map.h"
#include "base/yaml_file.h"
#include "base/yaml_out.h"

#define CONTROL_GROUPS_MAX 4096
#define CONTROL_GROUP_MEMBERS_MAX (1 << 20)

struct control_groups {
	struct control_group {
		char *path, *name, *cpus;      /* name: for people, not unique; cpus: its CPU set, NULL: unknown */
		int64_t quota_ns, period_ns;   /* CPU time per period; quota_ns 0: no limit */
		/* By cpu.stat, during the recording; -1: unknown. throttled_ns is the sum over all CPUs. */
		int64_t periods, throttled, throttled_ns;
	} *group;
	size_t groups, group_cap;
	struct control_group_member { int32_t tid; uint32_t group; } *member;  /* group: index */
	size_t members, member_cap;
	bool has_events;                       /* the trace contains an event for each throttled thread */
	bool is_guest;                         /* the machine is a guest; false: the host */
	struct map by_hash;                    /* hash of a path -> index; private */
};

void control_groups_release(struct control_groups *g);
/* Returns the group's index; adds it, with its path as name, if it is new. UINT32_MAX: there are too many. */
uint32_t control_groups_put(struct control_groups *g, const char *path);
/* Sets the name and the CPU set; NULL: the name stays, the CPU set is unknown. */
void control_groups_describe(struct control_groups *g, uint32_t group, const char *name, const char *cpus);
int32_t control_groups_find(const struct control_groups *g, const char *path);  /* Returns its index; -1: none. */
void control_groups_add_member(struct control_groups *g, int32_t tid, const char *path);

/* Reads the list "control_groups" of a session file. Returns 0, or -1 with *err set. */
int control_groups_read(struct control_groups *g, struct yaml_file *f, const yaml_node_t *list, struct error *err);
/* Writes the list as a member of `map`; nothing if it is empty. */
void control_groups_write(struct yaml_out *o, int map, const struct control_groups *g);

/* Returns a number that differs between different groups, with high probability; 0: empty. */
uint64_t control_groups_hash(const struct control_groups *g);
