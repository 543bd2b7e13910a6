/* What a history says of where it comes from, as far as an answer rests on it. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_field.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/timefmt.h"
#include "report/report.h"
#include "report/writer.h"

#define META_PROVENANCE "provenance"
#define LINE_CELLS 80
#define INDENT 9  /* "history  " */

/* Takes the line. */
static void add_line(struct origin *o, char *line)
{
	*ARRAY_PUSH(o->line, o->lines, o->lines_cap) = line;
}

static int32_t machine_of(const struct topo *topo, const struct subject *s)
{
	if (!s)
		return -1;
	return (int32_t)(s->kind == SUBJECT_MACHINE ? s->index
	                 : s->kind == SUBJECT_CPU ? topo->cpu[s->index].machine : topo->thread[s->index].machine);
}

/* ---- Clocks */

/* "ACCURATE, error band 30.6 us, 100.00% of its events contained" */
static void clock_text(struct json_object *row, char *buf, size_t size)
{
	char band[TIME_TEXT], contained[64] = "";
	int64_t width = field_int(row, "band_mid_ns", -1);
	double share = field_real(row, "containment", -1);
	if (share >= 0)
		snprintf(contained, sizeof contained, ", %.2f%% of its events contained", 100 * share);
	if (strcmp(field_text(row, "quality"), "ABSENT") == 0)
		snprintf(buf, size, "not synchronized, %s%s", strcmp(field_text(row, "method"), "offset") == 0
		         ? "offset given" : "taken for the host's", contained);
	else
		snprintf(buf, size, "%s, error band %s%s", field_text(row, "quality"),
		         width < 0 ? "unknown" : time_duration(band, width), contained);
}

static bool has_host(struct json_object *doc)
{
	struct json_object *traces = field_array(doc, "traces");
	bool host = false;
	for (size_t i = 0; traces && i < json_object_array_length(traces); i++)
		host |= strcmp(field_text(json_object_array_get_idx(traces, i), "role"), "host") == 0;
	return host;
}

static void nudge_line(struct origin *o, struct json_object *doc, const char *machine)
{
	struct json_object *rows = field_array(doc, "nudges");
	for (size_t i = 0; rows && i < json_object_array_length(rows); i++) {
		struct json_object *row = json_object_array_get_idx(rows, i);
		char by[TIME_TEXT];
		if (strcmp(field_text(row, "guest"), machine) != 0)
			continue;
		add_line(o, mem_printf("         moved by hand: %s", time_exact(by, field_int(row, "nudge_ns", 0))));
	}
}

/* One line for the machine's clock; when it stepped, one more from each step on. */
static void clock_lines(struct origin *o, struct json_object *doc, const char *machine)
{
	struct json_object *rows = field_array(doc, "sync");
	bool stepped = false;
	for (size_t i = 0; rows && i < json_object_array_length(rows); i++) {
		struct json_object *row = json_object_array_get_idx(rows, i);
		if (strcmp(field_text(row, "guest"), machine) != 0)
			continue;
		char band[TIME_TEXT], at[TIME_TEXT], text[160];
		int64_t width = field_int(row, "band_mid_ns", -1);
		if (stepped) {
			add_line(o, mem_printf("         stepped at %s; then %s, error band %s",
			                       time_clock(at, field_int(row, "ref_host_ns", 0), 6), field_text(row, "quality"),
			                       width < 0 ? "unknown" : time_duration(band, width)));
		} else if (*field_text(row, "doubt")) {
			add_line(o, mem_printf("clock    not synchronized: %s", field_text(row, "doubt")));
			const bool own = field_int(row, "ref_host_ns", 0) == field_int(row, "ref_guest_ns", 0);
			add_line(o, mem_printf("         %s; %s", own ? "its times are its own" : "it is shown as if its trace "
			                       "had begun with the host's", has_host(doc) ? "give its offset in a session file"
			                       : "open it together with its host"));
		} else {
			clock_text(row, text, sizeof text);
			add_line(o, mem_printf("clock    %s", text));
		}
		stepped = true;
	}
	nudge_line(o, doc, machine);
}

