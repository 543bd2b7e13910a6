#include "record_tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"
#include "remove_all.h"

#define PAGE 4096

static char *full_path(const struct record_tree *t, const char *path)
{
	return mem_printf("%s/%s", t->root, path);
}

static void make_dirs(const char *path)
{
	char *copy = mem_dup(path);
	for (char *slash = strchr(copy + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		syscall(SYS_mkdirat, AT_FDCWD, copy, 0755);
		*slash = '/';
	}
	free(copy);
}

static void write_file(const char *path, const void *data, size_t len)
{
	make_dirs(path);
	FILE *f = fopen(path, "w");
	if (!f || fwrite(data, 1, len, f) != len || fclose(f)) {
		perror(path);
		abort();
	}
}

void tree_begin(struct record_tree *t)
{
	snprintf(t->root, sizeof t->root, "/tmp/stealscope-record-XXXXXX");
	if (!mkdtemp(t->root))
		abort();
	tree_text(t, "run/here", "");
	tree_text(t, "proc/meminfo", "MemTotal: 4000000 kB\nMemAvailable: 2000000 kB\n");
}

void tree_end(struct record_tree *t)
{
	remove_all(t->root);
}

void tree_bytes(const struct record_tree *t, const char *path, const void *data, size_t len)
{
	char *full = full_path(t, path);
	write_file(full, data, len);
	free(full);
}

void tree_text(const struct record_tree *t, const char *path, const char *text)
{
	tree_bytes(t, path, text, strlen(text));
}

void tree_link(const struct record_tree *t, const char *path, const char *target)
{
	char *full = full_path(t, path);
	make_dirs(full);
	if (symlink(target, full))
		abort();
	free(full);
}

char *tree_read(const struct record_tree *t, const char *path)
{
	char *full = full_path(t, path), *text = NULL;
	FILE *f = fopen(full, "r");
	if (f) {
		text = mem_new(1 << 16, 1);
		text[fread(text, 1, (1 << 16) - 1, f)] = '\0';
		fclose(f);
	}
	free(full);
	return text;
}

size_t tree_count(const struct record_tree *t, const char *path)
{
	char *full = full_path(t, path);
	DIR *dir = opendir(full);
	size_t n = 0;
	for (struct dirent *e; dir && (e = readdir(dir));)
		n += e->d_name[0] != '.';
	if (dir)
		closedir(dir);
	free(full);
	return n;
}

/* ---- processes */

static void add_thread(const struct record_tree *t, int pid, int tid, const char *name)
{
	char path[128], text[256];
	snprintf(path, sizeof path, "proc/%d/task/%d/comm", pid, tid);
	snprintf(text, sizeof text, "%s\n", name);
	tree_text(t, path, text);
	snprintf(path, sizeof path, "proc/%d/task/%d/status", pid, tid);
	tree_text(t, path, "Name:\tx\nCpus_allowed_list:\t0-1\n");
	snprintf(path, sizeof path, "proc/%d/task/%d/stat", pid, tid);
	tree_text(t, path, "1 (a) b) S 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 -5 1 0 4711 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 1 2\n");
	snprintf(path, sizeof path, "proc/%d/task/%d/cgroup", pid, tid);
	tree_text(t, path, "0::/machine.slice/machine-qemu\\x2d3\\x2dweb.scope/libvirt\n");
}

void tree_vm(const struct record_tree *t, int pid, const char *cmdline, size_t len, unsigned vcpus)
{
	char path[128], text[128];
	snprintf(path, sizeof path, "proc/%d/cmdline", pid);
	tree_bytes(t, path, cmdline, len);
	snprintf(path, sizeof path, "proc/%d/comm", pid);
	tree_text(t, path, "qemu-system-x86\n");
	snprintf(path, sizeof path, "proc/%d/exe", pid);
	tree_link(t, path, "/usr/bin/qemu-system-x86_64");
	snprintf(path, sizeof path, "proc/%d/fd/1", pid);
	tree_link(t, path, "/dev/null");
	snprintf(path, sizeof path, "proc/%d/fd/14", pid);
	tree_link(t, path, "/dev/kvm");
	snprintf(path, sizeof path, "proc/%d/fd/15", pid);
	tree_link(t, path, "anon_inode:kvm-vm");
	tree_text(t, "sys/fs/cgroup/machine.slice/cpu.weight", "100\n");
	add_thread(t, pid, pid, "qemu-system-x86");
	for (unsigned i = 0; i < vcpus; i++) {
		snprintf(path, sizeof path, "proc/%d/fd/%u", pid, 20 + i);
		snprintf(text, sizeof text, "anon_inode:kvm-vcpu:%u", i);
		tree_link(t, path, text);
		snprintf(text, sizeof text, "CPU %u/KVM", i);
		add_thread(t, pid, pid + 10 + (int)i, text);
	}
}

void tree_debugfs(const struct record_tree *t, int pid, unsigned vcpus, int64_t offset)
{
	char path[128], text[64];
	for (unsigned i = 0; i < vcpus; i++) {
		snprintf(path, sizeof path, "sys/kernel/debug/kvm/%d-15/vcpu%u/pid", pid, i);
		snprintf(text, sizeof text, "%u\n", (unsigned)pid + 10 + i);
		tree_text(t, path, text);
		snprintf(path, sizeof path, "sys/kernel/debug/kvm/%d-15/vcpu%u/tsc-offset", pid, i);
		snprintf(text, sizeof text, "%lld\n", (long long)offset);
		tree_text(t, path, text);
	}
}

/* ---- tracefs */

static const char *const events[] = {
	"sched/sched_switch", "sched/sched_wakeup", "irq/irq_handler_entry", "kvm/kvm_entry", "kvm/kvm_exit",
};
#define EVENTS (sizeof events / sizeof *events)

static const char header_page[] =
	"\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n"
	"\tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n";

static void write_text(const char *dir, const char *name, const char *text)
{
	char *path = mem_printf("%s/%s", dir, name);
	write_file(path, text, strlen(text));
	free(path);
}

/* Creates the files that the kernel creates in a new instance. */
static void fill_instance(const char *dir, unsigned pages)
{
	static const char *const files[] = {
		"trace_clock", "tracing_on", "buffer_size_kb", "trace", "options/overwrite", "options/record-tgid",
	};
	for (size_t i = 0; i < sizeof files / sizeof *files; i++)
		write_text(dir, files[i], "");
	for (size_t i = 0; i < EVENTS; i++) {
		char *name = mem_printf("events/%s/enable", events[i]);
		write_text(dir, name, "0\n");
		free(name);
	}
	for (unsigned cpu = 0; cpu < 2; cpu++) {
		char stats[256], *path = mem_printf("%s/per_cpu/cpu%u/trace_pipe_raw", dir, cpu);
		char *data = mem_new(pages, PAGE);
		memset(data, 'A' + (int)cpu, pages * PAGE);
		write_file(path, data, pages * PAGE);
		free(data);
		free(path);
		snprintf(stats, sizeof stats, "entries: %u\noverrun: 0\ncommit overrun: 0\nbytes: %u\noldest event ts: 1\n"
		         "now ts: 123456789\ndropped events: 0\nread events: 0\n", pages, pages * (PAGE - 16));
		path = mem_printf("%s/per_cpu/cpu%u/stats", dir, cpu);
		write_file(path, stats, strlen(stats));
		free(path);
	}
}

void tree_tracefs(const struct record_tree *t, const char *prefix, unsigned pages)
{
	char *dir = mem_printf("%s/%s/sys/kernel/tracing", t->root, prefix), text[32];
	write_text(dir, "trace_clock", "[local] global mono x86-tsc\n");
	write_text(dir, "saved_cmdlines", "4190077 short-lived\n1 systemd\n");
	write_text(dir, "saved_tgids", "4190077 4190076\n");
	write_text(dir, "events/header_page", header_page);
	write_text(dir, "events/header_event", "# compressed entry header\n");
	write_text(dir, "instances/.here", "");
	snprintf(text, sizeof text, "%u", pages);
	write_text(dir, "instances/.pages", text);
	for (size_t i = 0; i < EVENTS; i++) {
		char *name = mem_printf("events/%s/format", events[i]);
		char *format = mem_printf("name: %s\nID: %zu\nformat:\n", strchr(events[i], '/') + 1, i + 300);
		write_text(dir, name, format);
		free(name);
		free(format);
	}
	free(dir);
}

void tree_guest(const struct record_tree *t, const char *prefix, unsigned pages)
{
	/* Shell functions that replace programs: mkdir fills a new instance, dd clears the statistics of the buffer that it
	 * has read, rmdir removes an instance with its files, mount fails, cat shows a later clock when tracing is off. */
	static const char functions[] =
		"mkdir() { command mkdir \"$1\" && cp -r \"${1%/*}/.made/.\" \"$1\"; }\n"
		"dd() { command dd \"$@\"; at=${1#if=}\n"
		"printf 'entries: 0\\noverrun: 0\\nbytes: 0\\nnow ts: 9\\n' >\"${at%/*}/stats\"; }\n"
		"cat() { if [ -f tracing_on ] && read -r on <tracing_on && [ \"$on\" = 0 ]; then\n"
		"sed 's/ts: 123456789/ts: 323456789/' \"$@\"; else command cat \"$@\"; fi; }\n"
		"rmdir() { [ -d \"$1\" ] && rm -r \"$1\"; }\nmount() { false; }\n";
	/* rmdir for the watchdog, which runs in another shell without these functions. */
	static const char rmdir_script[] = "#!/bin/sh\n[ -d \"$1\" ] && rm -r \"$1\"\n";
	char *path = mem_printf("%s/proc", prefix);
	tree_tracefs(t, prefix, pages);
	tree_link(t, path, "/proc");
	free(path);
	path = mem_printf("%s/%s/sys/kernel/tracing/instances/.made", t->root, prefix);
	fill_instance(path, pages);
	free(path);
	char *all = mem_printf("root=%s/%s\n%s", t->root, prefix, functions);
	path = mem_printf("%s/%s", t->root, prefix);
	write_text(path, "machine.sh", all);
	free(all);
	free(path);
	path = mem_printf("%s/%s/bin", t->root, prefix);
	char *name = mem_printf("%s/rmdir", path);
	write_text(path, "rmdir", rmdir_script);
	chmod(name, 0755);
	free(name);
	free(path);
}

/* ---- replacements of libc functions, which the recorder calls */

int mkdir(const char *path, mode_t mode)
{
	const int rc = (int)syscall(SYS_mkdirat, AT_FDCWD, path, mode);
	const char *at = strstr(path, "/instances/");
	if (rc == 0 && at && strncmp(path, "/tmp/stealscope-record-", 23) == 0) {
		char *pages = mem_printf("%.*s/instances/.pages", (int)(at - path), path);
		FILE *f = fopen(pages, "r");
		unsigned n = 0;
		if (!f || fscanf(f, "%u", &n) != 1)
			abort();
		fclose(f);
		free(pages);
		fill_instance(path, n);
	}
	return rc;
}

int rmdir(const char *path)
{
	if (strstr(path, "/instances/") && strncmp(path, "/tmp/stealscope-record-", 23) == 0) {
		remove_all(path);
		return access(path, F_OK) ? 0 : -1;
	}
	return (int)syscall(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR);
}

bool tree_is_tracing(const struct record_tree *t, const char *prefix)
{
	char pattern[128];
	glob_t g;
	bool on = false;
	snprintf(pattern, sizeof pattern, "%s/%s/sys/kernel/tracing/instances/*/tracing_on", t->root, prefix);
	if (glob(pattern, 0, NULL, &g) == 0) {
		char *text = tree_read(t, g.gl_pathv[0] + strlen(t->root) + 1);
		on = text && *text == '1';
		free(text);
	}
	globfree(&g);
	return on;
}

void tree_host(struct record_tree *t, unsigned pages)
{
	tree_begin(t);
	tree_tracefs(t, ".", pages);
	tree_text(t, "sys/devices/system/clocksource/clocksource0/available_clocksource", "tsc hpet\n");
}
