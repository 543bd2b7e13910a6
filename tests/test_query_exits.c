/* query/: exits of a vCPU, from its status, the reason of its latest exit, and its thread. */
#include "test.h"

#include "query_world.h"

/* 0 entry  10 exit npf  20 entry  30 exit npf  40 entry (idle)  50 exit hlt, blocked 55, woken 70, on the CPU 80  90
 * entry  100 exit msr  105 exit npf (without an entry between)  110 entry  120 events lost  130 exit hlt, until the end */
static void make(struct world *w)
{
	world_open(w);
	world_has(w, "host/CPU0", .current = "0 42; 55 0; 80 42");
	world_has(w, "host/42", .status = "0 RUNNING; 55 BLOCKED; 70 PREEMPTED; 80 RUNNING", .cpu = "0 0", .name = "0 kvm");
	world_has(w, "A/CPU0", .host_thread = "0 42", .pcpu = "0 0",
	          .status = "0 RUNNING; 10 VMM; 20 RUNNING; 30 VMM; 40 IDLE; 50 VMM; 55 IDLE; 70 WAKING; 80 VMM; 90 RUNNING; "
	                    "100 VMM; 110 RUNNING; 120 UNKNOWN; 130 VMM", .current = "0 7; 40 0; 95 7",
	          .exit = "10 npf; 50 hlt; 100 msr; 105 npf; 120 -; 130 hlt");
	world_has(w, "A/7", .status = "0 RUNNING; 40 BLOCKED; 95 RUNNING", .name = "0 work");
	world_close(w, 0, 199);
}

static void check(const struct world *w, const char *whose, int64_t from, int64_t to, bool by_thread, const char *want)
{
	struct exit_list l;
	struct error err = ERROR_INIT;
	char text[1000] = "";
	struct target s = world_target(w, whose);
	struct query *q = exits_open(&w->catalog, &(struct exit_options){ .only = &s, .from = from, .to = to,
	                                                               .by_thread = by_thread }, &err);
	assert_non_null(q);
	assert_int_equal(query_run(q, NULL, &err), 0);
	query_take(q, &l);
	query_close(q);
	for (size_t i = 0; i < l.rows; i++) {
		const struct exit_row *r = &l.row[i];
		size_t used = strlen(text);
		snprintf(text + used, sizeof text - used, "%s%d %s %s %d/%d %d %d..%d@%d", i ? "; " : "", (int)r->tid,
		         l.name[r->name],
		         l.name[r->reason], (int)r->timed, (int)r->count, (int)r->total, (int)r->min, (int)r->max, (int)r->max_at);
	}
	assert_string_equal(text, want);
	exits_release(&l);
}

static void test_exits(void **state)
{
	(void)state;
	struct world w;
	make(&w);
	check(&w, "A", 0, 199, false, "-1  hlt 1/2 40 40..40@50; -1  npf 3/3 25 5..10@10; -1  msr 0/1 0 0..0@0");
	check(&w, "host/42", 0, 199, false, "-1  hlt 1/2 40 40..40@50; -1  npf 3/3 25 5..10@10; -1  msr 0/1 0 0..0@0");
	check(&w, "A/CPU0", 0, 199, true,
	      "0 swapper hlt 1/1 40 40..40@50; 7 work npf 3/3 25 5..10@10; 7 work msr 0/1 0 0..0@0; "
	                                  "7 work hlt 0/1 0 0..0@0");
	check(&w, "A/7", 0, 199, true, "7 work npf 3/3 25 5..10@10; 7 work msr 0/1 0 0..0@0; 7 work hlt 0/1 0 0..0@0");
	/* An exit belongs to the window in which it starts. */
	check(&w, "A", 10, 29, false, "-1  npf 1/1 10 10..10@10");
	check(&w, "A", 11, 30, false, "-1  npf 1/1 10 10..10@30");
	check(&w, "A", 31, 49, false, "");
	check(&w, "A", 60, 99, false, "");
	check(&w, "A", 50, 50, false, "-1  hlt 1/1 40 40..40@50");
	world_release(&w);
}

struct told { int64_t at[10]; uint32_t reason[10]; int n; };

static void note(void *arg, uint32_t vcpu, uint32_t reason, int64_t t)
{
	struct told *told = arg;
	(void)vcpu;
	assert_true(told->n < 10);
	told->at[told->n] = t;
	told->reason[told->n++] = reason;
}

/* With a callback, the query reports each exit and returns no rows. */
static void test_begins(void **state)
{
	(void)state;
	struct world w;
	struct exit_list l;
	struct error err = ERROR_INIT;
	struct told told = { .n = 0 };
	char text[200] = "";
	make(&w);
	const struct exit_options o = { .from = 30, .to = 129, .begins = note, .arg = &told };
	struct query *q = exits_open(&w.catalog, &o, &err);
	assert_non_null(q);
	assert_int_equal(query_run(q, NULL, &err), 0);
	query_take(q, &l);
	query_close(q);
	assert_int_equal(l.rows, 0);
	for (int i = 0; i < told.n; i++)
		snprintf(text + strlen(text), sizeof text - strlen(text), "%d %s; ", (int)told.at[i], l.name[told.reason[i]]);
	assert_string_equal(text, "30 npf; 50 hlt; 100 msr; 105 npf; ");
	exits_release(&l);
	world_release(&w);
}

static void test_refused(void **state)
{
	(void)state;
	struct world w;
	struct error err = ERROR_INIT;
	make(&w);
	struct target pcpu = world_target(&w, "host/CPU0");
	assert_null(exits_open(&w.catalog, &(struct exit_options){ .only = &pcpu, .to = 199 }, &err));
	assert_int_equal(err.status, STATUS_USAGE);
	world_release(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_exits), cmocka_unit_test(test_begins),
	                                    cmocka_unit_test(test_refused) };
	return cmocka_run_group_tests(tests, NULL, NULL);
}
