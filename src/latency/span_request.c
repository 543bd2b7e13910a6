/* Requests from spans of distributed tracing. span_place.c finds a span's server: a thread, a process, or a machine.
 *
 * A span has the times of CLOCK_REALTIME, the trace those of the tracer's clock; they differ by at most E
 * (span_clock.error, and the file's precision). The bounds hold for all differences:
 *
 * - low: loss of the thread within [start + E, end - E], as of a request that executes; 0 without a thread, and for
 *   threads that work for several spans in turns, because the loss may have hit another span.
 * - high: loss within [start - E, end + E], for a process the sum over its threads; at most the latency.
 *
 * The culprit is that of [start + E, end - E]. Cost: up to three attributions for each span and thread. */
#include "base/base.h"
#include "latency/attribution.h"
#include "latency/span_place.h"

struct span_reading {
	const struct catalog *catalog;
	const struct spans *spans;
	const struct span_clocks *clocks;
	const struct requests_options *options;
	struct requests *out;
	struct span_places *places;
	size_t unplaced, without_clock, without_thread, of_machine, interleaved;
	int64_t error;           /* largest E */
	struct span_place place; /* of the current span; the memory is reused */
	struct error *err;
};

/* ---- Bounds ------------------------------------------------------------------------------------------------- */

static int attribute_machine(const struct span_reading *rd, struct request *r)
{
	const struct target target = { TARGET_MACHINE, rd->place.machine };
	struct demand d;
	if (demand_of(rd->catalog, &target, r->start, r->end, &d, rd->err))
		return -1;
	r->unknown = d.alive - d.ran - d.lost - d.slept;
	if (d.rows == 0 || rd->catalog->machine[rd->place.machine].hides_stolen_time)
		r->unknown = r->end - r->start + 1;
	r->high = d.lost + r->unknown;
	return 0;
}

/* Fills the bounds and features of [r->start, r->end]: the sum over the place's threads. */
static int attribute_place(const struct span_reading *rd, bool executing, struct request *r)
{
	if (rd->place.threads == 0)
		return attribute_machine(rd, r);
	for (size_t i = 0; i < rd->place.threads; i++)
		if (attribute_thread(rd->catalog, rd->place.thread[i], executing, r, rd->err))
			return -1;
	return 0;
}

/* Fills the bounds of a request for clocks that differ by up to E. */
static int find_bounds(const struct span_reading *rd, struct request *r, int64_t error, bool executing)
{
	const struct history *h = rd->catalog->h;
	struct request wide = { .start = max64(r->start - error, history_begin(h)),
	                        .end = min64(r->end + error, history_end(h)) };
	struct request inside = { .start = r->start + error, .end = r->end - error, .machine = r->machine,
	                          .core = { -1, -1, -1, -1 } };
	int rc = attribute_place(rd, executing, r);
	if (rc == 0 && error) {
		rc = attribute_place(rd, false, &wide);
		r->high = wide.high;
		r->unknown = wide.unknown;
		if (rc == 0 && executing && inside.start <= inside.end)
			rc = attribute_place(rd, true, &inside);
		r->low = inside.low;
	}
	r->unknown = min64(r->unknown, request_latency(r));
	r->high = min64(r->high, request_latency(r));
	if (rd->place.threads != 1)
		r->tid = -1;
	if (rc == 0 && rd->options->culprits && rd->place.threads == 1 && inside.start <= inside.end) {
		inside.tid = r->tid;
		inside.high = r->high;
		inside.unknown = r->unknown;
		rc = r->high > 0 ? request_find_culprit(rd->catalog, &inside, rd->err) : 0;
		r->culprit = inside.culprit;
		if (rc == 0 && !error)
			rc = request_find_core(rd->catalog, r, rd->err);
	}
	free(wide.container);
	free(inside.container);
	return rc;
}

/* ---- Reading ------------------------------------------------------------------------------------------------ */

static bool is_wanted(const struct span_reading *rd, const struct span *s, uint32_t machine, int64_t start, int64_t end)
{
	const struct requests_options *o = rd->options;
	return request_in_window(o, start, end) &&
	       (!o->machine || strcmp(o->machine, rd->catalog->machine[machine].name) == 0) &&
	       (!o->id || strcmp(o->id, s->name) == 0 || strcmp(o->id, s->id) == 0);
}

