/* Scan of a Perfetto trace: finds the bundles, and reads all other facts. */
#include "trace/perfetto/perfetto_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/scratch_file.h"
#include "base/proto.h"

#define BLOCK_BYTES (1U << 20)    /* a read's size, bytes */
#define KEY_BYTES_MAX 15          /* size of a packet's key and length, bytes */
#define BUNDLES_MAX (16U << 20)   /* of a file */

/* Part of the file in memory. */
struct packet_window {
	int fd;
	uint64_t at;         /* offset of buf[0], bytes */
	unsigned char *buf;
	size_t len, cap;
	int why;             /* a failed read's errno; 0: none */
};

/* Bytes that are being scanned, and their position. */
struct packet_place {
	const unsigned char *data;
	uint64_t at;         /* offset of data[0] in the trace, bytes */
	bool is_unpacked;    /* the data was decompressed; its offset is that of the compressed packet */
};

/* Positions of the parts of a packet: the fields that identify its machine and sequence may follow them. */
struct packet_parts {
	struct proto_field part[8];
	size_t parts;
	uint32_t machine, sequence;
	bool is_dropped;     /* the sequence's earlier packets are missing */
	bool is_first;       /* its sequence's first packet */
	uint64_t time, clock;
};

/* Loads at least `want` bytes at offset `at`, fewer at the file's end. Returns their number. */
static size_t window_load(struct packet_window *w, uint64_t at, size_t want)
{
	if (at >= w->at && at - w->at <= w->len && w->len - (size_t)(at - w->at) >= want)
		return w->len - (size_t)(at - w->at);
	const size_t size = want > BLOCK_BYTES ? want : BLOCK_BYTES;
	if (size > w->cap) {
		w->buf = mem_resize(w->buf, size, 1);
		w->cap = size;
	}
	w->at = at;
	w->len = 0;
	while (w->len < want) {
		const ssize_t got = pread(w->fd, w->buf + w->len, w->cap - w->len, (off_t)(at + w->len));
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			w->why = errno;
		if (got <= 0)
			break;
		w->len += (size_t)got;
	}
	return w->len;
}

static void add_damage(struct perfetto_file *f, uint64_t at, const char *why)
{
	if (!f->damages++)
		f->damaged_at = at;
	f->damage = why;
}

/* Returns NULL if the file has too many machines. */
static struct perfetto_machine *machine_get(struct perfetto_file *f, uint32_t id)
{
	for (size_t i = 0; i < f->machines; i++)
		if (f->machine[i].id == id)
			return &f->machine[i];
	if (f->machines >= PERFETTO_MACHINES_MAX)
		return NULL;
	struct perfetto_machine *m = ARRAY_PUSH(f->machine, f->machines, f->machines_cap);
	*m = (struct perfetto_machine){ .id = id };
	strtab_init(&m->names);
	strtab_init(&m->enabled);
	return m;
}

/* Updates the state of the sequence of a packet. Returns it: twice the loss count until now, and 1 if the trace
 * contains its first packet. */
static uint64_t sequence_update(struct perfetto_file *f, const struct packet_parts *p)
{
	bool is_new;
	uint64_t *state = map_put(&f->sequence, (uint64_t)p->machine << 32 | p->sequence, &is_new);
	if (is_new)  /* each sequence's first packet has both flags, so that it shows no loss */
		*state = p->is_first;
	else if (p->is_dropped)
		*state += 2;
	return *state;
}

/* Returns a bundle's stream; NULL: the machine has too many. */
static struct perfetto_stream *stream_get(struct perfetto_file *f, struct perfetto_machine *m, uint32_t sequence,
                                          uint16_t cpu)
{
	bool is_new;
	if (m->streams >= PERFETTO_STREAMS_MAX && !map_find(&m->stream_by_cpu, (uint64_t)sequence << 16 | cpu))
		return NULL;
	uint64_t *index = map_put(&m->stream_by_cpu, (uint64_t)sequence << 16 | cpu, &is_new);
	if (!is_new)
		return &m->stream[*index];
	*index = m->streams;
	struct perfetto_stream *s = ARRAY_PUSH(m->stream, m->streams, m->streams_cap);
	*s = (struct perfetto_stream){ .sequence = sequence, .cpu = cpu, .damages = f->damages };
	return s;
}

