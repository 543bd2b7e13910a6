#include "record/recording_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "record/proc.h"

#define NAME_LEN_MAX 64  /* bytes of a thread's name */
#define THREADS_MAX (4 << 20)  /* bytes of a list of threads; further threads are omitted */

/* ---- directories */

static bool is_empty(int fd)
{
	DIR *dir = fdopendir(dup(fd));
	bool empty = dir != NULL;
	for (struct dirent *e; dir && empty && (e = readdir(dir));)
		empty = strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0;
	if (dir)
		closedir(dir);
	return empty;
}

static int open_dir(int parent, const char *name)
{
	return openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
}

int dir_make(const char *path, bool *created, struct error *err)
{
	struct stat st;
	*created = mkdir(path, 0700) == 0;
	if (!*created && errno != EEXIST)
		return error_system(err, "choose another directory with -o", "cannot create or open the directory %s", path);
	const int fd = open_dir(AT_FDCWD, path);
	if (fd < 0)
		return error_system(err, "choose another directory with -o", "cannot create or open the directory %s", path);
	const bool owned = fstat(fd, &st) == 0 && st.st_uid == geteuid() && is_empty(fd);
	if (owned && !(st.st_mode & (S_IWGRP | S_IWOTH)))
		return fd;
	close(fd);
	if (owned)
		return error_set(err, STATUS_USAGE, "chmod go-w it, or choose another directory with -o",
		                 "%s: other users can write to this directory and could replace parts of the recording", path);
	return error_set(err, STATUS_USAGE, "choose another directory with -o",
	                 "%s: exists, and is not an empty directory that you own", path);
}

int dir_make_machine(int parent, const char *name, struct error *err)
{
	static const char *const below[] = { "stats", "events", "pages" };
	const int fd = mkdirat(parent, name, 0700) == 0 ? open_dir(parent, name) : -1;
	bool created = fd >= 0;
	for (size_t i = 0; i < sizeof below / sizeof *below && created; i++)
		created = mkdirat(fd, below[i], 0700) == 0;
	if (created)
		return fd;
	error_system(err, NULL, "cannot create the directory %s", name);
	if (fd >= 0)
		close(fd);
	return -1;
}

void dir_remove(int parent, const char *name)
{
	const int fd = open_dir(parent, name);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	for (struct dirent *e; dir && (e = readdir(dir));)
		if (strcmp(e->d_name, ".") != 0 && strcmp(e->d_name, "..") != 0 && unlinkat(fd, e->d_name, 0) != 0)
			dir_remove(fd, e->d_name);
	if (dir)
		closedir(dir);
	unlinkat(parent, name, AT_REMOVEDIR);
}

uint64_t dir_disk_size(int dir)
{
	struct statvfs s;
	return fstatvfs(dir, &s) == 0 ? (uint64_t)s.f_blocks * s.f_frsize : UINT64_MAX;
}

uint64_t dir_free_bytes(int dir)
{
	struct statvfs s;
	return fstatvfs(dir, &s) == 0 ? (uint64_t)s.f_bavail * s.f_frsize : UINT64_MAX;
}

/* ---- files */

