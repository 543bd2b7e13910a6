#include "trace/tracecmd/dat_position.h"

#include <byteswap.h>
#include <errno.h>
#include <unistd.h>

void dat_read_bytes(struct dat_position *w, void *to, size_t n)
{
	memset(to, 0, n);
	if (w->is_bad || w->at > w->size || n > w->size - w->at) {
		w->is_bad = true;
		return;
	}
	if (w->fd < 0) {
		memcpy(to, w->byte + w->at, n);
	} else {
		const ssize_t got = pread(w->fd, to, n, (off_t)w->at);
		*w->why = got < 0 ? errno : *w->why;
		w->is_bad = got != (ssize_t)n;
	}
	w->at += n;
}

void dat_skip_bytes(struct dat_position *w, uint64_t n)
{
	w->is_bad |= w->at > w->size || n > w->size - w->at;
	w->at += w->is_bad ? 0 : n;
}

uint16_t dat_get16(struct dat_position *w)
{
	uint16_t v;
	dat_read_bytes(w, &v, sizeof v);
	return w->swap ? bswap_16(v) : v;
}

uint32_t dat_get32(struct dat_position *w)
{
	uint32_t v;
	dat_read_bytes(w, &v, sizeof v);
	return w->swap ? bswap_32(v) : v;
}

uint64_t dat_get64(struct dat_position *w)
{
	uint64_t v;
	dat_read_bytes(w, &v, sizeof v);
	return w->swap ? bswap_64(v) : v;
}

void dat_get_text(struct dat_position *w, char *to, size_t size)
{
	size_t n = 0;
	for (;;) {
		char c;
		dat_read_bytes(w, &c, 1);
		if (w->is_bad || !c)
			break;
		if (n + 1 < size)
			to[n++] = c;
	}
	to[n] = '\0';
}