/* Returns a bundle's CPU; PERFETTO_CPUS_MAX: damaged. */
static uint64_t bundle_cpu(const struct proto_field *bundle)
{
	struct proto_message m = proto_nested(bundle);
	struct proto_field f;
	while (proto_next(&m, &f))
		if (f.number == BUNDLE_CPU && f.type == WIRE_VARINT)
			return f.value;
	return m.is_bad ? PERFETTO_CPUS_MAX : 0;
}

/* Reads the clock of the events from a machine's first bundle: one constant offset keeps all durations exact. */
static void add_ftrace_clock(struct perfetto_machine *machine, const struct proto_field *bundle)
{
	struct proto_message m = proto_nested(bundle);
	struct proto_field f;
	uint64_t time[2] = { 0 };
	if (machine->clock.has_boot)
		return;
	while (proto_next(&m, &f)) {
		if (f.type == WIRE_VARINT && f.number == BUNDLE_CLOCK)
			machine->clock.ftrace = f.value;
		else if (f.type == WIRE_VARINT && (f.number == BUNDLE_CLOCK_TIME || f.number == BUNDLE_BOOT_TIME))
			time[f.number - BUNDLE_CLOCK_TIME] = f.value;
	}
	machine->clock.has_boot = true;
	if (machine->clock.ftrace != FTRACE_CLOCK_BOOT && time[0] <= INT64_MAX && time[1] <= INT64_MAX)
		machine->clock.boot = (int64_t)time[1] - (int64_t)time[0];
}

/* Adds the bundle to its stream. Returns 0, or -1: the scratch file cannot be written. */
static int add_bundle(struct perfetto_file *f, struct perfetto_machine *m, const struct packet_place *place,
                      const struct packet_parts *p, const struct proto_field *bundle, struct error *err)
{
	const uint64_t cpu = bundle_cpu(bundle), state = sequence_update(f, p), drops = state / 2;
	struct perfetto_stream *s = cpu < PERFETTO_CPUS_MAX ? stream_get(f, m, p->sequence, (uint16_t)cpu) : NULL;
	if (!s || f->bundles >= BUNDLES_MAX) {
		add_damage(f, place->at, s ? "the file contains too many bundles" : "a bundle of events has an impossible CPU");
		return 0;
	}
	struct perfetto_bundle b = { .at = place->at + (uint64_t)(bundle->data - place->data), .len = (uint32_t)bundle->len,
		.is_scratch = place->is_unpacked, .follows_loss = drops != s->drops || f->damages != s->damages };
	if (place->is_unpacked) {
		f->scratch = f->scratch < 0 ? scratch_open(NULL, err) : f->scratch;
		if (f->scratch < 0 || scratch_write(f->scratch, bundle->data, bundle->len, f->scratch_bytes, err))
			return -1;
		b.at = (uint64_t)f->scratch_bytes;
		f->scratch_bytes += (int64_t)bundle->len;
	}
	add_ftrace_clock(m, bundle);
	if (!s->bundles)
		s->is_complete = state == 1 && !b.follows_loss;
	s->drops = drops;
	s->damages = f->damages;
	s->bytes += bundle->len;
	m->bytes += bundle->len;
	f->bundles++;
	*ARRAY_PUSH(s->bundle, s->bundles, s->bundles_cap) = b;
	return 0;
}

static void add_uuid(struct perfetto_file *f, const struct proto_field *uuid)
{
	struct proto_message m = proto_nested(uuid);
	struct proto_field half;
	uint64_t lsb = 0, msb = 0;
	while (proto_next(&m, &half)) {
		if (half.number == 1 && half.type == WIRE_VARINT)
			msb = half.value;
		if (half.number == 2 && half.type == WIRE_VARINT)
			lsb = half.value;
	}
	if (!*f->uuid && (msb || lsb))
		snprintf(f->uuid, sizeof f->uuid, "%08x-%04x-%04x-%04x-%012llx", (unsigned)(msb >> 32),
		         (unsigned)(msb >> 16 & 0xffff), (unsigned)(msb & 0xffff), (unsigned)(lsb >> 48),
		         (unsigned long long)(lsb & 0xffffffffffff));
}

static int scan_packets(struct perfetto_file *f, const struct packet_place *place, size_t len, struct error *err);

