#include "trace/live/translate.h"

void translator_init(struct translator *t, struct event_mapping *mapping)
{
	*t = (struct translator){ .mapping = mapping };
	string_cache_init(&t->names, mapping->names);
}

static int64_t snapshot_ns(const bt_clock_snapshot *cs, int64_t default_ns)
{
	int64_t ns;
	if (!cs || bt_clock_snapshot_get_ns_from_origin(cs, &ns) != BT_CLOCK_SNAPSHOT_GET_NS_FROM_ORIGIN_STATUS_OK)
		return default_ns;
	return ns;
}

static int translate_event(struct translator *t, struct translation *j, const bt_message *msg)
{
	const bt_event *event = bt_message_event_borrow_event_const(msg);
	struct event ev, counters;
	const bt_stream_class *sc = bt_event_class_borrow_stream_class_const(bt_event_borrow_class_const(event));
	const bt_clock_snapshot *cs = !bt_stream_class_borrow_default_clock_class_const(sc) ? NULL :
		bt_message_event_borrow_default_clock_snapshot_const(msg);
	ev.ts = snapshot_ns(cs, INT64_MIN);
	if (ev.ts == INT64_MIN) {
		j->loss_placer.event_sink->faults.untimed++;
		return 0;
	}
	if (binder_event(t->binder, event, j->loss_placer.cpu, &ev, &counters) &&
	    loss_placer_event(&j->loss_placer, &counters))
		return -1;
	return loss_placer_event(&j->loss_placer, &ev);
}

static int translate_discarded_events(struct translation *j, const bt_message *msg)
{
	const bt_stream_class *sc =
		bt_stream_borrow_class_const(bt_message_discarded_events_borrow_stream_const(msg));
	uint64_t n;
	const bool counted = bt_message_discarded_events_get_count(msg, &n) == BT_PROPERTY_AVAILABILITY_AVAILABLE;
	int64_t begin = NO_TIME, end = NO_TIME;
	if (bt_stream_class_discarded_events_have_default_clock_snapshots(sc)) {
		begin = snapshot_ns(bt_message_discarded_events_borrow_beginning_default_clock_snapshot_const(msg), begin);
		end = snapshot_ns(bt_message_discarded_events_borrow_end_default_clock_snapshot_const(msg), begin);
	}
	return loss_placer_lost(&j->loss_placer, begin, end, counted ? (int64_t)(n & INT64_MAX) : EVENT_ABSENT);
}

static int translate_discarded_packets(struct translation *j, const bt_message *msg)
{
	const bt_stream_class *sc =
		bt_stream_borrow_class_const(bt_message_discarded_packets_borrow_stream_const(msg));
	uint64_t n;
	if (bt_message_discarded_packets_get_count(msg, &n) != BT_PROPERTY_AVAILABILITY_AVAILABLE)
		n = 0;
	int64_t begin = NO_TIME, end = NO_TIME;
	if (bt_stream_class_discarded_packets_have_default_clock_snapshots(sc)) {
		begin = snapshot_ns(bt_message_discarded_packets_borrow_beginning_default_clock_snapshot_const(msg), begin);
		end = snapshot_ns(bt_message_discarded_packets_borrow_end_default_clock_snapshot_const(msg), begin);
	}
	return loss_placer_lost_packets(&j->loss_placer, begin, end, n);
}

static void choose_layout(struct translator *t, const bt_trace_class *tc)
{
	size_t best = 0, best_score = 0;
	unsigned enabled_events, best_enabled = 0;
	for (size_t i = 0; i < t->mapping->layouts; i++) {
		size_t score = binder_score(t->mapping->layout[i], tc, &enabled_events);
		if (score > best_score) {
			best = i;
			best_score = score;
			best_enabled = enabled_events;
		}
	}
	t->layout = t->mapping->layout[best];
	t->binder = binder_new(t->layout, &t->names);
	atomic_store(&t->mapping->enabled_events, best_enabled);
	if (best_score)
		atomic_store(&t->mapping->chosen, best + 1);
}

static int translate_packet_begin(struct translator *t, struct translation *j, const bt_message *msg)
{
	const bt_packet *packet = bt_message_packet_beginning_borrow_packet_const(msg);
	const bt_stream_class *sc = bt_stream_borrow_class_const(bt_packet_borrow_stream_const(packet));
	const bt_clock_snapshot *begin = !bt_stream_class_packets_have_beginning_default_clock_snapshot(sc) ? NULL :
		bt_message_packet_beginning_borrow_default_clock_snapshot_const(msg);
	return loss_placer_packet(&j->loss_placer, binder_packet_cpu(t->binder, packet), snapshot_ns(begin, NO_TIME));
}

static int translate_packet_end(struct translation *j, const bt_message *msg)
{
	const bt_packet *packet = bt_message_packet_end_borrow_packet_const(msg);
	const bt_stream_class *sc = bt_stream_borrow_class_const(bt_packet_borrow_stream_const(packet));
	const bt_clock_snapshot *end = !bt_stream_class_packets_have_end_default_clock_snapshot(sc) ? NULL :
		bt_message_packet_end_borrow_default_clock_snapshot_const(msg);
	return loss_placer_packet_end(&j->loss_placer, snapshot_ns(end, NO_TIME));
}

int translate(struct translator *t, struct translation *j, const bt_message *msg)
{
	switch (bt_message_get_type(msg)) {
	case BT_MESSAGE_TYPE_EVENT:
		return translate_event(t, j, msg);
	case BT_MESSAGE_TYPE_STREAM_BEGINNING:
		if (!t->binder)
			choose_layout(t, bt_trace_borrow_class_const(bt_stream_borrow_trace_const(
				bt_message_stream_beginning_borrow_stream_const(msg))));
		j->loss_placer.lost_tail = t->layout->lost_tail;
		return 0;
	case BT_MESSAGE_TYPE_PACKET_BEGINNING:
		return translate_packet_begin(t, j, msg);
	case BT_MESSAGE_TYPE_PACKET_END:
		return translate_packet_end(j, msg);
	case BT_MESSAGE_TYPE_DISCARDED_EVENTS:
		return translate_discarded_events(j, msg);
	case BT_MESSAGE_TYPE_DISCARDED_PACKETS:
		return translate_discarded_packets(j, msg);
	default:
		return 0;
	}
}
