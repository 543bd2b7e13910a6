#include "flow/parallel.h"

#include <pthread.h>
#include <stdbool.h>
#include <unistd.h>

#include "base/int128.h"

#define INTERVALS_WORTH_A_PART (1 << 18)

struct worker {
	pthread_t thread;
	int (*fn)(void *arg, size_t i);
	void *arg;
	size_t i;
	int result;
	bool started;
};

size_t parallel_parts(const struct history *h, int64_t from, int64_t to)
{
	int128 span = (int128)history_end(h) - history_begin(h) + 1, window = (int128)to - from + 1;
	int128 parts = (int128)history_intervals(h) * window / span / INTERVALS_WORTH_A_PART;
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);
	if (parts > cpus)
		parts = cpus;
	if (parts > PARTS_MAX)
		parts = PARTS_MAX;
	return parts < 1 || window < 2 * PARTS_MAX ? 1 : (size_t)parts;
}

void parallel_cut(int64_t from, int64_t to, size_t i, size_t n, int64_t *start, int64_t *end)
{
	int128 window = (int128)to - from + 1;
	*start = from + (int64_t)(window * (int64_t)i / (int64_t)n);
	*end = from + (int64_t)(window * (int64_t)(i + 1) / (int64_t)n) - 1;
}

static void *work(void *arg)
{
	struct worker *w = arg;
	w->result = w->fn(w->arg, w->i);
	return NULL;
}

int parallel_run(size_t n, int (*fn)(void *arg, size_t i), void *arg)
{
	struct worker worker[PARTS_MAX];
	for (size_t i = 0; i < n; i++) {
		worker[i] = (struct worker){ .fn = fn, .arg = arg, .i = i };
		worker[i].started = i + 1 < n && pthread_create(&worker[i].thread, NULL, work, &worker[i]) == 0;
		if (!worker[i].started)
			work(&worker[i]);  /* the last part is ours; so is one for which there is no thread */
	}
	int result = 0;
	for (size_t i = 0; i < n; i++) {
		if (worker[i].started)
			pthread_join(worker[i].thread, NULL);
		if (result == 0)
			result = worker[i].result;
	}
	return result;
}
