#include "live/quotas.h"

#include "base/base.h"

#define MAX_GROUPS 1024
#define MAX_DEPTH 16       /* groups above a thread */

static const struct { const char *hierarchy, *dir, *key; int64_t unit; } versions[] = {
	{ ":cpu,cpuacct:", "/sys/fs/cgroup/cpu,cpuacct", "throttled_time ", 1 },
	{ ":cpu:", "/sys/fs/cgroup/cpu", "throttled_time ", 1 },
	{ "0::", "/sys/fs/cgroup", "throttled_usec ", 1000 },
	{ "0::", "/sys/fs/cgroup/unified", "throttled_usec ", 1000 },
};

struct quota_group {
	char *path;                        /* of its cpu.stat */
	int64_t total, gained;             /* throttled time since the group exists, and between the last two reads, ns */
	bool is_read;
};

struct quotas {
	struct quota_group *group;
	size_t groups, groups_cap;
	struct threads_of_group { size_t len; uint16_t group[MAX_DEPTH]; } *thread;
	size_t threads;
};

struct quotas *quotas_new(void)
{
	return mem_new(1, sizeof(struct quotas));
}

void quotas_free(struct quotas *q)
{
	for (size_t i = 0; q && i < q->groups; i++)
		free(q->group[i].path);
	if (q) {
		free(q->group);
		free(q->thread);
	}
	free(q);
}

/* Reads a group once. Returns its index; MAX_GROUPS: it has no counter. */
static size_t read_group(struct quotas *q, const char *root, size_t version, const char *path)
{
	char text[1024], *name = mem_printf("%s%s/cpu.stat", versions[version].dir, path);
	size_t i = 0;
	while (i < q->groups && strcmp(q->group[i].path, name) != 0)
		i++;
	if (i < q->groups && q->group[i].is_read) {
		free(name);
		return i;
	}
	const char *at = live_read(text, sizeof text, root, "%s", name) ? strstr(text, versions[version].key) : NULL;
	if (!at || i >= MAX_GROUPS) {
		free(name);
		return MAX_GROUPS;
	}
	const int64_t total = strtoll(at + strlen(versions[version].key), NULL, 10) * versions[version].unit;
	if (i == q->groups)
		*ARRAY_PUSH(q->group, q->groups, q->groups_cap) = (struct quota_group){ .path = mem_dup(name), .total = total };
	free(name);
	q->group[i].gained = total - q->group[i].total;
	q->group[i].total = total;
	q->group[i].is_read = true;
	return i;
}

static void read_thread(struct quotas *q, const char *root, const struct live_thread *t, struct threads_of_group *g)
{
	char text[8192], *slash;
	g->len = 0;
	if (!live_read(text, sizeof text, root, "/proc/%d/task/%d/cgroup", t->pid, t->tid))
		return;
	for (size_t i = 0; i < sizeof versions / sizeof *versions && !g->len; i++) {
		const char *at = strstr(text, versions[i].hierarchy);
		if (!at)
			continue;
		at += strlen(versions[i].hierarchy);
		char *path = mem_printf("%.*s", (int)strcspn(at, "\n"), at);
		while (!strstr(path, "..") && (slash = strrchr(path, '/')) && slash[1] && g->len < MAX_DEPTH) {
			const size_t group = read_group(q, root, i, path);
			if (group < MAX_GROUPS)
				g->group[g->len++] = (uint16_t)group;
			*slash = '\0';
		}
		free(path);
	}
}

/* Drops the groups that no thread was in at the last read. */
static void drop_unread(struct quotas *q)
{
	size_t kept = 0;
	for (size_t i = 0; i < q->groups; i++) {
		if (q->group[i].is_read)
			q->group[kept++] = q->group[i];
		else
			free(q->group[i].path);
	}
	q->groups = kept;
}

void quotas_read(struct quotas *q, const char *root, const struct live_threads *t)
{
	drop_unread(q);
	for (size_t i = 0; i < q->groups; i++) {
		q->group[i].is_read = false;
		q->group[i].gained = 0;
	}
	free(q->thread);
	q->threads = t->len;
	q->thread = mem_new(t->len + 1, sizeof *q->thread);
	for (size_t i = 0; i < t->len; i++)
		read_thread(q, root, &t->thread[i], &q->thread[i]);
}

static bool is_member(const struct quotas *q, size_t thread, size_t group)
{
	for (size_t k = 0; k < q->thread[thread].len; k++)
		if (q->thread[thread].group[k] == group)
			return true;
	return false;
}

void quotas_divide(const struct quotas *q, struct live_vcpu *vcpu, size_t n)
{
	n = n < q->threads ? n : q->threads;
	double *demand = mem_new(q->groups + 1, sizeof *demand);
	for (size_t g = 0; g < q->groups; g++)
		for (size_t i = 0; q->group[g].gained > 0 && i < n; i++)
			if (is_member(q, i, g))
				demand[g] += (double)(vcpu[i].ns.ran + vcpu[i].ns.stolen);
	for (size_t i = 0; i < n; i++) {
		double most = 0;
		for (size_t k = 0; k < q->thread[i].len; k++) {
			const size_t g = q->thread[i].group[k];
			const double own = (double)(vcpu[i].ns.ran + vcpu[i].ns.stolen);
			const double ns = demand[g] > 0 ? (double)q->group[g].gained * (own / demand[g]) : 0;
			most = ns > most ? ns : most;
		}
		vcpu[i].ns.throttled = min64((int64_t)most, vcpu[i].ns.stolen);
		vcpu[i].ns.stolen -= vcpu[i].ns.throttled;
	}
	free(demand);
}
