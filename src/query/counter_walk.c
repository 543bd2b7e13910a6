/* Counts are known for intervals between two reads of the counters of a CPU (model/state/hardware_counters.c). An interval
 * counts for a thread if the thread had the CPU during the whole interval. It counts for the time alone or beside a sharer
 * if the other CPUs of the core were idle, or ran the sharer, for nearly the whole interval (PURE_PERCENT): a count cannot
 * be divided within an interval. A window that contains a part of an interval gets this part of its counts. */
#include "query/counter_walk.h"

#include "base/base.h"
#include "base/int128.h"

#define PURE_PERCENT 95

void core_counts_add(struct core_counts *to, const struct core_counts *from)
{
	to->ns += from->ns;
	to->instructions += from->instructions;
	to->cycles += from->cycles;
}

static bool is_most(int64_t part, int64_t whole)
{
	return (int128)part * 100 >= (int128)whole * PURE_PERCENT;
}

/* ---- Counts of a CPU by interval */

struct count_reader {
	struct history_cursor cursor;
	struct interval iv;      /* iv.value: sum of all counts up to its end; HISTORY_NULL: unknown */
	int64_t before;          /* the same up to its start */
};

/* Returns 1, 0 = no more intervals, -1 = error. */
static int count_next(struct count_reader *c, struct error *err)
{
	c->before = c->iv.value == HISTORY_NULL ? c->before : c->iv.value;
	return history_range_next(&c->cursor, &c->iv, err);
}

static int count_open(struct count_reader *c, const struct history *h, uint32_t attr, int64_t from, int64_t to,
                      struct error *err)
{
	c->iv.value = HISTORY_NULL;
	c->before = 0;
	if (history_range(&c->cursor, h, attr, from, to, err) < 0)
		return -1;
	const int r = count_next(c, err);
	struct interval iv = c->iv;
	while (r > 0 && iv.start > history_first(h)) {
		if (history_stab(h, attr, iv.start - 1, &iv, err) < 0)
			return -1;
		if (iv.value != HISTORY_NULL) {
			c->before = iv.value;
			break;
		}
	}
	return r;
}

static int64_t count_of(const struct count_reader *c)
{
	return c->iv.value == HISTORY_NULL || c->iv.value <= c->before ? 0 : c->iv.value - c->before;
}

/* ---- The other CPUs of the core */

static void add_neighbour(struct counter_walk *w, const struct actor *actor, int64_t ns)
{
	const uint32_t id = actors_put(&w->sharers, actor);
	size_t i = 0;
	while (i < w->neighbours && w->neighbour[i].actor != id)
		i++;
	if (i == w->neighbours)
		*ARRAY_PUSH(w->neighbour, w->neighbours, w->neighbour_cap) = (struct neighbour){ id, 0 };
	w->neighbour[i].ns += ns;
}

/* Sums the use of the other CPUs in an interval: time in which all were idle, and in which any was busy. */
static int read_neighbours(struct counter_walk *w, uint32_t cpu, const struct interval *iv, int64_t *idle, int64_t *busy)
{
	const struct catalog_cpu *all = w->catalog->cpu;
	*idle = *busy = 0;
	w->neighbours = 0;
	for (int64_t t = iv->start; t <= iv->end; t = w->r.until + 1) {
		bool is_busy = false, is_unknown = false;
		struct actor user[8];
		unsigned users = 0;
		resolver_trim(&w->r);
		w->r.until = iv->end;
		for (int32_t i = all[cpu].sibling; i != (int32_t)cpu && users < 8; i = all[i].sibling) {
			struct resolution p;
			if (resolve_target(&w->r, &(struct target){ TARGET_CPU, (uint32_t)i }, t, &p) < 0)
				return -1;
			is_unknown = is_unknown || p.actor.kind == FLOW_UNKNOWN;
			if (p.actor.kind != FLOW_IDLE_CPU && p.actor.kind != FLOW_UNKNOWN)
				user[users++] = p.actor;
			is_busy = users > 0;
		}
		const int64_t ns = w->r.until - t + 1;
		for (unsigned i = 0; i < users; i++)
			add_neighbour(w, &user[i], ns);
		*busy += is_busy ? ns : 0;
		*idle += is_busy || is_unknown ? 0 : ns;
	}
	return 0;
}

static void add_sharers(struct counter_walk *w, size_t row, int64_t length, const struct core_counts *counts)
{
	for (size_t i = 0; i < w->neighbours; i++) {
		bool is_new;
		if (!is_most(w->neighbour[i].ns, length))
			continue;
		uint64_t *at = map_put(&w->pair, (uint64_t)row << 32 | w->neighbour[i].actor, &is_new);
		if (is_new) {
			*at = w->sharer_len;
			*ARRAY_PUSH(w->sharer, w->sharer_len, w->sharer_cap) =
				(struct counter_sharer){ row, w->sharers.actor[w->neighbour[i].actor], { 0 } };
		}
		core_counts_add(&w->sharer[*at].counts, counts);
	}
}

/* ---- Rows */

#define ROWS_MAX 8  /* a thread may be a row of the host, of containers, and run a vCPU and a thread of its guest */

static void put_row(const struct counter_walk *w, enum target_kind kind, int64_t index, size_t row[ROWS_MAX], size_t *n)
{
	const uint64_t *at = index < 0 ? NULL : map_find(&w->row_index, (uint64_t)kind << 32 | (uint64_t)index);
	if (at && *n < ROWS_MAX)
		row[(*n)++] = (size_t)*at - 1;
}