static int add_packed(struct perfetto_file *f, const struct packet_place *place, const struct proto_field *part,
                      struct error *err)
{
	size_t size;
	const char *why = "a compressed packet contains compressed packets";
	unsigned char *data = place->is_unpacked ? NULL :
		perfetto_unpack((enum packet_field)part->number, part->data, part->len, &f->unpackable, &size, &why);
	if (!data) {
		add_damage(f, place->at, why);
		return 0;
	}
	const int status = scan_packets(f, &(struct packet_place){ data, place->at, true }, size, err);
	free(data);
	return status;
}

static int add_part(struct perfetto_file *f, struct perfetto_machine *m, const struct packet_place *place,
                    const struct packet_parts *p, const struct proto_field *part, struct error *err)
{
	switch (part->number) {
	case PACKET_FTRACE:
		return add_bundle(f, m, place, p, part, err);
	case PACKET_PROCESS_TREE:
		perfetto_add_processes(m, part);
		return 0;
	case PACKET_CLOCKS:
		perfetto_add_clocks(m, part);
		return 0;
	case PACKET_REMOTE_CLOCKS:
		perfetto_add_remote_clocks(m, part);
		return 0;
	case PACKET_SYSTEM:
		perfetto_add_system(m, part);
		return 0;
	case PACKET_FTRACE_STATS:
		perfetto_add_counters(m, part);
		return 0;
	case PACKET_CONFIG:
		perfetto_add_config(m, part);
		return 0;
	case PACKET_UUID:
		add_uuid(f, part);
		return 0;
	case PACKET_SERVICE:
		if (perfetto_is_flush(part) && p->time <= INT64_MAX / 8 && p->clock == CLOCK_ID_BOOTTIME)
			f->flushed_at = (int64_t)p->time;
		return 0;
	default:
		return add_packed(f, place, part, err);
	}
}

static bool is_part(const struct proto_field *f)
{
	static const uint8_t numbers[] = { PACKET_FTRACE, PACKET_PROCESS_TREE, PACKET_CLOCKS, PACKET_CONFIG,
		PACKET_FTRACE_STATS, PACKET_SYSTEM, PACKET_DEFLATED, PACKET_SERVICE, PACKET_UUID,
		PACKET_REMOTE_CLOCKS, PACKET_ZSTD };
	return f->type == WIRE_BYTES && f->number < 256 && memchr(numbers, (int)f->number, sizeof numbers);
}

static void set_number(struct packet_parts *p, const struct proto_field *f)
{
	switch (f->number) {
	case PACKET_SEQUENCE:
		p->sequence = (uint32_t)f->value;
		break;
	case PACKET_MACHINE:
		p->machine = (uint32_t)f->value;
		break;
	case PACKET_DROPPED:
		p->is_dropped = f->value != 0;
		break;
	case PACKET_FIRST:
		p->is_first = f->value != 0;
		break;
	case PACKET_TIME:
		p->time = f->value;
		break;
	case PACKET_TIME_CLOCK:
		p->clock = f->value;
		break;
	default:
		break;
	}
}

/* Scans one packet. Returns 0, or -1: the system's failure. */
static int scan_packet(struct perfetto_file *f, const struct packet_place *place, const unsigned char *data, size_t len,
                       struct error *err)
{
	struct packet_parts p = { .clock = CLOCK_ID_BOOTTIME };
	struct proto_message m = proto_open(data, len);
	struct proto_field field;
	while (proto_next(&m, &field)) {
		if (is_part(&field) && p.parts < sizeof p.part / sizeof *p.part)
			p.part[p.parts++] = field;
		else if (field.type == WIRE_VARINT)
			set_number(&p, &field);
		else if (field.number == PACKET_TRACK_EVENT && field.type == WIRE_BYTES)
			f->track_events++;
	}
	f->packets++;
	if (m.is_bad) {
		add_damage(f, place->at + (uint64_t)(data - place->data), "a packet is damaged");
		return 0;
	}
	struct perfetto_machine *machine = p.parts ? machine_get(f, p.machine) : NULL;
	if (p.parts && !machine)
		add_damage(f, place->at, "the file contains too many machines");
	if (p.is_dropped && (!p.parts || p.part[0].number != PACKET_FTRACE))
		sequence_update(f, &p);
	for (size_t i = 0; machine && i < p.parts; i++) {
		if (add_part(f, machine, place, &p, &p.part[i], err))
			return -1;
		machine = machine_get(f, p.machine);  /* packets in a compressed one may add machines */
	}
	return 0;
}

