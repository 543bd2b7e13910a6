#include "trace/tracecmd/dat_descriptions.h"

#include "base/base.h"

char *dat_get_block(struct dat_position *w, uint64_t size)
{
	w->is_bad |= size > DAT_BLOCK_MAX || w->at > w->size || size > w->size - w->at;
	if (w->is_bad)
		return NULL;
	char *text = mem_new(size + 1, 1);
	dat_read_bytes(w, text, size);
	return text;
}

void dat_read_header(const struct dat_descriptions *d, struct dat_position *w)
{
	char name[32];
	dat_get_text(w, name, sizeof name);  /* header_page */
	const uint64_t n = dat_get64(w);
	char *text = dat_get_block(w, n);
	if (text)
		d->header_page(d->arg, text, n);
	free(text);
	dat_get_text(w, name, sizeof name);  /* header_event */
	dat_skip_bytes(w, dat_get64(w));
}

void dat_read_formats(const struct dat_descriptions *d, struct dat_position *w, const char *system)
{
	for (uint32_t n = dat_get32(w); n && !w->is_bad; n--) {
		const uint64_t size = dat_get64(w);
		char *text = dat_get_block(w, size);
		if (text)
			d->format(d->arg, system, text, size);
		free(text);
	}
}

void dat_read_systems(const struct dat_descriptions *d, struct dat_position *w)
{
	char system[256];
	for (uint32_t n = dat_get32(w); n && !w->is_bad; n--) {
		dat_get_text(w, system, sizeof system);
		dat_read_formats(d, w, system);
	}
}

void dat_read_names(const struct dat_descriptions *d, struct dat_position *w)
{
	char *text = dat_get_block(w, dat_get64(w));
	if (text)
		d->names(d->arg, text);
	free(text);
}

void dat_read_descriptions(const struct dat_descriptions *d, struct dat_position *w)
{
	dat_read_header(d, w);
	dat_read_formats(d, w, "ftrace");
	dat_read_systems(d, w);
	dat_skip_bytes(w, dat_get32(w));  /* kallsyms, printk formats */
	dat_skip_bytes(w, dat_get32(w));
}
