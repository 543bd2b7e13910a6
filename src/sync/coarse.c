#include "sync/coarse.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "sync/fft.h"

#define BIN_NS 50000
#define FFT_MAX ((size_t)1 << 19)
#define CPUS_MAX 8      /* CPUs of the guest that take part */
#define DRIFT_MAX 320.0 /* ppm */
#define DELAY_NS 15000   /* typical, from a vm entry to the first event and from the last one to the exit */
#define SAME_BINS 3     /* peaks nearer than this are one */

double vthread_duty(const struct host_view *host, const struct vthread *th)
{
	int64_t from = th->from > host->begin ? th->from : host->begin, to = th->to < host->end ? th->to : host->end;
	double in = 0, all = (double)(to - from) + 1;
	for (size_t i = 0; i < th->windows; i++)
		in += (double)(th->window[i].to - th->window[i].from);
	for (size_t i = 0; i < th->blinds; i++)
		all -= (double)(th->blind[i].to - th->blind[i].from);
	return all <= 0 ? 0 : in / all > 1 ? 1 : in / all;
}

/* ---- correlation */

struct search {
	const struct host_view *host;
	const struct vm_view *vm;
	const struct activity *act;
	struct segment seg;
	int64_t origin;              /* host time of bin 0 */
	size_t lags, n;              /* offsets that count, in bins; length of the transforms */
	struct fft fft;
	unsigned cpu[CPUS_MAX], cpus;
	struct fft_value *window[CPUS_MAX];  /* spectrum of the CPU's guest mode less its mean */
	struct fft_value *sum, *work;
	struct guess *guess;
	size_t *guesses;
};

static void add_span(struct fft_value *bin, size_t n, int64_t origin, int64_t from, int64_t to, double weight)
{
	if (to < origin || from > origin + (int64_t)n * BIN_NS)
		return;
	int64_t a = from < origin ? 0 : from - origin, b = to - origin;
	if (b > (int64_t)n * BIN_NS - 1)
		b = (int64_t)n * BIN_NS - 1;
	for (int64_t i = a / BIN_NS; i <= b / BIN_NS; i++) {
		int64_t s = i * BIN_NS < a ? a : i * BIN_NS, e = (i + 1) * BIN_NS > b ? b : (i + 1) * BIN_NS;
		bin[i].re += weight * (double)(e - s) / BIN_NS;
	}
}

/* Guest activity comes soon after a vm entry and soon before a vm exit: this is where. */
static void add_edge(struct fft_value *bin, size_t n, int64_t origin, int64_t at)
{
	if (at < origin + BIN_NS || at >= origin + (int64_t)(n - 1) * BIN_NS)
		return;
	size_t i = (size_t)((at - origin) / BIN_NS);
	bin[i].im += 1;
	bin[i - 1].im += 0.5;
	bin[i + 1].im += 0.5;
}

/* Makes the parts of unit variance about a mean of 0, where the host's trace is, and adds them up. */
static void standardize(const struct search *s, struct fft_value *bin)
{
	int64_t lo = (s->host->begin - s->origin) / BIN_NS, hi = (s->host->end - s->origin) / BIN_NS;
	size_t from = lo < 0 ? 0 : (size_t)lo, to = hi < 0 ? 0 : (size_t)hi < s->n ? (size_t)hi : s->n;
	double sum[2] = { 0, 0 }, squares[2] = { 0, 0 }, n = from < to ? (double)(to - from) : 1;
	for (size_t i = from; i < to; i++) {
		bin[i].im = fmin(bin[i].im, 1);
		sum[0] += bin[i].re;
		sum[1] += bin[i].im;
		squares[0] += bin[i].re * bin[i].re;
		squares[1] += bin[i].im * bin[i].im;
	}
	double mean[2], scale[2];
	for (int k = 0; k < 2; k++) {
		mean[k] = sum[k] / n;
		double variance = squares[k] / n - mean[k] * mean[k];
		scale[k] = variance > 1e-9 ? 1 / sqrt(variance) : 0;
	}
	for (size_t i = 0; i < s->n; i++) {
		bool known = i >= from && i < to;
		bin[i].re = known ? (bin[i].re - mean[0]) * scale[0] + (bin[i].im - mean[1]) * scale[1] : 0;
		bin[i].im = 0;
	}
}

