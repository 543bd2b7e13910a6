#include "trace/ctf/files.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"

#define MAGIC 0xC1FC1FC1U
#define HEAD_USUAL 256     /* bytes of a packet in which its header and context are, nearly always */
#define HEAD_LONGEST 4096  /* ... and at most */

struct stream_scan {
	const struct ctf_classes *c;
	const struct stream_file *f;
	int fd;
	struct ctf_value *value;
	const struct ctf_stream_class *class;
	struct ctf_packet packet;
	const char *why;
};

static int refuse(struct stream_scan *s, const char *why)
{
	s->why = why;
	return 1;
}

static uint64_t told(const struct stream_scan *s, enum ctf_told what, uint64_t otherwise)
{
	const uint32_t slot = s->class->told[what];
	return slot == CTF_NO_SLOT ? otherwise : (uint64_t)s->value[slot].number;
}

static int find_class(struct stream_scan *s)
{
	const struct ctf_classes *c = s->c;
	const uint32_t magic = c->told[CTF_MAGIC], uuid = c->told[CTF_UUID], id = c->told[CTF_STREAM_ID];
	if (magic != CTF_NO_SLOT && s->value[magic].number != MAGIC)
		return refuse(s, "a packet without its magic number");
	if (uuid != CTF_NO_SLOT && (!c->has_uuid || memcmp(s->value[uuid].text, c->uuid, 16) != 0))
		return refuse(s, "a packet of another trace");
	if (id == CTF_NO_SLOT && c->streams != 1)
		return refuse(s, "packets that do not tell their stream class");
	s->class = NULL;
	for (size_t i = 0; i < c->streams; i++)
		if (id == CTF_NO_SLOT || c->stream[i].id == (uint64_t)s->value[id].number)
			s->class = &c->stream[i];
	return s->class ? 0 : refuse(s, "a packet of an unknown stream class");
}

static int check_packet(struct stream_scan *s, uint64_t at)
{
	struct ctf_packet *p = &s->packet;
	if (!p->size || p->size % 8 || p->size / 8 > s->f->bytes - at)
		return refuse(s, "a packet that is cut short, or of no size");
	if (p->content > p->size)
		return refuse(s, "a packet with more content than it has bytes");
	if (p->begin > p->end)
		return refuse(s, "a packet that ends before it begins");
	return 0;
}

/* What the first n bytes of a packet tell: 0 or 1. */
static int read_head(struct stream_scan *s, const unsigned char *head, size_t n, uint64_t at)
{
	struct ctf_machine m = { .packet = head, .end = 8 * (uint64_t)n, .value = s->value };
	if (ctf_run(&s->c->packet_header, &m) != CTF_RUN_DONE)
		return refuse(s, "a packet whose header cannot be read");
	if (find_class(s))
		return 1;
	if (ctf_run(&s->class->context, &m) != CTF_RUN_DONE)
		return refuse(s, "a packet whose context cannot be read");
	s->packet = (struct ctf_packet){ .file = s->f, .offset = at, .size = told(s, CTF_SIZE, 0),
		.begin = told(s, CTF_BEGIN, 0), .end = told(s, CTF_END, 0), .discarded = told(s, CTF_DISCARDED, 0),
		.sequence = told(s, CTF_SEQUENCE, 0) };
	s->packet.content = told(s, CTF_CONTENT, s->packet.size);
	if (s->packet.content < m.at)
		return refuse(s, "a packet that ends within its header");
	return check_packet(s, at);
}

/* The packet that begins at byte `at` of the file: 0, -1 or 1. */
static int read_packet(struct stream_scan *s, uint64_t at)
{
	unsigned char head[HEAD_LONGEST];
	ssize_t n = pread(s->fd, head, HEAD_USUAL, (off_t)at);
	int status = n < 0 ? -1 : read_head(s, head, (size_t)n, at);
	if (status > 0 && n == HEAD_USUAL) {
		n = pread(s->fd, head, sizeof head, (off_t)at);
		status = n < 0 ? -1 : read_head(s, head, (size_t)n, at);
	}
	if (status == 0)
		s->why = NULL;
	return status;
}

static struct ctf_flow *flow_of(struct ctf_streams *all, const struct stream_scan *s)
{
	const bool has_instance = s->class->told[CTF_INSTANCE] != CTF_NO_SLOT;
	const uint64_t instance = told(s, CTF_INSTANCE, 0);
	for (size_t i = 0; i < all->len; i++) {
		struct ctf_flow *f = &all->stream[i];
		const bool is_same_file = f->packets && f->packet[0].file == s->f;
		if (f->class == s->class && f->instance == instance && (has_instance || is_same_file))
			return f;
	}
	struct ctf_flow *f = ARRAY_PUSH(all->stream, all->len, all->cap);
	*f = (struct ctf_flow){ .class = s->class, .instance = instance, .first = s->f,
		.has_discarded = s->class->told[CTF_DISCARDED] != CTF_NO_SLOT,
		.has_sequence = s->class->told[CTF_SEQUENCE] != CTF_NO_SLOT };
	return f;
}

