/* A look at CTF 1.8 metadata: who recorded it, and on which clock.
 *
 * Only `key = value;` of the blocks trace, env and clock is read, by walking over the tokens: comments, strings and
 * nested blocks are skipped properly.  What the events mean is left to libbabeltrace2. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "trace/internal.h"

struct scan {
	const char *at;
	char token[256];
	bool is_string;
};

static const char *skip_blank(const char *s)
{
	for (;;) {
		s += strspn(s, " \t\r\n");
		const char *end;
		if (s[0] == '/' && s[1] == '*')
			end = strstr(s + 2, "*/");
		else if (s[0] == '/' && s[1] == '/')
			end = strchr(s, '\n');
		else
			return s;
		if (!end)
			return s + strlen(s);
		s = end + (*end == '\n' ? 1 : 2);
	}
}

/* The next token: a word or number, a string without its quotes, or one other character.  False at the end. */
static bool next(struct scan *s)
{
	const char *p = s->at = skip_blank(s->at);
	size_t n = 0;
	if (!*p)
		return false;
	s->is_string = *p == '"';
	if (s->is_string) {
		for (p++; *p && *p != '"'; p++) {
			if (*p == '\\' && p[1])
				p++;
			if (n < sizeof s->token - 1)
				s->token[n++] = *p;
		}
		p += *p == '"';
	} else if (isalnum((unsigned char)*p) || *p == '_' || *p == '-') {
		for (; isalnum((unsigned char)*p) || *p == '_' || *p == '-' || *p == '.'; p++)
			if (n < sizeof s->token - 1)
				s->token[n++] = *p;
	} else {
		s->token[n++] = *p++;
	}
	s->token[n] = '\0';
	s->at = p;
	return true;
}

static bool is(const struct scan *s, const char *token)
{
	return !s->is_string && strcmp(s->token, token) == 0;
}

static void keep(char *dst, size_t size, const char *value)
{
	size_t n = strnlen(value, size - 1);
	if (*dst)
		return;
	memcpy(dst, value, n);
	dst[n] = '\0';
}

struct version {
	char name[64], major[16], minor[16], patch[16];
};

static void take(const char *block, const char *key, const char *value, struct metadata *m, struct version *v)
{
	if (strcmp(block, "trace") == 0) {
		if (strcmp(key, "uuid") == 0)
			keep(m->uuid, sizeof m->uuid, value);
	} else if (strcmp(block, "clock") == 0) {
		if (strcmp(key, "uuid") == 0)
			keep(m->clock_uuid, sizeof m->clock_uuid, value);
		else if (strcmp(key, "offset") == 0)
			keep(m->clock_offset, sizeof m->clock_offset, value);
	} else if (strcmp(key, "hostname") == 0) {
		keep(m->hostname, sizeof m->hostname, value);
	} else if (strcmp(key, "tracer_name") == 0) {
		keep(v->name, sizeof v->name, value);
	} else if (strcmp(key, "tracer_major") == 0) {
		keep(v->major, sizeof v->major, value);
	} else if (strcmp(key, "tracer_minor") == 0) {
		keep(v->minor, sizeof v->minor, value);
	} else if (strcmp(key, "tracer_patchlevel") == 0 || strcmp(key, "tracer_patch") == 0) {
		keep(v->patch, sizeof v->patch, value);
	}
}

/* Behind the '{' of a block: its `key = value` pairs, up to its '}'. */
static void scan_block(struct scan *s, const char *block, struct metadata *m, struct version *v)
{
	char key[64] = "";
	for (unsigned depth = 1; depth && next(s);) {
		if (is(s, "{")) {
			depth++;
		} else if (is(s, "}")) {
			depth--;
		} else if (depth == 1 && is(s, "=") && next(s)) {
			take(block, key, s->token, m, v);
		} else {
			snprintf(key, sizeof key, "%.63s", s->token);
		}
	}
}

void metadata_scan(const char *text, struct metadata *m)
{
	struct scan s = { .at = text };
	struct version v = { "", "", "", "" };
	char word[16] = "";
	unsigned depth = 0;
	*m = (struct metadata){ 0 };
	while (next(&s)) {
		if (is(&s, "{")) {
			if (!depth && (!strcmp(word, "trace") || !strcmp(word, "env") || !strcmp(word, "clock")))
				scan_block(&s, word, m, &v);
			else
				depth++;
		} else if (is(&s, "}")) {
			depth -= depth > 0;
		}
		snprintf(word, sizeof word, "%.15s", s.token);
	}
	if (*v.name)
		snprintf(m->tracer, sizeof m->tracer, "%s%s%s%s%s%s%s", v.name, *v.major ? " " : "", v.major,
		         *v.minor ? "." : "", v.minor, *v.patch ? "." : "", v.patch);
}
