#include "trace/store.h"

#include <unistd.h>

#include "base/scratch_file.h"
#include "trace/record_codec.h"

static ALWAYS_INLINE unsigned length_of(uint64_t x)
{
	return x ? (71 - (unsigned)__builtin_clzll(x)) / 8 : 0;
}

/* Appends a number at p, and stores its length as entry i of *lengths. Returns the address after the number. */
static ALWAYS_INLINE unsigned char *put_number(unsigned char *p, uint64_t x, unsigned i, uint64_t *lengths)
{
	const unsigned n = length_of(x);
	put_le64(p, x);
	*lengths |= (uint64_t)n << i * LENGTH_BITS;
	return p + n;
}

static ALWAYS_INLINE unsigned char *put_lengths(unsigned char *p, unsigned n, uint64_t lengths)
{
	for (unsigned i = 0; i < lengths_size(n); i++)
		p[i] = (unsigned char)(lengths >> 8 * i);
	return p + lengths_size(n);
}

void codec_reset(struct codec *c)
{
	*c = (struct codec){ 0 };
	for (unsigned k = 0; k < EVENT_KIND_COUNT; k++) {
		c->event[k].kind = (uint16_t)k;
		for (unsigned i = 0; i < EVENT_ARGS; i++)
			c->event[k].arg[i] = EVENT_ABSENT;
	}
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
	*s = (struct stream){ .begin = INT64_MAX, .end = INT64_MIN, .cpus = NO_CPUS, .sent = NO_DESTINATIONS };
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
	destinations_release(&s->sent);
	free(s->setback);
	stream_init(s);
}

void stream_add_setback(struct stream *s, int64_t from, int64_t to)
{
	struct trace_interval *last = s->setbacks > 0 ? &s->setback[s->setbacks - 1] : NULL;
	if (to - from < SETBACK_MIN_NS)
		return;
	if (last && from <= last->end) {
		last->begin = from < last->begin ? from : last->begin;
		last->end = to > last->end ? to : last->end;
	} else if (s->setbacks <= SETBACKS_MAX) {
		*ARRAY_PUSH(s->setback, s->setbacks, s->setback_cap) = (struct trace_interval){ from, to };
	}
}

/* Not inlined: inlined into cpu_set_put(), it would slow down every event. */
static __attribute__((noinline)) void cpu_set_grow(struct cpu_set *s, size_t words)
{
	s->bit = mem_resize(s->bit, words, sizeof *s->bit);
	memset(s->bit + s->words, 0, (words - s->words) * sizeof *s->bit);
	s->bit[s->min / 64] |= 1ULL << s->min % 64;
	s->words = words;
}

static void cpu_set_put(struct cpu_set *s, uint16_t cpu)
{
	if (s->min > s->max) {
		s->min = s->max = cpu;
		return;
	}
	if (!s->bit && cpu == s->min)
		return;
	if (cpu / 64U >= s->words)
		cpu_set_grow(s, (cpu > s->max ? cpu : s->max) / 64U + 1);
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
			cpu_set_put(s, (uint16_t)cpu);
}

void cpu_set_release(struct cpu_set *s)
{
	free(s->bit);
	*s = (struct cpu_set)NO_CPUS;
}

/* Records the CPU on whose run queue a wakeup or migration puts a thread. EV_WAKING is ignored: it contains the thread's
 * last CPU, which may be offline. */
static void add_destination(struct destinations *s, const struct event *ev)
{
	const int64_t to = ev->kind == EV_WAKEUP ? ev->wake.target_cpu : ev->kind == EV_MIGRATE ? ev->migrate.dest_cpu : -1;
	if (to >= 0 && to <= UINT16_MAX)
		cpu_set_put(cpu_set_has(&s->once, (int)to) ? &s->repeated : &s->once, (uint16_t)to);
}

void destinations_add(struct destinations *s, const struct destinations *of)
{
	for (int cpu = of->once.min; cpu <= of->once.max; cpu++)
		if (cpu_set_has(&of->once, cpu))
			cpu_set_put(cpu_set_has(&s->once, cpu) ? &s->repeated : &s->once, (uint16_t)cpu);
	cpu_set_add(&s->repeated, &of->repeated);
}

void destinations_release(struct destinations *s)
{
	cpu_set_release(&s->once);
	cpu_set_release(&s->repeated);
}