/* As LTTng's index has it; a file without an index is taken at its packets' word. */
static bool is_indexed_so(const struct stream_file *f, const struct ctf_packet *p, size_t i)
{
	if (!f->indexed)
		return true;
	if (i >= f->packets)
		return false;
	const struct packet *x = &f->packet[i];
	return x->offset == p->offset && x->size * 8 == p->size && x->content == p->content && x->begin == p->begin &&
	       x->end == p->end && x->discarded == p->discarded;
}

static int add_packets(struct ctf_streams *all, struct stream_scan *s)
{
	struct ctf_flow *flow = NULL;
	size_t i = 0;
	for (uint64_t at = 0; at < s->f->bytes; at += s->packet.size / 8, i++) {
		const int status = read_packet(s, at);
		if (status)
			return status;
		struct ctf_flow *of = flow_of(all, s);
		if (flow && of != flow)
			return refuse(s, "a file with packets of several streams");
		if (!is_indexed_so(s->f, &s->packet, i))
			return refuse(s, "an index that says something else than the packets");
		flow = of;
		*ARRAY_PUSH(flow->packet, flow->packets, flow->cap) = s->packet;
	}
	if (s->f->indexed && (i != s->f->packets || s->f->missing || s->f->extra || s->f->damaged))
		return refuse(s, "an index that says something else than the packets");
	if (flow)
		flow->bytes += s->f->bytes;
	return 0;
}

int ctf_streams_add(struct ctf_streams *all, const struct ctf_classes *c, struct stream_file *f, const char **why)
{
	char *path = mem_printf("%s/%s", f->dir, f->name);
	struct stream_scan s = { .c = c, .f = f, .fd = open(path, O_RDONLY | O_CLOEXEC) };
	free(path);
	stream_file_index(f);
	errno = f->why;
	int status = s.fd < 0 || f->why ? -1 : 0;
	if (!status && f->misled)
		status = refuse(&s, "an index that is damaged");
	if (!status) {
		s.value = mem_new(c->slots, sizeof *s.value);
		status = add_packets(all, &s);
	}
	const int saved = errno;
	if (s.fd >= 0)
		close(s.fd);
	free(s.value);
	errno = saved;
	*why = s.why;
	return status;
}

void ctf_streams_join(struct ctf_streams *all, struct ctf_streams *of)
{
	for (size_t i = 0; i < of->len; i++) {
		struct ctf_flow *f = &of->stream[i], *to = NULL;
		for (size_t k = 0; k < all->len && f->class->told[CTF_INSTANCE] != CTF_NO_SLOT && !to; k++)
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
	free(of->stream);
	*of = (struct ctf_streams){ 0 };
}

static int by_begin(const void *a, const void *b)
{
	const struct ctf_packet *x = a, *y = b;
	if (x->begin != y->begin)
		return x->begin < y->begin ? -1 : 1;
	const int dir = strcmp(x->file->dir, y->file->dir), name = dir ? dir : strcmp(x->file->name, y->file->name);
	return name ? name : x->offset < y->offset ? -1 : x->offset > y->offset;
}

static int by_path(const void *a, const void *b)
{
	const struct stream_file *x = ((const struct ctf_flow *)a)->first, *y = ((const struct ctf_flow *)b)->first;
	const int dir = strcmp(x->dir, y->dir);
	return dir ? dir : strcmp(x->name, y->name);
}

const char *ctf_streams_sort(struct ctf_streams *all)
{
	for (size_t i = 0; i < all->len; i++) {
		struct ctf_flow *f = &all->stream[i];
		for (size_t k = 1; k < f->packets; k++)  /* within a file, packets are in the order of time */
			if (f->packet[k].file == f->packet[k - 1].file && f->packet[k].begin < f->packet[k - 1].begin)
				return "packets that are not in the order of time";
		qsort(f->packet, f->packets, sizeof *f->packet, by_begin);
		for (size_t k = 1; k < f->packets; k++)
			if (f->packet[k].file != f->packet[k - 1].file && f->packet[k].begin < f->packet[k - 1].end)
				return "files of a stream that overlap";
	}
	if (all->len)
		qsort(all->stream, all->len, sizeof *all->stream, by_path);
	return all->len ? NULL : "no packet";
}

void ctf_streams_release(struct ctf_streams *s)
{
	for (size_t i = 0; i < s->len; i++)
		free(s->stream[i].packet);
	free(s->stream);
	*s = (struct ctf_streams){ 0 };
}

bool ctf_may_cut(const struct ctf_flow *s, size_t i)
{
	const struct ctf_packet *a = &s->packet[i - 1], *b = &s->packet[i];
	return a->discarded == b->discarded && (!s->has_sequence || b->sequence == a->sequence + 1) && a->end <= b->begin;
}
