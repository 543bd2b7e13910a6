/* The requests of a history: one row for each complete request, its features, and predictions for them.
 *
 * A request is a maximal run of non-null intervals of /Requests/<machine>/<id>/State; an id used again is another
 * request.  Cost: one attribution per request (attribution.c) unless it is read plainly, and one flow when culprits are
 * wanted. */
#include "latency/latency.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "latency/attribution.h"

#define FEATURE_NAME(field, unit, help) #field,
const char *const request_feature_name[REQUEST_FEATURE_COUNT] = { REQUEST_FEATURES(FEATURE_NAME) };
#undef FEATURE_NAME

/* Times as they are: what delays one request by x ns delays another one by as much.  Counts by the second of latency: a
 * request that is in flight for twice as long has twice the exits, whoever is to blame for that. */
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
	free(r->culprit);
}

void requests_release(struct requests *r)
{
	for (size_t i = 0; i < r->len; i++)
		request_release(&r->row[i]);
	free(r->row);
	*r = (struct requests){ NULL, 0, 0, 0 };
}

/* ---- Reading ------------------------------------------------------------------------------------------------ */

struct reading {
	const struct topo *topo;
	const struct requests_options *options;
	struct requests *out;
	struct error *err;
};

static bool wanted(const struct requests_options *o, int64_t start, int64_t end)
{
	return !o || o->from > o->to || (start <= o->to && end >= o->from);
}

/* Did the trace of the machine end here, so that the request was cut off rather than answered?  Then its server thread
 * is gone in the next moment.  1, 0, or -1 on error. */
static int is_cut(struct reading *rd, uint32_t state, int64_t start, int64_t end)
{
	const struct history *h = rd->topo->h;
	if (end >= history_end(h) || (start <= history_begin(h) && history_first(h) < history_begin(h)))
		return 1;  /* the latter: in the history of a window */
	struct interval first, tid, status;
	uint32_t id = history_parent(h, state), thread = history_child_named(h, id, request_schema[REQUEST_THREAD].name);
	if (history_stab(h, state, start, &first, rd->err))
		return -1;
	/* A request that is first heard of while it is yielded or lost began before the trace. */
	if (strcmp(history_state_name(h, state, (unsigned)first.value), "running") != 0)
		return 1;
	if (thread == HISTORY_NONE)
		return 0;
	if (history_stab(h, thread, end, &tid, rd->err))
		return -1;
	int machine = topo_find_machine(rd->topo, history_name(h, history_parent(h, id)));
	if (machine < 0 || tid.value < 0 || tid.value > INT32_MAX)
		return 0;
	int at = topo_find_thread(rd->topo, (uint32_t)machine, (int32_t)tid.value);
	if (at < 0 || rd->topo->thread[at].status == HISTORY_NONE)
		return 0;
	if (history_stab(h, rd->topo->thread[at].status, end + 1, &status, rd->err))
		return -1;
	return status.value == HISTORY_NULL && status.start == end + 1;
}

/* One run [start, end] of non-null states. */
static int add_request(struct reading *rd, uint32_t state, int64_t start, int64_t end)
{
	const struct history *h = rd->topo->h;
	if (!wanted(rd->options, start, end))
		return 0;
	int cut = is_cut(rd, state, start, end);
	if (cut) {
		rd->out->cut++;
		return cut < 0 ? -1 : 0;
	}
	uint32_t id = history_parent(h, state), machine = history_parent(h, id);
	struct request *r = ARRAY_PUSH(rd->out->row, rd->out->len, rd->out->cap);
	*r = (struct request){
		.machine = mem_dup(history_name(h, machine)),
		.id = mem_dup(history_name(h, id)),
		.state = state,
		.thread = history_child_named(h, id, request_schema[REQUEST_THREAD].name),
		.start = start,
		.end = end,
	};
	const bool plain = rd->options && rd->options->plain;
	if (plain ? attribute_server(rd->topo, r, rd->err) : attribute_request(rd->topo, r, rd->err))
		return -1;
	const char *only = rd->options ? rd->options->machine : NULL;
	if (only && strcmp(only, r->machine) && (!r->container || strcmp(only, r->container))) {
		request_release(r);
		rd->out->len--;
		return 0;
	}
	return rd->options && rd->options->culprits ? request_find_culprit(rd->topo, r, rd->err) : 0;
}