/* Scans packets in memory. */
static int scan_packets(struct perfetto_file *f, const struct packet_place *place, size_t len, struct error *err)
{
	struct proto_message m = proto_open(place->data, len);
	struct proto_field field;
	while (proto_next(&m, &field))
		if (field.number == 1 && field.type == WIRE_BYTES && scan_packet(f, place, field.data, field.len, err))
			return -1;
	if (m.is_bad)
		add_damage(f, place->at, "a compressed packet is damaged");
	return 0;
}

/* Scans the packet at offset *at, and moves *at behind it. Returns 0; 1: the rest of the file cannot be scanned; -1. */
static int scan_next(struct perfetto_file *f, struct packet_window *w, uint64_t *at, struct error *err)
{
	const uint64_t left = f->bytes - *at;
	size_t n = window_load(w, *at, left < KEY_BYTES_MAX ? (size_t)left : KEY_BYTES_MAX);
	struct proto_message m = proto_open(w->buf + (*at - w->at), n < KEY_BYTES_MAX ? n : KEY_BYTES_MAX);
	uint64_t key, len;
	const bool has_head = n && proto_varint(&m, &key) && key == (1 << 3 | WIRE_BYTES) && proto_varint(&m, &len);
	const size_t head = (size_t)(m.at - (w->buf + (*at - w->at)));
	if (!has_head) {
		add_damage(f, *at, left < KEY_BYTES_MAX ? "the file ends inside a packet" : "a packet has no valid header");
		return 1;
	}
	if (len > PERFETTO_PACKET_MAX || len > left - head) {
		add_damage(f, *at, len > PERFETTO_PACKET_MAX ? "a packet is too long" : "the file ends inside a packet");
		return 1;
	}
	n = window_load(w, *at, head + (size_t)len);
	if (n < head + len) {
		add_damage(f, *at, "the file became shorter");
		return 1;
	}
	const unsigned char *packet = w->buf + (*at - w->at);
	const struct packet_place place = { packet, *at, false };
	*at += head + len;
	return scan_packet(f, &place, packet + head, (size_t)len, err);
}

struct perfetto_file *perfetto_file_scan(int fd, const char *path, struct error *err)
{
	struct perfetto_file *f = mem_new(1, sizeof *f);
	struct packet_window w = { .fd = fd };
	struct stat st;
	int status = fstat(fd, &st);
	uint64_t at = 0;
	*f = (struct perfetto_file){ .path = mem_dup(path), .references = 1, .scratch = -1 };
	if (status)
		error_read(err, NULL, "%s", path);
	else
		f->bytes = (uint64_t)st.st_size;
	f->unpackable = PERFETTO_EXPANSION_MAX * f->bytes;
	machine_get(f, 0);  /* the first machine is always that of the tracing service */
	while (!status && at < f->bytes)
		status = scan_next(f, &w, &at, err);
	f->ends_early = status > 0;
	free(w.buf);
	errno = w.why;
	if (status >= 0 && w.why)
		status = error_read(err, NULL, "%s", path);
	if (status >= 0)
		return f;
	perfetto_file_release(f);
	return NULL;
}

struct perfetto_file *perfetto_file_read(const char *path, struct error *err)
{
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0) {
		error_read(err, "make it readable for you", "%s", path);
		return NULL;
	}
	struct perfetto_file *f = perfetto_file_scan(fd, path, err);
	close(fd);
	return f;
}

static void machine_release(struct perfetto_machine *m)
{
	for (size_t i = 0; i < m->streams; i++)
		free(m->stream[i].bundle);
	free(m->stream);
	map_release(&m->stream_by_cpu);
	map_release(&m->process_by_tid);
	map_release(&m->name_by_tid);
	strtab_release(&m->names);
	strtab_release(&m->enabled);
}

void perfetto_file_release(struct perfetto_file *f)
{
	if (!f || --f->references)
		return;
	for (size_t i = 0; i < f->machines; i++)
		machine_release(&f->machine[i]);
	free(f->machine);
	map_release(&f->sequence);
	if (f->scratch >= 0)
		close(f->scratch);
	free(f->path);
	free(f);
}
