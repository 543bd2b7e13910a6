/* Writes one machine's trace as CTF 1.8: a directory with `metadata` (text) and one stream file per CPU, laid out like
 * LTTng's: packets with magic, uuid, begin, end, sizes, sequence number, discarded-events counter and CPU number.
 *
 * Every field is byte aligned and little endian. The packets of a CPU cover the whole recording, with or without
 * records. A packet is closed when the next record may not fit. Records are lost as in LTTng: after the last record of a
 * full packet; the end and the counter of that packet are those at the time at which the next packet begins. Memory: one
 * packet per CPU. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "sim.h"

#define HEADER 84          /* size of a packet's header, bytes: packet header 32, packet context 52 */
#define RECORD_MAX 512    /* maximum size of a record, bytes */

struct packet_stream {
	int fd;
	unsigned char *buf;
	size_t used;
	int64_t first, last;   /* times of the packet's first and last record, ns, clock of the machine */
	uint64_t seq, discarded;
	bool open, losing;
};

struct ctf {
	char *dir;
	unsigned char uuid[16];
	struct packet_stream *stream;
	unsigned streams;
	size_t packet;         /* maximum size of a packet, bytes */
	bool counters;         /* the context of records has hardware counters */
	int64_t begin;         /* begin of the recording, ns, clock of the machine */
};

static unsigned char *put(unsigned char *p, uint64_t v, unsigned bytes)
{
	for (unsigned i = 0; i < bytes; i++)
		p[i] = (unsigned char)(v >> 8 * i);
	return p + bytes;
}

static int write_all(int fd, const unsigned char *p, size_t n, const char *dir, struct error *err)
{
	while (n) {
		ssize_t done = write(fd, p, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done <= 0)
			return error_system(err, NULL, "%s", dir);
		p += done;
		n -= (size_t)done;
	}
	return 0;
}

static int flush(struct ctf *t, unsigned cpu, struct error *err)
{
	struct packet_stream *s = &t->stream[cpu];
	unsigned char *p = s->buf;

	if (!s->open)
		return 0;
	p = put(p, 0xC1FC1FC1, 4);
	memcpy(p, t->uuid, 16);
	p = put(p + 16, 0, 4);
	p = put(p, cpu, 8);
	p = put(p, (uint64_t)s->first, 8);
	p = put(p, (uint64_t)s->last, 8);
	p = put(p, s->used * 8, 8);
	p = put(p, s->used * 8, 8);
	p = put(p, s->seq++, 8);
	p = put(p, s->discarded, 8);
	put(p, cpu, 4);
	s->open = false;
	return write_all(s->fd, s->buf, s->used, t->dir, err);
}

static unsigned char *put_text(unsigned char *p, const char *s, size_t n)
{
	memcpy(p, s, n);
	return p + n;
}

static unsigned char *put_field(unsigned char *p, uint8_t type, const union record_value *v)
{
	size_t n;

	switch ((enum record_field_type)type) {
	case FIELD_I32: case FIELD_U32:
		return put(p, (uint64_t)v->n, 4);
	case FIELD_I64: case FIELD_U64: case FIELD_HEX:
		return put(p, (uint64_t)v->n, 8);
	case FIELD_COMM:
		n = strnlen(v->s, 15);
		memset(p, 0, 16);
		memcpy(p, v->s, n);
		return p + 16;
	case FIELD_STRING:
		n = strnlen(v->s, 200);
		p = put_text(p, v->s, n);
		*p = 0;
		return p + 1;
	case FIELD_TEXT:
		n = strnlen(v->s, 200);
		return put_text(put(p, n, 8), v->s, n);
	case FIELD_VTIDS:
		return put(put(p, 1, 1), (uint64_t)v->n, 4);
	case FIELD_STEAL:
		for (unsigned i = 0; i < steal_cpus(v->m); i++)
			p = put(p, (uint64_t)v->m->cpu[i].steal, 8);
		return p;
	case FIELD_END:
		break;
	}
	return p;
}

static void begin_packet(const struct ctf *t, struct packet_stream *s, int64_t ts)
{
	if (s->open)
		return;
	s->open = true;
	s->last = ts;
	s->first = s->seq == 0 && t->begin < ts ? t->begin : ts;
	s->used = HEADER;
}

int ctf_write(struct ctf *t, unsigned cpu, int64_t ts, enum record_kind kind, struct cpu *c,
              const union record_value *v, struct error *err)
{
	const struct thread *cur = c->cur;
	struct packet_stream *s = &t->stream[cpu];
	union record_value comm = S(thread_name(cur));
	unsigned char *p;

	if (s->losing && s->open)
		s->last = ts;
	if (s->open && (s->losing || s->used + RECORD_MAX > t->packet) && flush(t, cpu, err) < 0)
		return -1;
	s->losing = false;
	begin_packet(t, s, ts);
	s->last = ts;
	p = s->buf + s->used;
	p = put(p, (uint64_t)kind, 2);
	p = put(p, (uint64_t)ts, 8);
	p = put(p, (uint64_t)cur->pid, 4);
	p = put(p, (uint64_t)cur->tid, 4);
	p = put_field(p, FIELD_COMM, &comm);
	if (t->counters) {
		uint64_t counter[2];

		cores_read(c, counter);
		p = put(put(p, counter[0], 8), counter[1], 8);
	}
	for (const struct record_field *f = record_class[kind].field; f->type != FIELD_END; f++)
		p = put_field(p, f->type, v++);
	s->used = (size_t)(p - s->buf);
	return 0;
}

