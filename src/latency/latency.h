/* Latency attribution after Soroban (2015): the provider's part of a request's latency.
 *
 * There are two answers. Measured: hard bounds from a history's state sums. Predicted: a Gaussian process
 * regression, trained on the percentile shift between a run without contention and runs with contention. Times are in ns
 * unless noted; tables of numbers are row-major doubles. */
#pragma once

#include "base/base.h"
#include "base/gp_model.h"
#include "base/notes.h"
#include "query/query.h"

/* ---- Gaussian process regression (gp.c, gp_fit.c, gp_file.c) ------------------------------------------------ */

struct gp_options {
	unsigned rows;           /* training subset's rows, 0: 256; the cost is cubic */
	unsigned steps;          /* optimizer steps, 0: 60 */
};

/* Learns y from x (n rows of d inputs). The result depends neither on the row order nor on random numbers.
 * Returns NULL with *err on failure: fewer than 8 rows, or a value that is not finite. */
struct gp *gp_train(const char *const *name, size_t d, const double *x, const double *y, size_t n,
                    const struct gp_options *options, struct error *err);
/* Sets the deviation between runs, relative to the effect; the likelihood of rows cannot determine it. It widens every
 * interval. Initially 0. */
void gp_set_spread(struct gp *g, double spread);
double gp_spread(const struct gp *g);
int gp_predict(const struct gp *g, const double *x, size_t n, struct gp_prediction *out, struct error *err);

size_t gp_inputs(const struct gp *g);
const char *gp_input(const struct gp *g, size_t i);                   /* name as it was passed: escape it before printing */
void gp_range(const struct gp *g, size_t i, double *min, double *max); /* range of input i in the training rows */
size_t gp_rows(const struct gp *g);                                   /* training subset's rows */

/* Writes a model to a text file, atomically. */
int gp_save(const struct gp *g, const char *path, struct error *err);
bool gp_is_model_file(const char *path);  /* true if the file begins like a model */
struct gp *gp_load(const char *path, struct error *err);

/* ---- Distributions (stats.c) -------------------------------------------------------------------------------- */

/* Returns the p-quantile (0 <= p <= 1) of n >= 1 sorted values, linear between the (i + 1/2) / n-quantiles (Hazen). */
double stats_quantile(const double *sorted, size_t n, double p);
void stats_sort(double *v, size_t n);
double stats_correlation(const double *a, const double *b, size_t n);  /* Pearson correlation; 0 if one of them is
                                                                        * constant */

/* Computes the paper's training target (section 3.5): the difference between each of n latencies and the baseline's
 * latency at the same percentile. Equal latencies share their middle percentile; equal distributions differ by
 * exactly 0. */
void stats_shift(const double *latency, size_t n, const double *baseline, size_t baselines, double *shift);

/* Finds a distribution's clusters: ranges between deep valleys of its histogram, largest first. Returns their number. */
struct cluster { double median, share; };
size_t stats_clusters(const double *v, size_t n, struct cluster *out, size_t max_clusters);

/* ---- Tables from csv files (csv_table.c) -------------------------------------------------------------------- */

struct table {
	char **column;     /* names: escape before printing */
	double *cell;            /* values, row by row; NaN: the field is not a number */
	size_t *line;      /* line of each row in the file */
	size_t columns, rows;
};

/* Reads a csv file with a header line. Fields that are not numbers become NaN. */
int table_read(struct table *t, const char *path, struct error *err);
void table_release(struct table *t);
/* Fails, naming the line, if a field of the column is not a number within [low, high]. */
int table_check(const struct table *t, int column, double low, double high, const char *path, struct error *err);
int table_find(const struct table *t, const char *column);  /* the column's index; -1: none */
/* Keeps the rows for which keeps_row() returns true. Returns the dropped row count. */
size_t table_filter(struct table *t, bool (*keeps_row)(const struct table *t, const double *row));
/* The rule by which Soroban's authors dropped rows: wall time larger than latency, or a counter that wrapped around.
 * Returns true for other rows, and for tables without these columns. */
