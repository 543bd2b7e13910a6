/* Tests of ui/: answers of the worker threads equal direct queries, regardless of earlier questions. */
#include "test.h"

#include <stdatomic.h>
#include <unistd.h>

#include "ui/core/async_query.h"
#include "ui_world.h"

static char world[64] = "/tmp/stealscope-ask-XXXXXX";
static struct history *h;
static struct catalog catalog;

static struct answer answer_to(struct async_queries *a, enum ask_kind kind, const struct question *q)
{
	struct answer answer;
	async_ask(a, kind, q);
	for (int i = 0; async_is_pending(a, kind); i++) {
		async_wait(a, kind, 1000000000);
		if (async_take_answer(a, kind, &answer))
			return answer;
		assert_true(i < 100);
	}
	fail_msg("the question was lost");
	return answer;
}

static void same_flow(const struct flow *a, const struct flow *b)
{
	assert_true(a->start == b->start && a->end == b->end);
	assert_int_equal(a->intervals, b->intervals);
	assert_int_equal(a->entries, b->entries);
	for (size_t i = 0; i < a->intervals; i++) {
		const struct flow_interval *x = &a->interval[i], *y = &b->interval[i];
		const struct actor *p = &a->entry[x->entry].actor, *q = &b->entry[y->entry].actor;
		assert_true(x->start == y->start && x->end == y->end && p->machine == q->machine && p->tid == q->tid);
		assert_true(p->kind == q->kind && x->pcpu == y->pcpu);
		assert_string_equal(a->name[p->name], b->name[q->name]);
	}
	for (size_t i = 0; i < a->entries; i++)
		assert_true(a->entry[i].duration == b->entry[i].duration && a->entry[i].share == b->entry[i].share);
}

static void same_steal(const struct steal *a, const struct steal *b)
{
	assert_int_equal(a->cells, b->cells);
	for (size_t i = 0; i < a->cells; i++) {
		assert_true(a->cell[i].ns == b->cell[i].ns && a->cell[i].share == b->cell[i].share);
		assert_string_equal(a->name[a->cell[i].victim.name], b->name[b->cell[i].victim.name]);
		assert_true(a->cell[i].victim.tid == b->cell[i].victim.tid &&
		            a->cell[i].victim.machine == b->cell[i].victim.machine);
	}
}

/* Windows of all sizes: the answer computed in steps equals the direct query. */
static void test_slices_add_up(void **state)
{
	(void)state;
	struct error err = ERROR_INIT;
	struct async_queries *a = async_open(&catalog, NULL);
	assert_non_null(a);
	for (uint32_t t = 0; t < catalog.threads; t++)
		for (int64_t span = UI_WORLD_SPAN; span > 1000; span /= 7) {
			int64_t from = UI_WORLD_BEGIN + (t * 7919 + span) % (UI_WORLD_SPAN - span + 1);
			struct question q = { .target = { TARGET_THREAD, t }, .from = from, .to = from + span - 1 };
			struct flow flow;
			struct answer answer = answer_to(a, ASK_FLOW, &q);
			int status = flow_of(&catalog, &q.target, q.from, q.to, NULL, &flow, &err);
			assert_int_equal(status, answer.status);
			if (status == 0)
				same_flow(&answer.flow, &flow);
			flow_release(&flow);
			flow_release(&answer.flow);
			struct steal steal;
			answer = answer_to(a, ASK_STEAL, &q);
			assert_int_equal(steal_matrix(&catalog, STEAL_BY_THREAD, NULL, q.from, q.to, &steal, &err), 0);
			same_steal(&answer.steal, &steal);
			steal_release(&steal);
			steal_release(&answer.steal);
		}
	async_close(a);
}

