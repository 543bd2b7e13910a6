#include "history/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/atomic_file.h"
#include "base/base.h"

#define EAGER_VERIFY_MAX (UINT64_C(1) << 20)  /* bytes: smaller tables are verified when the file is opened */
#define JUMPS_MAPPED 256
#define REINDEX_REMEDY "index the traces again: stealscope index DIR -o FILE"

int file_fail_damaged(const struct history *h, uint64_t offset, const char *why, struct error *err)
{
	struct history *writable = (struct history *)(uintptr_t)h;  /* only records the damage: a cache like `verified` */
	struct error damage = ERROR_INIT;
	error_set(&damage, STATUS_INPUT, REINDEX_REMEDY, "%s: damaged at offset %llu: %s", h->path,
	          (unsigned long long)offset, why);
	int none = 0;
	if (atomic_compare_exchange_strong(&writable->damaged, &none, 1)) {
		writable->damage = damage;
		atomic_store(&writable->damaged, 2);
	}
	if (err)
		*err = damage;
	return -1;
}

void history_unmap_read(const struct history *h)
{
	madvise((void *)(uintptr_t)h->map, (size_t)h->size, MADV_DONTNEED);
}

/* Records that a block is sound. A first read out of order, as by a search, makes the kernel map 64 KiB of its cache: after
 * JUMPS_MAPPED of them, all is unmapped. */
static void set_verified(const struct history *h, uint64_t bit)
{
	struct history *writable = (struct history *)(uintptr_t)h;
	atomic_fetch_or_explicit(&h->verified[bit / 64], UINT64_C(1) << bit % 64, memory_order_release);
	if (atomic_exchange_explicit(&writable->latest, bit, memory_order_relaxed) + 1 != bit &&
	    atomic_fetch_add_explicit(&writable->jumps, 1, memory_order_relaxed) % JUMPS_MAPPED == JUMPS_MAPPED - 1)
		history_unmap_read(h);
}

/* Verifies block `part` of SECTION_SUMS, the checksums of blocks. */
static int verify_sums(const struct history *h, uint64_t part, struct error *err)
{
	if (file_verified(h, h->blocks + part))
		return 0;
	uint64_t from = part * h->block, size = h->section[SECTION_SUMS].size - from;
	uint64_t offset = h->section[SECTION_SUMS].offset + from;
	if (size > h->block)
		size = h->block;
	uint32_t expected = get32(h->map + h->section[SECTION_SUMS2].offset + 4 * part);
	if (crc32c(&h->crc, h->map + offset, size) != expected)
		return file_fail_damaged(h, offset, "the checksum of checksums differs", err);
	set_verified(h, h->blocks + part);
	return 0;
}

static bool block_is_sound(const struct history *h, uint64_t block, uint64_t *from_out)
{
	uint64_t from = block * h->block, to = from + h->block;
	if (from < HEADER_BYTES)
		from = to < HEADER_BYTES ? to : HEADER_BYTES;
	if (to > h->section[SECTION_SUMS].offset)
		to = h->section[SECTION_SUMS].offset;
	uint32_t expected = get32(h->map + h->section[SECTION_SUMS].offset + 4 * block);
	*from_out = from;
	return crc32c(&h->crc, h->map + from, to - from) == expected;
}

int file_verify_block(const struct history *h, uint64_t block, struct error *err)
{
	uint64_t from;
	if (verify_sums(h, 4 * block / h->block, err))
		return -1;
	if (!block_is_sound(h, block, &from))
		return file_fail_damaged(h, from, "the checksum differs", err);
	set_verified(h, block);
	return 0;
}

int file_check_blocks(const struct history *h, enum section s, uint64_t offset, uint64_t size, struct error *err)
{
	uint64_t at = h->section[s].offset, len = h->section[s].size;
	if (offset < at || offset - at > len || size > len - (offset - at))
		return file_fail_damaged(h, offset, "data lie outside of their section", err);
	if (!size)
		return 0;
	for (uint64_t b = offset / h->block; b <= (offset + size - 1) / h->block; b++)
		if (!file_verified(h, b) && file_verify_block(h, b, err))
			return -1;
	return 0;
}

static int refuse_file(const struct history *h, const char *remedy, const char *why, struct error *err)
{
	return error_set(err, STATUS_INPUT, remedy, "%s: %s", h->path, why);
}

