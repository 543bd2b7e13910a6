/* Cost of request marks: median of one call with a marker file in memory, with one that discards, and with none; and the
 * slowdown of a loop of requests of about 50 us with four marks each. */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "beacon/stealscope-mark.h"

#define SAMPLES 2001
#define BATCH 256
#define REQUESTS 2000
#define ROUNDS 9

/* CPU time of this thread, ns: other programs on the machine must not count as cost of the marks. */
static int64_t cpu_time_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static int by_value(const void *pa, const void *pb)
{
	int64_t a = *(const int64_t *)pa, b = *(const int64_t *)pb;
	return (a > b) - (a < b);
}

static int64_t median_of(int64_t *v, size_t n)
{
	qsort(v, n, sizeof *v, by_value);
	return v[n / 2];
}

/* Returns the median cost of one mark, ns. Measures in batches, so that the cost of reading the clock does not matter. */
static double measure_mark(void)
{
	static int64_t v[SAMPLES];
	srbn_t r = srbn_start();
	for (int i = 0; i < SAMPLES; i++) {
		int64_t t = cpu_time_ns();
		for (int k = 0; k < BATCH; k += 2) {
			srbn_yield(r);
			srbn_resume(r);
		}
		v[i] = cpu_time_ns() - t;
	}
	return (double)median_of(v, SAMPLES) / BATCH;
}

static volatile uint64_t sink;

static void burn_cpu(void)
{
	uint64_t x = sink;
	for (int i = 0; i < 25000; i++)
		x = x * 6364136223846793005u + 1;
	sink = x;
}

static int64_t run_requests(int marked)
{
	int64_t t = cpu_time_ns();
	for (int i = 0; i < REQUESTS; i++) {
		srbn_t r = marked ? srbn_start() : 0;
		burn_cpu();
		if (marked) {
			srbn_yield(r);
			srbn_resume(r);
		}
		burn_cpu();
		if (marked)
			srbn_end(r);
	}
	return cpu_time_ns() - t;
}

static void measure_marks(const char *label)
{
	int64_t plain[ROUNDS], marked[ROUNDS];
	double mark = measure_mark();
	for (int i = 0; i < ROUNDS; i++) {
		plain[i] = run_requests(0);
		marked[i] = run_requests(1);
	}
	double p = (double)median_of(plain, ROUNDS), m = (double)median_of(marked, ROUNDS);
	printf("  %-34s %7.1f ns a mark   %+6.2f %% for a request of %.1f us with 4 marks\n", label, mark,
	       100 * (m - p) / p, p / REQUESTS / 1000);
}

int main(void)
{
	puts("request marks (libstealscope-mark):");
	srbn_set_marker("/nonexistent/marker");
	measure_marks("no tracer");
	srbn_set_marker("/dev/null");
	measure_marks("a file that discards (/dev/null)");
	char path[] = "/dev/shm/bench-mark-XXXXXX";
	int fd = mkstemp(path);
	if (fd >= 0) {
		close(fd);
		srbn_set_marker(path);
		measure_marks("a file in memory");
		srbn_set_marker(NULL);
		unlink(path);
	}
	measure_marks(srbn_listening() ? "this machine's tracer" : "this machine (no tracer)");
	return 0;
}
