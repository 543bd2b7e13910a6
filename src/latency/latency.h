/* Whose fault is this request?  Latency attribution after Soroban (2015).
 *
 * Two answers side by side.  *Measured*: hard bounds of the provider's share of a request, from the state sums of a
 * history.  *Predicted*: a Gaussian process regression trained on the percentile shift between a run without and
 * runs with contention.  Times are ns unless a name says otherwise; tables of numbers are row-major doubles. */
#ifndef STEALSCOPE_LATENCY_LATENCY_H
#define STEALSCOPE_LATENCY_LATENCY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/error.h"
#include "base/notes.h"
#include "query/query.h"

/* ---- Gaussian process regression (gp.c, gp_fit.c, gp_file.c) ------------------------------------------------ */

#define GP_FEATURES 32  /* most inputs of one model */
#define GP_NAME 64      /* bytes of an input's name, NUL included */

struct gp;

struct gp_options {
	unsigned rows;   /* rows of the training subset, 0 = 256; cost is cubic in it */
	unsigned steps;  /* of the likelihood's ascent, 0 = 60 */
};

struct gp_answer {
	double mean, low, high;  /* low..high: 95 % of the targets of such rows are expected within */
	bool outside;            /* an input lies outside the range seen in training: do not trust */
};

/* Learns y from x (n rows of d inputs).  The result depends neither on the order of the rows nor on chance.
 * NULL on failure: fewer than 8 rows, or a value that is not finite. */
struct gp *gp_train(const char *const *name, size_t d, const double *x, const double *y, size_t n,
                    const struct gp_options *options, struct error *err);
/* How far a new run's effect may lie off, relative to the effect: what the likelihood of rows cannot know.  It widens
 * every interval; 0 at first. */
void gp_set_spread(struct gp *g, double spread);
double gp_spread(const struct gp *g);
/* The size of an effect that its spread refers to: |mean|, but not below a tenth of the targets' deviation. */
double gp_effect(const struct gp *g, double mean);
int gp_predict(const struct gp *g, const double *x, size_t n, struct gp_answer *out, struct error *err);
void gp_free(struct gp *g);  /* NULL is allowed */

size_t gp_inputs(const struct gp *g);
const char *gp_input(const struct gp *g, size_t i);                   /* its name, as given: escape before printing */
void gp_range(const struct gp *g, size_t i, double *min, double *max); /* seen in training */
size_t gp_rows(const struct gp *g);                                   /* rows of the subset kept */

/* A model is a text file; written to a temporary name and renamed. */
int gp_save(const struct gp *g, const char *path, struct error *err);
bool gp_is_one(const char *path);  /* begins as a model does */
struct gp *gp_load(const char *path, struct error *err);

/* ---- Distributions (stats.c) -------------------------------------------------------------------------------- */

/* The p-quantile (0 <= p <= 1) of n sorted values, linear between the (i + 1/2) / n-quantiles (Hazen). n >= 1. */
double stats_quantile(const double *sorted, size_t n, double p);
void stats_sort(double *v, size_t n);
double stats_correlation(const double *a, const double *b, size_t n);  /* Pearson; 0 when one is constant */

/* The paper's training target (section 3.5): how much longer each of the n latencies is than the latency at the same
 * percentile of the baseline.  Ties share their middle percentile; equal distributions give exactly 0. */
void stats_shift(const double *latency, size_t n, const double *baseline, size_t baselines, double *shift);

/* The clusters of a distribution: maximal runs between deep valleys of its histogram, largest first. */
struct cluster { double median, share; };
size_t stats_clusters(const double *v, size_t n, struct cluster *out, size_t room);

/* ---- Tables from csv files (csv_table.c) -------------------------------------------------------------------- */

struct table {
	char **column;     /* names: escape before printing */
	double *cell;      /* NaN where a field is not a number */
	size_t *line;      /* of each row, in the file */
	size_t columns, rows;
};