bool table_soroban_keeps_row(const struct table *t, const double *row);

/* ---- Requests (request.c, attribution.c) ---------------------------------------------------------------------- */

/* X(field, unit for people, meaning): the prediction's inputs. Each is computed from states only. */
#define REQUEST_FEATURES(X) \
	X(out_own, "ns", "vCPU scheduled out while the request executed") \
	X(out_flight, "ns", "vCPU scheduled out while the server thread had work") \
	X(vmm, "ns", "hypervisor executing on behalf of the server's vCPU") \
	X(wait, "ns", "server thread waiting in the guest's run queue") \
	X(blocked, "ns", "server thread sleeping") \
	X(switches, "", "number of times the vCPU was scheduled out") \
	X(exits, "", "number of VM exits of the vCPU") \
	X(wakeups, "", "number of times the server thread was woken")

/* The same for inputs that need the host's topology or hardware counters; -1: unknown (core_features.c). */
#define REQUEST_CORE_FEATURES(X) \
	X(shared, "ns", "server thread running beside a busy CPU of its core") \
	X(slow, "ns", "server thread running below 90 % of the base frequency") \
	X(moves, "", "moves of the server thread to another CPU of the host") \
	X(ipc, "per 1000 cycles", "instructions of the vCPU, or of a server thread of the host")

#define REQUEST_FIELD(field, unit, help) int64_t field;
struct request_features { REQUEST_FEATURES(REQUEST_FIELD) };
struct request_core { REQUEST_CORE_FEATURES(REQUEST_FIELD) };
#undef REQUEST_FIELD
#define REQUEST_ONE(field, unit, help) + 1
enum { REQUEST_FEATURE_COUNT = 0 REQUEST_FEATURES(REQUEST_ONE),
       REQUEST_INPUT_COUNT = REQUEST_FEATURE_COUNT REQUEST_CORE_FEATURES(REQUEST_ONE) };
#undef REQUEST_ONE
extern const char *const request_feature_name[REQUEST_FEATURE_COUNT];
extern const char *const request_input_name[REQUEST_INPUT_COUNT];  /* the names of both lists */

struct request {
	char *machine, *id;      /* names: escape before printing */
	char *container;         /* container of a server on the host; NULL: none */
	uint32_t state, thread;  /* ids of its attributes in the history */
	int32_t tid;             /* TID of the server thread at the start; -1: unknown */
	int64_t start, end;      /* interval, both ends included: latency = end - start + 1 */
	int64_t executing;       /* ns between start or resume, and yield or end */
	int64_t low, high;       /* hard bounds on the provider's part, ns; see attribution.c */
	int64_t unknown;         /* ns with lost events; included in `high` */
	struct request_features feature;
	char *label;             /* its text without values, such as a query, escaped; NULL: not recorded */
	char *culprit;           /* top culprit ("host/215 burnP6", escaped); NULL: none */
	struct request_core core;
	char *sharer;            /* longest user on the core's other CPUs, escaped; NULL: none */
	struct gp_prediction predicted;  /* valid if has_prediction */
	bool has_prediction;
	size_t span;             /* index of its span; only if read by spans_requests() */
};

struct requests {
	struct request *row;
	size_t len, cap;
	size_t cut;              /* skipped request count: they begin or end outside the recording */
	size_t dropped;          /* skipped probe requests without an end */
};

struct requests_options {
	const char *machine, *id;  /* filters; NULL: all requests. machine: may be a container */
	int64_t from, to;        /* only requests that intersect this window; from > to: all */
	bool culprits;           /* determine the culprits: computes one flow per request */
	bool cores;              /* determine the sharer, core features and counter features */
	bool plain;              /* read only server and times; bounds and features stay 0 */
};

/* Reads all complete requests of the history, ordered by start. */
int requests_read(const struct catalog *catalog, const struct requests_options *options, struct requests *out,
                  struct notes *notes, struct error *err);
