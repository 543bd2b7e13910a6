/* CTF 1.8 metadata: TSDL (specification of CTF 1.8, chapter 7 and appendix C) -> types.
 *
 * A recursive descent over tokens.  What is not needed for decoding (the environment, call sites, log levels) is
 * skipped. */
#include "trace/ctf/tsdl.h"

#include <stdlib.h>
#include <string.h>

static void parse_uuid(struct parser *p)
{
	unsigned digits = 0;
	for (size_t i = 0; p->token == TEXT && i < p->len && digits < 32; i++) {
		const char c = p->text[i];
		const unsigned v = c >= '0' && c <= '9' ? (unsigned)(c - '0') : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10 :
			c >= 'A' && c <= 'F' ? (unsigned)(c - 'A') + 10 : 16;
		if (v < 16) {
			unsigned char *byte = &p->m->uuid[digits++ / 2];
			*byte = (unsigned char)((unsigned)*byte << 4 | v);
		}
	}
	p->m->has_uuid = digits == 32;
}

/* What a block says once at most. */
enum {
	SAYS_ID, SAYS_NAME, SAYS_STREAM, SAYS_FREQUENCY, SAYS_SECONDS, SAYS_OFFSET, SAYS_UUID, SAYS_ORDER, SAYS_MAJOR,
	SAYS_MINOR, SAYINGS
};
static const char *const saying[SAYINGS] = {
	"id", "name", "stream_id", "freq", "offset_s", "offset", "uuid", "byte_order", "major", "minor",
};

struct tsdl_block {
	struct ctf_stream *stream;
	struct ctf_event *event;
	struct ctf_clock *clock;
	unsigned said;          /* bits of the above */
};

/* Which of the above; SAYINGS: something else. */
static unsigned say_once(struct parser *p, struct tsdl_block *b, const char *key)
{
	unsigned i = 0;
	while (i < SAYINGS && (*key != *saying[i] || strcmp(key, saying[i]) != 0))
		i++;
	if (i < SAYINGS && b->said >> i & 1)
		tsdl_fail(p, "an attribute that is said twice");
	b->said |= i < SAYINGS ? 1u << i : 0;
	return i;
}

static void take_type(struct parser *p, const struct tsdl_block *b, const char *key)
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
	if (!to || *to || t->kind != CTF_STRUCT)
		tsdl_fail(p, "a structure in a place that is not understood");
	else
		*to = t;
}

static void take_value(struct parser *p, const struct tsdl_block *b, unsigned what)
{
	const bool is_trace = !b->stream && !b->event && !b->clock;
	if (b->stream && what == SAYS_ID) {
		b->stream->id = tsdl_number(p);
	} else if (b->event && what == SAYS_ID) {
		b->event->id = tsdl_number(p);
	} else if (b->event && what == SAYS_STREAM) {
		b->event->stream_id = tsdl_number(p);
		b->event->has_stream_id = true;
	} else if (b->event && what == SAYS_NAME) {
		b->event->name = tsdl_keep(p);
	} else if (b->clock && what == SAYS_NAME) {
		b->clock->name = tsdl_keep(p);
	} else if (b->clock && what == SAYS_FREQUENCY) {
		b->clock->frequency = tsdl_number(p);
	} else if (b->clock && what == SAYS_SECONDS) {
		b->clock->offset_s = (int64_t)tsdl_number(p);
	} else if (b->clock && what == SAYS_OFFSET) {
		b->clock->offset = (int64_t)tsdl_number(p);
	} else if (is_trace && what == SAYS_UUID) {
		parse_uuid(p);
		tsdl_skip_value(p);
	} else if (is_trace && what == SAYS_ORDER) {
		const enum ctf_order order = tsdl_byte_order(p);
		p->m->big = order == CTF_BIG;
		p->m->has_order = order != CTF_NATIVE;
	} else if (is_trace && (what == SAYS_MAJOR || what == SAYS_MINOR)) {
		if (tsdl_number(p) != (what == SAYS_MAJOR ? 1 : 8))
			tsdl_fail(p, "another version than 1.8");
	} else {
		tsdl_skip_value(p);
	}
}

