#include "live/victims.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdarg.h>
#include <unistd.h>

#include "base/base.h"
#include "base/vcpu_name.h"
#include "record/record.h"

#if defined __x86_64__
#include <cpuid.h>
#endif

#define MAX_THREADS 4096
#define KERNEL_THREAD 0x00200000u  /* PF_KTHREAD */

bool live_machine_is_guest(void)
{
#if defined __x86_64__
	unsigned a, b, c, d;
	return __get_cpuid(1, &a, &b, &c, &d) && (c >> 31 & 1);
#else
	return access("/proc/device-tree/hypervisor", F_OK) == 0 || access("/sys/hypervisor/type", F_OK) == 0;
#endif
}

bool live_read(char *buf, size_t size, const char *root, const char *fmt, ...)
{
	char name[4096], *path;
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(name, sizeof name, fmt, ap);
	va_end(ap);
	path = mem_printf("%s%s", root, name);
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	const ssize_t n = fd < 0 ? -1 : read(fd, buf, size - 1);
	if (fd >= 0)
		close(fd);
	free(path);
	buf[n > 0 ? n : 0] = '\0';
	return n > 0;
}

bool live_read_stat(const char *root, int32_t pid, int32_t tid, struct live_stat *s)
{
	char text[1024];
	*s = (struct live_stat){ .cpu = -1 };
	if (!live_read(text, sizeof text, root, "/proc/%d/task/%d/stat", pid, tid))
		return false;
	char *open = strchr(text, '('), *close = strrchr(text, ')');
	if (!open || !close || close < open || !close[1])
		return false;
	*close = '\0';
	text_escape(s->comm, sizeof s->comm, open + 1);
	char *at = close + 2;
	s->state = *at;
	for (unsigned field = 3; *at; field++) {
		const unsigned long long n = strtoull(at, NULL, 10);
		switch (field) {
		case 9: s->flags = n; break;
		case 14: s->user = n; break;
		case 15: s->system = n; break;
		case 22: s->start = n; break;
		case 39: s->cpu = (int)n; break;
		case 43: s->guest = n; break;
		}
		at += strcspn(at, " ");
		at += strspn(at, " ");
	}
	return true;
}

bool live_read_schedstat(const char *root, int32_t pid, int32_t tid, uint64_t *ran, uint64_t *delayed)
{
	char text[128];
	unsigned long long a, b;
	if (!live_read(text, sizeof text, root, "/proc/%d/task/%d/schedstat", pid, tid) ||
	    sscanf(text, "%llu %llu", &a, &b) != 2)
		return false;
	*ran = a;
	*delayed = b;
	return true;
}

static void add_thread(struct live_threads *t, const char *root, const char *machine, int number, int32_t pid, int32_t tid)
{
	struct live_stat s;
	if (tid <= 0 || !live_read_stat(root, pid, tid, &s))
		return;
	for (size_t i = 0; i < t->len; i++) {
		struct live_thread *v = &t->thread[i];
		if (v->tid == tid && v->start == s.start) {
			v->seen = true;
			text_cut(v->machine, sizeof v->machine, machine);  /* a program may have been executed */
			return;
		}
	}
	if (t->len >= MAX_THREADS)
		return;
	struct live_thread *v = ARRAY_PUSH(t->thread, t->len, t->cap);
	*v = (struct live_thread){ .number = number, .tid = tid, .pid = pid, .start = s.start, .slot = -1, .seen = true,
		                       .is_new = true };
	text_cut(v->machine, sizeof v->machine, machine);
}

void live_each_number(const char *root, const char *dir, void (*visit)(void *arg, int32_t n), void *arg)
{
	char *path = mem_printf("%s%s", root, dir);
	DIR *d = opendir(path);
	free(path);
	for (struct dirent *e; d && (e = readdir(d));)
		if (e->d_name[0] > '0' && e->d_name[0] <= '9')
			visit(arg, (int32_t)atoi(e->d_name));
	if (d)
		closedir(d);
}

/* Search through the process threads. */
struct thread_search {
	struct live_threads *threads;
	const struct live_request *request;
	const char *root;
	int32_t pid;
	char machine[LIVE_NAME];
	bool only_vcpus, by_comm;
	unsigned found;
};

static bool comm_is_requested(const struct live_request *r, const char *comm)
{
	for (size_t i = 0; i < r->comms; i++)
		if (strcmp(r->comm[i], comm) == 0)
			return true;
	return false;
}

