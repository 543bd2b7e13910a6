#include "trace/store.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/scratch.h"

#define SAME_THREAD 0x80  /* in a record's first byte, its kind: cpu, tid, pid and comm as in the previous record */

_Static_assert(EVENT_KIND_COUNT <= MOST_EVENT_KINDS, "a set of kinds must hold them all");
_Static_assert(MOST_EVENT_KINDS <= SAME_THREAD, "a kind must leave room for a bit");
_Static_assert(4 * (1 + EVENT_ARGS) + 7 <= 64, "the lengths of a record's numbers must fit into one");

#define INLINE inline __attribute__((always_inline))

/* ---- numbers: their lengths stand before them, four bits each, so that none is looked for in its bytes */

#define LENGTH_BITS 4
#define LENGTH 15U
#define ABSENT 15U  /* as a length: EVENT_ABSENT */

static const uint64_t mask[LENGTH + 1] = { 0, 0xff, 0xffff, 0xffffff, 0xffffffff, 0xffffffffff, 0xffffffffffff,
	0xffffffffffffff, UINT64_MAX };
static const uint8_t bytes_of[LENGTH + 1] = { 0, 1, 2, 3, 4, 5, 6, 7, 8 };

static INLINE uint64_t get64(const unsigned char *p)
{
	uint64_t x;
	memcpy(&x, p, sizeof x);
	return le64toh(x);
}

static INLINE void put64(unsigned char *p, uint64_t x)
{
	x = htole64(x);
	memcpy(p, &x, sizeof x);
}

static INLINE unsigned length_of(uint64_t x)
{
	return x ? (71 - (unsigned)__builtin_clzll(x)) / 8 : 0;
}

/* Signed numbers: the sign in bit 0. */
static INLINE uint64_t fold(uint64_t x)
{
	return x << 1 ^ (0 - (x >> 63));
}

static INLINE uint64_t unfold(uint64_t x)
{
	return x >> 1 ^ (0 - (x & 1));
}

/* Number i of those whose lengths are gathered in *lengths. */
static INLINE unsigned char *put_number(unsigned char *p, uint64_t x, unsigned i, uint64_t *lengths)
{
	const unsigned n = length_of(x);
	put64(p, x);
	*lengths |= (uint64_t)n << i * LENGTH_BITS;
	return p + n;
}

/* The next one, whose length comes first in *lengths. */
static INLINE const unsigned char *get_number(const unsigned char *p, uint64_t *lengths, uint64_t *x)
{
	const unsigned n = *lengths & LENGTH;
	*lengths >>= LENGTH_BITS;
	*x = get64(p) & mask[n];
	return p + n;
}

/* Bytes of n lengths. */
static INLINE unsigned lengths_size(unsigned n)
{
	return (n * LENGTH_BITS + 7) / 8;
}

static INLINE unsigned char *put_lengths(unsigned char *p, unsigned n, uint64_t lengths)
{
	for (unsigned i = 0; i < lengths_size(n); i++)
		p[i] = (unsigned char)(lengths >> 8 * i);
	return p + lengths_size(n);
}

/* Where n lengths are: so many bytes, of which these bits. */
#define LENGTHS(n) { (UINT64_C(1) << (n) * LENGTH_BITS) - 1, ((n) * LENGTH_BITS + 7) / 8 }
static const struct lengths_at { uint64_t mask; unsigned size; } lengths_at[] = {
	LENGTHS(0), LENGTHS(1), LENGTHS(2), LENGTHS(3), LENGTHS(4), LENGTHS(5), LENGTHS(6), LENGTHS(7),
};
#undef LENGTHS
_Static_assert(sizeof lengths_at / sizeof *lengths_at == EVENT_ARGS + 2, "one for each number of arguments and a time");

static INLINE const unsigned char *get_lengths(const unsigned char *p, unsigned n, uint64_t *lengths)
{
	*lengths = get64(p) & lengths_at[n].mask;
	return p + lengths_at[n].size;
}

