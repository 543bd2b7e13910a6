#include "history/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/atomic_file.h"

#define EAGER (UINT64_C(1) << 20)  /* bytes: tables up to this size are verified when the file is opened */
#define INDEX_AGAIN "index the traces again: stealscope index FOLDER -o FILE"

int file_damaged(const struct history *h, uint64_t offset, const char *why, struct error *err)
{
	struct history *own = (struct history *)(uintptr_t)h;  /* the damage found is a cache, like `verified` */
	struct error damage = ERROR_INIT;
	error_set(&damage, STATUS_INPUT, INDEX_AGAIN, "%s: damaged at offset %llu: %s", h->path,
	          (unsigned long long)offset, why);
	int none = 0;
	if (atomic_compare_exchange_strong(&own->damaged, &none, 1)) {
		own->damage = damage;
		atomic_store(&own->damaged, 2);
	}
	if (err)
		*err = damage;
	return -1;
}

static void set_verified(const struct history *h, uint64_t bit)
{
	atomic_fetch_or_explicit(&h->verified[bit / 64], UINT64_C(1) << bit % 64, memory_order_release);
}

/* The piece of SECTION_SUMS that holds the sum of a block. */
static int verify_sums(const struct history *h, uint64_t piece, struct error *err)
{
	if (file_verified(h, h->blocks + piece))
		return 0;
	uint64_t from = piece * h->block, size = h->section[SECTION_SUMS].size - from;
	uint64_t offset = h->section[SECTION_SUMS].offset + from;
	if (size > h->block)
		size = h->block;
	uint32_t want = get32(h->map + h->section[SECTION_SUMS2].offset + 4 * piece);
	if (crc32c(&h->crc, h->map + offset, size) != want)
		return file_damaged(h, offset, "the checksum of checksums differs", err);
	set_verified(h, h->blocks + piece);
	return 0;
}

int file_verify_block(const struct history *h, uint64_t block, struct error *err)
{
	if (verify_sums(h, 4 * block / h->block, err))
		return -1;
	uint64_t from = block * h->block, to = from + h->block;
	if (from < HEADER_BYTES)
		from = to < HEADER_BYTES ? to : HEADER_BYTES;
	if (to > h->section[SECTION_SUMS].offset)
		to = h->section[SECTION_SUMS].offset;
	uint32_t want = get32(h->map + h->section[SECTION_SUMS].offset + 4 * block);
	if (crc32c(&h->crc, h->map + from, to - from) != want)
		return file_damaged(h, from, "the checksum differs", err);
	set_verified(h, block);
	return 0;
}

int file_check_slowly(const struct history *h, enum section s, uint64_t offset, uint64_t size, struct error *err)
{
	uint64_t at = h->section[s].offset, len = h->section[s].size;
	if (offset < at || offset - at > len || size > len - (offset - at))
		return file_damaged(h, offset, "something lies outside its section", err);
	if (!size)
		return 0;
	for (uint64_t b = offset / h->block; b <= (offset + size - 1) / h->block; b++)
		if (!file_verified(h, b) && file_verify_block(h, b, err))
			return -1;
	return 0;
}

static int refuse(const struct history *h, const char *mend, const char *why, struct error *err)
{
	return error_set(err, STATUS_INPUT, mend, "%s: %s", h->path, why);
}

/* The sections follow each other, with at most seven bytes of padding between them, up to the end of the file. */
static int read_sections(struct history *h, struct error *err)
{
	uint64_t at = HEADER_BYTES;
	for (unsigned i = 0; i < SECTIONS; i++) {
		const uint8_t *p = h->map + HEADER_SECTION + 16 * i;
		uint64_t offset = get64(p), size = get64(p + 8);
		if (offset < at || offset - at > 7 || offset > h->size || size > h->size - offset)
			return file_damaged(h, HEADER_SECTION + 16 * i, "the sections do not fit the file", err);
		h->section[i].offset = offset;
		h->section[i].size = size;
		at = offset + size;
	}
	h->blocks = (h->section[SECTION_SUMS].offset + h->block - 1) / h->block;
	h->sum_blocks = (h->section[SECTION_SUMS].size + h->block - 1) / h->block;
	if (at != h->size || h->section[SECTION_SUMS].size != 4 * h->blocks ||
	    h->section[SECTION_SUMS2].size != 4 * h->sum_blocks || !h->attributes ||
	    h->section[SECTION_ATTRIBUTES].size != (uint64_t)h->attributes * ATTR_BYTES ||
	    h->section[SECTION_SETS].size != (uint64_t)h->sets * SET_BYTES || !h->section[SECTION_STRINGS].size)
		return file_damaged(h, HEADER_SECTION, "the sizes of the sections contradict each other", err);
	return 0;
}