/* Discards a record. Every other packet is full to its last byte at that time: it ends there, and the next packet counts
 * the loss. */
int ctf_lose(struct ctf *t, unsigned cpu, int64_t ts, struct error *err)
{
	struct packet_stream *s = &t->stream[cpu];
	const bool full = s->open && s->seq % 2;

	if (!s->losing && full && flush(t, cpu, err) < 0)
		return -1;
	if (!s->losing && !full)
		begin_packet(t, s, ts);
	s->losing = true;
	s->discarded++;
	return 0;
}

/* ---- metadata */

static const char preamble[] =
	"/* CTF 1.8 */\n\n"
	"typealias integer { size = 8; align = 8; signed = false; } := uint8_t;\n"
	"typealias integer { size = 16; align = 8; signed = false; } := uint16_t;\n"
	"typealias integer { size = 32; align = 8; signed = false; } := uint32_t;\n"
	"typealias integer { size = 64; align = 8; signed = false; } := uint64_t;\n"
	"typealias integer { size = 64; align = 8; signed = false; } := unsigned long;\n\n";

static const char layout[] =
	"typealias integer {\n\tsize = 64; align = 8; signed = false;\n\tmap = clock.monotonic.value;\n"
	"} := uint64_clock_monotonic_t;\n\n"
	"struct packet_context {\n\tuint64_clock_monotonic_t timestamp_begin;\n\tuint64_clock_monotonic_t timestamp_end;\n"
	"\tuint64_t content_size;\n\tuint64_t packet_size;\n\tuint64_t packet_seq_num;\n\tunsigned long events_discarded;\n"
	"\tuint32_t cpu_id;\n};\n\n"
	"struct event_header_plain {\n\tuint16_t id;\n\tuint64_clock_monotonic_t timestamp;\n} align(8);\n\n"
	"stream {\n\tid = 0;\n\tevent.header := struct event_header_plain;\n\tpacket.context := struct packet_context;\n"
	"\tevent.context := struct {\n"
	"\t\tinteger { size = 32; align = 8; signed = 1; encoding = none; base = 10; } _pid;\n"
	"\t\tinteger { size = 32; align = 8; signed = 1; encoding = none; base = 10; } _tid;\n"
	"\t\tinteger { size = 8; align = 8; signed = 1; encoding = UTF8; base = 10; } _procname[16];\n";
static const char counter_context[] =
	"\t\tinteger { size = 64; align = 8; signed = 0; encoding = none; base = 10; } _perf_cpu_instructions;\n"
	"\t\tinteger { size = 64; align = 8; signed = 0; encoding = none; base = 10; } _perf_cpu_cycles;\n";

static void json_member_text(FILE *f, const struct machine *m, const struct record_field *field)
{
	static const char *const integer[] = {
		[FIELD_I32] = "size = 32; align = 8; signed = 1; encoding = none; base = 10;",
		[FIELD_U32] = "size = 32; align = 8; signed = 0; encoding = none; base = 10;",
		[FIELD_I64] = "size = 64; align = 8; signed = 1; encoding = none; base = 10;",
		[FIELD_U64] = "size = 64; align = 8; signed = 0; encoding = none; base = 10;",
		[FIELD_HEX] = "size = 64; align = 8; signed = 0; encoding = none; base = 16;",
	};
	static const char character[] = "integer { size = 8; align = 8; signed = 1; encoding = UTF8; base = 10; }";

	switch ((enum record_field_type)field->type) {
	case FIELD_COMM:
		fprintf(f, "\t\t%s _%s[16];\n", character, field->name);
		break;
	case FIELD_STRING:
		fprintf(f, "\t\tstring _%s;\n", field->name);
		break;
	case FIELD_TEXT:
		fprintf(f, "\t\tinteger { %s } __%s_length;\n", integer[FIELD_U64], field->name);
		fprintf(f, "\t\t%s _%s[ __%s_length ];\n", character, field->name, field->name);
		break;
	case FIELD_VTIDS:
		fprintf(f, "\t\tinteger { size = 8; align = 8; signed = 0; encoding = none; base = 10; } __%s_length;\n",
		        field->name);
		fprintf(f, "\t\tinteger { %s } _%s[ __%s_length ];\n", integer[FIELD_I32], field->name, field->name);
		break;
	case FIELD_STEAL:
		for (unsigned i = 0; i < steal_cpus(m); i++)
			fprintf(f, "\t\tinteger { %s } _%s%u;\n", integer[FIELD_U64], field->name, i);
		break;
	default:
		fprintf(f, "\t\tinteger { %s } _%s;\n", integer[field->type], field->name);
		break;
	}
}

