/* Reading of the stored records: readers of one stream (store.h), and cursors that merge the records of several streams. */
#include "base/base.h"
#include "base/scratch_file.h"
#include "base/tournament.h"
#include "trace/internal.h"
#include "trace/record_codec.h"
#include "trace/clock_setback.h"

static const uint64_t number_mask[LENGTH_MASK + 1] = { 0, 0xff, 0xffff, 0xffffff, 0xffffffff, 0xffffffffff, 0xffffffffffff,
	0xffffffffffffff, UINT64_MAX };
static const uint8_t number_size[LENGTH_MASK + 1] = { 0, 1, 2, 3, 4, 5, 6, 7, 8 };

/* Reads the next number at p, the length of which is the first entry of *lengths. Removes this entry. Returns the
 * address after the number. */
static ALWAYS_INLINE const unsigned char *get_number(const unsigned char *p, uint64_t *lengths, uint64_t *x)
{
	const unsigned n = *lengths & LENGTH_MASK;
	*lengths >>= LENGTH_BITS;
	*x = get_le64(p) & number_mask[n];
	return p + n;
}

/* Mask and size in bytes of a field of n length codes. */
#define LENGTH_FIELD(n) { (UINT64_C(1) << (n) * LENGTH_BITS) - 1, ((n) * LENGTH_BITS + 7) / 8 }
struct length_field { uint64_t mask; size_t size; };

/* For each kind, the field of length codes of the time and the arguments: one table lookup leads from the start of a
 * record to its numbers. */
#define KIND_LENGTHS(code, name, args) LENGTH_FIELD(1 + (args)),
static const struct length_field kind_lengths[EVENT_KIND_COUNT] = { RECORD_KINDS(KIND_LENGTHS) };
#undef KIND_LENGTHS

static ALWAYS_INLINE const unsigned char *get_lengths(const unsigned char *p, const struct length_field *at,
                                                      uint64_t *lengths)
{
	*lengths = get_le64(p) & at->mask;
	return p + at->size;
}

/* ---- readers */

void reader_open(struct reader *r, const struct store *store, const struct stream *stream, size_t i, size_t n)
{
	*r = (struct reader){ .store = store, .stream = stream, .block = stream->len * i / n,
		.last_block = stream->len * (i + 1) / n, .ts = INT64_MIN };
	reader_want(r, ALL_KINDS, false);
	for (size_t k = 0; k < r->block; k++)
		if (stream->block[k].last > r->ts)
			r->ts = stream->block[k].last;
}

void reader_want(struct reader *r, event_kinds kinds, bool without_args)
{
	for (unsigned i = 0; i < EVENT_KINDS_MAX / 64; i++)
		r->wanted[i] = (uint64_t)(kinds >> 64 * i);
	r->without_args = without_args;
}

void reader_close(struct reader *r)
{
	free(r->buf);
	*r = (struct reader){ 0 };
}

static int load_block(struct reader *r, struct error *err)
{
	const struct block *b = &r->stream->block[r->block];
	const unsigned char *data = b->data;
	if (!data) {
		if (!r->buf)
			r->buf = mem_new(1, r->store->block_size + RECORD_OVERREAD);
		if (scratch_read(r->store->fd, r->buf, b->len, b->offset, err))
			return -1;
		data = r->buf;
	}
	r->block++;
	r->at = data;
	r->end = data + b->len;
	codec_reset(&r->last);
	return 0;
}

static ALWAYS_INLINE const unsigned char *get_thread(const unsigned char *p, struct codec *last)
{
	static const struct length_field thread_lengths = LENGTH_FIELD(4);
	uint64_t lengths, cpu, tid, pid, comm;
	p = get_lengths(p, &thread_lengths, &lengths);
	p = get_number(p, &lengths, &cpu);
	p = get_number(p, &lengths, &tid);
	p = get_number(p, &lengths, &pid);
	p = get_number(p, &lengths, &comm);
	last->context[0] = kind_word(0, (uint16_t)cpu, (int32_t)zigzag_decode(tid));
	last->context[1] = pid_word((int32_t)zigzag_decode(pid), (uint32_t)comm);
	return p;
}

