/* query/: cases that the tests with random histories do not check exactly, each in a minimal history. */
#include "query_answers.h"
#include "query_world.h"
#include "test.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/notes.h"

#define H "/Host/Threads/"

/* A thread loses its CPU without a known culprit, then to two handlers one after the other: three intervals, without a
 * thread as culprit. */
static int note_piece(void *arg, const struct gap_interval *p)
{
	char *text = arg;
	const size_t used = strlen(text);
	if (p)
		snprintf(text + used, 200 - used, "%d-%d %s %s;", (int)p->start, (int)p->end, flow_kind_name[p->actor.kind],
		         p->name);
	return 0;
}

static void test_pieces(void **state)
{
	(void)state;
	struct world w;
	char text[200] = "";
	struct error err = ERROR_INIT;
	const struct progress silent = { 0 };
	world_open(&w);
	world_has(&w, "host/1", .status = "0 PREEMPTED; 30 RUNNING", .cpu = "0 0");
	world_has(&w, "host/CPU0", .current = "0 0; 30 1", .interrupt = "10 irq/1; 20 irq/2; 30 -");
	world_close(&w, 0, 39);
	assert_int_equal(gap_each_interval(&w.catalog, 0, 39, note_piece, text, &silent, &err), 0);
	assert_string_equal(text, "0-9 idle-cpu ;10-19 irq irq/1;20-29 irq irq/2;");
	world_release(&w);
}

/* A thread that waits for itself is a contradiction without a culprit; the next thread on its CPU is a culprit. */
static void test_self(void **state)
{
	(void)state;
	struct world w;
	struct steal s;
	struct error err = ERROR_INIT;
	world_open(&w);
	world_has(&w, "host/42", .status = "0 PREEMPTED; 30 RUNNING", .cpu = "0 0");
	world_has(&w, "host/43", .status = "0 RUNNING; 30 BLOCKED");
	world_has(&w, "host/CPU0", .current = "0 42; 10 43; 30 42");
	world_close(&w, 0, 39);
	assert_int_equal(steal_matrix(&w.catalog, STEAL_BY_MACHINE, NULL, 0, 39, &s, &err), 0);
	assert_int_equal(s.cells, 2);
	assert_int_equal(s.cell[0].culprit.machine, 0);
	assert_int_equal(s.cell[0].ns, 20);
	assert_int_equal(s.cell[1].culprit.kind, FLOW_UNKNOWN);
	assert_int_equal(s.cell[1].ns, 10);
	steal_release(&s);
	world_release(&w);
}

/* A/6 has the vCPU that A/5 waits for. While the host trace contains no event of A/6, its culprit is unknown. */
static void test_host_silent(void **state)
{
	(void)state;
	static const char *const flow[2][2] = {  /* perhaps a physical machine, or known to be a VM; without and with host */
		{ "0-9 preempting A/6; 10-11 irq A/-1 timer; 12-29 preempting A/6; 30-39 running A/5",
		  "0-19 unknown; 20-29 preempting A/6; 30-39 running A/5" },
		{ "0-9 current A/6; 10-11 current A/-1 timer; 12-29 current A/6; 30-39 running A/5",
		  "0-19 unknown; 20-29 current A/6; 30-39 running A/5" },
	};
	for (int i = 0; i < 4; i++) {
		const bool is_virtual = i / 2, traced = i % 2;
		struct world w;
		world_open(&w);
		if (is_virtual)
			world_row(&w, "/Virtual Machines/A/Virtual", "0 1");
		world_has(&w, "A/CPU0", .status = traced ? "0 -; 20 RUNNING" : NULL, .current = "0 6; 30 5",
		          .interrupt = "0 -; 10 timer; 12 -");
		world_has(&w, "A/5", .status = "0 PREEMPTED; 30 RUNNING", .cpu = "0 0");
		world_close(&w, 0, 39);
		world_check_flow(&w, "A/5", 0, 39, flow[is_virtual][traced]);
		world_release(&w);
	}
}

