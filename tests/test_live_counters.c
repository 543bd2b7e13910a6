/* test_live_counters hold: keeps the program attached until standard input ends (test_record_counters.py).
 *
 * The BPF program of record --counters on the real kernel: it prints both counters before each sched_switch. Where a machine
 * has no hardware counters, the CPU clock of perf, which counts ns, takes their place: its differences must be the times
 * between the switches. Skipped without BPF, root or tracefs. */
#include "test.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "live/live.h"

#define TRACEFS "/sys/kernel/tracing"
#define TOLERANCE_NS 300000
#define CPUS 1024

static char instance[128];

static int write_file(const char *name, const char *text)
{
	char path[256];
	snprintf(path, sizeof path, "%s/%s", instance, name);
	const int fd = open(path, O_WRONLY | O_CLOEXEC);
	const bool written = fd >= 0 && write(fd, text, strlen(text)) >= 0;
	if (fd >= 0)
		close(fd);
	return written ? 0 : -1;
}

/* Switches between this process and a child on whatever CPUs there are. */
static void switch_often(void)
{
	for (int i = 0; i < 100; i++)
		usleep(1000);
}

/* Returns the number of switches with counters right before them; checks the counts between two of them. */
static int check_trace(FILE *f)
{
	static struct { unsigned long long first, second; int64_t ns; int printed; } cpu[CPUS];
	char line[1024];
	int switches = 0, differences = 0, wrong = 0;
	while (fgets(line, sizeof line, f)) {
		unsigned number;
		long long s, us;
		unsigned long long a, b;
		const char *bracket = strstr(line, " ["), *text = strstr(line, "stealscope counters ");
		if (!bracket || sscanf(bracket, " [%u] %*s %lld.%lld:", &number, &s, &us) != 3 || number >= CPUS)
			continue;
		const int64_t ns = (s * 1000000 + us) * 1000;
		if (text && sscanf(text, "stealscope counters %llu %llu", &a, &b) == 2) {
			assert_true(a > 0 && b > 0);
			if (cpu[number].ns && ns - cpu[number].ns > 1000000) {
				const int64_t since = (int64_t)(a - cpu[number].first) - (ns - cpu[number].ns);
				wrong += since > TOLERANCE_NS || since < -TOLERANCE_NS;
				differences++;
			}
			cpu[number].first = a;
			cpu[number].second = b;
			cpu[number].ns = ns;
			cpu[number].printed = 1;
		} else if (strstr(line, "sched_switch:")) {
			switches += cpu[number].printed;
			cpu[number].printed = 0;
		}
	}
	print_message("%d switches with counters, %d differences, %d beyond the tolerance\n", switches, differences, wrong);
	/* The host of this machine may take its CPU between the read and the time stamp. */
	return differences > 0 && wrong <= differences / 10 ? switches : 0;
}

/* Traces what BPF programs print, and switches if asked, in an instance of this test. */
static void begin_trace(bool with_switches)
{
	snprintf(instance, sizeof instance, TRACEFS "/instances/stealscope-test-%d", (int)getpid());
	if (mkdir(instance, 0700)) {
		print_message("skipped: %s: %s\n", instance, strerror(errno));
		exit(77);
	}
	assert_int_equal(write_file("trace_clock", "mono") || write_file("events/bpf_trace/bpf_trace_printk/enable", "1") ||
	                 (with_switches && write_file("events/sched/sched_switch/enable", "1")), 0);
}

/* Removes the instance. Returns its text. */
static FILE *end_trace(void)
{
	char path[160], line[1024];
	write_file("tracing_on", "0");
	snprintf(path, sizeof path, "%s/trace", instance);
	FILE *from = fopen(path, "r"), *to = tmpfile();
	assert_true(from && to);
	while (fgets(line, sizeof line, from))
		fputs(line, to);
	fclose(from);
	rmdir(instance);
	rewind(to);
	return to;
}

static const struct live_counter cpu_clock[2] = { { PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK },
                                                 { PERF_TYPE_SOFTWARE, PERF_COUNT_SW_CPU_CLOCK } };

static int hold(void)
{
	struct error err = ERROR_INIT;
	struct counter_program *c = counter_program_open(cpu_clock, &err);
	puts(c ? "ready" : err.text);
	fflush(stdout);
	while (c && getchar() != EOF)
		continue;
	counter_program_close(c);
	return c ? 0 : 77;
}