/* Of several questions of a kind only the last is answered; dropped questions never are. */
static void test_the_last_question_counts(void **state)
{
	(void)state;
	struct async_queries *a = async_open(&catalog, NULL);
	for (int round = 0; round < 200; round++) {
		struct question q = { .target = { TARGET_THREAD, 0 }, .from = UI_WORLD_BEGIN,
			.to = UI_WORLD_BEGIN + UI_WORLD_SPAN - 1 };
		async_ask(a, ASK_STEAL, &q);
		for (uint32_t t = 0; t < catalog.threads; t++) {
			q.target.index = t;
			q.to = UI_WORLD_BEGIN + 1000000 + t;
			async_ask(a, ASK_FLOW, &q);
		}
		if (round % 2)
			async_drop(a, ASK_STEAL);
		struct answer answer = answer_to(a, ASK_FLOW, &q);
		assert_true(answer.status == 0 && answer.flow.end == q.to);
		flow_release(&answer.flow);
		if (round % 2)
			assert_false(async_take_answer(a, ASK_STEAL, &answer));
		assert_true(round % 2 == !async_is_pending(a, ASK_STEAL));
	}
	assert_true(async_is_busy(a) == async_is_pending(a, ASK_STEAL));
	async_close(a);
}

/* STATUS returns the sentence of explain_status(); errors are returned. */
static void test_sentences_and_errors(void **state)
{
	(void)state;
	char text[512];
	struct async_queries *a = async_open(&catalog, NULL);
	for (uint32_t t = 0; t < catalog.threads; t++) {
		struct question q = { .target = { TARGET_THREAD, t }, .t = UI_WORLD_BEGIN + 7500000 };
		struct answer answer = answer_to(a, ASK_STATUS, &q);
		assert_int_equal(explain_status(&catalog, &q.target, q.t, text, sizeof text, NULL), answer.status);
		assert_string_equal(text, answer.text);
	}
	for (uint32_t c = 0; c < catalog.cpus; c++) {
		for (int64_t t = UI_WORLD_BEGIN; t < UI_WORLD_BEGIN + UI_WORLD_SPAN; t += 1700000) {
			struct question q = { .target = { TARGET_CPU, c }, .t = t };
			struct answer answer = answer_to(a, ASK_STATUS, &q);
			assert_int_equal(explain_status(&catalog, &q.target, q.t, text, sizeof text, NULL), answer.status);
			assert_string_equal(text, answer.text);
		}
	}
	struct question outside = { .target = { TARGET_THREAD, 0 }, .from = 5, .to = 6 };
	struct answer answer = answer_to(a, ASK_FLOW, &outside);
	assert_int_equal(answer.status, -1);
	assert_non_null(strstr(answer.err.text, "not alive in that window"));
	async_close(a);
}

/* EXPLAIN returns the paragraph of explain_at(); CAUSE returns the actor that had the CPU longest in the interval. */
static void test_paragraphs_and_causes(void **state)
{
	(void)state;
	struct async_queries *a = async_open(&catalog, NULL);
	size_t causes = 0, paragraphs = 0;
	for (uint32_t i = 0; i < catalog.threads + catalog.cpus; i++) {
		struct target s = { i < catalog.threads ? TARGET_THREAD : TARGET_CPU,
			i < catalog.threads ? i : i - catalog.threads };
		for (int64_t t = UI_WORLD_BEGIN + 300000; t < UI_WORLD_BEGIN + UI_WORLD_SPAN; t += 9100000) {
			struct question q = { .target = s, .t = t };
			struct answer answer = answer_to(a, ASK_EXPLAIN, &q);
			char *text;
			struct error err = ERROR_INIT;
			assert_int_equal(explain_at(&catalog, &s, t, &text, &err), answer.status);
			if (answer.status == 0)
				assert_string_equal(text, answer.paragraph);
			else
				assert_string_equal(err.text, answer.err.text);
			paragraphs += answer.status == 0;
			free(text);
			free(answer.paragraph);
			struct gap gap;
			struct flow flow;
			if (gap_at(&catalog, &s, t, &gap, &err) <= 0)
				continue;
			q.from = gap.start;
			q.to = gap.end;
			answer = answer_to(a, ASK_CAUSE, &q);
			assert_int_equal(flow_of(&catalog, &s, gap.start, gap.end, NULL, &flow, &err), 0);
			const struct flow_entry *e = flow.entry;
			bool more = false;
			for (; e < flow.entry + flow.entries && e->actor.kind != FLOW_PREEMPTING; e++)
				more |= e->actor.kind != FLOW_RUNNING;
			const bool found = e < flow.entry + flow.entries;
			assert_int_equal(answer.status, 0);
			assert_int_equal(answer.culprit.machine >= 0, found);
			assert_int_equal(answer.took_most, !more);
			if (found) {
				assert_int_equal(answer.culprit.machine, e->actor.machine);
				assert_int_equal(answer.culprit.tid, e->actor.tid);
				assert_string_equal(answer.text, flow.name[e->actor.name]);
				assert_true(answer.share <= e->share + 1e-12 && answer.share >= e->share - 1e-12);
			}
			causes += found;
			flow_release(&flow);
		}
	}
	assert_true(causes > 20 && paragraphs > 200);
	async_close(a);
}

