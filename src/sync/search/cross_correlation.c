#include "sync/search/cross_correlation.h"

#include <math.h>

#include "base/base.h"
#include "sync/search/fft.h"

#define FFT_MAX ((size_t)1 << 19)
#define CPUS_MAX 4      /* guest CPUs used: those with most activity */
#define DRIFT_MAX 320.0 /* ppm */
#define SAME_BINS 3     /* peaks closer than this bin count are merged */
#define SCORE_MIN 2.5

/* Returns the total length of the intervals within [from, to], ns; span[first]: first interval that may overlap. */
static double covered_ns(const struct ns_interval *span, size_t n, size_t first, int64_t from, int64_t to)
{
	double in = 0;
	for (size_t i = first; i < n && span[i].from <= to; i++)
		in += fmax((double)(min64(span[i].to, to) - max64(span[i].from, from)), 0);
	return in;
}

double vthread_duty(const struct host_timeline *host, const struct vthread *th, int64_t from, int64_t to)
{
	size_t hint = 0;
	from = max64(from, max64(th->from, host->begin));
	to = min64(to, min64(th->to, host->end));
	(void)vthread_mode(th, from, &hint);
	double all = (double)to - (double)from + 1 - covered_ns(th->unknown, th->unknowns, 0, from, to);
	double in = covered_ns(th->window, th->windows, hint > 0 ? hint - 1 : 0, from, to);
	return all <= 0 ? 0 : fmin(in / all, 1);
}

/* ---- correlation */

struct correlation {
	const struct evidence *evidence;
	struct ns_interval interval;
	int64_t bin;                 /* ns */
	int64_t origin;              /* host time of bin 0, ns */
	size_t lags, n;              /* offset count; length of the transforms in bins */
	struct fft fft;
	unsigned cpu[CPUS_MAX], cpus;
	struct fft_value *window[CPUS_MAX];  /* spectra of each CPU's guest mode, mean removed */
	struct fft_value *sum, *work;
	struct offset_list *out;
};

/* Adds an interval to the real or the imaginary parts of a signal: to each bin, its share covered by the interval times
 * the weight. */
static void add_span(const struct correlation *s, float *part, int64_t from, int64_t to, double weight)
{
	int64_t end = (int64_t)s->n * s->bin;
	if (to < s->origin || from >= s->origin + end)
		return;
	int64_t a = from < s->origin ? 0 : from - s->origin, b = to - s->origin < end ? to - s->origin : end - 1;
	for (int64_t i = a / s->bin; i <= b / s->bin; i++) {
		int64_t begins = i * s->bin < a ? a : i * s->bin, ends = (i + 1) * s->bin > b ? b : (i + 1) * s->bin;
		part[2 * i] += (float)(weight * (double)(ends - begins) / (double)s->bin);
	}
}

/* Normalizes both parts (square root of the imaginary part) to mean 0 and variance 1 within the host's trace, adds both
 * and normalizes the sum. */
static void normalize_signal(const struct correlation *s, struct fft_value *bin)
{
	const struct host_timeline *host = s->evidence->host;
	int64_t lo = (host->begin - s->origin) / s->bin, hi = (host->end - s->origin) / s->bin;
	size_t from = lo < 0 ? 0 : (size_t)lo, to = hi < 0 ? 0 : (size_t)hi < s->n ? (size_t)hi : s->n;
	double sum[2] = { 0, 0 }, squares[3] = { 0, 0, 0 }, n = from < to ? (double)(to - from) : 1;
	for (size_t i = from; i < to; i++) {
		bin[i].im = sqrtf(bin[i].im);
		sum[0] += bin[i].re;
		sum[1] += bin[i].im;
		squares[0] += bin[i].re * bin[i].re;
		squares[1] += bin[i].im * bin[i].im;
		squares[2] += bin[i].re * bin[i].im;
	}
	double mean[2], scale[2];
	for (int k = 0; k < 2; k++) {
		mean[k] = sum[k] / n;
		double variance = squares[k] / n - mean[k] * mean[k];
		scale[k] = variance > 1e-9 ? 1 / sqrt(variance) : 0;
	}
	double both = (squares[2] / n - mean[0] * mean[1]) * scale[0] * scale[1];
	double whole = 1 / sqrt(fmax((scale[0] > 0) + (scale[1] > 0) + 2 * both, 0.1));
	for (size_t i = 0; i < s->n; i++) {
		bool known = i >= from && i < to;
		double v = (bin[i].re - mean[0]) * scale[0] + (bin[i].im - mean[1]) * scale[1];
		bin[i] = (struct fft_value){ known ? (float)(v * whole) : 0, 0 };
	}
}

/* Computes the host's signal of one guest CPU: guest mode (real part) and edges of the windows (imaginary part),
 * combined by normalize_signal(). */
