/* Shared cores, frequencies and moves on random hosts, against a brute-force sum over every ns; divided into parts and into
 * slices of any length. */
#include "query_world.h"
#include "test.h"

#include <stdlib.h>

#include "base/mem.h"
#include "query/core_sweep.h"
#include "query/stepped_query.h"

#define CPUS 8
#define TASKS 5
#define LENGTH 600
#define IDLE 0
#define UNKNOWN (-1)
#define BASE 1000

static uint64_t seed;

static uint32_t rnd(uint32_t n)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)(seed >> 33) % n;
}

/* State of the host at every ns. */
struct host {
	int user[CPUS][LENGTH];     /* thread 1 .. TASKS, IDLE or UNKNOWN */
	int handler[CPUS][LENGTH];  /* an interrupt handler has the CPU */
	int cpu[TASKS + 1][LENGTH]; /* CPU of a running thread; -1: it does not run */
	int khz[CPUS][LENGTH];      /* -1: unknown */
	int core[CPUS], node[CPUS];
};

static void make_host(struct host *h, int per_core)
{
	for (int c = 0; c < CPUS; c++) {
		h->core[c] = c / per_core;
		h->node[c] = c >= CPUS / 2;
	}
	for (int t = 0; t < LENGTH; t++) {
		for (int c = 0; c < CPUS; c++) {
			h->user[c][t] = t ? h->user[c][t - 1] : IDLE;
			h->handler[c][t] = rnd(30) == 0 || (t && h->handler[c][t - 1] && rnd(3));
			h->khz[c][t] = rnd(40) == 0 ? (int)(BASE * (80 + 5 * rnd(6)) / 100) : t ? h->khz[c][t - 1] : -1;
		}
		const int from = (int)rnd(CPUS), to = (int)rnd(CPUS);  /* a thread moves, or a CPU becomes idle or unknown */
		if (rnd(4) == 0) {
			h->user[to][t] = h->user[from][t] > 0 ? h->user[from][t] : h->user[to][t];
			h->user[from][t] = from == to ? h->user[to][t] : rnd(5) ? IDLE : UNKNOWN;
		}
		for (int k = 1; k <= TASKS; k++) {
			h->cpu[k][t] = -1;
			for (int c = 0; c < CPUS; c++)
				if (h->user[c][t] == k)
					h->cpu[k][t] = c;
		}
		const int task = 1 + (int)rnd(TASKS), idle = (int)rnd(CPUS);
		if (h->cpu[task][t] < 0 && h->user[idle][t] <= 0) {
			h->user[idle][t] = task;
			h->cpu[task][t] = idle;
		}
	}
}

/* Appends "T VALUE; " where the value changes. */
static void add_change(FILE *f, int t, int before, int now, const char *text)
{
	if (t == 0 || before != now)
		fprintf(f, "%s%d %s", t ? "; " : "", t, text);
}

static void put_row(struct world *w, const struct host *h, const char *path, const int *value,
                    const char *(*text)(const struct host *h, int value))
{
	char *row = NULL;
	size_t size;
	FILE *f = open_memstream(&row, &size);
	for (int t = 0; t < LENGTH; t++)
		add_change(f, t, t ? value[t - 1] : 0, value[t], text(h, value[t]));
	fclose(f);
	world_row(w, path, row);
	free(row);
}

static const char *number_text(const struct host *h, int value)
{
	static char text[16];
	(void)h;
	snprintf(text, sizeof text, "%d", value);
	return value < 0 ? "-" : text;
}

static const char *handler_text(const struct host *h, int value)
{
	(void)h;
	return value ? "timer" : "-";
}

static const char *status_text(const struct host *h, int value)
{
	(void)h;
	return value < 0 ? "BLOCKED" : "RUNNING";
}