static int add_span(struct span_reading *rd, size_t i)
{
	const struct span *s = &rd->spans->span[i];
	const int32_t machine = span_machine(rd->places, s);
	if (machine == NO_MACHINE) {
		rd->unplaced++;
		return 0;
	}
	const struct span_clock *clock = &rd->clocks->machine[machine];
	if (!clock->known) {
		rd->without_clock++;
		return 0;
	}
	if (s->start < clock->begin || s->end > clock->end) {
		rd->out->cut++;
		return 0;
	}
	const int64_t error = clock->error + s->precision;
	const int64_t start = rd->clocks->to_host(rd->clocks->arg, (uint32_t)machine, s->start);
	const int64_t end = max64(start, rd->clocks->to_host(rd->clocks->arg, (uint32_t)machine, s->end) - 1);
	if (start < history_begin(rd->catalog->h) || end > history_end(rd->catalog->h)) {
		rd->out->cut++;
		return 0;
	}
	if (!is_wanted(rd, s, (uint32_t)machine, start, end))
		return 0;
	if (span_place_find(rd->places, i, start, end, error, &rd->place, rd->err))
		return -1;
	rd->error = max64(rd->error, error);
	rd->of_machine += rd->place.threads == 0;
	rd->without_thread += !rd->place.is_known_thread;
	rd->interleaved += rd->place.interleaved;
	struct request *r = ARRAY_PUSH(rd->out->row, rd->out->len, rd->out->cap);
	*r = (struct request){ .machine = mem_dup(rd->catalog->machine[machine].name), .tid = -1, .start = start, .end = end,
	                       .id = mem_printf("%s %s", s->name, s->id), .state = HISTORY_NONE, .thread = HISTORY_NONE,
	                       .core = { -1, -1, -1, -1 }, .span = i };
	return find_bounds(rd, r, error, rd->place.is_known_thread && !rd->place.interleaved);
}

/* Writes a list of names to `buf`, shortened: each once. */
static void add_name(char *buf, size_t size, const char *name)
{
	const size_t used = strlen(buf), len = strlen(name);
	const char *found = strstr(buf, name);
	if (found && (found[len] == ',' || !found[len]))
		return;
	if (used + len + 8 < size)
		snprintf(buf + used, size - used, "%s%s", used ? ", " : "", name);
	else if (used >= 3 && strcmp(buf + used - 3, "...") != 0 && used + 6 < size)
		snprintf(buf + used, size - used, ", ...");
}

static void add_unplaced(const struct span_reading *rd, size_t all, struct notes *notes)
{
	char which[64], names[200] = "", machines[200] = "";
	for (size_t i = 0; i < rd->spans->len; i++) {
		const struct span_source *s = &rd->spans->source[rd->spans->span[i].source];
		if (span_machine(rd->places, &rd->spans->span[i]) != NO_MACHINE)
			continue;
		for (size_t k = 0; k < SPAN_HOST_KEYS; k++)
			if (s->host[k])
				add_name(names, sizeof names, s->host[k]);
		if (s->service) {
			char *service = mem_printf("service.name=%s", s->service);
			add_name(names, sizeof names, service);
			free(service);
		}
	}
	for (uint32_t m = 0; m < rd->catalog->machines; m++)
		add_name(machines, sizeof machines, rd->catalog->machine[m].name);
	note_add(notes, SPANS_UNPLACED, NULL, text_count_of_all(which, rd->unplaced, all, "span"), *names ? names : "none",
	         machines);
}

static void add_notes(const struct span_reading *rd, struct notes *notes)
{
	char which[64], time[TIME_TEXT];
	const size_t all = rd->spans->len + rd->spans->incomplete;
	if (rd->unplaced)
		add_unplaced(rd, all, notes);
	if (rd->without_clock)
		note_add(notes, SPANS_WITHOUT_CLOCK, NULL, text_count_of_all(which, rd->without_clock, all, "span"));
	if (rd->spans->incomplete)
		note_add(notes, SPANS_INCOMPLETE, NULL, text_count_of_all(which, rd->spans->incomplete, all, "span"));
	if (rd->out->cut)
		requests_note_cut(rd->catalog, rd->out->cut, notes);
	if (rd->of_machine)
		note_add(notes, SPANS_OF_MACHINE, NULL, text_count_of_all(which, rd->of_machine, all, "span"));
	if (rd->without_thread)
		note_add(notes, SPANS_WITHOUT_THREAD, NULL, text_count_of_all(which, rd->without_thread, all, "span"));
	if (rd->interleaved)
		note_add(notes, SPANS_INTERLEAVED, NULL, text_count_of_all(which, rd->interleaved, all, "span"));
	if (rd->error)
		note_add(notes, SPANS_CLOCK_ERROR, NULL, time_duration(time, rd->error));
}

int spans_requests(const struct catalog *catalog, const struct spans *spans, const struct span_clocks *clocks,
                   const struct requests_options *options, struct requests *out, struct notes *notes, struct error *err)
{
	struct span_reading rd = { .catalog = catalog, .spans = spans, .clocks = clocks, .options = options, .out = out,
	                           .places = span_places_open(catalog, spans, clocks), .err = err };
	int rc = 0;
	*out = (struct requests){ 0 };
	for (size_t i = 0; i < spans->len && rc == 0; i++)
		rc = add_span(&rd, i);
	if (rc == 0) {
		requests_sort(out, REQUESTS_BY_START);
		add_notes(&rd, notes);
	} else {
		requests_release(out);
	}
	free(rd.place.thread);
	span_places_close(rd.places);
	return rc;
}
