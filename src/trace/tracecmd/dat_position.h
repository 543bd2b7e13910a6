/* Reads numbers and texts of a trace-cmd file in sequence, with bounds checks. Private to tracecmd/. */
#pragma once

#include "base/base.h"
#include "trace/tracecmd/tracecmd_file.h"

/* Read position in the file, or in the bytes of one option. */
struct dat_position {
	struct tracecmd_file *tracecmd_file;
	int fd;                    /* -1: the bytes are in memory */
	const unsigned char *byte;
	uint64_t at, size;
	bool swap;                 /* the byte order differs from ours */
	bool is_bad;               /* a read went beyond the end */
	int *why;                  /* errno of the last failed read of the file; 0: none */
};

/* After a read beyond the end, is_bad is set and the result is zero. */
void dat_read_bytes(struct dat_position *w, void *to, size_t n);
void dat_skip_bytes(struct dat_position *w, uint64_t n);
uint16_t dat_get16(struct dat_position *w);
uint32_t dat_get32(struct dat_position *w);
uint64_t dat_get64(struct dat_position *w);
/* Reads a zero-terminated string; stores at most `size` bytes of it, including the terminating zero. */
void dat_get_text(struct dat_position *w, char *to, size_t size);
