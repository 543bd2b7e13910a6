#include "trace/ctf/stream_packets.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/base.h"
#include "base/bisect.h"

#define MAGIC 0xC1FC1FC1U
#define TYPICAL_HEADER 256  /* bytes that contain nearly every packet header and context */
#define MAX_HEADER 4096     /* bytes that contain every packet header and context */
#define BLOCK 65536         /* bytes of a file that are searched at once */
#define CANDIDATES_MAX 1000 /* magic numbers in one file that may turn out not to start a packet */

struct stream_scan {
	const struct ctf_classes *c;
	struct stream_file *f;
	int fd;
	struct ctf_value *value;
	const struct ctf_stream_class *class;
	struct ctf_packet packet;
	bool is_cut;           /* the file ends within the packet, which has cut_bytes more */
	uint64_t cut_bytes;
	unsigned candidates;
	bool is_contradicted;  /* by the index */
	const char *reason;    /* why the last header is invalid */
};

static int reject_header(struct stream_scan *s, const char *reason)
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
		return reject_header(s, "packet without magic number");
	if (uuid != CTF_NO_SLOT && (!c->has_uuid || memcmp(s->value[uuid].text, c->uuid, 16) != 0))
		return reject_header(s, "packet of another trace");
	if (id == CTF_NO_SLOT && c->streams != 1)
		return reject_header(s, "packets without a stream class id");
	s->class = NULL;
	for (size_t i = 0; i < c->streams; i++)
		if (id == CTF_NO_SLOT || c->stream[i].id == (uint64_t)s->value[id].number)
			s->class = &c->stream[i];
	return s->class ? 0 : reject_header(s, "packet of an unknown stream class");
}

static int check_packet_header(struct stream_scan *s, uint64_t at)
{
	struct ctf_packet *p = &s->packet;
	const uint64_t rest = 8 * (s->f->bytes - at);
	if (!p->size || p->size % 8 || p->size >> 40)
		return reject_header(s, "invalid packet size");
	if (p->content > p->size)
		return reject_header(s, "packet content larger than the packet");
	if (p->begin > p->end)
		return reject_header(s, "packet ends before it begins");
	s->is_cut = p->size > rest;
	s->cut_bytes = s->is_cut ? (p->size - rest) / 8 : 0;
	p->size = s->is_cut ? rest : p->size;
	return 0;
}