void requests_release(struct requests *r);
/* Sorts by start (the first first), by latency or by the provider part's bound (the longest first). */
enum requests_order { REQUESTS_BY_START, REQUESTS_BY_LATENCY, REQUESTS_BY_PROVIDER };
void requests_sort(struct requests *r, enum requests_order order);
/* Fills the culprit if the request was read without culprits. */
int request_find_culprit(const struct catalog *catalog, struct request *r, struct error *err);
/* Fills the sharer, the core features and the counter features. */
int request_find_core(const struct catalog *catalog, struct request *r, struct error *err);
int64_t request_latency(const struct request *r);
void request_features_get(const struct request *r, double out[REQUEST_FEATURE_COUNT]);

/* Fills all inputs; NaN: unknown. */
void request_inputs_get(const struct request *r, double out[REQUEST_INPUT_COUNT]);
/* Fills name[] with the inputs that all runs have: those from states, and those from cores and counters that at least half
 * of each run's requests have. Returns their number. */
size_t requests_inputs(const struct requests *const *run, size_t runs, const char *name[REQUEST_INPUT_COUNT]);
/* Returns the matrix of these inputs, r->len x d; the caller frees it. An unknown value is replaced by the median of the
 * others. *missing: an input that no request has; NULL: none. */
double *requests_matrix(const struct requests *r, const char *const *name, size_t d, const char **missing);

/* Fills `predicted` of every request, limited to [0, latency]. Adds a note that counts the requests outside the
 * model's range. Fails if the model has inputs that a history's requests lack. */
int requests_predict(struct requests *r, const struct gp *g, struct notes *notes, struct error *err);

/* ---- Spans of distributed tracing (span_file.c, span_request.c) ---------------------------------------------- */

#define SPAN_TRACE_ID 32     /* id digits, hexadecimal */
#define SPAN_ID 16
#define SPAN_OWN_SCOPE "stealscope"  /* instrumentation scope that spans_parse() skips */
#define SPAN_HOST_KEYS 6
extern const char *const span_host_key[SPAN_HOST_KEYS];  /* attributes that may contain the machine's name */

/* The process that reported spans, by its resource's attributes. */
struct span_source {
	char *service;           /* NULL: not given */
	char *host[SPAN_HOST_KEYS];  /* each span_host_key's value; NULL: not given */
	int32_t pid;             /* process.pid; -1: not given */
	bool in_container;       /* pid may be a number of the container's own */
	char **attribute;        /* "KEY=VALUE" of its texts, for span_clocks.machine_of */
	size_t attributes, attributes_cap;
	char *resource, *scope;  /* its OTLP objects, JSON; NULL: none, or not spans->whole */
};

struct span {
	char trace[SPAN_TRACE_ID + 1], id[SPAN_ID + 1], parent[SPAN_ID + 1];  /* parent: "": none */
	char *name;              /* escape before printing */
	uint32_t source;         /* index into spans->source */
	int32_t tid;             /* thread.id; -1: not given */
	int64_t start, end;      /* ns since the epoch, CLOCK_REALTIME of the machine; end: exclusive */
	int64_t precision;       /* its source's time unit beyond 1 ns, or 0 */
	int kind;                /* OTLP's number, SPAN_KIND_...; 0: not given */
	char *json;              /* OTLP object, JSON; NULL: not spans->whole */
};

struct spans {
	struct span *span;
	size_t len, cap;
	struct span_source *source;
	size_t sources, sources_cap;
	size_t incomplete;       /* skipped span count: without ids, start or end */
	bool whole;              /* the objects are stored, to write them back */
};

/* Reads a span file, or its text: OTLP (JSON or protobuf), Jaeger or Zipkin (JSON). name: for messages. Call
 * spans_release(). */
int spans_read(struct spans *out, bool whole, const char *path, struct error *err);
int spans_parse(struct spans *out, bool whole, const char *text, size_t size, const char *name, struct error *err);
void spans_release(struct spans *s);