static int setup(void **state)
{
	(void)state;
	struct error err = ERROR_INIT;
	close(mkstemp(world));
	ui_world_write(world, 50);
	h = history_open(world, &err);
	return h && catalog_open(&catalog, h, &err) == 0 ? 0 : -1;
}

static atomic_int reads;       /* number of reads that started */
static atomic_bool let_go;     /* they may finish */

/* Stub that behaves like reading large traces: one long step, with progress reports that may cancel it. */
static int read_for_long(const struct history *shown, const char *machine, int64_t from, int64_t to, size_t most,
                         struct progress progress, struct event_list *out, struct error *err)
{
	(void)shown, (void)machine, (void)from, (void)most;
	atomic_fetch_add(&reads, 1);
	while (!atomic_load(&let_go)) {
		if (progress.tick(progress.arg, "reading", 1, 2))
			return error_set(err, STATUS_INPUT, NULL, "not wanted");
		usleep(100);
	}
	const struct event_text one = { .t = to, .machine = "x", .event = "y", .fields = "" };
	event_list_add(out, &one);
	return 0;
}

/* All other questions are answered while events are read; a new question about events cancels the earlier one. */
static void test_nothing_waits_for_traces(void **state)
{
	(void)state;
	static const struct ui_traces traces = { read_for_long };
	struct answer answer;
	struct async_queries *a = async_open(&catalog, &traces);
	uint32_t vm = 0;
	while (catalog.machine[vm].kind != MACHINE_VM)
		vm++;
	struct question q = { .target = { TARGET_THREAD, catalog.machine[vm].thread } };
	assert_non_null(a);
	assert_int_equal(catalog_lifetime(&catalog, &q.target, &q.from, &q.to, NULL), 1);
	q.t = q.from;
	async_ask(a, ASK_EVENTS, &q);
	while (!atomic_load(&reads))
		usleep(100);
	static const enum ask_kind others[] = { ASK_STATUS, ASK_CAUSE, ASK_EXPLAIN, ASK_FLOW, ASK_STEAL, ASK_SUMMARY, ASK_GAPS,
		ASK_EXITS };
	for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
		answer = answer_to(a, others[i], &q);
		assert_int_equal(answer.status, 0);
		free(answer.paragraph);
		flow_release(&answer.flow);
		steal_release(&answer.steal);
		summary_release(&answer.summary);
		gap_list_release(&answer.gaps);
		exits_release(&answer.exits);
	}
	assert_true(async_is_pending(a, ASK_EVENTS) && !async_take_answer(a, ASK_EVENTS, &answer));
	q.to--;
	async_ask(a, ASK_EVENTS, &q);
	while (atomic_load(&reads) < 2)
		usleep(100);
	atomic_store(&let_go, true);
	answer = answer_to(a, ASK_EVENTS, &q);
	assert_int_equal(answer.status, 0);
	assert_true(answer.events.len == 1 && answer.events.event[0].t == q.to);
	event_list_release(&answer.events);
	async_close(a);
}

static int teardown(void **state)
{
	(void)state;
	catalog_release(&catalog);
	history_close(h);
	unlink(world);
	return 0;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_slices_add_up),
		cmocka_unit_test(test_the_last_question_counts),
		cmocka_unit_test(test_sentences_and_errors),
		cmocka_unit_test(test_paragraphs_and_causes),
		cmocka_unit_test(test_nothing_waits_for_traces),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
