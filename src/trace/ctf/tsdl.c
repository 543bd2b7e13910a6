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

struct tsdl_block {
	struct ctf_stream *stream;
	struct ctf_event *event;
	struct ctf_clock *clock;
};

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

static void take_value(struct parser *p, const struct tsdl_block *b, const char *key)
{
	if (b->stream && !strcmp(key, "id")) {
		b->stream->id = tsdl_number(p);
	} else if (b->event && !strcmp(key, "id")) {
		b->event->id = tsdl_number(p);
	} else if (b->event && !strcmp(key, "stream_id")) {
		b->event->stream_id = tsdl_number(p);
		b->event->has_stream_id = true;
	} else if (b->event && !strcmp(key, "name")) {
		b->event->name = tsdl_keep(p);
	} else if (b->clock && !strcmp(key, "name")) {
		b->clock->name = tsdl_keep(p);
	} else if (b->clock && !strcmp(key, "freq")) {
		b->clock->frequency = tsdl_number(p);
	} else if (b->clock && !strcmp(key, "offset_s")) {
		b->clock->offset_s = (int64_t)tsdl_number(p);
	} else if (b->clock && !strcmp(key, "offset")) {
		b->clock->offset = (int64_t)tsdl_number(p);
	} else if (!b->stream && !b->event && !b->clock && !strcmp(key, "uuid")) {
		parse_uuid(p);
	} else if (!b->stream && !b->event && !b->clock && !strcmp(key, "byte_order")) {
		const enum ctf_order order = tsdl_byte_order(p);
		p->m->big = order == CTF_BIG;
		p->m->has_order = order != CTF_NATIVE;
	}
	tsdl_skip_value(p);
}

static void block(struct parser *p, const struct tsdl_block *b)
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
			take_value(p, b, key);
		}
		tsdl_expect(p, ";");
	}
	p->names = names;
	tsdl_accept(p, ";");
}

static void skip_block(struct parser *p)
{
	tsdl_expect(p, "{");
	for (unsigned depth = 1; p->token != END && depth; tsdl_next(p))
		depth += tsdl_is(p, "{") - tsdl_is(p, "}");
	tsdl_accept(p, ";");
}

static void new_stream(struct parser *p)
{
	struct ctf_stream *s = ctf_alloc(&p->m->arena, sizeof *s);
	s->next = p->m->stream;
	p->m->stream = s;
	block(p, &(struct tsdl_block){ .stream = s });
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
}

static void top(struct parser *p)
{
	if (tsdl_accept(p, "trace"))
		block(p, &(struct tsdl_block){ 0 });
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
	while (p.token != END)
		top(&p);
	if (!m->why && !m->has_order)
		tsdl_fail(&p, "no byte order");
	free(p.named);
}
