/* Flows, gaps and the steal matrix of random histories, compared with a brute-force resolver with one value per
 * attribute and ns. Most histories contain contradictions (threads that wait for themselves, CPUs without a thread): for
 * any file, the answers must tile the window, add up and agree. */
#include "query_answers.h"
#include "query_brute.h"
#include "test.h"

#include <inttypes.h>
#include <unistd.h>

#define WORLDS 600

/* ---- Comparisons */

static int machine_of(const struct world *w, int32_t system)
{
	for (int k = 0; system >= 0 && k < MACHINES; k++)
		if (strcmp(w->catalog.machine[system].name, machine_name[k]) == 0)
			return k;
	return -1;
}

static uint32_t catalog_index(const struct world *w, int i)
{
	int machine = catalog_find_machine(&w->catalog, machine_name[threads[i].machine]);
	int found = catalog_find_thread(&w->catalog, (uint32_t)machine, threads[i].tid);
	assert_true(found >= 0);
	return (uint32_t)found;
}

static void check_piece(const struct world *w, const struct flow *f, const struct flow_interval *p, int64_t t,
                        struct brute_answer want)
{
	const struct actor *who = &f->entry[p->entry].actor;
	if ((int)who->kind != want.kind || machine_of(w, who->machine) != want.machine || who->tid != want.tid ||
	    p->pcpu != want.pcpu || strcmp(f->name[who->name], want.name) != 0)
		fail_msg("at %" PRId64 ": %s %d/%d %s @%d, want %s %d/%d %s @%d", t, flow_kind_name[who->kind],
		         machine_of(w, who->machine), who->tid, f->name[who->name], p->pcpu, flow_kind_name[want.kind],
		         want.machine, want.tid, want.name, want.pcpu);
}

/* Takes 1 ns off the time lost to the actor of an interval on its CPU. */
static void take_off_cpu(struct flow *f, const struct flow_interval *p)
{
	size_t i = 0;
	while (i < f->cpus && (f->cpu[i].entry != p->entry || f->cpu[i].pcpu != p->pcpu))
		i++;
	assert_true(i < f->cpus);
	f->cpu[i].ns--;
}

static void check_thread(const struct world *w, int i, int64_t from, int64_t to)
{
	const struct flow_options options = { .intervals = SIZE_MAX, .cpus = true };
	struct error err = ERROR_INIT;
	struct flow f;
	int first = 0, last = SPAN - 1;
	while (first < SPAN && model.status[i].v[first] == NUL)
		first++;
	while (last >= 0 && model.status[i].v[last] == NUL)
		last--;
	const struct target s = { TARGET_THREAD, catalog_index(w, i) };
	int r = query_answer(flow_open(&w->catalog, &s, from, to, &options, &err), &f, &err);
	if (last < first || to < first || from > last) {
		assert_int_equal(r, -1);
		return;
	}
	assert_int_equal(r, 0);
	world_check_tiling(&f);
	assert_int_equal(f.start, from > first ? from : first);
	assert_int_equal(f.end, to < last ? to : last);
	int64_t entry_ns[FLOW_KIND_COUNT] = { 0 }, brute_ns[FLOW_KIND_COUNT] = { 0 }, lost = 0, brute_lost = 0;
	for (size_t k = 0; k < f.entries; k++) {
		entry_ns[f.entry[k].actor.kind] += f.entry[k].duration;
		lost += f.entry[k].lost;
	}
	for (size_t k = 0; k < f.intervals; k++) {
		const struct flow_interval *p = &f.interval[k];
		const struct actor *who = &f.entry[p->entry].actor;
		assert_false(who->kind == FLOW_PREEMPTING && machine_of(w, who->machine) == threads[i].machine &&
		             who->tid == threads[i].tid);
		for (int64_t t = p->start; t <= p->end; t++) {
			struct brute_answer want = of_thread(i, (int)t);
			check_piece(w, &f, p, t, want);
			brute_ns[want.kind]++;
			int64_t v = model.status[i].v[t];
			if (v == THREAD_PREEMPTED || v == THREAD_VIRT_PREEMPTED) {
				brute_lost++;
				take_off_cpu(&f, p);
			}
		}
	}
	for (size_t k = 0; k < f.cpus; k++)
		assert_int_equal(f.cpu[k].ns, 0);
	assert_int_equal(lost, brute_lost);
	assert_memory_equal(entry_ns, brute_ns, sizeof entry_ns);
	flow_release(&f);
}

