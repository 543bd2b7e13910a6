/* CRC32C (Castagnoli; RFC 3720 appendix B.4), by the processor's instruction if it has one. */
#pragma once

#include "base/base.h"

struct crc32c {
	bool hardware;
	uint32_t table[8][256];  /* filled only without hardware support */
};

void crc32c_init(struct crc32c *c);
void crc32c_init_software(struct crc32c *c);  /* for tests: uses the tables on any processor */
uint32_t crc32c(const struct crc32c *c, const void *data, size_t size);