int dir_put(int dir, const char *name, const void *data, size_t len, struct error *err)
{
	if (dir < 0)
		return 0;
	const int fd = openat(dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	bool written = fd >= 0;
	for (size_t at = 0; written && at < len;) {
		const ssize_t n = write(fd, (const char *)data + at, len - at);
		written = n > 0;
		at += written ? (size_t)n : 0;
	}
	if (!written)
		error_system(err, NULL, "cannot write %s", name);
	if (fd >= 0)
		close(fd);
	return written ? 0 : -1;
}

int dir_put_format(int dir, const char *event, const char *text, size_t len, struct error *err)
{
	const char *slash = strchr(event, '/');
	if (dir < 0)
		return 0;
	char *system = mem_printf("events/%.*s", (int)(slash - event), event), *path = mem_printf("events/%s", event);
	char *file = mem_printf("%s/format", path);
	mkdirat(dir, system, 0700);
	mkdirat(dir, path, 0700);
	const int rc = dir_put(dir, file, text, len, err);
	free(system);
	free(path);
	free(file);
	return rc;
}

/* Finds the offset and size of a field, "field: local_t commit;\toffset:8;\tsize:8;\tsigned:1;". */
static bool find_field(const char *text, const char *name, unsigned *offset, unsigned *size)
{
	const char *at = strstr(text, name);
	return at && sscanf(at + strlen(name), " offset:%6u; size:%6u;", offset, size) == 2;
}

int dir_put_header_page(int dir, const char *text, struct error *err)
{
	unsigned commit, commit_size, data, data_size;
	if (!find_field(text, " commit;", &commit, &commit_size) || !find_field(text, " data;", &data, &data_size) ||
	    (commit_size != 4 && commit_size != 8) || commit < 8 || data < commit + commit_size || data + data_size < 1024 ||
	    data + data_size > 1 << 20 || data >= (data + data_size) / 2)
		return error_set(err, STATUS_INPUT, NULL, "protocol error: the format of the guest's trace pages is malformed");
	return dir_put(dir, "header_page", text, strlen(text), err);
}

/* ---- threads */

struct thread_line { uint64_t tid, process; const char *name; size_t len; };

/* Parses the next line "TID NAME" or, with has_process, "TID PROCESS NAME", and advances *text. Skips malformed lines
 * and, with needs_name, lines without a name; truncates long names. Returns false at the text's end. */
static bool next_line(const char **text, bool has_process, bool needs_name, struct thread_line *l)
{
	while (*text && **text) {
		const char *at = *text, *end = at + strcspn(at, "\n");
		char *rest;
		*text = *end ? end + 1 : end;
		l->tid = strtoull(at, &rest, 10);
		bool valid = rest > at && rest <= end && *at >= '0' && *at <= '9' && l->tid <= INT32_MAX;
		for (at = rest; valid && at < end && *at == ' ';)
			at++;
		if (valid && has_process) {
			l->process = strtoull(at, &rest, 10);
			valid = rest > at && rest <= end && *at >= '0' && *at <= '9' && l->process <= INT32_MAX;
			at = valid && rest < end ? rest + 1 : rest;
		}
		l->name = at;
		l->len = valid && at < end ? (size_t)(end - at) : 0;
		l->len = l->len > NAME_LEN_MAX ? NAME_LEN_MAX : l->len;
		if (valid && (!needs_name || l->len > 0))
			return true;
	}
	return false;
}

struct tid_lines { char *bytes; size_t len, cap; };

static void add_tid_line(struct tid_lines *t, uint64_t tid, const char *rest, size_t len)
{
	if (t->len + len + 32 > THREADS_MAX)
		return;
	if (t->len + len + 32 > t->cap) {
		t->cap = 2 * (t->len + len + 32);
		t->bytes = mem_resize(t->bytes, t->cap, 1);
	}
	t->len += (size_t)snprintf(t->bytes + t->len, 24, "%llu ", (unsigned long long)tid);
	memcpy(t->bytes + t->len, rest, len);
	t->len += len;
	t->bytes[t->len++] = '\n';
}

int dir_put_threads(int dir, const char *threads, const char *cmdlines, const char *tgids, struct error *err)
{
	struct tid_lines names = { 0 }, processes = { 0 };
	struct map named = MAP_INIT, written = MAP_INIT;
	struct thread_line l;
	bool new;
	while (next_line(&threads, true, false, &l)) {
		char process[24];
		const int n = snprintf(process, sizeof process, "%llu", (unsigned long long)l.process);
		map_put(&written, l.tid, &new);
		if (new)
			add_tid_line(&processes, l.tid, process, (size_t)n);
		map_put(&named, l.tid, &new);
		if (new && l.len > 0)
			add_tid_line(&names, l.tid, l.name, l.len);
	}
	while (next_line(&cmdlines, false, true, &l)) {
		map_put(&named, l.tid, &new);
		if (new && *l.name != '<')
			add_tid_line(&names, l.tid, l.name, l.len);
	}
	while (next_line(&tgids, true, false, &l)) {
		char process[24];
		const int n = snprintf(process, sizeof process, "%llu", (unsigned long long)l.process);
		map_put(&written, l.tid, &new);
		if (new)
			add_tid_line(&processes, l.tid, process, (size_t)n);
	}
	int rc = dir_put(dir, "saved_cmdlines", names.bytes ? names.bytes : "", names.len, err);
	if (rc == 0)
		rc = dir_put(dir, "saved_tgids", processes.bytes ? processes.bytes : "", processes.len, err);
	free(names.bytes);
	free(processes.bytes);
	map_release(&named);
	map_release(&written);
	return rc;
}

char *dir_threads(const char *root)
{
	struct tid_lines all = { 0 };
	size_t processes, tasks;
	char **process = proc_names(root, "", &processes, "/proc");
	for (size_t i = 0; i < processes; i++) {
		uint64_t pid, tid;
		if (!proc_parse_number(process[i], INT32_MAX, &pid))
			continue;
		char **task = proc_names(root, "", &tasks, "/proc/%s/task", process[i]);
		for (size_t k = 0; k < tasks; k++) {
			char *comm = proc_line(root, "/proc/%s/task/%s/comm", process[i], task[k]);
			char *rest = comm ? mem_printf("%s %s", process[i], comm) : NULL;
			if (rest && proc_parse_number(task[k], INT32_MAX, &tid))
				add_tid_line(&all, tid, rest, strlen(rest));
			free(comm);
			free(rest);
		}
		proc_names_free(task, tasks);
	}
	proc_names_free(process, processes);
	if (!all.bytes)
		return mem_dup("");
	all.bytes[all.len] = '\0';
	return all.bytes;
}

/* Returns the inode number of a namespace of a process, "pid:[4026531836]"; 0: unknown. */
static unsigned long long namespace_inode(const char *root, const char *process, const char *kind)
{
	unsigned long long inode = 0;
	char *link = proc_link(root, "/proc/%s/ns/%s", process, kind), *at = link ? strchr(link, '[') : NULL;
	if (at)
		inode = strtoull(at + 1, NULL, 10);
	free(link);
	return inode;
}

/* Inode numbers of the host's namespaces, which the kernel never changes. */
#define ROOT_PID_NS 0xeffffffcULL
#define ROOT_CGROUP_NS 0xeffffffbULL

char *dir_namespaces(const char *root)
{
	struct tid_lines all = { 0 };
	size_t processes, tasks;
	char **process = proc_names(root, "", &processes, "/proc");
	/* In a pid namespace, TIDs of /proc are not those of the trace. */
	const unsigned long long own = namespace_inode(root, "self", "pid");
	for (size_t i = 0; i < processes && (!own || own == ROOT_PID_NS); i++) {
		uint64_t number, tid;
		const bool is_process = proc_parse_number(process[i], INT32_MAX, &number);
		const unsigned long long pid = is_process ? namespace_inode(root, process[i], "pid") : 0;
		const unsigned long long cgroup = pid ? namespace_inode(root, process[i], "cgroup") : 0;
		if (!pid || !cgroup || (pid == ROOT_PID_NS && cgroup == ROOT_CGROUP_NS))
			continue;
		char **task = proc_names(root, "", &tasks, "/proc/%s/task", process[i]);
		char *rest = mem_printf("%s %llu %llu", process[i], pid, cgroup);
		for (size_t k = 0; k < tasks; k++)
			if (proc_parse_number(task[k], INT32_MAX, &tid))
				add_tid_line(&all, tid, rest, strlen(rest));
		free(rest);
		proc_names_free(task, tasks);
	}
	proc_names_free(process, processes);
	if (!all.bytes)
		return mem_dup("");
	all.bytes[all.len] = '\0';
	return all.bytes;
}
