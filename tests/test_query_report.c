/* Lists of gaps, the steal matrix, periodic timers, the text and the sentences. */
#include "base/text.h"
#include "query_answers.h"
#include "query_world.h"
#include "test.h"

#include <inttypes.h>


#define MS INT64_C(1000000)

/* Debian (one vCPU), burnP6 on the host, and Ubuntu share pCPU 3: a third each, in time slices of 1 ms. */
static void thirds(struct world *w)
{
	char status[4096] = "", thread[4096] = "", current[4096] = "", ubuntu[4096] = "", irq[256];
	int64_t origin = INT64_C(1000000) * MS;
	size_t a = 0, b = 0, c = 0, d = 0;
	world_open(w);
	for (int i = 0; i < 30; i++) {
		int64_t t = origin + 3 * i * MS;
		a += (size_t)snprintf(status + a, sizeof status - a, "%" PRId64 " RUNNING;%" PRId64 " PREEMPTED;", t, t + MS);
		b += (size_t)snprintf(thread + b, sizeof thread - b, "%" PRId64 " RUNNING;%" PRId64 " VIRT_PREEMPTED;", t, t + MS);
		c += (size_t)snprintf(current + c, sizeof current - c, "%" PRId64 " 100;%" PRId64 " 2101;%" PRId64 " 200;", t,
		                      t + MS, t + 2 * MS);
		d += (size_t)snprintf(ubuntu + d, sizeof ubuntu - d, "%" PRId64 " PREEMPTED;%" PRId64 " RUNNING;", t, t + 2 * MS);
	}
	snprintf(irq, sizeof irq, "%" PRId64 " irq/46-iwlwifi;%" PRId64 " -", origin + 4 * MS, origin + 4 * MS + 1000);
	world_rowf(w, status, "/Virtual Machines/Debian/CPUs/CPU0/Status");
	world_rowf(w, thread, "/Virtual Machines/Debian/Threads/3525/Status");
	world_has(w, "Debian/3525", .cpu = "0 0", .name = "0 critical_task");
	world_has(w, "Debian/CPU0", .pcpu = "0 3", .current = "0 3525");
	world_has(w, "Ubuntu/CPU1", .pcpu = "0 3", .status = ubuntu, .current = "0 77");
	world_has(w, "Ubuntu/77", .name = "0 cc\033[31m");
	world_has(w, "host/100", .vm = "0 Debian/0");
	world_has(w, "host/200", .vm = "0 Ubuntu/1");
	world_has(w, "host/2101", .name = "0 burnP6");
	world_has(w, "host/CPU3", .current = current, .interrupt = irq);
	world_row(w, "/Virtual Machines/Debian/Clock Band", "0 900; 1000030000000 1500; 1000040000000 -");
	world_close(w, origin, origin + 90 * MS - 1);
}

