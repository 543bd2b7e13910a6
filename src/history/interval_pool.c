#include "history/interval_pool.h"

#include <sys/mman.h>

#include "history/format.h"
#include "history/history.h"

#define SLABS_MIN 64

static size_t slabs_in(size_t bytes)
{
	size_t n = bytes / sizeof(struct slab);
	return n < SLABS_MIN ? SLABS_MIN : n > UINT32_MAX / 2 ? UINT32_MAX / 2 : n;
}

int pool_init(struct pool *p, size_t bytes)
{
	size_t n = slabs_in(bytes);
	void *m = mmap(NULL, n * sizeof(struct slab), PROT_READ | PROT_WRITE,
	               MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (m == MAP_FAILED)
		return -1;
	/* The last slab stays unused: records are read and written eight bytes at a time. */
	*p = (struct pool){ .slab = m, .reserved = n, .limit = n - 1, .slabs_touched = 1 };
	return 0;
}

void pool_release(struct pool *p)
{
	if (p->slab)
		munmap(p->slab, p->reserved * sizeof(struct slab));
	*p = (struct pool){ 0 };
}

void pool_reset(struct pool *p, size_t bytes)
{
	madvise(p->slab, p->reserved * sizeof(struct slab), MADV_DONTNEED);
	size_t n = slabs_in(bytes);
	p->limit = (n < p->reserved ? n : p->reserved) - 1;
	p->slabs_touched = 1;
	p->free = 0;
	p->free_slabs = 0;
}

static uint32_t new_slab(struct pool *p)
{
	uint32_t s = p->free;
	if (s) {
		p->free = p->slab[s].next;
		p->free_slabs--;
	} else {
		s = (uint32_t)p->slabs_touched++;
	}
	p->slab[s].next = 0;
	return s;
}

static unsigned bytes_for(uint64_t x)
{
	return x ? (71 - (unsigned)__builtin_clzll(x)) / 8 : 0;
}

static uint8_t *grow_chain(struct pool *p, struct chain *c)
{
	uint32_t s = new_slab(p);
	if (!c->tail) {
		c->head = s;
	} else {
		if (c->used < SLAB_DATA)
			p->slab[c->tail].data[c->used] = 0;
		p->slab[c->tail].next = s;
	}
	c->tail = s;
	c->used = 0;
	return p->slab[s].data;
}

/* Writes a record too close to the end of its slab for eight-byte access. */
static __attribute__((noinline)) void put_bytes(uint8_t *at, uint8_t control, uint64_t duration, unsigned d,
                                                uint64_t zigzag, unsigned v)
{
	*at++ = control;
	for (; d > 0; d--, duration >>= 8)
		*at++ = (uint8_t)duration;
	for (; v > 0; v--, zigzag >>= 8)
		*at++ = (uint8_t)zigzag;
}

void pool_push(struct pool *p, struct chain *c, uint64_t duration, int64_t value)
{
	bool null = value == HISTORY_NULL;
	uint64_t zigzag = null ? 0 : (uint64_t)value << 1 ^ (uint64_t)(value >> 63);
	unsigned d = bytes_for(duration), v = bytes_for(zigzag), need = 1 + d + v;
	uint8_t control = (uint8_t)(d | (null ? 15 : v) << 4);
	uint8_t *data = c->tail && c->used + need <= SLAB_DATA ? p->slab[c->tail].data : grow_chain(p, c);
	uint8_t *at = data + c->used;
	c->used = (uint8_t)(c->used + need);
	if (need <= 8 && at <= data + SLAB_DATA - 8)
		put64(at, control | duration << 8 | (v ? zigzag << (8 + 8 * d) : 0));
	else
		put_bytes(at, control, duration, d, zigzag, v);
}

/* For each half of a control byte: number of bytes, and mask of their bits. */
static const uint8_t length[16] = { 0, 1, 2, 3, 4, 5, 6, 7, 8 };
static const uint64_t mask[16] = { 0, 0xff, 0xffff, 0xffffff, 0xffffffff, 0xffffffffff, 0xffffffffffff, 0xffffffffffffff,
	UINT64_MAX };

void pool_take(struct pool *p, struct chain *c, struct change *row, unsigned n, int64_t end)
{
	unsigned i = 0;
	for (uint32_t s = c->head; s && i < n;) {
		struct slab *slab = &p->slab[s];
		unsigned used = s == c->tail ? c->used : SLAB_DATA;
		for (unsigned at = 0; at < used && slab->data[at]; i++) {
			const uint8_t *r = slab->data + at;
			unsigned d = r[0] & 15, v = r[0] >> 4;
			row[i].start = (int64_t)(get64(r + 1) & mask[d]);  /* for now the duration */
			uint64_t zigzag = get64(r + 1 + length[d]) & mask[v];
			row[i].value = v == 15 ? HISTORY_NULL : (int64_t)(zigzag >> 1) ^ -(int64_t)(zigzag & 1);
			at += 1u + length[d] + length[v];
		}
		uint32_t next = slab->next;
		slab->next = p->free;
		p->free = s;
		p->free_slabs++;
		s = next;
	}
	*c = (struct chain){ 0 };
	row[n] = (struct change){ end, HISTORY_NULL };
	for (; n > 0; n--)
		row[n - 1].start = (int64_t)((uint64_t)row[n].start - (uint64_t)row[n - 1].start);
}
