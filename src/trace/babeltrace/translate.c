#include "trace/babeltrace/translate.h"

#include "base/mem.h"
#include "trace/babeltrace/library.h"

#define SLACK 1000000000U  /* clock cycles that an event's time may be behind its packet's end (old tracers' quirk) */

void translator_init(struct translator *t, struct meaning *shared)
{
	*t = (struct translator){ .shared = shared };
	name_cache_init(&t->names, shared->names);
}

void translator_release(struct translator *t)
{
	binder_free(t->binder);
	name_cache_release(&t->names);
}

static int64_t time_of(const bt_clock_snapshot *cs, int64_t otherwise)
{
	int64_t ns;
	if (!cs || bt_clock_snapshot_get_ns_from_origin(cs, &ns) != BT_CLOCK_SNAPSHOT_GET_NS_FROM_ORIGIN_STATUS_OK)
		return otherwise;
	return ns;
}

/* One damaged time would push all later ones to it, as times never go back. */
static bool is_beyond_packet(const struct translation *j, const bt_clock_snapshot *cs)
{
	const struct decode *w = j->what;
	const uint64_t i = j->how->packets - 1;
	return i < w->packets && w->packet[i].end && w->packet[i].end <= UINT64_MAX - SLACK &&
	       bt_clock_snapshot_get_value(cs) > w->packet[i].end + SLACK;
}

static int on_event(struct translator *t, struct translation *j, const bt_message *msg)
{
	const bt_event *event = bt_message_event_borrow_event_const(msg);
	struct event ev;
	const bt_stream_class *sc = bt_event_class_borrow_stream_class_const(bt_event_borrow_class_const(event));
	const bt_clock_snapshot *cs = !bt_stream_class_borrow_default_clock_class_const(sc) ? NULL :
		bt_message_event_borrow_default_clock_snapshot_const(msg);
	if (cs && is_beyond_packet(j, cs)) {
		j->how->broken = mem_dup("an event's time lies far behind its packet's end");
		return 0;
	}
	ev.ts = time_of(cs, INT64_MIN);
	if (ev.ts == INT64_MIN) {
		j->course.outlet->faults.untimed++;
		return 0;
	}
	binder_event(t->binder, event, j->course.cpu, &ev);
	return course_event(&j->course, &ev);
}

static int on_discarded_events(struct translation *j, const bt_message *msg)
{
	const bt_stream_class *sc =
		bt_stream_borrow_class_const(bt_message_discarded_events_borrow_stream_const(msg));
	uint64_t n;
	if (j->what->before && !j->how->packets)
		return 0;  /* the whole stream's count so far: see lost_before_first() */
	bool counted = bt_message_discarded_events_get_count(msg, &n) == BT_PROPERTY_AVAILABILITY_AVAILABLE;
	if (!counted && !j->how->packets) {
		n = j->what->lost_first;
		counted = n > 0;
	}
	int64_t begin = NO_TIME, end = NO_TIME;
	if (bt_stream_class_discarded_events_have_default_clock_snapshots(sc)) {
		begin = time_of(bt_message_discarded_events_borrow_beginning_default_clock_snapshot_const(msg), begin);
		end = time_of(bt_message_discarded_events_borrow_end_default_clock_snapshot_const(msg), begin);
	}
	return course_lost(&j->course, begin, end, counted ? (int64_t)(n & INT64_MAX) : EVENT_ABSENT);
}

static int on_discarded_packets(struct translation *j, const bt_message *msg)
{
	const bt_stream_class *sc =
		bt_stream_borrow_class_const(bt_message_discarded_packets_borrow_stream_const(msg));
	uint64_t n;
	if (bt_message_discarded_packets_get_count(msg, &n) != BT_PROPERTY_AVAILABILITY_AVAILABLE)
		n = 0;
	int64_t begin = NO_TIME, end = NO_TIME;
	if (bt_stream_class_discarded_packets_have_default_clock_snapshots(sc)) {
		begin = time_of(bt_message_discarded_packets_borrow_beginning_default_clock_snapshot_const(msg), begin);
		end = time_of(bt_message_discarded_packets_borrow_end_default_clock_snapshot_const(msg), begin);
	}
	return course_lost_packets(&j->course, begin, end, n);
}

static void choose_layout(struct translator *t, const bt_trace_class *tc)
{
	size_t best = 0, best_score = 0;
	unsigned asked, best_asked = 0;
	for (size_t i = 0; i < t->shared->layouts; i++) {
		size_t score = binder_score(t->shared->layout[i], tc, &asked);
		if (score > best_score) {
			best = i;
			best_score = score;
			best_asked = asked;
		}
	}
	t->layout = t->shared->layout[best];
	t->binder = binder_new(t->layout, &t->names);
	atomic_store(&t->shared->asked, best_asked);
	if (best_score)
		atomic_store(&t->shared->chosen, best + 1);
}

