/* Cost of history/ (building, file size, queries), next to Trace Compass' State History Tree as the peer: its figures
 * for the same stream were measured on a machine of this class (Java 17, warm).
 *
 *   bench_history [-n CHANGES]... [-a ATTRIBUTES]... [-c CHUNK] [-d DIR]     default: 20 M changes, 1000 and 20000
 *   attributes */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "../stream.h"
#include "stream_history.h"

#define ROWS 60
#define CELLS 200
#define THREADS 250000  /* each with four attributes */

static double timer_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

/* CPU time of this thread, ns: used for long operations, so that other load on the machine does not count. */
static double cpu_time(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (double)ts.tv_sec * 1e9 + (double)ts.tv_nsec;
}

static int compare_doubles(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

struct timings { double *ns; size_t n; };

static void print_quantiles(const char *label, struct timings s, const char *peer)
{
	qsort(s.ns, s.n, sizeof *s.ns, compare_doubles);
	double p50 = s.ns[s.n / 2], p99 = s.ns[s.n * 99 / 100];
	const char *unit = p99 < 1e5 ? "us" : "ms";
	double scale = p99 < 1e5 ? 1e3 : 1e6;
	printf("  %-44s %9.2f / %.2f %s   peer %s\n", label, p50 / scale, p99 / scale, unit, peer);
	free(s.ns);
}

static struct timings sample_new(size_t n)
{
	return (struct timings){ malloc(n * sizeof(double)), n };
}

static int die(const struct error *err)
{
	fprintf(stderr, "bench_history: %s\n", err->text);
	exit(1);
}

/* ---- Building, in a child process, to measure its peak memory ------------------------------------------------ */

struct built { double cpu_ns, wall_ns; long peak_kib; };

static void fill_threads(struct history_builder *b, struct error *err)
{
	static const char *const names[] = { "RUNNING", "BLOCKED", "PREEMPTED", "VIRT_PREEMPTED", "UNKNOWN" };
	unsigned set = history_state_set(b, "thread", names, 5);
	uint64_t s = 1;
	int64_t t = STREAM_START;
	for (unsigned i = 0; i < THREADS; i++) {
		char path[64], comm[32];
		snprintf(path, sizeof path, "/Host/Threads/%u/Status", 1000 + i);
		uint32_t status = history_attribute(b, path, HISTORY_STATE, set, err);
		snprintf(path, sizeof path, "/Host/Threads/%u/Name", 1000 + i);
		uint32_t name = history_attribute(b, path, HISTORY_STRING, 0, err);
		snprintf(path, sizeof path, "/Host/Threads/%u/CPU", 1000 + i);
		uint32_t cpu = history_attribute(b, path, HISTORY_INT, 0, err);
		snprintf(path, sizeof path, "/Host/Threads/%u/PID", 1000 + i);
		uint32_t pid = history_attribute(b, path, HISTORY_INT, 0, err);
		snprintf(comm, sizeof comm, "worker-%u", i % 5000);
		history_set_string(b, t, name, comm, err);
		history_set(b, t, pid, 1000 + i % 300, err);
		for (unsigned k = 0; k < 8; k++) {
			history_set(b, t, status, (int64_t)(stream_random(&s) % 5), err);
			if (k < 2)
				history_set(b, t, cpu, (int64_t)(stream_random(&s) % 16), err);
			t += (int64_t)(stream_random(&s) % 20000);
		}
		history_set(b, t, status, HISTORY_NULL, err);
		history_set(b, t, cpu, HISTORY_NULL, err);
	}
	if (history_finish(b, STREAM_START, t + 1000, err))
		die(err);
}

/* Builds in a child process. attributes == 0: builds the short-lived threads instead of the stream. */
static struct built build_in_child(const char *path, uint32_t attributes, uint64_t changes, unsigned chunk)
{
	struct built result = { 0 };
	int fd[2];
	fflush(stdout);
	if (pipe(fd))
		exit(1);
	pid_t pid = fork();
	if (!pid) {
		struct error err = ERROR_INIT;
		struct history_options options = { .chunk = chunk };
		double wall = timer_ns(), cpu = cpu_time();
		if (attributes) {
			if (stream_build(path, attributes, changes, &options, NULL, &err))
				die(&err);
		} else {
			struct history_builder *b = history_create(path, &options, &err);
			if (!b)
				die(&err);
			fill_threads(b, &err);
		}
		struct built r = { cpu_time() - cpu, timer_ns() - wall, 0 };
		_exit(write(fd[1], &r, sizeof r) != sizeof r);
	}
	int status;
	struct rusage ru;
	close(fd[1]);
	if (read(fd[0], &result, sizeof result) != sizeof result)
		exit(1);
	close(fd[0]);
	wait4(pid, &status, 0, &ru);
	result.peak_kib = ru.ru_maxrss;
	return result;
}

static double generate_only(uint32_t attributes, uint64_t changes)
{
	struct change_stream g;
	if (!stream_init(&g, attributes))
		exit(1);
	double start = cpu_time();
	uint64_t sum = 0;
	for (uint64_t i = 0; i < changes; i++) {
		stream_next(&g);
		sum += (uint64_t)g.value;
	}
	double ns = cpu_time() - start;
	free(g.cur);
	return sum ? ns : 0;
}

/* ---- Queries -------------------------------------------------------------------------------------------- */

static void bench_single(const struct history *h, const uint32_t *id, uint32_t first, uint32_t n, const char *label,
                         const char *peer)
{
	struct timings s = sample_new(100000);
	uint64_t seed = 7, span = (uint64_t)(history_end(h) - history_begin(h)), sum = 0;
	for (size_t i = 0; i < s.n; i++) {
		int64_t t = history_begin(h) + (int64_t)((stream_random(&seed) >> 1) % span);
		uint32_t a = id[first + (stream_random(&seed) >> 1) % n];
		struct interval iv;
		double start = timer_ns();
		if (history_stab(h, a, t, &iv, NULL))
			exit(1);
		s.ns[i] = timer_ns() - start;
		sum += (uint64_t)iv.start;
	}
	print_quantiles(label, s, sum ? peer : "");
}

static void bench_full(const struct history *h, const char *peer)
{
	struct timings s = sample_new(200);
	uint64_t seed = 7, span = (uint64_t)(history_end(h) - history_begin(h));
	int64_t *value = malloc(history_attribute_count(h) * sizeof *value);
	for (size_t i = 0; i < s.n; i++) {
		int64_t t = history_begin(h) + (int64_t)((stream_random(&seed) >> 1) % span);
		double start = cpu_time();
		if (history_full(h, t, value, NULL))
			exit(1);
		s.ns[i] = cpu_time() - start;
	}
	free(value);
	print_quantiles("full state, p50 / p99", s, peer);
}

enum { SAMPLES, CELL_SUMS, SINGLE_SUMS };

static void query_row(const struct history *h, uint32_t attr, const int64_t *edge, int method)
{
	static int64_t sums[CELLS][HISTORY_STATES];
	struct interval iv;
	int bad = 0;
	if (method == CELL_SUMS)
		bad = history_sums_cells(h, attr, edge, CELLS, sums, NULL);
	for (unsigned i = 0; method != CELL_SUMS && i < CELLS && !bad; i++)
		bad = method == SAMPLES ? history_stab(h, attr, edge[i], &iv, NULL)
			: history_sums(h, attr, edge[i], edge[i + 1] - 1, sums[i], NULL);
	if (bad)
		exit(1);
}

static void bench_grid(const struct history *h, const uint32_t *rows, uint64_t div, int method, const char *label,
                       const char *peer)
{
	struct timings s = sample_new(200);
	uint64_t seed = 7, span = (uint64_t)(history_end(h) - history_begin(h)), window = span / div, step = window / CELLS;
	for (size_t i = 0; i < s.n; i++) {
		uint64_t at = (div == 1 ? 0 : (stream_random(&seed) >> 1) % (span - window)) + (stream_random(&seed) >> 1) % step;
		int64_t edge[CELLS + 1];
		for (unsigned k = 0; k <= CELLS; k++)
			edge[k] = history_begin(h) + (int64_t)(at + k * step);
		double start = cpu_time();
		for (unsigned r = 0; r < ROWS; r++)
			query_row(h, rows[r], edge, method);
		s.ns[i] = cpu_time() - start;
	}
	print_quantiles(label, s, peer);
}

/* Worst case of the neighbour search: null occurs only once, before all other values, so the search covers the whole
 * attribute. */
static void bench_neighbours(const struct history *h, const uint32_t *id)
{
	struct timings s = sample_new(20000);
	for (size_t i = 0; i < s.n; i++) {
		struct interval iv;
		double start = timer_ns();
		int found = i & 1 ? history_prev(h, id[2 * (i % 32)], history_end(h), UINT64_C(1) << 31, &iv, NULL)
			: history_next(h, id[2 * (i % 32)], history_begin(h), UINT64_C(1) << 31, &iv, NULL);
		s.ns[i] = timer_ns() - start;
		if (found < 0)
			exit(1);
	}
	print_quantiles("next/previous, match at the far end or none", s, "scans");
}

static void bench_open(const char *path)
{
	struct timings s = sample_new(200);
	for (size_t i = 0; i < s.n; i++) {
		struct error err = ERROR_INIT;
		double start = cpu_time();
		struct history *h = history_open(path, &err);
		if (!h)
			die(&err);
		struct interval iv;
		history_stab(h, history_attribute_count(h) - 1, history_begin(h), &iv, NULL);
		s.ns[i] = cpu_time() - start;
		history_close(h);
	}
	print_quantiles("reopen and one query, p50 / p99", s, "-");
}

static void check_golden(const struct history *h, uint32_t attributes, uint64_t changes)
{
	for (unsigned i = 0; i < 4; i++)
		if (stream_golden[i].attributes == attributes && stream_golden[i].changes == changes)
			printf("  %-44s %s\n", "known answers", stream_check(h, &stream_golden[i]) ? "all right" : "WRONG");
}

static void bench_queries(const char *path, uint32_t attributes, uint64_t changes)
{
	static const uint64_t div[] = { 1, 100, 10000 };
	static const char *const zoom[] = { "full", "1 %", "0.01 %" };
	static const char *const peer_grid[2][3] = { { "44 / 66 ms", "5.1 / 20 ms", "0.32 / 0.61 ms" },
		{ "170 / 192 ms", "7.0 / 18 ms", "2.2 / 12 ms" } };
	bool many = attributes >= 20000;
	struct error err = ERROR_INIT;
	struct history *h = history_open(path, &err);
	if (!h)
		die(&err);
	uint32_t *id = stream_attributes(h, attributes), rows[ROWS];
	check_golden(h, attributes, changes);
	bench_open(path);
	bench_single(h, id, 0, 64, "stab, hot attribute, p50 / p99", many ? "0.86 / 1.5 ms" : "0.136 / 0.28 ms");
	bench_single(h, id, 64, attributes - 64, "stab, thread, p50 / p99", "-");
	bench_full(h, many ? "1.9 / 10 ms" : "0.18 / 0.41 ms");
	for (unsigned z = 0; z < 3; z++) {
		char label[64];
		snprintf(label, sizeof label, "60 rows x 200 samples, %s", zoom[z]);
		bench_grid(h, id, div[z], SAMPLES, label, peer_grid[many][z]);
	}
	for (unsigned i = 0; i < ROWS; i++)
		rows[i] = id[i < 32 ? 2 * i : 64 + (i - 32)];
	for (unsigned z = 0; z < 3; z++) {
		char label[64];
		snprintf(label, sizeof label, "60 rows x 200 EXACT sums, %s", zoom[z]);
		bench_grid(h, rows, div[z], CELL_SUMS, label, z || many ? "-" : "708 ms (scan)");
		snprintf(label, sizeof label, "  the same by single calls, %s", zoom[z]);
		bench_grid(h, rows, div[z], SINGLE_SUMS, label, "-");
	}
	bench_neighbours(h, id);
	free(id);
	history_close(h);
}

static void print_build(const char *path, struct built r, double generate, const char *peer_ns, const char *peer_bytes)
{
	struct error err = ERROR_INIT;
	struct history *h = history_open(path, &err);
	if (!h)
		die(&err);
	double n = (double)history_intervals(h), ns = (r.cpu_ns - generate) / n;
	printf("  %-44s %9.1f ns = %.1f M/s (wall %.1f s)   peer %s\n", "build, per interval", ns, 1e3 / ns,
	       r.wall_ns / 1e9, peer_ns);
	printf("  %-44s %9.2f   peer %s\n", "file, bytes per interval", (double)history_bytes(h) / n, peer_bytes);
	printf("  %-44s %9.1f MiB   peer 570-680 MiB\n", "peak memory while building", (double)r.peak_kib / 1024);
	history_close(h);
}

static void bench_threads(const char *path)
{
	printf("%d threads of four attributes that live for eight states\n", THREADS);
	print_build(path, build_in_child(path, 0, 0, 0), 0, "-", "-");
	bench_open(path);
}

int main(int argc, char **argv)
{
	uint64_t changes[8], attributes[8];
	unsigned n = 0, a = 0, chunk = 0;
	const char *dir = ".";
	for (int opt; (opt = getopt(argc, argv, "n:a:c:d:")) != -1;) {
		if (opt == 'n' && n < 8)
			changes[n++] = strtoull(optarg, NULL, 10);
		else if (opt == 'a' && a < 8)
			attributes[a++] = strtoull(optarg, NULL, 10);
		else if (opt == 'c')
			chunk = (unsigned)strtoul(optarg, NULL, 10);
		else if (opt == 'd')
			dir = optarg;
		else
			return 1;
	}
	if (!n)
		changes[n++] = 20000000;
	if (!a) {
		attributes[a++] = 1000;
		attributes[a++] = 20000;
	}
	char path[4096];
	snprintf(path, sizeof path, "%s/bench_history.tmp", dir);
	for (unsigned i = 0; i < n; i++)
		for (unsigned k = 0; k < a; k++) {
			uint32_t count = (uint32_t)attributes[k];
			printf("%" PRIu64 " changes, %" PRIu32 " attributes\n", changes[i], count);
			print_build(path, build_in_child(path, count, changes[i], chunk), generate_only(count, changes[i]),
			            count >= 20000 ? "156 ns" : "133 ns", count >= 20000 ? "21.32" : "19.08");
			bench_queries(path, count, changes[i]);
		}
	bench_threads(path);
	unlink(path);
	return 0;
}