/* The paper's second use case: about a third each. */
static void critical_task(void **state)
{
	struct world w;
	struct flow f;
	struct error err = ERROR_INIT;
	(void)state;
	thirds(&w);
	struct target s = world_target(&w, "Debian/3525");
	assert_int_equal(query_answer(flow_open(&w.catalog, &s, INT64_MIN, INT64_MAX, NULL, &err), &f, &err), 0);
	world_check_tiling(&f);
	assert_int_equal(f.entries, 4);
	assert_int_equal(f.entry[0].duration, 30 * MS);
	assert_int_equal(f.entry[2].duration, 30 * MS - 1000);  /* burnP6, less the interrupt */
	assert_string_equal(f.name[f.entry[2].actor.name], "burnP6");
	assert_int_equal(f.entry[3].actor.kind, FLOW_IRQ);
	char *text = NULL;
	size_t size = 0;
	FILE *to = open_memstream(&text, &size);
	const char *header[] = { "history: x" };
	struct flow_text o = { .threshold = 0.001, .header = header, .headers = 1 };
	assert_int_equal(flow_write_text(&w.catalog, &f, &s, &o, to, &err), 0);
	fclose(to);
	assert_non_null(strstr(text, "left out: 1 entry below 0.1 % each, 1.00 us (<0.1%) in total\n"));
	free(text);
	flow_release(&f);
	/* one cell of the lanes is 1 ms */
	struct flow_options cells = { .intervals = SIZE_MAX, .columns = flow_text_columns(0) };
	assert_int_equal(query_answer(flow_open(&w.catalog, &s, 0, history_begin(w.h) + 26 * MS - 1, &cells, &err), &f, &err), 0);
	to = open_memstream(&text, &size);
	assert_int_equal(flow_write_text(&w.catalog, &f, &s, &o, to, &err), 0);
	fclose(to);
	assert_string_equal(text,
		"history: x\n"
		"execution flow of Debian/3525 critical_task\n"
		"1970-01-01 00:16:40.000000000 +0000 .. 00:16:40.025999999 (26.0 ms), 4 entries\n"
		"lost 17.0 ms (65.4%), running 34.6%, preempting 65.4%, irq <0.1%\n\n"
		"Debian                              9.00 ms  34.6% |#  #  #  #  #  #  #  #  # |\n"
		"  3525 critical_task                9.00 ms  34.6% |#  #  #  #  #  #  #  #  # |\n"
		"host                                9.00 ms  34.6% | !  !  !  !  !  !  !  !  !|\n"
		"  2101 burnP6                       9.00 ms  34.6% | !  !  !  !  !  !  !  !  !|\n"
		"Ubuntu                              8.00 ms  30.8% |  !  !  !  !  !  !  !  !  |\n"
		"  77 cc\\e[31m                       8.00 ms  30.8% |  !  !  !  !  !  !  !  !  |\n"
		"# ran  ! others (>= 50 %)  : >= 10 %  , less\n"
		"left out: 1 entry below 0.1 % each, 1.00 us (<0.1%) in total\n");
	free(text);
	to = open_memstream(&text, &size);
	o = (struct flow_text){ .width = 100, .intervals = true };
	assert_int_equal(flow_write_text(&w.catalog, &f, &s, &o, to, &err), 0);
	fclose(to);
	assert_non_null(strstr(text, "irq/46-iwlwifi"));
	assert_null(strstr(text, "left out"));
	assert_null(strchr(text, '\033'));
	assert_non_null(strstr(text, "00:16:40.001000000   1.00 ms  CPU3  preempting  host/2101 burnP6\n"));
	for (const char *line = text; *line; line += strcspn(line, "\n") + 1)
		assert_true(strcspn(line, "\n") <= 100);
	free(text);
	flow_release(&f);
	world_release(&w);
}

static void lists(void **state)
{
	struct world w;
	struct gap_list l;
	struct error err = ERROR_INIT;
	int64_t ns;
	(void)state;
	thirds(&w);
	int64_t begin = history_begin(w.h), end = history_end(w.h);
	struct target s = world_target(&w, "Debian");
	struct gap_options o = { begin, end, 0, 0, false };
	assert_int_equal(query_answer(gap_list_open(&w.catalog, &s, &o), &l, &err), 0);
	assert_int_equal(steal_time(&w.catalog, &s, begin, end, &ns, &err), 0);
	assert_int_equal(l.all.count, 30);
	assert_int_equal(l.items, 30);
	assert_int_equal(l.all.total, ns);
	assert_int_equal(l.all.p50, 2 * MS);
	assert_int_equal(l.all.longest, 2 * MS);
	for (size_t i = 0; i < l.items; i++) {
		int64_t sum = 0;
		assert_true(l.item[i].culprits >= 2);
		for (size_t k = 0; k < l.item[i].culprits; k++)
			sum += l.culprit[l.item[i].culprit + k].duration;
		assert_int_equal(sum, l.item[i].gap.end - l.item[i].gap.start + 1);
	}
	gap_list_release(&l);
	/* cut at both ends: half of the first gap is cut off, so it is the shortest */
	o = (struct gap_options){ begin + 2 * MS, end, 2 * MS, 3, false };
	assert_int_equal(query_answer(gap_list_open(&w.catalog, &s, &o), &l, &err), 0);
	assert_int_equal(l.all.count, 29);
	assert_int_equal(l.items, 3);
	assert_int_equal(l.item[0].gap.start, begin + 4 * MS);
	gap_list_release(&l);
	o = (struct gap_options){ end + 1, end + 10, 0, 0, false };
	assert_int_equal(query_answer(gap_list_open(&w.catalog, &s, &o), &l, &err), 0);
	assert_int_equal(l.all.count, 0);
	gap_list_release(&l);
	assert_int_equal(query_answer(gap_list_open(&w.catalog, NULL, &(struct gap_options){ begin, end, 0, 1, false }), &l, &err), 0);
	assert_int_equal(l.all.count, 60);
	assert_int_equal(l.rows, 2);
	for (size_t i = 0; i < 2; i++) {  /* 30 gaps of 2 ms each, including gaps beyond `top` */
		assert_int_equal(l.row[i].count, 30);
		assert_int_equal(l.row[i].total, 60 * MS);
		assert_int_equal(l.row[i].bin[20], 30);
		assert_int_equal(l.row[i].p50, 2 * MS);
	}
	assert_int_equal(l.all.bin[20], 60);
	gap_list_release(&l);
	world_release(&w);
}