static void test_prints_before_switches(void **state)
{
	struct error err = ERROR_INIT;
	(void)state;
	struct counter_program *c = counter_program_open(cpu_clock, &err);
	if (!c) {
		print_message("skipped: %s\n", err.text);
		exit(77);
	}
	begin_trace(true);
	switch_often();
	FILE *f = end_trace();
	const int switches = check_trace(f);
	fclose(f);
	counter_program_close(c);
	assert_true(switches > 50);
}

/* Writes a file of the control group of this test, in the hierarchy of version 1 or 2. */
static int write_group(const char *base, const char *name, const char *text)
{
	snprintf(instance, sizeof instance, "%s/stealscope-test-%d", base, (int)getpid());
	return write_file(name, text);
}

/* Makes a control group with 1 ms of CPU time in 100 ms. Returns its hierarchy; NULL: this machine has no quotas. */
static const char *make_quota(void)
{
	static const struct { const char *base, *name, *text; } version[] = {
		{ "/sys/fs/cgroup/cpu", "cpu.cfs_quota_us", "1000" }, { "/sys/fs/cgroup", "cpu.max", "1000 100000" },
	};
	for (size_t i = 0; i < COUNT(version); i++) {
		char path[128];
		snprintf(path, sizeof path, "%s/stealscope-test-%d", version[i].base, (int)getpid());
		if (mkdir(path, 0755))
			continue;
		if (write_group(version[i].base, version[i].name, version[i].text) == 0)
			return version[i].base;
		rmdir(path);
	}
	return NULL;
}

/* Returns how many times the group was throttled. */
static int count_throttled(const char *base)
{
	char path[160], line[128];
	int n = 0;
	snprintf(path, sizeof path, "%s/stealscope-test-%d/cpu.stat", base, (int)getpid());
	FILE *f = fopen(path, "r");
	while (f && fgets(line, sizeof line, f))
		sscanf(line, "nr_throttled %d", &n);
	if (f)
		fclose(f);
	return n;
}

/* A thread with a quota is printed when it is throttled, and when it is no more, in turn; one without a quota never is. */
static void test_throttled(void **state)
{
	struct error err = ERROR_INIT;
	char line[1024], pid[16], path[160];
	int printed[2] = { 0 }, next = 1;
	unsigned tid;
	(void)state;
	struct throttle_program *p = throttle_program_open(&err);
	const char *base = p ? make_quota() : NULL;
	if (!base) {
		print_message("not run: %s\n", p ? "this machine has no CPU quotas" : err.text);
		throttle_program_close(p);
		return;
	}
	snprintf(path, sizeof path, "%s/stealscope-test-%d", base, (int)getpid());
	begin_trace(false);
	const pid_t child = fork();
	if (child == 0)
		for (;;)
			continue;
	snprintf(pid, sizeof pid, "%d", (int)child);
	const int failed = write_group(base, "cgroup.procs", pid);
	for (int i = 0; i < 600 && count_throttled(base) < 5; i++)
		usleep(100000);  /* on a busy machine it gets the CPU seldom */
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
	snprintf(instance, sizeof instance, TRACEFS "/instances/stealscope-test-%d", (int)getpid());
	FILE *f = end_trace();
	while (fgets(line, sizeof line, f)) {
		int on;
		const char *text = strstr(line, "stealscope throttled ");
		if (!text || sscanf(text, "stealscope throttled %u %d", &tid, &on) != 2)
			continue;
		if (tid == (unsigned)getpid())
			fail_msg("a thread without a quota is printed: %s", line);
		if (tid != (unsigned)child)
			continue;
		assert_int_equal(on, next);
		next = !on;
		printed[on]++;
	}
	fclose(f);
	throttle_program_close(p);
	rmdir(path);
	print_message("throttled %d times, %d ends\n", printed[1], printed[0]);
	assert_int_equal(failed, 0);
	assert_true(printed[1] > 0 && printed[1] - printed[0] <= 1);
}

/* Hardware counters: they work, or the reason is one line. */
static void test_hardware(void **state)
{
	struct error err = ERROR_INIT;
	(void)state;
	struct counter_program *c = counter_program_open(live_hardware_counters, &err);
	if (!c) {
		assert_true(*err.text && !strchr(err.text, '\n'));
		print_message("%s\n", err.text);
	}
	counter_program_close(c);
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "hold") == 0)
		return hold();
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_prints_before_switches), cmocka_unit_test(test_throttled), cmocka_unit_test(test_hardware),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
