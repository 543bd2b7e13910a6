#include "record/control_group.h"

#include "record/proc.h"

#define V2_DIR "/sys/fs/cgroup"

/* Returns true if a list separated by commas, of `length` bytes, contains "cpu". */
static bool lists_cpu(const char *list, size_t length)
{
	for (const char *at = list; at < list + length; at += strcspn(at, ",:") + 1)
		if (strncmp(at, "cpu", 3) == 0 && (at[3] == ',' || at[3] == ':'))
			return true;
	return false;
}

void cgroup_tree_find(struct cgroup_tree *t, const char *root)
{
	*t = (struct cgroup_tree){ .is_v2 = true };
	char *text = proc_text(root, NULL, "/proc/self/cgroup");
	if (!text)
		text = proc_text(root, NULL, "/proc/1/cgroup");  /* a copy of /proc contains no "self" */
	for (const char *line = text; line && *line; line += strcspn(line, "\n"), line += *line == '\n') {
		unsigned number;
		int begin = 0;
		if (sscanf(line, "%u:%n", &number, &begin) != 1 || !begin)
			continue;
		const char *list = line + begin;
		const size_t length = strcspn(list, ":\n");
		if (!lists_cpu(list, length) || length >= sizeof t->controllers - 16)
			continue;
		snprintf(t->controllers, sizeof t->controllers, "%.*s", (int)length, list);
		snprintf(t->dir, sizeof t->dir, V2_DIR "/%.40s", t->controllers);
		t->is_v2 = false;
		t->hierarchy = number;
		break;
	}
	free(text);
	if (!t->is_v2 && !proc_exists(root, "%s", t->dir))
		snprintf(t->dir, sizeof t->dir, V2_DIR "/cpu");
	if (t->is_v2)
		snprintf(t->dir, sizeof t->dir, V2_DIR "%s", proc_exists(root, V2_DIR "/unified") ? "/unified" : "");
	if (!proc_exists(root, "%s", t->dir))
		*t->dir = '\0';
}

char *cgroup_tree_path(const struct cgroup_tree *t, const char *root, int32_t pid, int32_t tid)
{
	char *text = *t->dir ? proc_text(root, NULL, "/proc/%d/task/%d/cgroup", pid, tid) : NULL, *path = NULL;
	const size_t length = strlen(t->controllers);
	for (const char *line = text; line && *line && !path; line += strcspn(line, "\n"), line += *line == '\n') {
		const char *list = strchr(line, ':');
		if (list && strncmp(list + 1, t->controllers, length) == 0 && list[1 + length] == ':' &&
		    (length || strncmp(line, "0:", 2) == 0))
			path = mem_printf("%.*s", (int)strcspn(list + length + 2, "\n"), list + length + 2);
	}
	free(text);
	if (path && (*path != '/' || strstr(path, "/../"))) {  /* a group outside this cgroup namespace */
		free(path);
		path = NULL;
	}
	return path;
}

struct cgroup_quota cgroup_quota_read(const struct cgroup_tree *t, const char *root, const char *path)
{
	int64_t quota = 0, period = 0;
	if (t->is_v2) {
		char *line = proc_line(root, "%s%s/cpu.max", t->dir, path);
		long long a = 0, b = 0;
		if (line && sscanf(line, "%lld %lld", &a, &b) == 2) {
			quota = a;
			period = b;
		}
		free(line);
	} else if (!proc_number(root, &period, "%s%s/cpu.cfs_period_us", t->dir, path) ||
	           !proc_number(root, &quota, "%s%s/cpu.cfs_quota_us", t->dir, path)) {
		quota = 0;
	}
	if (quota <= 0 || period <= 0 || quota > INT64_MAX / 1000 || period > INT64_MAX / 1000)
		return (struct cgroup_quota){ 0, 0 };
	return (struct cgroup_quota){ quota * 1000, period * 1000 };
}

void cgroup_stat_parse(const char *text, struct cgroup_stat *out)
{
	*out = (struct cgroup_stat){ 0 };
	for (const char *line = text; line && *line; line += strcspn(line, "\n"), line += *line == '\n') {
		char key[32];
		long long n;
		if (sscanf(line, "%31s %lld", key, &n) != 2)
			continue;
		if (strcmp(key, "nr_periods") == 0)
			out->periods = n;
		else if (strcmp(key, "nr_throttled") == 0)
			out->throttled = n;
		else if (strcmp(key, "throttled_time") == 0)
			out->throttled_ns = n;
		else if (strcmp(key, "throttled_usec") == 0 && n <= INT64_MAX / 1000)
			out->throttled_ns = n * 1000;
	}
}

bool cgroup_stat_read(const struct cgroup_tree *t, const char *root, const char *path, struct cgroup_stat *out)
{
	char *text = proc_text(root, NULL, "%s%s/cpu.stat", t->dir, path);
	cgroup_stat_parse(text, out);
	free(text);
	return text != NULL;
}