static void matrix(void **state)
{
	struct world w;
	struct steal m;
	struct error err = ERROR_INIT;
	char a[64], b[64];
	(void)state;
	thirds(&w);
	assert_int_equal(steal_matrix(&w.catalog, STEAL_BY_MACHINE, NULL, INT64_MIN, INT64_MAX, &m, &err), 0);
	const struct { const char *victim, *culprit; int64_t ns; } expected[] = {
		{ "Debian", "host", 30 * MS }, { "Debian", "Ubuntu", 30 * MS },
		{ "Ubuntu", "host", 30 * MS }, { "Ubuntu", "Debian", 30 * MS },
	};
	assert_int_equal(m.cells, COUNT(expected));
	for (size_t i = 0; i < m.cells; i++) {
		const struct actor *v = &m.cell[i].victim, *t = &m.cell[i].culprit;
		assert_string_equal(actor_text(&w.catalog, v, m.name[v->name], ACTOR_PLAIN, NULL, a, sizeof a),
		                    expected[i].victim);
		assert_string_equal(actor_text(&w.catalog, t, m.name[t->name], ACTOR_PLAIN, NULL, b, sizeof b),
		                    expected[i].culprit);
		assert_int_equal(m.cell[i].ns, expected[i].ns);
		assert_true(m.cell[i].share == 0.5);
	}
	steal_release(&m);
	struct target s = world_target(&w, "Debian/vCPU0");
	assert_int_equal(steal_matrix(&w.catalog, STEAL_BY_THREAD, &s, INT64_MIN, INT64_MAX, &m, &err), 0);
	assert_int_equal(m.cells, 3);
	assert_string_equal(actor_text(&w.catalog, &m.cell[0].victim, m.name[m.cell[0].victim.name],
	                               ACTOR_PLAIN, NULL, a, sizeof a),
	                    "Debian");
	assert_string_equal(actor_text(&w.catalog, &m.cell[0].culprit, m.name[m.cell[0].culprit.name],
	                               ACTOR_PLAIN, NULL, a, sizeof a),
	                    "Ubuntu/77 cc\\e[31m");
	assert_int_equal(m.cell[2].culprit.kind, FLOW_IRQ);
	assert_int_equal(m.cell[2].ns, 1000);
	steal_release(&m);
	world_release(&w);
}

#define ROWS 17000

/* With many rows, VMM time and handlers still count for the machine. */
static void many_rows(void **state)
{
	struct world w;
	struct steal m;
	struct error err = ERROR_INIT;
	(void)state;
	world_open(&w);
	for (int i = 0; i < ROWS; i++)
		world_rowf(&w, "0 PREEMPTED; 1 IDLE", "/Virtual Machines/wide/CPUs/CPU%d/Status", i);
	world_has(&w, "outer/CPU0", .status = "0 RUNNING; 10 VMM; 20 RUNNING", .current = "0 5; 40 8",
	          .interrupt = "30 timer; 32 -");
	world_has(&w, "outer/8", .status = "0 PREEMPTED; 40 RUNNING", .vm = "0 inner/0");
	world_row(&w, "/Virtual Machines/inner/Parent", "0 outer");
	world_has(&w, "inner/CPU0", .pcpu = "0 0", .status = "0 PREEMPTED; 40 RUNNING");
	world_close(&w, 0, 59);
	assert_int_equal(steal_matrix(&w.catalog, STEAL_BY_MACHINE, NULL, INT64_MIN, INT64_MAX, &m, &err), 0);
	assert_int_equal(m.cells, 2);
	assert_string_equal(w.catalog.machine[m.cell[0].victim.machine].name, "wide");
	assert_int_equal(m.cell[0].ns, ROWS);
	assert_string_equal(w.catalog.machine[m.cell[1].victim.machine].name, "inner");
	assert_string_equal(w.catalog.machine[m.cell[1].culprit.machine].name, "outer");
	assert_int_equal(m.cell[1].ns, 40);
	steal_release(&m);
	world_release(&w);
}