static void block(struct parser *p, struct tsdl_block *b)
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
		char *key = tsdl_dotted(p);
		if (tsdl_accept(p, ":=")) {
			take_type(p, b, key);
		} else {
			tsdl_expect(p, "=");
			take_value(p, b, say_once(p, b, key));
		}
		tsdl_expect(p, ";");
	}
	p->names = names;
	tsdl_accept(p, ";");
}

static void skip_block(struct parser *p)
{
	tsdl_skip_attributes(p);
	tsdl_accept(p, ";");
}

static void new_stream(struct parser *p)
{
	struct ctf_stream *s = ctf_alloc(&p->m->arena, sizeof *s);
	s->next = p->m->stream;
	p->m->stream = s;
	struct tsdl_block b = { .stream = s };
	block(p, &b);
	s->has_id = b.said >> SAYS_ID & 1;
	if (!s->has_id && s->next)
		tsdl_fail(p, "one of several streams without a number");
}

static void new_event(struct parser *p)
{
	struct ctf_event *e = ctf_alloc(&p->m->arena, sizeof *e);
	e->name = "";
	e->next = p->m->event;
	p->m->event = e;
	block(p, &(struct tsdl_block){ .event = e });
	if (!*e->name)
		tsdl_fail(p, "an event without a name");
}

static void new_clock(struct parser *p)
{
	struct ctf_clock *c = ctf_alloc(&p->m->arena, sizeof *c);
	*c = (struct ctf_clock){ .name = "", .frequency = 1000000000, .next = p->m->clock };
	p->m->clock = c;
	block(p, &(struct tsdl_block){ .clock = c });
	if (!*c->name)
		tsdl_fail(p, "a clock without a name");
	for (const struct ctf_clock *other = c->next; other; other = other->next)
		if (strcmp(other->name, c->name) == 0)
			tsdl_fail(p, "two clocks of the same name");
}

static void new_trace(struct parser *p)
{
	struct tsdl_block b = { 0 };
	const bool is_first = !p->m->has_order;
	block(p, &b);
	if (!is_first || !(b.said >> SAYS_MAJOR & b.said >> SAYS_MINOR & 1))
		tsdl_fail(p, "a trace that is described twice, or of no version");
}

/* Streams that have a number, and packets that do not tell theirs. */
static bool is_untold(const struct ctf_metadata *m)
{
	static const char teller[] = "stream_id";
	const struct ctf_stream *s = m->stream;
	while (s && !s->has_id)
		s = s->next;
	return s && !(m->packet_header && ctf_member_find(m->packet_header, teller, sizeof teller - 1));
}

static void top(struct parser *p)
{
	if (tsdl_accept(p, "trace"))
		new_trace(p);
	else if (tsdl_accept(p, "stream"))
		new_stream(p);
	else if (tsdl_accept(p, "event"))
		new_event(p);
	else if (tsdl_accept(p, "clock"))
		new_clock(p);
	else if (tsdl_accept(p, "env") || tsdl_accept(p, "callsite"))
		skip_block(p);
	else
		tsdl_declaration(p, &(struct ctf_type){ .kind = CTF_STRUCT });
}

void ctf_metadata_parse(struct ctf_metadata *m, const char *text, size_t len)
{
	struct parser p = { .m = m, .at = text, .end = text + len };
	*m = (struct ctf_metadata){ 0 };
	tsdl_next(&p);
	if (memchr(text, '\0', len))
		tsdl_fail(&p, "text with a NUL in it");
	while (p.token != END)
		top(&p);
	if (!m->why && !m->has_order)
		tsdl_fail(&p, "no byte order");
	if (!m->why && is_untold(m))
		tsdl_fail(&p, "a stream with a number that its packets do not tell");
	free(p.named);
}
