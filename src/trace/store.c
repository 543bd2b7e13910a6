#include "trace/store.h"

#include <endian.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/scratch.h"

/* The first byte of a record: a kind, or that it stands in the next byte, and flags. */
#define KIND_BITS 0x3f
#define KIND_FOLLOWS 0x3f
#define SAME_THREAD 0x40  /* cpu, tid, pid and comm as in the previous record */
#define ALL_ARGS 0x80     /* no argument is absent; else a byte says which are present */

_Static_assert(EVENT_KIND_COUNT <= MOST_EVENT_KINDS, "a set of kinds must hold them all");
_Static_assert(EVENT_ARGS <= 8, "a bit for each argument must fit in a byte");

#define INLINE inline __attribute__((always_inline))  /* what is known beforehand is not asked for each number */

/* ---- varints: seven bits a byte, least significant first; signed numbers fold their sign into bit 0 */

static unsigned char *put_unsigned(unsigned char *p, uint64_t v)
{
	for (; v > 0x7f; v >>= 7)
		*p++ = (unsigned char)(v | 0x80);
	*p++ = (unsigned char)v;
	return p;
}

static unsigned char *put_signed(unsigned char *p, uint64_t v)
{
	return put_unsigned(p, v << 1 ^ (0 - (v >> 63)));
}

/* All numbers of a record, at most, each of ten bytes: so far from a block's end nothing is checked but their sense. */
#define RECORD_FAR ((size_t)(12 + 10 * (5 + EVENT_ARGS)))

/* NULL when the block ends within the number. */
static const unsigned char *get_slowly(const unsigned char *p, const unsigned char *end, uint64_t *v)
{
	uint64_t x = 0;
	for (unsigned shift = 0; p < end && shift < 64; shift += 7) {
		x |= (uint64_t)(*p & 0x7f) << shift;
		if (!(*p++ & 0x80)) {
			*v = x;
			return p;
		}
	}
	return NULL;
}

/* The same; `far`: the block does not end within RECORD_FAR bytes.  Eight bytes at a time: a loop over the bytes of a
 * number mostly ends where the processor does not expect it. */
static INLINE const unsigned char *get_unsigned(const unsigned char *p, const unsigned char *end, bool far, uint64_t *v)
{
	if (!far)
		return get_slowly(p, end, v);
	if (*p < 0x80) {
		*v = *p;
		return p + 1;
	}
	uint64_t w;
	memcpy(&w, p, sizeof w);
	w = le64toh(w);
	const uint64_t stop = ~w & 0x8080808080808080U;
	if (!stop)
		return get_slowly(p, end, v);
	w &= (stop ^ (stop - 1)) & 0x7f7f7f7f7f7f7f7fU;
	w = (w & 0x007f007f007f007fU) | (w & 0x7f007f007f007f00U) >> 1;
	w = (w & 0x00003fff00003fffU) | (w & 0x3fff00003fff0000U) >> 2;
	*v = (w & 0x0fffffff) | (w & 0x0fffffff00000000U) >> 4;
	return p + __builtin_ctzll(stop) / 8 + 1;
}

static INLINE const unsigned char *get_signed(const unsigned char *p, const unsigned char *end, bool far, uint64_t *v)
{
	uint64_t x = 0;
	p = get_unsigned(p, end, far, &x);
	*v = x >> 1 ^ (0 - (x & 1));
	return p;
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
	*s = (struct stream){ .begin = INT64_MAX, .end = INT64_MIN, .cpu_min = UINT16_MAX };
}