/* What the host says of one guest CPU: its guest mode, and the edges of it. */
static void window_signal(const struct search *s, unsigned cpu, struct fft_value *bin)
{
	memset(bin, 0, s->n * sizeof *bin);
	for (size_t i = 0; i < s->vm->vcpus; i++) {
		if (s->vm->vcpu[i].number != cpu)
			continue;
		const struct vthread *th = &s->host->thread[s->vm->vcpu[i].thread];
		double duty = vthread_duty(s->host, th);
		for (size_t k = 0; k < th->windows; k++) {
			add_span(bin, s->n, s->origin, th->window[k].from, th->window[k].to, 1);
			add_edge(bin, s->n, s->origin, th->window[k].from + DELAY_NS);
			add_edge(bin, s->n, s->origin, th->window[k].to - DELAY_NS);
		}
		for (size_t k = 0; k < th->blinds; k++)
			add_span(bin, s->n, s->origin, th->blind[k].from, th->blind[k].to, duty);
	}
	standardize(s, bin);
}

/* Activity of one guest CPU under a drift, one per bin at most, at negative index: so that a product of spectra is
 * a correlation. */
static void activity_signal(const struct search *s, unsigned cpu, double ppm, bool imaginary, struct fft_value *bin)
{
	const struct activity_cpu *c = &s->act->cpu[cpu];
	int64_t middle = s->seg.from + (s->seg.to - s->seg.from) / 2, last = INT64_MIN;
	for (size_t i = activity_find(c, s->seg.from); i < c->len && c->ts[i] <= s->seg.to; i++) {
		int64_t since = c->ts[i] - middle;
		int64_t at = (int64_t)floor(((double)since * (1 + ppm / 1e6)) / BIN_NS);
		if (at == last)
			continue;
		last = at;
		size_t index = (size_t)(-at) & (s->n - 1);
		*(imaginary ? &bin[index].im : &bin[index].re) = 1;
	}
}

static void add_guess(struct search *s, size_t lag, double ppm, double score)
{
	int64_t at = s->origin + (int64_t)lag * BIN_NS + BIN_NS / 2;
	size_t n = *s->guesses, worst = 0, same = SIZE_MAX;
	for (size_t i = 0; i < n; i++) {
		if (llabs(s->guess[i].at_host - at) <= SAME_BINS * BIN_NS)
			same = i;
		if (s->guess[i].score < s->guess[worst].score)
			worst = i;
	}
	size_t to = same != SIZE_MAX ? same : n < GUESSES_MAX ? n : worst;
	if (to < n && s->guess[to].score >= score)
		return;
	if (to == n)
		++*s->guesses;
	s->guess[to] = (struct guess){ .at_guest = s->seg.from + (s->seg.to - s->seg.from) / 2, .at_host = at, .ppm = ppm,
		.score = score };
}

/* Looks for peaks in the real or imaginary part of the correlation. */
static void find_peaks(struct search *s, double ppm, bool imaginary)
{
	double sum = 0, squares = 0;
	const double *v = imaginary ? &s->sum->im : &s->sum->re;
	for (size_t i = 0; i < s->lags; i++) {
		sum += v[2 * i];
		squares += v[2 * i] * v[2 * i];
	}
	double mean = sum / (double)s->lags, sigma = sqrt(fmax(squares / (double)s->lags - mean * mean, 1e-12));
	double floor_score = 0;
	for (size_t i = 0; i < s->lags; i++) {
		double score = (v[2 * i] - mean) / sigma;
		if (score < 2.5 || score <= floor_score || (i > 0 && v[2 * i - 2] > v[2 * i]) ||
		    (i + 1 < s->lags && v[2 * i + 2] > v[2 * i]))
			continue;
		add_guess(s, i, ppm, score);
		if (*s->guesses < GUESSES_MAX)
			continue;
		floor_score = s->guess[0].score;
		for (size_t k = 1; k < GUESSES_MAX; k++)
			floor_score = fmin(floor_score, s->guess[k].score);
	}
}

