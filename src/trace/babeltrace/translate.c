#include "trace/babeltrace/translate.h"

#include "base/mem.h"
#include "trace/babeltrace/library.h"

#define MAX_EVENT_DELAY \
	1000000000U /* Maximum time from the end of a packet to one of its events, cycles: old tracers record
                                * such events. */

void translator_init(struct translator *t, struct event_mapping *mapping)
{
	*t = (struct translator){ .mapping = mapping };
	string_cache_init(&t->names, mapping->names);
}

void translator_release(struct translator *t)
{
	binder_free(t->binder);
	string_cache_release(&t->names);
}

static int64_t snapshot_ns(const bt_clock_snapshot *cs, int64_t default_ns)
{
	int64_t ns;
	if (!cs || bt_clock_snapshot_get_ns_from_origin(cs, &ns) != BT_CLOCK_SNAPSHOT_GET_NS_FROM_ORIGIN_STATUS_OK)
		return default_ns;
	return ns;
}

/* Returns true if the event is long after the end of its packet: its timestamp is damaged. Such an event would raise the
 * times of all later ones, because times never decrease. */
static bool is_beyond_packet(const struct translation *j, const bt_clock_snapshot *cs)
{
	const struct decode_request *w = j->request;
	const uint64_t i = j->progress->packets - 1;
	return i < w->packets && w->packet[i].end && w->packet[i].end <= UINT64_MAX - MAX_EVENT_DELAY &&
	       bt_clock_snapshot_get_value(cs) > w->packet[i].end + MAX_EVENT_DELAY;
}

static int translate_event(struct translator *t, struct translation *j, const bt_message *msg)
{
	const bt_event *event = bt_message_event_borrow_event_const(msg);
	struct event ev, counters;
	const bt_stream_class *sc = bt_event_class_borrow_stream_class_const(bt_event_borrow_class_const(event));
	const bt_clock_snapshot *cs = !bt_stream_class_borrow_default_clock_class_const(sc) ? NULL :
		bt_message_event_borrow_default_clock_snapshot_const(msg);
	if (j->progress->events++ >= j->request->max_events) {
		j->progress->error_text = mem_dup("events of size zero");
		return 0;
	}
	if (cs && is_beyond_packet(j, cs)) {
		j->progress->error_text = mem_dup("event time is long after the end of its packet");
		return 0;
	}
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
	if (j->request->previous && !j->progress->packets)
		return 0;  /* count since the start of the stream; put_lost_before_first() determines the part between the
		            * packets */
	bool counted = bt_message_discarded_events_get_count(msg, &n) == BT_PROPERTY_AVAILABILITY_AVAILABLE;
	if (!counted && !j->progress->packets) {
		n = j->request->lost_first;
		counted = n > 0;
	}
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

/* Adds the loss between the previous packet and the first packet of a part of a stream, because libbabeltrace2 does not
 * read the previous packet. */
static int put_lost_before_first(struct translation *j, const bt_clock_snapshot *snapshot)
{
	const struct decode_request *w = j->request;
	const int64_t begin = snapshot_ns(snapshot, j->loss_placer.ts);
	int64_t from = begin;
	const uint64_t n = w->previous ? w->packet[0].discarded - w->previous->discarded : 0;
	if (n == 0 || n > INT64_MAX)
		return 0;
	const bt_clock_class *cc = snapshot ? bt_clock_snapshot_borrow_clock_class_const(snapshot) : NULL;
	if (cc && w->lost_from == INT64_MIN && w->previous->end &&
	    bt_clock_class_cycles_to_ns_from_origin(cc, w->previous->end, &from))
		from = begin;
	return loss_placer_lost(&j->loss_placer, from, begin, (int64_t)n);
}

static void check_expected_packet(struct translation *j, const bt_clock_snapshot *begin)
{
	const struct decode_request *w = j->request;
	const uint64_t i = j->progress->packets;
	if (i >= w->packets || (begin && w->packet[i].begin && bt_clock_snapshot_get_value(begin) != w->packet[i].begin))
		j->progress->has_unexpected = true;
}

static int translate_packet_begin(struct translator *t, struct translation *j, const bt_message *msg)
{
	const bt_packet *packet = bt_message_packet_beginning_borrow_packet_const(msg);
	const bt_stream_class *sc = bt_stream_borrow_class_const(bt_packet_borrow_stream_const(packet));
	const bt_clock_snapshot *begin = !bt_stream_class_packets_have_beginning_default_clock_snapshot(sc) ? NULL :
		bt_message_packet_beginning_borrow_default_clock_snapshot_const(msg);
	int64_t cpu = binder_packet_cpu(t->binder, packet);
	const bool is_first = !j->progress->packets;
	if (j->request->must_match)
		check_expected_packet(j, begin);
	if (j->progress->has_unexpected)
		return 0;
	if ((is_first && put_lost_before_first(j, begin)) ||
	    loss_placer_packet(&j->loss_placer, cpu, snapshot_ns(begin, NO_TIME)))
		return -1;
	if (is_first && j->request->lost_from != INT64_MIN &&
	    loss_placer_gap(&j->loss_placer, j->request->lost_from, snapshot_ns(begin, j->loss_placer.ts)))
		return -1;
	j->progress->packets++;
	j->progress->in_packet = true;
	return 0;
}

/* Ends the current packet. end: NULL if the stream ends before the packet does, or if packets have no end time. */
static int end_packet(struct translation *j, const bt_clock_snapshot *end)
{
	const struct decode_request *w = j->request;
	const uint64_t i = j->progress->packets;
	if (j->progress->in_packet && i && i <= w->packets)
		j->progress->bytes += w->packet[i - 1].size;
	j->progress->in_packet = false;
	return loss_placer_packet_end(&j->loss_placer, snapshot_ns(end, NO_TIME));
}

static int translate_packet_end(struct translation *j, const bt_message *msg)
{
	const bt_packet *packet = bt_message_packet_end_borrow_packet_const(msg);
	const bt_stream_class *sc = bt_stream_borrow_class_const(bt_packet_borrow_stream_const(packet));
	return end_packet(j, !bt_stream_class_packets_have_end_default_clock_snapshot(sc) ? NULL :
		bt_message_packet_end_borrow_default_clock_snapshot_const(msg));
}

int translate_broken(struct translation *j)
{
	if (!j->progress->error_text) {
		struct error reason = ERROR_INIT;
		library_error(&reason, "libbabeltrace2");
		j->progress->error_text = mem_dup(reason.text);
	}
	return loss_placer_broken(&j->loss_placer);
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