static void window_signal(const struct correlation *s, unsigned cpu, struct fft_value *bin)
{
	memset(bin, 0, s->n * sizeof *bin);
	for (size_t i = 0; i < s->evidence->vm->vcpus; i++) {
		if (s->evidence->vm->vcpu[i].number != cpu)
			continue;
		const struct vthread *th = &s->evidence->host->thread[s->evidence->vm->vcpu[i].thread];
		double duty = vthread_duty(s->evidence->host, th, s->evidence->host->begin, s->evidence->host->end);
		for (size_t k = 0; k < th->windows; k++) {
			const struct ns_interval *w = &th->window[k];
			add_span(s, &bin->re, w->from, w->to, 1);
			/* guest activity is frequent right after a VM entry and right before a VM exit */
			add_span(s, &bin->im, w->from + DELAY_NS - BIN_NS, w->from + DELAY_NS + BIN_NS, 1);
			add_span(s, &bin->im, w->to - DELAY_NS - BIN_NS, w->to - DELAY_NS + BIN_NS, 1);
		}
		for (size_t k = 0; k < th->unknowns; k++)
			add_span(s, &bin->re, th->unknown[k].from, th->unknown[k].to, duty);
	}
	normalize_signal(s, bin);
}

/* Computes the activity signal of one guest CPU under a drift: square root of the events per bin, mean removed, at
 * negative indices so that the product of spectra is a correlation. Returns the sum of squares. */
static double activity_signal(const struct correlation *s, unsigned cpu, double ppm, bool imaginary, struct fft_value *bin)
{
	const struct activity_cpu *c = &s->evidence->activity->cpu[cpu];
	int64_t half = (s->interval.to - s->interval.from) / 2, middle = s->interval.from + half;
	int64_t first = -half / s->bin - 1, last = half / s->bin;
	float *part = imaginary ? &bin->im : &bin->re;
	double sum = 0, squares = 0, n = (double)(last - first + 1);
	for (size_t i = activity_find(c, s->interval.from); i < c->len && c->ts[i] <= s->interval.to; i++) {
		int64_t at = (int64_t)floor((double)(c->ts[i] - middle) * (1 + ppm / 1e6) / (double)s->bin);
		part[2 * ((size_t)(-at) & (s->n - 1))] += 1;
	}
	for (int64_t at = first; at <= last; at++) {
		float *v = &part[2 * ((size_t)(-at) & (s->n - 1))];
		*v = sqrtf(*v);
		sum += *v;
		squares += *v * *v;
	}
	for (int64_t at = first; at <= last; at++)
		part[2 * ((size_t)(-at) & (s->n - 1))] -= (float)(sum / n);
	return squares - sum * sum / n;
}

static void add_estimate(struct correlation *s, size_t lag, double ppm, double score)
{
	struct offset_list *l = s->out;
	int64_t at = s->origin + (int64_t)lag * s->bin + s->bin / 2;
	size_t worst = 0, same = SIZE_MAX;
	for (size_t i = 0; i < l->n; i++) {
		if (llabs(l->estimate[i].at_host - at) <= SAME_BINS * s->bin)
			same = i;
		if (l->estimate[i].score < l->estimate[worst].score)
			worst = i;
	}
	size_t to = same != SIZE_MAX ? same : l->n < ESTIMATES_MAX ? l->n : worst;
	if (to < l->n && l->estimate[to].score >= score)
		return;
	if (to == l->n)
		l->n++;
	l->estimate[to] = (struct offset_estimate){ .at_guest = s->interval.from + (s->interval.to - s->interval.from) / 2,
		.at_host = at, .ppm = ppm,
		.score = score };
}

/* Finds peaks in the real or imaginary part of the correlation. unit: one standard deviation of chance. */
static void find_peaks(struct correlation *s, double ppm, bool imaginary, double unit)
{
	const float *v = imaginary ? &s->sum->im : &s->sum->re;
	double floor_score = SCORE_MIN;
	for (size_t i = 0; i < s->lags; i++) {
		double score = v[2 * i] / unit;
		if (score <= floor_score || (i > 0 && v[2 * i - 2] > v[2 * i]) || (i + 1 < s->lags && v[2 * i + 2] > v[2 * i]))
			continue;
		add_estimate(s, i, ppm, score);
		if (s->out->n < ESTIMATES_MAX)
			continue;
		floor_score = s->out->estimate[0].score;
		for (size_t k = 1; k < ESTIMATES_MAX; k++)
			floor_score = fmin(floor_score, s->out->estimate[k].score);
	}
}

