/* A history's requests: one row for each complete request, its features, and predictions.
 *
 * A request is a maximal sequence of non-null intervals of /Requests/<machine>/<id>/State; an id that occurs again is
 * another request. Cost: one attribution per request (attribution.c) unless only times are read, and one flow per
 * request if culprits are requested. */
#include "base/base.h"
#include "latency/latency.h"

#include <math.h>

#include "latency/attribution.h"

#define FEATURE_NAME(field, unit, help) #field,
const char *const request_feature_name[REQUEST_FEATURE_COUNT] = { REQUEST_FEATURES(FEATURE_NAME) };
#undef FEATURE_NAME

/* Times are used as they are: a delay of x ns costs every request the same. Counts are divided by the seconds of
 * latency: a request that takes twice as long has twice the exits, whatever the cause. */
void request_features_get(const struct request *r, double out[REQUEST_FEATURE_COUNT])
{
	double seconds = (double)request_latency(r) / 1e9;
	size_t i = 0;
#define FEATURE_GET(field, unit, help) out[i++] = (double)r->feature.field / (*unit ? 1 : seconds);
	REQUEST_FEATURES(FEATURE_GET)
#undef FEATURE_GET
}

static void request_release(struct request *r)
{
	free(r->machine);
	free(r->container);
	free(r->id);
	free(r->label);
	free(r->culprit);
	free(r->sharer);
}

void requests_release(struct requests *r)
{
	for (size_t i = 0; i < r->len; i++)
		request_release(&r->row[i]);
	free(r->row);
	*r = (struct requests){ 0 };
}

/* ---- Reading ------------------------------------------------------------------------------------------------ */

struct request_scan {
	const struct catalog *catalog;
	const struct requests_options *options;
	struct requests *out;
	struct error *err;
};

bool request_in_window(const struct requests_options *o, int64_t start, int64_t end)
{
	return !o || o->from > o->to || (start <= o->to && end >= o->from);
}

/* Returns 1 if the request was cut off by the start or end of a trace instead of answered: its server thread vanishes
 * immediately after its end. Returns 0 if it was answered, -1 with *err. */
static int is_incomplete(struct request_scan *rd, uint32_t state, int64_t start, int64_t end)
{
	const struct history *h = rd->catalog->h;
	if (end >= history_end(h) || (start <= history_begin(h) && history_first(h) < history_begin(h)))
		return 1;  /* at the start of a history that was cut from another one */
	struct interval first, tid, status;
	uint32_t id = history_parent(h, state), thread = history_child_named(h, id, request_schema[REQUEST_THREAD].name);
	if (history_stab(h, state, start, &first, rd->err))
		return -1;
	/* A request with a first state of yielded or unknown began before the trace. */
	if (strcmp(history_state_name(h, state, (unsigned)first.value), "running") != 0)
		return 1;
	if (history_stab(h, state, end, &first, rd->err))
		return -1;
	if (strcmp(history_state_name(h, state, (unsigned)first.value), "dropped") == 0) {
		rd->out->dropped++;
		return 1;
	}
	if (thread == HISTORY_NONE)
		return 0;
	if (history_stab(h, thread, end, &tid, rd->err))
		return -1;
	int machine = catalog_find_machine(rd->catalog, history_name(h, history_parent(h, id)));
	if (machine < 0 || tid.value < 0 || tid.value > INT32_MAX)
		return 0;
	int at = catalog_find_thread(rd->catalog, (uint32_t)machine, (int32_t)tid.value);
	if (at < 0 || rd->catalog->thread[at].status == HISTORY_NONE)
		return 0;
	if (history_stab(h, rd->catalog->thread[at].status, end + 1, &status, rd->err))
		return -1;
	return status.value == HISTORY_NULL && status.start == end + 1;
}