/* Sections are contiguous up to the file's end, with at most seven bytes of padding between them. */
static int read_sections(struct history *h, struct error *err)
{
	uint64_t at = HEADER_BYTES;
	for (unsigned i = 0; i < SECTIONS; i++) {
		const uint8_t *p = h->map + HEADER_SECTION + 16 * i;
		uint64_t offset = get64(p), size = get64(p + 8);
		if (offset < at || offset - at > 7 || offset > h->size || size > h->size - offset)
			return file_fail_damaged(h, HEADER_SECTION + 16 * i, "the sections do not fit the file", err);
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
		return file_fail_damaged(h, HEADER_SECTION, "the sizes of the sections contradict each other", err);
	return 0;
}

static int read_header(struct history *h, struct error *err)
{
	const uint8_t *p = h->map;
	if (h->size < HEADER_BYTES || memcmp(p, FORMAT_MAGIC, 8) != 0) {
		if (h->size >= HEADER_BYTES && !memcmp(p + 1, &FORMAT_MAGIC[1], 4))
			return file_fail_damaged(h, 0, "the file was changed, perhaps by a transfer as text", err);
		if (h->size >= 8 && !memcmp(p, FORMAT_MAGIC, 8))
			return file_fail_damaged(h, h->size, "the file ends early", err);
		return refuse_file(h, "use a history made by stealscope index, a directory with traces, or a session file, "
		                      "*.yaml",
		              "not a stealscope history, or damaged at offset 0", err);
	}
	uint32_t version = get32(p + HEADER_VERSION);
	crc32c_init(&h->crc);
	bool sound = crc32c(&h->crc, p, HEADER_CRC) == get32(p + HEADER_CRC);
	if (sound && version != FORMAT_VERSION)
		return error_set(err, STATUS_INPUT, REINDEX_REMEDY, "%s: format version %u, but this program reads %u",
		                 h->path, version, FORMAT_VERSION);
	if (!sound)
		return file_fail_damaged(h, 0, "the checksum of the header differs", err);
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
		return file_fail_damaged(h, h->size, get64(p + HEADER_SIZE) > h->size ? "the file ends early"
		                    : "the file is longer than its header states", err);
	if (h->block < BLOCK_MIN || h->block > BLOCK_MAX || h->block & (h->block - 1) ||
	    h->begin > h->end || h->begin < -TIME_LIMIT || h->end > TIME_LIMIT)
		return file_fail_damaged(h, HEADER_BLOCK, "the block size or the time span is invalid", err);
	return read_sections(h, err);
}

static int map_file(struct history *h, struct error *err)
{
	struct stat st;
	int fd = open(h->path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0 || fstat(fd, &st)) {
		error_read(err, "check the path, or make it readable for you", "%s", h->path);
	} else if (!S_ISREG(st.st_mode)) {
		refuse_file(h, NULL, "not a regular file", err);
	} else if (st.st_size < 1) {
		refuse_file(h, REINDEX_REMEDY, "damaged at offset 0: the file is empty", err);
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

/* Verifies the checksums of checksums, and small tables, so that their damage is found before anything is shown. */
static int verify_tables(struct history *h, struct error *err)
{
	const uint8_t *sums2 = h->map + h->section[SECTION_SUMS2].offset;
	if (crc32c(&h->crc, sums2, h->section[SECTION_SUMS2].size) != get32(h->map + HEADER_SUMS2))
		return file_fail_damaged(h, h->section[SECTION_SUMS2].offset, "the checksum of checksums differs", err);
	h->verified = mem_new((h->blocks + h->sum_blocks) / 64 + 1, sizeof *h->verified);
	uint64_t from = h->section[SECTION_ATTRIBUTES].offset, to = h->section[SECTION_DERIVED].offset;
	if (to - from > EAGER_VERIFY_MAX)
		return 0;
	for (uint64_t b = from / h->block; b * h->block < to; b++)
		if (file_verify_block(h, b, err))
			return -1;
	return 0;
}

int file_read_window(struct history *h, struct error *err)
{
	size_t size = 0;
	const uint8_t *window = history_meta(h, HISTORY_WINDOW, &size);
	h->window_begin = h->begin;
	h->window_end = h->end;
	if (!window)
		return 0;
	const uint64_t at = (uint64_t)(window - h->map);
	if (size != 16)
		return file_fail_damaged(h, at, "the window has a wrong size", err);
	h->window_begin = (int64_t)get64(window);
	h->window_end = (int64_t)get64(window + 8);
	if (h->window_begin < h->begin || h->window_begin > h->window_end || h->window_end > h->end)
		return file_fail_damaged(h, at, "the window lies outside of the time span", err);
	return 0;
}

struct history *history_open(const char *path, struct error *err)
{
	struct history *h = mem_new(1, sizeof *h);
	h->path = mem_dup(path);
	if (map_file(h, err) || read_header(h, err) || verify_tables(h, err) || file_read_window(h, err)) {
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

void history_watch(struct history *h, int64_t from, int64_t to,
                   void (*fn)(void *arg, uint32_t attr, int64_t start, int64_t end), void *arg)
{
	h->watch.from = from;
	h->watch.to = to;
	h->watch.fn = fn;
	h->watch.arg = arg;
}

int history_damage(const struct history *h, struct error *err)
{
	if (atomic_load(&h->damaged) != 2)
		return 0;
	if (err)
		*err = h->damage;
	return -1;
}

bool history_is_history_file(const char *path)
{
	return file_begins_with(path, FORMAT_MAGIC, 5);  /* the other bytes of the magic show damage by a transfer as text */
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

uint64_t history_derived_size(const struct history *h)
{
	return h->section[SECTION_DERIVED].size;
}

const uint8_t *history_derived(const struct history *h, uint64_t offset, uint64_t size)
{
	const uint64_t at = h->section[SECTION_DERIVED].offset, len = h->section[SECTION_DERIVED].size;
	uint64_t from;
	if (offset > len || size > len - offset || !size || h->watch.fn)
		return NULL;
	for (uint64_t b = (at + offset) / h->block; b <= (at + offset + size - 1) / h->block; b++) {
		if (file_verified(h, b))
			continue;
		if (!file_verified(h, h->blocks + 4 * b / h->block) && verify_sums(h, 4 * b / h->block, NULL))
			return NULL;
		if (!block_is_sound(h, b, &from))
			return NULL;
		set_verified(h, b);
	}
	return h->map + at + offset;
}

uint64_t history_bytes(const struct history *h)
{
	return h->size;
}