static const struct brute_row *gap_row(const struct world *w, const struct target *s, int *thread, int *vcpu)
{
	*thread = *vcpu = -1;
	if (s->kind == TARGET_THREAD) {
		const struct catalog_thread *th = &w->catalog.thread[s->index];
		*thread = thread_index(machine_of(w, (int32_t)th->machine), th->tid);
		return &model.status[*thread];
	}
	const struct catalog_cpu *cpu = &w->catalog.cpu[s->index];
	*vcpu = vcpu_index(machine_of(w, (int32_t)cpu->machine), cpu->number);
	return &model.vstatus[*vcpu];
}

static bool is_gap(const struct target *s, int64_t v)
{
	return s->kind == TARGET_THREAD ? v == THREAD_PREEMPTED || v == THREAD_VIRT_PREEMPTED
	                                 : v == VCPU_PREEMPTED || v == VCPU_HOST_BLOCKED || v == VCPU_WAKING;
}

struct piece_sums { const struct target *of; int64_t ns[FLOW_KIND_COUNT], at; };

static int add_piece(void *arg, const struct gap_interval *p)
{
	struct piece_sums *sums = arg;
	if (!p)
		return 0;
	assert_memory_equal(&p->gap->target, sums->of, sizeof *sums->of);
	assert_true(p->start == p->gap->start || p->start == sums->at + 1);
	sums->ns[p->actor.kind] += p->end - p->start + 1;
	sums->at = p->end;
	return 0;
}

/* Compares the streamed intervals of gaps with the list of gaps. */
static void check_pieces(const struct world *w, const struct target *s, const struct gap_list *l, int64_t from, int64_t to)
{
	struct error err = ERROR_INIT;
	struct piece_sums sums = { .of = s };
	assert_int_equal(gap_each_interval_of(&w->catalog, s, from, to, add_piece, &sums, &err), 0);
	for (size_t i = 0; i < l->culprits; i++)
		sums.ns[l->culprit[i].actor.kind] -= l->culprit[i].duration;
	for (int i = 0; i < FLOW_KIND_COUNT; i++)
		assert_int_equal(sums.ns[i], 0);
}

