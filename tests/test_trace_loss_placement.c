/* trace/: where in a packet what its tracer lost can be missing. */
#include "test.h"

#include "trace/loss_placement.h"

#define MOST 32

struct taken {
	struct outlet outlet;
	struct event ev[MOST];
	size_t n;
};

static int take(struct outlet *o, const struct event *ev)
{
	struct taken *t = (struct taken *)o;
	assert_true(t->n < MOST);
	t->ev[t->n++] = *ev;
	return 0;
}

static int covers(struct outlet *o, uint16_t cpu, int64_t begin, int64_t end)
{
	(void)o, (void)cpu, (void)begin, (void)end;
	return 0;
}

static const struct outlet_ops ops = { .put = take, .covers = covers };

/* A packet that begins at 0, before whose end 5 events were lost: a switch (s), an exit (x) or something small every 10 ns. */
static void open_packet(struct course *c, struct taken *t, const char *events)
{
	*t = (struct taken){ .outlet.ops = &ops };
	course_begin(c, &t->outlet);
	c->lost_tail = true;
	assert_int_equal(course_lost(c, 0, 1000, 5), 0);
	assert_int_equal(course_packet(c, 3, 0), 0);
	for (int i = 0; events[i]; i++) {
		const struct event ev = { .ts = 10 * (i + 1), .cpu = 3,
			.kind = events[i] == 's' ? EV_SWITCH : events[i] == 'x' ? EV_KVM_EXIT : EV_SOFTIRQ_ENTRY };
		assert_int_equal(course_event(c, &ev), 0);
	}
}

static struct taken packet(const char *events)
{
	struct course c;
	struct taken t;
	open_packet(&c, &t, events);
	assert_int_equal(course_packet_end(&c, 1000), 0);
	return t;
}

static void assert_lost(const struct event *ev, int64_t from, int64_t to, int64_t count)
{
	assert_int_equal(ev->kind, EV_LOST);
	assert_int_equal(ev->cpu, 3);
	assert_int_equal(ev->ts, from);
	assert_int_equal(ev->lost.end, to);
	assert_int_equal(ev->lost.count, count);
}

static void assert_event(const struct event *ev, int64_t at)
{
	assert_int_not_equal(ev->kind, EV_LOST);
	assert_int_equal(ev->ts, at);
}

/* Where there was room for a switch no switch was lost; behind it what still found room tells of its own moment alone. */
static void test_behind_a_switch(void **state)
{
	(void)state;
	const struct taken t = packet("iisii");
	assert_int_equal(t.n, 8);
	for (int i = 0; i < 3; i++)
		assert_event(&t.ev[i], 10 * (i + 1));
	assert_lost(&t.ev[3], 30, 40, 0);
	assert_event(&t.ev[4], 40);
	assert_lost(&t.ev[5], 40, 50, 0);
	assert_event(&t.ev[6], 50);
	assert_lost(&t.ev[7], 50, 1000, 5);
}

/* The last thing for which there was room is a switch: nothing was lost before it. */
static void test_at_a_switch(void **state)
{
	(void)state;
	const struct taken t = packet("is");
	assert_int_equal(t.n, 3);
	assert_event(&t.ev[1], 20);
	assert_lost(&t.ev[2], 20, 1000, 5);
}

/* So many small ones take as much room as a switch: before them there was room for it. */
static void test_room_for_a_switch(void **state)
{
	(void)state;
	const struct taken t = packet("siiiiiiiiii");
	assert_int_equal(t.n, 11 + COURSE_TAIL + 1);
	for (int i = 0; i < 3; i++)
		assert_event(&t.ev[i], 10 * (i + 1));
	assert_lost(&t.ev[3], 30, 40, 0);
	assert_lost(&t.ev[t.n - 1], 110, 1000, 5);
}

/* An exit, which is in no handler, tells its own moment; unless the packet ends there: what comes next is not earlier than
 * the loss. */
static void test_at_an_exit(void **state)
{
	(void)state;
	const struct taken t = packet("sxix");
	assert_int_equal(t.n, 8);
	assert_event(&t.ev[0], 10);
	assert_lost(&t.ev[1], 10, 20, 0);
	assert_event(&t.ev[2], 20);
	assert_lost(&t.ev[3], 21, 30, 0);
	assert_event(&t.ev[4], 30);
	assert_lost(&t.ev[5], 30, 40, 0);
	assert_lost(&t.ev[7], 41, 1000, 5);
	for (int early = 0; early < 2; early++) {
		struct course c;
		struct taken ends;
		open_packet(&c, &ends, "sx");
		assert_int_equal(course_packet_end(&c, 20 - 5 * early), 0);
		assert_int_equal(ends.n, 4);
		assert_lost(&ends.ev[3], 20, 20, 5);
	}
}

/* The packet before was full to its last byte: what this one counts may be missing between the two. */
static void test_between_packets(void **state)
{
	(void)state;
	struct course c;
	struct taken t;
	open_packet(&c, &t, "");
	assert_int_equal(course_packet_end(&c, 100), 0);
	assert_int_equal(course_lost(&c, 100, 1000, 7), 0);
	assert_int_equal(course_packet(&c, 3, 400), 0);
	assert_int_equal(course_event(&c, &(struct event){ .ts = 400, .kind = EV_SWITCH, .cpu = 3 }), 0);
	assert_int_equal(course_packet_end(&c, 1000), 0);
	assert_int_equal(t.n, 4);
	assert_lost(&t.ev[1], 101, 400, 0);
	assert_event(&t.ev[2], 400);
	assert_lost(&t.ev[3], 400, 1000, 7);
	assert_int_equal(course_packet(&c, 3, 2000), 0);  /* nothing was lost before that: nothing happened */
	assert_int_equal(course_packet_end(&c, 3000), 0);
	assert_int_equal(t.n, 4);
}

/* A packet without an event; and one that breaks off: nothing is held back. */
static void test_nothing_is_kept(void **state)
{
	(void)state;
	const struct taken none = packet("");
	assert_int_equal(none.n, 1);
	assert_lost(&none.ev[0], 0, 1000, 5);
	struct course c;
	struct taken t;
	open_packet(&c, &t, "i");
	assert_int_equal(t.n, 0);
	assert_int_equal(course_broken(&c), 0);
	assert_int_equal(t.n, 2);
	assert_event(&t.ev[0], 10);
	assert_lost(&t.ev[1], 10, 10, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_behind_a_switch),
		cmocka_unit_test(test_at_a_switch),
		cmocka_unit_test(test_room_for_a_switch),
		cmocka_unit_test(test_at_an_exit),
		cmocka_unit_test(test_between_packets),
		cmocka_unit_test(test_nothing_is_kept),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
