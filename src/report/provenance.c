/* Inputs of an answer (struct origin): files, clocks, lost events and notes, from the provenance stored in the history. */
#include "base/base.h"
#include "base/json_field.h"
#include "report/report.h"
#include "report/writer.h"

#define LINE_CELLS 80
#define INDENT 9  /* "history  " */

/* Appends a line; takes ownership of it. */
static void add_line(struct origin *o, char *line)
{
	*ARRAY_PUSH(o->line, o->lines, o->lines_cap) = line;
}

/* ---- Clocks */

/* Writes "ACCURATE, error bound 30.6 us, 100.00% of its events contained". */
static void clock_text(struct json_object *row, char *buf, size_t size)
{
	char bound[TIME_TEXT], contained[64] = "";
	int64_t bound_ns = json_member_int(row, "error_mid_ns", -1);
	double share = json_member_real(row, "containment", -1);
	if (share >= 0)
		snprintf(contained, sizeof contained, ", %.2f%% of its events contained", 100 * share);
	if (strcmp(json_member_text(row, "quality"), "ABSENT") == 0)
		snprintf(buf, size, "not synchronized, %s%s", strcmp(json_member_text(row, "method"), "offset") == 0
		         ? "offset given" : "host clock assumed", contained);
	else
		snprintf(buf, size, "%s, error bound %s%s", json_member_text(row, "quality"),
		         bound_ns < 0 ? "unknown" : time_duration(bound, bound_ns), contained);
}

static bool has_host(struct json_object *doc)
{
	struct json_object *traces = json_member_array(doc, "traces");
	bool host = false;
	for (size_t i = 0; traces && i < json_object_array_length(traces); i++)
		host |= strcmp(json_member_text(json_object_array_get_idx(traces, i), "role"), "host") == 0;
	return host;
}

static void manual_offset_line(struct origin *o, struct json_object *doc, const char *machine)
{
	struct json_object *rows = json_member_array(doc, "nudges");
	for (size_t i = 0; rows && i < json_object_array_length(rows); i++) {
		struct json_object *row = json_object_array_get_idx(rows, i);
		char by[TIME_TEXT];
		if (strcmp(json_member_text(row, "guest"), machine) != 0)
			continue;
		add_line(o, mem_printf("         manual offset: %s", time_exact(by, json_member_int(row, "nudge_ns", 0))));
	}
}

/* Adds a line for the machine's clock, one for each step of the clock, and one for a manual offset. */
static void clock_lines(struct origin *o, struct json_object *doc, const char *machine)
{
	struct json_object *rows = json_member_array(doc, "sync");
	bool stepped = false;
	for (size_t i = 0; rows && i < json_object_array_length(rows); i++) {
		struct json_object *row = json_object_array_get_idx(rows, i);
		if (strcmp(json_member_text(row, "guest"), machine) != 0)
			continue;
		char bound[TIME_TEXT], at[TIME_TEXT], text[160];
		int64_t bound_ns = json_member_int(row, "error_mid_ns", -1);
		if (stepped) {
			add_line(o, mem_printf("         stepped at %s; then %s, error bound %s",
			                       time_clock(at, json_member_int(row, "ref_host_ns", 0), 6),
			                       json_member_text(row, "quality"),
			                       bound_ns < 0 ? "unknown" : time_duration(bound, bound_ns)));
		} else if (*json_member_text(row, "reason")) {
			add_line(o, mem_printf("clock    not synchronized: %s", json_member_text(row, "reason")));
			const bool own_clock = json_member_int(row, "ref_host_ns", 0) == json_member_int(row, "ref_guest_ns", 0);
			add_line(o, mem_printf("         %s; %s", own_clock ? "times are on its own clock" : "shown as if its trace "
			                       "started with the host's", has_host(doc) ? "give its offset in a session file"
			                       : "open it together with its host"));
		} else {
			clock_text(row, text, sizeof text);
			add_line(o, mem_printf("clock    %s", text));
		}
		stepped = true;
	}
	manual_offset_line(o, doc, machine);
}

