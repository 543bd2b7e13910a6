/* A complex FFT of a power of two, for the coarse search (private to sync/).  In place, O(n log n), with the
 * twiddles of each stage side by side; single precision: correlations are judged by their first digits. */
#ifndef STEALSCOPE_SYNC_SEARCH_FFT_H
#define STEALSCOPE_SYNC_SEARCH_FFT_H

#include <stddef.h>

struct fft_value { float re, im; };

struct fft {
	size_t n;
	struct fft_value *twiddle;
};

void fft_init(struct fft *f, size_t n);  /* n: a power of two, at least 2 */
void fft_release(struct fft *f);
/* The spectrum's indices are bit-reversed: products of spectra do not mind, and both ways save the shuffling. */
void fft_forward(const struct fft *f, struct fft_value *v);
void fft_inverse(const struct fft *f, struct fft_value *v);  /* not divided by n */

#endif
