/* Writer of json: one object (share/schema/answers.json) with the answer's inputs, the rows, and further members. */
#include "base/json_field.h"
#include "base/text.h"
#include "report/writer.h"

static void write_member(struct report *r, const char *name, struct json_object *o)
{
	fprintf(r->out, "  \"%s\": %s", name, json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN));
	json_object_put(o);
}

static struct json_object *text_json(const char *escaped)
{
	return escaped ? json_object_new_string(escaped) : NULL;
}

/* Returns the history file's name, or an array if there are several. */
static struct json_object *history_json(const struct origin *o)
{
	struct field_buffer field = { .longer = NULL };
	struct json_object *list = json_new_array();
	for (size_t i = 0; o && i < o->histories; i++)
		json_object_array_add(list, text_json(field_escape(o->history[i], &field)));
	field_release(&field);
	if (json_object_array_length(list) > 1)
		return list;
	struct json_object *only = json_object_get(json_object_array_get_idx(list, 0));
	json_object_put(list);
	return only;
}

static struct json_object *interval_json(int64_t from, int64_t to)
{
	if (from > to)
		return NULL;
	struct json_object *o = json_new_object();
	json_object_object_add(o, "start", json_object_new_int64(from));
	json_object_object_add(o, "end", json_object_new_int64(to));
	return o;
}

/* Returns a note as an object. "start", "end": null if the note concerns all time; "machine": null if it concerns no
 * single machine. */
static struct json_object *note_json(const struct note *note)
{
	char text[NOTE_TEXT];
	struct json_object *o = json_new_object();
	json_object_object_add(o, "code", text_json(note->code < NOTE_CODE_COUNT ? note_row[note->code].name : NULL));
	json_object_object_add(o, "kind", text_json(note_kind_name[note->kind]));
	json_object_object_add(o, "machine", text_json(note->machine ? text_escape(text, sizeof text, note->machine) : NULL));
	json_object_object_add(o, "start", note->from == INT64_MIN ? NULL : json_object_new_int64(note->from));
	json_object_object_add(o, "end", note->to == INT64_MAX ? NULL : json_object_new_int64(note->to));
	json_object_object_add(o, "text", text_json(text_sanitize(text, sizeof text, note->text)));
	json_object_object_add(o, "advice", text_json(note_advice(note)));
	return o;
}

static struct json_object *notes_json(const struct origin *o)
{
	struct json_object *list = json_new_array();
	for (size_t i = 0; o && i < o->notes.len; i++)
		json_object_array_add(list, note_json(&o->notes.item[i]));
	return list;
}

static struct json_object *list_json(struct json_object *list)
{
	return list ? json_object_get(list) : json_new_array();
}

static void json_begin(struct report *r)
{
	const struct origin *o = r->origin;
	const struct { const char *name; struct json_object *value; } json_member[] = {
		{ "program", text_json("stealscope " PACKAGE_VERSION) }, { "schema", json_object_new_int(REPORT_SCHEMA) },
		{ "answer", text_json(r->shape->name) }, { "history", history_json(o) },
		{ "target", text_json(o ? o->target : NULL) }, { "window", o ? interval_json(o->from, o->to) : NULL },
		{ "clock", list_json(o ? o->clock : NULL) }, { "lost", list_json(o ? o->lost : NULL) },
		{ "notes", notes_json(o) },
	};
	fputs("{\n", r->out);
	for (size_t i = 0; i < sizeof json_member / sizeof *json_member; i++) {
		write_member(r, json_member[i].name, json_member[i].value);
		fputs(",\n", r->out);
	}
	fputs("  \"rows\": [", r->out);
}

struct json_object *actor_json(const struct actor_ref *ref, const char *text)
{
	struct field_buffer field = { .longer = NULL };
	const struct actor *a = ref->actor;
	struct json_object *o = json_new_object();
	const int i = a->machine >= 0 && a->tid >= 0 ? catalog_find_thread(ref->catalog, (uint32_t)a->machine, a->tid) : -1;
	const char *name = ref->name || i < 0 ? ref->name : catalog_longest_name(ref->catalog, (uint32_t)i);
	json_object_object_add(o, "text", text_json(text));
	json_object_object_add(o, "kind", text_json(flow_kind_name[a->kind]));
	json_object_object_add(o, "machine", a->machine < 0 ? NULL
	                       : text_json(field_escape(ref->catalog->machine[a->machine].name, &field)));
	json_object_object_add(o, "tid", a->tid < 0 ? NULL : json_object_new_int(a->tid));
	json_object_object_add(o, "name", name && *name ? text_json(field_escape(name, &field)) : NULL);
	json_object_object_add(o, "reason", a->kind != FLOW_LIMITED || a->reason >= OUT_REASON_COUNT ? NULL
	                       : text_json(out_reason_name[a->reason]));
	field_release(&field);
	return o;
}

static struct json_object *field_json(const struct column *c, const struct value *v, struct field_buffer *field)
{
	if (v->form == VALUE_ABSENT)
		return NULL;
	if (v->who)
		return actor_json(v->who, v->text);
	const char *text = field_format(c, v, false, field);
	if (column_is_text(c))
		return text_json(text);
	if (c->type == COL_SHARE || c->type == COL_REAL)
		return json_object_new_double_s(v->real, text);
	return json_object_new_int64(v->integer);
}

/* Writes the columns of csv in their order, then the actors, of which csv has the parts. */
static void json_row(struct report *r, const struct value *value)
{
	struct json_object *o = json_new_object();
	struct field_buffer field = { .longer = NULL };
	for (int actors = 0; actors < 2; actors++)
		for (size_t i = 0; i < r->shape->columns; i++) {
			const struct column *c = &r->shape->column[i];
			if (c->name && (c->type == COL_ACTOR) == (actors == 1))
				json_object_object_add(o, c->name, field_json(c, &value[i], &field));
		}
	field_release(&field);
	fprintf(r->out, "%s\n    %s", r->rows > 1 ? "," : "", json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN));
	json_object_put(o);
}

static void json_close_rows(struct report *r)
{
	if (!r->rows_closed)
		fputs(r->rows ? "\n  ]" : "]", r->out);
	r->rows_closed = true;
}

static void json_member(struct report *r, const char *name, struct json_object *o)
{
	json_close_rows(r);
	fputs(",\n", r->out);
	write_member(r, name, o);
}

static void json_end(struct report *r)
{
	json_close_rows(r);
	fputs("\n}\n", r->out);
}

const struct report_writer write_json = { json_begin, json_row, json_member, json_end };
