/* Long windows are divided into parts that are walked in parallel and joined; the answer must not depend on that. The
 * tests query a history that is large enough to be divided, as a whole and in windows too small to be divided. */
#include "query_answers.h"
#include "query_world.h"
#include "refs.h"
#include "test.h"

#include <inttypes.h>

#include "base/mem.h"
#include "base/parallel.h"
#include "query/stepped_query.h"
#include "query/window_gaps.h"

#define SWITCHES 140000  /* enough for two parts */
#define WINDOWS 12

static uint64_t seed = 5;

static uint32_t rnd(uint32_t n)
{
	seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
	return (uint32_t)(seed >> 33) % n;
}

static uint32_t attr(struct world *w, enum history_type type, unsigned set, const char *path)
{
	struct error err = ERROR_INIT;
	uint32_t a = history_attribute(w->b, path, type, set, &err);
	assert_int_not_equal(a, HISTORY_NONE);
	return a;
}

static void put(struct world *w, int64_t t, uint32_t a, int64_t v)
{
	struct error err = ERROR_INIT;
	assert_int_equal(history_set(w->b, t, a, v, &err), 0);
}

/* One pCPU; two vCPUs of two VMs and twenty host tasks take turns; each vCPU has three guest threads. */
static int64_t make(struct world *w)
{
	static const char *const vm[] = { "A", "B" };
	uint32_t status[2], current[2], thread[2][3], task[20], on, now = 0, guest[2] = { 0, 0 };
	char path[128];
	int64_t t = 0;
	world_open(w);
	on = attr(w, HISTORY_INT, 0, "/Host/CPUs/CPU0/Current Thread");
	for (int i = 0; i < 2; i++) {
		struct error err = ERROR_INIT;
		char text[16];
		snprintf(path, sizeof path, "/Virtual Machines/%s/CPUs/CPU0/Status", vm[i]);
		status[i] = attr(w, HISTORY_STATE, w->vcpu_set, path);
		snprintf(path, sizeof path, "/Virtual Machines/%s/CPUs/CPU0/Current Thread", vm[i]);
		current[i] = attr(w, HISTORY_INT, 0, path);
		snprintf(path, sizeof path, "/Virtual Machines/%s/CPUs/CPU0/pCPU", vm[i]);
		put(w, 0, attr(w, HISTORY_INT, 0, path), 0);
		snprintf(path, sizeof path, "/Host/Threads/%d/VM", 100 + i);
		snprintf(text, sizeof text, "%s/0", vm[i]);
		assert_int_equal(set_ref(w->b, 0, attr(w, HISTORY_REF, 0, path), text, &err), 0);
		for (int k = 0; k < 3; k++) {
			snprintf(path, sizeof path, "/Virtual Machines/%s/Threads/%d/Status", vm[i], 5 + k);
			thread[i][k] = attr(w, HISTORY_STATE, w->thread_set, path);
			snprintf(path, sizeof path, "/Virtual Machines/%s/Threads/%d/CPU", vm[i], 5 + k);
			put(w, 0, attr(w, HISTORY_INT, 0, path), 0);
			snprintf(path, sizeof path, "/Virtual Machines/%s/Threads/%d/Name", vm[i], 5 + k);
			snprintf(text, sizeof text, "%s%d", vm[i], k);
			assert_int_equal(history_set_string(w->b, 0, attr(w, HISTORY_STRING, 0, path), text, &err), 0);
		}
		put(w, 0, status[i], VCPU_PREEMPTED);
	}
	for (int i = 0; i < 20; i++) {
		struct error err = ERROR_INIT;
		char text[16];
		snprintf(path, sizeof path, "/Host/Threads/%d/Status", 10 + i);
		task[i] = attr(w, HISTORY_STATE, w->thread_set, path);
		snprintf(path, sizeof path, "/Host/Threads/%d/CPU", 10 + i);
		put(w, 0, attr(w, HISTORY_INT, 0, path), 0);
		snprintf(path, sizeof path, "/Host/Threads/%d/Name", 10 + i);
		snprintf(text, sizeof text, "task%d", i);
		assert_int_equal(history_set_string(w->b, 0, attr(w, HISTORY_STRING, 0, path), text, &err), 0);
		put(w, 0, task[i], THREAD_PREEMPTED);
	}
	for (int n = 0; n < SWITCHES; n++) {
		uint32_t next = rnd(2) ? rnd(2) : 2 + rnd(20);  /* 0 and 1: the vCPUs */
		t += 1 + rnd(100000);
		if (now < 2) {
			put(w, t, status[now], rnd(20) ? VCPU_PREEMPTED : VCPU_HOST_BLOCKED);
			put(w, t, thread[now][guest[now]], THREAD_VIRT_PREEMPTED);
		} else {
			put(w, t, task[now - 2], rnd(3) ? THREAD_PREEMPTED : THREAD_BLOCKED);
		}
		put(w, t, on, next < 2 ? 100 + next : 8 + next);
		if (next < 2) {
			put(w, t, thread[next][guest[next]], THREAD_PREEMPTED);
			guest[next] = rnd(3);
			put(w, t, current[next], 5 + guest[next]);
			put(w, t, thread[next][guest[next]], THREAD_RUNNING);
			put(w, t, status[next], VCPU_RUNNING);
		} else {
			put(w, t, task[next - 2], THREAD_RUNNING);
		}
		now = next;
	}
	world_close(w, 0, t + 10);
	return t + 10;
}

