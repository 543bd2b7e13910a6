/* Findings in text, csv and json. */
#include "base/base.h"
#include "report/report.h"

static const struct column columns[] = {
	{ "kind", "kind", COL_UNCUT }, { "target", "target", COL_TEXT }, { "culprit", "culprit", COL_TEXT },
	{ "ns", "time", COL_DURATION }, { "share", "share", COL_SHARE }, { "base", "base", COL_UNCUT },
	{ "start", "longest at", COL_CLOCK }, { "end", "end", COL_CLOCK }, { "text", "text", COL_TEXT },
};

static struct json_object *text_json(const char *text)
{
	return text && *text ? json_object_new_string(text) : NULL;
}

static struct json_object *target_json(const struct catalog *catalog, const struct target *target)
{
	char text[ACTOR_TEXT];
	return json_object_new_string(catalog_target_text(catalog, target, text, sizeof text));
}

static struct json_object *moment_json(const struct catalog *catalog, const struct moment *m)
{
	if (m->end < m->start)
		return NULL;
	struct json_object *o = json_object_new_object();
	json_object_object_add(o, "target", target_json(catalog, &m->target));
	json_object_object_add(o, "culprit", text_json(m->culprit_text));
	json_object_object_add(o, "start_ns", json_object_new_int64(m->start));
	json_object_object_add(o, "end_ns", json_object_new_int64(m->end));
	return o;
}

/* Adds how sure the finding is, and why it is not exact: codes of notes, "inferred", "unknown-time". */
static void add_confidence(struct json_object *o, const struct catalog *catalog, const struct finding *f, int64_t from,
                           int64_t to)
{
	struct notes notes = { 0 };
	struct json_object *reasons = json_object_new_array();
	const bool unknown = f->kind == FINDING_UNKNOWN || f->kind == FINDING_NOTHING;
	warnings_of(catalog, f->has_target ? &f->target : NULL, from, to, &notes);
	for (size_t i = 0; i < notes.len; i++) {
		const enum note_code code = notes.item[i].code;
		bool known = code >= NOTE_CODE_COUNT;
		for (size_t k = 0; k < i; k++)
			known |= notes.item[k].code == code;
		if (!known)
			json_object_array_add(reasons, json_object_new_string(note_row[code].name));
	}
	notes_release(&notes);
	if (f->inferred)
		json_object_array_add(reasons, json_object_new_string("inferred"));
	if (f->unknown > 0.005)
		json_object_array_add(reasons, json_object_new_string("unknown-time"));
	const bool bounded = json_object_array_length(reasons) > 0;
	json_object_object_add(o, "confidence", json_object_new_string(unknown ? "unknown" : bounded ? "bounded" : "exact"));
	json_object_object_add(o, "reasons", reasons);
}

struct json_object *finding_json(const struct catalog *catalog, const struct finding *f, int64_t from, int64_t to)
{
	struct json_object *o = json_object_new_object();
	const bool is_limit = f->kind == FINDING_LIMIT_SET && f->culprit.reason < OUT_REASON_COUNT;
	json_object_object_add(o, "kind", json_object_new_string(finding_kind_name[f->kind]));
	json_object_object_add(o, "healthy", json_object_new_boolean(finding_is_healthy(f)));
	json_object_object_add(o, "text", json_object_new_string(f->text));
	json_object_object_add(o, "target", f->has_target ? target_json(catalog, &f->target) : NULL);
	const struct actor_ref ref = { catalog, &f->culprit, NULL };
	json_object_object_add(o, "culprit", *f->culprit_text ? actor_json(&ref, f->culprit_text) : NULL);
	json_object_object_add(o, "reason", is_limit ? json_object_new_string(out_reason_name[f->culprit.reason])
	                       : f->why < NOTE_CODE_COUNT ? json_object_new_string(note_row[f->why].name) : NULL);
	json_object_object_add(o, "ns", json_object_new_int64(f->ns));
	json_object_object_add(o, "share", json_object_new_double(f->share));
	json_object_object_add(o, "base", text_json(f->base));
	json_object_object_add(o, "intervals", json_object_new_int64((int64_t)f->intervals));
	json_object_object_add(o, "moment", moment_json(catalog, &f->moment));
	add_confidence(o, catalog, f, from, to);
	return o;
}

int report_findings(FILE *out, struct report_how how, const struct catalog *catalog, const struct findings *l,
                    const struct origin *o, struct error *err)
{
	static const struct report_shape shape = REPORT_SHAPE("explain", columns);
	struct report *r = report_begin(out, how, &shape, o);
	struct json_object *all = json_object_new_array();
	char target[ACTOR_TEXT];
	for (size_t i = 0; i < l->len; i++) {
		const struct finding *f = &l->item[i];
		const bool has_moment = f->moment.end >= f->moment.start;
		const struct actor_ref ref = { catalog, &f->culprit, NULL };
		report_row(r, (struct value[]){
			VAL_TEXT(finding_kind_name[f->kind]),
			f->has_target ? VAL_SHOWN(catalog_target_text(catalog, &f->target, target, sizeof target)) : VAL_NONE,
			*f->culprit_text ? VAL_WHO(f->culprit_text, &ref) : VAL_NONE, VAL_INT(f->ns), VAL_REAL(f->share),
			*f->base ? VAL_TEXT(f->base) : VAL_NONE, has_moment ? VAL_INT(f->moment.start) : VAL_NONE,
			has_moment ? VAL_INT(f->moment.end) : VAL_NONE, VAL_SHOWN(f->text) });
		json_object_array_add(all, finding_json(catalog, f, o->from, o->to));
	}
	report_member(r, "findings", all);
	return report_end(r, err);
}

void report_findings_text(FILE *out, const struct findings *l, size_t most, const char *file)
{
	char d[TIME_TEXT], number[24] = "verdict";
	for (size_t i = 0; i < l->len && i < most; i++) {
		const struct finding *f = &l->item[i];
		if (i)
			snprintf(number, sizeof number, "%zu", i + 1);
		char *line = *f->command
			? mem_printf("%s: %s. Longest: %s (stealscope %s).\n", number, f->text,
			             time_duration(d, f->moment.end - f->moment.start + 1), f->command)
			: mem_printf("%s: %s.\n", number, f->text);
		prose_write(out, line, file);
		free(line);
	}
}
