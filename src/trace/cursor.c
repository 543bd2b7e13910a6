/* The events of a trace again: readers of a stream's records (store.h), and cursors that merge those of several. */
#include <stdlib.h>

#include "base/mem.h"
#include "base/scratch_file.h"
#include "base/tournament.h"
#include "trace/internal.h"
#include "trace/record_codec.h"
#include "trace/clock_setback.h"

static const uint64_t mask[LENGTH + 1] = { 0, 0xff, 0xffff, 0xffffff, 0xffffffff, 0xffffffffff, 0xffffffffffff,
	0xffffffffffffff, UINT64_MAX };
static const uint8_t bytes_of[LENGTH + 1] = { 0, 1, 2, 3, 4, 5, 6, 7, 8 };

/* The next one, whose length comes first in *lengths. */
static INLINE const unsigned char *get_number(const unsigned char *p, uint64_t *lengths, uint64_t *x)
{
	const unsigned n = *lengths & LENGTH;
	*lengths >>= LENGTH_BITS;
	*x = get64(p) & mask[n];
	return p + n;
}

/* Where n lengths are: so many bytes, of which these bits. */
#define LENGTHS(n) { (UINT64_C(1) << (n) * LENGTH_BITS) - 1, ((n) * LENGTH_BITS + 7) / 8 }
struct lengths_at { uint64_t mask; size_t size; };

/* Of a kind's arguments and a time: one look from what stands first in a record to where its numbers are. */
#define OF_KIND(code, name, args) LENGTHS(1 + (args)),
static const struct lengths_at lengths_of[EVENT_KIND_COUNT] = { RECORD_KINDS(OF_KIND) };
#undef OF_KIND

static INLINE const unsigned char *get_lengths(const unsigned char *p, const struct lengths_at *at, uint64_t *lengths)
{
	*lengths = get64(p) & at->mask;
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

void reader_want(struct reader *r, event_kinds kinds, bool bare)
{
	for (unsigned i = 0; i < MOST_EVENT_KINDS / 64; i++)
		r->wanted[i] = (uint64_t)(kinds >> 64 * i);
	r->bare = bare;
}

void reader_close(struct reader *r)
{
	free(r->buf);
	*r = (struct reader){ 0 };
}

static int next_block(struct reader *r, struct error *err)
{
	const struct block *b = &r->stream->block[r->block];
	const unsigned char *data = b->data;
	if (!data) {
		if (!r->buf)
			r->buf = mem_new(1, r->store->block_size + RECORD_ROOM);
		if (scratch_read(r->store->fd, r->buf, b->len, b->offset, err))
			return -1;
		data = r->buf;
	}
	r->block++;
	r->at = data;
	r->end = data + b->len;
	codec_begin(&r->last);
	return 0;
}

static INLINE const unsigned char *get_thread(const unsigned char *p, struct codec *last)
{
	static const struct lengths_at four = LENGTHS(4);
	uint64_t lengths, cpu, tid, pid, comm;
	p = get_lengths(p, &four, &lengths);
	p = get_number(p, &lengths, &cpu);
	p = get_number(p, &lengths, &tid);
	p = get_number(p, &lengths, &pid);
	p = get_number(p, &lengths, &comm);
	last->who[0] = kind_word(0, (uint16_t)cpu, (int32_t)unfold(tid));
	last->who[1] = pid_word((int32_t)unfold(pid), (uint32_t)comm);
	return p;
}

/* Those that are not as they were. */
static INLINE void get_args(const unsigned char *p, uint64_t lengths, int64_t *arg)
{
	for (; lengths; lengths >>= LENGTH_BITS, arg++) {
		const unsigned same = (unsigned)__builtin_ctzll(lengths) / LENGTH_BITS;
		lengths >>= same * LENGTH_BITS;
		arg += same;
		const unsigned n = lengths & LENGTH;
		const uint64_t value = base_of(*arg) + unfold(get64(p) & mask[n]);
		*arg = n == ABSENT ? EVENT_ABSENT : (int64_t)value;
		p += bytes_of[n];
	}
}

/* One record from p, and where the next one is; NULL when its kind is none (a temporary file that somebody changed).
 * Arguments follow from those of the same kind alone, so those that nobody wants need not be known: then *out stays as it
 * is. */
static INLINE const unsigned char *get_record(struct reader *r, const unsigned char *p, const struct event **out)
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
	p = get_lengths(p, &lengths_of[kind], &lengths);
	p = get_number(p, &lengths, &dt);
	last->ts = (int64_t)((uint64_t)last->ts + dt);
	/* A stream decoded in several parts may step back where two parts meet. */
	r->ts = last->ts < r->ts ? r->ts : last->ts;
	if (r->wanted[kind / 64] >> kind % 64 & 1) {
		struct event *ev = &last->event[kind];
		const uint64_t who[] = { last->who[0] | kind_word((uint16_t)kind, 0, 0), last->who[1] };
		ev->ts = r->ts;
		memcpy(&ev->kind, who, sizeof who);
		*out = ev;
		if (!r->bare)
			get_args(p, lengths, ev->arg);
	}
	return next;
}

