#include "trace/ctf/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

#define MAGIC 0xC1FC1FC1U
#define TYPICAL_HEADER 256  /* number of bytes that contain nearly every packet header and context */
#define MAX_HEADER 4096     /* number of bytes that contain every packet header and context */

struct stream_scan {
	const struct ctf_classes *c;
	const struct stream_file *f;
	int fd;
	struct ctf_value *value;
	const struct ctf_stream_class *class;
	struct ctf_packet packet;
	const char *reason;
};

static int reject_file(struct stream_scan *s, const char *reason)
{
	s->reason = reason;
	return 1;
}

static uint64_t packet_field(const struct stream_scan *s, enum ctf_packet_field field, uint64_t default_value)
{
	const uint32_t slot = s->class->field_slot[field];
	return slot == CTF_NO_SLOT ? default_value : (uint64_t)s->value[slot].number;
}

static int find_stream_class(struct stream_scan *s)
{
	const struct ctf_classes *c = s->c;
	const uint32_t magic = c->field_slot[CTF_MAGIC], uuid = c->field_slot[CTF_UUID], id = c->field_slot[CTF_STREAM_ID];
	if (magic != CTF_NO_SLOT && s->value[magic].number != MAGIC)
		return reject_file(s, "packet without magic number");
	if (uuid != CTF_NO_SLOT && (!c->has_uuid || memcmp(s->value[uuid].text, c->uuid, 16) != 0))
		return reject_file(s, "packet of another trace");
	if (id == CTF_NO_SLOT && c->streams != 1)
		return reject_file(s, "packets without a stream class id");
	s->class = NULL;
	for (size_t i = 0; i < c->streams; i++)
		if (id == CTF_NO_SLOT || c->stream[i].id == (uint64_t)s->value[id].number)
			s->class = &c->stream[i];
	return s->class ? 0 : reject_file(s, "packet of an unknown stream class");
}

static int check_packet_header(struct stream_scan *s, uint64_t at)
{
	struct ctf_packet *p = &s->packet;
	if (!p->size || p->size % 8 || p->size / 8 > s->f->bytes - at)
		return reject_file(s, "packet truncated or of size zero");
	if (p->content > p->size)
		return reject_file(s, "packet content larger than the packet");
	if (p->begin > p->end)
		return reject_file(s, "packet ends before it begins");
	return 0;
}

/* Decodes the packet header and context from the first n bytes of a packet. Returns 0, or 1 if they are not valid. */
static int parse_packet_header(struct stream_scan *s, const unsigned char *head, size_t n, uint64_t at)
{
	struct ctf_interpreter m = { .packet = head, .end = 8 * (uint64_t)n, .value = s->value };
	if (ctf_run(&s->c->packet_header, &m) != CTF_RUN_DONE)
		return reject_file(s, "invalid packet header");
	if (find_stream_class(s))
		return 1;
	if (ctf_run(&s->class->context, &m) != CTF_RUN_DONE)
		return reject_file(s, "invalid packet context");
	s->packet = (struct ctf_packet){ .file = s->f, .offset = at, .size = packet_field(s, CTF_PACKET_SIZE, 0),
		.begin = packet_field(s, CTF_BEGIN_TIME, 0), .end = packet_field(s, CTF_END_TIME, 0),
		.discarded = packet_field(s, CTF_DISCARDED, 0), .sequence = packet_field(s, CTF_SEQUENCE, 0) };
	s->packet.content = packet_field(s, CTF_CONTENT_SIZE, s->packet.size);
	if (s->packet.content < m.at)
		return reject_file(s, "packet ends inside its header");
	return check_packet_header(s, at);
}

/* Reads the header of the packet at byte `at` of the file. Returns 0; 1 if it is not valid; -1 if the system cannot read
 * it. */
static int read_packet_header(struct stream_scan *s, uint64_t at)
{
	unsigned char head[MAX_HEADER];
	ssize_t n = pread(s->fd, head, TYPICAL_HEADER, (off_t)at);
	int status = n < 0 ? -1 : parse_packet_header(s, head, (size_t)n, at);
	if (status > 0 && n == TYPICAL_HEADER) {
		n = pread(s->fd, head, sizeof head, (off_t)at);
		status = n < 0 ? -1 : parse_packet_header(s, head, (size_t)n, at);
	}
	if (status == 0)
		s->reason = NULL;
	return status;
}

static struct ctf_data_stream *find_or_add_stream(struct ctf_streams *all, const struct stream_scan *s)
{
	const bool has_instance = s->class->field_slot[CTF_INSTANCE_ID] != CTF_NO_SLOT;
	const uint64_t instance = packet_field(s, CTF_INSTANCE_ID, 0);
	for (size_t i = 0; i < all->len; i++) {
		struct ctf_data_stream *f = &all->stream[i];
		const bool is_same_file = f->packets && f->packet[0].file == s->f;
		if (f->class == s->class && f->instance == instance && (has_instance || is_same_file))
			return f;
	}
	struct ctf_data_stream *f = ARRAY_PUSH(all->stream, all->len, all->cap);
	*f = (struct ctf_data_stream){ .class = s->class, .instance = instance, .first = s->f,
		.has_discarded = s->class->field_slot[CTF_DISCARDED] != CTF_NO_SLOT,
		.has_sequence = s->class->field_slot[CTF_SEQUENCE] != CTF_NO_SLOT };
	return f;
}