/* A VM is stopped right after its idle guest has woken a thread: the pause delays the thread. */
static void test_paused(void **state)
{
	(void)state;
	struct world w;
	world_open(&w);
	world_has(&w, "host/42", .status = "0 RUNNING; 10 BLOCKED; 30 RUNNING", .cpu = "0 0");
	world_has(&w, "host/CPU0", .current = "0 42; 10 0; 30 42");
	world_has(&w, "A/CPU0", .host_thread = "0 42", .status = "0 IDLE; 35 RUNNING", .current = "0 0; 35 5",
	          .out_by = "0 -; 10 pause; 30 -");
	world_has(&w, "A/5", .status = "0 PREEMPTED; 35 RUNNING", .cpu = "0 0");
	world_close(&w, 0, 39);
	world_check_flow(&w, "A/5", 0, 39, "0-9 idle-cpu; 10-29 limited pause @0; 30-34 idle-cpu; 35-39 running A/5 @0");
	world_release(&w);
}

/* Each state of a vCPU counts once, as defined. */
static void test_demand(void **state)
{
	(void)state;
	struct world w;
	struct demand d;
	struct error err = ERROR_INIT;
	int64_t ran = 0, lost = 0;
	world_open(&w);
	world_has(&w, "A/CPU0",
	          .status = "0 RUNNING; 1 WAKING; 3 PREEMPTED; 7 HOST_BLOCKED; 15 VMM; 31 IDLE; 63 UNKNOWN; 127 -");
	world_close(&w, 0, 199);
	const struct target cpu = world_target(&w, "A/vCPU0");
	assert_int_equal(demand_of(&w.catalog, &cpu, 0, 199, &d, &err), 0);
	assert_int_equal(d.ran, 1);
	assert_int_equal(d.lost, 2 + 4 + 8 + 16);
	assert_int_equal(d.vmm_ns, 16);
	assert_int_equal(d.slept, 32);
	assert_int_equal(d.alive, 127);
	assert_int_equal(demand_cells(&w.catalog, &cpu, (const int64_t[]){ 0, 200 }, 1, &ran, &lost, &err), 0);
	assert_int_equal(ran, 1);
	assert_int_equal(lost, 2 + 4 + 8 + 16);
	world_release(&w);
}

/* The softirq of a block device counts as a device. */
static void test_block(void **state)
{
	(void)state;
	struct world w;
	struct wait_list l;
	struct error err = ERROR_INIT;
	world_open(&w);
	world_has(&w, "host/40", .status = "0 BLOCKED; 10 RUNNING", .woken_by = "10 host/0", .woken_in = "10 softirq/4-BLOCK");
	world_has(&w, "A/CPU0", .host_thread = "0 40", .status = "0 IDLE; 10 RUNNING");
	world_close(&w, 0, 19);
	assert_int_equal(query_answer(waits_open(&w.catalog, NULL, 0, 19), &l, &err), 0);
	assert_int_equal(l.rows, 1);
	assert_string_equal(wait_kind_name[l.row[0].kind], "device");
	waits_release(&l);
	world_release(&w);
}

/* A warning on a machine concerns the machines inside it, but not its outer machine. */
static void test_doubts(void **state)
{
	(void)state;
	struct world w;
	struct notes notes = { 0 }, of = { 0 };
	size_t size;
	world_open(&w);
	world_has(&w, "A/CPU0", .status = "0 RUNNING");
	world_has(&w, "N/CPU0", .status = "0 RUNNING");
	world_row(&w, "/Virtual Machines/N/Parent", "0 A");
	world_has(&w, "B/CPU0", .status = "0 RUNNING");
	notes_add_at(&notes, NOTE_KIND_CLOCK, "A", INT64_MIN, INT64_MAX, "outer");
	notes_add_at(&notes, NOTE_KIND_CLOCK, "N", INT64_MIN, INT64_MAX, "inner");
	notes_add_at(&notes, NOTE_KIND_INFO, "N", INT64_MIN, INT64_MAX, "no doubt");
	notes_add_at(&notes, NOTE_KIND_LOSS, NULL, 50, 60, "everybody's");
	char *bytes = notes_pack(&notes, &size);
	assert_int_equal(history_meta_set(w.b, "notes", bytes, size), 0);
	free(bytes);
	notes_release(&notes);
	world_close(&w, 0, 99);
	const struct { const char *of; int64_t to; const char *want; } case_of[] = {
		{ "N", 99, "outer inner everybody's " }, { "A", 99, "outer everybody's " }, { "B", 49, "" },
		{ "N", 49, "outer inner " },
	};
	for (size_t i = 0; i < COUNT(case_of); i++) {
		char text[100] = "";
		const struct target s = world_target(&w, case_of[i].of);
		assert_true(warnings_of(&w.catalog, &s, 0, case_of[i].to, &of));
		for (size_t k = 0; k < of.len; k++)
			snprintf(text + strlen(text), sizeof text - strlen(text), "%s ", of.item[k].text);
		assert_string_equal(text, case_of[i].want);
		notes_release(&of);
	}
	world_release(&w);
}