/* The widest that the band is said to be; NULL: it is not known. */
static struct json_object *band_of(struct json_object *row)
{
	static const char *const ends[] = { "band_start_ns", "band_mid_ns", "band_end_ns" };
	int64_t widest = -1;
	for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
		int64_t band = field_int(row, ends[i], -1);
		if (band < 0)
			return NULL;
		widest = band > widest ? band : widest;
	}
	return json_object_new_int64(widest);
}

static void clock_json(struct origin *o, struct json_object *doc, const char *machine)
{
	static const char *const copied[] = { "method", "quality", "doubt", "containment" };
	struct json_object *rows = field_array(doc, "sync");
	for (size_t i = 0; rows && i < json_object_array_length(rows); i++) {
		struct json_object *row = json_object_array_get_idx(rows, i), *clock = json_object_new_object();
		if (machine && strcmp(field_text(row, "guest"), machine) != 0) {
			json_object_put(clock);
			continue;
		}
		json_object_object_add(clock, "machine", json_object_new_string(field_text(row, "guest")));
		json_object_object_add(clock, "from", json_object_new_int64(field_int(row, "ref_host_ns", 0)));
		for (size_t k = 0; k < sizeof copied / sizeof *copied; k++)
			json_object_object_add(clock, copied[k], json_object_get(json_object_object_get(row, copied[k])));
		json_object_object_add(clock, "band_ns", band_of(row));
		json_object_array_add(o->clock, clock);
	}
}

/* The clocks that the times of the subject's machine went through; of all machines where there is none. */
static void take_clocks(struct origin *o, struct json_object *doc, const struct topo *topo, int32_t machine)
{
	char name[256];
	if (machine < 0)
		clock_json(o, doc, NULL);
	else
		clock_lines(o, doc, text_escape(name, sizeof name, topo->machine[machine].name));
	for (; machine >= 0; machine = topo->machine[machine].parent)
		clock_json(o, doc, text_escape(name, sizeof name, topo->machine[machine].name));
}

/* ---- Losses */

static void take_losses(struct origin *o, struct json_object *doc)
{
	struct json_object *traces = field_array(doc, "traces");
	char *line = mem_dup("lost     ");
	for (size_t i = 0; traces && i < json_object_array_length(traces); i++) {
		struct json_object *t = json_object_array_get_idx(traces, i), *loss;
		int64_t lost = field_int(t, "lost", 0), uncounted = field_int(t, "uncounted", 0);
		char count[48] = "some";
		if (lost <= 0 && uncounted <= 0)
			continue;
		if (lost > 0)
			snprintf(count, sizeof count, "%" PRId64 "%s", lost, uncounted > 0 ? " and more" : "");
		char *more = mem_printf("%s%s%s events of %s", line, strlen(line) > INDENT ? ", " : "", count,
		                        field_text(t, "machine"));
		free(line);
		line = more;
		bool host = strcmp(field_text(t, "role"), "host") == 0;
		json_object_array_add(o->lost, loss = json_object_new_object());
		json_object_object_add(loss, "machine", json_object_new_string(host ? "host" : field_text(t, "machine")));
		json_object_object_add(loss, "events", json_object_new_int64(lost));
		json_object_object_add(loss, "uncounted", json_object_new_int64(uncounted));
	}
	add_line(o, strlen(line) > INDENT ? mem_dup(line) : mem_dup("lost     no events"));
	free(line);
}

/* ---- Notes */

/* A note's text in lines that fit a screen. */
static void note_lines(struct origin *o, const char *rest)
{
	for (const char *word = "note"; *rest; word = "") {
		size_t n = text_line(rest, LINE_CELLS - INDENT);
		add_line(o, mem_printf("%-*s%.*s", INDENT, word, (int)n, rest));
		o->doubts++;
		rest += n + (rest[n] == ' ');
	}
}