static void sentences(void **state)
{
	struct world w;
	struct error err = ERROR_INIT;
	char *text, line[512];
	(void)state;
	thirds(&w);
	int64_t begin = history_begin(w.h), end = history_end(w.h);
	struct target s = world_target(&w, "Debian/3525"), cpu = world_target(&w, "Debian/vCPU0");
	struct target pcpu = world_target(&w, "host/CPU3"), vm = world_target(&w, "Debian");
	assert_int_equal(explain_window(&w.catalog, &s, begin, end, &text, &err), 0);
	assert_string_equal(text,
		"Debian/3525 critical_task, 1970-01-01 00:16:40.000000 +0000 .. 00:16:40.089999 (90.0 ms): ran 30.0 ms (33.3 %), "
		"lost 60.0 ms (66.7 %), slept 0 ns.\n"
		"Main delay: Ubuntu (most: 77 cc\\e[31m) took 30.0 ms of Debian/3525 critical_task (33 % of the time it wanted to run), "
		"in 30 intervals, longest 1.00 ms on CPU3 (stealscope view FILE --row Debian/3525 --at 00:16:40.002000).\n"
		"Further delays: host/2101 burnP6 took 30.0 ms of Debian/3525 critical_task (33 % of the time it wanted to run); "
		"interrupts of host (irq/46-iwlwifi) took 1.00 us of Debian/3525 critical_task (0.0 % of the time it wanted to run).\n"
		"Confidence: high; nothing is unknown; guest clock error <= 1.50 us.\n"
		"Next: Ubuntu/77 cc\\e[31m, a thread of another VM, shares this CPU (stealscope flow FILE Ubuntu/77).\n");
	free(text);
	assert_int_equal(query_answer(explain_open(&w.catalog, &cpu, begin + 5 * MS, &err), &text, &err), 0);
	assert_memory_equal(text, "Debian/vCPU0 was PREEMPTED for 2.00 ms from 00:16:40.004000.\n", 60);
	free(text);
	assert_int_equal(query_answer(explain_open(&w.catalog, &cpu, begin + 5 * MS, &err), &text, &err), 0);
	assert_non_null(strstr(text, "2.00 ms from 00:16:40.004000.\nMain delay: "));
	free(text);
	assert_int_equal(explain_status(&w.catalog, &cpu, begin + 5 * MS, line, sizeof line, &err), 0);
	assert_memory_equal(line, "Debian/vCPU0 00:16:40.0040 PREEMPTED 2.00 ms, 50 % by ", 54);
	assert_int_equal(explain_window(&w.catalog, &pcpu, begin, end, &text, &err), -1);
	assert_int_equal(explain_window(&w.catalog, &vm, begin, end, &text, &err), 0);
	assert_true(strncmp(text, "Debian, ", 8) == 0 && strstr(text, "lost 60.0 ms"));
	free(text);
	assert_int_equal(explain_status(&w.catalog, &cpu, begin + MS + 3, line, sizeof line, &err), 0);
	assert_string_equal(line, "Debian/vCPU0 00:16:40.0010 PREEMPTED 2.00 ms, 50 % by host/2101 burnP6 on CPU3, 1 other");
	assert_int_equal(explain_status(&w.catalog, &s, begin, line, sizeof line, &err), 0);
	assert_string_equal(line, "Debian/3525 critical_task 00:16:40.0000 RUNNING 1.00 ms on CPU3");
	assert_int_equal(explain_status(&w.catalog, &pcpu, begin + MS, line, sizeof line, &err), 0);
	assert_string_equal(line, "host/CPU3 00:16:40.0010 busy 1.00 ms by host/2101 burnP6 on CPU3");
	assert_int_equal(explain_status(&w.catalog, &vm, begin, line, sizeof line, &err), 0);
	assert_string_equal(line, "Debian lost 60.0 ms in total");
	world_release(&w);
}