static __attribute__((noinline)) int damaged(struct error *err)
{
	return error_set(err, STATUS_SYSTEM, NULL, "the temporary file of the events is damaged");
}

/* The first one of the next block that has one: none of this one is left. */
static int next_in_block(struct reader *r, const struct event **ev, struct error *err);

/* What happens seldom is done elsewhere. */
static INLINE int next_event(struct reader *r, const struct event **ev, struct error *err)
{
	const struct event *got = NULL;
	do {
		if (r->at == r->end)
			return next_in_block(r, ev, err);
		r->at = get_record(r, r->at, &got);
		if (!r->at || r->at > r->end)
			return damaged(err);
	} while (!got);
	*ev = got;
	return 1;
}

int reader_next(struct reader *r, const struct event **ev, struct error *err)
{
	return next_event(r, ev, err);
}

static __attribute__((noinline)) int next_in_block(struct reader *r, const struct event **ev, struct error *err)
{
	do {
		if (r->block == r->last_block)
			return 0;
		if (next_block(r, err))
			return -1;
	} while (r->at == r->end);
	return reader_next(r, ev, err);
}

/* ---- cursors: a tournament of stream readers; equal times go by the stream's number */

struct merged {
	const struct event *ev;  /* the next one that the cursor wants: the reader's */
	struct reader reader;
};

struct trace_cursor {
	const struct trace *trace;
	int cpu;
	bool picks;              /* some of what its readers give is left out */
	bool given;              /* the caller has the first one's */
	struct merged *source, *first;  /* first: the caller has its event, if `given` */
	size_t sources;
	struct tournament order;
};

static bool leaves_out(const struct trace_cursor *c, const struct event *ev)
{
	return (c->cpu >= 0 && ev->cpu != c->cpu) ||
	       (c->trace->twices > 0 && ev->kind != EV_LOST && twice_has(c->trace, ev->ts));
}

static INLINE int advance(struct trace_cursor *c, struct merged *s, struct error *err)  /* 1, 0 = end, -1 */
{
	int more;
	do {
		more = next_event(&s->reader, &s->ev, err);
	} while (more > 0 && c->picks && leaves_out(c, s->ev));
	return more;
}

static bool may_hold(const struct stream *s, event_kinds kinds, int cpu)
{
	return (s->kinds & kinds) != 0 && (cpu < 0 || cpu_set_has(&s->cpus, cpu));
}

static struct trace_cursor *open_cursor(const struct trace *t, event_kinds kinds, bool bare, int cpu, size_t part,
                                        size_t parts, struct error *err)
{
	struct trace_cursor *c = mem_new(1, sizeof *c);
	c->trace = t;
	c->cpu = cpu;
	c->picks = cpu >= 0 || t->twices > 0;
	size_t n = 0;
	for (size_t i = 0; i < t->streams; i++)
		n += may_hold(&t->stream[i], kinds, cpu);
	c->source = mem_new(n + 1, sizeof *c->source);
	struct contender *next = mem_new(n, sizeof *next);
	for (size_t i = 0; i < t->streams; i++) {
		if (!may_hold(&t->stream[i], kinds, cpu))
			continue;
		struct merged *s = &c->source[c->sources++];
		reader_open(&s->reader, t->store, &t->stream[i], part, parts);
		reader_want(&s->reader, kinds, bare);
		int more = advance(c, s, err);
		if (more < 0) {
			free(next);
			trace_cursor_close(c);
			return NULL;
		}
		const size_t who = c->sources - 1;
		next[who] = more ? (struct contender){ s->ev->ts, who } : (struct contender){ INT64_MAX, who | TOURNAMENT_OVER };
	}
	tournament_open(&c->order, next, c->sources);
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

/* Another stream's turn, perhaps. */
static __attribute__((noinline)) int turn(struct trace_cursor *c, bool more, const struct event **ev)
{
	if (more)
		tournament_next(&c->order, c->first->ev->ts);
	else if (c->given)
		tournament_leave(&c->order);
	c->given = c->order.len > 0;
	if (!c->given)
		return 0;
	c->first = &c->source[c->order.first.who];
	*ev = c->first->ev;
	return 1;
}

int trace_cursor_borrow(struct trace_cursor *c, const struct event **ev, struct error *err)
{
	const int more = c->given ? advance(c, c->first, err) : 0;
	if (more <= 0 || c->first->ev->ts >= c->order.rival)
		return more < 0 ? -1 : turn(c, more, ev);
	*ev = c->first->ev;
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
	for (size_t i = 0; i < c->sources; i++)
		reader_close(&c->source[i].reader);
	free(c->source);
	tournament_close(&c->order);
	free(c);
}
