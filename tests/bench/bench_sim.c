/* Speed of the simulator: records per second, with and without the truth files. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/mem.h"
#include "sim/simulate.h"

static double now_seconds(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static int measure_speed(const char *dir, bool no_truth)
{
	struct options o = { .scenario = "overcommit", .number = 8, .out = dir, .seed = 1, .events = 2000000, .beacon_hz = 20,
	                     .hogs = 1, .burst = 3, .packet = 65536, .no_truth = no_truth };
	struct error err = ERROR_INIT;
	struct sim_result r;
	double start = now_seconds(), elapsed;

	if (simulate(&o, &r, &err) < 0) {
		fprintf(stderr, "bench_sim: %s\n", err.text);
		return -1;
	}
	elapsed = now_seconds() - start;
	printf("%-18s %9" PRIu64 " records %7.2f s %8.0f k records/s (target 300)\n", no_truth ? "traces" : "traces and truth",
	       r.records, elapsed, (double)r.records / elapsed / 1e3);
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
	failed = measure_speed(dir, true) < 0 || measure_speed(dir, false) < 0;
	command = mem_printf("rm -rf '%s'", dir);
	failed |= system(command) != 0;
	free(command);
	free(dir);
	return failed;
}
