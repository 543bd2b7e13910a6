#include "cli/header.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/timefmt.h"
#include "cli/field.h"
#include "cli/provenance.h"

static void add(struct header *h, const char *line)
{
	*ARRAY_PUSH(h->line, h->len, h->cap) = mem_dup(line);
}

static uint32_t machine_of(const struct topo *topo, const struct subject *s)
{
	if (s->kind == SUBJECT_MACHINE)
		return s->index;
	return s->kind == SUBJECT_CPU ? topo->cpu[s->index].machine : topo->thread[s->index].machine;
}

static bool has_host(struct json_object *doc)
{
	struct json_object *traces = field_array(doc, "traces");
	bool host = false;
	for (size_t i = 0; traces && i < json_object_array_length(traces); i++)
		host |= strcmp(field_text(json_object_array_get_idx(traces, i), "role"), "host") == 0;
	return host;
}

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

static void add_nudge(struct header *h, struct json_object *doc, const char *machine)
{
	struct json_object *rows = field_array(doc, "nudges");
	for (size_t i = 0; rows && i < json_object_array_length(rows); i++) {
		struct json_object *row = json_object_array_get_idx(rows, i);
		char line[80], by[TIME_TEXT];
		if (strcmp(field_text(row, "guest"), machine) != 0)
			continue;
		snprintf(line, sizeof line, "         moved by hand: %s", time_exact(by, field_int(row, "nudge_ns", 0)));
		add(h, line);
	}
}

/* One line for the machine's clock; when it stepped, one more from each step on. */
static void add_clock(struct header *h, struct json_object *doc, const char *machine)
{
	struct json_object *rows = field_array(doc, "sync");
	bool stepped = false;
	for (size_t i = 0; rows && i < json_object_array_length(rows); i++) {
		struct json_object *row = json_object_array_get_idx(rows, i);
		if (strcmp(field_text(row, "guest"), machine) != 0)
			continue;
		char line[200], band[TIME_TEXT], at[TIME_TEXT], text[160];
		int64_t width = field_int(row, "band_mid_ns", -1);
		if (stepped) {
			snprintf(line, sizeof line, "         stepped at %s; then %s, error band %s",
			         time_clock(at, field_int(row, "ref_host_ns", 0), 6), field_text(row, "quality"),
			         width < 0 ? "unknown" : time_duration(band, width));
		} else if (*field_text(row, "doubt")) {
			snprintf(line, sizeof line, "clock    not synchronized: %s", field_text(row, "doubt"));
			add(h, line);
			snprintf(line, sizeof line, "         its times are its own; %s", has_host(doc)
			         ? "give its offset in a session file" : "open it together with its host");
		} else {
			clock_text(row, text, sizeof text);
			snprintf(line, sizeof line, "clock    %s", text);
		}
		add(h, line);
		stepped = true;
	}
	add_nudge(h, doc, machine);
}

static void add_losses(struct header *h, struct json_object *doc)
{
	struct json_object *traces = field_array(doc, "traces");
	char line[200] = "lost     ";
	size_t empty = strlen(line);
	for (size_t i = 0; traces && i < json_object_array_length(traces); i++) {
		struct json_object *t = json_object_array_get_idx(traces, i);
		int64_t lost = field_int(t, "lost", 0), uncounted = field_int(t, "uncounted", 0);
		char count[48] = "some";
		size_t used = strlen(line);
		if (lost > 0)
			snprintf(count, sizeof count, "%" PRId64 "%s", lost, uncounted > 0 ? " and more" : "");
		if (lost > 0 || uncounted > 0)
			snprintf(line + used, sizeof line - used, "%s%s events of %s", used > empty ? ", " : "", count,
			         field_text(t, "machine"));
	}
	add(h, strlen(line) > empty ? line : "lost     no events");
}

void header_make(struct header *out, const struct topo *topo, const struct subject *s)
{
	*out = (struct header){ 0 };
	char line[300], name[240];
	snprintf(line, sizeof line, "history  %s", text_escape(name, sizeof name, history_file(topo->h)));
	add(out, line);
	struct json_object *doc = provenance_load(topo->h, NULL);
	if (!doc)
		return;
	char machine[256];
	add_clock(out, doc, text_escape(machine, sizeof machine, topo->machine[machine_of(topo, s)].name));
	add_losses(out, doc);
	json_object_put(doc);
}

void header_release(struct header *h)
{
	for (size_t i = 0; i < h->len; i++)
		free(h->line[i]);
	free(h->line);
}