/* A part of a stream: what was lost before or in its first packet since the one before that, which libbabeltrace2 did not
 * see. */
static int lost_before_first(struct translation *j, const bt_clock_snapshot *snapshot)
{
	const struct decode *w = j->what;
	const int64_t begin = time_of(snapshot, j->course.ts);
	int64_t from = begin;
	const uint64_t n = w->before ? w->packet[0].discarded - w->before->discarded : 0;
	if (n == 0 || n > INT64_MAX)
		return 0;
	const bt_clock_class *cc = snapshot ? bt_clock_snapshot_borrow_clock_class_const(snapshot) : NULL;
	if (cc && w->lost_from == INT64_MIN && w->before->end &&
	    bt_clock_class_cycles_to_ns_from_origin(cc, w->before->end, &from))
		from = begin;
	return course_lost(&j->course, from, begin, (int64_t)n);
}

static void check_packet(struct translation *j, const bt_clock_snapshot *begin)
{
	const struct decode *w = j->what;
	const uint64_t i = j->how->packets;
	if (i >= w->packets || (begin && w->packet[i].begin && bt_clock_snapshot_get_value(begin) != w->packet[i].begin))
		j->how->unexpected = true;
}

static int on_packet_begin(struct translator *t, struct translation *j, const bt_message *msg)
{
	const bt_packet *packet = bt_message_packet_beginning_borrow_packet_const(msg);
	const bt_stream_class *sc = bt_stream_borrow_class_const(bt_packet_borrow_stream_const(packet));
	const bt_clock_snapshot *begin = !bt_stream_class_packets_have_beginning_default_clock_snapshot(sc) ? NULL :
		bt_message_packet_beginning_borrow_default_clock_snapshot_const(msg);
	int64_t cpu = binder_packet_cpu(t->binder, packet);
	const bool is_first = !j->how->packets;
	if (j->what->check)
		check_packet(j, begin);
	if (j->how->unexpected)
		return 0;
	if ((is_first && lost_before_first(j, begin)) || course_packet(&j->course, cpu, time_of(begin, NO_TIME)))
		return -1;
	if (is_first && j->what->lost_from != INT64_MIN &&
	    course_gap(&j->course, j->what->lost_from, time_of(begin, j->course.ts)))
		return -1;
	j->how->packets++;
	j->how->open = true;
	return 0;
}

/* end is NULL when the stream ends without the packet's end, or when packets have no end time. */
static int on_packet_end(struct translation *j, const bt_clock_snapshot *end)
{
	const struct decode *w = j->what;
	const uint64_t i = j->how->packets;
	if (j->how->open && i && i <= w->packets)
		j->how->bytes += w->packet[i - 1].size;
	j->how->open = false;
	return course_packet_end(&j->course, time_of(end, NO_TIME));
}

static int on_packet_end_message(struct translation *j, const bt_message *msg)
{
	const bt_packet *packet = bt_message_packet_end_borrow_packet_const(msg);
	const bt_stream_class *sc = bt_stream_borrow_class_const(bt_packet_borrow_stream_const(packet));
	return on_packet_end(j, !bt_stream_class_packets_have_end_default_clock_snapshot(sc) ? NULL :
		bt_message_packet_end_borrow_default_clock_snapshot_const(msg));
}

int translate_broken(struct translation *j)
{
	if (!j->how->broken) {
		struct error why = ERROR_INIT;
		library_error(&why, "libbabeltrace2");
		j->how->broken = mem_dup(why.text);
	}
	return course_broken(&j->course);
}

int translate(struct translator *t, struct translation *j, const bt_message *msg)
{
	switch (bt_message_get_type(msg)) {
	case BT_MESSAGE_TYPE_EVENT:
		return on_event(t, j, msg);
	case BT_MESSAGE_TYPE_STREAM_BEGINNING:
		if (!t->binder)
			choose_layout(t, bt_trace_borrow_class_const(bt_stream_borrow_trace_const(
				bt_message_stream_beginning_borrow_stream_const(msg))));
		j->course.lost_tail = t->layout->lost_tail;
		return 0;
	case BT_MESSAGE_TYPE_PACKET_BEGINNING:
		return on_packet_begin(t, j, msg);
	case BT_MESSAGE_TYPE_PACKET_END:
		return on_packet_end_message(j, msg);
	case BT_MESSAGE_TYPE_DISCARDED_EVENTS:
		return on_discarded_events(j, msg);
	case BT_MESSAGE_TYPE_DISCARDED_PACKETS:
		return on_discarded_packets(j, msg);
	default:
		return 0;
	}
}
