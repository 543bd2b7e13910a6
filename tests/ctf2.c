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

struct teller {  /* of CTF 2, of one field class after the other */
	const struct ctf_metadata *m;
	enum scope scope;
	struct { const struct ctf_type *type; const char *name; } in[CTF_DEEPEST + 2];
	size_t depth;
};

static void die(const char *what)
{
	fprintf(stderr, "ctf2: %s\n", what);
	exit(1);
}

static json_object *object(const char *type)
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

static const char *role_of(const struct teller *t, const struct ctf_type *type, const char *name)
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

/* Next to the field by a way that begins there, farther off by one that begins at the scope. */
static json_object *location(const struct teller *t, const char *where, const struct ctf_type **found)
{
	static const char *const origin[] = { "packet-header", "packet-context", "event-record-header",
		"event-record-common-context", "event-record-specific-context", "event-record-payload" };
	size_t i = t->depth;
	while (i && !(*found = ctf_member_find(t->in[i - 1].type, where, strlen(where))))
		i--;
	if (!i)
		die("a field that is elsewhere");
	json_object *o = json_object_new_object(), *path = json_object_new_array();
	if (i < t->depth) {
		add_text(o, "origin", origin[t->scope]);
		for (size_t k = 1; k < i; k++)
			json_object_array_add(path, json_object_new_string(t->in[k].name));
	}
	json_object_array_add(path, json_object_new_string(where));
	json_object_object_add(o, "path", path);
	return o;
}

static json_object *field_class(struct teller *t, const struct ctf_type *type, const char *name);

static json_object *numeric(const struct teller *t, const struct ctf_type *type)
{
	const bool is_big = type->order == CTF_NATIVE ? t->m->big : type->order == CTF_BIG;
	json_object *o = object(type->kind == CTF_FLOAT ? "fixed-length-floating-point-number" :
		type->is_signed ? "fixed-length-signed-integer" : "fixed-length-unsigned-integer");
	add_number(o, "length", type->size);
	add_number(o, "alignment", type->align);
	add_text(o, "byte-order", is_big ? "big-endian" : "little-endian");
	return o;
}

