/* What a mark costs: median of one call, with a tracer's file, with one that discards, and without any; and how much
 * slower a loop of requests of about 50 us becomes with four marks each. */
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

/* CPU time of this thread: what other programs take from it is not the marks' cost. */
static int64_t now(void)
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

static int64_t median(int64_t *v, size_t n)
{
	qsort(v, n, sizeof *v, by_value);
	return v[n / 2];
}

/* Median ns of one mark, in batches so that the clock's own cost does not matter. */
static double one_mark(void)
{
	static int64_t v[SAMPLES];
	srbn_t r = srbn_start();
	for (int i = 0; i < SAMPLES; i++) {
		int64_t t = now();
		for (int k = 0; k < BATCH; k += 2) {
			srbn_yield(r);
			srbn_resume(r);
		}
		v[i] = now() - t;
	}
	return (double)median(v, SAMPLES) / BATCH;
}

static volatile uint64_t sink;

static void work(void)
{
	uint64_t x = sink;
	for (int i = 0; i < 25000; i++)
		x = x * 6364136223846793005u + 1;
	sink = x;
}

static int64_t loop(int marked)
{
	int64_t t = now();
	for (int i = 0; i < REQUESTS; i++) {
		srbn_t r = marked ? srbn_start() : 0;
		work();
		if (marked) {
			srbn_yield(r);
			srbn_resume(r);
		}
		work();
		if (marked)
			srbn_end(r);
	}
	return now() - t;
}

static void measure(const char *what)
{
	int64_t plain[ROUNDS], marked[ROUNDS];
	double mark = one_mark();
	for (int i = 0; i < ROUNDS; i++) {
		plain[i] = loop(0);
		marked[i] = loop(1);
	}
	double p = (double)median(plain, ROUNDS), m = (double)median(marked, ROUNDS);
	printf("  %-34s %7.1f ns a mark   %+6.2f %% for a request of %.1f us with 4 marks\n", what, mark,
	       100 * (m - p) / p, p / REQUESTS / 1000);
}

int main(void)
{
	puts("request marks (libstealscope-mark):");
	srbn_set_marker("/nonexistent/marker");
	measure("nobody listens");
	srbn_set_marker("/dev/null");
	measure("a file that discards (/dev/null)");
	char path[] = "/dev/shm/bench-mark-XXXXXX";
	int fd = mkstemp(path);
	if (fd >= 0) {
		close(fd);
		srbn_set_marker(path);
		measure("a file in memory");
		srbn_set_marker(NULL);
		unlink(path);
	}
	measure(srbn_listening() ? "this machine's tracer" : "this machine (no tracer)");
	return 0;
}
