/* Benchmark of latency/: training on 5,000 rows of 8 inputs, prediction for 50,000 requests. */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/mem.h"
#include "latency/latency.h"

#define D REQUEST_FEATURE_COUNT

static double now_seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double random_uniform(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return (double)(*seed >> 11) / 9007199254740992.0;
}

int main(void)
{
	enum { TRAIN = 5000, PREDICT = 50000 };
	puts("latency prediction:");
	double *x = mem_new((size_t)PREDICT * D, sizeof *x), *y = mem_new(PREDICT, sizeof *y);
	struct gp_prediction *a = mem_new(PREDICT, sizeof *a);
	uint64_t seed = 1;
	for (size_t i = 0; i < PREDICT; i++) {
		for (size_t j = 0; j < D; j++)
			x[i * D + j] = 1e7 * random_uniform(&seed);
		y[i] = x[i * D] + 2e6 * sin(x[i * D + 1] / 2e6) + 1e5 * random_uniform(&seed);
	}
	struct error err = ERROR_INIT;
	double t = now_seconds();
	struct gp *g = gp_train(request_feature_name, D, x, y, TRAIN, NULL, &err);
	if (!g) {
		fprintf(stderr, "bench_latency: %s\n", err.text);
		return 1;
	}
	printf("  %d rows learned from (subset of %zu): %.2f s\n", TRAIN, gp_rows(g), now_seconds() - t);
	t = now_seconds();
	if (gp_predict(g, x, PREDICT, a, &err))
		return 1;
	t = now_seconds() - t;
	printf("  %d requests predicted with intervals: %.2f s (target < 5)\n", PREDICT, t);
	gp_free(g);
	free(x);
	free(y);
	free(a);
	return 0;
}