static void same_actor(const struct flow *f, const struct flow_interval *x, const struct flow *g,
                       const struct flow_interval *y)
{
	const struct actor *a = &f->entry[x->entry].actor, *b = &g->entry[y->entry].actor;
	assert_int_equal(a->kind, b->kind);
	assert_int_equal(a->machine, b->machine);
	assert_int_equal(a->tid, b->tid);
	assert_int_equal(x->pcpu, y->pcpu);
	assert_string_equal(f->name[a->name], g->name[b->name]);
}

/* The lost time by CPU adds up to that of each entry. */
static void check_cpus(const struct flow *f)
{
	int64_t *lost = mem_new(f->entries, sizeof *lost);
	assert_true(f->cpus > 1);
	for (size_t i = 0; i < f->cpus; i++)
		lost[f->cpu[i].entry] += f->cpu[i].ns;
	for (size_t i = 0; i < f->entries; i++)
		assert_int_equal(lost[i], f->entry[i].lost);
	free(lost);
}

static void flows(void **state)
{
	struct world *w = *state;
	struct error err = ERROR_INIT;
	static const char *const targets[] = { "A/5", "B/B2", "host/10" };
	int64_t end = history_end(w->h);
	for (size_t n = 0; n < COUNT(targets); n++) {
		struct target s = world_target(w, targets[n]);
		struct flow whole, part;
		const struct flow_options options = { .intervals = SIZE_MAX, .cpus = true };
		assert_int_equal(query_answer(flow_open(&w->catalog, &s, 0, end, &options, &err), &whole, &err), 0);
		world_check_tiling(&whole);
		check_cpus(&whole);
		size_t at = 0;
		for (int i = 0; i < WINDOWS; i++) {
			int64_t from, to;
			part_bounds(0, end, (size_t)i, WINDOWS, &from, &to);
			if (to < whole.start)
				continue;
			assert_int_equal(query_answer(flow_open(&w->catalog, &s, from, to, NULL, &err), &part, &err), 0);
			for (size_t k = 0; k < part.intervals; k++) {
				while (whole.interval[at].end < part.interval[k].start)
					at++;
				same_actor(&whole, &whole.interval[at], &part, &part.interval[k]);
				assert_true(whole.interval[at].start == part.interval[k].start || part.interval[k].start == part.start);
				assert_true(whole.interval[at].end == part.interval[k].end || part.interval[k].end == part.end);
			}
			flow_release(&part);
		}
		for (size_t k = 1; k < whole.intervals; k++) {
			const struct flow_interval *a = &whole.interval[k - 1], *b = a + 1;
			assert_false(a->entry == b->entry && a->pcpu == b->pcpu);
		}
		flow_release(&whole);
	}
}