/* Correlates two drifts in one transform, one in the real and one in the imaginary part. */
static void correlate_drifts(struct correlation *s, double ppm_re, double ppm_im)
{
	double squares[2] = { 0, 0 };
	memset(s->sum, 0, s->n * sizeof *s->sum);
	for (unsigned c = 0; c < s->cpus; c++) {
		memset(s->work, 0, s->n * sizeof *s->work);
		squares[0] += activity_signal(s, s->cpu[c], ppm_re, false, s->work);
		squares[1] += activity_signal(s, s->cpu[c], ppm_im, true, s->work);
		fft_forward(&s->fft, s->work);
		for (size_t i = 0; i < s->n; i++) {
			struct fft_value a = s->work[i], b = s->window[c][i];
			s->sum[i].re += a.re * b.re - a.im * b.im;
			s->sum[i].im += a.re * b.im + a.im * b.re;
		}
	}
	fft_inverse(&s->fft, s->sum);
	find_peaks(s, ppm_re, false, (double)s->n * sqrt(squares[0] + 1e-9));
	if (ppm_im != ppm_re)
		find_peaks(s, ppm_im, true, (double)s->n * sqrt(squares[1] + 1e-9));
}

/* Chooses the guest CPUs with most activity in the interval that have a thread on the host. */
static void choose_cpus(struct correlation *s)
{
	size_t len[CPUS_MAX];
	for (unsigned c = 0; c < s->evidence->activity->cpus; c++) {
		const struct activity_cpu *cpu = &s->evidence->activity->cpu[c];
		size_t n = activity_find(cpu, s->interval.to + 1) - activity_find(cpu, s->interval.from), at = s->cpus;
		bool has = false;
		for (size_t i = 0; i < s->evidence->vm->vcpus; i++)
			has = has || s->evidence->vm->vcpu[i].number == c;
		if (!has || n == 0 || (at == CPUS_MAX && len[--at] >= n))
			continue;
		for (; at > 0 && len[at - 1] < n; at--) {
			len[at] = len[at - 1];
			s->cpu[at] = s->cpu[at - 1];
		}
		len[at] = n;
		s->cpu[at] = c;
		s->cpus += s->cpus < CPUS_MAX;
	}
}

ORDER_BY(by_score, struct offset_estimate, FALLING(score))

/* Transforms the host's signals, rotated so that bin `margin` becomes bin 0 and earlier bins wrap to the end. */
static void transform_windows(struct correlation *s, size_t margin)
{
	for (unsigned c = 0; c < s->cpus; c++) {
		window_signal(s, s->cpu[c], s->window[c]);
		memcpy(s->work, s->window[c], margin * sizeof *s->work);
		memmove(s->window[c], s->window[c] + margin, (s->n - margin) * sizeof *s->work);
		memcpy(s->window[c] + s->n - margin, s->work, margin * sizeof *s->work);
		fft_forward(&s->fft, s->window[c]);
	}
}

void cross_correlate(const struct evidence *evidence, struct ns_interval interval, struct ns_interval range, int64_t bin,
                     struct offset_list *out)
{
	struct correlation s = { .evidence = evidence, .interval = interval, .bin = bin, .out = out };
	int64_t half = (interval.to - interval.from) / 2 + bin;
	half += half / 1000;  /* allowance for the drift */
	size_t margin = (size_t)(half / bin) + 2;
	choose_cpus(&s);
	if (s.cpus == 0 || range.to < range.from || 4 * margin > FFT_MAX)
		return;
	size_t all = (size_t)((range.to - range.from) / bin) + 1;
	for (s.n = 1024; s.n < FFT_MAX && s.n < all + 2 * margin; s.n *= 2)
		;
	fft_init(&s.fft, s.n);
	s.sum = mem_new(s.n, sizeof *s.sum);
	s.work = mem_new(s.n, sizeof *s.work);
	for (unsigned c = 0; c < s.cpus; c++)
		s.window[c] = mem_new(s.n, sizeof **s.window);
	/* a drift that is wrong by half a step smears the ends of the interval over one bin */
	double step = 4e6 * (double)bin / (double)(interval.to - interval.from + 1);
	/* the interval extends `margin` bins to both sides of its middle; these bins wrap around to the end */
	for (size_t at = 0; at < all; at += s.n - 2 * margin) {
		s.lags = all - at < s.n - 2 * margin ? all - at : s.n - 2 * margin;
		s.origin = range.from + ((int64_t)at - (int64_t)margin) * bin;
		transform_windows(&s, margin);
		s.origin += (int64_t)margin * bin;
		for (double ppm = 0; ppm <= DRIFT_MAX && work_spend(evidence->activity->budget, s.n * s.cpus); ppm += step)
			correlate_drifts(&s, ppm, -ppm);
	}
	for (unsigned c = 0; c < s.cpus; c++)
		free(s.window[c]);
	free(s.sum);
	free(s.work);
	fft_release(&s.fft);
	qsort(out->estimate, out->n, sizeof *out->estimate, by_score);
}