/* Decodes the changed arguments; a length of 0 means unchanged. */
static ALWAYS_INLINE void get_args(const unsigned char *p, uint64_t lengths, int64_t *arg)
{
	for (; lengths; lengths >>= LENGTH_BITS, arg++) {
		const unsigned same = (unsigned)__builtin_ctzll(lengths) / LENGTH_BITS;
		lengths >>= same * LENGTH_BITS;
		arg += same;
		const unsigned n = lengths & LENGTH_MASK;
		const uint64_t value = difference_base(*arg) + zigzag_decode(get_le64(p) & number_mask[n]);
		*arg = n == LENGTH_ABSENT ? EVENT_ABSENT : (int64_t)value;
		p += number_size[n];
	}
}

/* Decodes the record at p. Returns the address of the next record; NULL: invalid kind (the temporary file was changed).
 * Arguments depend only on earlier events of the same kind, so events of kinds that are not selected are skipped without
 * decoding; *out is then unchanged. */
static ALWAYS_INLINE const unsigned char *get_record(struct reader *r, const unsigned char *p, const struct event **out)
{
	struct codec *last = &r->last;
	const unsigned char *const next = p + 1 + *p;
	const unsigned head = p[1];
	const size_t kind = head & (SAME_THREAD - 1);
	uint64_t lengths, dt;
	p += 2;
	if (kind >= EVENT_KIND_COUNT)
		return NULL;
	if (!(head & SAME_THREAD))
		p = get_thread(p, last);
	p = get_lengths(p, &kind_lengths[kind], &lengths);
	p = get_number(p, &lengths, &dt);
	last->ts = (int64_t)((uint64_t)last->ts + dt);
	/* Time may decrease where two separately decoded parts meet. */
	r->ts = last->ts < r->ts ? r->ts : last->ts;
	if (r->wanted[kind / 64] >> kind % 64 & 1) {
		struct event *ev = &last->event[kind];
		const uint64_t context[] = { last->context[0] | kind_word((uint16_t)kind, 0, 0), last->context[1] };
		ev->ts = r->ts;
		memcpy(&ev->kind, context, sizeof context);
		*out = ev;
		if (!r->without_args)
			get_args(p, lengths, ev->arg);
	}
	return next;
}

static __attribute__((noinline)) int fail_damaged_file(struct error *err)
{
	return error_set(err, STATUS_SYSTEM, NULL, "the temporary file of the events is damaged");
}

/* Returns the first selected event of the blocks after the current one, which has no further records. Returns 1, 0 =
 * end, or -1. */
static int next_in_blocks(struct reader *r, const struct event **ev, struct error *err);

/* Returns the next selected event: 1, 0 = end, or -1. Inlined fast path; a block's end is handled by another function. */
static ALWAYS_INLINE int next_event(struct reader *r, const struct event **ev, struct error *err)
{
	const struct event *got = NULL;
	do {
		if (r->at == r->end)
			return next_in_blocks(r, ev, err);
		r->at = get_record(r, r->at, &got);
		if (!r->at || r->at > r->end)
			return fail_damaged_file(err);
	} while (!got);
	*ev = got;
	return 1;
}

int reader_next(struct reader *r, const struct event **ev, struct error *err)
{
	return next_event(r, ev, err);
}

static __attribute__((noinline)) int next_in_blocks(struct reader *r, const struct event **ev, struct error *err)
{
	do {
		if (r->block == r->last_block)
			return 0;
		if (load_block(r, err))
			return -1;
	} while (r->at == r->end);
	return reader_next(r, ev, err);
}

/* ---- cursors: a tournament of stream readers; ties are broken by the stream's index */

struct cursor_stream {
	const struct event *ev;  /* the stream's next event, owned by the reader */
	struct reader reader;
};

struct trace_cursor {
	const struct trace *trace;
	int cpu;
	bool must_filter;              /* some events of the streams must be dropped, see is_filtered() */
	bool has_borrowed;              /* the caller uses the event of `current` until its next call */
	struct cursor_stream *stream, *current;  /* current: the stream of that event */
	size_t streams;
	struct tournament order;
};