static char *cell_text(const struct world *w, const struct steal *s, const struct steal_cell *c, char buf[200])
{
	char victim[80], culprit[80];
	actor_text(&w->catalog, &c->victim, s->name[c->victim.name], ACTOR_PLAIN, NULL, victim, 80);
	actor_text(&w->catalog, &c->culprit, s->name[c->culprit.name], ACTOR_PLAIN, NULL, culprit, 80);
	snprintf(buf, 200, "%s < %s", victim, culprit);
	return buf;
}

/* For people, actors without a machine are in parentheses; csv and json contain the words of FLOW_KINDS. */
static void nobodies(void **state)
{
	struct world *w = *state;
	char buf[200];
	struct actor nobody = { -1, -1, 0, FLOW_WAITING, 0 };
	assert_string_equal(actor_text(&w->catalog, &nobody, NULL, ACTOR_SHOWN, NULL, buf, sizeof buf), "(asleep on the host)");
	assert_string_equal(actor_text(&w->catalog, &nobody, NULL, ACTOR_PLAIN, NULL, buf, sizeof buf), "waiting");
	assert_string_equal(actor_text(&w->catalog, &nobody, "disk", ACTOR_SHOWN, NULL, buf, sizeof buf), "(waiting for disk)");
	nobody.kind = FLOW_IDLE_CPU;
	assert_string_equal(actor_text(&w->catalog, &nobody, NULL, ACTOR_SHOWN, NULL, buf, sizeof buf), "(idle CPU)");
}

static void matrices(void **state)
{
	struct world *w = *state;
	struct error err = ERROR_INIT;
	int64_t end = history_end(w->h);
	for (int by = STEAL_BY_MACHINE; by <= STEAL_BY_THREAD; by++) {
		struct steal whole, part;
		assert_int_equal(steal_matrix(&w->catalog, (enum steal_by)by, NULL, 0, end, &whole, &err), 0);
		assert_true(whole.cells > 4);
		int64_t *ns = calloc(whole.cells, sizeof *ns);
		double share = 0;
		for (int i = 0; i < WINDOWS; i++) {
			int64_t from, to;
			part_bounds(0, end, (size_t)i, WINDOWS, &from, &to);
			assert_int_equal(steal_matrix(&w->catalog, (enum steal_by)by, NULL, from, to, &part, &err), 0);
			for (size_t k = 0; k < part.cells; k++) {
				char a[200], b[200];
				size_t c = 0;
				cell_text(w, &part, &part.cell[k], a);
				while (c < whole.cells && strcmp(cell_text(w, &whole, &whole.cell[c], b), a) != 0)
					c++;
				assert_true(c < whole.cells);
				ns[c] += part.cell[k].ns;
			}
			steal_release(&part);
		}
		for (size_t c = 0; c < whole.cells; c++) {
			assert_int_equal(ns[c], whole.cell[c].ns);
			share = c && whole.cell[c].victim.machine == whole.cell[c - 1].victim.machine &&
			        whole.cell[c].victim.tid == whole.cell[c - 1].victim.tid ? share + whole.cell[c].share
			                                                                 : whole.cell[c].share;
			assert_true(share < 1.000001);
		}
		free(ns);
		steal_release(&whole);
	}
}

/* The cells of each victim add up to its steal_time(). */
static void conservation(void **state)
{
	struct world *w = *state;
	struct error err = ERROR_INIT;
	struct steal s;
	int64_t from = history_end(w->h) / 7, to = history_end(w->h) / 7 * 6;
	assert_int_equal(steal_matrix(&w->catalog, STEAL_BY_MACHINE, NULL, from, to, &s, &err), 0);
	for (uint32_t m = 0; m < w->catalog.machines; m++) {
		struct target machine = { TARGET_MACHINE, m };
		int64_t ns, sum = 0;
		for (size_t i = 0; i < s.cells; i++)
			sum += s.cell[i].victim.machine == (int32_t)m ? s.cell[i].ns : 0;
		assert_int_equal(steal_time(&w->catalog, &machine, from, to, &ns, &err), 0);
		assert_int_equal(sum, ns);
	}
	steal_release(&s);
}

