#include "export/perfetto_packets.h"

#include <string.h>

enum { TRACE_PACKET = 1 };
enum { PACKET_TIMESTAMP = 8, PACKET_SEQUENCE = 10, PACKET_EVENT = 11, PACKET_TRACK = 60 };
enum { TRACK_UUID = 1, TRACK_NAME = 2, TRACK_PROCESS = 3, TRACK_PARENT = 5, TRACK_COUNTER = 8 };
enum { PROCESS_PID = 1, PROCESS_NAME = 6 };
enum { COUNTER_UNIT = 3, COUNTER_UNIT_NS = 1 };
enum { EVENT_ARG = 4, EVENT_TYPE = 9, EVENT_TRACK = 11, EVENT_NAME = 23, EVENT_VALUE = 30 };
enum { EVENT_FLOW = 47, EVENT_FLOW_ENDS = 48 };
enum { TYPE_BEGIN = 1, TYPE_END = 2, TYPE_INSTANT = 3, TYPE_COUNTER = 4 };
enum { ARG_NAME = 10, ARG_INT = 4, ARG_STRING = 6 };
enum { WIRE_VARINT = 0, WIRE_FIXED64 = 1, WIRE_BYTES = 2 };

/* Buffer for a message, large enough for a slice with all its arguments. */
struct message {
	size_t len;
	char bytes[(SLICE_ARGS + 2) * (CELL_TEXT_MAX + 64)];
};

static void put_varint(struct message *m, uint64_t v)
{
	for (; v > 127; v >>= 7)
		m->bytes[m->len++] = (char)(v | 128);
	m->bytes[m->len++] = (char)v;
}

static void put_key(struct message *m, unsigned field, unsigned wire)
{
	put_varint(m, field << 3 | wire);
}

static void put_number(struct message *m, unsigned field, uint64_t v)
{
	put_key(m, field, WIRE_VARINT);
	put_varint(m, v);
}

static void put_fixed(struct message *m, unsigned field, uint64_t v)
{
	put_key(m, field, WIRE_FIXED64);
	for (unsigned i = 0; i < 8; i++)
		m->bytes[m->len++] = (char)(v >> 8 * i);
}

static void put_bytes(struct message *m, unsigned field, const char *bytes, size_t n)
{
	put_key(m, field, WIRE_BYTES);
	put_varint(m, n);
	memcpy(m->bytes + m->len, bytes, n);
	m->len += n;
}

static void put_text(struct message *m, unsigned field, const char *text)
{
	put_bytes(m, field, text, strnlen(text, CELL_TEXT_MAX - 1));
}

/* Writes a packet that ends with a nested message. */
static void put_packet(FILE *f, int64_t ts, unsigned field, const struct message *inner)
{
	struct message m;
	m.len = 0;  /* m.bytes is not cleared: that would take too long for each packet */
	if (field == PACKET_EVENT)
		put_number(&m, PACKET_TIMESTAMP, (uint64_t)ts);
	put_number(&m, PACKET_SEQUENCE, 1);
	put_key(&m, field, WIRE_BYTES);
	put_varint(&m, inner->len);
	const size_t packet = m.len;
	put_key(&m, TRACE_PACKET, WIRE_BYTES);  /* written first, but depends on the packet's length */
	put_varint(&m, packet + inner->len);
	fwrite(m.bytes + packet, 1, m.len - packet, f);
	fwrite(m.bytes, 1, packet, f);
	fwrite(inner->bytes, 1, inner->len, f);
}

/* ---- Tracks of machines, of groups, and of CPUs and threads */

#define NO_NUMBER ((INT64_C(1) << 40) - 1)

static uint64_t track_uuid(const struct track *t)
{
	return (uint64_t)t->machine << 48 | ((uint64_t)t->group + 1) << 40 | ((uint64_t)t->number & NO_NUMBER);
}

void packet_machine(FILE *f, uint32_t machine, const char *name)
{
	struct message m = { 0 }, process = { 0 };
	put_number(&process, PROCESS_PID, machine);
	put_text(&process, PROCESS_NAME, name);
	put_number(&m, TRACK_UUID, (uint64_t)machine << 48);
	put_bytes(&m, TRACK_PROCESS, process.bytes, process.len);
	put_packet(f, 0, PACKET_TRACK, &m);
	for (unsigned i = 0; i < TRACK_GROUP_COUNT; i++) {
		const struct track t = { machine, (enum track_group)i, NO_NUMBER };
		m.len = 0;
		put_number(&m, TRACK_UUID, track_uuid(&t));
		put_number(&m, TRACK_PARENT, (uint64_t)machine << 48);
		put_text(&m, TRACK_NAME, track_group_name[i]);
		put_packet(f, 0, PACKET_TRACK, &m);
	}
}

void packet_track(FILE *f, const struct track *t, const char *name)
{
	const struct track group = { t->machine, t->group, NO_NUMBER };
	struct message m = { 0 }, counter = { 0 };
	put_number(&m, TRACK_UUID, track_uuid(t));
	put_number(&m, TRACK_PARENT, track_uuid(&group));
	put_text(&m, TRACK_NAME, name);
	if (t->group == GROUP_STEAL) {
		put_number(&counter, COUNTER_UNIT, COUNTER_UNIT_NS);
		put_bytes(&m, TRACK_COUNTER, counter.bytes, counter.len);
	}
	put_packet(f, 0, PACKET_TRACK, &m);
}

/* ---- Events on tracks */

static void begin_event(struct message *m, const struct track *t, unsigned type)
{
	m->len = 0;
	put_number(m, EVENT_TYPE, type);
	put_number(m, EVENT_TRACK, track_uuid(t));
}

void packet_slice(FILE *f, const struct track *t, int64_t ts, int64_t dur, const char *name, const struct slice_arg *arg,
                  size_t args)
{
	struct message m, one;
	begin_event(&m, t, TYPE_BEGIN);
	put_text(&m, EVENT_NAME, name);
	for (size_t i = 0; i < args; i++) {
		if (arg[i].cell->absent)
			continue;
		one.len = 0;
		put_text(&one, ARG_NAME, arg[i].key);
		if (arg[i].type == FIELD_TEXT)
			put_text(&one, ARG_STRING, arg[i].cell->text);
		else
			put_number(&one, ARG_INT, (uint64_t)arg[i].cell->number);
		put_bytes(&m, EVENT_ARG, one.bytes, one.len);
	}
	put_packet(f, ts, PACKET_EVENT, &m);
	begin_event(&m, t, TYPE_END);
	put_packet(f, ts + dur, PACKET_EVENT, &m);
}

void packet_flow(FILE *f, const struct track *from, const struct track *to, int64_t ts, uint64_t id)
{
	struct message m;
	begin_event(&m, from, TYPE_INSTANT);
	put_text(&m, EVENT_NAME, "takes the CPU");
	put_fixed(&m, EVENT_FLOW, id);
	put_packet(f, ts, PACKET_EVENT, &m);
	begin_event(&m, to, TYPE_INSTANT);
	put_text(&m, EVENT_NAME, "loses the CPU");
	put_fixed(&m, EVENT_FLOW_ENDS, id);
	put_packet(f, ts, PACKET_EVENT, &m);
}

void packet_counter(FILE *f, const struct track *t, int64_t ts, int64_t ns)
{
	struct message m;
	begin_event(&m, t, TYPE_COUNTER);
	put_number(&m, EVENT_VALUE, (uint64_t)ns);
	put_packet(f, ts, PACKET_EVENT, &m);
}
