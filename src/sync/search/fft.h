/* Complex FFT of a power of two for the coarse search (private to sync/). In place, O(n log n), with the twiddle factors
 * of each stage adjacent in memory. Single precision: only the leading digits of correlations matter. */
#pragma once

#include <stddef.h>

struct fft_value { float re, im; };

struct fft {
	size_t n;
	struct fft_value *twiddle;
};

void fft_init(struct fft *f, size_t n);  /* n: a power of two, at least 2 */
void fft_release(struct fft *f);
/* The spectrum has bit-reversed indices, which does not matter for products of spectra; neither transform reorders. */
void fft_forward(const struct fft *f, struct fft_value *v);
void fft_inverse(const struct fft *f, struct fft_value *v);  /* result is not divided by n */