/* Reads a csv file with a header line.  Fields that are no number become NaN. */
int table_read(struct table *t, const char *path, struct error *err);
void table_release(struct table *t);
/* Refuses a column with a field that is no number within [low, high]; says where it is. */
int table_check(const struct table *t, int column, double low, double high, const char *path, struct error *err);
int table_find(const struct table *t, const char *column);  /* index or -1 */
/* Keeps the rows for which keep() is true; returns how many were dropped. */
size_t table_filter(struct table *t, bool (*keep)(const struct table *t, const double *row));
/* The rule by which Soroban's authors dropped rows (wall time beyond latency, wrapped counter): true = keep.
 * Keeps everything of a table without their columns. */
bool table_soroban_keep(const struct table *t, const double *row);

/* ---- Requests (request.c, attribution.c) ---------------------------------------------------------------------- */

/* X(field, unit for people, what it means): the inputs of the prediction, each from state queries alone. */
#define REQUEST_FEATURES(X) \
	X(out_own, "ns", "vCPU scheduled out while the request executed") \
	X(out_flight, "ns", "vCPU scheduled out while the server thread had work") \
	X(vmm, "ns", "hypervisor executing on behalf of the server's vCPU") \
	X(wait, "ns", "server thread waiting in the guest's run queue") \
	X(blocked, "ns", "server thread sleeping") \
	X(switches, "", "times that the vCPU was scheduled out") \
	X(exits, "", "times that the vCPU left guest mode") \
	X(wakeups, "", "times that the server thread was woken")

#define REQUEST_FIELD(field, unit, help) int64_t field;
struct request_features { REQUEST_FEATURES(REQUEST_FIELD) };
#undef REQUEST_FIELD
#define REQUEST_ONE(field, unit, help) + 1
enum { REQUEST_FEATURE_COUNT = 0 REQUEST_FEATURES(REQUEST_ONE) };
#undef REQUEST_ONE
extern const char *const request_feature_name[REQUEST_FEATURE_COUNT];

struct request {
	char *machine, *id;      /* raw names: escape before printing */
	char *container;         /* of a server on the host: the container that it lives in, or NULL */
	uint32_t state, thread;  /* attributes */
	int32_t tid;             /* of the server thread at the start, -1 unknown */
	int64_t start, end;      /* closed, as every interval: latency = end - start + 1 */
	int64_t executing;       /* ns between start/resume and yield/end */
	int64_t low, high;       /* hard bounds of the provider's part of the latency, see attribution.c */
	int64_t unknown;         /* ns of lost events, part of `high` */
	struct request_features feature;
	char *culprit;           /* who had the CPU longest meanwhile ("host/215 burnP6", escaped), or NULL */
	struct gp_answer predicted;  /* valid when `has_prediction` */
	bool has_prediction;
};

struct requests {
	struct request *row;
	size_t len, cap;
	size_t cut;              /* requests left out: not complete within the history */
};

struct requests_options {
	const char *machine, *id;  /* only these; NULL = all.  machine: a container's name as well */
	int64_t from, to;          /* that meet the window; from > to = all */
	bool culprits;             /* find them: needs one flow per request */
	bool plain;                /* who answers, when, and nothing of how: bounds and features stay 0 */
};

/* All complete requests of the history in order of their start. */
int requests_read(const struct topo *topo, const struct requests_options *options, struct requests *out,
                  struct notes *notes, struct error *err);
void requests_release(struct requests *r);
/* Fills the culprit of a request that was read without: the longest foreign entry of the server thread's flow. */
int request_find_culprit(const struct topo *topo, struct request *r, struct error *err);
int64_t request_latency(const struct request *r);
void request_features_get(const struct request *r, double out[REQUEST_FEATURE_COUNT]);

/* Fills `predicted` of every request; says in notes how many lie outside the model's range.  The prediction is cut to
 * [0, latency].  Refused when the model has inputs that requests of a history do not have. */
int requests_predict(struct requests *r, const struct gp *g, struct notes *notes, struct error *err);