/* A machine's CLOCK_REALTIME. */
struct span_clock {
	const char *hostname;    /* the machine's other name; NULL: none */
	const char *vm_id;       /* its identity at the provider; NULL: unknown */
	bool known;              /* its trace has times since the epoch */
	int64_t begin, end;      /* its trace's first and last event, on this clock */
	int64_t error;           /* largest difference between its trace's times and CLOCK_REALTIME, ns */
};
struct span_clocks {
	struct span_clock *machine;  /* one for each machine in the catalog */
	int64_t (*to_host)(void *arg, uint32_t machine, int64_t t);  /* converts a time to the host's clock */
	int64_t (*to_machine)(void *arg, uint32_t machine, int64_t t);  /* the first time that to_host() converts to >= t */
	void *arg;
	const char *machine_of;  /* "KEY=VALUE=MACHINE,...": machines for sources with these attributes; NULL: none */
};

/* Reads the spans as requests, ordered by start. Skips spans from machines that are not in the catalog, with a note.
 * Options: machine, id (a span's name or id), from, to and culprits. */
int spans_requests(const struct catalog *catalog, const struct spans *spans, const struct span_clocks *clocks,
                   const struct requests_options *options, struct requests *out, struct notes *notes, struct error *err);

/* Parts of a server's time: a thread's, or a process's (the first one, in this order, that one of its threads is in). */
#define REQUEST_PARTS(X) \
	X(PART_SERVICE, "service")      /* executed; also while the hypervisor worked on the vCPU's behalf */ \
	X(PART_STOLEN, "stolen")        /* lost to the provider, not by a quota */ \
	X(PART_THROTTLED, "throttled")  /* lost by the VM's quota */ \
	X(PART_WAIT, "wait")            /* waited in its machine's run queue, container or process */ \
	X(PART_UNKNOWN, "unknown")      /* lost events, unknown thread, no stolen time source */ \
	X(PART_BETWEEN, "between")      /* slept: network, disks, timers, other machines */
#define PART_CODE(code, name) code,
enum request_part { REQUEST_PARTS(PART_CODE) REQUEST_PART_COUNT };
#undef PART_CODE
extern const char *const request_part_name[REQUEST_PART_COUNT];
struct request_parts { int64_t ns[REQUEST_PART_COUNT]; };  /* they add up to the time */
/* Adds a server's parts in [start, end]; without threads, all is unknown. */
int request_parts_add(const struct catalog *catalog, const uint32_t *thread, size_t threads, int64_t start, int64_t end,
                      struct request_parts *out, struct error *err);

/* ---- Distributed traces (traces.c) ----------------------------------------------------------------------------- */

/* An interval on a trace's critical path, in which one span waited for no child. Times are the host's. */
struct trace_step {
	size_t span;             /* index into spans; SIZE_MAX: between the spans in a trace with several first spans */
	int32_t machine;         /* index; -1: none */
	int64_t start, end;      /* closed */
	struct request_parts parts;
	bool by_process;         /* the parts are a process's, not the span's thread's */
	char *culprit;           /* top culprit, escaped; NULL: nothing was lost to the provider, or unknown */
};

/* The steps of a trace follow each other: their parts add up to end - start + 1. */
struct trace_path {
	size_t span;             /* its first span; SIZE_MAX: several */
	char id[SPAN_TRACE_ID + 1];
	int64_t start, end;
	size_t step, steps;      /* its steps are traces->step[step .. step + steps - 1], in time order */
	size_t spans;            /* its span count in the recording */
};

struct traces {
	struct trace_path *trace;   /* by start */
	size_t len, cap;
	struct trace_step *step;
	size_t steps, steps_cap;
	size_t asynchronous;     /* spans for which nothing waited: off the path */
};

/* Finds each trace's critical path, from its first span: the span that ends last among the children is on the path,
 * and before its start again. Children that outlive their parent, and consumers of messages, are asynchronous. requests: of
 * the spans. id: only traces with this id, or with this end; NULL: all. */
int traces_read(const struct catalog *catalog, const struct spans *spans, const struct span_clocks *clocks,
                const struct requests *requests, const char *id, struct traces *out, struct error *err);