/* The main culprit is the thread that took more than half of the time taken by its machine. A thread with exactly half
 * is not. */
static void check_culprit(const char *turns, int32_t tid, int64_t ns)
{
	struct world w;
	struct summary s;
	struct error err = ERROR_INIT;
	world_open(&w);
	world_has(&w, "A/CPU0", .pcpu = "0 0", .status = "0 PREEMPTED; 100 RUNNING");
	for (int i = 42; i < 45; i++)
		world_rowf(&w, "0 RUNNING", H "%d/Status", i);
	world_has(&w, "host/CPU0", .current = turns);
	world_close(&w, 0, 199);
	const struct target vm = world_target(&w, "A");
	const struct summary_options o = { .only = &vm, .from = 0, .to = 199, .gaps = true };
	assert_int_equal(query_answer(summary_open(&w.catalog, &o), &s, &err), 0);
	assert_int_equal(s.row[0].culprit.machine, 0);
	assert_int_equal(s.row[0].culprit.tid, tid);
	assert_int_equal(s.row[0].culprit_ns, ns);
	summary_release(&s);
	world_release(&w);
}

static void test_culprit(void **state)
{
	(void)state;
	check_culprit("0 42; 50 43; 75 44; 100 0", -1, 100);
	check_culprit("0 42; 40 43; 75 44; 100 0", -1, 100);
	check_culprit("0 42; 51 43; 75 44; 100 0", 42, 51);
}

/* ---- Periodic timers */

#define MS INT64_C(1000000)

/* B's vCPU (host thread 200) wakes up at the given distances in ms, and takes 1 ms of the CPU that two threads wait for. */
static size_t find_timers(const int *distance, size_t n, struct periodic *first)
{
	struct world w;
	struct periodic_list l;
	struct error err = ERROR_INIT;
	static char host[8192], cpu[8192];
	size_t h = (size_t)snprintf(host, sizeof host, "0 BLOCKED"), c = (size_t)snprintf(cpu, sizeof cpu, "0 9");
	int64_t t = 0;
	for (size_t i = 0; i < n; i++) {
		t += distance[i] * MS;
		h += (size_t)snprintf(host + h, sizeof host - h, "; %" PRId64 " RUNNING; %" PRId64 " BLOCKED", t, t + MS);
		c += (size_t)snprintf(cpu + c, sizeof cpu - c, "; %" PRId64 " 200; %" PRId64 " 9", t, t + MS);
	}
	world_open(&w);
	world_has(&w, "host/200", .status = host, .vm = "0 B/0");
	world_has(&w, "host/CPU0", .current = cpu);
	world_has(&w, "B/CPU0", .status = "0 IDLE");
	for (int tid = 42; tid < 44; tid++) {
		world_rowf(&w, "0 PREEMPTED", H "%d/Status", tid);
		world_rowf(&w, "0 0", H "%d/CPU", tid);
	}
	world_close(&w, 0, t + 100 * MS);
	assert_int_equal(periodic_timers_of(&w.catalog, INT64_MIN, INT64_MAX, &l, &err), 0);
	const size_t items = l.items;
	if (items)
		*first = l.item[0];
	periodic_release(&l);
	world_release(&w);
	return items;
}

