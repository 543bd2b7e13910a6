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
	snprintf(instance, sizeof instance, TRACEFS "/instances/stealscope-test-%d", (int)getpid());
	if (mkdir(instance, 0700)) {
		print_message("skipped: %s: %s\n", instance, strerror(errno));
		exit(77);
	}
	const int failed = write_file("trace_clock", "mono") || write_file("events/bpf_trace/bpf_trace_printk/enable", "1") ||
	                   write_file("events/sched/sched_switch/enable", "1");
	switch_often();
	write_file("tracing_on", "0");
	char path[160];
	snprintf(path, sizeof path, "%s/trace", instance);
	FILE *f = fopen(path, "r");
	const int switches = f ? check_trace(f) : -1;
	if (f)
		fclose(f);
	rmdir(instance);
	counter_program_close(c);
	assert_int_equal(failed, 0);
	assert_true(switches > 50);
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
		cmocka_unit_test(test_prints_before_switches), cmocka_unit_test(test_hardware),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