/* Returns the label of a request at its start; NULL: none. *failed is set with rd->err. */
static char *label_of(struct request_scan *rd, uint32_t id, int64_t start, bool *failed)
{
	const struct history *h = rd->catalog->h;
	const uint32_t attr = history_child_named(h, id, request_schema[REQUEST_LABEL].name);
	struct interval iv;
	if (attr == HISTORY_NONE || history_type(h, attr) != HISTORY_STRING)
		return NULL;
	*failed = history_stab(h, attr, start, &iv, rd->err) < 0;
	if (*failed || iv.value == HISTORY_NULL)
		return NULL;
	char text[256];
	return mem_dup(text_escape(text, sizeof text, history_string(h, iv.value)));
}

/* Adds the request of non-null states within [start, end], unless options exclude it. */
static int add_request(struct request_scan *rd, uint32_t state, int64_t start, int64_t end)
{
	const struct history *h = rd->catalog->h;
	if (!request_in_window(rd->options, start, end))
		return 0;
	const size_t dropped = rd->out->dropped;
	int cut = is_incomplete(rd, state, start, end);
	if (cut) {
		rd->out->cut += rd->out->dropped == dropped;
		return cut < 0 ? -1 : 0;
	}
	uint32_t id = history_parent(h, state), machine = history_parent(h, id);
	bool failed = false;
	char *label = label_of(rd, id, start, &failed);
	if (failed)
		return -1;
	struct request *r = ARRAY_PUSH(rd->out->row, rd->out->len, rd->out->cap);
	*r = (struct request){
		.machine = mem_dup(history_name(h, machine)),
		.id = mem_dup(history_name(h, id)),
		.state = state,
		.thread = history_child_named(h, id, request_schema[REQUEST_THREAD].name),
		.start = start,
		.end = end,
		.core = { -1, -1, -1, -1 },
		.label = label,
	};
	const bool plain = rd->options && rd->options->plain;
	if (plain ? attribute_server(rd->catalog, r, rd->err) : attribute_request(rd->catalog, r, rd->err))
		return -1;
	const char *only = rd->options ? rd->options->machine : NULL;
	if (only && strcmp(only, r->machine) && (!r->container || strcmp(only, r->container))) {
		request_release(r);
		rd->out->len--;
		return 0;
	}
	if (rd->options && (rd->options->culprits || rd->options->cores) && request_find_core(rd->catalog, r, rd->err))
		return -1;
	return rd->options && rd->options->culprits ? request_find_culprit(rd->catalog, r, rd->err) : 0;
}

/* Adds all requests of one id. */
static int add_attribute(void *arg, uint32_t attr)
{
	struct request_scan *rd = arg;
	const struct history *h = rd->catalog->h;
	const struct requests_options *o = rd->options;
	uint32_t id = history_parent(h, attr);
	if (history_type(h, attr) != HISTORY_STATE)
		return 0;
	if (o && o->id && strcmp(o->id, history_name(h, id)))
		return 0;
	struct history_cursor c;
	struct interval iv;
	int64_t start = 0, end = 0;
	bool open = false;
	int more;
	if (history_range(&c, h, attr, history_begin(h), history_end(h), rd->err))
		return -1;
	while ((more = history_range_next(&c, &iv, rd->err)) > 0) {
		if (iv.value == HISTORY_NULL) {
			if (open && add_request(rd, attr, start, end))
				return -1;
			open = false;
			continue;
		}
		if (!open)
			start = iv.start;
		open = true;
		end = iv.end;
	}
	if (more < 0)
		return -1;
	return open ? add_request(rd, attr, start, end) : 0;
}

ORDER_BY(compare_start, struct request, RISING(start) RISING(end) RISING_TEXT(machine) RISING_TEXT(id))

static int compare_latency(const void *pa, const void *pb)
{
	const int64_t a = request_latency(pa), b = request_latency(pb);
	return a != b ? (a < b) - (a > b) : compare_start(pa, pb);
}

static int compare_provider(const void *pa, const void *pb)
{
	const int64_t a = ((const struct request *)pa)->high, b = ((const struct request *)pb)->high;
	return a != b ? (a < b) - (a > b) : compare_latency(pa, pb);
}