/* The shell must read a quoted word as one word with the original text. */
static void words_for_a_shell(void **state)
{
	static const struct { const char *raw, *want; } cases[] = {
		{ "web", "web" }, { "./a-b_1.steal", "./a-b_1.steal" }, { "", "''" }, { "my VM", "'my VM'" },
		{ "it's", "'it'\\''s'" }, { "'", "''\\'''" }, { "$(id)", "'$(id)'" }, { "~", "'~'" },
	};
	(void)state;
	for (size_t i = 0; i < COUNT(cases); i++) {
		char *word = shell_word(cases[i].raw);
		assert_string_equal(word, cases[i].want);
		free(word);
	}
}

/* A CPU that is idle for a short time is a wakeup or a migration; for a long time, a limit. */
static void idle_cpus(void **state)
{
	struct world w;
	struct error err = ERROR_INIT;
	char *text, line[512];
	(void)state;
	world_open(&w);
	world_has(&w, "host/9", .status = "0 RUNNING; 4000000 PREEMPTED; 4900000 RUNNING; 6000000 PREEMPTED; 7000000 RUNNING",
	          .cpu = "0 0");
	world_has(&w, "host/CPU0", .current = "0 9; 4000000 0; 4900000 9; 6000000 0; 7000000 9");
	world_close(&w, 0, 9999999);
	struct target s = world_target(&w, "host/9");
	assert_int_equal(explain_window(&w.catalog, &s, 0, 5999999, &text, &err), 0);
	assert_non_null(strstr(text, " for 900 us ("));
	assert_non_null(strstr(text, "Next: look at its wakers"));
	assert_null(strstr(text, "quota"));
	free(text);
	assert_int_equal(explain_window(&w.catalog, &s, 0, 9999999, &text, &err), 0);
	assert_non_null(strstr(text, " for 1.90 ms ("));
	assert_non_null(strstr(text, "Next: check the CPU limits (quota, cpuset)"));
	free(text);
	assert_int_equal(explain_status(&w.catalog, &s, 4500000, line, sizeof line, &err), 0);
	assert_string_equal(line, "host/9 00:00:00.0040 PREEMPTED 900 us, wakeup or CPU migration to CPU0");
	assert_int_equal(explain_status(&w.catalog, &s, 6500000, line, sizeof line, &err), 0);
	assert_string_equal(line, "host/9 00:00:00.0060 PREEMPTED 1.00 ms while CPU0 was idle");
	world_release(&w);
}

/* Many wakeups and one long wait of unknown cause are no limit. */
static void mostly_wakeups(void **state)
{
	struct world w;
	struct error err = ERROR_INIT;
	char *text, status[512] = "0 RUNNING", running[512] = "0 9";
	(void)state;
	world_open(&w);
	for (int i = 1; i <= 8; i++) {
		int64_t at = i * INT64_C(10000000), end = at + (i == 4 ? 2000000 : 400000);
		size_t n = strlen(status), m = strlen(running);
		snprintf(status + n, sizeof status - n, "; %" PRId64 " PREEMPTED; %" PRId64 " RUNNING", at, end);
		snprintf(running + m, sizeof running - m, "; %" PRId64 " 0; %" PRId64 " 9", at, end);
	}
	world_has(&w, "host/9", .status = status, .cpu = "0 0");
	world_has(&w, "host/CPU0", .current = running);
	world_close(&w, 0, 89999999);
	struct target s = world_target(&w, "host/9");
	assert_int_equal(explain_window(&w.catalog, &s, 0, 89999999, &text, &err), 0);
	assert_non_null(strstr(text, " for 4.80 ms ("));
	assert_non_null(strstr(text, "took most of that time."));
	assert_null(strstr(text, "quota"));
	free(text);
	world_release(&w);
}

