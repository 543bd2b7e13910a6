/* Cost of the counters of requests (srbn_live(), srbn_read()): ns per mark and per read, with the best source of this machine
 * and with schedstat; and of a prediction. Run `stealscope monitor --publish SOCKET` and pass SOCKET for the first. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "beacon/stealscope-mark.h"

#define SAMPLES 501
#define BATCH 64

static int64_t cpu_time_ns(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static int by_value(const void *pa, const void *pb)
{
	const int64_t a = *(const int64_t *)pa, b = *(const int64_t *)pb;
	return (a > b) - (a < b);
}

static double median_of(int64_t v[SAMPLES])
{
	qsort(v, SAMPLES, sizeof *v, by_value);
	return (double)v[SAMPLES / 2] / BATCH;
}

static void measure(const char *label, const char *path, const char *model)
{
	static const char *const source[] = { "none", "host", "guest", "shared memory", "schedstat" };
	static int64_t mark[SAMPLES], read[SAMPLES];
	static srbn_t request[BATCH];
	struct srbn_data d;
	const int found = srbn_live(path);
	if (model && srbn_model(model))
		perror(model);
	for (int i = 0; i < SAMPLES; i++) {
		int64_t t = cpu_time_ns();
		for (int k = 0; k < BATCH; k += 2) {
			request[k] = srbn_start();
			srbn_end(request[k]);
		}
		mark[i] = cpu_time_ns() - t;
		t = cpu_time_ns();
		for (int k = 0; k < BATCH; k++)
			srbn_read(request[k & ~1], &d);
		read[i] = cpu_time_ns() - t;
	}
	printf("  %-28s source %-14s %7.1f ns a mark   %8.1f ns a read\n", label, source[found < 5 ? found : 0], median_of(mark),
	       median_of(read));
	srbn_model(NULL);
}

int main(int argc, char **argv)
{
	puts("requests in the running service (srbn_read), without a tracer:");
	srbn_set_marker("/nonexistent/marker");
	measure("schedstat", "/nonexistent/socket", NULL);
	measure("best source", argc > 1 ? argv[1] : NULL, NULL);
	if (argc > 2)
		measure("best source, with a model", argc > 1 ? argv[1] : NULL, argv[2]);
	return 0;
}