/* Returns the largest of the error bounds at the ends and in the segment's middle, ns; NULL: unknown. */
static struct json_object *max_error_bound(struct json_object *row)
{
	static const char *const ends[] = { "error_start_ns", "error_mid_ns", "error_end_ns" };
	int64_t widest = -1;
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
		int64_t bound = json_member_int(row, ends[i], -1);
		if (bound < 0)
			return NULL;
		widest = bound > widest ? bound : widest;
	}
	return json_object_new_int64(widest);
}

static void clock_json(struct origin *o, struct json_object *doc, const char *machine)
{
	static const char *const copied[] = { "method", "quality", "reason", "containment" };
	struct json_object *rows = json_member_array(doc, "sync");
	for (size_t i = 0; rows && i < json_object_array_length(rows); i++) {
		struct json_object *row = json_object_array_get_idx(rows, i), *clock = json_new_object();
		if (machine && strcmp(json_member_text(row, "guest"), machine) != 0) {
			json_object_put(clock);
			continue;
		}
		json_object_object_add(clock, "machine", json_object_new_string(json_member_text(row, "guest")));
		json_object_object_add(clock, "from", json_object_new_int64(json_member_int(row, "ref_host_ns", 0)));
		for (size_t k = 0; k < sizeof copied / sizeof *copied; k++)
			json_object_object_add(clock, copied[k], json_object_get(json_object_object_get(row, copied[k])));
		json_object_object_add(clock, "band_ns", max_error_bound(row));
		json_object_array_add(o->clock, clock);
	}
}

/* Adds the clocks that convert the times of the target's machine: its own and those of its outer machines. machine -1:
 * all clocks. */
static void add_clocks(struct origin *o, struct json_object *doc, const struct catalog *catalog, int32_t machine)
{
	char name[256];
	if (machine < 0)
		clock_json(o, doc, NULL);
	else
		clock_lines(o, doc, text_escape(name, sizeof name, catalog->machine[machine].name));
	for (; machine >= 0; machine = catalog->machine[machine].parent)
		clock_json(o, doc, text_escape(name, sizeof name, catalog->machine[machine].name));
}

/* ---- Lost events */

static void add_losses(struct origin *o, struct json_object *doc)
{
	struct json_object *traces = json_member_array(doc, "traces");
	char *line = mem_dup("lost     ");
	for (size_t i = 0; traces && i < json_object_array_length(traces); i++) {
		struct json_object *t = json_object_array_get_idx(traces, i), *loss;
		int64_t lost = json_member_int(t, "lost", 0), uncounted = json_member_int(t, "uncounted", 0);
		char count[48] = "some";
		if (lost <= 0 && uncounted <= 0)
			continue;
		if (lost > 0)
			snprintf(count, sizeof count, "%" PRId64 "%s", lost, uncounted > 0 ? " and more" : "");
		char *more = mem_printf("%s%s%s events of %s", line, strlen(line) > INDENT ? ", " : "", count,
		                        json_member_text(t, "machine"));
		free(line);
		line = more;
		bool host = strcmp(json_member_text(t, "role"), "host") == 0;
		json_object_array_add(o->lost, loss = json_new_object());
		json_object_object_add(loss, "machine", json_object_new_string(host ? "host" : json_member_text(t, "machine")));
		json_object_object_add(loss, "events", json_object_new_int64(lost));
		json_object_object_add(loss, "uncounted", json_object_new_int64(uncounted));
	}
	add_line(o, strlen(line) > INDENT ? mem_dup(line) : mem_dup("lost     no events"));
	free(line);
}

/* ---- Notes */

/* Adds the text of a note as lines of at most LINE_CELLS. */
static void note_lines(struct origin *o, const char *rest)
{
	for (const char *word = "note"; *rest; word = "") {
		size_t n = text_line_bytes(rest, LINE_CELLS - INDENT);
		add_line(o, mem_printf("%-*s%.*s", INDENT, word, (int)n, rest));
		o->note_lines++;
		rest += n + (rest[n] == ' ');
	}
}

void origin_add_warnings(struct origin *o, struct notes *notes)
{
	char text[NOTE_TEXT];
	for (size_t i = 0; i < notes->len; i++) {
		notes_copy(&o->notes, &notes->item[i], NULL);
		if (notes_text(notes, i, text))
			note_lines(o, text);
	}
	notes_release(notes);
}