void traces_release(struct traces *t);

/* A request's metrics. */
#define REQUEST_METRICS(X) \
	X(METRIC_LATENCY, "latency") \
	X(METRIC_LOW, "provider_low")      /* lower bound, measured */ \
	X(METRIC_HIGH, "provider_high")    /* upper bound, measured */ \
	X(METRIC_PREDICTED, "predicted") \
	X(METRIC_CUSTOMER, "customer")     /* latency - provider_high */ \
	X(METRIC_LOW_SHARE, "low_share")   /* share of the latency, 0 .. 1 */ \
	X(METRIC_HIGH_SHARE, "high_share") \
	X(METRIC_PREDICTED_SHARE, "predicted_share")
#define METRIC_CODE(code, name) code,
enum request_metric { REQUEST_METRICS(METRIC_CODE) METRIC_COUNT };
#undef METRIC_CODE
extern const char *const request_metric_name[METRIC_COUNT];

double request_metric(const struct request *r, enum request_metric m);
/* Returns the r->len values of a metric, sorted. The caller frees them. */
double *requests_sorted(const struct requests *r, enum request_metric m);

/* ---- Training sets (training.c) ------------------------------------------------------------------------------ */

/* Rows of inputs and targets, added run by run. */
struct training {
	size_t d;                /* input count */
	char *name[GP_FEATURES];
	double *x, *y;
	unsigned *run;           /* each row's run number */
	size_t rows;
	unsigned runs;
};

void training_init(struct training *t, const char *const *name, size_t d);
void training_release(struct training *t);
/* Adds a run of n rows with d inputs. Their targets are the percentile shifts of `latency` against the baseline. */
void training_add(struct training *t, const double *x, const double *latency, size_t n, const double *baseline,
                  size_t baselines);
void training_add_requests(struct training *t, const struct requests *run, const struct requests *baseline);
/* Learns from all runs. With three or more runs, each is also predicted from the others, and the spread is set so that
 * the interval contains 95 % of these rows: rows of one run are similar, a new run differs. */
struct gp *training_learn(const struct training *t, const struct gp_options *options, struct error *err);

/* ---- Assertions (assertion.c) ------------------------------------------------------------------------------- */

/* Assertion QUANTITY.METRIC OPERATOR LIMIT, "p99.provider<2ms". QUANTITY: pNN[.N], min, max, mean. METRIC: a name above,
 * "provider" (provider_high) or "share" (high_share). OPERATOR: < <= > >=. LIMIT: a duration; for shares a number or
 * percentage. */
struct assertion {
	enum { QUANTITY_PERCENTILE, QUANTITY_MEAN } quantity;
	double p;                /* percentile / 100 */
	enum request_metric metric;
	enum { BELOW, AT_MOST, ABOVE, AT_LEAST } op;
	double limit;            /* ns, or a share */
};
int assertion_parse(const char *text, struct assertion *a, struct error *err);
/* Returns true if the assertion holds; *value: the measured value. r must not be empty. */
bool assertion_holds(const struct assertion *a, const struct requests *r, double *value);
bool metric_is_share(enum request_metric m);

/* ---- Text plots (plot.c) ------------------------------------------------------------------------------------ */

/* Draws a horizontal bar of `width` cells: '#' up to low, '+' up to high (both 0 .. 1), '.' for the rest. */
void plot_bar(char *buf, size_t size, int width, double low, double high);
/* Draws points (Fig. 2): both axes start at 0, counts are . : * #, the line y = x is /. */
void plot_scatter(FILE *out, const double *x, const double *y, size_t n, const char *xlabel, const char *ylabel);
/* Draws a heat map (Fig. 3): value[row * columns + column], NaN: no data; larger values have darker letters. fmt prints
 * a value. */
void plot_heat(FILE *out, const double *value, const char *const *row, size_t rows, const char *const *column,
               size_t columns, char *(*fmt)(char *buf, size_t size, double v));