void requests_sort(struct requests *r, enum requests_order order)
{
	static int (*const compare[])(const void *, const void *) = { [REQUESTS_BY_START] = compare_start,
		[REQUESTS_BY_LATENCY] = compare_latency, [REQUESTS_BY_PROVIDER] = compare_provider };
	ARRAY_SORT(r->row, r->len, compare[order]);
}

void requests_note_cut(const struct catalog *catalog, size_t cut, struct notes *notes)
{
	char from[TIME_TEXT], to[TIME_TEXT];
	const int64_t begin = history_begin(catalog->h), end = history_end(catalog->h);
	note_add(notes, REQUESTS_CUT, NULL, cut, time_date(from, begin, 3), time_date(to, end, 3));
}

int requests_read(const struct catalog *catalog, const struct requests_options *options, struct requests *out,
                  struct notes *notes, struct error *err)
{
	struct request_scan rd = { catalog, options, out, err };
	*out = (struct requests){ 0 };
	if (history_match(catalog->h, "/Requests/*/*/State", add_attribute, &rd)) {
		error_wrap(err, "requests");
		requests_release(out);
		return -1;
	}
	requests_sort(out, REQUESTS_BY_START);
	if (out->cut)
		requests_note_cut(catalog, out->cut, notes);
	if (out->dropped)
		note_add(notes, REQUESTS_DROPPED, NULL, out->dropped);
	size_t lost = 0;
	char which[64];
	for (size_t i = 0; i < out->len; i++)
		lost += out->row[i].unknown > 0;
	if (lost)
		note_add(notes, REQUESTS_LOST_EVENTS, NULL, text_count_of_all(which, lost, out->len, "request"));
	return 0;
}

/* ---- Prediction --------------------------------------------------------------------------------------------- */

static void clamp_prediction(struct gp_prediction *a, double latency)
{
	a->mean = fmin(fmax(a->mean, 0), latency);
	a->low = fmin(fmax(a->low, 0), latency);
	a->high = fmin(fmax(a->high, 0), latency);
}

static void note_outside(const struct requests *r, const struct gp *g, const double *x, size_t outside,
                         struct notes *notes)
{
	size_t d = gp_inputs(g), worst = 0, max_outside = 0;
	for (size_t j = 0; j < d; j++) {
		double min, max;
		size_t n = 0;
		gp_range(g, j, &min, &max);
		for (size_t i = 0; i < r->len; i++)
			n += x[i * d + j] < min || x[i * d + j] > max;
		if (n > max_outside) {
			max_outside = n;
			worst = j;
		}
	}
	char which[64];
	note_add(notes, MODEL_RANGE, NULL, gp_input(g, worst), text_count_of_all(which, outside, r->len, "request"));
}

int requests_predict(struct requests *r, const struct gp *g, struct notes *notes, struct error *err)
{
	size_t d = gp_inputs(g), outside = 0;
	const char *name[GP_FEATURES], *missing;
	for (size_t j = 0; j < d; j++)
		name[j] = gp_input(g, j);
	double *x = requests_matrix(r, name, d, &missing);
	if (missing) {
		free(x);
		return error_set(err, STATUS_INPUT, "train on histories with the same facts, not on another tool's csv; or with "
		                 "--no-cores", "model: the requests of this history have no input %s", missing);
	}
	struct gp_prediction *prediction = mem_new(r->len, sizeof *prediction);
	int result = gp_predict(g, x, r->len, prediction, err);
	for (size_t i = 0; !result && i < r->len; i++) {
		clamp_prediction(&prediction[i], (double)request_latency(&r->row[i]));
		r->row[i].predicted = prediction[i];
		r->row[i].has_prediction = true;
		outside += prediction[i].outside;
	}
	if (!result && outside)
		note_outside(r, g, x, outside, notes);
	free(x);
	free(prediction);
	return result;
}
