/* Spans of a file as requests of a recording: the clocks of its machines, by the history's provenance. */
#include "base/base.h"
#include "base/int128.h"
#include "base/json_field.h"
#include "cli/latency_cmd.h"
#include "cli/trace_input.h"
#include "index/index.h"
#include "sync/sync.h"

#define EPOCH_MIN INT64_C(100000000000000000)  /* ns: times since a machine's start are smaller, dates are larger */
/* Error of a trace's clock without --clock-error: tracers read CLOCK_REALTIME at the start, within the recorded error, else
 * OFFSET_ERROR_NS; then the kernel corrects it by at most 500 ppm, and CLOCK_MONOTONIC equally. */
#define OFFSET_ERROR_NS 10000
#define SLEW_NS(ns) ((ns) / 2000)

struct clock_part { int64_t from; struct clock_line line; };
struct machine_clock {
	struct clock_part *segment;  /* in order of time; none: the times are the host's */
	size_t segments, cap;
};
struct open_clocks {
	struct span_clocks clocks;
	struct json_object *doc;    /* owns the host names */
	struct machine_clock *line; /* of each machine */
	uint32_t machines;
};

static int64_t to_host(void *arg, uint32_t machine, int64_t t)
{
	const struct machine_clock *c = (const struct machine_clock *)arg + machine;
	size_t i = 0;
	if (c->segments == 0)
		return t;
	while (i + 1 < c->segments && c->segment[i + 1].from <= t)
		i++;
	return clock_line_at(&c->segment[i].line, t);
}

static int64_t to_machine(void *arg, uint32_t machine, int64_t t)
{
	const struct machine_clock *c = (const struct machine_clock *)arg + machine;
	size_t i = 0;
	if (c->segments == 0)
		return t;
	while (i + 1 < c->segments && clock_line_at(&c->segment[i + 1].line, c->segment[i + 1].from) <= t)
		i++;
	const struct clock_line *line = &c->segment[i].line;
	const int128 slope = ((int128)1 << 60) + line->drift;
	int64_t guest = slope > 0 ? saturate64(line->ref_guest + ((((int128)t - line->ref_host) << 60) / slope) - 2) : t;
	for (unsigned k = 0; k < 8 && clock_line_at(line, guest) < t; k++)  /* the quotient is exact within 2 ns */
		guest++;
	return guest;
}

/* Finds the machine of a row of the provenance, in which names are escaped. */
static int machine_of(const struct catalog *catalog, const char *escaped)
{
	char name[512];
	for (uint32_t m = 0; m < catalog->machines; m++)
		if (strcmp(text_escape(name, sizeof name, catalog->machine[m].name), escaped) == 0)
			return (int)m;
	return -1;
}

static struct json_object *element(struct json_object *list, size_t i)
{
	return list && i < json_object_array_length(list) ? json_object_array_get_idx(list, i) : NULL;
}

static void load_trace(const struct catalog *catalog, struct span_clock *clock, struct json_object *row, int64_t error)
{
	const bool is_host = strcmp(json_member_text(row, "role"), "host") == 0;
	const int64_t begin = json_member_int(row, "begin", 0), end = json_member_int(row, "end", 0);
	const char *machine = json_member_text(row, "machine"), *hostname = json_member_text(row, "hostname");
	struct span_clock c = { .hostname = *hostname ? hostname : machine, .vm_id = json_member_text(row, "vm_id"),
	                        .known = begin >= EPOCH_MIN && end > begin, .begin = begin, .end = end, .error = error };
	const int own = machine_of(catalog, is_host ? "host" : machine);
	if (error < 0) {
		c.error = json_member_int(row, "realtime_error_ns", 0);
		c.error = c.error > 0 && c.error <= INT64_MAX / 4 ? c.error : OFFSET_ERROR_NS;
		c.error += json_object_get_boolean(json_object_object_get(row, "monotonic")) ? 0 : SLEW_NS(end - begin);
	}
	if (own >= 0)
		clock[own] = c;
	for (uint32_t m = 0; is_host && m < catalog->machines; m++) {
		if (catalog->machine[m].kind != MACHINE_CONTAINER)
			continue;
		clock[m] = c;
		clock[m].hostname = NULL;
	}
}

/* Loads the clocks of all machines. */
static void load_clocks(const struct catalog *catalog, struct json_object *doc, int64_t error, struct span_clocks *out,
                        struct machine_clock *line)
{
	struct json_object *row, *rows = json_member_array(doc, "traces");
	for (size_t i = 0; (row = element(rows, i)); i++)
		load_trace(catalog, out->machine, row, error);
	rows = json_member_array(doc, "clocks");
	for (size_t i = 0; (row = element(rows, i)); i++) {
		const int m = machine_of(catalog, json_member_text(row, "guest"));
		if (m < 0)
			continue;
		*ARRAY_PUSH(line[m].segment, line[m].segments, line[m].cap) = (struct clock_part){
			json_member_int(row, "from_ns", 0),
			{ json_member_int(row, "ref_guest_ns", 0), json_member_int(row, "ref_host_ns", 0),
			  json_member_int(row, "drift", 0) } };
	}
}

