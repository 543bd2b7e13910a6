#include "trace/tracecmd/dat_contents.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#ifdef HAVE_ZLIB
#include <zlib.h>
#endif
#ifdef HAVE_ZSTD
#include <zstd.h>
#endif

#include "base/base.h"
#include "base/mem.h"
#include "trace/tracecmd/dat_position.h"

#define HEAD_BYTES 12          /* magic, version and byte order, without the terminating NUL */

enum dat_section { SECTION_HEADER = 16, SECTION_FTRACE = 17, SECTION_FORMATS = 18, SECTION_NAMES = 21 };

/* Returns true if all `size` bytes of the output were filled. */
static bool unpack(const char *compression, const void *packed, size_t n, void *to, size_t size)
{
#ifdef HAVE_ZSTD
	if (strcmp(compression, "zstd") == 0)
		return ZSTD_decompress(to, size, packed, n) == size;
#endif
#ifdef HAVE_ZLIB
	uLongf got = size;
	if (strcmp(compression, "zlib") == 0)
		return uncompress(to, &got, packed, n) == Z_OK && got == size;
#endif
	(void)compression, (void)packed, (void)n, (void)to, (void)size;
	return false;
}

static bool is_supported(const char *compression)
{
#ifdef HAVE_ZSTD
	if (strcmp(compression, "zstd") == 0)
		return true;
#endif
#ifdef HAVE_ZLIB
	if (strcmp(compression, "zlib") == 0)
		return true;
#endif
	return strcmp(compression, "none") == 0;
}

/* Reads a compressed block: two sizes and the bytes. Returns it, with *size; NULL, with w->is_bad set, if it is damaged. */
static char *get_packed(struct dat_position *w, const char *compression, size_t *size)
{
	const uint32_t packed = dat_get32(w), plain = dat_get32(w);
	char *in = dat_get_block(w, packed), *out = in && plain <= DAT_BLOCK_MAX ? mem_new((size_t)plain + 1, 1) : NULL;
	if (!out || !unpack(compression, in, packed, out, plain)) {
		free(out);
		out = NULL;
		w->is_bad = true;
	}
	free(in);
	*size = plain;
	return out;
}

/* ---- descriptions */

static void read_contents(struct dat_contents *c, struct dat_position *w, unsigned section)
{
	switch (section) {
	case SECTION_HEADER: dat_read_header(&c->descriptions, w); break;
	case SECTION_FTRACE: dat_read_formats(&c->descriptions, w, "ftrace"); break;
	case SECTION_FORMATS: dat_read_systems(&c->descriptions, w); break;
	case SECTION_NAMES: dat_read_names(&c->descriptions, w); break;
	}
}

/* Version 7: reads a section; its contents may be compressed. */
static void read_section(struct dat_contents *c, struct dat_position w, unsigned section, bool *is_bad)
{
	const unsigned id = dat_get16(&w), flags = dat_get16(&w);
	dat_skip_bytes(&w, 4 + 8);  /* description, size */
	if (id == section && flags & 1 && !w.is_bad) {
		size_t size;
		char *plain = get_packed(&w, c->compression, &size);
		struct dat_position memory = { .fd = -1, .byte = (unsigned char *)plain, .size = size, .swap = w.swap };
		if (plain)
			read_contents(c, &memory, section);
		*is_bad |= w.is_bad || memory.is_bad;
		free(plain);
	} else if (id == section) {
		read_contents(c, &w, section);
		*is_bad |= w.is_bad;
	}
}