static json_object *structure(struct teller *t, const struct ctf_type *type, const char *name)
{
	json_object *o = object("structure"), *members = json_object_new_array();
	add_number(o, "minimum-alignment", type->align);
	t->in[t->depth].type = type;
	t->in[t->depth++].name = name;
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

static json_object *array(struct teller *t, const struct ctf_type *type, const char *name)
{
	const struct ctf_type *teller;
	const bool is_blob = t->scope == PACKET_HEADER && name && strcmp(name, "uuid") == 0;
	const char *kind = is_blob ? "static-length-blob" : type->is_text ?
		(type->where ? "dynamic-length-string" : "static-length-string") :
		type->where ? "dynamic-length-array" : "static-length-array";
	json_object *o = object(kind);
	if (type->where)
		json_object_object_add(o, "length-field-location", location(t, type->where, &teller));
	else
		add_number(o, "length", type->length);
	if (!is_blob && !type->is_text)
		json_object_object_add(o, "element-field-class", field_class(t, type->element, NULL));
	return o;
}

static json_object *variant(struct teller *t, const struct ctf_type *type, const char *name)
{
	const struct ctf_type *teller;
	json_object *o = object("variant"), *options = json_object_new_array();
	json_object_object_add(o, "selector-field-location", location(t, type->where, &teller));
	t->in[t->depth].type = type;
	t->in[t->depth++].name = name;
	for (const struct ctf_member *m = type->member; m; m = m->next) {
		json_object *option = json_object_new_object(), *ranges = json_object_new_array();
		for (const struct ctf_label *l = teller->label; l; l = l->next) {
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

static json_object *field_class(struct teller *t, const struct ctf_type *type, const char *name)
{
	json_object *o = type->kind == CTF_STRUCT ? structure(t, type, name) : type->kind == CTF_ARRAY ? array(t, type, name) :
		type->kind == CTF_VARIANT ? variant(t, type, name) :
		type->kind == CTF_STRING ? object("null-terminated-string") : numeric(t, type);
	const char *role = role_of(t, type, name);
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
	struct teller t = { .m = m, .scope = scope };
	if (type)
		json_object_object_add(o, key, structure(&t, type, NULL));
}

static void put(FILE *f, json_object *o)
{
	fprintf(f, "\x1e%s\n", json_object_to_json_string_ext(o, JSON_C_TO_STRING_PLAIN));
	json_object_put(o);
}

static void put_trace(FILE *f, const struct ctf_metadata *m, const struct metadata *head)
{
	json_object *preamble = object("preamble"), *trace = object("trace-class"), *env = json_object_new_object();
	char name[128] = "", major[16] = "", minor[16] = "", patch[16] = "";
	add_number(preamble, "version", 2);
	if (m->has_uuid) {
		json_object *uuid = json_object_new_array();
		for (size_t i = 0; i < sizeof m->uuid; i++)
			json_object_array_add(uuid, json_object_new_int(m->uuid[i]));
		json_object_object_add(preamble, "uuid", uuid);
	}
	put(f, preamble);
	sscanf(head->tracer, "%127s %15[^.].%15[^.].%15s", name, major, minor, patch);
	add_text(env, "hostname", head->hostname);
	add_text(env, "domain", head->domain);
	add_text(env, "tracer_name", name);
	add_text(env, "tracer_major", major);
	if (*minor)
		add_number(env, "tracer_minor", strtoul(minor, NULL, 10));
	add_text(env, "tracer_patchlevel", patch);
	json_object_object_add(trace, "environment", env);
	add_class(m, trace, "packet-header-field-class", m->packet_header, PACKET_HEADER);
	put(f, trace);
}

static void put_clock(FILE *f, const struct ctf_clock *c, const struct metadata *head)
{
	json_object *o = object("clock-class"), *offset = json_object_new_object();
	add_text(o, "id", c->name);
	if (*head->clock_uuid)
		add_text(o, "uid", head->clock_uuid);
	add_number(o, "frequency", c->frequency);
	json_object_object_add(offset, "seconds", json_object_new_int64(c->offset_s));
	json_object_object_add(offset, "cycles", json_object_new_int64(c->offset));
	json_object_object_add(o, "offset-from-origin", offset);
	put(f, o);
}

/* The event header goes by another name, which is declared before. */
static void put_stream(FILE *f, const struct ctf_metadata *m, const struct ctf_stream *s)
{
	json_object *o = object("data-stream-class"), *alias = object("field-class-alias");
	char name[32];
	snprintf(name, sizeof name, "header of %llu", (unsigned long long)s->id);
	if (s->event_header) {
		add_text(alias, "name", name);
		add_class(m, alias, "field-class", s->event_header, EVENT_HEADER);
		add_text(o, "event-record-header-field-class", name);
		put(f, json_object_get(alias));
	}
	json_object_put(alias);
	add_number(o, "id", s->id);
	add_text(o, "default-clock-class-id", m->clock->name);
	add_class(m, o, "packet-context-field-class", s->packet_context, PACKET_CONTEXT);
	add_class(m, o, "event-record-common-context-field-class", s->event_context, EVENT_CONTEXT);
	put(f, o);
}

static void put_event(FILE *f, const struct ctf_metadata *m, const struct ctf_event *e)
{
	json_object *o = object("event-record-class");
	add_number(o, "id", e->id);
	if (e->has_stream_id)
		add_number(o, "data-stream-class-id", e->stream_id);
	add_text(o, "name", e->name);
	add_class(m, o, "specific-context-field-class", e->context, OWN_CONTEXT);
	add_class(m, o, "payload-field-class", e->payload, PAYLOAD);
	put(f, o);
}

static void convert(const char *dir, const char *to)
{
	struct error err = ERROR_INIT;
	struct metadata head;
	struct ctf_metadata m;
	size_t len;
	char *text = metadata_text(dir, &len, &err), *path = mem_printf("%s/metadata", to);
	if (!text || metadata_read(dir, &head, &err))
		die(err.text);
	ctf_metadata_parse(&m, text, len);
	FILE *f = fopen(path, "w");
	if (m.why || !f || !m.clock)
		die(m.why ? m.why : path);
	put_trace(f, &m, &head);
	for (const struct ctf_clock *c = m.clock; c; c = c->next)
		put_clock(f, c, &head);
	for (const struct ctf_stream *s = m.stream; s; s = s->next)
		put_stream(f, &m, s);
	for (const struct ctf_event *e = m.event; e; e = e->next)
		put_event(f, &m, e);
	fclose(f);
	ctf_metadata_release(&m);
	free(text);
	free(path);
}

static void copy(const char *from, const char *to)
{
	char block[1 << 16];
	FILE *in = fopen(from, "r"), *out = fopen(to, "w");
	if (!in || !out)
		die(from);
	for (size_t n; (n = fread(block, 1, sizeof block, in)) > 0;)
		if (fwrite(block, 1, n, out) != n)
			die(to);
	fclose(in);
	if (fclose(out))
		die(to);
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
			copy(e->fts_accpath, path);
		} else if (e->fts_info == FTS_F) {
			*strrchr(path, '/') = '\0';
			char *dir = mem_dup(e->fts_path);
			*strrchr(dir, '/') = '\0';
			convert(dir, path);
			free(dir);
		}
		free(path);
	}
	if (fts)
		fts_close(fts);
}