/* Two drifts at once, one in the real and one in the imaginary part. */
static void correlate(struct search *s, double ppm_re, double ppm_im)
{
	memset(s->sum, 0, s->n * sizeof *s->sum);
	for (unsigned c = 0; c < s->cpus; c++) {
		memset(s->work, 0, s->n * sizeof *s->work);
		activity_signal(s, s->cpu[c], ppm_re, false, s->work);
		activity_signal(s, s->cpu[c], ppm_im, true, s->work);
		fft_forward(&s->fft, s->work);
		for (size_t i = 0; i < s->n; i++) {
			struct fft_value a = s->work[i], b = s->window[c][i];
			s->sum[i].re += a.re * b.re - a.im * b.im;
			s->sum[i].im += a.re * b.im + a.im * b.re;
		}
	}
	fft_inverse(&s->fft, s->sum);
	double scale = 1 / (double)s->n;
	for (size_t i = 0; i < s->n; i++) {
		s->sum[i].re *= scale;
		s->sum[i].im *= scale;
	}
	find_peaks(s, ppm_re, false);
	if (ppm_im != ppm_re)
		find_peaks(s, ppm_im, true);
}

/* The CPUs of the guest with most activity that have a thread on the host. */
static void choose_cpus(struct search *s)
{
	for (unsigned c = 0; c < s->act->cpus; c++) {
		bool has = false;
		for (size_t i = 0; i < s->vm->vcpus; i++)
			has = has || s->vm->vcpu[i].number == c;
		if (has && s->cpus < CPUS_MAX && s->act->cpu[c].len > 0)
			s->cpu[s->cpus++] = c;
	}
}

static int by_score(const void *pa, const void *pb)
{
	const struct guess *a = pa, *b = pb;
	return a->score > b->score ? -1 : a->score < b->score;
}

void coarse_search(const struct host_view *host, const struct vm_view *vm, const struct activity *act,
                   struct segment seg, int64_t at_from, int64_t at_to, struct guess guess[GUESSES_MAX], size_t *n)
{
	struct search s = { .host = host, .vm = vm, .act = act, .seg = seg, .guess = guess, .guesses = n };
	int64_t half = (seg.to - seg.from) / 2 + BIN_NS;
	half += half / 1000;  /* room for the drift */
	size_t margin = (size_t)(half / BIN_NS) + 1;
	*n = 0;
	choose_cpus(&s);
	if (s.cpus == 0 || at_to < at_from || 4 * margin > FFT_MAX)
		return;
	size_t all = (size_t)((at_to - at_from) / BIN_NS) + 1;
	for (s.n = 1024; s.n < FFT_MAX && s.n < all + 2 * margin; s.n *= 2)
		;
	fft_init(&s.fft, s.n);
	s.sum = mem_new(s.n, sizeof *s.sum);
	s.work = mem_new(s.n, sizeof *s.work);
	for (unsigned c = 0; c < s.cpus; c++)
		s.window[c] = mem_new(s.n, sizeof **s.window);
	/* A drift that is wrong by half a step smears the segment's ends by one bin. */
	double step = fmin(40, 4e6 * BIN_NS / (double)(seg.to - seg.from + 1));
	/* The segment reaches `margin` bins to both sides of its middle; lags wrap around to the end. */
	for (size_t at = 0; at < all; at += s.n - 2 * margin) {
		s.lags = all - at < s.n - 2 * margin ? all - at : s.n - 2 * margin;
		s.origin = at_from + (int64_t)at * BIN_NS;
		int64_t lag0 = s.origin;
		s.origin -= (int64_t)margin * BIN_NS;
		for (unsigned c = 0; c < s.cpus; c++) {
			window_signal(&s, s.cpu[c], s.window[c]);
			/* Bin `margin` becomes bin 0, what lies before it wraps to the end. */
			memcpy(s.work, s.window[c], margin * sizeof *s.work);
			memmove(s.window[c], s.window[c] + margin, (s.n - margin) * sizeof *s.work);
			memcpy(s.window[c] + s.n - margin, s.work, margin * sizeof *s.work);
			fft_forward(&s.fft, s.window[c]);
		}
		s.origin = lag0;
		for (double ppm = 0; ppm <= DRIFT_MAX; ppm += step)
			correlate(&s, ppm, -ppm);
	}
	for (unsigned c = 0; c < s.cpus; c++)
		free(s.window[c]);
	free(s.sum);
	free(s.work);
	fft_release(&s.fft);
	qsort(guess, *n, sizeof *guess, by_score);
}