/* Sweeps a window; takes a block every `slices` slices. The blocks are joined in *out. */
static void sweep_all(struct sweep *s, struct world *w, const struct gap_rows *rows, size_t capacity, size_t held,
                      unsigned slices, struct gap_block *out, struct actors *actors, struct strtab *names)
{
	struct error err = ERROR_INIT;
	int64_t from = history_end(w->h) / 2, to = from + history_end(w->h) / 1000;
	int done = 0;
	assert_int_equal(sweep_open(s, &w->catalog, rows, from, to, &err), 0);
	s->capacity = capacity;
	s->r.held_max = held;
	*out = (struct gap_block){ .start = from, .end = from - 1 };
	for (unsigned n = 1; done == 0; n++) {
		done = sweep_step(s);
		if (done == 0 && n % slices)
			continue;
		struct gap_block block;
		sweep_take_block(s, &block);
		culprits_renumber(s, &block, actors, names);
		gap_block_append(out, &block);
	}
	assert_int_equal(done, 1);
	assert_int_equal(out->end, to);
	for (size_t i = 0; i < out->rows; i++)
		gap_sum_finish(&out->row[i].sum, from, to);
}

/* The sums do not depend on the length of the sweep's slices, down to one ns, nor on the number of intervals that tracks
 * may hold, nor on the blocks. */
static void slices(void **state)
{
	struct world *w = *state;
	struct gap_rows rows;
	struct sweep whole, sliced;
	struct gap_block a, b;
	struct actors actors = { 0 };
	struct strtab names;
	size_t culprits = 0;
	strtab_init(&names);
	sums_rows_list(&rows, &w->catalog);
	sweep_all(&whole, w, &rows, SWEEP_INTERVALS, SIZE_MAX / 2, 1000000, &a, &actors, &names);
	for (size_t pieces = 1; pieces < 500; pieces *= 6) {
		sweep_all(&sliced, w, &rows, pieces, pieces % 4 == 0 ? pieces : SIZE_MAX / 2, 1 + (unsigned)pieces % 5, &b, &actors, &names);
		assert_int_equal(a.rows, b.rows);
		for (size_t i = 0; i < a.rows; i++) {
			const struct gap_sum *x = &a.row[i].sum, *y = &b.row[i].sum;
			assert_int_equal(a.row[i].row, b.row[i].row);
			assert_true(x->gaps == y->gaps && x->longest == y->longest && x->longest_start == y->longest_start);
			assert_int_equal(x->culprits, y->culprits);
			assert_int_equal(x->lengths, y->lengths);
			assert_memory_equal(x->length, y->length, x->lengths * sizeof *x->length);
			assert_memory_equal(x->culprit, y->culprit, x->culprits * sizeof *x->culprit);
			culprits += x->culprits;
		}
		gap_block_release(&b);
		sweep_release(&sliced);
	}
	assert_true(culprits > 0);
	gap_block_release(&a);
	sweep_release(&whole);
	actors_release(&actors);
	strtab_release(&names);
	gap_rows_release(&rows);
}

struct resolved_sums { struct actors actors; struct culprit_ns of[4096]; int64_t end[4096], ns[4096]; };

static int resolved_add(void *arg, const struct resolution *p, int64_t start, int64_t end)
{
	struct resolved_sums *r = arg;
	uint32_t id = actors_put(&r->actors, &p->actor);
	assert_true(id < 4096);
	const bool continues = r->of[id].ns && r->end[id] + 1 == start;
	r->ns[id] = end - start + 1 + (continues ? r->ns[id] : 0);
	r->of[id].ns += end - start + 1;
	r->of[id].intervals += !continues;
	if (r->ns[id] > r->of[id].longest) {
		r->of[id].longest = r->ns[id];
		r->of[id].longest_start = end + 1 - r->ns[id];
	}
	r->end[id] = end;
	return 0;
}