/* All of them together, ABSENT is 0. */
static INLINE unsigned lengths_sum(uint64_t lengths)
{
	if (!lengths)  /* most of those that nobody wants have no arguments */
		return 0;
	const uint64_t absent = lengths & lengths >> 1 & lengths >> 2 & lengths >> 3 & 0x1111111111111111U;
	lengths -= absent * ABSENT;
	lengths = (lengths & 0x0f0f0f0f0f0f0f0fU) + (lengths >> 4 & 0x0f0f0f0f0f0f0f0fU);
	return (unsigned)(lengths * 0x0101010101010101U >> 56);
}

static void codec_begin(struct codec *c)
{
	*c = (struct codec){ 0 };
	for (unsigned k = 0; k < EVENT_KIND_COUNT; k++) {
		c->event[k].kind = (uint16_t)k;
		for (unsigned i = 0; i < EVENT_ARGS; i++)
			c->event[k].arg[i] = EVENT_ABSENT;
	}
}

/* What the next value of an argument is compared with. */
static INLINE uint64_t base_of(int64_t before)
{
	return before == EVENT_ABSENT ? 0 : (uint64_t)before;
}

/* ---- the store */

void store_expect(struct store *s, size_t streams)
{
	while (s->block_size > 1024 && s->block_size * streams > s->limit / 4)
		s->block_size /= 2;
}

struct store *store_new(size_t limit, const char *dir, struct error *err)
{
	struct store *s = mem_new(1, sizeof *s);
	s->limit = limit;
	s->block_size = 16384;
	atomic_init(&s->users, 1);
	s->fd = scratch_open(dir, err);
	if (s->fd < 0) {
		free(s);
		return NULL;
	}
	return s;
}

void store_ref(struct store *s)
{
	atomic_fetch_add(&s->users, 1);
}

void store_unref(struct store *s)
{
	if (!s || atomic_fetch_sub(&s->users, 1) > 1)
		return;
	if (s->fd >= 0)
		close(s->fd);
	free(s);
}

/* ---- streams */

void stream_init(struct stream *s)
{
	*s = (struct stream){ .begin = INT64_MAX, .end = INT64_MIN, .cpus = NO_CPUS, .sent = NO_SENDS };
}

void stream_release(struct stream *s, struct store *store)
{
	for (size_t i = 0; i < s->len; i++) {
		if (s->block[i].data)
			atomic_fetch_sub(&store->resident, s->block[i].len);
		free(s->block[i].data);
	}
	free(s->block);
	cpu_set_release(&s->cpus);
	sends_release(&s->sent);
	free(s->back);
	stream_init(s);
}

void stream_steps_back(struct stream *s, int64_t from, int64_t to)
{
	struct trace_span *last = s->backs > 0 ? &s->back[s->backs - 1] : NULL;
	if (to - from < BACK_LEAST_NS)
		return;
	if (last && from <= last->end) {
		last->begin = from < last->begin ? from : last->begin;
		last->end = to > last->end ? to : last->end;
	} else if (s->backs <= TWICE_MOST) {
		*ARRAY_PUSH(s->back, s->backs, s->back_cap) = (struct trace_span){ from, to };
	}
}

static void add_cpu(struct cpu_set *s, uint16_t cpu)
{
	if (s->min > s->max) {
		s->min = s->max = cpu;
		return;
	}
	if (!s->bit) {
		if (cpu == s->min)
			return;
		s->bit = mem_new(CPU_SET_WORDS, sizeof *s->bit);
		s->bit[s->min / 64] |= 1ULL << s->min % 64;
	}
	s->bit[cpu / 64] |= 1ULL << cpu % 64;
	s->min = cpu < s->min ? cpu : s->min;
	s->max = cpu > s->max ? cpu : s->max;
}

bool cpu_set_has(const struct cpu_set *s, int cpu)
{
	if (cpu < s->min || cpu > s->max)
		return false;
	return !s->bit || s->bit[cpu / 64] >> cpu % 64 & 1;
}

