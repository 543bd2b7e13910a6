/* Decompresses packets. */

#ifdef HAVE_ZLIB
#include <zlib.h>
#endif
#ifdef HAVE_ZSTD
#include <zstd.h>
#endif

#include "base/base.h"
#include "base/mem.h"
#include "trace/perfetto/perfetto_file.h"

#define UNPACKED_FIRST (256U << 10)  /* size of the first buffer, bytes */

struct unpacked {
	unsigned char *data;
	size_t size, cap, max;  /* max: more than these bytes are not unpacked */
	bool is_whole;          /* the data ended where it should */
};

/* Makes room for at least one byte. Returns false if there are more than u->max. */
static bool grow(struct unpacked *u)
{
	if (u->size > u->max)
		return false;
	if (u->size == u->cap) {
		u->cap = u->cap ? 2 * u->cap : UNPACKED_FIRST;
		u->cap = u->cap > u->max ? u->max + 1 : u->cap;
		u->data = mem_resize(u->data, u->cap, 1);
	}
	return true;
}

#ifdef HAVE_ZLIB
static void unpack_zlib(const unsigned char *data, size_t len, struct unpacked *u)
{
	z_stream z = { .next_in = (unsigned char *)(uintptr_t)data, .avail_in = (uInt)len };
	int status = inflateInit(&z);
	while (status == Z_OK && grow(u)) {
		z.next_out = u->data + u->size;
		z.avail_out = (uInt)(u->cap - u->size);
		status = inflate(&z, Z_NO_FLUSH);
		u->size = u->cap - z.avail_out;
	}
	inflateEnd(&z);
	u->is_whole = status == Z_STREAM_END;
}
#endif

#ifdef HAVE_ZSTD
static void unpack_zstd(const unsigned char *data, size_t len, struct unpacked *u)
{
	size_t status = 1;
	ZSTD_inBuffer in = { data, len, 0 };
	ZSTD_DStream *z = ZSTD_createDStream();
	while (z && status && !ZSTD_isError(status) && grow(u)) {
		ZSTD_outBuffer to = { u->data, u->cap, u->size };
		const size_t before = in.pos;
		status = ZSTD_decompressStream(z, &to, &in);
		if (to.pos == u->size && in.pos == before)
			break;  /* the data ends early */
		u->size = to.pos;
	}
	ZSTD_freeDStream(z);
	u->is_whole = z && status == 0;
}
#endif

unsigned char *perfetto_unpack(enum packet_field codec, const unsigned char *data, size_t len, uint64_t *left, size_t *size,
                               const char **why)
{
	struct unpacked u = { .max = *left < PERFETTO_PACKET_MAX ? (size_t)*left : PERFETTO_PACKET_MAX };
	*why = "a compressed packet is damaged";
	*size = 0;
#ifdef HAVE_ZLIB
	if (codec == PACKET_DEFLATED) {
		unpack_zlib(data, len, &u);
		codec = 0;
	}
#endif
#ifdef HAVE_ZSTD
	if (codec == PACKET_ZSTD) {
		unpack_zstd(data, len, &u);
		codec = 0;
	}
#endif
	(void)data, (void)len;
	if (codec == PACKET_DEFLATED)
		*why = "packets are compressed, but this stealscope was built without zlib";
	if (codec == PACKET_ZSTD)
		*why = "packets are compressed, but this stealscope was built without libzstd";
	if (u.size > u.max)
		*why = u.max < PERFETTO_PACKET_MAX ? "packets expand to more than 64 times the file's size"
		                                   : "a compressed packet is too long";
	*left -= u.size < *left ? u.size : *left;  /* of damaged packets, too: they cost as much */
	*size = u.is_whole && u.size <= u.max ? u.size : 0;
	if (*size)
		return u.data;
	free(u.data);
	return NULL;
}