/* A wakeup that keeps two threads off the CPU counts once, with the cost of both. A distance that differs by a third of
 * the period is not regular. */
static void test_timers(void **state)
{
	(void)state;
	struct periodic p;
	assert_int_equal(find_timers((const int[]){ 10, 10, 10, 10, 10, 10, 10, 10, 10, 10 }, 10, &p), 1);
	assert_int_equal(p.wakeups, 10);
	assert_int_equal(p.switches, 10);
	assert_int_equal(p.cost, 2 * 10 * MS);
	assert_int_equal(p.period, 10 * MS);
	assert_int_equal(find_timers((const int[]){ 5, 8, 8, 8, 10, 10, 10, 10, 12, 12, 12 }, 11, &p), 0);
	assert_int_equal(find_timers((const int[]){ 5, 8, 8, 8, 10, 10, 10, 10, 20, 20, 20 }, 11, &p), 1);  /* two periods */
}

/* A vCPU does not exist before its thread starts or after it ends; that time is not unknown. */
static void comes_and_goes(void **state)
{
	static const struct { const char *status, *cpu, *said; } c[] = {
		{ "0 RUNNING; 50 PREEMPTED; 60 -", "0 40; 50 0",
		 "It did not exist for 40 ns (40.0 %) of that: it ended at 00:00:00.000000.\n" },
		{ "20 RUNNING; 50 PREEMPTED; 60 RUNNING", "0 0; 20 40; 50 0; 60 40",
		  "It did not exist for 20 ns (20.0 %) of that: it started at 00:00:00.000000.\n" },
		{ "20 RUNNING; 50 PREEMPTED; 60 -", "0 0; 20 40; 50 0",
		  "It did not exist for 60 ns (60.0 %) of that: it started at 00:00:00.000000 and ended at 00:00:00.000000.\n" },
		{ "0 RUNNING; 50 UNKNOWN", "0 40", NULL },
		{ "20 RUNNING; 60 -", "0 -; 20 40; 60 -", NULL },  /* the host trace does not cover that time either */
	};
	(void)state;
	for (size_t i = 0; i < COUNT(c); i++) {
		struct world w;
		struct error err = ERROR_INIT;
		char *text;
		world_open(&w);
		world_has(&w, "host/CPU0", .current = c[i].cpu);
		world_has(&w, "host/40", .status = c[i].status, .cpu = "0 0");
		world_has(&w, "A/CPU0", .host_thread = "0 40", .pcpu = "0 0", .status = c[i].status);
		world_close(&w, 0, 99);
		const struct target s = world_target(&w, "A/CPU0");
		assert_int_equal(explain_window(&w.catalog, &s, 0, 99, &text, &err), 0);
		if (c[i].said ? !strstr(text, c[i].said) : strstr(text, "not exist") != NULL)
			fail_msg("%s", text);
		assert_int_equal(strstr(text, "events are missing") != NULL, !c[i].said);
		free(text);
		world_release(&w);
	}
}

/* The status line names the thread that has a vCPU at that time (", now by"), except if it has the vCPU for the whole
 * interval. */
static void here_on_vcpu(void **state)
{
	static const struct { int64_t t; const char *line; } told[] = {
		{ 10, "A/vCPU0 00:00:00.0000 RUNNING 60 ns, now by A/6 on CPU0" },
		{ 20, "A/vCPU0 00:00:00.0000 RUNNING 60 ns, now by a timer interrupt of A on CPU0" },
		{ 59, "A/vCPU0 00:00:00.0000 RUNNING 60 ns, now by A/5 on CPU0" },
		{ 80, "A/vCPU0 00:00:00.0000 RUNNING 20 ns by A/5 on CPU0" },
	};
	struct world w;
	struct error err = ERROR_INIT;
	char line[512];
	(void)state;
	world_open(&w);
	world_has(&w, "host/CPU0", .current = "0 40");
	world_has(&w, "A/CPU0", .host_thread = "0 40", .pcpu = "0 0", .status = "0 RUNNING; 60 PREEMPTED; 80 RUNNING",
	          .current = "0 6; 30 5", .interrupt = "0 -; 20 timer; 25 -");
	world_has(&w, "A/5", .status = "0 RUNNING");
	world_has(&w, "A/6", .status = "0 RUNNING");
	world_close(&w, 0, 99);
	const struct target s = world_target(&w, "A/CPU0");
	for (size_t i = 0; i < COUNT(told); i++) {
		assert_int_equal(explain_status(&w.catalog, &s, told[i].t, line, sizeof line, &err), 0);
		assert_string_equal(line, told[i].line);
	}
	world_release(&w);
}