void cpu_set_add(struct cpu_set *s, const struct cpu_set *of)
{
	for (int cpu = of->min; cpu <= of->max; cpu++)
		if (cpu_set_has(of, cpu))
			add_cpu(s, (uint16_t)cpu);
}

void cpu_set_release(struct cpu_set *s)
{
	free(s->bit);
	*s = (struct cpu_set)NO_CPUS;
}

/* Who is woken is queued there, and who is moved goes there.  A waking names where it ran last, which may be offline. */
static void add_sent(struct sends *s, const struct event *ev)
{
	const int64_t to = ev->kind == EV_WAKEUP ? ev->wake.target_cpu : ev->kind == EV_MIGRATE ? ev->migrate.dest_cpu : -1;
	if (to >= 0 && to <= UINT16_MAX)
		add_cpu(cpu_set_has(&s->once, (int)to) ? &s->again : &s->once, (uint16_t)to);
}

void sends_add(struct sends *s, const struct sends *of)
{
	for (int cpu = of->once.min; cpu <= of->once.max; cpu++)
		if (cpu_set_has(&of->once, cpu))
			add_cpu(cpu_set_has(&s->once, cpu) ? &s->again : &s->once, (uint16_t)cpu);
	cpu_set_add(&s->again, &of->again);
}

void sends_release(struct sends *s)
{
	cpu_set_release(&s->once);
	cpu_set_release(&s->again);
}

void writer_open(struct writer *w, struct store *store, struct stream *stream)
{
	*w = (struct writer){ .store = store, .stream = stream, .ts = INT64_MIN };
	codec_begin(&w->last);
	w->buf = mem_new(1, store->block_size);
}

static int flush(struct writer *w, struct error *err)
{
	if (!w->used)
		return 0;
	struct block b = { NULL, 0, w->ts, (uint32_t)w->used };
	size_t before = atomic_fetch_add(&w->store->resident, w->used);
	if (before + w->used <= w->store->limit)
		b.data = malloc(w->used + BLOCK_ROOM);
	if (b.data) {
		memcpy(b.data, w->buf, w->used);
	} else {
		atomic_fetch_sub(&w->store->resident, w->used);
		b.offset = atomic_fetch_add(&w->store->spilled, (int64_t)w->used);
		if (scratch_write(w->store->fd, w->buf, w->used, b.offset, err))
			return -1;
	}
	struct stream *s = w->stream;
	*ARRAY_PUSH(s->block, s->len, s->cap) = b;
	w->used = 0;
	codec_begin(&w->last);
	return 0;
}

static void count(struct writer *w, const struct event *ev)
{
	struct stream *s = w->stream;
	s->kinds |= KIND(ev->kind);
	add_cpu(&s->cpus, ev->cpu);
	add_sent(&s->sent, ev);
	if (ev->kind == EV_LOST)
		return;
	s->events++;
	if (s->begin > s->end)
		s->begin = w->ts;
	s->end = w->ts;
}

static unsigned char *put_thread(unsigned char *p, const struct event *ev, struct codec *last)
{
	uint64_t lengths = 0;
	unsigned char *to = p + lengths_size(4);
	to = put_number(to, ev->cpu, 0, &lengths);
	to = put_number(to, fold((uint64_t)ev->tid), 1, &lengths);
	to = put_number(to, fold((uint64_t)ev->pid), 2, &lengths);
	to = put_number(to, ev->comm, 3, &lengths);
	(void)put_lengths(p, 4, lengths);
	last->tid = ev->tid, last->pid = ev->pid, last->cpu = ev->cpu, last->comm = ev->comm;
	return to;
}