/* For a guest without a trace the states are inferred: the text contains a note, and no advice twice. */
static void untraced_guest(void **state)
{
	struct world w;
	struct error err = ERROR_INIT;
	char *text;
	(void)state;
	world_open(&w);
	world_has(&w, "host/9", .status = "0 RUNNING", .cpu = "0 0", .vm = "0 web/0");
	world_has(&w, "host/CPU0", .current = "0 9");
	world_row(&w, "/Virtual Machines/web/Parent", "0 host");
	world_has(&w, "web/CPU0", .pcpu = "0 0", .status = "0 RUNNING; 1000000 VMM; 6000000 RUNNING");
	world_close(&w, 0, 9999999);
	struct target s = world_target(&w, "web/CPU0");
	assert_int_equal(explain_window(&w.catalog, &s, 0, 9999999, &text, &err), 0);
	assert_non_null(strstr(text, "the guest was not traced: whether a vCPU"));
	assert_null(strstr(text, "clock"));
	char *exits = strstr(text, "stealscope exits");
	assert_non_null(exits);
	assert_null(strstr(exits + 1, "stealscope exits"));
	free(text);
	world_release(&w);
}

/* The text names the unknown times. */
static void missing_traces(void **state)
{
	struct world w;
	struct error err = ERROR_INIT;
	char *text;
	(void)state;
	world_open(&w);
	world_row(&w, "/Virtual Machines/Alone/Virtual", "0 1");
	world_has(&w, "Alone/5", .status = "0 RUNNING; 40 PREEMPTED; 60 UNKNOWN; 70 RUNNING", .cpu = "0 0");
	world_has(&w, "Alone/6", .name = "0 other");
	world_has(&w, "Alone/CPU0", .current = "0 5; 40 6; 60 -; 70 5");
	world_has(&w, "host/9", .status = "0 RUNNING; 50 PREEMPTED", .cpu = "0 0");
	world_has(&w, "host/100", .vm = "0 Dark/3");
	world_has(&w, "host/CPU0", .current = "0 9; 50 100");
	world_has(&w, "Dark/CPU3", .status = "0 RUNNING");
	world_close(&w, 0, 99);
	struct target s = world_target(&w, "Alone/5");
	assert_int_equal(explain_window(&w.catalog, &s, 0, 99, &text, &err), 0);
	assert_non_null(strstr(text, "No thread of the host is known to execute its vCPUs: "));
	assert_non_null(strstr(text, "10 ns (10.0 %) is unknown and has no culprit"));
	assert_non_null(strstr(text, "Alone/6 other or the provider took 20 ns of Alone/5"));
	free(text);
	s = world_target(&w, "host/9");
	assert_int_equal(explain_window(&w.catalog, &s, 0, 99, &text, &err), 0);
	assert_non_null(strstr(text, "Next: Dark/vCPU3 shares this CPU; trace that guest"));
	free(text);
	world_release(&w);
}

struct lines { char text[1 << 16]; size_t used; };

static void line_add(struct lines *l, int64_t t, const char *value)
{
	l->used += (size_t)snprintf(l->text + l->used, sizeof l->text - l->used, "%" PRId64 " %s;", t, value);
}

/* The paper's Fig. 15: a residual timer of an idle VM interrupts a busy VM; no thread runs for the timer. A process of
 * the idle VM also runs every 100 ms, each time with another TID. */
