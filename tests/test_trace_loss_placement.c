/* Tests of trace/: where losses are placed within a packet. */
#include "test.h"

#include "trace/loss_placement.h"

#define MOST 32

struct recorded_sink {
	struct event_sink event_sink;
	struct event ev[MOST];
	size_t n;
};

static int put_event(struct event_sink *o, const struct event *ev)
{
	struct recorded_sink *t = (struct recorded_sink *)o;
	assert_true(t->n < MOST);
	t->ev[t->n++] = *ev;
	return 0;
}

static int add_coverage(struct event_sink *o, uint16_t cpu, int64_t begin, int64_t end)
{
	(void)o, (void)cpu, (void)begin, (void)end;
	return 0;
}

static const struct event_sink_ops ops = { .put = put_event, .add_coverage = add_coverage };

/* Adds a packet that starts at 0 and lost 5 events before its end, with an event every 10 ns: a switch (s), a VM exit
 * (x) or a small event (i). */
static void open_packet(struct loss_placer *c, struct recorded_sink *t, const char *events)
{
	*t = (struct recorded_sink){ .event_sink.ops = &ops };
	loss_placer_init(c, &t->event_sink);
	c->lost_tail = true;
	assert_int_equal(loss_placer_lost(c, 0, 1000, 5), 0);
	assert_int_equal(loss_placer_packet(c, 3, 0), 0);
	for (int i = 0; events[i]; i++) {
		const struct event ev = { .ts = 10 * (i + 1), .cpu = 3,
			.kind = events[i] == 's' ? EV_SWITCH : events[i] == 'x' ? EV_VCPU_EXIT : EV_SOFTIRQ_ENTRY };
		assert_int_equal(loss_placer_event(c, &ev), 0);
	}
}

static struct recorded_sink send_packet(const char *events)
{
	struct loss_placer c;
	struct recorded_sink t;
	open_packet(&c, &t, events);
	assert_int_equal(loss_placer_packet_end(&c, 1000), 0);
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

/* No switch was lost before the last recorded switch; each small event after it is valid only at its own time. */
static void test_loss_after_switch(void **state)
{
	(void)state;
	const struct recorded_sink t = send_packet("iisii");
	assert_int_equal(t.n, 8);
	for (int i = 0; i < 3; i++)
		assert_event(&t.ev[i], 10 * (i + 1));
	assert_lost(&t.ev[3], 30, 40, 0);
	assert_event(&t.ev[4], 40);
	assert_lost(&t.ev[5], 40, 50, 0);
	assert_event(&t.ev[6], 50);
	assert_lost(&t.ev[7], 50, 1000, 5);
}

/* If the last recorded event is a switch, nothing was lost before it. */
static void test_at_a_switch(void **state)
{
	(void)state;
	const struct recorded_sink t = send_packet("is");
	assert_int_equal(t.n, 3);
	assert_event(&t.ev[1], 20);
	assert_lost(&t.ev[2], 20, 1000, 5);
}

/* TAIL_EVENTS small events take as much space as a switch: before them, a switch would have fitted into the packet. */
static void test_room_for_a_switch(void **state)
{
	(void)state;
	const struct recorded_sink t = send_packet("siiiiiiiiii");
	assert_int_equal(t.n, 11 + TAIL_EVENTS + 1);
	for (int i = 0; i < 3; i++)
		assert_event(&t.ev[i], 10 * (i + 1));
	assert_lost(&t.ev[3], 30, 40, 0);
	assert_lost(&t.ev[t.n - 1], 110, 1000, 5);
}

/* A VM exit, which is never inside a handler, is valid at its own time: the loss starts 1 ns later, or at the exit if
 * the packet ends there. */
static void test_at_an_exit(void **state)
{
	(void)state;
	const struct recorded_sink t = send_packet("sxix");
	assert_int_equal(t.n, 8);
	assert_event(&t.ev[0], 10);
	assert_lost(&t.ev[1], 10, 20, 0);
	assert_event(&t.ev[2], 20);
	assert_lost(&t.ev[3], 21, 30, 0);
	assert_event(&t.ev[4], 30);
	assert_lost(&t.ev[5], 30, 40, 0);
	assert_lost(&t.ev[7], 41, 1000, 5);
	for (int early = 0; early < 2; early++) {
		struct loss_placer c;
		struct recorded_sink ends;
		open_packet(&c, &ends, "sx");
		assert_int_equal(loss_placer_packet_end(&c, 20 - 5 * early), 0);
		assert_int_equal(ends.n, 4);
		assert_lost(&ends.ev[3], 20, 20, 5);
	}
}

/* The previous packet was full to its last byte: the events that this packet counts as lost may be missing between the
 * two. */
static void test_between_packets(void **state)
{
	(void)state;
	struct loss_placer c;
	struct recorded_sink t;
	open_packet(&c, &t, "");
	assert_int_equal(loss_placer_packet_end(&c, 100), 0);
	assert_int_equal(loss_placer_lost(&c, 100, 1000, 7), 0);
	assert_int_equal(loss_placer_packet(&c, 3, 400), 0);
	assert_int_equal(loss_placer_event(&c, &(struct event){ .ts = 400, .kind = EV_SWITCH, .cpu = 3 }), 0);
	assert_int_equal(loss_placer_packet_end(&c, 1000), 0);
	assert_int_equal(t.n, 4);
	assert_lost(&t.ev[1], 101, 400, 0);
	assert_event(&t.ev[2], 400);
	assert_lost(&t.ev[3], 400, 1000, 7);
	assert_int_equal(loss_placer_packet(&c, 3, 2000), 0);  /* no loss, no event */
	assert_int_equal(loss_placer_packet_end(&c, 3000), 0);
	assert_int_equal(t.n, 4);
}

/* In packets without an event and in truncated packets, all delayed events are passed on. */
static void test_nothing_is_kept(void **state)
{
	(void)state;
	const struct recorded_sink none = send_packet("");
	assert_int_equal(none.n, 1);
	assert_lost(&none.ev[0], 0, 1000, 5);
	struct loss_placer c;
	struct recorded_sink t;
	open_packet(&c, &t, "i");
	assert_int_equal(t.n, 0);
	assert_int_equal(loss_placer_broken(&c), 0);
	assert_int_equal(t.n, 2);
	assert_event(&t.ev[0], 10);
	assert_lost(&t.ev[1], 10, 10, 5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_loss_after_switch),
		cmocka_unit_test(test_at_a_switch),
		cmocka_unit_test(test_room_for_a_switch),
		cmocka_unit_test(test_at_an_exit),
		cmocka_unit_test(test_between_packets),
		cmocka_unit_test(test_nothing_is_kept),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