void stream_release(struct stream *s, struct store *store)
{
	for (size_t i = 0; i < s->len; i++) {
		if (s->block[i].data)
			atomic_fetch_sub(&store->resident, s->block[i].len);
		free(s->block[i].data);
	}
	free(s->block);
	free(s->cpu_set);
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

static void add_cpu(struct stream *s, uint16_t cpu)
{
	if (s->cpu_min > s->cpu_max) {
		s->cpu_min = s->cpu_max = cpu;
		return;
	}
	if (!s->cpu_set) {
		if (cpu == s->cpu_min)
			return;
		s->cpu_set = mem_new(CPU_SET_WORDS, sizeof *s->cpu_set);
		s->cpu_set[s->cpu_min / 64] |= 1ULL << s->cpu_min % 64;
	}
	s->cpu_set[cpu / 64] |= 1ULL << cpu % 64;
	s->cpu_min = cpu < s->cpu_min ? cpu : s->cpu_min;
	s->cpu_max = cpu > s->cpu_max ? cpu : s->cpu_max;
}

bool stream_has_cpu(const struct stream *s, int cpu)
{
	if (cpu < s->cpu_min || cpu > s->cpu_max)
		return false;
	return !s->cpu_set || s->cpu_set[cpu / 64] >> cpu % 64 & 1;
}

void stream_add_cpus(struct stream *s, const struct stream *of)
{
	for (int cpu = of->cpu_min; cpu <= of->cpu_max; cpu++)
		if (stream_has_cpu(of, cpu))
			add_cpu(s, (uint16_t)cpu);
}

void writer_open(struct writer *w, struct store *store, struct stream *stream)
{
	*w = (struct writer){ .store = store, .stream = stream, .ts = INT64_MIN };
	w->buf = mem_new(1, store->block_size);
}

static int flush(struct writer *w, struct error *err)
{
	if (!w->used)
		return 0;
	struct block b = { NULL, 0, w->ts, (uint32_t)w->used };
	size_t before = atomic_fetch_add(&w->store->resident, w->used);
	if (before + w->used <= w->store->limit)
		b.data = malloc(w->used);
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
	w->last = (struct codec){ 0 };
	return 0;
}

static void count(struct writer *w, const struct event *ev)
{
	struct stream *s = w->stream;
	s->kinds |= KIND(ev->kind);
	add_cpu(s, ev->cpu);
	if (ev->kind == EV_LOST)
		return;
	s->events++;
	if (s->begin > s->end)
		s->begin = w->ts;
	s->end = w->ts;
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

	unsigned char *const head = w->buf + w->used, *p = head;
	*p++ = (unsigned char)(ev->kind < KIND_FOLLOWS ? ev->kind : KIND_FOLLOWS);
	if (ev->kind >= KIND_FOLLOWS)
		*p++ = (unsigned char)ev->kind;
	p = put_unsigned(p, (uint64_t)w->ts - (uint64_t)last->ts);
	last->ts = w->ts;
	if (ev->tid == last->tid && ev->cpu == last->cpu && ev->comm == last->comm && ev->pid == last->pid) {
		*head |= SAME_THREAD;
	} else {
		p = put_unsigned(p, ev->cpu);
		p = put_signed(p, (uint64_t)ev->tid);
		p = put_signed(p, (uint64_t)ev->pid);
		p = put_unsigned(p, ev->comm);
		last->tid = ev->tid, last->pid = ev->pid, last->cpu = ev->cpu, last->comm = ev->comm;
	}
	unsigned present = 0;
	const unsigned args = event_args[ev->kind];
	for (unsigned i = 0; i < args; i++)
		present |= (unsigned)(ev->arg[i] != EVENT_ABSENT) << i;
	if (present == (1U << args) - 1)
		*head |= ALL_ARGS;
	else
		*p++ = (unsigned char)present;
	int64_t *before = last->arg[ev->kind];
	for (unsigned i = 0; i < args; i++) {
		if (!(present >> i & 1))
			continue;
		p = put_signed(p, (uint64_t)ev->arg[i] - (uint64_t)before[i]);
		before[i] = ev->arg[i];
	}
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
		.last_block = stream->len * (i + 1) / n, .ts = INT64_MIN, .wanted = ALL_KINDS };
	for (size_t k = 0; k < r->block; k++)
		if (stream->block[k].last > r->ts)
			r->ts = stream->block[k].last;
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
			r->buf = mem_new(1, r->store->block_size);
		if (scratch_read(r->store->fd, r->buf, b->len, b->offset, err))
			return -1;
		data = r->buf;
	}
	r->block++;
	r->at = data;
	r->end = data + b->len;
	r->last = (struct codec){ 0 };
	return 0;
}