/* The time since the previous record, and what is new of the arguments. */
static unsigned char *put_numbers(unsigned char *p, const struct event *ev, uint64_t dt, int64_t *before)
{
	const unsigned args = event_args[ev->kind];
	uint64_t lengths = 0;
	unsigned char *to = put_number(p + lengths_size(1 + args), dt, 0, &lengths);
	for (unsigned i = 0; i < args; i++) {
		const int64_t is = ev->arg[i];
		const uint64_t diff = fold((uint64_t)is - base_of(before[i]));
		if (is == before[i])
			continue;
		if (is == EVENT_ABSENT)
			lengths |= (uint64_t)ABSENT << (1 + i) * LENGTH_BITS;
		else if (diff)
			to = put_number(to, diff, 1 + i, &lengths);
		else  /* a zero after an absent one: its length must not be 0 */
			*to++ = 0, lengths |= UINT64_C(1) << (1 + i) * LENGTH_BITS;
		before[i] = is;
	}
	(void)put_lengths(p, 1 + args, lengths);
	return to;
}

int writer_put(struct writer *w, const struct event *ev, struct error *err)
{
	if (w->used + RECORD_LONGEST > w->store->block_size && flush(w, err))
		return -1;
	struct codec *last = &w->last;
	if (ev->ts >= w->ts) {
		w->ts = ev->ts;
	} else if (ev->kind != EV_LOST) {
		w->clamped++;
		stream_steps_back(w->stream, ev->ts, w->ts);
	}
	count(w, ev);

	unsigned char *const head = w->buf + w->used, *p = head + 1;
	*head = (unsigned char)ev->kind;
	if (ev->tid == last->tid && ev->cpu == last->cpu && ev->comm == last->comm && ev->pid == last->pid)
		*head |= SAME_THREAD;
	else
		p = put_thread(p, ev, last);
	p = put_numbers(p, ev, (uint64_t)w->ts - (uint64_t)last->ts, last->event[ev->kind].arg);
	last->ts = w->ts;
	w->used = (size_t)(p - w->buf);
	return 0;
}

int writer_close(struct writer *w, struct error *err)
{
	int status = flush(w, err);
	free(w->buf);
	w->buf = NULL;
	return status;
}

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
	uint64_t lengths, cpu, tid, pid, comm;
	p = get_lengths(p, 4, &lengths);
	p = get_number(p, &lengths, &cpu);
	p = get_number(p, &lengths, &tid);
	p = get_number(p, &lengths, &pid);
	p = get_number(p, &lengths, &comm);
	last->cpu = (uint16_t)cpu;
	last->tid = (int32_t)unfold(tid);
	last->pid = (int32_t)unfold(pid);
	last->comm = (uint32_t)comm;
	return p;
}

/* Those that are not as they were. */
static INLINE const unsigned char *get_args(const unsigned char *p, uint64_t lengths, int64_t *arg)
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
	return p;
}

/* One record from p; NULL when its kind is none (a temporary file that somebody changed).  Arguments follow from those of
 * the same kind alone, so those that nobody wants need not be known: then *out stays as it is. */
static INLINE const unsigned char *get_record(struct reader *r, const unsigned char *p, const struct event **out)
{
	struct codec *last = &r->last;
	const unsigned head = *p++;
	const size_t kind = head & (SAME_THREAD - 1);
	uint64_t lengths, dt;
	if (kind >= EVENT_KIND_COUNT)
		return NULL;
	if (!(head & SAME_THREAD))
		p = get_thread(p, last);
	p = get_lengths(p, 1U + event_args[kind], &lengths);
	p = get_number(p, &lengths, &dt);
	last->ts = (int64_t)((uint64_t)last->ts + dt);
	/* A stream decoded in several parts may step back where two parts meet. */
	r->ts = last->ts < r->ts ? r->ts : last->ts;
	if (r->wanted[kind / 64] >> kind % 64 & 1) {
		struct event *ev = &last->event[kind];
		ev->ts = r->ts;
		ev->cpu = last->cpu;
		ev->tid = last->tid;
		ev->pid = last->pid;
		ev->comm = last->comm;
		*out = ev;
		if (!r->bare)
			return get_args(p, lengths, ev->arg);
	}
	return p + lengths_sum(lengths);
}

static __attribute__((noinline)) int damaged(struct error *err)
{
	return error_set(err, STATUS_SYSTEM, NULL, "the temporary file of the events is damaged");
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

/* What happens seldom is done elsewhere. */
int reader_next(struct reader *r, const struct event **ev, struct error *err)
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