void writer_open(struct writer *w, struct store *store, struct stream *stream)
{
	*w = (struct writer){ .store = store, .stream = stream, .ts = INT64_MIN };
	codec_reset(&w->last);
	w->buf = mem_new(1, store->block_size);
}

static int flush_block(struct writer *w, struct error *err)
{
	if (!w->used)
		return 0;
	struct block b = { NULL, 0, w->ts, (uint32_t)w->used };
	size_t before = atomic_fetch_add(&w->store->resident, w->used);
	if (before + w->used <= w->store->limit)
		b.data = malloc(w->used + BLOCK_PADDING);
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
	codec_reset(&w->last);
	return 0;
}

/* same_cpu: an event of this CPU was counted before. */
static void stream_count_event(struct writer *w, const struct event *ev, bool same_cpu)
{
	struct stream *s = w->stream;
	s->kinds |= KIND(ev->kind);
	if (!same_cpu)
		cpu_set_put(&s->cpus, ev->cpu);
	add_destination(&s->sent, ev);
	if (ev->kind == EV_LOST)
		return;
	s->events++;
	if (s->begin > s->end)
		s->begin = w->ts;
	s->end = w->ts;
}

static unsigned char *put_thread(unsigned char *p, const struct event *ev)
{
	uint64_t lengths = 0;
	unsigned char *to = p + lengths_size(4);
	to = put_number(to, ev->cpu, 0, &lengths);
	to = put_number(to, zigzag_encode((uint64_t)ev->tid), 1, &lengths);
	to = put_number(to, zigzag_encode((uint64_t)ev->pid), 2, &lengths);
	to = put_number(to, ev->comm, 3, &lengths);
	(void)put_lengths(p, 4, lengths);
	return to;
}

/* Appends the time since the previous record and the changed arguments, and updates before[]. Returns the address after
 * them. */
static unsigned char *put_numbers(unsigned char *p, const struct event *ev, uint64_t dt, int64_t *before)
{
	const unsigned args = event_args[ev->kind];
	uint64_t lengths = 0;
	unsigned char *to = put_number(p + lengths_size(1 + args), dt, 0, &lengths);
	for (unsigned i = 0; i < args; i++) {
		const int64_t value = ev->arg[i];
		const uint64_t diff = zigzag_encode((uint64_t)value - difference_base(before[i]));
		if (value == before[i])
			continue;
		if (value == EVENT_ABSENT)
			lengths |= (uint64_t)LENGTH_ABSENT << (1 + i) * LENGTH_BITS;
		else if (diff)
			to = put_number(to, diff, 1 + i, &lengths);
		else  /* a zero after EVENT_ABSENT is stored with length 1, because length 0 means unchanged */
			*to++ = 0, lengths |= UINT64_C(1) << (1 + i) * LENGTH_BITS;
		before[i] = value;
	}
	(void)put_lengths(p, 1 + args, lengths);
	return to;
}

int writer_put(struct writer *w, const struct event *ev, struct error *err)
{
	if (w->used + RECORD_MAX > w->store->block_size && flush_block(w, err))
		return -1;
	struct codec *last = &w->last;
	if (ev->ts >= w->ts) {
		w->ts = ev->ts;
	} else if (ev->kind != EV_LOST) {
		w->clamped++;
		stream_add_setback(w->stream, ev->ts, w->ts);
	}
	unsigned char *const size = w->buf + w->used, *const head = size + 1, *p = head + 1;
	*head = (unsigned char)ev->kind;
	const uint64_t context[] = { kind_word(0, ev->cpu, ev->tid), pid_word(ev->pid, ev->comm) };
	const bool same_thread = context[0] == last->context[0] && context[1] == last->context[1];
	stream_count_event(w, ev, same_thread && w->used > 0);
	if (same_thread)
		*head |= SAME_THREAD;
	else
		p = put_thread(p, ev);
	memcpy(last->context, context, sizeof context);
	p = put_numbers(p, ev, (uint64_t)w->ts - (uint64_t)last->ts, last->event[ev->kind].arg);
	last->ts = w->ts;
	*size = (unsigned char)(p - head);
	w->used = (size_t)(p - w->buf);
	return 0;
}

int writer_close(struct writer *w, struct error *err)
{
	int status = flush_block(w, err);
	free(w->buf);
	w->buf = NULL;
	return status;
}
