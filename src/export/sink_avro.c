/* Sink avro: writes DIR/TABLE/RUN.avro, object container files of Apache Avro with deflate, through libavro. */
#include <avro.h>
#include <errno.h>
#include <json-c/json.h>
#include <stdlib.h>
#include <string.h>

#include "base/json_field.h"
#include "base/mem.h"
#include "base/dlopen_library.h"
#include "export/run_files.h"

#define BLOCK (1 << 20)  /* bytes per compressed block; readers need memory for one block */
#define BRANCH_NULL 0    /* branches of the union type of a nullable field */
#define BRANCH_VALUE 1

#define AVRO_CALLS(CALL) \
	CALL(avro_, file_writer_append_value) CALL(avro_, file_writer_close) \
	CALL(avro_, file_writer_create_with_codec_fp) CALL(avro_, generic_class_from_schema) \
	CALL(avro_, generic_value_new) CALL(avro_, schema_decref) CALL(avro_, schema_from_json_length) \
	CALL(avro_, strerror) CALL(avro_, value_decref)
static struct { AVRO_CALLS(LIBRARY_POINTER) } avro;  /* functions of libavro; set by open_avro() */

struct sink {
	struct run_files files;
	const struct export_shape *table;
	avro_schema_t schema;
	avro_value_iface_t *class;
	avro_value_t row;
	avro_value_t field[TABLE_FIELDS_MAX];   /* cells of the row, in the table's order */
	avro_file_writer_t writer;              /* NULL: none */
};

static int avro_refuse(const struct sink *s, struct error *err)
{
	return errno == ENOSPC || errno == EFBIG || errno == EIO
	       ? error_system(err, "free disk space", "%s", s->files.save.path)
	       : error_set(err, STATUS_SYSTEM, NULL, "%s: %s", s->files.save.path, avro.strerror());
}

/* ---- The schema */

static struct json_object *type_json(const struct table_field *f)
{
	static const char *const type[] = { [FIELD_INT] = "long", [FIELD_TIME] = "long", [FIELD_REAL] = "double",
		[FIELD_TEXT] = "string" };
	struct json_object *plain = json_object_new_string(type[f->type]);
	if (!f->nullable)
		return plain;
	struct json_object *both = json_new_array();
	json_object_array_add(both, json_object_new_string("null"));
	json_object_array_add(both, plain);
	return both;
}

/* Returns the position of a field's group in the schema. Readers find fields by name, so the order is free. Fields that
 * differ in every row (durations, then times) come first: the remaining fields then compress better, and files are 7 %
 * smaller. */
static int field_group(const struct table_field *f)
{
	const bool is_duration = f->type == FIELD_INT && (strcmp(f->name, "dur") == 0 || strstr(f->name, "ns"));
	return is_duration ? 0 : f->type == FIELD_TIME ? 1 : 2;
}

static char *schema_text(const struct export_shape *t)
{
	struct json_object *o = json_new_object(), *fields = json_new_array();
	for (int group = 0; group <= 2; group++)
		for (size_t i = 0; i < t->fields; i++) {
			if (field_group(&t->field[i]) != group)
				continue;
			struct json_object *field = json_new_object();
			json_object_object_add(field, "name", json_object_new_string(t->field[i].name));
			json_object_object_add(field, "type", type_json(&t->field[i]));
			json_object_array_add(fields, field);
		}
	json_object_object_add(o, "type", json_object_new_string("record"));
	json_object_object_add(o, "name", json_object_new_string(t->name));
	json_object_object_add(o, "namespace", json_object_new_string("stealscope"));
	json_object_object_add(o, "fields", fields);
	char *text = mem_dup(json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN));
	json_object_put(o);
	return text;
}

/* ---- A table */

static int make_row(struct sink *s, const struct export_shape *t)
{
	char *text = schema_text(t);
	int rc = avro.schema_from_json_length(text, strlen(text), &s->schema);
	free(text);
	if (rc)
		return rc;
	s->class = avro.generic_class_from_schema(s->schema);
	rc = s->class ? avro.generic_value_new(s->class, &s->row) : -1;
	for (size_t i = 0; i < t->fields && rc == 0; i++)
		rc = avro_value_get_by_name(&s->row, t->field[i].name, &s->field[i], NULL);
	return rc;
}

static void release_row(struct sink *s)
{
	if (s->row.self)
		avro.value_decref(&s->row);
	if (s->class)
		avro_value_iface_decref(s->class);
	if (s->schema)
		avro.schema_decref(s->schema);
	s->row = (avro_value_t){ NULL, NULL };
	s->class = NULL;
	s->schema = NULL;
}

static int avro_begin(struct sink *s, const struct export_shape *t, struct error *err)
{
	s->table = t;
	if (files_begin(&s->files, t, err))
		return -1;
	errno = 0;
	if (make_row(s, t) == 0 && avro.file_writer_create_with_codec_fp(s->files.save.f, s->files.save.path, 0, s->schema,
	                                                                 &s->writer, "deflate", BLOCK) == 0)
		return 0;
	s->writer = NULL;
	return avro_refuse(s, err);
}

static int set_field(avro_value_t field, const struct table_field *f, const struct table_cell *c)
{
	avro_value_t value = field;
	if (f->nullable && avro_value_set_branch(&field, c->absent ? BRANCH_NULL : BRANCH_VALUE, &value))
		return -1;
	if (c->absent)
		return avro_value_set_null(&value);
	switch (f->type) {
	case FIELD_INT:
	case FIELD_TIME:
		return avro_value_set_long(&value, c->number);
	case FIELD_REAL:
		return avro_value_set_double(&value, c->real);
	case FIELD_TEXT:
		return avro_value_set_string(&value, c->text);
	}
	return -1;
}

static int avro_row(struct sink *s, const struct table_cell *cell, struct error *err)
{
	int rc = 0;
	errno = 0;
	for (size_t i = 0; i < s->table->fields && rc == 0; i++)
		rc = set_field(s->field[i], &s->table->field[i], &cell[i]);
	return rc || avro.file_writer_append_value(s->writer, &s->row) ? avro_refuse(s, err) : 0;
}

static int end_writer(struct sink *s)
{
	int rc = s->writer ? avro.file_writer_close(s->writer) : 0;
	s->writer = NULL;
	release_row(s);
	return rc;
}

static int avro_end(struct sink *s, struct error *err)
{
	errno = 0;
	return files_end(&s->files, end_writer(s) ? avro_refuse(s, err) : 0, err);
}

static struct sink *open_avro(const char *target, const struct sink_run *run, struct error *err)
{
	static const char *const name[] = { AVRO_CALLS(LIBRARY_NAME) NULL };
	if (library_load(AVRO_FILE, "libavro", name, &avro, err))
		return NULL;
	struct sink *s = mem_new(1, sizeof *s);
	if (files_open(&s->files, target, "avro", run->id, err) == 0)
		return s;
	free(s);
	return NULL;
}

static int close_avro(struct sink *s, int status, struct error *err)
{
	(void)err;
	end_writer(s);
	files_close(&s->files);
	free(s);
	return status;
}

const struct sink_ops sink_avro = { TABLE_ALL, open_avro, avro_begin, avro_row, avro_end, close_avro };