static void residual_timer(void **state)
{
	static struct lines host, vcpu, busy, pcpu, current;
	struct world w;
	struct periodic_list l;
	struct error err = ERROR_INIT;
	(void)state;
	world_open(&w);
	host.used = vcpu.used = busy.used = pcpu.used = current.used = 0;
	line_add(&host, 0, "BLOCKED");
	line_add(&vcpu, 0, "IDLE");
	line_add(&busy, 0, "RUNNING");
	line_add(&pcpu, 0, "100");
	line_add(&current, 0, "0");
	for (int i = 1; i <= 100; i++) {
		int64_t t = 10 * i * MS + (i % 3) * 20000;  /* a little jitter */
		char tid[16];
		bool work = i % 10 == 0;
		line_add(&host, t - 50000, "PREEMPTED");
		line_add(&host, t, "RUNNING");
		line_add(&busy, t, "PREEMPTED");
		line_add(&pcpu, t, "200");
		snprintf(tid, sizeof tid, "%d", 500 + i);
		if (work) {
			world_rowf(&w, "0 cron", "/Virtual Machines/Ubuntu/Threads/%s/Name", tid);
			line_add(&current, t + 500, "9");  /* current more often than cron, but for less time */
			line_add(&current, t + 1000, tid);
			line_add(&current, t + 290000, "9");
			line_add(&current, t + 291000, "0");
		}
		line_add(&host, t + 300000, "BLOCKED");
		line_add(&busy, t + 300000, "RUNNING");
		line_add(&pcpu, t + 300000, "100");
	}
	world_has(&w, "host/200", .status = host.text, .vm = "0 Ubuntu/0");
	world_has(&w, "host/100", .vm = "0 Debian/0");
	world_has(&w, "host/CPU0", .current = pcpu.text);
	world_has(&w, "Ubuntu/CPU0", .status = vcpu.text, .current = current.text);
	world_has(&w, "Debian/CPU0", .pcpu = "0 0", .status = busy.text, .current = "0 7");
	world_close(&w, 0, 1100 * MS);
	assert_int_equal(periodic_timers_of(&w.catalog, INT64_MIN, INT64_MAX, &l, &err), 0);
	assert_int_equal(l.items, 2);
	const struct periodic *p = &l.item[0];
	assert_string_equal(l.name[p->name], "swapper");
	assert_int_equal(p->tid, 0);
	assert_true(p->period >= 9 * MS && p->period <= 11 * MS);
	assert_true(p->regular > 0.95);
	assert_int_equal(p->wakeups, 90);
	assert_int_equal(p->switches, 90);
	assert_int_equal(p->cost, 90 * 300000);
	assert_int_equal(p->busy, 90 * 300000);
	p = &l.item[1];
	assert_string_equal(l.name[p->name], "cron");
	assert_int_equal(p->tid, -1);
	assert_true(p->period >= 99 * MS && p->period <= 101 * MS);
	assert_int_equal(p->cost, 10 * 300000);
	periodic_release(&l);
	world_release(&w);
}

/* No timers: wakeups at random distances, and a guest that is always busy. */
static void not_periodic(void **state)
{
	static struct lines host;
	struct world w;
	struct periodic_list l;
	struct error err = ERROR_INIT;
	uint64_t seed = 1;
	int64_t t = 0;
	(void)state;
	world_open(&w);
	host.used = 0;
	line_add(&host, 0, "BLOCKED");
	for (int i = 0; i < 200; i++) {
		seed = seed * 6364136223846793005ULL + 1442695040888963407ULL;
		t += MS + (int64_t)(seed >> 33) % (40 * MS);
		line_add(&host, t, "RUNNING");
		line_add(&host, t + 100000, "BLOCKED");
	}
	world_has(&w, "host/200", .status = host.text, .vm = "0 Random/0");
	world_has(&w, "Random/CPU0", .status = "0 IDLE");
	host.used = 0;
	line_add(&host, 0, "BLOCKED");
	for (int i = 1; i < 200; i++) {
		line_add(&host, 10 * i * MS, "RUNNING");
		line_add(&host, 10 * i * MS + 6 * MS, "BLOCKED");
	}
	world_has(&w, "host/300", .status = host.text, .vm = "0 Busy/0");
	world_has(&w, "Busy/CPU0", .status = "0 IDLE");
	world_close(&w, 0, t + 5000 * MS);
	assert_int_equal(periodic_timers_of(&w.catalog, INT64_MIN, INT64_MAX, &l, &err), 0);
	assert_int_equal(l.items, 0);
	periodic_release(&l);
	world_release(&w);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(critical_task),
		cmocka_unit_test(lists),
		cmocka_unit_test(matrix),
		cmocka_unit_test(many_rows),
		cmocka_unit_test(sentences),
		cmocka_unit_test(words_for_a_shell), cmocka_unit_test(idle_cpus),
		cmocka_unit_test(mostly_wakeups),
		cmocka_unit_test(untraced_guest), cmocka_unit_test(missing_traces),
		cmocka_unit_test(residual_timer),
		cmocka_unit_test(not_periodic),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