/* What a report can be asked about a set of requests. */
#define REQUEST_METRICS(X) \
	X(METRIC_LATENCY, "latency") \
	X(METRIC_LOW, "provider_low")      /* measured: lower bound */ \
	X(METRIC_HIGH, "provider_high")    /* measured: upper bound */ \
	X(METRIC_PREDICTED, "predicted") \
	X(METRIC_CUSTOMER, "customer")     /* latency - upper bound */ \
	X(METRIC_LOW_SHARE, "low_share")   /* of the latency, 0 .. 1 */ \
	X(METRIC_HIGH_SHARE, "high_share") \
	X(METRIC_PREDICTED_SHARE, "predicted_share")
#define METRIC_CODE(code, name) code,
enum request_metric { REQUEST_METRICS(METRIC_CODE) METRIC_COUNT };
#undef METRIC_CODE
extern const char *const request_metric_name[METRIC_COUNT];

double request_metric(const struct request *r, enum request_metric m);
/* All values of one metric, sorted; the caller frees.  n = r->len. */
double *requests_sorted(const struct requests *r, enum request_metric m);

/* ---- Training sets (training.c) ------------------------------------------------------------------------------ */

/* Rows of inputs and targets, gathered run by run. */
struct training {
	size_t d;                       /* inputs */
	char *name[GP_FEATURES];
	double *x, *y;
	unsigned *run;                  /* that each row belongs to */
	size_t rows;
	unsigned runs;
};

void training_init(struct training *t, const char *const *name, size_t d);
void training_release(struct training *t);
/* Adds a run: n rows of d inputs, whose targets are the percentile shift of `latency` against the baseline's. */
void training_add(struct training *t, const double *x, const double *latency, size_t n, const double *baseline,
                  size_t baselines);
void training_add_requests(struct training *t, const struct requests *run, const struct requests *baseline);
/* Learns from all runs.  With three or more, each is also predicted from the others, and the spread is chosen so that
 * the interval holds 95 % of what was left out: rows of one run resemble each other, a new run does not. */
struct gp *training_learn(const struct training *t, const struct gp_options *options, struct error *err);

/* ---- Assertions (assertion.c) ------------------------------------------------------------------------------- */

/* "p99.provider<2ms": QUANTITY.METRIC OPERATOR LIMIT.  QUANTITY: pNN[.N], min, max, mean.  METRIC: one of above, or
 * "provider" (the measured upper bound) or "share" (high_share).  OPERATOR: < <= > >=.  LIMIT: a duration, or a
 * number or percentage for shares. */
struct assertion {
	enum { QUANTITY_PERCENTILE, QUANTITY_MEAN } quantity;
	double p;                /* 0 .. 1 */
	enum request_metric metric;
	enum { BELOW, AT_MOST, ABOVE, AT_LEAST } op;
	double limit;            /* ns, or a share */
};
int assertion_parse(const char *text, struct assertion *a, struct error *err);
/* True when it holds; *value is what was measured.  n must not be 0. */
bool assertion_holds(const struct assertion *a, const struct requests *r, double *value);
bool metric_is_share(enum request_metric m);

/* ---- Pictures in text (plot.c) ------------------------------------------------------------------------------ */

/* A horizontal bar of `width` cells: '#' up to low, '+' up to high (both 0 .. 1), '.' for the rest. */
void plot_bar(char *buf, size_t size, int width, double low, double high);
/* Points as a text plot (Fig. 2): both axes from 0, counts as . : * #, the line y = x as /. */
void plot_scatter(FILE *out, const double *x, const double *y, size_t n, const char *xlabel, const char *ylabel);
/* A heat map (Fig. 3): value[row * columns + column], NaN = no data; darker letters for more.  fmt prints a value. */
void plot_heat(FILE *out, const double *value, const char *const *row, size_t rows, const char *const *column,
               size_t columns, char *(*fmt)(char *buf, size_t size, double v));

#endif