void print_notes(const struct notes *n)
{
	char text[NOTE_TEXT];
	for (size_t i = 0; i < n->len; i++)
		if (notes_text(n, i, text))
			fprintf(stderr, "stealscope: note: %s\n", text);
}

void report_warn(FILE *out, struct report_how how, struct origin *o, struct notes *notes)
{
	if (how.format == FORMAT_CSV && out == stdout)
		print_notes(notes);
	if (o)
		origin_add_warnings(o, notes);
	else
		notes_release(notes);
}

void report_warn_omitted(FILE *out, struct report_how how, struct origin *o, uint64_t shown, uint64_t all,
                         const char *rows)
{
	struct notes notes = { 0 };
	if (how.format == FORMAT_TEXT || shown >= all)
		return;
	note_add(&notes, ROWS_OMITTED, NULL, (unsigned long long)shown, (unsigned long long)all, rows);
	report_warn(out, how, o, &notes);
}

void origin_write_notes(const struct origin *o, FILE *out)
{
	for (size_t i = o->lines - o->note_lines; i < o->lines; i++)
		fprintf(out, "%s\n", o->line[i]);
}

void origin_write_head(const struct origin *o, FILE *out)
{
	origin_write_notes(o, out);
	if (o->note_lines)
		putc('\n', out);
}

/* ---- All of it */

void origin_load(struct origin *o, const struct catalog *catalog, const struct target *s, int64_t from, int64_t to)
{
	struct field_buffer file = { .longer = NULL };
	char name[ACTOR_TEXT];
	size_t size;
	struct notes notes = { 0 };
	*o = (struct origin){ .history = mem_new(1, sizeof(char *)), .histories = 1, .from = from, .to = to,
		.clock = json_new_array(), .lost = json_new_array() };
	o->history[0] = mem_dup(history_file(catalog->h));
	o->target = s ? mem_dup(catalog_target_text(catalog, s, name, sizeof name)) : NULL;
	add_line(o, mem_printf("history  %s", field_escape(history_file(catalog->h), &file)));
	field_release(&file);
	const void *meta = history_meta(catalog->h, META_PROVENANCE, &size);
	struct json_object *doc = meta ? json_parse(meta, size) : NULL;
	if (doc) {
		add_clocks(o, doc, catalog, s ? (int32_t)target_machine(catalog, s) : -1);
		add_losses(o, doc);
	}
	o->provenance = doc;
	warnings_of(catalog, s, from, to, &notes);
	origin_add_warnings(o, &notes);
}

static void array_append(struct json_object *to, struct json_object *from)
{
	for (size_t i = 0; i < json_object_array_length(from); i++)
		json_object_array_add(to, json_object_get(json_object_array_get_idx(from, i)));
}

void origin_add(struct origin *o, const struct origin *other)
{
	struct notes notes = { 0 };
	if (!o->histories)
		*o = (struct origin){ .from = other->from, .to = other->to, .clock = json_new_array(),
			.lost = json_new_array() };
	else if (o->from != other->from || o->to != other->to)
		o->from = 1, o->to = 0;
	o->history = mem_resize(o->history, o->histories + other->histories, sizeof(char *));
	for (size_t i = 0; i < other->histories; i++)
		o->history[o->histories++] = mem_dup(other->history[i]);
	array_append(o->clock, other->clock);
	array_append(o->lost, other->lost);
	for (size_t i = 0; i < other->notes.len; i++)
		notes_copy(&notes, &other->notes.item[i], NULL);
	origin_add_warnings(o, &notes);
}

void origin_release(struct origin *o)
{
	for (size_t i = 0; i < o->histories; i++)
		free(o->history[i]);
	for (size_t i = 0; i < o->lines; i++)
		free(o->line[i]);
	free(o->history);
	free(o->line);
	free(o->target);
	json_object_put(o->clock);
	json_object_put(o->lost);
	json_object_put(o->provenance);
	notes_release(&o->notes);
	*o = (struct origin){ 0 };
}