/* For each vCPU and thread, the sweep and the resolver find the same culprits with the same sums, and the same gaps. */
static void sweep_like_resolver(void **state)
{
	struct world *w = *state;
	struct error err = ERROR_INIT;
	struct gap_rows rows;
	struct gap_block block;
	struct actors actors = { 0 };
	struct strtab names;
	struct sweep s;
	struct resolver r;
	size_t compared = 0;
	strtab_init(&names);
	sums_rows_list(&rows, &w->catalog);
	sweep_all(&s, w, &rows, 1000, 300, 2, &block, &actors, &names);
	resolver_init(&r, &w->catalog, s.from, s.to, &err);
	for (size_t i = 0, at = 0; i < rows.len; i++) {
		struct resolved_sums *sums = calloc(1, sizeof *sums);
		struct gap_walk walk;
		struct gap gap, longest = { .start = 1 };
		struct gap_sum none = { 0 }, *sum = &none;
		uint64_t gaps = 0;
		if (gap_walk_start(&walk, &w->catalog, &rows.row[i].target, s.from, s.to, &err) > 0)
			while (gap_walk_next(&walk, &gap, &err) > 0) {
				assert_int_equal(resolve_walk(&r, &rows.row[i].target, gap.start, gap.end, resolved_add, sums), 0);
				longest = gap.end - gap.start > longest.end - longest.start ? gap : longest;
				gaps++;
			}
		if (at < block.rows && block.row[at].row == gap_row_number(&w->catalog, &rows.row[i].target))
			sum = &block.row[at++].sum;
		assert_int_equal(sum->gaps, gaps);
		assert_true(gaps == 0 || (sum->longest == longest.end - longest.start + 1 && sum->longest_start == longest.start));
		assert_int_equal(sum->culprits, sums->actors.len);
		for (size_t n = 0; n < sum->culprits; n++) {
			const struct actor *p = &actors.actor[sum->culprit[n].culprit];
			size_t found = 0;
			for (; found < sums->actors.len; found++) {
				const struct actor *q = &sums->actors.actor[found];
				if (p->kind == q->kind && p->machine == q->machine && p->tid == q->tid &&
				    strcmp(strtab_get(&names, p->name), strtab_get(&r.names, q->name)) == 0)
					break;
			}
			assert_true(found < sums->actors.len);
			sums->of[found].culprit = sum->culprit[n].culprit;
			assert_memory_equal(&sum->culprit[n], &sums->of[found], sizeof *sums->of);
		}
		compared += sum->culprits;
		actors_release(&sums->actors);
		free(sums);
	}
	assert_true(compared > 10);
	resolver_release(&r);
	gap_block_release(&block);
	sweep_release(&s);
	actors_release(&actors);
	strtab_release(&names);
	gap_rows_release(&rows);
}

/* Computes the sums and cells of a flow from its intervals, and compares them. */
static void check_sums(const struct flow *whole, const struct flow *f, size_t *spilled)
{
	assert_true(f->start == whole->start && f->end == whole->end && f->entries == whole->entries);
	int64_t *ns = calloc(f->entries, sizeof *ns);
	uint64_t *pieces = calloc(f->entries, sizeof *pieces);
	for (size_t i = 0; i < whole->intervals; i++)
		pieces[whole->interval[i].entry]++;
	for (size_t i = 0; i < f->cells; i++) {
		const struct flow_cell *c = &f->cell[i];
		int64_t room = flow_column(f->start, f->end, c->column + 1, f->columns) - flow_column(f->start, f->end, c->column,
		                                                                                      f->columns);
		assert_true(c->column < f->columns && c->ns > 0 && c->ns <= room);
		ns[c->entry] += c->ns;
	}
	for (size_t i = 0; i < f->entries; i++) {
		const struct flow_entry *a = &whole->entry[i], *b = &f->entry[i];
		assert_true(a->duration == b->duration && a->share == b->share && a->intervals == b->intervals);
		assert_true(a->longest.start == b->longest.start && a->longest.ns == b->longest.ns);
		assert_true(a->actor.tid == b->actor.tid && a->actor.kind == b->actor.kind && a->intervals == pieces[i]);
		assert_string_equal(whole->name[a->actor.name], f->name[b->actor.name]);
		assert_true(f->columns == 0 || ns[i] == b->duration);
	}
	*spilled += f->intervals == 0;
	free(ns);
	free(pieces);
}

