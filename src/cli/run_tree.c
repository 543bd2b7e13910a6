#include "cli/run_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/base.h"
#include "record/record.h"

/* A thread that was seen. The key is its TID: a TID that is used again within a run begins with smaller counters. */
struct seen_thread { int64_t ran, waited; };

struct run_tree {
	pid_t root;                /* never reaped before run_tree_close() */
	struct map member;         /* the tree's processes: PID -> start time */
	struct map by_tid;         /* TID -> index of thread */
	struct seen_thread *thread;
	size_t len, cap;
	struct run_tree_sums sums;
	char *group;               /* path of the command's control group; NULL: unknown */
	struct cgroup_tree tree;
	int64_t throttled;         /* counters at the begin */
	uint64_t busy, stolen;
};

static bool read_small(char *buf, size_t size, const char *path)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC);
	const ssize_t n = fd < 0 ? -1 : read(fd, buf, size - 1);
	if (fd >= 0)
		close(fd);
	buf[n > 0 ? n : 0] = '\0';
	return n > 0;
}

/* ---- counters of the machine */

static void read_machine(uint64_t *busy, uint64_t *stolen)
{
	char text[512];
	unsigned long long n[8] = { 0 };
	if (read_small(text, sizeof text, "/proc/stat"))
		sscanf(text, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", n, n + 1, n + 2, n + 3, n + 4, n + 5, n + 6, n + 7);
	*busy = n[0] + n[1] + n[2] + n[5] + n[6];
	*stolen = n[7];
}

/* Sums the throttled time of the command's group and of the groups above it. */
static int64_t read_throttled(const struct run_tree *t)
{
	int64_t sum = 0;
	char *path = t->group ? mem_dup(t->group) : NULL, *slash;
	struct cgroup_stat stat;
	while (path && *path) {
		if (cgroup_stat_read(&t->tree, "", path, &stat))
			sum += stat.throttled_ns;
		if (!(slash = strrchr(path, '/')) || slash == path)
			break;
		*slash = '\0';
	}
	free(path);
	return sum;
}

struct run_tree *run_tree_new(pid_t root)
{
	struct run_tree *t = mem_new(1, sizeof *t);
	t->root = root;
	cgroup_tree_find(&t->tree, "");
	t->group = cgroup_tree_path(&t->tree, "", root, root);
	t->throttled = read_throttled(t);
	read_machine(&t->busy, &t->stolen);
	return t;
}

/* ---- tree */

static void read_thread(struct run_tree *t, pid_t pid, pid_t tid)
{
	char path[64], text[128];
	unsigned long long ran, waited;
	snprintf(path, sizeof path, "/proc/%d/task/%d/schedstat", pid, tid);
	if (!read_small(text, sizeof text, path) || sscanf(text, "%llu %llu", &ran, &waited) != 2)
		return;
	bool is_new;
	uint64_t *at = map_put(&t->by_tid, (uint64_t)tid, &is_new);
	if (is_new) {
		*at = t->len;
		*ARRAY_PUSH(t->thread, t->len, t->cap) = (struct seen_thread){ 0, 0 };
	}
	struct seen_thread *s = &t->thread[*at];
	if ((int64_t)ran < s->ran)
		*s = (struct seen_thread){ 0, 0 };
	const int64_t wait = (int64_t)waited - s->waited;
	t->sums.ran += (int64_t)ran - s->ran;
	t->sums.waited += wait;
	if (wait > t->sums.longest) {
		t->sums.longest = wait;
		t->sums.longest_at = clock_ns(CLOCK_REALTIME);
	}
	*s = (struct seen_thread){ (int64_t)ran, (int64_t)waited };
}

static void read_process(struct run_tree *t, pid_t pid)
{
	char path[64];
	snprintf(path, sizeof path, "/proc/%d/task", pid);
	DIR *d = opendir(path);
	for (const struct dirent *e; d && (e = readdir(d));)
		if (e->d_name[0] > '0' && e->d_name[0] <= '9')
			read_thread(t, pid, (pid_t)atoi(e->d_name));
	if (d)
		closedir(d);
}

/* Reads the parent and the start time of a process, which tell processes of the same PID apart. */
static bool read_origin(pid_t pid, int *parent, unsigned long long *start)
{
	char path[64], text[512];
	snprintf(path, sizeof path, "/proc/%d/stat", pid);
	const char *close = read_small(text, sizeof text, path) ? strrchr(text, ')') : NULL;
	return close && sscanf(close + 1, " %*c %d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d %llu",
	                       parent, start) == 2;
}

void run_tree_poll(struct run_tree *t)
{
	const pid_t self = getpid();
	DIR *d = opendir("/proc");
	/* The kernel lists processes by PID, so most parents come first. A child of this process is of the tree as well: its
	 * parent has ended. */
	for (const struct dirent *e; d && (e = readdir(d));) {
		const pid_t pid = e->d_name[0] > '0' && e->d_name[0] <= '9' ? (pid_t)atoi(e->d_name) : 0;
		int parent;
		unsigned long long start;
		if (!pid || !read_origin(pid, &parent, &start))
			continue;
		const uint64_t *known = map_find(&t->member, (uint64_t)pid);
		if ((known && *known == start) || pid == t->root || parent == self || map_find(&t->member, (uint64_t)parent)) {
			*map_put(&t->member, (uint64_t)pid, NULL) = start;
			read_process(t, pid);
		} else if (known) {
			map_remove(&t->member, (uint64_t)pid);
		}
	}
	if (d)
		closedir(d);
}

void run_tree_close(struct run_tree *t, struct run_tree_sums *sums)
{
	uint64_t busy, stolen;
	read_machine(&busy, &stolen);
	t->sums.throttled = max64(read_throttled(t) - t->throttled, 0);
	const uint64_t all = busy - t->busy + stolen - t->stolen;
	t->sums.host = all ? (double)(stolen - t->stolen) / (double)all : 0;
	*sums = t->sums;
	map_release(&t->member);
	map_release(&t->by_tid);
	free(t->thread);
	free(t->group);
	free(t);
}