static void write_world(struct world *w, const struct host *h)
{
	char path[80], text[24];
	world_open(w);
	for (int c = 0; c < CPUS; c++) {
		snprintf(path, sizeof path, "/Host/CPUs/CPU%d/Current Thread", c);
		put_row(w, h, path, h->user[c], number_text);
		snprintf(path, sizeof path, "/Host/CPUs/CPU%d/Interrupt", c);
		put_row(w, h, path, h->handler[c], handler_text);
		snprintf(path, sizeof path, "/Host/CPUs/CPU%d/Frequency", c);
		put_row(w, h, path, h->khz[c], number_text);
		snprintf(text, sizeof text, "0 %d", h->core[c]);
		world_rowf(w, text, "/Host/CPUs/CPU%d/Core", c);
		snprintf(text, sizeof text, "0 %d", h->node[c]);
		world_rowf(w, text, "/Host/CPUs/CPU%d/LLC", c);
		world_rowf(w, text, "/Host/CPUs/CPU%d/Node", c);
		snprintf(text, sizeof text, "0 %d", BASE);
		world_rowf(w, text, "/Host/CPUs/CPU%d/Base Frequency", c);
	}
	for (int k = 1; k <= TASKS; k++) {
		snprintf(path, sizeof path, "/Host/Threads/%d/Status", k);
		put_row(w, h, path, h->cpu[k], status_text);
		snprintf(path, sizeof path, "/Host/Threads/%d/CPU", k);
		put_row(w, h, path, h->cpu[k], number_text);
		world_rowf(w, "0 task", "/Host/Threads/%d/Name", k);
	}
	world_close(w, 0, LENGTH - 1);
}

struct expected { struct core_time time; int64_t with[TASKS + 1]; /* [0]: handlers */ };

static void expect(const struct host *h, int k, struct expected *e)
{
	int last = -1;
	*e = (struct expected){ 0 };
	for (int t = 0; t < LENGTH; t++) {
		const int c = h->cpu[k][t];
		if (c < 0)
			continue;
		bool busy = false, unknown = false;
		for (int s = 0; s < CPUS; s++) {
			if (s == c || h->core[s] != h->core[c])
				continue;
			const bool used = h->handler[s][t] || h->user[s][t] > 0;
			busy = busy || used;
			unknown = unknown || (!used && h->user[s][t] == UNKNOWN);
			e->with[h->handler[s][t] ? 0 : h->user[s][t] > 0 ? h->user[s][t] : 0] += used;
		}
		e->time.ran++;
		*(busy ? &e->time.shared : unknown ? &e->time.unknown : &e->time.alone) += 1;
		e->time.clocked += h->khz[c][t] >= 0;
		e->time.slow += h->khz[c][t] >= 0 && h->khz[c][t] * 100 < BASE * SLOW_PERCENT;
		e->time.moves += last >= 0 && last != c;
		e->time.llc_moves += last >= 0 && h->node[last] != h->node[c];
		e->time.node_moves += last >= 0 && h->node[last] != h->node[c];
		last = c;
	}
}

static void check_answer(const struct core_share *s, const struct host *h)
{
	for (size_t i = 0; i < s->rows; i++) {
		struct expected e;
		int64_t with[TASKS + 1] = { 0 };
		expect(h, (int)i + 1, &e);
		assert_memory_equal(&s->row[i].time, &e.time, sizeof e.time);
		for (size_t k = s->row[i].sharer; k < s->row[i].sharer + s->row[i].sharers; k++) {
			const struct core_sharer *sharer = &s->sharer[k];
			assert_true(k == s->row[i].sharer || sharer[-1].ns >= sharer->ns);
			assert_true(sharer->actor.kind == FLOW_IRQ ? sharer->actor.tid == -1 : sharer->actor.kind == FLOW_PREEMPTING);
			with[sharer->actor.kind == FLOW_IRQ ? 0 : sharer->actor.tid] += sharer->ns;
		}
		assert_memory_equal(with, e.with, sizeof with);
	}
}

