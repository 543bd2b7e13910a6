/* Training sets: rows of several runs, each with its shift against the baseline (paper, section 3.5). */
#include "latency/latency.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void training_init(struct training *t, const char *const *name, size_t d)
{
	*t = (struct training){ .d = d < GP_FEATURES ? d : GP_FEATURES };
	for (size_t j = 0; j < t->d; j++)
		t->name[j] = mem_dup(name[j]);
}

void training_release(struct training *t)
{
	for (size_t j = 0; j < t->d; j++)
		free(t->name[j]);
	free(t->x);
	free(t->y);
	*t = (struct training){ .d = 0 };
}

void training_add(struct training *t, const double *x, const double *latency, size_t n, const double *baseline,
                  size_t baselines)
{
	if (n == 0 || baselines == 0)
		return;
	t->x = mem_resize(t->x, (t->rows + n) * t->d, sizeof *t->x);
	t->y = mem_resize(t->y, t->rows + n, sizeof *t->y);
	memcpy(t->x + t->rows * t->d, x, n * t->d * sizeof *x);
	stats_shift(latency, n, baseline, baselines, t->y + t->rows);
	t->rows += n;
}

void training_add_requests(struct training *t, const struct requests *run, const struct requests *baseline)
{
	double *x = mem_new(run->len * REQUEST_FEATURE_COUNT, sizeof *x), *latency = mem_new(run->len, sizeof *latency);
	double *base = requests_sorted(baseline, METRIC_LATENCY);
	for (size_t i = 0; i < run->len; i++) {
		request_features_get(&run->row[i], x + i * REQUEST_FEATURE_COUNT);
		latency[i] = (double)request_latency(&run->row[i]);
	}
	training_add(t, x, latency, run->len, base, baseline->len);
	free(x);
	free(latency);
	free(base);
}

struct gp *training_learn(const struct training *t, const struct gp_options *options, struct error *err)
{
	return gp_train((const char *const *)t->name, t->d, t->x, t->y, t->rows, options, err);
}
