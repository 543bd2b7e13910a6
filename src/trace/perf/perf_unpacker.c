/* Decompression of the records of perf record -z. */
#include <endian.h>

#ifdef HAVE_ZSTD
#include <zstd.h>
#endif

#include "base/base.h"
#include "base/mem.h"
#include "trace/perf/perf_records.h"

#ifdef HAVE_ZSTD

#define PLAIN_MAX ((size_t)64 << 20)  /* maximum size of the records of one compressed record, bytes */

struct perf_unpacker {
	ZSTD_DStream *stream;
	unsigned char *plain;    /* decompressed bytes; those before `from` were returned */
	size_t from, len, cap;
};

bool perf_unpacker_is_available(void)
{
	return true;
}

struct perf_unpacker *perf_unpacker_new(void)
{
	struct perf_unpacker *u = mem_new(1, sizeof *u);
	u->stream = mem_checked(ZSTD_createDStream());
	ZSTD_initDStream(u->stream);
	return u;
}

void perf_unpacker_free(struct perf_unpacker *u)
{
	if (!u)
		return;
	ZSTD_freeDStream(u->stream);
	free(u->plain);
	free(u);
}

bool perf_unpacker_add(struct perf_unpacker *u, const unsigned char *packed, size_t n)
{
	ZSTD_inBuffer in = { packed, n, 0 };
	if (u->from)
		memmove(u->plain, u->plain + u->from, u->len - u->from);
	u->len -= u->from;
	u->from = 0;
	for (;;) {
		if (u->cap - u->len < PERF_RECORD_MAX) {
			u->cap = u->len + 4 * PERF_RECORD_MAX;
			u->plain = mem_resize(u->plain, u->cap, 1);
		}
		ZSTD_outBuffer out = { u->plain, u->cap, u->len };
		const size_t status = ZSTD_decompressStream(u->stream, &out, &in);
		const bool is_full = out.pos == out.size;
		if (ZSTD_isError(status) || out.pos > PLAIN_MAX)
			return false;
		u->len = out.pos;
		if (in.pos == in.size && !is_full)
			return true;
	}
}

const unsigned char *perf_unpacker_next(struct perf_unpacker *u, bool big_endian, size_t *size, bool *is_bad)
{
	uint16_t n;
	const unsigned char *at = u->plain + u->from;
	*is_bad = false;
	if (u->len - u->from < PERF_RECORD_HEAD)
		return NULL;
	memcpy(&n, at + 6, sizeof n);
	*size = big_endian ? be16toh(n) : le16toh(n);
	*is_bad = *size < PERF_RECORD_HEAD;
	if (*is_bad || u->len - u->from < *size)
		return NULL;
	u->from += *size;
	return at;
}

#else

bool perf_unpacker_is_available(void)
{
	return false;
}

struct perf_unpacker *perf_unpacker_new(void)
{
	return NULL;
}

void perf_unpacker_free(struct perf_unpacker *u)
{
	(void)u;
}

bool perf_unpacker_add(struct perf_unpacker *u, const unsigned char *packed, size_t n)
{
	(void)u, (void)packed, (void)n;
	return false;
}

const unsigned char *perf_unpacker_next(struct perf_unpacker *u, bool big_endian, size_t *size, bool *is_bad)
{
	(void)u, (void)big_endian, (void)size;
	*is_bad = false;
	return NULL;
}

#endif
