#include "ctf2.h"

#include <fts.h>
#include <json-c/json.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "trace/ctf/types.h"
#include "trace/discovery/metadata.h"

enum scope { PACKET_HEADER, PACKET_CONTEXT, EVENT_HEADER, EVENT_CONTEXT, OWN_CONTEXT, PAYLOAD };

struct converter {  /* State while the field classes of one scope are converted. */
	const struct ctf_metadata *m;
	enum scope scope;
	struct { const struct ctf_type *type; const char *name; } enclosing[CTF_MAX_DEPTH + 2];
	size_t depth;
};

static void exit_with_message(const char *message)
{
	fprintf(stderr, "ctf2: %s\n", message);
	exit(1);
}

static json_object *new_object(const char *type)
{
	json_object *o = json_object_new_object();
	json_object_object_add(o, "type", json_object_new_string(type));
	return o;
}

static void add_text(json_object *o, const char *key, const char *text)
{
	json_object_object_add(o, key, json_object_new_string(text));
}

static void add_number(json_object *o, const char *key, uint64_t v)
{
	json_object_object_add(o, key, json_object_new_uint64(v));
}

static const char *role_of_field(const struct converter *t, const struct ctf_type *type, const char *name)
{
	static const struct { enum scope scope; const char *name, *role; } roles[] = {
		{ PACKET_HEADER, "magic", "packet-magic-number" }, { PACKET_HEADER, "uuid", "metadata-stream-uuid" },
		{ PACKET_HEADER, "stream_id", "data-stream-class-id" }, { PACKET_HEADER, "stream_instance_id", "data-stream-id" },
		{ PACKET_CONTEXT, "timestamp_begin", "default-clock-timestamp" },
		{ PACKET_CONTEXT, "timestamp_end", "packet-end-default-clock-timestamp" },
		{ PACKET_CONTEXT, "content_size", "packet-content-length" },
		{ PACKET_CONTEXT, "packet_size", "packet-total-length" },
		{ PACKET_CONTEXT, "events_discarded", "discarded-event-record-counter-snapshot" },
		{ PACKET_CONTEXT, "packet_seq_num", "packet-sequence-number" }, { EVENT_HEADER, "id", "event-record-class-id" },
	};
	for (size_t i = 0; i < sizeof roles / sizeof *roles && name; i++)
		if (roles[i].scope == t->scope && strcmp(roles[i].name, name) == 0)
			return roles[i].role;
	return t->scope == EVENT_HEADER && type->clock ? "default-clock-timestamp" : NULL;
}

/* Returns the location of a field: relative if it is in the same structure, else absolute. */
static json_object *field_location(const struct converter *t, const char *where, const struct ctf_type **found)
{
	static const char *const origin[] = { "packet-header", "packet-context", "event-record-header",
		"event-record-common-context", "event-record-specific-context", "event-record-payload" };
	size_t i = t->depth;
	while (i && !(*found = ctf_member_find(t->enclosing[i - 1].type, where, strlen(where))))
		i--;
	if (!i)
		exit_with_message("a field that is elsewhere");
	json_object *o = json_object_new_object(), *path = json_object_new_array();
	if (i < t->depth) {
		add_text(o, "origin", origin[t->scope]);
		for (size_t k = 1; k < i; k++)
			json_object_array_add(path, json_object_new_string(t->enclosing[k].name));
	}
	json_object_array_add(path, json_object_new_string(where));
	json_object_object_add(o, "path", path);
	return o;
}

static json_object *field_class(struct converter *t, const struct ctf_type *type, const char *name);

static json_object *numeric_class(const struct converter *t, const struct ctf_type *type)
{
	const bool is_big = type->order == CTF_NATIVE ? t->m->is_big_endian : type->order == CTF_BIG;
	json_object *o = new_object(type->kind == CTF_FLOAT ? "fixed-length-floating-point-number" :
		type->is_signed ? "fixed-length-signed-integer" : "fixed-length-unsigned-integer");
	add_number(o, "length", type->size);
	add_number(o, "alignment", type->align);
	add_text(o, "byte-order", is_big ? "big-endian" : "little-endian");
	return o;
}

static json_object *structure_class(struct converter *t, const struct ctf_type *type, const char *name)
{
	json_object *o = new_object("structure"), *members = json_object_new_array();
	add_number(o, "minimum-alignment", type->align);
	t->enclosing[t->depth].type = type;
	t->enclosing[t->depth++].name = name;
	for (const struct ctf_member *m = type->member; m; m = m->next) {
		json_object *member = json_object_new_object();
		add_text(member, "name", m->name);
		json_object_object_add(member, "field-class", field_class(t, m->type, m->name));
		json_object_array_add(members, member);
	}
	t->depth--;
	json_object_object_add(o, "member-classes", members);
	return o;
}