static bool is_filtered(const struct trace_cursor *c, const struct event *ev)
{
	return (c->cpu >= 0 && ev->cpu != c->cpu) ||
	       (c->trace->setbacks > 0 && ev->kind != EV_LOST && setbacks_contain(c->trace, ev->ts));
}

/* Returns 1, 0 = end, or -1. */
static ALWAYS_INLINE int cursor_stream_advance(struct trace_cursor *c, struct cursor_stream *s, struct error *err)
{
	int more;
	do {
		more = next_event(&s->reader, &s->ev, err);
	} while (more > 0 && c->must_filter && is_filtered(c, s->ev));
	return more;
}

static bool may_contain(const struct stream *s, event_kinds kinds, int cpu)
{
	return (s->kinds & kinds) != 0 && (cpu < 0 || cpu_set_has(&s->cpus, cpu));
}

static struct trace_cursor *open_cursor(const struct trace *t, event_kinds kinds, bool without_args, int cpu, size_t part,
                                        size_t parts, struct error *err)
{
	struct trace_cursor *c = mem_new(1, sizeof *c);
	c->trace = t;
	c->cpu = cpu;
	c->must_filter = cpu >= 0 || t->setbacks > 0;
	size_t n = 0;
	for (size_t i = 0; i < t->streams; i++)
		n += may_contain(&t->stream[i], kinds, cpu);
	c->stream = mem_new(n + 1, sizeof *c->stream);
	struct contender *next = mem_new(n, sizeof *next);
	for (size_t i = 0; i < t->streams; i++) {
		if (!may_contain(&t->stream[i], kinds, cpu))
			continue;
		struct cursor_stream *s = &c->stream[c->streams++];
		reader_open(&s->reader, t->store, &t->stream[i], part, parts);
		reader_want(&s->reader, kinds, without_args);
		int more = cursor_stream_advance(c, s, err);
		if (more < 0) {
			free(next);
			trace_cursor_close(c);
			return NULL;
		}
		const size_t index = c->streams - 1;
		next[index] = (struct contender){ more ? s->ev->ts : INT64_MAX, more ? index : index | TOURNAMENT_ENDED };
	}
	tournament_open(&c->order, next, c->streams);
	free(next);
	return c;
}

struct trace_cursor *trace_cursor_open(const struct trace *t, event_kinds kinds, int cpu, struct error *err)
{
	return open_cursor(t, kinds, false, cpu, 0, 1, err);
}

struct trace_cursor *trace_cursor_open_times(const struct trace *t, event_kinds kinds, int cpu, size_t part, size_t parts,
                                             struct error *err)
{
	return open_cursor(t, kinds, true, cpu, part, parts, err);
}

/* Updates the tournament after the current stream advanced, and selects the stream of the next event. Returns 1, or 0 at
 * the end. */
static __attribute__((noinline)) int select_stream(struct trace_cursor *c, bool more, const struct event **ev)
{
	if (more)
		tournament_next(&c->order, c->current->ev->ts);
	else if (c->has_borrowed)
		tournament_leave(&c->order);
	c->has_borrowed = c->order.len > 0;
	if (!c->has_borrowed)
		return 0;
	c->current = &c->stream[c->order.first.stream];
	*ev = c->current->ev;
	return 1;
}

int trace_cursor_borrow(struct trace_cursor *c, const struct event **ev, struct error *err)
{
	const int more = c->has_borrowed ? cursor_stream_advance(c, c->current, err) : 0;
	if (more <= 0 || c->current->ev->ts >= c->order.runner_up)
		return more < 0 ? -1 : select_stream(c, more, ev);
	*ev = c->current->ev;
	return 1;
}

int trace_cursor_next(struct trace_cursor *c, struct event *ev, struct error *err)
{
	const struct event *borrowed;
	const int got = trace_cursor_borrow(c, &borrowed, err);
	if (got > 0)
		*ev = *borrowed;
	return got;
}

void trace_cursor_close(struct trace_cursor *c)
{
	if (!c)
		return;
	for (size_t i = 0; i < c->streams; i++)
		reader_close(&c->stream[i].reader);
	free(c->stream);
	tournament_close(&c->order);
	free(c);
}