int span_options_check(const struct span_options *o, int64_t *error, struct error *err)
{
	*error = -1;
	if (o->machine_of && !o->file)
		return error_set(err, STATUS_USAGE, "give --spans", "--machine-of requires --spans");
	if (o->clock_error && !o->file)
		return error_set(err, STATUS_USAGE, "give --spans", "--clock-error requires --spans");
	if (o->clock_error && (!time_parse_duration(o->clock_error, error) || *error < 0 || *error > NS_PER_S * 3600))
		return error_set(err, STATUS_USAGE, "for example 50us", "--clock-error %s: not a duration up to 1h",
		                 o->clock_error);
	return 0;
}

/* Checks that each machine of --machine-of is one of the recording. */
static int check_machine_of(const struct catalog *catalog, const char *list, struct error *err)
{
	for (const char *text = list; text && *text; text += *text == ',') {
		const size_t len = strcspn(text, ",");
		const char *first = memchr(text, '=', len), *name = memrchr(text, '=', len);
		char known[200] = "it has: ";
		bool is_known = false;
		for (uint32_t m = 0; m < catalog->machines && first != name; m++) {
			const char *machine = catalog->machine[m].name;
			is_known |= strlen(machine) == (size_t)(text + len - name - 1) &&
			            memcmp(machine, name + 1, strlen(machine)) == 0;
			const size_t used = strlen(known);
			snprintf(known + used, sizeof known - used, "%s%s", m ? ", " : "", machine);
		}
		if (first == name || first == text)
			return error_set(err, STATUS_USAGE, "for example service.name=frontend=web",
			                 "--machine-of %.*s: not KEY=VALUE=MACHINE", (int)len, text);
		if (!is_known)
			return error_set(err, STATUS_USAGE, known, "--machine-of %.*s: the recording has no such machine",
			                 (int)len, text);
		text += len;
	}
	return 0;
}

struct span_clocks *span_clocks_open(const struct catalog *catalog, const struct span_options *o, int64_t error,
                                     struct error *err)
{
	if (check_machine_of(catalog, o->machine_of, err))
		return NULL;
	struct open_clocks *c = mem_new(1, sizeof *c);
	c->doc = provenance_load(catalog->h, err);
	if (!c->doc) {
		free(c);
		return NULL;
	}
	c->machines = catalog->machines;
	c->line = mem_new(catalog->machines + 1, sizeof *c->line);
	c->clocks = (struct span_clocks){ .machine = mem_new(catalog->machines + 1, sizeof *c->clocks.machine),
	                                  .to_host = to_host, .to_machine = to_machine, .arg = c->line,
	                                  .machine_of = o->machine_of };
	load_clocks(catalog, c->doc, error, &c->clocks, c->line);
	return &c->clocks;
}

void span_clocks_close(struct span_clocks *clocks)
{
	struct open_clocks *c = (struct open_clocks *)clocks;  /* its first member */
	if (!c)
		return;
	for (uint32_t m = 0; m < c->machines; m++)
		free(c->line[m].segment);
	free(c->line);
	free(c->clocks.machine);
	json_object_put(c->doc);
	free(c);
}

int span_requests_read(const struct catalog *catalog, const struct span_options *o, const struct requests_options *options,
                       struct spans *spans, struct requests *out, struct notes *notes, struct error *err)
{
	int64_t error;
	*spans = (struct spans){ 0 };
	if (span_options_check(o, &error, err))
		return -1;
	char *file = trace_input_path(o->file, err);
	const bool is_unread = !file || spans_read(spans, o->whole, file, err);
	free(file);
	if (is_unread)
		return -1;
	struct span_clocks *clocks = span_clocks_open(catalog, o, error, err);
	const int rc = clocks ? spans_requests(catalog, spans, clocks, options, out, notes, err) : -1;
	span_clocks_close(clocks);
	return rc;
}

int span_requests_none(const char *file, const struct notes *notes, struct error *err)
{
	char text[NOTE_TEXT];
	return notes->len ? error_repeat(err, STATUS_INPUT, NULL, "%s: no request found: %s", file,
	                                 note_text(&notes->item[0], text))
	                  : error_set(err, STATUS_INPUT, "there may be some elsewhere: ask of all machines, ids and times",
	                              "%s: no request found", file);
}