static json_object *array_class(struct converter *t, const struct ctf_type *type, const char *name)
{
	const struct ctf_type *converter;
	const bool is_blob = t->scope == PACKET_HEADER && name && strcmp(name, "uuid") == 0;
	const char *kind = is_blob ? "static-length-blob" : type->is_text ?
		(type->control_path ? "dynamic-length-string" : "static-length-string") :
		type->control_path ? "dynamic-length-array" : "static-length-array";
	json_object *o = new_object(kind);
	if (type->control_path)
		json_object_object_add(o, "length-field-location", field_location(t, type->control_path, &converter));
	else
		add_number(o, "length", type->length);
	if (!is_blob && !type->is_text)
		json_object_object_add(o, "element-field-class", field_class(t, type->element, NULL));
	return o;
}

static json_object *variant_class(struct converter *t, const struct ctf_type *type, const char *name)
{
	const struct ctf_type *converter;
	json_object *o = new_object("variant"), *options = json_object_new_array();
	json_object_object_add(o, "selector-field-location", field_location(t, type->control_path, &converter));
	t->enclosing[t->depth].type = type;
	t->enclosing[t->depth++].name = name;
	for (const struct ctf_member *m = type->member; m; m = m->next) {
		json_object *option = json_object_new_object(), *ranges = json_object_new_array();
		for (const struct ctf_label *l = converter->label; l; l = l->next) {
			if (strcmp(l->name, m->name) != 0)
				continue;
			json_object *range = json_object_new_array();
			json_object_array_add(range, json_object_new_uint64(l->lower));
			json_object_array_add(range, json_object_new_uint64(l->upper));
			json_object_array_add(ranges, range);
		}
		add_text(option, "name", m->name);
		json_object_object_add(option, "selector-field-ranges", ranges);
		json_object_object_add(option, "field-class", field_class(t, m->type, m->name));
		json_object_array_add(options, option);
	}
	t->depth--;
	json_object_object_add(o, "options", options);
	return o;
}

static json_object *field_class(struct converter *t, const struct ctf_type *type, const char *name)
{
	json_object *o = type->kind == CTF_STRUCT ? structure_class(t, type, name) :
		type->kind == CTF_ARRAY ? array_class(t, type, name) :
		type->kind == CTF_VARIANT ? variant_class(t, type, name) :
		type->kind == CTF_STRING ? new_object("null-terminated-string") : numeric_class(t, type);
	const char *role = role_of_field(t, type, name);
	if (role) {
		json_object *roles = json_object_new_array();
		json_object_array_add(roles, json_object_new_string(role));
		json_object_object_add(o, "roles", roles);
	}
	return o;
}

static void add_class(const struct ctf_metadata *m, json_object *o, const char *key, const struct ctf_type *type,
                      enum scope scope)
{
	struct converter t = { .m = m, .scope = scope };
	if (type)
		json_object_object_add(o, key, structure_class(&t, type, NULL));
}

static void write_fragment(FILE *f, json_object *o)
{
	fprintf(f, "\x1e%s\n", json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN));
	json_object_put(o);
}

static void write_trace_class(FILE *f, const struct ctf_metadata *m, const struct metadata *trace_metadata)
{
	json_object *preamble = new_object("preamble"), *trace = new_object("trace-class"), *env = json_object_new_object();
	char name[128] = "", major[16] = "", minor[16] = "", patch[16] = "";
	add_number(preamble, "version", 2);
	if (m->has_uuid) {
		json_object *uuid = json_object_new_array();
		for (size_t i = 0; i < sizeof m->uuid; i++)
			json_object_array_add(uuid, json_object_new_int(m->uuid[i]));
		json_object_object_add(preamble, "uuid", uuid);
	}
	write_fragment(f, preamble);
	sscanf(trace_metadata->tracer, "%127s %15[^.].%15[^.].%15s", name, major, minor, patch);
	add_text(env, "hostname", trace_metadata->hostname);
	add_text(env, "domain", trace_metadata->domain);
	add_text(env, "tracer_name", name);
	add_text(env, "tracer_major", major);
	if (*minor)
		add_number(env, "tracer_minor", strtoul(minor, NULL, 10));
	add_text(env, "tracer_patchlevel", patch);
	json_object_object_add(trace, "environment", env);
	add_class(m, trace, "packet-header-field-class", m->packet_header, PACKET_HEADER);
	write_fragment(f, trace);
}

