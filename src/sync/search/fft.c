#include "sync/search/fft.h"

#include <math.h>

#include "base/base.h"

void fft_init(struct fft *f, size_t n)
{
	f->n = n;
	f->twiddle = mem_new(n, sizeof *f->twiddle);
	for (size_t i = 0; i < n / 2; i++) {
		double angle = -2 * acos(-1) * (double)i / (double)n;
		f->twiddle[n / 2 + i] = (struct fft_value){ (float)cos(angle), (float)sin(angle) };
	}
	for (size_t i = n / 2 - 1; i > 0; i--)
		f->twiddle[i] = f->twiddle[2 * i];
}

void fft_release(struct fft *f)
{
	free(f->twiddle);
	f->twiddle = NULL;
	f->n = 0;
}

/* Transforms by decimation in frequency, recursively by halves: once a half fits into the cache, its remaining stages
 * run in the cache. */
static void forward_part(const struct fft *f, struct fft_value *v, size_t n)
{
	size_t half = n / 2;
	const struct fft_value *w = f->twiddle + half;
	struct fft_value *b = v + half;
	for (size_t i = 0; i < half; i++) {
		float re = v[i].re - b[i].re, im = v[i].im - b[i].im;
		v[i].re += b[i].re;
		v[i].im += b[i].im;
		b[i].re = re * w[i].re - im * w[i].im;
		b[i].im = re * w[i].im + im * w[i].re;
	}
	if (half > 1) {
		forward_part(f, v, half);
		forward_part(f, b, half);
	}
}

/* Inverts forward_part(): the same stages in reverse order. */
static void inverse_part(const struct fft *f, struct fft_value *v, size_t n)
{
	size_t half = n / 2;
	const struct fft_value *w = f->twiddle + half;
	struct fft_value *b = v + half;
	if (half > 1) {
		inverse_part(f, v, half);
		inverse_part(f, b, half);
	}
	for (size_t i = 0; i < half; i++) {
		float re = b[i].re * w[i].re + b[i].im * w[i].im, im = b[i].im * w[i].re - b[i].re * w[i].im;
		b[i].re = v[i].re - re;
		b[i].im = v[i].im - im;
		v[i].re += re;
		v[i].im += im;
	}
}

void fft_forward(const struct fft *f, struct fft_value *v)
{
	forward_part(f, v, f->n);
}

void fft_inverse(const struct fft *f, struct fft_value *v)
{
	inverse_part(f, v, f->n);
}