static const unsigned char *get_thread(const unsigned char *p, const unsigned char *end, bool far, struct codec *last)
{
	uint64_t cpu = 0, tid = 0, pid = 0, comm = 0;
	p = get_unsigned(p, end, far, &cpu);
	p = p ? get_signed(p, end, far, &tid) : p;
	p = p ? get_signed(p, end, far, &pid) : p;
	p = p ? get_unsigned(p, end, far, &comm) : p;
	last->cpu = (uint16_t)cpu;
	last->tid = (int32_t)tid;
	last->pid = (int32_t)pid;
	last->comm = (uint32_t)comm;
	return p;
}

/* Those that are present; the others are absent already. */
static INLINE const unsigned char *get_args(const unsigned char *p, const unsigned char *end, bool far, unsigned present,
                                            int64_t *before, struct event *ev)
{
	for (; present; present &= present - 1) {
		const unsigned i = (unsigned)__builtin_ctz(present);
		uint64_t diff = 0;
		p = get_signed(p, end, far, &diff);
		if (!p)
			return NULL;
		ev->arg[i] = before[i] = (int64_t)((uint64_t)before[i] + diff);
	}
	return p;
}

/* Behind as many numbers as there are bits, which nobody wants, eight bytes at a time. */
static const unsigned char *skip(const unsigned char *p, const unsigned char *end, unsigned present)
{
	while (present && end - p >= 8) {
		uint64_t w;
		memcpy(&w, p, sizeof w);
		uint64_t stop = ~le64toh(w) & 0x8080808080808080U, last = 0;
		for (; present && stop; present &= present - 1) {
			last = stop;
			stop &= stop - 1;
		}
		p += present ? 8 : __builtin_ctzll(last) / 8 + 1;
	}
	for (; present && p < end; p++)
		if (*p < 0x80)
			present &= present - 1;
	return present ? NULL : p;
}

/* One record from p; NULL when it is not one (a temporary file that somebody changed).  Arguments follow from those of the
 * same kind alone, so those that nobody wants need not be known. */
static INLINE const unsigned char *get_record(struct reader *r, const unsigned char *p, const unsigned char *end, bool far,
                                              struct event *ev, bool *wanted)
{
	struct codec *last = &r->last;
	const unsigned head = *p++;
	unsigned kind = head & KIND_BITS;
	uint64_t dt = 0;
	if (kind == KIND_FOLLOWS)
		kind = p < end ? *p++ : MOST_EVENT_KINDS;
	p = get_unsigned(p, end, far, &dt);
	if (!p || kind >= EVENT_KIND_COUNT)
		return NULL;
	last->ts = (int64_t)((uint64_t)last->ts + dt);
	if (!(head & SAME_THREAD) && !(p = get_thread(p, end, far, last)))
		return NULL;
	const unsigned all = (1U << event_args[kind]) - 1;
	if (!(head & ALL_ARGS) && p == end)
		return NULL;
	const unsigned present = head & ALL_ARGS ? all : *p++ & all;
	/* A stream decoded in several parts may step back where two parts meet. */
	r->ts = last->ts < r->ts ? r->ts : last->ts;
	*wanted = (r->wanted & KIND(kind)) != 0;
	if (!*wanted)
		return skip(p, end, present);
	ev->ts = r->ts;
	ev->kind = (uint16_t)kind;
	ev->cpu = last->cpu;
	ev->tid = last->tid;
	ev->pid = last->pid;
	ev->comm = last->comm;
	if (r->bare)
		return skip(p, end, present);
	for (unsigned i = 0; i < EVENT_ARGS; i++)
		ev->arg[i] = EVENT_ABSENT;
	return get_args(p, end, far, present, last->arg[kind], ev);
}

int reader_next(struct reader *r, struct event *ev, struct error *err)
{
	bool wanted = false;
	while (!wanted) {
		while (r->at == r->end) {
			if (r->block == r->last_block)
				return 0;
			if (next_block(r, err))
				return -1;
		}
		if ((size_t)(r->end - r->at) >= RECORD_FAR)
			r->at = get_record(r, r->at, r->end, true, ev, &wanted);
		else
			r->at = get_record(r, r->at, r->end, false, ev, &wanted);
		if (!r->at)
			return error_set(err, STATUS_SYSTEM, NULL, "the temporary file of the events is damaged");
	}
	return 1;
}