static void write_clock_class(FILE *f, const struct ctf_clock *c, const struct metadata *trace_metadata)
{
	json_object *o = new_object("clock-class"), *offset = json_object_new_object();
	add_text(o, "id", c->name);
	if (*trace_metadata->clock_uuid)
		add_text(o, "uid", trace_metadata->clock_uuid);
	add_number(o, "frequency", c->frequency);
	json_object_object_add(offset, "seconds", json_object_new_int64(c->offset_s));
	json_object_object_add(offset, "cycles", json_object_new_int64(c->offset));
	json_object_object_add(o, "offset-from-origin", offset);
	write_fragment(f, o);
}

/* Writes the event header as an alias, which tests aliases. */
static void write_stream_class(FILE *f, const struct ctf_metadata *m, const struct ctf_stream *s)
{
	json_object *o = new_object("data-stream-class"), *alias = new_object("field-class-alias");
	char name[32];
	snprintf(name, sizeof name, "header of %llu", (unsigned long long)s->id);
	if (s->event_header) {
		add_text(alias, "name", name);
		add_class(m, alias, "field-class", s->event_header, EVENT_HEADER);
		add_text(o, "event-record-header-field-class", name);
		write_fragment(f, json_object_get(alias));
	}
	json_object_put(alias);
	add_number(o, "id", s->id);
	add_text(o, "default-clock-class-id", m->clock->name);
	add_class(m, o, "packet-context-field-class", s->packet_context, PACKET_CONTEXT);
	add_class(m, o, "event-record-common-context-field-class", s->event_context, EVENT_CONTEXT);
	write_fragment(f, o);
}

static void write_event_class(FILE *f, const struct ctf_metadata *m, const struct ctf_event *e)
{
	json_object *o = new_object("event-record-class");
	add_number(o, "id", e->id);
	if (e->has_stream_id)
		add_number(o, "data-stream-class-id", e->stream_id);
	add_text(o, "name", e->name);
	add_class(m, o, "specific-context-field-class", e->context, OWN_CONTEXT);
	add_class(m, o, "payload-field-class", e->payload, PAYLOAD);
	write_fragment(f, o);
}

static void convert_metadata(const char *dir, const char *to)
{
	struct error err = ERROR_INIT;
	struct metadata trace_metadata;
	struct ctf_metadata m;
	size_t len;
	char *text = metadata_text(dir, &len, &err), *path = mem_printf("%s/metadata", to);
	if (!text || metadata_read(dir, &trace_metadata, &err))
		exit_with_message(err.text);
	ctf_metadata_parse(&m, text, len);
	FILE *f = fopen(path, "w");
	if (m.reason || !f || !m.clock)
		exit_with_message(m.reason ? m.reason : path);
	write_trace_class(f, &m, &trace_metadata);
	for (const struct ctf_clock *c = m.clock; c; c = c->next)
		write_clock_class(f, c, &trace_metadata);
	for (const struct ctf_stream *s = m.stream; s; s = s->next)
		write_stream_class(f, &m, s);
	for (const struct ctf_event *e = m.event; e; e = e->next)
		write_event_class(f, &m, e);
	fclose(f);
	ctf_metadata_release(&m);
	free(text);
	free(path);
}

static void copy_file(const char *from, const char *to)
{
	char block[1 << 16];
	FILE *enclosing = fopen(from, "r"), *out = fopen(to, "w");
	if (!enclosing || !out)
		exit_with_message(from);
	for (size_t n; (n = fread(block, 1, sizeof block, enclosing)) > 0;)
		if (fwrite(block, 1, n, out) != n)
			exit_with_message(to);
	fclose(enclosing);
	if (fclose(out))
		exit_with_message(to);
}

void ctf2_convert(const char *from, const char *to)
{
	char *const roots[] = { (char *)from, NULL };
	FTS *fts = fts_open(roots, FTS_LOGICAL | FTS_NOCHDIR, NULL);
	for (FTSENT *e; fts && (e = fts_read(fts));) {
		char *path = mem_printf("%s%s", to, e->fts_path + strlen(from));
		if (e->fts_info == FTS_D) {
			mkdir(path, 0755);
		} else if (e->fts_info == FTS_F && strcmp(e->fts_name, "metadata") != 0) {
			copy_file(e->fts_accpath, path);
		} else if (e->fts_info == FTS_F) {
			*strrchr(path, '/') = '\0';
			char *dir = mem_dup(e->fts_path);
			*strrchr(dir, '/') = '\0';
			convert_metadata(dir, path);
			free(dir);
		}
		free(path);
	}
	if (fts)
		fts_close(fts);
}