/* Returns true if the packet agrees with entry i of LTTng's index, or if there is no index. */
static bool matches_index(const struct stream_file *f, const struct ctf_packet *p, size_t i)
{
	if (!f->has_index)
		return true;
	if (i >= f->packets)
		return false;
	const struct packet *x = &f->packet[i];
	return x->offset == p->offset && x->size * 8 == p->size && x->content == p->content && x->begin == p->begin &&
	       x->end == p->end && x->discarded == p->discarded;
}

static int scan_packets(struct ctf_streams *all, struct stream_scan *s)
{
	struct ctf_data_stream *stream = NULL;
	size_t i = 0;
	for (uint64_t at = 0; at < s->f->bytes; at += s->packet.size / 8, i++) {
		const int status = read_packet_header(s, at);
		if (status)
			return status;
		struct ctf_data_stream *stream_of_packet = find_or_add_stream(all, s);
		if (stream && stream_of_packet != stream)
			return reject_file(s, "file with packets of several streams");
		if (!matches_index(s->f, &s->packet, i))
			return reject_file(s, "index contradicts the packets");
		stream = stream_of_packet;
		*ARRAY_PUSH(stream->packet, stream->packets, stream->cap) = s->packet;
	}
	if (s->f->has_index && (i != s->f->packets || s->f->missing_bytes || s->f->extra_bytes || s->f->damaged_packets))
		return reject_file(s, "index contradicts the packets");
	if (stream)
		stream->bytes += s->f->bytes;
	return 0;
}

int ctf_streams_add(struct ctf_streams *all, const struct ctf_classes *c, struct stream_file *f, const char **reason)
{
	char *path = mem_printf("%s/%s", f->dir, f->name);
	struct stream_scan s = { .c = c, .f = f, .fd = open(path, O_RDONLY | O_CLOEXEC) };
	free(path);
	stream_file_read_index(f);
	errno = f->read_errno;
	int status = s.fd < 0 || f->read_errno ? -1 : 0;
	if (!status && f->index_damaged)
		status = reject_file(&s, "damaged index");
	if (!status) {
		s.value = mem_new(c->slots, sizeof *s.value);
		status = scan_packets(all, &s);
	}
	const int saved = errno;
	if (s.fd >= 0)
		close(s.fd);
	free(s.value);
	errno = saved;
	*reason = s.reason;
	return status;
}

void ctf_streams_join(struct ctf_streams *all, struct ctf_streams *from)
{
	for (size_t i = 0; i < from->len; i++) {
		struct ctf_data_stream *f = &from->stream[i], *to = NULL;
		for (size_t k = 0; k < all->len && f->class->field_slot[CTF_INSTANCE_ID] != CTF_NO_SLOT && !to; k++)
			if (all->stream[k].class == f->class && all->stream[k].instance == f->instance)
				to = &all->stream[k];
		if (!to) {
			*ARRAY_PUSH(all->stream, all->len, all->cap) = *f;
			continue;
		}
		for (size_t k = 0; k < f->packets; k++)
			*ARRAY_PUSH(to->packet, to->packets, to->cap) = f->packet[k];
		to->bytes += f->bytes;
		free(f->packet);
	}
	free(from->stream);
	*from = (struct ctf_streams){ 0 };
}

static int compare_begin(const void *a, const void *b)
{
	const struct ctf_packet *x = a, *y = b;
	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	const int dir = strcmp(x->file->dir, y->file->dir), name = dir ? dir : strcmp(x->file->name, y->file->name);
	return name ? name : x->offset < y->offset ? -1 : x->offset > y->offset;
}

static int compare_path(const void *a, const void *b)
{
	const struct ctf_data_stream *s = a, *t = b;
	const struct stream_file *x = s->first, *y = t->first;
	const int dir = strcmp(x->dir, y->dir);
	return dir ? dir : strcmp(x->name, y->name);
}

const char *ctf_streams_sort(struct ctf_streams *all)
{
	for (size_t i = 0; i < all->len; i++) {
		struct ctf_data_stream *f = &all->stream[i];
		for (size_t k = 1; k < f->packets; k++)  /* in a valid file, packets are in time order */
			if (f->packet[k].file == f->packet[k - 1].file && f->packet[k].begin < f->packet[k - 1].begin)
				return "packets not in time order";
		qsort(f->packet, f->packets, sizeof *f->packet, compare_begin);
		for (size_t k = 1; k < f->packets; k++)
			if (f->packet[k].file != f->packet[k - 1].file && f->packet[k].begin < f->packet[k - 1].end)
				return "files of a stream overlap in time";
	}
	if (all->len)
		qsort(all->stream, all->len, sizeof *all->stream, compare_path);
	return all->len ? NULL : "no packets";
}

void ctf_streams_release(struct ctf_streams *s)
{
	for (size_t i = 0; i < s->len; i++)
		free(s->stream[i].packet);
	free(s->stream);
	*s = (struct ctf_streams){ 0 };
}

bool ctf_may_cut(const struct ctf_data_stream *s, size_t i)
{
	const struct ctf_packet *a = &s->packet[i - 1], *b = &s->packet[i];
	return a->discarded == b->discarded && (!s->has_sequence || b->sequence == a->sequence + 1) && a->end <= b->begin;
}
