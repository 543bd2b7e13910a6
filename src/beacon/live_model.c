/* srbn_model(): predicts the provider's part of a request in the running service, from a model of `latency train`. */
#include "beacon/live_counters.h"

#include <errno.h>
#include <locale.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/gp_model.h"

static const char *const input_name[LIVE_INPUTS] = {
	"out_own", "out_flight", "vmm", "wait", "blocked", "switches", "exits", "wakeups",
};

/* A loaded model; input[j]: the input of a request that is input j of the model. */
struct live_model {
	struct gp *gp;
	int input[GP_FEATURES];
};

static _Atomic(struct live_model *) loaded;

static int input_index(const char *name)
{
	for (int i = 0; i < LIVE_INPUTS; i++)
		if (strcmp(input_name[i], name) == 0)
			return i;
	return -1;
}

static struct gp *read_file(const char *path)
{
	FILE *f = fopen(path, "re");
	unsigned line;
	const char *why;
	if (!f)
		return NULL;
	/* The number format must not depend on the service's locale. */
	locale_t c = newlocale(LC_NUMERIC_MASK, "C", (locale_t)0), before = uselocale(c);
	struct gp *g = gp_read(f, &line, &why);
	const int saved = g ? 0 : why ? EINVAL : errno;
	uselocale(before);
	freelocale(c);
	fclose(f);
	errno = saved;
	return g;
}

static struct live_model *load_model(const char *path)
{
	const int saved = errno;
	struct gp *g = read_file(path);
	if (!g)
		return NULL;
	struct live_model *m = calloc(1, sizeof *m);
	int failed = !m ? ENOMEM : !g->inverse ? ENOTSUP : 0;
	for (size_t j = 0; !failed && j < g->d; j++)
		if ((m->input[j] = input_index(g->in[j].name)) < 0)
			failed = EDOM;
	if (failed) {
		gp_free(g);
		free(m);
		errno = failed;
		return NULL;
	}
	m->gp = g;
	errno = saved;
	return m;
}

int srbn_model(const char *path)
{
	struct live_model *m = path ? load_model(path) : NULL;
	if (path && !m)
		return -1;
	struct live_model *old = atomic_exchange(&loaded, m);
	if (old)
		gp_free(old->gp);
	free(old);
	return 0;
}

static int64_t clamp_ns(double ns, int64_t latency)
{
	return !(ns > 0) ? 0 : ns >= (double)latency ? latency : (int64_t)llround(ns);
}

void live_model_predict(const double input[LIVE_INPUTS], struct srbn_data *data)
{
	const struct live_model *m = atomic_load_explicit(&loaded, memory_order_acquire);
	double x[GP_FEATURES];
	if (!m)
		return;
	for (size_t j = 0; j < m->gp->d; j++) {
		const struct gp_input *in = &m->gp->in[j];
		x[j] = input[m->input[j]];
		/* An input that was constant in the training has no effect. */
		if (isnan(x[j]) && in->min < in->max) {
			data->flags |= SRBN_MODEL_LACKS_INPUT;
			return;
		}
		if (isnan(x[j]))
			x[j] = in->min;
	}
	const struct gp_prediction p = gp_predict_row(m->gp, x);
	if (!isfinite(p.mean) || !isfinite(p.low) || !isfinite(p.high))
		return;
	data->predicted_ns = clamp_ns(p.mean, data->latency_ns);
	data->predicted_low_ns = clamp_ns(p.low, data->latency_ns);
	data->predicted_high_ns = clamp_ns(p.high, data->latency_ns);
	data->flags |= p.outside ? SRBN_MODEL_OUTSIDE : 0;
}