/* A process is known by its name. One with vCPUs is a VM without a name of its own: its PID tells it from others. */
static void name_machine(char *name, size_t size, const char *comm, int number, int32_t pid)
{
	if (number >= 0)
		snprintf(name, size, "%s-%d", comm, pid);
	else
		snprintf(name, size, "%s", comm);
}

static void visit_thread(void *arg, int32_t tid)
{
	struct thread_search *s = arg;
	struct live_stat stat;
	if (!live_read_stat(s->root, s->pid, tid, &stat) || (stat.flags & KERNEL_THREAD && !s->by_comm))
		return;
	const int number = vcpu_name_number(stat.comm);
	if ((s->only_vcpus && number < 0) || (s->by_comm && !comm_is_requested(s->request, stat.comm)))
		return;
	s->found++;
	char name[LIVE_NAME + 16];
	name_machine(name, sizeof name, s->machine, number, s->pid);
	add_thread(s->threads, s->root, name, number, s->pid, tid);
}

static void visit_process(void *arg, int32_t pid)
{
	struct thread_search *s = arg;
	struct live_stat stat;
	char dir[64];
	s->pid = pid;
	if (!live_read_stat(s->root, pid, pid, &stat))
		return;
	snprintf(s->machine, sizeof s->machine, "%s", stat.comm);
	snprintf(dir, sizeof dir, "/proc/%d/task", pid);
	live_each_number(s->root, dir, visit_thread, s);
}

/* Adds a requested process: its vCPU threads, or all threads if it has none; or one thread if the number is a TID. */
static void add_requested(struct live_threads *t, const struct live_request *r, const char *text)
{
	char status[4096];
	const int32_t pid = (int32_t)atoi(text);
	struct thread_search s = { .threads = t, .request = r, .root = r->root, .only_vcpus = true };
	const char *tgid = live_read(status, sizeof status, r->root, "/proc/%d/status", pid) ? strstr(status, "\nTgid:") : NULL;
	if (tgid && atoi(tgid + 6) != pid) {
		struct live_stat stat;
		char machine[LIVE_NAME];
		if (live_read_stat(r->root, pid, pid, &stat)) {
			name_machine(machine, sizeof machine, stat.comm, vcpu_name_number(stat.comm), pid);
			add_thread(t, r->root, machine, vcpu_name_number(stat.comm), atoi(tgid + 6), pid);
		}
		return;
	}
	visit_process(&s, pid);
	s.only_vcpus = false;
	if (!s.found)
		visit_process(&s, pid);
}

void live_threads_find(struct live_threads *t, const struct live_request *r, bool with_all)
{
	size_t vms = 0;
	for (size_t i = 0; i < t->len; i++)
		t->thread[i].seen = false;
	struct vm *vm = r->command ? NULL : vms_find(r->root, &vms, &t->hidden);  /* a look into each process */
	for (size_t i = 0; i < vms; i++)
		for (size_t k = 0; k < vm[i].vcpus; k++)
			add_thread(t, r->root, vm[i].name, (int)vm[i].vcpu[k].number, vm[i].pid, vm[i].vcpu[k].tid);
	vms_free(vm, vms);
	for (size_t i = 0; i < r->pids; i++)
		add_requested(t, r, r->pid[i]);
	struct thread_search s = { .threads = t, .request = r, .root = r->root, .by_comm = true };
	if (r->comms)
		live_each_number(r->root, "/proc", visit_process, &s);
	t->is_guest = vms == 0 && r->pids == 0 && r->comms == 0;
	s.by_comm = false;
	if (t->is_guest && with_all)
		live_each_number(r->root, "/proc", visit_process, &s);
}

struct live_victim live_victim_read(const struct live_victim *from, int64_t now)
{
	struct live_victim v;
	uint64_t mark;
	int tries = 0;
	do {
		mark = __atomic_load_n(&from->mark, __ATOMIC_ACQUIRE);
		memcpy(&v, from, sizeof v);
		__atomic_thread_fence(__ATOMIC_ACQUIRE);
	} while (__atomic_load_n(&from->mark, __ATOMIC_RELAXED) != mark && ++tries < 8);
	const uint64_t since = mark >> LIVE_MARK_BITS, state = mark & (LIVE_STATES - 1);
	if (state != LIVE_WAITING && (uint64_t)now > since)
		v.ns[state] += (uint64_t)now - since;
	return v;
}