/* Compares gap_find() and gap_at() at each ns, and steal_time() in a random window with the list of gaps. */
static void check_gaps(const struct world *w, const struct target *s)
{
	struct error err = ERROR_INIT;
	int thread, vcpu;
	const struct brute_row *row = gap_row(w, s, &thread, &vcpu);
	int64_t from = rnd(SPAN), to = from + rnd(SPAN), ns = 0, want = 0;
	int64_t min = rnd(5);
	uint64_t pieces = 0;
	for (int t = 0; t < SPAN; t++) {
		struct gap g;
		int a = t, b;
		while (a < SPAN && (!is_gap(s, row->v[a]) || a == t || is_gap(s, row->v[a - 1])))
			a++;
		for (b = a; b < SPAN && is_gap(s, row->v[b]); b++)
			;
		int found = gap_find(&w->catalog, s, t, 1, &g, &err);
		assert_int_equal(found, a < SPAN);
		if (found) {
			assert_int_equal(g.start, a);
			assert_int_equal(g.end, b - 1);
		}
		b = t;
		while (b >= 0 && (!is_gap(s, row->v[b]) || b == t || is_gap(s, row->v[b + 1])))
			b--;
		for (a = b; a >= 0 && is_gap(s, row->v[a]); a--)
			;
		found = gap_find(&w->catalog, s, t, -1, &g, &err);
		assert_int_equal(found, b >= 0);
		if (found) {
			assert_int_equal(g.start, a + 1);
			assert_int_equal(g.end, b);
		}
		found = gap_at(&w->catalog, s, t, &g, &err);
		assert_int_equal(found, is_gap(s, row->v[t]));
		if (found)
			assert_true(g.start <= t && t <= g.end);
		bool in = t >= from && t <= to && is_gap(s, row->v[t]);
		want += in;
		pieces += in && (t == from || !is_gap(s, row->v[t - 1]));
	}
	struct demand demand;
	assert_int_equal(demand_of(&w->catalog, s, from, to, &demand, &err), 0);
	assert_int_equal(demand.lost - demand.vmm_ns, want);
	assert_int_equal(steal_time(&w->catalog, s, from, to, &ns, &err), 0);
	assert_int_equal(ns, demand.lost);
	struct gap_list l;
	struct gap_options o = { from, to, 0, 0, false };
	assert_int_equal(query_answer(gap_list_open(&w->catalog, s, &o), &l, &err), 0);
	assert_int_equal(l.all.total, want);
	assert_int_equal(l.all.count, pieces);
	assert_int_equal(l.items, pieces);
	uint64_t longer = 0;
	for (size_t i = 0; i < l.items; i++) {
		int64_t length = l.item[i].gap.end - l.item[i].gap.start + 1, sum = 0;
		longer += length >= min;
		for (size_t k = 0; k < l.item[i].culprits; k++)
			sum += l.culprit[l.item[i].culprit + k].duration;
		assert_int_equal(sum, length);
	}
	check_pieces(w, s, &l, from, to);
	gap_list_release(&l);
	o = (struct gap_options){ from, to, min, 2, false };
	assert_int_equal(query_answer(gap_list_open(&w->catalog, s, &o), &l, &err), 0);
	assert_int_equal(l.all.count, longer);
	assert_int_equal(l.items, longer < 2 ? longer : 2);
	gap_list_release(&l);
}

static int64_t actor_sum(const struct world *w, const struct steal *s, int victim, int tid, int culprit, int kind)
{
	int64_t ns = 0;
	for (size_t i = 0; i < s->cells; i++) {
		const struct steal_cell *c = &s->cell[i];
		if (machine_of(w, c->victim.machine) == victim && c->victim.tid == tid &&
		    machine_of(w, c->culprit.machine) == culprit && (kind < 0 || (int)c->culprit.kind == kind))
			ns += c->ns;
	}
	return ns;
}

/* The lost time of a vCPU is the same by machine and by thread. */
static void check_vcpu_matrix(const struct world *w, int64_t from, int64_t to)
{
	struct error err = ERROR_INIT;
	for (uint32_t i = 0; i < w->catalog.cpus; i++) {
		const struct target cpu = { TARGET_CPU, i };
		int64_t lost[2] = { 0 };
		for (int by = STEAL_BY_MACHINE; by <= STEAL_BY_THREAD; by++) {
			struct steal s;
			assert_int_equal(steal_matrix(&w->catalog, (enum steal_by)by, &cpu, from, to, &s, &err), 0);
			for (size_t k = 0; k < s.cells; k++) {
				assert_int_equal(s.cell[k].victim.machine, w->catalog.cpu[i].machine);
				assert_int_equal(s.cell[k].victim.tid, -1);
				lost[by] += s.cell[k].ns;
			}
			steal_release(&s);
		}
		assert_int_equal(lost[STEAL_BY_MACHINE], lost[STEAL_BY_THREAD]);
	}
}