/* The sums do not depend on the length of the steps, with any options. */
static void steps(void **state)
{
	struct world *w = *state;
	struct error err = ERROR_INIT;
	struct target s = world_target(w, "A/5");
	size_t spilled = 0, steps = 0;
	for (int64_t span = history_end(w->h); span > 3; span /= 50) {
		struct flow whole, f;
		int64_t from = history_end(w->h) - span;
		assert_int_equal(query_answer(flow_open(&w->catalog, &s, from, from + span, NULL, &err), &whole, &err), 0);
		for (unsigned columns = 0; columns < 300; columns = columns * 9 + 1) {
			struct query *q = flow_open(&w->catalog, &s, from, from + span,
			                            &(struct flow_options){ .intervals = 1000, .columns = columns }, &err);
			double done = 0;
			assert_true(span < history_end(w->h) || parallel_workers(0) == 1 || query_parts(q) > 1);
			for (int r = 0; r == 0; steps++) {
				r = query_step(q, 0, &err);
				assert_true(r >= 0 && query_done(q) >= done && query_done(q) <= 1);
				done = query_done(q);
			}
			assert_true(done == 1);
			query_take(q, &f);
			query_close(q);
			check_sums(&whole, &f, &spilled);
			assert_true(f.intervals == (whole.intervals <= 1000 ? whole.intervals : 0));
			flow_release(&f);
		}
		flow_release(&whole);
	}
	assert_true(spilled > 1 && steps > 100);
}

/* Other queries in steps: the answer is the same as in one step, and a query that is closed before its end leaks
 * nothing. */
static void steps_of_matrices_and_gaps(void **state)
{
	struct world *w = *state;
	struct error err = ERROR_INIT;
	struct target s = world_target(w, "A");
	struct gap_options o = { 0, history_end(w->h), 0, 50, false };
	struct gap_list once, l;
	struct steal all, m;
	assert_int_equal(query_answer(gap_list_open(&w->catalog, &s, &o), &once, &err), 0);
	struct query *q = gap_list_open(&w->catalog, &s, &o);
	size_t n = 0;
	while (query_step(q, 0, &err) == 0)
		n++;
	query_take(q, &l);
	query_close(q);
	assert_true(n > 10 && l.all.count == once.all.count && l.all.total == once.all.total && l.items == once.items &&
	            l.all.p50 == once.all.p50);
	for (size_t i = 0; i < l.items; i++)
		assert_true(l.item[i].gap.start == once.item[i].gap.start && l.item[i].culprits == once.item[i].culprits);
	gap_list_release(&l);
	gap_list_release(&once);
	for (int by = STEAL_BY_MACHINE; by <= STEAL_BY_THREAD; by++) {
		assert_int_equal(steal_matrix(&w->catalog, (enum steal_by)by, NULL, 0, o.to, &all, &err), 0);
		/* by thread with at most three cells: the answer is by machine */
		for (size_t most = 0; most < 4; most += 3) {
			q = steal_open(&w->catalog, &(struct steal_options){ (enum steal_by)by, NULL, 0, o.to, most, GROUP_NONE });
			while (query_step(q, 0, &err) == 0)
				n++;
			query_take(q, &m);
			query_close(q);
			assert_int_equal(m.by, most ? STEAL_BY_MACHINE : by);
			assert_true((most != 0 && by != STEAL_BY_MACHINE) == (m.cells != all.cells));
			steal_release(&m);
		}
		steal_release(&all);
	}
	q = gap_list_open(&w->catalog, &s, &o);
	assert_int_equal(query_step(q, 0, &err), 0);
	query_close(q);
}

static int setup(void **state)
{
	static struct world w;
	make(&w);
	*state = &w;
	return 0;
}

static int teardown(void **state)
{
	world_release(*state);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(flows),
		cmocka_unit_test(nobodies),
		cmocka_unit_test(matrices),
		cmocka_unit_test(conservation),
		cmocka_unit_test(slices),
		cmocka_unit_test(sweep_like_resolver),
		cmocka_unit_test(steps),
		cmocka_unit_test(steps_of_matrices_and_gaps),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
