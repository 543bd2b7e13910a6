/* A complex FFT of a power of two, for the coarse search (private to sync/).  Double precision, in place,
 * O(n log n), tables of n / 2 twiddles kept in the plan. */
#ifndef STEALSCOPE_SYNC_FFT_H
#define STEALSCOPE_SYNC_FFT_H

#include <stddef.h>

struct fft_value { double re, im; };

struct fft {
	size_t n;
	struct fft_value *twiddle;
};

void fft_init(struct fft *f, size_t n);  /* n: a power of two, at least 2 */
void fft_release(struct fft *f);
void fft_forward(const struct fft *f, struct fft_value *v);
void fft_inverse(const struct fft *f, struct fft_value *v);  /* not divided by n */

#endif