/* The answer, also if the window is divided into parts. */
static void test_brute(void **state)
{
	(void)state;
	static struct host h;
	struct world w;
	struct error err = ERROR_INIT;
	struct target target[TASKS];
	for (seed = 0; seed < 40; seed++) {
		const uint64_t number = seed;
		make_host(&h, 1 << number % 4);
		write_world(&w, &h);
		assert_true(w.catalog.has_cores && w.catalog.has_siblings == (number % 4 > 0));
		for (int k = 1; k <= TASKS; k++)
			target[k - 1] = (struct target){ TARGET_THREAD, (uint32_t)catalog_find_thread(&w.catalog, 0, k) };
		for (size_t parts = 1; parts <= PARTS_MAX; parts++) {
			struct core_share s;
			struct query *q = core_share_open(&w.catalog, target, TASKS, 0, LENGTH - 1);
			q->parts = parts;
			query_restart(q);
			assert_int_equal(query_run(q, NULL, &err), 0);
			query_take(q, &s);
			query_close(q);
			check_answer(&s, &h);
			core_share_release(&s);
		}
		world_release(&w);
		seed = number;
	}
}

/* Slices of any length; a slice of one ns has one interval per CPU. */
static void test_slices(void **state)
{
	(void)state;
	static struct host h;
	struct world w;
	struct error err = ERROR_INIT;
	seed = 77;
	make_host(&h, 2);
	write_world(&w, &h);
	struct gap_rows rows;
	const int64_t no_node[] = { -1 };
	gap_rows_list(&rows, &w.catalog, NULL);
	for (size_t capacity = CPUS; capacity < 2000; capacity *= 3) {
		struct core_sweep s;
		int done;
		assert_int_equal(core_sweep_open(&s, &w.catalog, &rows, no_node, 0, LENGTH - 1, &err), 0);
		s.sweep.capacity = capacity;
		while ((done = core_sweep_step(&s)) == 0)
			;
		assert_int_equal(done, 1);
		for (size_t i = 0; i < rows.len; i++) {
			struct expected e;
			expect(&h, (int)w.catalog.thread[rows.row[i].target.index].tid, &e);
			assert_memory_equal(&s.row[i].time, &e.time, sizeof e.time);
		}
		core_sweep_release(&s);
	}
	gap_rows_release(&rows);
	world_release(&w);
}

/* A history with impossible cores: more than 8 CPUs on one core make its CPUs unknown; other numbers are only compared. */
static void test_hostile(void **state)
{
	(void)state;
	struct world w;
	struct error err = ERROR_INIT;
	struct core_share s;
	world_open(&w);
	for (int c = 0; c < 9; c++)
		world_rowf(&w, "0 -5", "/Host/CPUs/CPU%d/Core", c);
	world_row(&w, "/Host/CPUs/CPU9/Core", "0 9223372036854775807");
	world_row(&w, "/Host/CPUs/CPU9/Node", "0 -9223372036854775807");
	world_row(&w, "/Host/CPUs/CPU9/LLC", "0 9223372036854775807");
	world_row(&w, "/Host/CPUs/CPU9/Base Frequency", "0 9223372036854775807");
	world_row(&w, "/Host/CPUs/CPU9/Frequency", "0 9223372036854775807; 50 -3; 60 1");
	world_row(&w, "/Host/CPUs/CPU0/Current Thread", "0 7");
	world_row(&w, "/Host/Threads/7/Status", "0 RUNNING");
	world_row(&w, "/Host/Threads/7/CPU", "0 0; 10 9; 70 9223372036854775807");
	world_close(&w, 0, 99);
	assert_true(w.catalog.has_cores && !w.catalog.has_siblings);
	struct target target = { TARGET_THREAD, 0 };
	assert_int_equal(query_answer(core_share_open(&w.catalog, &target, 1, 0, 99), &s, &err), 0);
	const struct core_time *t = &s.row[0].time;
	assert_int_equal(t->ran, 100);
	assert_int_equal(t->alone, 60);
	assert_int_equal(t->unknown, 40);
	assert_int_equal(t->clocked, 50);
	assert_int_equal(t->slow, 10);
	assert_int_equal(t->moves, 1);
	assert_int_equal(t->llc_moves + t->node_moves + t->placed, 0);
	core_share_release(&s);
	world_release(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_brute), cmocka_unit_test(test_slices),
	                                    cmocka_unit_test(test_hostile) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
