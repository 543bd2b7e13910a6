#include "record/trigger_target.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "record/control_group.h"
#include "record/proc.h"

#define THREAD_PREFIX "thread:"
#define LOG_READ 65536     /* bytes of a log that one check reads */

/* ---- threads */

static bool group_matches(const char *root, const char *path, const char *name)
{
	if (strcmp(path, name) == 0)
		return true;
	char *shown = control_group_name(root, path);
	const bool same = shown && strcmp(shown, name) == 0;
	free(shown);
	return same;
}

static size_t visit_process(const char *root, int32_t pid, const char *comm, void (*visit)(void *, int32_t, int32_t),
                            void *arg)
{
	size_t n, found = 0;
	char **tid = proc_names(root, "", &n, "/proc/%d/task", (int)pid);
	for (size_t i = 0; i < n; i++) {
		char *name = comm ? proc_line(root, "/proc/%d/task/%s/comm", (int)pid, tid[i]) : NULL;
		if (!comm || (name && strcmp(name, comm) == 0)) {
			found++;
			visit(arg, pid, (int32_t)atoi(tid[i]));
		}
		free(name);
	}
	proc_names_free(tid, n);
	return found;
}

size_t trigger_target_threads(const char *root, const char *name, void (*visit)(void *arg, int32_t pid, int32_t tid),
                              void *arg)
{
	const char *comm = strncmp(name, THREAD_PREFIX, strlen(THREAD_PREFIX)) == 0 ? name + strlen(THREAD_PREFIX) : NULL;
	struct cgroup_tree tree;
	size_t n, found = 0;
	char **process = proc_names(root, "", &n, "/proc");
	cgroup_tree_find(&tree, root);
	for (size_t i = 0; i < n; i++) {
		const int32_t pid = (int32_t)atoi(process[i]);
		char *path = pid > 0 && !comm ? cgroup_tree_path(&tree, root, pid, pid) : NULL;
		if (pid > 0 && (comm || (path && group_matches(root, path, name))))
			found += visit_process(root, pid, comm, visit, arg);
		free(path);
	}
	proc_names_free(process, n);
	return found;
}

/* ---- groups */

static void keep_thread(void *arg, int32_t pid, int32_t tid)
{
	int32_t *first = arg;
	if (!first[0]) {
		first[0] = pid;
		first[1] = tid;
	}
}

static char *find_below(const struct cgroup_tree *tree, const char *root, const char *path, const char *name,
                        unsigned depth)
{
	char *dir = mem_printf("%s%s%s", root, tree->dir, path), *found = NULL;
	if (*path && group_matches(root, path, name))
		found = mem_dup(path);
	DIR *d = found ? NULL : opendir(dir);
	for (const struct dirent *e; d && depth && !found && (e = readdir(d));) {
		if (e->d_type != DT_DIR || e->d_name[0] == '.')
			continue;
		char *below = mem_printf("%s/%s", path, e->d_name);
		found = find_below(tree, root, below, name, depth - 1);
		free(below);
	}
	if (d)
		closedir(d);
	free(dir);
	return found;
}

char *trigger_target_group(const char *root, const char *name)
{
	struct cgroup_tree tree;
	int32_t first[2] = { 0, 0 };
	cgroup_tree_find(&tree, root);
	if (strncmp(name, THREAD_PREFIX, strlen(THREAD_PREFIX)) != 0)
		return find_below(&tree, root, "", name, 16);
	trigger_target_threads(root, name, keep_thread, first);
	return first[0] ? cgroup_tree_path(&tree, root, first[0], first[1]) : NULL;
}

/* ---- logs */

static void reopen(struct trigger_log *l, bool at_end)
{
	struct stat st;
	trigger_log_close(l);
	l->fd = open(l->file, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (l->fd < 0 || fstat(l->fd, &st))
		return;
	l->inode = (uint64_t)st.st_ino;
	l->at = at_end && S_ISREG(st.st_mode) ? (uint64_t)st.st_size : 0;
}

void trigger_log_open(struct trigger_log *l)
{
	l->fd = -1;
	reopen(l, true);
}

/* Reads what is new in the open file. */
static bool read_lines(struct trigger_log *l)
{
	static char buf[LOG_READ];
	bool found = false;
	const ssize_t n = l->fd < 0 ? 0 : pread(l->fd, buf, sizeof buf, (off_t)l->at);
	l->at += n > 0 ? (uint64_t)n : 0;
	for (ssize_t i = 0; i < n; i++) {
		if (buf[i] == '\n' || l->line_len + 1 == sizeof l->line) {
			l->line[l->line_len] = '\0';
			found = found || strstr(l->line, l->text);
			l->line_len = 0;
		}
		if (buf[i] != '\n' && buf[i])
			l->line[l->line_len++] = buf[i];
	}
	return found;
}

bool trigger_log_check(struct trigger_log *l)
{
	struct stat st;
	bool found = read_lines(l);
	if (stat(l->file, &st) == 0 && (l->fd < 0 || (uint64_t)st.st_ino != l->inode || (uint64_t)st.st_size < l->at)) {
		reopen(l, false);
		found |= read_lines(l);
	}
	return found;
}

void trigger_log_close(struct trigger_log *l)
{
	if (l->fd >= 0)
		close(l->fd);
	l->fd = -1;
	l->line_len = 0;
}