/* If threads of one machine together took most, and a single thread of another machine took more than each of them, that
 * thread is not the main culprit. */
static void most_by_machine(void **state)
{
	static const struct { const char *first, *further, *line; int32_t tid; int64_t ns; } told[] = {
		{ "Main delay: B took 50 ns", "Further delays: host/50 hog took 30 ns of A/vCPU0 (30 % of the",
		  "A/vCPU0 00:00:00.0000 PREEMPTED 80 ns, 62 % by B, 1 other", -1, 50 },
		{ "Main delay: host/50 hog took 50 ns", "in 1 interval, longest 50 ns on CPU0 (stealscope view FILE --row A/CPU0 --at 00:00:00.000000).\n",
		  "A/vCPU0 00:00:00.0000 PREEMPTED 80 ns, 62 % by host/50 hog on CPU0, 2 others", 50, 50 },
		{ "Main delay: B took 45 ns", "Further delays: host/50 hog took 35 ns of A/vCPU0 (35 % of the",
		  "A/vCPU0 00:00:00.0000 PREEMPTED 80 ns, 56 % by B, 1 other", -1, 45 },
	};
	static const char *const current[] = { "0 40; 10 50; 40 60; 90 40", "0 40; 10 50; 60 60; 90 40",
	                                      "0 40; 10 50; 45 60; 90 40" };
	(void)state;
	for (size_t more = 0; more < COUNT(told); more++) {
		struct world w;
		struct error err = ERROR_INIT;
		struct gap_list gaps;
		struct summary summary;
		char *text, line[512];
		world_open(&w);
		world_has(&w, "host/CPU0", .current = current[more]);
		world_has(&w, "host/40", .status = "0 RUNNING; 10 PREEMPTED; 90 RUNNING", .cpu = "0 0");
		world_has(&w, "host/50", .name = "0 hog");
		world_has(&w, "host/60", .vm = "0 B/0");
		world_has(&w, "A/CPU0", .host_thread = "0 40", .pcpu = "0 0", .status = "0 RUNNING; 10 PREEMPTED; 90 RUNNING");
		world_has(&w, "B/CPU0", .host_thread = "0 60", .pcpu = "0 0", .status = "0 RUNNING",
		          .current = "0 7; 55 8; 70 9");
		world_has(&w, "B/7", .name = "0 alpha");
		world_has(&w, "B/8", .name = "0 beta");
		world_close(&w, 0, 99);
		const struct target s = world_target(&w, "A/CPU0"), a = world_target(&w, "A");
		assert_int_equal(explain_window(&w.catalog, &s, 0, 99, &text, &err), 0);
		if (!strstr(text, told[more].first) || !strstr(text, told[more].further))
			fail_msg("%s", text);
		free(text);
		assert_int_equal(explain_status(&w.catalog, &s, 20, line, sizeof line, &err), 0);
		assert_string_equal(line, told[more].line);
		const struct gap_options window = { .from = 0, .to = 99 };
		const struct summary_options of_vm = { .only = &a, .from = 0, .to = 99, .gaps = true };
		assert_int_equal(query_answer(gap_list_open(&w.catalog, &s, &window), &gaps, &err), 0);
		assert_int_equal(query_answer(summary_open(&w.catalog, &of_vm), &summary, &err), 0);
		assert_true(gaps.item[0].top.actor.tid == told[more].tid && gaps.item[0].top.ns == told[more].ns);
		assert_true(summary.row[0].culprit.tid == told[more].tid && summary.row[0].culprit_ns == told[more].ns);
		gap_list_release(&gaps);
		summary_release(&summary);
		world_release(&w);
	}
}

