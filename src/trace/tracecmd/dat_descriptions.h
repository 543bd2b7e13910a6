/* Descriptions of events, as trace-cmd and perf store them: copies of files of tracefs. Private to the readers of both. */
#pragma once

#include "trace/tracecmd/dat_position.h"

/* Receives the descriptions. `text` is NUL-terminated and valid during the call. */
struct dat_descriptions {
	void (*header_page)(void *arg, const char *text, size_t n);
	void (*format)(void *arg, const char *system, const char *text, size_t n);
	void (*names)(void *arg, char *text);  /* lines "TID NAME" */
	void *arg;
};

#define DAT_BLOCK_MAX (64u << 20)  /* maximum size of a description and of a chunk, bytes */

/* Reads a block of `size` bytes, NUL-terminated; the caller frees it. Returns NULL, with w->is_bad set, if it is not
 * there. */
char *dat_get_block(struct dat_position *w, uint64_t size);

/* Read a part of the descriptions, and pass it on. Damage sets w->is_bad. */
void dat_read_header(const struct dat_descriptions *d, struct dat_position *w);
void dat_read_formats(const struct dat_descriptions *d, struct dat_position *w, const char *system);
void dat_read_systems(const struct dat_descriptions *d, struct dat_position *w);
void dat_read_names(const struct dat_descriptions *d, struct dat_position *w);
/* Reads the parts from the header to the systems, then skips the symbols and texts of the kernel. */
void dat_read_descriptions(const struct dat_descriptions *d, struct dat_position *w);