/* Adds the row of the thread that is current on CPU `cpu` in the whole interval; *th: NULL: no such thread. */
static int put_current(struct counter_walk *w, uint32_t cpu, const struct interval *iv, const struct thread_ref **th,
                       size_t row[ROWS_MAX], size_t *n)
{
	int64_t tid;
	*th = NULL;
	w->r.until = iv->end;
	if (track_at(&w->r, &resolver_cpu(&w->r, cpu)->running, iv->start, &tid) < 0)
		return -1;
	if (w->r.until < iv->end || tid <= 0 || tid > INT32_MAX)
		return 0;
	*th = resolver_thread(&w->r, w->catalog->cpu[cpu].machine, (int32_t)tid);
	for (const struct thread_ref *of = *th; of; of = of->in_container)
		put_row(w, TARGET_THREAD, of->thread, row, n);
	return 0;
}

/* Finds the rows of the thread that has the CPU in the whole interval. Returns -1 on error. */
static int find_rows(struct counter_walk *w, uint32_t cpu, const struct interval *iv, size_t row[ROWS_MAX], size_t *n)
{
	const struct catalog_cpu *c = &w->catalog->cpu[cpu];
	const struct thread_ref *th, *inner;
	int vcpu;
	*n = 0;
	resolver_trim(&w->r);
	if (put_current(w, cpu, iv, &th, row, n) < 0)
		return -1;
	if (!th)
		return 0;
	if (w->catalog->machine[c->machine].kind == MACHINE_VM && c->host < 0)  /* the host has no trace */
		put_row(w, TARGET_CPU, cpu, row, n);
	if (resolver_vcpu(&w->r, th, iv->start, &vcpu) < 0)
		return -1;
	put_row(w, TARGET_CPU, vcpu, row, n);
	return vcpu < 0 ? 0 : put_current(w, (uint32_t)vcpu, iv, &inner, row, n);
}

static int64_t part_of(int64_t count, int64_t part, int64_t whole)
{
	return (int64_t)((int128)count * part / whole);
}

static int add_interval(struct counter_walk *w, uint32_t cpu, const struct interval *iv, int64_t instructions,
                        int64_t cycles)
{
	const int64_t start = iv->start > w->from ? iv->start : w->from, end = iv->end < w->to ? iv->end : w->to;
	const int64_t length = iv->end - iv->start + 1, ns = end - start + 1;
	const int32_t sibling = w->catalog->cpu[cpu].sibling;
	size_t row[ROWS_MAX], n;
	if (find_rows(w, cpu, iv, row, &n) < 0)
		return -1;
	if (n == 0)
		return 0;
	const struct core_counts counts = { ns, part_of(instructions, ns, length), part_of(cycles, ns, length) };
	int64_t idle = sibling == (int32_t)cpu ? length : 0, busy = 0;
	w->neighbours = 0;
	if (sibling >= 0 && sibling != (int32_t)cpu && read_neighbours(w, cpu, iv, &idle, &busy) < 0)
		return -1;
	for (size_t i = 0; i < n; i++) {
		struct counter_row *to = &w->row[row[i]];
		core_counts_add(&to->all, &counts);
		if (is_most(idle, length))
			core_counts_add(&to->alone, &counts);
		if (is_most(busy, length))
			core_counts_add(&to->shared, &counts);
		add_sharers(w, row[i], length, &counts);
	}
	return 0;
}

static int walk_cpu(struct counter_walk *w, uint32_t cpu, struct error *err)
{
	const struct catalog_cpu *c = &w->catalog->cpu[cpu];
	struct count_reader instructions, cycles;
	int a = count_open(&instructions, w->catalog->h, c->instructions, w->from, w->to, err);
	int b = a <= 0 ? a : count_open(&cycles, w->catalog->h, c->cycles, w->from, w->to, err);
	while (a > 0 && b > 0) {
		const struct interval *x = &instructions.iv, *y = &cycles.iv;
		const int64_t x_end = x->end, y_end = y->end;
		const bool is_pair = x->start == y->start && x_end == y_end && count_of(&instructions) && count_of(&cycles);
		if (is_pair && add_interval(w, cpu, x, count_of(&instructions), count_of(&cycles)) < 0)
			return -1;
		if (x_end <= y_end)
			a = count_next(&instructions, err);
		if (y_end <= x_end)
			b = count_next(&cycles, err);
	}
	return a < 0 || b < 0 ? -1 : 0;
}

int counter_walk_run(struct counter_walk *w, const struct catalog *catalog, const struct gap_rows *rows, int64_t from,
                     int64_t to, struct error *err)
{
	*w = (struct counter_walk){ .catalog = catalog, .rows = rows, .from = from, .to = to };
	resolver_init(&w->r, catalog, from, to, err);
	w->r.vcpus_only = true;
	w->row = mem_new(rows->len, sizeof *w->row);
	for (size_t i = 0; i < rows->len; i++)
		*map_put(&w->row_index, (uint64_t)rows->row[i].target.kind << 32 | rows->row[i].target.index, NULL) = i + 1;
	for (uint32_t i = 0; i < catalog->cpus; i++) {
		const struct catalog_cpu *cpu = &catalog->cpu[i];
		if (cpu->instructions != HISTORY_NONE && cpu->cycles != HISTORY_NONE && walk_cpu(w, i, err) < 0)
			return -1;
	}
	return 0;
}

void counter_walk_release(struct counter_walk *w)
{
	resolver_release(&w->r);
	map_release(&w->row_index);
	map_release(&w->pair);
	actors_release(&w->sharers);
	free(w->row);
	free(w->sharer);
	free(w->neighbour);
}