void origin_doubt(struct origin *o, struct notes *notes)
{
	char text[NOTE_TEXT];
	for (size_t i = 0; i < notes->len; i++) {
		notes_copy(&o->notes, &notes->item[i], NULL);
		if (notes_text(notes, i, text))
			note_lines(o, text);
	}
	notes_release(notes);
}

void origin_write_notes(const struct origin *o, FILE *out)
{
	for (size_t i = o->lines - o->doubts; i < o->lines; i++)
		fprintf(out, "%s\n", o->line[i]);
}

void origin_write_head(const struct origin *o, FILE *out)
{
	char from[TIME_TEXT], to[TIME_TEXT], lasts[TIME_TEXT];
	for (size_t i = 0; o->leaves && i < o->lines - o->doubts; i++)
		fprintf(out, "%s\n", o->line[i]);
	origin_write_notes(o, out);
	if (o->leaves && o->from <= o->to)
		fprintf(out, "window   %s .. %s (%s)\n", time_date(from, o->from, 6), time_clock(to, o->to, 6),
		        time_duration(lasts, o->to - o->from + 1));
	if (o->leaves || o->doubts)
		putc('\n', out);
}

/* ---- All of it */

void origin_take(struct origin *o, const struct topo *topo, const struct subject *s, int64_t from, int64_t to)
{
	struct field_text file = { .longer = NULL };
	char name[PARTY_TEXT];
	size_t size;
	struct notes notes = { 0 };
	*o = (struct origin){ .history = mem_new(1, sizeof(char *)), .histories = 1, .from = from, .to = to,
		.clock = json_object_new_array(), .lost = json_object_new_array() };
	o->history[0] = mem_dup(history_file(topo->h));
	o->subject = s ? mem_dup(topo_subject_text(topo, s, name, sizeof name)) : NULL;
	add_line(o, mem_printf("history  %s", field_escape(history_file(topo->h), &file)));
	field_release(&file);
	const void *meta = history_meta(topo->h, META_PROVENANCE, &size);
	struct json_object *doc = meta ? field_parse(meta, size) : NULL;
	if (doc) {
		take_clocks(o, doc, topo, machine_of(topo, s));
		take_losses(o, doc);
	}
	o->told = doc;
	doubts_of(topo, s, from, to, &notes);
	origin_doubt(o, &notes);
}

static void append(struct json_object *to, struct json_object *from)
{
	for (size_t i = 0; i < json_object_array_length(from); i++)
		json_object_array_add(to, json_object_get(json_object_array_get_idx(from, i)));
}

void origin_add(struct origin *o, const struct origin *other)
{
	struct notes notes = { 0 };
	if (!o->histories)
		*o = (struct origin){ .from = other->from, .to = other->to, .clock = json_object_new_array(),
			.lost = json_object_new_array() };
	else if (o->from != other->from || o->to != other->to)
		o->from = 1, o->to = 0;
	o->history = mem_resize(o->history, o->histories + other->histories, sizeof(char *));
	for (size_t i = 0; i < other->histories; i++)
		o->history[o->histories++] = mem_dup(other->history[i]);
	append(o->clock, other->clock);
	append(o->lost, other->lost);
	for (size_t i = 0; i < other->notes.len; i++)
		notes_copy(&notes, &other->notes.item[i], NULL);
	origin_doubt(o, &notes);
}

void origin_release(struct origin *o)
{
	for (size_t i = 0; i < o->histories; i++)
		free(o->history[i]);
	for (size_t i = 0; i < o->lines; i++)
		free(o->line[i]);
	free(o->history);
	free(o->line);
	free(o->subject);
	json_object_put(o->clock);
	json_object_put(o->lost);
	json_object_put(o->told);
	notes_release(&o->notes);
	*o = (struct origin){ 0 };
}
