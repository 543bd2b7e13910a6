/* Tests of ui/: answers of the worker threads equal direct queries, regardless of earlier questions. */
#include "query_answers.h"
#include "test.h"

#include <stdatomic.h>
#include <unistd.h>

#include "ui/core/async_query.h"
#include "ui_world.h"

static char world[64] = "/tmp/stealscope-ask-XXXXXX";
static struct history *h;
static struct catalog catalog;

/* Waits for the answer of a question that was asked; the caller closes the query. NULL: it failed with *err. */
static struct query *answer_of(struct async_queries *a, struct question *question, struct error *err)
{
	struct query *query;
	for (int i = 0; i < 100; i++) {
		assert_true(async_is_pending(a, question));
		async_wait(a, question, 1000000000);
		const int got = async_take(a, question, &query, NULL, err);
		if (got)
			return got > 0 ? query : NULL;
	}
	fail_msg("the question was lost");
	return NULL;
}

static struct query *answer_to(struct async_queries *a, struct query *query, struct error *err)
{
	struct question question = { 0 };
	async_ask(a, &question, ASK_PANE, query, err);
	return answer_of(a, &question, err);
}

static struct query *open_steal(int64_t from, int64_t to)
{
	return steal_open(&catalog, &(struct steal_options){ .by = STEAL_BY_THREAD, .from = from, .to = to, .most = ASK_CELLS });
}

static struct query *open_flow(uint32_t thread, int64_t from, int64_t to, struct error *err)
{
	const struct flow_options options = { .intervals = ASK_INTERVALS };
	return flow_open(&catalog, &(struct target){ TARGET_THREAD, thread }, from, to, &options, err);
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
	struct async_queries *a = async_open();
	assert_non_null(a);
	for (uint32_t t = 0; t < catalog.threads; t++)
		for (int64_t span = UI_WORLD_SPAN; span > 1000; span /= 7) {
			const int64_t from = UI_WORLD_BEGIN + (t * 7919 + span) % (UI_WORLD_SPAN - span + 1), to = from + span - 1;
			struct flow flow, got;
			struct query *query = answer_to(a, open_flow(t, from, to, &err), &err);
			int status = query_answer(flow_open(&catalog, &(struct target){ TARGET_THREAD, t }, from, to, NULL, &err), &flow, &err);
			assert_int_equal(status, query ? 0 : -1);
			if (status == 0) {
				query_take(query, &got);
				same_flow(&got, &flow);
				flow_release(&got);
			}
			flow_release(&flow);
			query_close(query);
			struct steal steal, taken;
			query = answer_to(a, open_steal(from, to), &err);
			query_take(query, &taken);
			assert_int_equal(steal_matrix(&catalog, STEAL_BY_THREAD, NULL, from, to, &steal, &err), 0);
			same_steal(&taken, &steal);
			steal_release(&steal);
			steal_release(&taken);
			query_close(query);
		}
	async_close(a);
}

/* Of several queries of a question only the last is answered; dropped questions never are. */
static void test_the_last_question_counts(void **state)
{
	(void)state;
	struct async_queries *a = async_open();
	struct question steal = { 0 }, flow = { 0 };
	struct error err = ERROR_INIT;
	for (int round = 0; round < 200; round++) {
		int64_t to = 0;
		async_ask(a, &steal, ASK_BACKGROUND, open_steal(UI_WORLD_BEGIN, UI_WORLD_BEGIN + UI_WORLD_SPAN - 1), NULL);
		for (uint32_t t = 0; t < catalog.threads; t++) {
			to = UI_WORLD_BEGIN + 1000000 + t;
			async_ask(a, &flow, ASK_PANE, open_flow(t, UI_WORLD_BEGIN, to, &err), &err);
		}
		if (round % 2)
			async_drop(a, &steal);
		struct query *query = answer_of(a, &flow, &err);
		struct flow got;
		assert_non_null(query);
		query_take(query, &got);
		assert_true(got.end == to);
		flow_release(&got);
		query_close(query);
		if (round % 2)
			assert_int_equal(async_take(a, &steal, &query, NULL, &err), 0);
		assert_true(round % 2 == !async_is_pending(a, &steal));
	}
	assert_true(async_is_busy(a) == async_is_pending(a, &steal));
	async_ask(a, &steal, ASK_BACKGROUND, open_steal(UI_WORLD_BEGIN, UI_WORLD_BEGIN + UI_WORLD_SPAN - 1), NULL);
	async_close(a);
	assert_int_equal(steal.phase, NOT_ASKED);
}

