#include "trace/perf/perf_records.h"

#include <endian.h>
#include <errno.h>
#include <unistd.h>

#include "base/base.h"

#define BUFFER_BYTES (1 << 20)
#define KERNEL_TYPES 32   /* the kernel's records have lower numbers; those of perf begin at 64 */
#define USER_TYPES 256

/* ---- positions */

struct perf_position perf_position_of(const struct perf_record *r, bool big_endian)
{
	return (struct perf_position){ r->body, r->body + r->size, big_endian, false };
}

const unsigned char *perf_get_bytes(struct perf_position *p, uint64_t n)
{
	const unsigned char *at = p->at;
	if (p->is_bad || n > (uint64_t)(p->end - p->at)) {
		p->is_bad = true;
		return NULL;
	}
	p->at += n;
	return at;
}

uint32_t perf_get32(struct perf_position *p)
{
	uint32_t v = 0;
	const unsigned char *at = perf_get_bytes(p, sizeof v);
	if (at)
		memcpy(&v, at, sizeof v);
	return p->big_endian ? be32toh(v) : le32toh(v);
}

uint64_t perf_get64(struct perf_position *p)
{
	uint64_t v = 0;
	const unsigned char *at = perf_get_bytes(p, sizeof v);
	if (at)
		memcpy(&v, at, sizeof v);
	return p->big_endian ? be64toh(v) : le64toh(v);
}

/* ---- records */

void perf_records_open(struct perf_records *r, const struct perf_file *f, int fd, uint64_t from, uint64_t to)
{
	*r = (struct perf_records){ .fd = fd, .big_endian = f->big_endian, .at = from, .end = to, .buf_at = from };
	r->buf = mem_new(BUFFER_BYTES, 1);
}

void perf_records_close(struct perf_records *r)
{
	perf_unpacker_free(r->unpacker);
	free(r->buf);
	*r = (struct perf_records){ .fd = -1 };
}

/* Returns n bytes at the offset; NULL with *end set at the records' end, NULL with errno set if the file cannot be
 * read. */
static const unsigned char *get_bytes(struct perf_records *r, uint64_t at, size_t n, bool *end)
{
	*end = false;
	if (at >= r->buf_at && at - r->buf_at <= r->buf_len && n <= r->buf_len - (at - r->buf_at))
		return r->buf + (at - r->buf_at);
	r->buf_at = at;
	r->buf_len = 0;
	const uint64_t rest = at < r->end ? r->end - at : 0;
	const size_t want = rest < BUFFER_BYTES ? (size_t)rest : BUFFER_BYTES;
	while (r->buf_len < want) {
		const ssize_t got = pread(r->fd, r->buf + r->buf_len, want - r->buf_len, (off_t)(at + r->buf_len));
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return NULL;
		if (got == 0)
			break;
		r->buf_len += (size_t)got;
	}
	*end = n > r->buf_len;
	return *end ? NULL : r->buf;
}

static void parse_head(const unsigned char *at, bool big_endian, struct perf_record *out, size_t *size)
{
	uint16_t misc, n;
	memcpy(&out->type, at, 4);
	memcpy(&misc, at + 4, 2);
	memcpy(&n, at + 6, 2);
	out->type = big_endian ? be32toh(out->type) : le32toh(out->type);
	out->misc = big_endian ? be16toh(misc) : le16toh(misc);
	*size = big_endian ? be16toh(n) : le16toh(n);
	out->body = at + PERF_RECORD_HEAD;
	out->size = *size >= PERF_RECORD_HEAD ? *size - PERF_RECORD_HEAD : 0;
}

static bool is_plausible(const struct perf_record *rec, size_t size)
{
	return size >= PERF_RECORD_HEAD && rec->type && rec->type < USER_TYPES && (rec->type < KERNEL_TYPES || rec->type >= 64);
}