static void check_matrix(const struct world *w)
{
	struct error err = ERROR_INIT;
	struct steal s;
	int64_t from = rnd(SPAN / 2), to = from + rnd(SPAN);
	int64_t by_machine[MACHINES][MACHINES + 1] = { 0 }, by_thread[THREADS][MACHINES + 1][FLOW_KIND_COUNT] = { 0 };
	for (int64_t t = from; t <= to && t < SPAN; t++) {
		struct target thread = { TARGET_THREAD, 0 }, cpu = { TARGET_CPU, 0 };
		for (int i = 0; i < THREADS; i++) {
			if (!is_gap(&thread, model.status[i].v[t]) || threads[i].vm >= 0)
				continue;
			struct brute_answer a = of_thread(i, (int)t);
			by_thread[i][a.machine + 1][a.kind]++;
			if (threads[i].machine == HOST || threads[i].machine == CONTAINER)
				by_machine[threads[i].machine][(a.kind == FLOW_WAITING ? -1 : a.machine) + 1]++;
		}
		for (int v = 0; v < VCPUS; v++) {
			if (!is_gap(&cpu, model.vstatus[v].v[t]))
				continue;
			struct brute_answer a = vcpu_out(v, (int)t);
			by_machine[vcpus[v].vm][(a.kind == FLOW_WAITING ? -1 : a.machine) + 1]++;
		}
	}
	check_vcpu_matrix(w, from, to);
	assert_int_equal(steal_matrix(&w->catalog, STEAL_BY_THREAD, NULL, from, to, &s, &err), 0);
	for (int i = 0; i < THREADS; i++)
		for (int k = 0; k <= MACHINES && threads[i].vm < 0; k++)
			for (int kind = 0; kind < FLOW_KIND_COUNT; kind++)
				assert_int_equal(actor_sum(w, &s, threads[i].machine, threads[i].tid, k - 1, kind),
				                 by_thread[i][k][kind]);
	steal_release(&s);
	assert_int_equal(steal_matrix(&w->catalog, STEAL_BY_MACHINE, NULL, from, to, &s, &err), 0);
	for (int i = 0; i < MACHINES; i++) {
		struct target machine = { TARGET_MACHINE, (uint32_t)catalog_find_machine(&w->catalog, machine_name[i]) };
		int64_t sum = 0;
		for (int k = 0; k <= MACHINES; k++) {
			assert_int_equal(actor_sum(w, &s, i, -1, k - 1, -1), by_machine[i][k]);
			sum += by_machine[i][k];
		}
		struct demand demand;
		assert_int_equal(demand_of(&w->catalog, &machine, from, to, &demand, &err), 0);
		assert_int_equal(demand.lost - demand.vmm_ns, sum);
	}
	steal_release(&s);
}

/* Reading many intervals in one call returns the same as reading them one by one, also mixed. */
static void check_read(const struct world *w)
{
	struct error err = ERROR_INIT;
	struct history_cursor one, many;
	struct interval iv, read[8];
	uint32_t attr = w->catalog.thread[rnd(w->catalog.threads)].status;
	int64_t from = (int64_t)rnd(SPAN + 4) - 2, to = from + rnd(SPAN);
	int n, i = 0, r;
	assert_int_equal(history_range(&one, w->h, attr, from, to, &err), 0);
	assert_int_equal(history_range(&many, w->h, attr, from, to, &err), 0);
	do {
		n = rnd(3) ? history_range_read(&many, read, 1 + rnd(8), &err) : history_range_next(&many, read, &err);
		assert_true(n >= 0);
		for (i = 0; i < n; i++) {
			assert_int_equal(history_range_next(&one, &iv, &err), 1);
			assert_int_equal(iv.start, read[i].start);
			assert_int_equal(iv.end, read[i].end);
			assert_int_equal(iv.value, read[i].value);
		}
	} while (n > 0);
	r = history_range_next(&one, &iv, &err);
	assert_int_equal(r, 0);
}

