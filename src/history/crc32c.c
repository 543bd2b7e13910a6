#include "history/crc32c.h"

#include "history/format.h"

#if defined(__x86_64__)
#include <nmmintrin.h>

__attribute__((target("sse4.2"))) static uint32_t by_hardware(const uint8_t *p, size_t size)
{
	uint64_t crc = 0xffffffffu;
	for (; size >= 8; p += 8, size -= 8)
		crc = _mm_crc32_u64(crc, get64(p));
	for (; size; p++, size--)
		crc = _mm_crc32_u8((uint32_t)crc, *p);
	return ~(uint32_t)crc;
}

static bool have_hardware(void)
{
	return __builtin_cpu_supports("sse4.2");
}
#else
static uint32_t by_hardware(const uint8_t *p, size_t size)
{
	(void)p, (void)size;
	return 0;
}

static bool have_hardware(void)
{
	return false;
}
#endif

void crc32c_init_software(struct crc32c *c)
{
	c->hardware = false;
	for (uint32_t i = 0; i < 256; i++) {
		uint32_t crc = i;
		for (int bit = 0; bit < 8; bit++)
			crc = crc >> 1 ^ (crc & 1 ? 0x82f63b78u : 0);
		c->table[0][i] = crc;
	}
	for (uint32_t i = 0; i < 256; i++)
		for (int k = 1; k < 8; k++)
			c->table[k][i] = c->table[k - 1][i] >> 8 ^ c->table[0][c->table[k - 1][i] & 255];
}

void crc32c_init(struct crc32c *c)
{
	if (have_hardware())
		c->hardware = true;
	else
		crc32c_init_software(c);
}

static uint32_t by_table(const uint32_t (*t)[256], const uint8_t *p, size_t size)
{
	uint32_t crc = 0xffffffffu;
	for (; size >= 8; p += 8, size -= 8) {
		uint64_t x = get64(p) ^ crc;
		crc = t[7][x & 255] ^ t[6][x >> 8 & 255] ^ t[5][x >> 16 & 255] ^ t[4][x >> 24 & 255] ^
		      t[3][x >> 32 & 255] ^ t[2][x >> 40 & 255] ^ t[1][x >> 48 & 255] ^ t[0][x >> 56];
	}
	for (; size; p++, size--)
		crc = crc >> 8 ^ t[0][(crc ^ *p) & 255];
	return ~crc;
}

uint32_t crc32c(const struct crc32c *c, const void *data, size_t size)
{
	return c->hardware ? by_hardware(data, size) : by_table(c->table, data, size);
}
