/* Decompresses packets. */
#include <stdlib.h>
#include <string.h>

#ifdef HAVE_ZLIB
#include <zlib.h>
#endif
#ifdef HAVE_ZSTD
#include <zstd.h>
#endif

#include "base/mem.h"
#include "trace/perfetto/perfetto_file.h"

#define UNPACKED_FIRST (256U << 10)  /* size of the first buffer, bytes */

#ifdef HAVE_ZLIB
/* Returns the number of bytes, or 0 if the data is damaged or too long. *out grows as needed. */
static size_t unpack_zlib(const unsigned char *data, size_t len, unsigned char **out)
{
	z_stream z = { .next_in = (unsigned char *)(uintptr_t)data, .avail_in = (uInt)len };
	size_t size = 0, cap = 0;
	int status = inflateInit(&z);
	while (status == Z_OK && size < PERFETTO_PACKET_MAX) {
		if (size == cap) {
			cap = cap ? 2 * cap : UNPACKED_FIRST;
			*out = mem_resize(*out, cap, 1);
		}
		z.next_out = *out + size;
		z.avail_out = (uInt)(cap - size);
		status = inflate(&z, Z_NO_FLUSH);
		size = cap - z.avail_out;
	}
	inflateEnd(&z);
	return status == Z_STREAM_END ? size : 0;
}
#endif

#ifdef HAVE_ZSTD
static size_t unpack_zstd(const unsigned char *data, size_t len, unsigned char **out)
{
	size_t size = 0, cap = 0, status = 1;
	ZSTD_inBuffer in = { data, len, 0 };
	ZSTD_DStream *z = ZSTD_createDStream();
	while (z && status && !ZSTD_isError(status) && size < PERFETTO_PACKET_MAX) {
		if (size == cap) {
			cap = cap ? 2 * cap : UNPACKED_FIRST;
			*out = mem_resize(*out, cap, 1);
		}
		ZSTD_outBuffer to = { *out, cap, size };
		const size_t before = in.pos;
		status = ZSTD_decompressStream(z, &to, &in);
		if (to.pos == size && in.pos == before)
			break;  /* the data ends early */
		size = to.pos;
	}
	ZSTD_freeDStream(z);
	return z && status == 0 ? size : 0;
}
#endif

unsigned char *perfetto_unpack(enum packet_field codec, const unsigned char *data, size_t len, size_t *size,
                               const char **why)
{
	unsigned char *out = NULL;
	*size = 0;
	*why = "a compressed packet is damaged";
#ifdef HAVE_ZLIB
	if (codec == PACKET_DEFLATED) {
		*size = unpack_zlib(data, len, &out);
		codec = 0;
	}
#endif
#ifdef HAVE_ZSTD
	if (codec == PACKET_ZSTD) {
		*size = unpack_zstd(data, len, &out);
		codec = 0;
	}
#endif
	(void)data, (void)len;
	if (codec == PACKET_DEFLATED)
		*why = "packets are compressed, but this stealscope was built without zlib";
	if (codec == PACKET_ZSTD)
		*why = "packets are compressed, but this stealscope was built without libzstd";
	if (*size)
		return out;
	free(out);
	return NULL;
}
