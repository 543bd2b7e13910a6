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

/* One line for the machine's clock; when it stepped, one more from each step on. */
static void add_clock(struct header *h, struct json_object *doc, const char *machine)
{
	struct json_object *rows = field_array(doc, "sync");
	bool stepped = false;
	for (size_t i = 0; rows && i < json_object_array_length(rows); i++) {
		struct json_object *row = json_object_array_get_idx(rows, i);
		if (strcmp(field_text(row, "guest"), machine) != 0)
			continue;
		char line[160], band[TIME_TEXT], at[TIME_TEXT];
		int64_t width = field_int(row, "band_mid_ns", -1);
		const char *known = width < 0 ? "unknown" : time_duration(band, width);
		if (stepped)
			snprintf(line, sizeof line, "         stepped at %s; then %s, error band %s",
			         time_clock(at, field_int(row, "ref_host_ns", 0), 6), field_text(row, "quality"), known);
		else
			snprintf(line, sizeof line, "clock    %s, error band %s, %.2f%% of the guest's events contained",
			         field_text(row, "quality"), known, 100 * field_real(row, "containment", 0));
		add(h, line);
		stepped = true;
	}
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