static int read_header(struct history *h, struct error *err)
{
	const uint8_t *p = h->map;
	if (h->size < HEADER_BYTES || memcmp(p, FORMAT_MAGIC, 8) != 0) {
		if (h->size >= HEADER_BYTES && !memcmp(p + 1, &FORMAT_MAGIC[1], 4))
			return file_damaged(h, 0, "the file was changed on its way, perhaps by a transfer as text", err);
		if (h->size >= 8 && !memcmp(p, FORMAT_MAGIC, 8))
			return file_damaged(h, h->size, "the file ends early", err);
		return refuse(h, "give a history that stealscope index made, a folder with traces, or a session file, *.yaml",
		              "not a history of stealscope, or damaged at offset 0", err);
	}
	uint32_t version = get32(p + HEADER_VERSION);
	crc32c_init(&h->crc);
	bool sound = crc32c(&h->crc, p, HEADER_CRC) == get32(p + HEADER_CRC);
	if (sound && version != FORMAT_VERSION)
		return error_set(err, STATUS_INPUT, INDEX_AGAIN, "%s: format version %u, but this program reads %u",
		                 h->path, version, FORMAT_VERSION);
	if (!sound)
		return file_damaged(h, 0, "the checksum of the header differs", err);
	h->block = get32(p + HEADER_BLOCK);
	h->block_shift = h->block ? (unsigned)__builtin_ctz(h->block) : 0;
	h->begin = (int64_t)get64(p + HEADER_BEGIN);
	h->end = (int64_t)get64(p + HEADER_END);
	h->intervals = get64(p + HEADER_INTERVALS);
	h->chunks = get64(p + HEADER_CHUNKS);
	h->attributes = get32(p + HEADER_ATTRIBUTES);
	h->sets = get32(p + HEADER_SETS);
	h->metas = get32(p + HEADER_METAS);
	if (get64(p + HEADER_SIZE) != h->size)
		return file_damaged(h, h->size, get64(p + HEADER_SIZE) > h->size ? "the file ends early"
		                    : "the file is longer than it says", err);
	if (h->block < BLOCK_MIN || h->block > BLOCK_MAX || h->block & (h->block - 1) ||
	    h->begin > h->end || h->begin < -TIME_LIMIT || h->end > TIME_LIMIT)
		return file_damaged(h, HEADER_BLOCK, "the block size or the span is impossible", err);
	return read_sections(h, err);
}

static int map_file(struct history *h, struct error *err)
{
	struct stat st;
	int fd = open(h->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fstat(fd, &st)) {
		error_read(err, "check the path, or make it readable for you", "%s", h->path);
	} else if (!S_ISREG(st.st_mode)) {
		refuse(h, NULL, "not a regular file", err);
	} else if (st.st_size < 1) {
		refuse(h, INDEX_AGAIN, "damaged at offset 0: the file is empty", err);
	} else {
		void *m = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
		if (m == MAP_FAILED) {
			error_system(err, NULL, "cannot read %s", h->path);
		} else {
			h->map = m;
			h->size = (uint64_t)st.st_size;
		}
	}
	if (fd >= 0)
		close(fd);
	return h->map ? 0 : -1;
}

/* The second checksums, and small tables at once: then their damage is known before anything is shown. */
static int verify_tables(struct history *h, struct error *err)
{
	const uint8_t *sums2 = h->map + h->section[SECTION_SUMS2].offset;
	if (crc32c(&h->crc, sums2, h->section[SECTION_SUMS2].size) != get32(h->map + HEADER_SUMS2))
		return file_damaged(h, h->section[SECTION_SUMS2].offset, "the checksum of checksums differs", err);
	h->verified = mem_new((h->blocks + h->sum_blocks) / 64 + 1, sizeof *h->verified);
	uint64_t from = h->section[SECTION_ATTRIBUTES].offset, to = h->section[SECTION_SUMS].offset;
	if (to - from > EAGER)
		return 0;
	for (uint64_t b = from / h->block; b < h->blocks; b++)
		if (file_verify_block(h, b, err))
			return -1;
	return 0;
}

/* What the history is about, where that is less than its span. */
static int read_window(struct history *h, struct error *err)
{
	size_t size = 0;
	const uint8_t *window = history_meta(h, HISTORY_WINDOW, &size);
	h->window_begin = h->begin;
	h->window_end = h->end;
	if (!window)
		return 0;
	const uint64_t at = (uint64_t)(window - h->map);
	if (size != 16)
		return file_damaged(h, at, "the window has another size", err);
	h->window_begin = (int64_t)get64(window);
	h->window_end = (int64_t)get64(window + 8);
	if (h->window_begin < h->begin || h->window_begin > h->window_end || h->window_end > h->end)
		return file_damaged(h, at, "the window is not in the span", err);
	return 0;
}

struct history *history_open(const char *path, struct error *err)
{
	struct history *h = mem_new(1, sizeof *h);
	h->path = mem_dup(path);
	if (map_file(h, err) || read_header(h, err) || verify_tables(h, err) || read_window(h, err)) {
		history_close(h);
		return NULL;
	}
	return h;
}

void history_close(struct history *h)
{
	if (!h)
		return;
	if (h->map)
		munmap((void *)(uintptr_t)h->map, h->size);
	free(h->verified);
	free(h->path);
	free(h);
}

int history_damage(const struct history *h, struct error *err)
{
	if (atomic_load(&h->damaged) != 2)
		return 0;
	if (err)
		*err = h->damage;
	return -1;
}

bool history_is_one(const char *path)
{
	return save_begins_with(path, FORMAT_MAGIC, 5);  /* the rest tells how it was damaged on its way */
}

int history_verify(const struct history *h, struct error *err)
{
	for (uint64_t b = 0; b < h->blocks; b++)
		if (!file_verified(h, b) && file_verify_block(h, b, err))
			return -1;
	for (uint64_t b = 0; b < h->sum_blocks; b++)
		if (verify_sums(h, b, err))
			return -1;
	return 0;
}

const char *history_file(const struct history *h)
{
	return h->path;
}

int64_t history_begin(const struct history *h)
{
	return h->window_begin;
}

int64_t history_end(const struct history *h)
{
	return h->window_end;
}

int64_t history_first(const struct history *h)
{
	return h->begin;
}

int64_t history_last(const struct history *h)
{
	return h->end;
}

uint64_t history_intervals(const struct history *h)
{
	return h->intervals;
}

uint64_t history_bytes(const struct history *h)
{
	return h->size;
}
