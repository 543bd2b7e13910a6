/* Hand-made histories with requests: every attribute is an array with its value at every ns. */
#pragma once

#include "test.h"

#include <unistd.h>

#include "base/mem.h"
#include "latency/latency.h"

#define WORLD_NS 400  /* ns: the history covers [0, SPAN - 1] */
#define ROWS 24

enum { SET_VCPU, SET_THREAD, SET_REQUEST, SET_INT, SET_TEXT };

static const char *const request_states[] = { "running", "yielded", "unknown" };

/* One attribute as its value at every ns; HISTORY_NULL: null. */
struct latency_row {
	char path[120];
	int set;
	int64_t v[WORLD_NS];
};

struct latency_world {
	struct latency_row row[ROWS];
	size_t rows;
	char path[64];
	struct history *h;
	struct catalog catalog;
};

__attribute__((unused))
static int64_t *row_add(struct latency_world *w, int set, const char *path)
{
	assert_true(w->rows < ROWS);
	struct latency_row *r = &w->row[w->rows++];
	snprintf(r->path, sizeof r->path, "%s", path);
	r->set = set;
	for (int t = 0; t < WORLD_NS; t++)
		r->v[t] = HISTORY_NULL;
	return r->v;
}

__attribute__((unused))
static void fill_values(int64_t *v, int from, int to, int64_t value)
{
	for (int t = from; t <= to; t++)
		v[t] = value;
}

__attribute__((unused))
static void world_open(struct latency_world *w)
{
	struct error err = ERROR_INIT;
	snprintf(w->path, sizeof w->path, "test-latency-XXXXXX");
	int fd = mkstemp(w->path);
	assert_true(fd >= 0);
	close(fd);
	struct history_options options = { .chunk = 3 };
	struct history_builder *b = history_create(w->path, &options, &err);
	assert_non_null(b);
	unsigned set[] = { history_state_set(b, "vcpu", vcpu_state_name, VCPU_STATE_COUNT),
	                   history_state_set(b, "thread", thread_state_name, THREAD_STATE_COUNT),
	                   history_state_set(b, "request", request_states, COUNT(request_states)) };
	uint32_t attr[ROWS];
	for (size_t i = 0; i < w->rows; i++) {
		int s = w->row[i].set;
		attr[i] = history_attribute(b, w->row[i].path,
		                            s == SET_INT ? HISTORY_INT : s == SET_TEXT ? HISTORY_STRING : HISTORY_STATE,
		                            s < SET_INT ? set[s] : 0, &err);
		assert_int_not_equal(attr[i], HISTORY_NONE);
	}
	for (int t = 0; t < WORLD_NS; t++) {
		for (size_t i = 0; i < w->rows; i++) {
			int64_t v = w->row[i].v[t];
			if (t > 0 && v == w->row[i].v[t - 1])
				continue;
			char name[32];
			snprintf(name, sizeof name, "name%d", (int)v);
			if (w->row[i].set == SET_TEXT && v != HISTORY_NULL)
				assert_int_equal(history_set_string(b, t, attr[i], name, &err), 0);
			else
				assert_int_equal(history_set(b, t, attr[i], v, &err), 0);
		}
	}
	assert_int_equal(history_finish(b, 0, WORLD_NS - 1, &err), 0);
	w->h = history_open(w->path, &err);
	assert_non_null(w->h);
	assert_int_equal(catalog_open(&w->catalog, w->h, &err), 0);
}

__attribute__((unused))
static void world_free(struct latency_world *w)
{
	catalog_release(&w->catalog);
	history_close(w->h);
	unlink(w->path);
	free(w);
}

/* Checks that requests_read() with .plain, without bounds and features, finds the same requests, servers and times. */
__attribute__((unused))
static void check_plain_reading(const struct latency_world *w, const struct requests *all)
{
	struct requests r;
	struct error err = ERROR_INIT;
	const struct requests_options options = { .from = 1, .plain = true };
	assert_int_equal(requests_read(&w->catalog, &options, &r, NULL, &err), 0);
	assert_int_equal(r.len, all->len);
	assert_int_equal(r.cut, all->cut);
	for (size_t i = 0; i < r.len; i++) {
		assert_int_equal(r.row[i].start, all->row[i].start);
		assert_int_equal(r.row[i].end, all->row[i].end);
		assert_int_equal(r.row[i].tid, all->row[i].tid);
		assert_string_equal(r.row[i].container ? r.row[i].container : "",
		                    all->row[i].container ? all->row[i].container : "");
		assert_int_equal(r.row[i].high, 0);
	}
	requests_release(&r);
}

__attribute__((unused))
static struct requests read_requests(const struct latency_world *w)
{
	struct requests r;
	struct error err = ERROR_INIT;
	struct requests_options options = { .from = 1, .culprits = true };
	if (requests_read(&w->catalog, &options, &r, NULL, &err))
		fail_msg("%s", err.text);
	check_plain_reading(w, &r);
	return r;
}

/* Creates a VM "A" with one vCPU (host thread 10 on CPU0; CPU hog 99) and server thread 5, which always runs; request 7
 * has no states yet. */
struct latency_rows {
	int64_t *vcpu, *thread, *cpu, *host, *state, *tid;
};

__attribute__((unused))
static struct latency_world *vm_world(struct latency_rows *r)
{
	struct latency_world *w = mem_new(1, sizeof *w);
	r->vcpu = row_add(w, SET_VCPU, "/Virtual Machines/A/CPUs/CPU0/Status");
	fill_values(row_add(w, SET_INT, "/Virtual Machines/A/CPUs/CPU0/Current Thread"), 0, WORLD_NS - 1, 5);
	fill_values(row_add(w, SET_INT, "/Virtual Machines/A/CPUs/CPU0/Host Thread"), 0, WORLD_NS - 1, 10);
	fill_values(row_add(w, SET_INT, "/Virtual Machines/A/CPUs/CPU0/pCPU"), 0, WORLD_NS - 1, 0);
	r->thread = row_add(w, SET_THREAD, "/Virtual Machines/A/Threads/5/Status");
	fill_values(row_add(w, SET_TEXT, "/Virtual Machines/A/Threads/5/Name"), 0, WORLD_NS - 1, 5);
	r->cpu = row_add(w, SET_INT, "/Virtual Machines/A/Threads/5/CPU");
	r->host = row_add(w, SET_THREAD, "/Host/Threads/10/Status");
	fill_values(row_add(w, SET_THREAD, "/Host/Threads/99/Status"), 0, WORLD_NS - 1, THREAD_RUNNING);
	fill_values(row_add(w, SET_TEXT, "/Host/Threads/99/Name"), 0, WORLD_NS - 1, 99);
	fill_values(row_add(w, SET_INT, "/Host/CPUs/CPU0/Current Thread"), 0, WORLD_NS - 1, 10);
	r->state = row_add(w, SET_REQUEST, "/Requests/A/7/State");
	r->tid = row_add(w, SET_INT, "/Requests/A/7/Thread");
	fill_values(r->vcpu, 0, WORLD_NS - 1, VCPU_RUNNING);
	fill_values(r->thread, 0, WORLD_NS - 1, THREAD_RUNNING);
	fill_values(r->cpu, 0, WORLD_NS - 1, 0);
	fill_values(r->host, 0, WORLD_NS - 1, THREAD_RUNNING);
	return w;
}