static void env_text(FILE *f, const struct machine *m)
{
	fprintf(f, "env {\n\thostname = \"%s\";\n\tdomain = \"kernel\";\n\tsysname = \"Linux\";\n"
	        "\tkernel_release = \"6.1.0-sim\";\n\tkernel_version = \"#1 SMP PREEMPT_DYNAMIC stealscope-sim\";\n"
	        "\ttracer_name = \"lttng-modules\";\n\ttracer_major = 2;\n\ttracer_minor = 13;\n\ttracer_patchlevel = 9;\n"
	        "\ttrace_buffering_scheme = \"global\";\n\ttrace_name = \"%s\";\n};\n\n", m->name, m->sim->opt.scenario);
}

static void uuid_text(char text[37], const unsigned char u[16])
{
	char *p = text;

	for (int i = 0; i < 16; i++)
		p += snprintf(p, (size_t)(text + 37 - p), "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", u[i]);
}

static int metadata(const struct ctf *t, const struct machine *m, struct error *err)
{
	char *path = mem_printf("%s/metadata", t->dir), uuid[37], clock_uuid[37];
	unsigned char second[16];
	FILE *f = fopen(path, "w");

	free(path);
	if (!f)
		return error_system(err, NULL, "%s", t->dir);
	memcpy(second, t->uuid, 16);
	second[15] ^= 0x55;
	uuid_text(uuid, t->uuid);
	uuid_text(clock_uuid, second);
	fputs(preamble, f);
	fprintf(f, "trace {\n\tmajor = 1;\n\tminor = 8;\n\tuuid = \"%s\";\n\tbyte_order = le;\n\tpacket.header := struct {\n"
	        "\t\tuint32_t magic;\n\t\tuint8_t  uuid[16];\n\t\tuint32_t stream_id;\n\t\tuint64_t stream_instance_id;\n"
	        "\t};\n};\n\n", uuid);
	env_text(f, m);
	fprintf(f, "clock {\n\tname = \"monotonic\";\n\tuuid = \"%s\";\n\tdescription = \"Monotonic Clock\";\n"
	        "\tfreq = 1000000000; /* Frequency, in Hz */\n\t/* clock value offset from Epoch is: offset * (1/freq) */\n"
	        "\toffset = %" PRId64 ";\n};\n\n", clock_uuid, m->boot_guest);
	fprintf(f, "%s%s\t};\n};\n\n", layout, t->counters ? counter_context : "");
	for (int i = 0; i < (m->sim->opt.steal_reads ? REC_COUNT : REC_STEAL_SWITCH); i++) {
		fprintf(f, "event {\n\tname = \"%s\";\n\tid = %d;\n\tstream_id = 0;\n\tfields := struct {\n",
		        record_class[i].name, i);
		for (const struct record_field *field = record_class[i].field; field->type != FIELD_END; field++)
			json_member_text(f, m, field);
		fputs("\t};\n};\n\n", f);
	}
	if (ferror(f) | fclose(f))
		return error_system(err, NULL, "%s", t->dir);
	return 0;
}

struct ctf *ctf_open(const char *dir, const struct machine *m, int64_t begin, struct error *err)
{
	struct ctf *t = mem_new(1, sizeof *t);
	struct rng r = { m->sim->opt.seed * 1000003 + m->cpus };

	t->dir = mem_dup(dir);
	t->begin = begin;
	t->counters = m->is_host && m->sim->opt.counters;
	t->packet = (size_t)m->sim->opt.packet;
	t->streams = m->cpus;
	t->stream = mem_new(m->cpus, sizeof *t->stream);
	for (const char *p = m->name; *p; p++)
		r.s = rng_next(&r) ^ (uint64_t)(unsigned char)*p;
	for (int i = 0; i < 16; i++)
		t->uuid[i] = (unsigned char)rng_next(&r);
	for (unsigned i = 0; i < t->streams; i++)
		t->stream[i].fd = -1;
	for (unsigned i = 0; i < t->streams; i++) {
		char *path = mem_printf("%s/ch_%u", dir, i);

		t->stream[i].buf = mem_new(t->packet + RECORD_MAX, 1);
		t->stream[i].fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
		if (t->stream[i].fd < 0) {
			error_system(err, NULL, "%s", path);
			free(path);
			ctf_close(t, 0, NULL);
			return NULL;
		}
		free(path);
	}
	if (metadata(t, m, err) < 0) {
		ctf_close(t, 0, NULL);
		return NULL;
	}
	return t;
}

/* Writes the remaining records up to the end of the recording, and frees t, even on failure. */
int ctf_close(struct ctf *t, int64_t end, struct error *err)
{
	int result = 0;

	for (unsigned i = 0; i < t->streams; i++) {
		struct packet_stream *s = &t->stream[i];

		if (s->fd < 0)
			continue;
		begin_packet(t, s, s->seq ? s->last : end);
		s->last = end > s->last ? end : s->last;
		if (flush(t, i, err) < 0)
			result = -1;
		if (close(s->fd) < 0)
			result = error_system(err, NULL, "%s", t->dir);
	}
	for (unsigned i = 0; i < t->streams; i++)
		free(t->stream[i].buf);
	free(t->stream);
	free(t->dir);
	free(t);
	return result;
}