/* Who took the longest wait is named, also where another thread took a part of it before or after. */
static void longest_wait(void **state)
{
	struct world w;
	struct error err = ERROR_INIT;
	(void)state;
	world_open(&w);
	world_has(&w, "host/CPU1", .current = "0 40; 10 42; 40 43; 50 40; 100 43; 110 42; 150 40");
	world_has(&w, "host/40", .vm = "0 A/0");
	world_has(&w, "host/42", .name = "0 burn");
	world_has(&w, "host/43", .name = "0 make");
	world_has(&w, "A/CPU0", .status = "0 RUNNING; 10 PREEMPTED; 50 RUNNING; 100 PREEMPTED; 150 RUNNING", .pcpu = "0 1",
	          .current = "0 5");
	world_has(&w, "A/5", .status = "0 RUNNING; 10 VIRT_PREEMPTED; 50 RUNNING; 100 VIRT_PREEMPTED; 150 RUNNING", .cpu = "0 0");
	world_close(&w, 0, 199);
	const struct target victim = world_target(&w, "A/5"), host = world_target(&w, "host");
	const struct actor make = { (int32_t)host.index, 43, 0, FLOW_PREEMPTING, 0 };
	for (int64_t from = 0; from < 200; from += 100) {
		struct culprit_waits found;
		assert_int_equal(culprit_waits_of(&w.catalog, &victim, &victim, from, from + 99, &make, "make", NULL, NULL, &found, &err),
		                 0);
		assert_true(found.found);
		assert_int_equal(found.longest.start, from ? 100 : 10);
		assert_int_equal(found.longest.end, from ? 149 : 49);
		assert_int_equal(found.longest_by.tid, 42);
		assert_string_equal(found.longest_name, "burn");
		assert_int_equal(found.taken_ns, 10);
	}
	world_release(&w);
}

/* The text of a flow names the thread that woke its target, also the host's; no interrupt where the waker is unknown. */
static void wakers(void **state)
{
	struct world w;
	struct flow f;
	struct error err = ERROR_INIT;
	(void)state;
	world_open(&w);
	world_has(&w, "host/43", .name = "0 make");
	world_has(&w, "A/CPU0", .status = "0 RUNNING", .current = "0 5; 10 0; 40 5; 50 0; 70 5; 80 0; 95 5");
	world_has(&w, "A/5", .status = "0 RUNNING; 10 BLOCKED; 40 RUNNING; 50 BLOCKED; 70 RUNNING; 80 BLOCKED; 95 RUNNING",
	          .cpu = "0 0", .woken_by = "40 host/43; 70 A/6; 95 -", .woken_in = "40 thread; 70 thread; 95 -");
	world_has(&w, "A/6", .name = "0 cc");
	world_close(&w, 0, 99);
	const struct target s = world_target(&w, "A/5");
	assert_int_equal(query_answer(flow_open(&w.catalog, &s, 0, 99, NULL, &err), &f, &err), 0);
	char *text = NULL;
	size_t size = 0;
	FILE *to = open_memstream(&text, &size);
	assert_int_equal(flow_write_text(&w.catalog, &f, &s, &(struct flow_text){ .threshold = 0 }, to, &err), 0);
	fclose(to);
	assert_non_null(strstr(text, "host/43 make"));
	assert_non_null(strstr(text, "A/6 cc"));
	assert_null(strstr(text, "interrupt"));
	free(text);
	flow_release(&f);
	world_release(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(comes_and_goes), cmocka_unit_test(here_on_vcpu), cmocka_unit_test(most_by_machine),
		cmocka_unit_test(test_pieces), cmocka_unit_test(test_self), cmocka_unit_test(test_host_silent),
		cmocka_unit_test(test_paused),
		cmocka_unit_test(test_demand),
		cmocka_unit_test(test_block), cmocka_unit_test(test_doubts), cmocka_unit_test(test_culprit),
		cmocka_unit_test(test_timers), cmocka_unit_test(longest_wait), cmocka_unit_test(wakers),
	};
	return cmocka_run_group_tests_name("flow edges", tests, NULL, NULL);
}
