/* Parser of CTF 1.8 metadata, TSDL (CTF 1.8 specification, chapter 7 and appendix C): converts it to types.
 *
 * Recursive descent over tokens. Skips blocks that decoding does not need (environment, call sites, log levels). */
#include "trace/ctf/tsdl.h"

#include "base/base.h"

static unsigned hex_digit(char c)
{
	return c >= '0' && c <= '9' ? (unsigned)(c - '0') : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10 :
		c >= 'A' && c <= 'F' ? (unsigned)(c - 'A') + 10 : 16;
}

/* Parses "01234567-89ab-cdef-0123-456789abcdef". */
static void parse_uuid(struct tsdl_parser *p)
{
	static const char form[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
	bool is_valid = p->token == TEXT && p->len == sizeof form - 1;
	for (size_t i = 0, digits = 0; is_valid && i < p->len; i++) {
		const unsigned v = hex_digit(p->text[i]);
		is_valid = form[i] == 'x' ? v < 16 : p->text[i] == form[i];
		if (is_valid && form[i] == 'x') {
			unsigned char *byte = &p->m->uuid[digits++ / 2];
			*byte = (unsigned char)((unsigned)*byte << 4 | v);
		}
	}
	if (!is_valid)
		tsdl_fail(p, "invalid UUID");
	p->m->has_uuid = is_valid;
}

/* Attributes that may occur once per block. */
enum {
	ATTR_ID, ATTR_NAME, ATTR_STREAM, ATTR_FREQUENCY, ATTR_SECONDS, ATTR_OFFSET, ATTR_UUID, ATTR_BYTE_ORDER, ATTR_MAJOR,
	ATTR_MINOR, ATTRS
};
static const char *const attr_name[ATTRS] = {
	"id", "name", "stream_id", "freq", "offset_s", "offset", "uuid", "byte_order", "major", "minor",
};

struct tsdl_block {
	struct ctf_stream *stream;
	struct ctf_event *event;
	struct ctf_clock *clock;
	unsigned seen;  /* set of the attributes that occurred, one bit each */
};

/* Returns the number of the attribute; ATTRS: not in attr_name[]. Fails if it occurs twice in the block. */
static unsigned find_attribute(struct tsdl_parser *p, struct tsdl_block *b, const char *key)
{
	unsigned i = 0;
	while (i < ATTRS && (*key != *attr_name[i] || strcmp(key, attr_name[i]) != 0))
		i++;
	if (i < ATTRS && b->seen >> i & 1)
		tsdl_fail(p, "duplicate attribute");
	b->seen |= i < ATTRS ? 1u << i : 0;
	return i;
}

static void parse_block_type(struct tsdl_parser *p, const struct tsdl_block *b, const char *key)
{
	struct ctf_metadata *m = p->m;
	struct ctf_type *t = tsdl_type(p), **to = NULL;
	if (b->stream)
		to = !strcmp(key, "packet.context") ? &b->stream->packet_context : !strcmp(key, "event.header") ?
			&b->stream->event_header : !strcmp(key, "event.context") ? &b->stream->event_context : NULL;
	else if (b->event)
		to = !strcmp(key, "context") ? &b->event->context : !strcmp(key, "fields") ? &b->event->payload : NULL;
	else if (!b->clock)
		to = !strcmp(key, "packet.header") ? &m->packet_header : NULL;
	if (!to)
		return;  /* ignored, as other unknown attributes */
	if (*to || t->kind != CTF_STRUCT)
		tsdl_fail(p, "unexpected structure");
	else
		*to = t;
}

static void parse_block_value(struct tsdl_parser *p, const struct tsdl_block *b, unsigned attr)
{
	const bool is_trace = !b->stream && !b->event && !b->clock;
	if (b->stream && attr == ATTR_ID) {
		b->stream->id = tsdl_number(p);
	} else if (b->event && attr == ATTR_ID) {
		b->event->id = tsdl_number(p);
	} else if (b->event && attr == ATTR_STREAM) {
		b->event->stream_id = tsdl_number(p);
		b->event->has_stream_id = true;
	} else if (b->event && attr == ATTR_NAME) {
		b->event->name = tsdl_copy_token(p);
	} else if (b->clock && attr == ATTR_NAME) {
		b->clock->name = tsdl_copy_token(p);
	} else if (b->clock && attr == ATTR_FREQUENCY) {
		b->clock->frequency = tsdl_number(p);
	} else if (b->clock && attr == ATTR_SECONDS) {
		b->clock->offset_s = (int64_t)tsdl_number(p);
	} else if (b->clock && attr == ATTR_OFFSET) {
		b->clock->offset = (int64_t)tsdl_number(p);
	} else if (is_trace && attr == ATTR_UUID) {
		parse_uuid(p);
		tsdl_skip_value(p);
	} else if (is_trace && attr == ATTR_BYTE_ORDER) {
		const enum ctf_order order = tsdl_byte_order(p);
		p->m->is_big_endian = order == CTF_BIG;
		p->m->has_order = order != CTF_NATIVE;
	} else if (is_trace && (attr == ATTR_MAJOR || attr == ATTR_MINOR)) {
		if (tsdl_number(p) != (attr == ATTR_MAJOR ? 1 : 8))
			tsdl_fail(p, "version other than 1.8");
	} else {
		tsdl_skip_value(p);
	}
}

static void parse_block(struct tsdl_parser *p, struct tsdl_block *b)
{
	const size_t names = p->names;
	tsdl_expect(p, "{");
	while (p->token != END && !tsdl_accept(p, "}")) {
		if (tsdl_accept(p, "typealias")) {
			tsdl_alias(p);
			continue;
		}
		if (tsdl_accept(p, "typedef")) {
			tsdl_definition(p);
			continue;
		}
		char *key = tsdl_path(p);
		if (tsdl_accept(p, ":=")) {
			parse_block_type(p, b, key);
		} else {
			tsdl_expect(p, "=");
			parse_block_value(p, b, find_attribute(p, b, key));
		}
		tsdl_expect(p, ";");
	}
	p->names = names;
	tsdl_accept(p, ";");
}

static void skip_block(struct tsdl_parser *p)
{
	tsdl_skip_attributes(p);
	tsdl_accept(p, ";");
}

static void parse_stream(struct tsdl_parser *p)
{
	struct ctf_stream *s = ctf_alloc(&p->m->arena, sizeof *s);
	s->next = p->m->stream;
	p->m->stream = s;
	struct tsdl_block b = { .stream = s };
	parse_block(p, &b);
	s->has_id = b.seen >> ATTR_ID & 1;
	if (!s->has_id && s->next)
		tsdl_fail(p, "several streams, one of them without an id");
}

static void parse_event(struct tsdl_parser *p)
{
	struct ctf_event *e = ctf_alloc(&p->m->arena, sizeof *e);
	e->name = "";
	e->next = p->m->event;
	p->m->event = e;
	parse_block(p, &(struct tsdl_block){ .event = e });
	if (!*e->name)
		tsdl_fail(p, "event without a name");
}

static void parse_clock(struct tsdl_parser *p)
{
	struct ctf_clock *c = ctf_alloc(&p->m->arena, sizeof *c);
	*c = (struct ctf_clock){ .name = "", .frequency = 1000000000, .next = p->m->clock };
	p->m->clock = c;
	parse_block(p, &(struct tsdl_block){ .clock = c });
	if (!*c->name)
		tsdl_fail(p, "clock without a name");
	for (const struct ctf_clock *other = c->next; other; other = other->next)
		if (strcmp(other->name, c->name) == 0)
			tsdl_fail(p, "duplicate clock name");
}

static void parse_trace(struct tsdl_parser *p)
{
	struct tsdl_block b = { 0 };
	const bool is_first = !p->m->has_order;
	parse_block(p, &b);
	if (!is_first || !(b.seen >> ATTR_MAJOR & b.seen >> ATTR_MINOR & 1))
		tsdl_fail(p, "duplicate trace block, or trace without a version");
}

/* Returns true if a stream has an id but the packet headers have no field for it. */
static bool lacks_stream_id(const struct ctf_metadata *m)
{
	static const char field[] = "stream_id";
	const struct ctf_stream *s = m->stream;
	while (s && !s->has_id)
		s = s->next;
	return s && !(m->packet_header && ctf_member_find(m->packet_header, field, sizeof field - 1));
}

static void parse_declaration(struct tsdl_parser *p)
{
	if (tsdl_accept(p, "trace"))
		parse_trace(p);
	else if (tsdl_accept(p, "stream"))
		parse_stream(p);
	else if (tsdl_accept(p, "event"))
		parse_event(p);
	else if (tsdl_accept(p, "clock"))
		parse_clock(p);
	else if (tsdl_accept(p, "env") || tsdl_accept(p, "callsite"))
		skip_block(p);
	else
		tsdl_declaration(p, &(struct ctf_type){ .kind = CTF_STRUCT });
}

void ctf_metadata_parse(struct ctf_metadata *m, const char *text, size_t len)
{
	struct tsdl_parser p = { .m = m, .at = text, .end = text + len };
	*m = (struct ctf_metadata){ 0 };
	tsdl_next(&p);
	if (memchr(text, '\0', len))
		tsdl_fail(&p, "NUL byte in the text");
	while (p.token != END)
		parse_declaration(&p);
	if (!m->reason && !m->has_order)
		tsdl_fail(&p, "no byte order");
	if (!m->reason && lacks_stream_id(m))
		tsdl_fail(&p, "stream id missing from packet headers");
	free(p.named);
}
