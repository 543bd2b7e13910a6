/* Training sets: rows of several runs, each with its shift against the baseline (paper, section 3.5). */
#include "base/base.h"
#include "latency/latency.h"

#include <math.h>

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
	free(t->run);
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
	t->run = mem_resize(t->run, t->rows + n, sizeof *t->run);
	for (size_t i = 0; i < n; i++)
		t->run[t->rows + i] = t->runs;
	t->runs++;
	t->rows += n;
}

void training_add_requests(struct training *t, const struct requests *run, const struct requests *baseline)
{
	const char *missing;
	double *x = requests_matrix(run, (const char *const *)t->name, t->d, &missing);
	double *latency = mem_new(run->len, sizeof *latency), *base = requests_sorted(baseline, METRIC_LATENCY);
	for (size_t i = 0; i < run->len; i++)
		latency[i] = (double)request_latency(&run->row[i]);
	training_add(t, x, latency, run->len, base, baseline->len);
	free(x);
	free(latency);
	free(base);
}

/* ---- Learning ----------------------------------------------------------------------------------------------- */

#define FOLDS 6    /* maximum number of trainings for cross-validation */
#define FOLD_ROWS 128  /* rows of each training: the deviation between runs shows in a rough model, too */
#define VALIDATED_ROWS_MIN 30  /* fewest predicted rows within the trained range */

/* Copies the rows of the runs in this fold (in) or in the other folds (!in). Returns their number. */
static size_t copy_fold_rows(const struct training *t, unsigned folds, unsigned fold, bool in, double *x, double *y)
{
	size_t n = 0;
	for (size_t i = 0; i < t->rows; i++) {
		if ((t->run[i] % folds == fold) != in)
			continue;
		memcpy(x + n * t->d, t->x + i * t->d, t->d * sizeof *x);
		y[n++] = t->y[i];
	}
	return n;
}

/* Trains without a fold and predicts its rows. For each row within the trained range, appends the spread with which the
 * interval just contains the row. Returns the new length of spread[]; unchanged if the training fails. */
static size_t validate_fold(const struct training *t, unsigned folds, unsigned fold, const struct gp_options *options,
                       double *x, double *y, double *spread, size_t len)
{
	size_t n = copy_fold_rows(t, folds, fold, false, x, y);
	struct gp *g = gp_train((const char *const *)t->name, t->d, x, y, n, options, NULL);
	if (!g)
		return len;
	n = copy_fold_rows(t, folds, fold, true, x, y);
	struct gp_prediction *a = mem_new(n, sizeof *a);
	if (gp_predict(g, x, n, a, NULL) == 0) {
		for (size_t i = 0; i < n; i++) {
			double error = y[i] - a[i].mean, half = a[i].high - a[i].mean, beyond = error * error - half * half;
			double effect = gp_effect(g, a[i].mean);
			if (!a[i].outside && effect > 0)
				spread[len++] = beyond > 0 ? sqrt(beyond) / effect : 0;
		}
	}
	free(a);
	gp_free(g);
	return len;
}

static double estimate_run_spread(const struct training *t)
{
	const struct gp_options rough = { .rows = FOLD_ROWS };
	unsigned folds = t->runs < FOLDS ? t->runs : FOLDS;
	double *x = mem_new(t->rows * t->d, sizeof *x), *y = mem_new(t->rows, sizeof *y);
	double *spread = mem_new(t->rows, sizeof *spread), chosen = 0;
	size_t len = 0;
	for (unsigned fold = 0; fold < folds; fold++)
		len = validate_fold(t, folds, fold, &rough, x, y, spread, len);
	if (len >= VALIDATED_ROWS_MIN) {
		stats_sort(spread, len);
		chosen = stats_quantile(spread, len, 0.95);
	}
	free(x);
	free(y);
	free(spread);
	return chosen;
}

struct gp *training_learn(const struct training *t, const struct gp_options *options, struct error *err)
{
	struct gp *g = gp_train((const char *const *)t->name, t->d, t->x, t->y, t->rows, options, err);
	if (g && t->runs >= 3)
		gp_set_spread(g, estimate_run_spread(t));
	return g;
}