/* A worker computes the same sentences and paragraphs as the direct functions. Errors are returned, also those of queries
 * that could not be opened. */
static void test_sentences_and_errors(void **state)
{
	(void)state;
	char sentence[512];
	struct async_queries *a = async_open();
	size_t paragraphs = 0;
	for (uint32_t i = 0; i < catalog.threads + catalog.cpus; i++) {
		const struct target s = { i < catalog.threads ? TARGET_THREAD : TARGET_CPU,
			i < catalog.threads ? i : i - catalog.threads };
		for (int64_t t = UI_WORLD_BEGIN; t < UI_WORLD_BEGIN + UI_WORLD_SPAN; t += 9100000) {
			struct error err = ERROR_INIT, direct = ERROR_INIT;
			struct query *query = answer_to(a, status_open(&catalog, &s, t), &err);
			assert_int_equal(explain_status(&catalog, &s, t, sentence, sizeof sentence, &direct), query ? 0 : -1);
			char *text = NULL, *paragraph;
			if (query)
				query_take(query, &text);
			assert_string_equal(text ? text : "", sentence);
			free(text);
			query_close(query);
			query = answer_to(a, explain_open(&catalog, &s, t, &err), &err);
			assert_int_equal(query_answer(explain_open(&catalog, &s, t, &direct), &paragraph, &direct), query ? 0 : -1);
			text = NULL;
			if (query)
				query_take(query, &text);
			assert_string_equal(text ? text : err.text, paragraph ? paragraph : direct.text);
			paragraphs += query != NULL;
			free(text);
			free(paragraph);
			query_close(query);
		}
	}
	assert_true(paragraphs > 200);
	struct error err = ERROR_INIT;
	assert_null(answer_to(a, open_flow(0, 5, 6, &err), &err));
	assert_non_null(strstr(err.text, "not alive in that window"));
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

static atomic_int reads;       /* number of long steps that started */
static atomic_bool let_go;     /* they may finish */

/* Behaves like reading large traces: one long step, with progress reports that may cancel it. */
static int read_for_long(void *queries, int64_t until, struct error *err)
{
	(void)until;
	atomic_fetch_add(&reads, 1);
	while (!atomic_load(&let_go)) {
		if (async_report(queries, 50))
			return error_set(err, STATUS_INPUT, NULL, "not wanted");
		usleep(100);
	}
	return 1;
}

static void release_nothing(void *queries)
{
	(void)queries;
}

/* All other questions are answered during a long step; a new query of its question cancels the step. */
static void test_nothing_waits_for_traces(void **state)
{
	(void)state;
	static const struct task_kind kind = { read_for_long, release_nothing };
	struct async_queries *a = async_open();
	struct question events = { 0 };
	struct query *query;
	struct error err = ERROR_INIT;
	async_ask(a, &events, ASK_LONG, query_task_open(&kind, a), NULL);
	while (!atomic_load(&reads) || async_progress(a, &events) != 50)
		usleep(100);
	const int64_t from = UI_WORLD_BEGIN, to = UI_WORLD_BEGIN + UI_WORLD_SPAN - 1;
	struct query *others[] = { open_steal(from, to),
		summary_open(&catalog, &(struct summary_options){ .from = from, .to = to, .gaps = true }),
		exits_open(&catalog, &(struct exit_options){ .from = from, .to = to }, &err),
		locks_open(&catalog, NULL, from, to), findings_open(&catalog, NULL, from, to) };
	for (size_t i = 0; i < COUNT(others); i++) {
		query = answer_to(a, others[i], &err);
		assert_non_null(query);
		query_close(query);
	}
	assert_true(async_is_pending(a, &events) && async_take(a, &events, &query, NULL, &err) == 0);
	async_ask(a, &events, ASK_LONG, query_task_open(&kind, a), NULL);
	while (atomic_load(&reads) < 2)
		usleep(100);
	atomic_store(&let_go, true);
	query = answer_of(a, &events, &err);
	assert_ptr_equal(query_task_state(query), a);
	query_close(query);
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
		cmocka_unit_test(test_nothing_waits_for_traces),
	};
	return cmocka_run_group_tests(tests, setup, teardown);
}