/* Counts the bytes that follow a record and do not belong to it. */
static uint64_t bytes_behind(const struct perf_records *r, const struct perf_record *rec)
{
	struct perf_position p = perf_position_of(rec, r->big_endian);
	if (rec->type == RECORD_TRACING_DATA)
		return ((uint64_t)perf_get32(&p) + 7) & ~UINT64_C(7);
	return rec->type == RECORD_AUXTRACE ? perf_get64(&p) : 0;
}

/* Moves to the end of the next round. Returns 1; 0: there is none; -1 with errno set. */
static int find_round(struct perf_records *r)
{
	static const unsigned char little[] = { 68, 0, 0, 0, 0, 0, 8, 0 }, big[] = { 0, 0, 0, 68, 0, 0, 0, 8 };
	bool end;
	for (r->at = (r->at + 8) & ~UINT64_C(7);; r->at += 8) {
		const unsigned char *at = get_bytes(r, r->at, PERF_RECORD_HEAD, &end);
		if (!at) {
			r->at = end ? r->end : r->at;
			return end ? 0 : -1;
		}
		if (memcmp(at, r->big_endian ? big : little, PERF_RECORD_HEAD) == 0)
			return 1;
	}
}

/* Gets the next record of the file itself. */
static int next_in_file(struct perf_records *r, struct perf_record *out)
{
	bool end;
	size_t size = 0;
	for (;;) {
		if (r->at >= r->end)
			return 0;
		const unsigned char *at = get_bytes(r, r->at, PERF_RECORD_HEAD, &end);
		if (!at && !end)
			return -1;
		if (at) {
			parse_head(at, r->big_endian, out, &size);
			if (is_plausible(out, size) && (at = get_bytes(r, r->at, size, &end)))
				break;
			if (is_plausible(out, size) && !end)
				return -1;
		}
		r->damage = end ? "the file ends inside a record" : "impossible size or type of a record";
		const int found = find_round(r);
		if (found <= 0)
			return found;
	}
	parse_head(get_bytes(r, r->at, size, &end), r->big_endian, out, &size);
	out->at = r->at;
	const uint64_t behind = bytes_behind(r, out);
	r->at += size;
	if (behind > r->end - r->at) {
		r->damage = "the file ends inside a record";
		r->at = r->end;
		return 1;
	}
	r->at += behind;
	return 1;
}

/* ---- compressed records */

/* Adds a compressed record. Returns false, with r->damage set, if it cannot be decompressed. */
static bool unpack(struct perf_records *r, const struct perf_record *rec)
{
	struct perf_position p = perf_position_of(rec, r->big_endian);
	if (!r->unpacker)
		r->unpacker = perf_unpacker_new();
	if (!r->unpacker) {
		r->damage = "its records are compressed";
		return false;
	}
	const uint64_t n = rec->type == RECORD_COMPRESSED2 ? perf_get64(&p) : rec->size;
	const unsigned char *packed = perf_get_bytes(&p, n);
	if (packed && perf_unpacker_add(r->unpacker, packed, (size_t)n))
		return true;
	r->damage = "compressed records are damaged";
	return false;
}

int perf_records_next(struct perf_records *r, struct perf_record *out)
{
	for (;;) {
		size_t size;
		bool is_bad = false;
		const unsigned char *at = r->unpacker ? perf_unpacker_next(r->unpacker, r->big_endian, &size, &is_bad) : NULL;
		if (at) {
			parse_head(at, r->big_endian, out, &size);
			out->at = r->at;
			return 1;
		}
		if (is_bad)
			r->damage = "impossible size or type of a compressed record";
		const int got = is_bad ? 0 : next_in_file(r, out);
		if (got <= 0 || (out->type != RECORD_COMPRESSED && out->type != RECORD_COMPRESSED2))
			return got;
		if (r->is_packed_end) {
			r->lacks_library = !perf_unpacker_is_available();
			return 0;
		}
		if (!unpack(r, out))
			return 0;  /* each compressed record needs those before it */
	}
}