/* All requests of one id. */
static int add_attribute(void *arg, uint32_t attr)
{
	struct reading *rd = arg;
	const struct history *h = rd->topo->h;
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

static int by_start(const void *pa, const void *pb)
{
	const struct request *a = pa, *b = pb;
	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	if (a->end != b->end)
		return a->end < b->end ? -1 : 1;
	int c = strcmp(a->machine, b->machine);
	return c ? c : strcmp(a->id, b->id);
}

int requests_read(const struct topo *topo, const struct requests_options *options, struct requests *out,
                  struct notes *notes, struct error *err)
{
	struct reading rd = { topo, options, out, err };
	*out = (struct requests){ NULL, 0, 0, 0 };
	if (history_match(topo->h, "/Requests/*/*/State", add_attribute, &rd)) {
		error_wrap(err, "requests");
		requests_release(out);
		return -1;
	}
	if (out->len)
		qsort(out->row, out->len, sizeof *out->row, by_start);
	if (out->cut)
		notes_add(notes, NOTE_FACT, NULL, "%zu request%s before or after the traces: left out", out->cut,
		          out->cut == 1 ? " begins or ends" : "s begin or end");
	size_t lost = 0;
	char which[64];
	for (size_t i = 0; i < out->len; i++)
		lost += out->row[i].unknown > 0;
	if (lost)
		notes_add(notes, NOTE_LOSS, NULL,
		          "%s contain%s time of which nothing is known: the upper bound includes it",
		          text_of_all(which, lost, out->len, "request"), lost == 1 ? "s" : "");
	return 0;
}

/* ---- Prediction --------------------------------------------------------------------------------------------- */

static int feature_index(const char *name)
{
	for (int i = 0; i < REQUEST_FEATURE_COUNT; i++) {
		if (!strcmp(name, request_feature_name[i]))
			return i;
	}
	return -1;
}

static void cut_answer(struct gp_answer *a, double latency)
{
	a->mean = fmin(fmax(a->mean, 0), latency);
	a->low = fmin(fmax(a->low, 0), latency);
	a->high = fmin(fmax(a->high, 0), latency);
}

static void note_outside(const struct requests *r, const struct gp *g, const double *x, size_t outside,
                         struct notes *notes)
{
	size_t d = gp_inputs(g), worst = 0, most = 0;
	for (size_t j = 0; j < d; j++) {
		double min, max;
		size_t n = 0;
		gp_range(g, j, &min, &max);
		for (size_t i = 0; i < r->len; i++)
			n += x[i * d + j] < min || x[i * d + j] > max;
		if (n > most) {
			most = n;
			worst = j;
		}
	}
	char which[64];
	notes_add(notes, NOTE_DOUBT, NULL, "%s lie%s outside the range that the model was trained on (mostly %s): do not trust "
	          "what is predicted there", text_of_all(which, outside, r->len, "request"), outside == 1 ? "s" : "",
	          gp_input(g, worst));
}

int requests_predict(struct requests *r, const struct gp *g, struct notes *notes, struct error *err)
{
	size_t d = gp_inputs(g), outside = 0;
	int column[GP_FEATURES];
	for (size_t j = 0; j < d; j++) {
		column[j] = feature_index(gp_input(g, j));
		if (column[j] < 0)
			return error_set(err, STATUS_INPUT, "train on histories, not on another tool's csv",
			                 "model: requests of a history have no input %s", gp_input(g, j));
	}
	double *x = mem_new(r->len * d, sizeof *x);
	struct gp_answer *answer = mem_new(r->len, sizeof *answer);
	for (size_t i = 0; i < r->len; i++) {
		double all[REQUEST_FEATURE_COUNT];
		request_features_get(&r->row[i], all);
		for (size_t j = 0; j < d; j++)
			x[i * d + j] = all[column[j]];
	}
	int result = gp_predict(g, x, r->len, answer, err);
	for (size_t i = 0; !result && i < r->len; i++) {
		cut_answer(&answer[i], (double)request_latency(&r->row[i]));
		r->row[i].predicted = answer[i];
		r->row[i].has_prediction = true;
		outside += answer[i].outside;
	}
	if (!result && outside)
		note_outside(r, g, x, outside, notes);
	free(x);
	free(answer);
	return result;
}