/* Decodes the packet header and context from the first n bytes of a packet. Returns 0, or 1 if they are not valid. */
static int parse_packet_header(struct stream_scan *s, const unsigned char *head, size_t n, uint64_t at)
{
	struct ctf_interpreter m = { .packet = head, .end = 8 * (uint64_t)n, .value = s->value };
	if (ctf_run(&s->c->packet_header, &m) != CTF_RUN_DONE)
		return reject_header(s, "invalid packet header");
	if (find_stream_class(s))
		return 1;
	if (ctf_run(&s->class->context, &m) != CTF_RUN_DONE)
		return reject_header(s, "invalid packet context");
	s->packet = (struct ctf_packet){ .file = s->f, .offset = at,
		.size = packet_field(s, CTF_PACKET_SIZE, 8 * (s->f->bytes - at)),
		.begin = packet_field(s, CTF_BEGIN_TIME, 0), .end = packet_field(s, CTF_END_TIME, UINT64_MAX),
		.discarded = packet_field(s, CTF_DISCARDED, 0), .sequence = packet_field(s, CTF_SEQUENCE, 0) };
	s->packet.content = packet_field(s, CTF_CONTENT_SIZE, s->packet.size);
	if (s->packet.content < m.at)
		return reject_header(s, "packet ends inside its header");
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

/* Checks the packet against LTTng's index: a difference is damage, of the packet if the index agrees with others. */
static int check_index(struct stream_scan *s)
{
	const struct stream_file *f = s->f;
	const struct ctf_packet *p = &s->packet;
	size_t i;
	BISECT(i, f->packets, f->packet[i].offset < p->offset);
	if (i == f->packets)
		return 0;  /* after the index's last packet */
	const struct packet *x = &f->packet[i];
	if (x->offset != p->offset || x->size * 8 != p->size || x->content != p->content || x->begin != p->begin ||
	    x->end != p->end || x->discarded != p->discarded) {
		s->is_contradicted = true;
		return reject_header(s, "the index contradicts the packet header");
	}
	return 0;
}

static bool is_magic(const unsigned char *at)
{
	static const unsigned char magic[2][4] = { { 0xc1, 0x1f, 0xfc, 0xc1 }, { 0xc1, 0xfc, 0x1f, 0xc1 } };
	return memcmp(at, magic[0], 4) == 0 || memcmp(at, magic[1], 4) == 0;
}

/* Returns the offset of the next valid packet at or after byte `at`, found by its magic number; the file's size: none.
 * s->packet is that packet. Sets *failed if the system cannot read the file. */
static uint64_t find_packet(struct stream_scan *s, uint64_t at, bool *failed)
{
	unsigned char block[BLOCK];
	ssize_t n = 0;
	for (; s->c->field_slot[CTF_MAGIC] != CTF_NO_SLOT && at + 4 <= s->f->bytes && s->candidates < CANDIDATES_MAX;
	     at += (uint64_t)n - 3) {
		n = pread(s->fd, block, sizeof block, (off_t)at);
		for (ssize_t i = 0; i + 4 <= n && s->candidates < CANDIDATES_MAX; i++) {
			if (block[i] != 0xc1 || !is_magic(block + i))
				continue;
			s->candidates++;
			const int status = read_packet_header(s, at + (uint64_t)i);
			*failed = status < 0;
			if (status <= 0)
				return at + (uint64_t)i;
		}
		*failed = n < 0;
		if (n < 4)
			break;
	}
	return s->f->bytes;
}

/* Reads the packet at byte `at`. An invalid one, or one of another stream than the file's, becomes a damaged packet, which
 * ends where the next valid one begins. Returns 0, or -1 if the system cannot read the file. */
static int read_packet(struct ctf_streams *all, struct stream_scan *s, struct ctf_data_stream **stream, uint64_t at)
{
	int status = read_packet_header(s, at);
	if (status < 0)
		return -1;
	const uint64_t cut_bytes = s->cut_bytes;
	bool failed = false, damaged = status > 0 || check_index(s) != 0;
	if (!damaged && *stream &&
	    (s->class != (*stream)->class || packet_field(s, CTF_INSTANCE_ID, 0) != (*stream)->instance))
		damaged = reject_header(s, "packet of another stream");
	const char *reason = s->reason;
	uint64_t next = s->f->bytes;
	if (damaged || s->is_cut)
		next = find_packet(s, at + 1, &failed);
	if (failed)
		return -1;
	/* The search replaced the header, so it is read again. */
	if (!damaged && cut_bytes && (next < s->f->bytes || read_packet_header(s, at) != 0)) {
		damaged = true;
		reason = "invalid packet size";
	}
	if (!damaged) {
		if (!s->f->packets)
			s->f->missing_bytes = cut_bytes;
		*stream = *stream ? *stream : find_or_add_stream(all, s);
	} else {
		s->packet = (struct ctf_packet){ .file = s->f, .offset = at, .size = 8 * (next - at), .damage = reason };
	}
	return 0;
}

/* Gives a damaged packet the times and counters of the packet before it, or of the next one. */
static void place_damage(struct ctf_packet *p, const struct ctf_packet *before, const struct ctf_packet *next)
{
	p->begin = p->end = before ? before->end : next->begin;
	p->discarded = before ? before->discarded : next->discarded;
	p->sequence = before ? before->sequence + 1 : next->sequence - 1;
}

/* Adds a file's packets. Its stream is that of its first valid packet. */
static int scan_packets(struct ctf_streams *all, struct stream_scan *s)
{
	struct ctf_data_stream *stream = NULL;
	struct ctf_packet damaged = { .damage = NULL };  /* before the first valid packet */
	for (uint64_t at = 0; at < s->f->bytes; at += s->packet.size / 8) {
		const bool is_first = !stream;
		if (read_packet(all, s, &stream, at) != 0)
			return -1;
		if (!stream) {
			damaged = s->packet;
			continue;
		}
		if (is_first)
			s->f->begin = s->packet.begin;
		if (is_first && damaged.damage) {
			place_damage(&damaged, NULL, &s->packet);
			*ARRAY_PUSH(stream->packet, stream->packets, stream->cap) = damaged;
		}
		if (s->packet.damage)
			place_damage(&s->packet, &stream->packet[stream->packets - 1], NULL);
		*ARRAY_PUSH(stream->packet, stream->packets, stream->cap) = s->packet;
	}
	if (stream)
		stream->bytes += s->f->bytes;
	s->reason = stream ? NULL : damaged.damage;
	return 0;
}

int ctf_streams_add(struct ctf_streams *all, const struct ctf_classes *c, struct stream_file *f, const char **reason)
{
	char *path = mem_printf("%s/%s", f->dir, f->name);
	struct stream_scan s = { .c = c, .f = f, .fd = open(path, O_RDONLY | O_CLOEXEC) };
	free(path);
	stream_file_read_index(f);
	int status = s.fd < 0 || f->read_errno ? -1 : 0;
	errno = f->read_errno ? f->read_errno : errno;
	if (!status) {
		s.value = mem_new(c->slots, sizeof *s.value);
		status = scan_packets(all, &s);
		if (status == 0 && s.reason && s.is_contradicted) {  /* the index agrees with no packet */
			f->index_damaged = true;
			f->packets = 0;
			status = scan_packets(all, &s);
		}
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

/* Packets of one file keep their order, whatever their times are. */
static int compare_packets(const void *a, const void *b)
{
	const struct ctf_packet *x = a, *y = b;
	if (x->file == y->file)
		return x->offset < y->offset ? -1 : x->offset > y->offset;
	if (x->file->begin != y->file->begin)
		return x->file->begin < y->file->begin ? -1 : 1;
	const int dir = strcmp(x->file->dir, y->file->dir);
	return dir ? dir : strcmp(x->file->name, y->file->name);
}

static int compare_path(const void *a, const void *b)
{
	const struct ctf_data_stream *s = a, *t = b;
	const struct stream_file *x = s->first, *y = t->first;
	const int dir = strcmp(x->dir, y->dir);
	return dir ? dir : strcmp(x->name, y->name);
}

void ctf_streams_sort(struct ctf_streams *all)
{
	for (size_t i = 0; i < all->len; i++) {
		struct ctf_data_stream *f = &all->stream[i];
		qsort(f->packet, f->packets, sizeof *f->packet, compare_packets);
		f->in_order = true;
		for (size_t k = 1; k < f->packets; k++)
			f->in_order &= f->packet[k].begin >= f->packet[k - 1].begin;
	}
	ARRAY_SORT(all->stream, all->len, compare_path);
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
	return !a->damage && !b->damage && a->discarded == b->discarded &&
	       (!s->has_sequence || b->sequence == a->sequence + 1) && a->end <= b->begin;
}
