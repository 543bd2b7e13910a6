/* CTF 2 metadata (specification of CTF 2, section 5) -> types, fragment by fragment.
 *
 * What is not needed for decoding (the environment, names of values, attributes) is skipped; extensions, which may change
 * how it is to be decoded, are not understood. */
#include <string.h>

#include "trace/ctf/json_types.h"

static uint64_t number(struct fragment_parser *p, struct json_object *o, const char *key, uint64_t otherwise)
{
	uint64_t v;
	if (!ctf_json_number(o, key, otherwise, &v))
		fragment_fail(p, "a number that is none");
	return v;
}

static const char *text(struct fragment_parser *p, struct json_object *o, const char *key)
{
	const char *s = ctf_json_text(o, key);
	return s ? ctf_text(&p->m->arena, s, strlen(s)) : NULL;
}

static void take_preamble(struct fragment_parser *p, struct json_object *o)
{
	if (number(p, o, "version", 0) != 2)
		fragment_fail(p, "CTF of a version that is not understood");
	p->m->has_uuid = ctf_json_uuid(o, "uuid", p->m->uuid);
}

/* Kept as json: each field that has the class gets a type of its own. */
static void take_alias(struct fragment_parser *p, struct json_object *o)
{
	struct json_object *class = NULL;
	const char *name = ctf_json_text(o, "name");
	if (name && json_object_object_get_ex(o, "field-class", &class))
		json_object_object_add(p->alias, name, json_object_get(class));
}

static void take_trace(struct fragment_parser *p, struct json_object *o)
{
	p->m->packet_header = fragment_structure(p, o, "packet-header-field-class", CTF_PACKET_HEADER);
}

static void take_clock(struct fragment_parser *p, struct json_object *o)
{
	struct ctf_clock *c = ctf_alloc(&p->m->arena, sizeof *c);
	struct json_object *offset = ctf_json_of(o, "offset-from-origin", json_type_object), *seconds = NULL;
	const char *name = text(p, o, "id");
	uint64_t s = 0, cycles = 0;
	if (offset && json_object_object_get_ex(offset, "seconds", &seconds) && !ctf_json_bits(seconds, &s))
		fragment_fail(p, "a clock that is not understood");
	if (offset)
		cycles = number(p, offset, "cycles", 0);
	if (cycles > INT64_MAX)
		fragment_fail(p, "a clock that is not understood");
	*c = (struct ctf_clock){ .name = name ? name : "", .frequency = number(p, o, "frequency", 0), .offset_s = (int64_t)s,
		.offset = (int64_t)cycles, .next = p->m->clock };
	p->m->clock = c;
}

static void take_stream(struct fragment_parser *p, struct json_object *o)
{
	struct ctf_stream *s = ctf_alloc(&p->m->arena, sizeof *s);
	s->next = p->m->stream;
	p->m->stream = s;
	s->id = number(p, o, "id", 0);
	p->clock = text(p, o, "default-clock-class-id");
	p->root[CTF_PACKET_HEADER] = p->m->packet_header;
	s->packet_context = fragment_structure(p, o, "packet-context-field-class", CTF_PACKET_CONTEXT);
	s->event_header = fragment_structure(p, o, "event-record-header-field-class", CTF_EVENT_HEADER);
	s->event_context = fragment_structure(p, o, "event-record-common-context-field-class", CTF_EVENT_CONTEXT);
}

static void take_event(struct fragment_parser *p, struct json_object *o)
{
	struct ctf_event *e = ctf_alloc(&p->m->arena, sizeof *e);
	const char *name = text(p, o, "name");
	*e = (struct ctf_event){ .id = number(p, o, "id", 0), .stream_id = number(p, o, "data-stream-class-id", 0),
		.has_stream_id = true, .name = name ? name : "", .next = p->m->event };
	p->m->event = e;
	const struct ctf_stream *s = p->m->stream;
	while (s && s->id != e->stream_id)
		s = s->next;
	if (!s) {
		fragment_fail(p, "an event class of no stream class");
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
	void (*take)(struct fragment_parser *p, struct json_object *o);
} kinds[] = {
	{ "preamble", take_preamble }, { "field-class-alias", take_alias }, { "trace-class", take_trace },
	{ "clock-class", take_clock }, { "data-stream-class", take_stream }, { "event-record-class", take_event },
};

static void take_fragment(struct fragment_parser *p, struct json_object *o, bool first)
{
	const char *type = ctf_json_text(o, "type");
	struct json_object *extensions = ctf_json_of(o, "extensions", json_type_object);
	const struct fragment_kind *kind = NULL;
	for (size_t i = 0; type && i < sizeof kinds / sizeof *kinds; i++)
		if (strcmp(kinds[i].type, type) == 0)
			kind = &kinds[i];
	if (!kind || first != (kind == kinds))
		fragment_fail(p, "metadata whose fragments are not understood");
	else if (extensions && json_object_object_length(extensions) > 0)
		fragment_fail(p, "an extension of CTF");
	else
		kind->take(p, o);
}

void ctf_metadata_fragments(struct ctf_metadata *m, const char *text, size_t len)
{
	struct fragment_parser p = { .m = m, .alias = json_object_new_object() };
	const char *at = text, *why = NULL;
	bool first = true;
	*m = (struct ctf_metadata){ 0 };
	for (struct json_object *o; !m->why && (o = ctf_fragment_next(&at, text + len, &why)); first = false) {
		take_fragment(&p, o, first);
		json_object_put(o);
	}
	if (why || first)
		fragment_fail(&p, why ? why : "metadata that is no json");
	json_object_put(p.alias);
}
