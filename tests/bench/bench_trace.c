/* Benchmark of reading traces: wall time of loading with 1 and 2 threads (next to `babeltrace2 -o dummy` on the same
 * traces), time of walking the records, peak memory. Best of five rounds, interleaved.
 *
 * Usage: bench_trace [DIR...]; default: the recordings next to the source tree, else the one in tests/data.
 * The last lines load one trace twice, as two machines: two streams of equal size. */
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "trace/trace.h"

enum { ROUNDS = 5, MAX_TRACES = 16 };

static double now_ms(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}

static void die(const struct error *err)
{
	fprintf(stderr, "bench_trace: %s\n", err->text);
	exit(1);
}

/* Returns the time of `babeltrace2 -o dummy` on the traces, ms; 1e9 if it fails or is not installed. */
static double run_babeltrace(const struct trace_spec *spec, size_t n)
{
	const char *argv[MAX_TRACES + 4] = { "babeltrace2", "-o", "dummy" };
	for (size_t i = 0; i < n; i++)
		argv[3 + i] = spec[i].dir;
	const double begin = now_ms();
	pid_t child = fork();
	if (child == 0) {
		if (!freopen("/dev/null", "w", stderr))
			_exit(126);
		execvp(argv[0], (char *const *)argv);
		_exit(127);
	}
	int status = 1;
	waitpid(child, &status, 0);
	return status ? 1e9 : now_ms() - begin;
}

struct times { double load, walk; uint64_t events; };

static void run_load(const struct trace_spec *spec, size_t n, unsigned workers, struct times *best)
{
	struct error err = ERROR_INIT;
	struct trace *t[MAX_TRACES];
	const double begin = now_ms();
	if (trace_load(spec, n, &(struct trace_options){ .workers = workers }, t, NULL, &err))
		die(&err);
	const double loaded = now_ms();
	uint64_t events = 0;
	for (size_t i = 0; i < n; i++) {
		struct trace_cursor *c = trace_cursor_open(t[i], ALL_KINDS, -1, &err);
		struct event ev;
		while (c && trace_cursor_next(c, &ev, &err) > 0)
			events++;
		trace_cursor_close(c);
	}
	const double walked = now_ms();
	for (size_t i = 0; i < n; i++)
		trace_free(t[i]);
	best->load = loaded - begin < best->load ? loaded - begin : best->load;
	best->walk = walked - loaded < best->walk ? walked - loaded : best->walk;
	best->events = events;
}

static void print_times(const char *name, const struct trace_spec *spec, size_t n, bool compare)
{
	struct times one = { 1e9, 1e9, 0 }, two = one;
	double bt = 1e9;
	for (int i = 0; i < ROUNDS; i++) {
		run_load(spec, n, 1, &one);
		run_load(spec, n, 2, &two);
		double t = compare ? run_babeltrace(spec, n) : 1e9;
		bt = t < bt ? t : bt;
	}
	printf("%-24s %9" PRIu64 " events: 1 thread %7.1f ms, 2 threads %7.1f ms (%.2fx), walk %5.1f ms", name, one.events,
	       one.load, two.load, one.load / two.load, one.walk);
	if (bt < 1e9)
		printf("; babeltrace2 -o dummy %7.1f ms, ratio %.2f", bt, two.load / bt);
	putchar('\n');
}

static void bench_dir(const char *dir)
{
	struct trace_spec *spec = NULL;
	size_t n = 0;
	struct error err = ERROR_INIT;
	if (trace_discover(dir, &spec, &n, NULL, &err))
		die(&err);
	const char *slash = strrchr(dir, '/');
	print_times(slash ? slash + 1 : dir, spec, n < MAX_TRACES ? n : MAX_TRACES, true);
	for (size_t i = 0; i < n; i++) {
		const struct trace_spec twice[] = { spec[i], spec[i] };
		char name[64];
		snprintf(name, sizeof name, "  trace %zu twice", i);
		print_times(name, twice, 2, false);
	}
	trace_specs_free(spec, n);
}

int main(int argc, char **argv)
{
	static const char recorded[] = SRCDIR "/../shared/traces/big", shipped[] = SRCDIR "/tests/data/fibonacci";
	struct stat st;
	for (int i = 1; i < argc; i++)
		bench_dir(argv[i]);
	if (argc < 2)
		bench_dir(stat(recorded, &st) ? shipped : recorded);
	struct rusage usage;
	getrusage(RUSAGE_SELF, &usage);
	printf("peak memory %.1f MiB\n", (double)usage.ru_maxrss / 1024);
	return 0;
}
