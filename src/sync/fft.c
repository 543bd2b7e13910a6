#include "sync/fft.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"

void fft_init(struct fft *f, size_t n)
{
	f->n = n;
	f->twiddle = mem_new(n / 2, sizeof *f->twiddle);
	for (size_t i = 0; i < n / 2; i++) {
		double angle = -2 * acos(-1) * (double)i / (double)n;
		f->twiddle[i] = (struct fft_value){ cos(angle), sin(angle) };
	}
}

void fft_release(struct fft *f)
{
	free(f->twiddle);
	f->twiddle = NULL;
	f->n = 0;
}

static void bit_reverse(struct fft_value *v, size_t n)
{
	for (size_t i = 1, k = 0; i < n; i++) {
		size_t bit = n >> 1;
		for (; k & bit; bit >>= 1)
			k ^= bit;
		k ^= bit;
		if (i < k) {
			struct fft_value t = v[i];
			v[i] = v[k];
			v[k] = t;
		}
	}
}

void fft_forward(const struct fft *f, struct fft_value *v)
{
	size_t n = f->n;
	bit_reverse(v, n);
	for (size_t half = 1; half < n; half *= 2) {
		size_t stride = n / (2 * half);
		for (size_t base = 0; base < n; base += 2 * half) {
			struct fft_value *a = v + base, *b = a + half;
			for (size_t i = 0; i < half; i++) {
				struct fft_value w = f->twiddle[i * stride];
				double re = b[i].re * w.re - b[i].im * w.im, im = b[i].re * w.im + b[i].im * w.re;
				b[i] = (struct fft_value){ a[i].re - re, a[i].im - im };
				a[i] = (struct fft_value){ a[i].re + re, a[i].im + im };
			}
		}
	}
}

/* The inverse is the forward transform of the values in reverse order. */
void fft_inverse(const struct fft *f, struct fft_value *v)
{
	fft_forward(f, v);
	for (size_t i = 1, k = f->n - 1; i < k; i++, k--) {
		struct fft_value t = v[i];
		v[i] = v[k];
		v[k] = t;
	}
}
