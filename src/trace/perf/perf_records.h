/* The records of a perf file in sequence. Private to perf/.
 *
 * The file is read with pread() through a buffer; no record is longer than 64 KiB. After a damaged record, reading
 * continues at a round's next end, which is marked. */
#pragma once

#include "trace/perf/perf.h"

enum perf_record_type {
	RECORD_LOST = 2, RECORD_COMM = 3, RECORD_EXIT = 4, RECORD_FORK = 7, RECORD_SAMPLE = 9,
	RECORD_LOST_SAMPLES = 13,
	RECORD_ATTR = 64, RECORD_TRACING_DATA = 66, RECORD_FINISHED_ROUND = 68, RECORD_ID_INDEX = 69,
	RECORD_AUXTRACE = 71, RECORD_THREAD_MAP = 73,
	RECORD_TIME_CONV = 79, RECORD_FEATURE = 80, RECORD_COMPRESSED = 81, RECORD_FINISHED_INIT = 82, RECORD_COMPRESSED2 = 83,
};
enum { PERF_RECORD_HEAD = 8, PERF_RECORD_MAX = 1 << 16 };  /* a header's size, and a record's maximum size, bytes */

struct perf_record {
	uint32_t type;
	uint16_t misc;
	const unsigned char *body;  /* after the header; valid until the next call */
	size_t size;                /* of the body */
	uint64_t at;                /* offset of the header in the file */
};

struct perf_records {
	int fd;
	bool big_endian;
	uint64_t at, end;        /* offset of the next record; the records' end */
	unsigned char *buf;
	uint64_t buf_at;         /* offset of the buffer's first byte */
	size_t buf_len;
	const char *damage;      /* reason of the last damage, set by perf_records_next(); the caller resets it */
	struct perf_unpacker *unpacker;  /* of compressed records; NULL: none yet */
	bool is_packed_end;      /* set by the caller: the first compressed record is the end */
	bool lacks_library;      /* that end was found, and this build has no libzstd */
};

void perf_records_open(struct perf_records *r, const struct perf_file *f, int fd, uint64_t from, uint64_t to);
/* Gets the next record. Returns 1; 0 at the end; -1 with errno set if the file cannot be read. In the first two cases,
 * r->damage is set if bytes before the record, or before the end, were skipped. */
int perf_records_next(struct perf_records *r, struct perf_record *out);
void perf_records_close(struct perf_records *r);  /* does not close r->fd */

/* Position in a record's body. After a read beyond the end, is_bad is set and the result is zero. */
struct perf_position {
	const unsigned char *at, *end;
	bool big_endian, is_bad;
};
struct perf_position perf_position_of(const struct perf_record *r, bool big_endian);
uint32_t perf_get32(struct perf_position *p);
uint64_t perf_get64(struct perf_position *p);
const unsigned char *perf_get_bytes(struct perf_position *p, uint64_t n);  /* returns NULL beyond the end */

/* Decompresses the records of perf record -z, which form one zstd stream. */
bool perf_unpacker_is_available(void);
struct perf_unpacker *perf_unpacker_new(void);  /* returns NULL in a build without libzstd */
/* Decompresses a record's body. Returns false if it is damaged. */
bool perf_unpacker_add(struct perf_unpacker *u, const unsigned char *packed, size_t n);
/* Gets the next record, header included, of *size bytes. Returns NULL if it is not complete yet; *is_bad: its size is
 * impossible. */
const unsigned char *perf_unpacker_next(struct perf_unpacker *u, bool big_endian, size_t *size, bool *is_bad);
void perf_unpacker_free(struct perf_unpacker *u);