/* Contradictions must not cause errors or crashes; other tests check the texts. */
static void check_words(const struct world *w)
{
	struct error err = ERROR_INIT;
	struct target s = { TARGET_THREAD, rnd(w->catalog.threads) }, c = { TARGET_CPU, rnd(w->catalog.cpus) };
	struct periodic_list l;
	char line[400], *text = NULL;
	int64_t t = rnd(SPAN);
	assert_int_equal(explain_status(&w->catalog, &s, t, line, sizeof line, &err), 0);
	assert_int_equal(explain_status(&w->catalog, &c, t, line, sizeof line, &err), 0);
	if (explain_window(&w->catalog, &s, t, SPAN, &text, &err) == 0)
		free(text);
	if (query_answer(explain_open(&w->catalog, &s, t, &err), &text, &err) == 0)
		free(text);
	assert_int_equal(periodic_timers_of(&w->catalog, 0, SPAN, &l, &err), 0);
	periodic_release(&l);
}

static void brute_force(void **state)
{
	struct world w;
	(void)state;
	for (int n = 0; n < WORLDS; n++) {
		seed_set((uint64_t)n * 1000003);
		make_model();
		make_history(&w);
		for (int i = 0; i < THREADS; i++) {
			int64_t from = rnd(SPAN), to = from + rnd(SPAN);
			check_thread(&w, i, INT64_MIN, INT64_MAX);
			check_thread(&w, i, from, to);
			check_gaps(&w, &(struct target){ TARGET_THREAD, catalog_index(&w, i) });
		}
		for (uint32_t i = 0; i < w.catalog.cpus; i++)
			if (w.catalog.machine[w.catalog.cpu[i].machine].kind == MACHINE_VM)
				check_gaps(&w, &(struct target){ TARGET_CPU, i });
		check_matrix(&w);
		check_words(&w);
		for (int i = 0; i < 20; i++)
			check_read(&w);
		world_release(&w);
	}
}

static char *all_flows(const struct world *w, char *buf, size_t size, bool *failed)
{
	size_t used = 0;
	*buf = '\0';
	for (uint32_t i = 0; i < w->catalog.threads; i++) {
		struct error err = ERROR_INIT;
		struct flow f;
		const struct target s = { TARGET_THREAD, i };
		if (query_answer(flow_open(&w->catalog, &s, INT64_MIN, INT64_MAX, NULL, &err), &f, &err) < 0) {
			assert_true(err.text[0]);
			*failed = *failed || !strstr(err.text, "nothing is known");
			continue;
		}
		world_flow_text(w, &f, buf + used, size - used);
		used += strlen(buf + used);
		flow_release(&f);
	}
	return buf;
}

/* A damaged file causes an error or the right answer, whichever byte is changed. */
static void damaged(void **state)
{
	static char bytes[1 << 17], truth[1 << 16], text[1 << 16];
	struct world w;
	bool failed = false;
	int errors = 0;
	(void)state;
	seed_set(99);
	make_model();
	make_history(&w);
	all_flows(&w, truth, sizeof truth, &failed);
	assert_false(failed);
	FILE *f = fopen(w.path, "rb");
	size_t size = fread(bytes, 1, sizeof bytes, f);
	fclose(f);
	assert_true(size > 0 && size < sizeof bytes);
	for (int n = 0; n < 400; n++) {
		struct error err = ERROR_INIT;
		struct world d = { .h = NULL };
		char path[sizeof w.path + 2];
		size_t at = (rnd(1 << 15) << 15 | rnd(1 << 15)) % size;
		char was = bytes[at];
		bytes[at] = (char)(was ^ (char)(1 + rnd(255)));
		snprintf(path, sizeof path, "%s.x", w.path);
		f = fopen(path, "wb");
		assert_int_equal(fwrite(bytes, 1, size, f), size);
		fclose(f);
		bytes[at] = was;
		failed = false;
		d.h = history_open(path, &err);
		if (d.h && catalog_open(&d.catalog, d.h, &err) == 0) {
			all_flows(&d, text, sizeof text, &failed);
			if (!failed)
				assert_string_equal(text, truth);
			catalog_release(&d.catalog);
		} else {
			assert_true(err.text[0]);
			failed = true;
		}
		errors += failed;
		history_close(d.h);
		unlink(path);
	}
	assert_true(errors > 100);
	world_release(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(brute_force), cmocka_unit_test(damaged) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
