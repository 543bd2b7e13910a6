/* How fast the simulator writes: records per second, with and without the truth beside them. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/mem.h"
#include "sim/simulate.h"

static double now(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int measure(const char *dir, bool no_truth)
{
	struct options o = { .scenario = "overcommit", .number = 8, .out = dir, .seed = 1, .events = 2000000, .beacon_hz = 20,
	                     .hogs = 1, .burst = 3, .packet = 65536, .no_truth = no_truth };
	struct error err = ERROR_INIT;
	struct sim_result r;
	double start = now(), taken;

	if (simulate(&o, &r, &err) < 0) {
		fprintf(stderr, "bench_sim: %s\n", err.text);
		return -1;
	}
	taken = now() - start;
	printf("%-18s %9" PRIu64 " records %7.2f s %8.0f k records/s (target 300)\n", no_truth ? "traces" : "traces and truth",
	       r.records, taken, (double)r.records / taken / 1e3);
	return 0;
}

int main(void)
{
	const char *base = getenv("TMPDIR");
	char *dir = mem_printf("%s/bench_sim.XXXXXX", base && *base ? base : "/tmp"), *command;
	int failed;

	if (!mkdtemp(dir)) {
		perror(dir);
		return 1;
	}
	failed = measure(dir, true) < 0 || measure(dir, false) < 0;
	command = mem_printf("rm -rf '%s'", dir);
	failed |= system(command) != 0;
	free(command);
	free(dir);
	return failed;
}
