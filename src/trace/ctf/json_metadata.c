/* Parser of CTF 2 metadata (CTF 2 specification, section 5): converts it to types, fragment by fragment.
 *
 * Skips members that decoding does not need (environment, value names, attributes). Rejects extensions, because they may
 * change the encoding. */
#include <string.h>

#include "base/json_field.h"
#include "trace/ctf/json_types.h"

static uint64_t get_number(struct fragment_parser *p, struct json_object *o, const char *key, uint64_t default_value)
{
	uint64_t v;
	if (!ctf_json_number(o, key, default_value, &v))
		fragment_fail(p, "invalid number");
	return v;
}

static const char *get_text(struct fragment_parser *p, struct json_object *o, const char *key)
{
	const char *s = ctf_json_string(o, key);
	return s ? ctf_copy_text(&p->m->arena, s, strlen(s)) : NULL;
}

static void parse_preamble(struct fragment_parser *p, struct json_object *o)
{
	if (get_number(p, o, "version", 0) != 2)
		fragment_fail(p, "unsupported CTF version");
	p->m->has_uuid = ctf_json_uuid(o, "uuid", p->m->uuid);
}

/* Stores the alias as JSON, because every field with this class needs its own type. */
static void parse_alias(struct fragment_parser *p, struct json_object *o)
{
	struct json_object *class = NULL;
	const char *name = ctf_json_string(o, "name");
	if (name && json_object_object_get_ex(o, "field-class", &class))
		json_object_object_add(p->alias, name, json_object_get(class));
}

static void parse_trace_class(struct fragment_parser *p, struct json_object *o)
{
	p->m->packet_header = fragment_structure(p, o, "packet-header-field-class", CTF_PACKET_HEADER);
}

static void parse_clock_class(struct fragment_parser *p, struct json_object *o)
{
	struct ctf_clock *c = ctf_alloc(&p->m->arena, sizeof *c);
	struct json_object *offset = ctf_json_member(o, "offset-from-origin", json_type_object), *seconds = NULL;
	const char *name = get_text(p, o, "id");
	uint64_t s = 0, cycles = 0;
	if (offset && json_object_object_get_ex(offset, "seconds", &seconds) && !ctf_json_integer(seconds, &s))
		fragment_fail(p, "unsupported clock");
	if (offset)
		cycles = get_number(p, offset, "cycles", 0);
	if (cycles > INT64_MAX)
		fragment_fail(p, "unsupported clock");
	*c = (struct ctf_clock){ .name = name ? name : "", .frequency = get_number(p, o, "frequency", 0),
		.offset_s = (int64_t)s, .offset = (int64_t)cycles, .next = p->m->clock };
	p->m->clock = c;
}

static void parse_stream_class(struct fragment_parser *p, struct json_object *o)
{
	struct ctf_stream *s = ctf_alloc(&p->m->arena, sizeof *s);
	s->next = p->m->stream;
	p->m->stream = s;
	s->id = get_number(p, o, "id", 0);
	p->clock = get_text(p, o, "default-clock-class-id");
	p->root[CTF_PACKET_HEADER] = p->m->packet_header;
	s->packet_context = fragment_structure(p, o, "packet-context-field-class", CTF_PACKET_CONTEXT);
	s->event_header = fragment_structure(p, o, "event-record-header-field-class", CTF_EVENT_HEADER);
	s->event_context = fragment_structure(p, o, "event-record-common-context-field-class", CTF_EVENT_CONTEXT);
}

static void parse_event_class(struct fragment_parser *p, struct json_object *o)
{
	struct ctf_event *e = ctf_alloc(&p->m->arena, sizeof *e);
	const char *name = get_text(p, o, "name");
	*e = (struct ctf_event){ .id = get_number(p, o, "id", 0), .stream_id = get_number(p, o, "data-stream-class-id", 0),
		.has_stream_id = true, .name = name ? name : "", .next = p->m->event };
	p->m->event = e;
	const struct ctf_stream *s = p->m->stream;
	while (s && s->id != e->stream_id)
		s = s->next;
	if (!s) {
		fragment_fail(p, "event class without a stream class");
		return;
	}
	p->root[CTF_PACKET_CONTEXT] = s->packet_context;
	p->root[CTF_EVENT_HEADER] = s->event_header;
	p->root[CTF_EVENT_CONTEXT] = s->event_context;
	e->context = fragment_structure(p, o, "specific-context-field-class", CTF_OWN_CONTEXT);
	e->payload = fragment_structure(p, o, "payload-field-class", CTF_PAYLOAD);
}

static const struct fragment_kind {
	const char *type;
	void (*parse)(struct fragment_parser *p, struct json_object *o);
} kinds[] = {
	{ "preamble", parse_preamble }, { "field-class-alias", parse_alias }, { "trace-class", parse_trace_class },
	{ "clock-class", parse_clock_class }, { "data-stream-class", parse_stream_class },
	{ "event-record-class", parse_event_class },
};

static void parse_fragment(struct fragment_parser *p, struct json_object *o, bool first)
{
	const char *type = ctf_json_string(o, "type");
	struct json_object *extensions = ctf_json_member(o, "extensions", json_type_object);
	const struct fragment_kind *kind = NULL;
	for (size_t i = 0; type && i < sizeof kinds / sizeof *kinds; i++)
		if (strcmp(kinds[i].type, type) == 0)
			kind = &kinds[i];
	if (!kind || first != (kind == kinds))
		fragment_fail(p, "unsupported metadata fragment");
	else if (extensions && json_object_object_length(extensions) > 0)
		fragment_fail(p, "unsupported CTF extension");
	else
		kind->parse(p, o);
}

void ctf_metadata_parse_json(struct ctf_metadata *m, const char *text, size_t len)
{
	struct fragment_parser p = { .m = m, .alias = json_new_object() };
	const char *at = text, *reason = NULL;
	bool first = true;
	*m = (struct ctf_metadata){ 0 };
	for (struct json_object *o; !m->reason && (o = ctf_fragment_next(&at, text + len, &reason)); first = false) {
		parse_fragment(&p, o, first);
		json_object_put(o);
	}
	if (reason || first)
		fragment_fail(&p, reason ? reason : "metadata is not valid JSON");
	else if (!m->reason && !m->stream)
		fragment_fail(&p, "no stream class");
	json_object_put(p.alias);
}