/* Version 7: reads the sections that options refer to. tracecmd_file_read() has checked the chain of the options. */
static void read_version7(struct dat_contents *c, struct dat_position *w)
{
	char version[32];
	dat_get_text(w, c->compression, sizeof c->compression);
	dat_get_text(w, version, sizeof version);
	uint64_t next = dat_get64(w), at[SECTION_NAMES + 1] = { 0 };
	while (next && next >= w->at && !w->is_bad) {
		w->at = next;
		dat_skip_bytes(w, 16);
		next = 0;
		for (unsigned id = 1; id && !w->is_bad;) {
			id = dat_get16(w);
			const uint32_t n = dat_get32(w);
			const uint64_t end = w->at + n;
			if ((id == 0 || (id >= SECTION_HEADER && id <= SECTION_NAMES)) && n >= 8)
				*(id ? &at[id] : &next) = dat_get64(w);
			w->is_bad |= end < w->at;
			w->at = w->is_bad ? w->at : end;
		}
	}
	/* The header and the kernel's own events come first: the other formats refer to common fields. */
	for (unsigned id = SECTION_HEADER; id <= SECTION_NAMES; id++) {
		struct dat_position section = *w;
		section.at = at[id];
		section.is_bad = false;
		if (at[id])
			read_section(c, section, id, &w->is_bad);
	}
}

static void read_version6(struct dat_contents *c, struct dat_position *w)
{
	snprintf(c->compression, sizeof c->compression, "none");
	dat_read_descriptions(&c->descriptions, w);
	dat_read_names(&c->descriptions, w);
}

int dat_contents_open(struct dat_contents *c, const char *path, struct error *err)
{
	struct stat st;
	char version[8];
	unsigned char byte[2];
	int why = 0;
	c->fd = open(path, O_RDONLY | O_CLOEXEC);
	if (c->fd < 0 || fstat(c->fd, &st))
		return error_read(err, "make it readable for you", "%s", path);
	c->size = (uint64_t)st.st_size;
	struct dat_position w = { .fd = c->fd, .at = 10, .size = c->size, .why = &why };
	dat_get_text(&w, version, sizeof version);
	dat_read_bytes(&w, byte, sizeof byte);
	c->big_endian = byte[0] != 0;
	w.swap = c->big_endian != (BYTE_ORDER == BIG_ENDIAN);
	dat_skip_bytes(&w, 4);  /* page size */
	if (strcmp(version, "7") == 0)
		read_version7(c, &w);
	else
		read_version6(c, &w);
	errno = why;
	if (why)
		return error_system(err, NULL, "%s", path);
	if (!is_supported(c->compression))
		return error_set(err, STATUS_INPUT, "use a stealscope with this library, or trace-cmd convert --compression none",
		                 "%s: compressed with %s", path, c->compression);
	return w.is_bad ? error_set(err, STATUS_INPUT, "copy the file again after trace-cmd has finished",
	                            "%s: trace-cmd file truncated or damaged", path) : 0;
}

/* ---- pages */

static bool next_chunk(struct dat_pages *p)
{
	int why = 0;
	struct dat_position w = { .fd = p->contents->fd, .at = p->at, .size = p->contents->size, .why = &why,
		                      .swap = p->contents->big_endian != (BYTE_ORDER == BIG_ENDIAN) };
	if (!p->is_open)
		p->chunks = dat_get32(&w);
	p->is_open = true;
	free(p->chunk);
	p->chunk = NULL;
	p->chunk_at = p->chunk_size = 0;
	if (p->chunks) {
		p->chunk = (unsigned char *)get_packed(&w, p->contents->compression, &p->chunk_size);
		p->chunks--;
	}
	p->at = w.at;
	errno = why;
	return p->chunk != NULL;
}

int dat_pages_read(struct dat_pages *p, unsigned char *page, size_t size, const char **why)
{
	*why = "a page cannot be read";
	if (p->left < size)
		return p->left ? -1 : 0;
	if (p->cpu->packed) {
		errno = 0;
		if (p->chunk_at == p->chunk_size && !next_chunk(p)) {
			*why = errno ? NULL : *why;
			return -1;
		}
		if (p->chunk_size - p->chunk_at < size)
			return -1;
		memcpy(page, p->chunk + p->chunk_at, size);
		p->chunk_at += size;
	} else {
		for (size_t got = 0; got < size;) {
			const ssize_t n = pread(p->contents->fd, page + got, size - got, (off_t)(p->at + got));
			if (n <= 0) {
				*why = n < 0 ? NULL : *why;
				return -1;
			}
			got += (size_t)n;
		}
		p->at += size;
	}
	p->left -= size;
	return 1;
}

void dat_pages_close(struct dat_pages *p)
{
	free(p->chunk);
	p->chunk = NULL;
}
