#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "trace/ctf/tsdl.h"

#define MOST_BYTES ((size_t)64 << 20)  /* that metadata may become; a kernel's with all its system calls becomes 5 MiB */

void tsdl_fail(struct parser *p, const char *why)
{
	if (!p->m->why)
		p->m->why = why;
	p->at = p->end;
	p->token = END;
	p->text = "";
	p->len = 0;
}

static void skip_blank(struct parser *p)
{
	while (p->at < p->end) {
		const size_t left = (size_t)(p->end - p->at);
		if (*p->at == ' ' || *p->at == '\t' || *p->at == '\r' || *p->at == '\n') {
			p->at++;
		} else if (left >= 2 && p->at[0] == '/' && p->at[1] == '/') {
			const char *line = memchr(p->at, '\n', left);
			p->at = line ? line : p->end;
			if (!line)
				tsdl_fail(p, "a comment without its end");
		} else if (left >= 2 && p->at[0] == '/' && p->at[1] == '*') {
			const char *close = memmem(p->at + 2, left - 2, "*/", 2);
			p->at = close ? close + 2 : p->end;
		} else {
			return;
		}
	}
}

static void next_text(struct parser *p)
{
	const char *from = ++p->at;
	while (p->at < p->end && *p->at != '"')
		p->at += *p->at == '\\' ? 2 : 1;
	if (p->at >= p->end) {
		tsdl_fail(p, "a string without its end");
		return;
	}
	p->token = TEXT;
	p->text = from;
	p->len = (size_t)(p->at++ - from);
}

void tsdl_next(struct parser *p)
{
	static const char signs[] = "[](){}<>:;,.=*+-";
	if (p->m->arena.bytes > MOST_BYTES)
		tsdl_fail(p, "more types and names than is sensible");
	skip_blank(p);
	p->text = p->at;
	p->len = 1;
	p->token = END;
	if (p->at >= p->end || p->m->why)
		return;
	const size_t left = (size_t)(p->end - p->at);
	const unsigned char c = (unsigned char)*p->at;
	if (c == '"') {
		next_text(p);
		return;
	}
	if (isalnum(c) || c == '_') {
		p->token = isdigit(c) ? NUMBER : WORD;
		while (p->len < left && (isalnum((unsigned char)p->at[p->len]) || p->at[p->len] == '_'))
			p->len++;
	} else if (!memchr(signs, c, sizeof signs - 1)) {
		tsdl_fail(p, "a sign that is not understood");
		return;
	} else {
		p->token = SIGN;
		p->len = left >= 3 && memcmp(p->at, "...", 3) == 0 ? 3 : left >= 2 && memcmp(p->at, ":=", 2) == 0 ? 2 : 1;
	}
	p->at += p->len;
}

bool tsdl_is(const struct parser *p, const char *text)
{
	return (p->token == WORD || p->token == SIGN) && p->len == strlen(text) && memcmp(p->text, text, p->len) == 0;
}

bool tsdl_accept(struct parser *p, const char *text)
{
	const bool found = tsdl_is(p, text);
	if (found)
		tsdl_next(p);
	return found;
}

void tsdl_expect(struct parser *p, const char *text)
{
	if (!tsdl_accept(p, text))
		tsdl_fail(p, "a syntax that is not understood");
}

char *tsdl_keep(struct parser *p)
{
	char *copy = ctf_text(&p->m->arena, p->text, p->len);
	size_t n = 0;
	for (size_t i = 0; i < p->len; i++) {
		i += p->token == TEXT && copy[i] == '\\' && i + 1 < p->len;
		copy[n++] = copy[i];
	}
	copy[n] = '\0';
	tsdl_next(p);
	return copy;
}

uint64_t tsdl_number(struct parser *p)
{
	char digits[32];
	const bool negative = tsdl_accept(p, "-");
	if (!negative)
		tsdl_accept(p, "+");
	if (p->token != NUMBER || p->len >= sizeof digits) {
		tsdl_fail(p, "a number that is not understood");
		return 0;
	}
	memcpy(digits, p->text, p->len);
	digits[p->len] = '\0';
	digits[strcspn(digits, "uUlL")] = '\0';
	char *end;
	errno = 0;
	const uint64_t v = strtoull(digits, &end, 0);
	if (errno || *end)
		tsdl_fail(p, "a number that is not understood");
	tsdl_next(p);
	return negative ? -v : v;
}

bool tsdl_truth(struct parser *p)
{
	const bool yes = tsdl_is(p, "true") || tsdl_is(p, "TRUE") || (p->token == NUMBER && *p->text != '0');
	if (!yes && p->token != NUMBER && !tsdl_is(p, "false") && !tsdl_is(p, "FALSE"))
		tsdl_fail(p, "neither true nor false");
	tsdl_next(p);
	return yes;
}

char *tsdl_dotted(struct parser *p)
{
	char *all = ctf_text(&p->m->arena, "", 0);
	while (p->token == WORD) {
		const size_t len = strlen(all);
		char *longer = ctf_alloc(&p->m->arena, len + p->len + 2);
		memcpy(longer, all, len);
		memcpy(longer + len, p->text, p->len);
		all = longer;
		tsdl_next(p);
		if (!tsdl_is(p, "."))
			return all;
		all[strlen(all)] = '.';
		tsdl_next(p);
	}
	tsdl_fail(p, "a name that is not understood");
	return all;
}
