#include <string.h>

#include "trace/ctf/tsdl.h"

#define LONGEST_NUMBER 31              /* characters */
#define MOST_BYTES ((size_t)64 << 20)  /* that metadata may become; a kernel's with all its system calls becomes 4 MiB */

void tsdl_fail(struct parser *p, const char *why)
{
	if (!p->m->why)
		p->m->why = why;
	p->at = p->end;
	p->token = END;
	p->text = "";
	p->len = 0;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static void skip_blank(struct parser *p)
{
	for (;;) {
		const char *at = p->at;
		while (at < p->end && is_blank(*at))
			at++;
		p->at = at;
		const size_t left = (size_t)(p->end - at);
		if (left >= 2 && at[0] == '/' && at[1] == '/') {
			const char *line = memchr(at, '\n', left);
			p->at = line ? line : p->end;
			if (!line)
				tsdl_fail(p, "a comment without its end");
		} else if (left >= 2 && at[0] == '/' && at[1] == '*') {
			const char *close = memmem(at + 2, left - 2, "*/", 2);
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

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool is_of_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '_';
}

static bool is_sign(char c)
{
	switch (c) {
	case '[': case ']': case '(': case ')': case '{': case '}': case '<': case '>':
	case ':': case ';': case ',': case '.': case '=': case '*': case '+': case '-':
		return true;
	default:
		return false;
	}
}

/* A sign of one character, "...", or ":=". */
static size_t sign_length(const char *at, size_t left)
{
	return left >= 3 && memcmp(at, "...", 3) == 0 ? 3 : left >= 2 && memcmp(at, ":=", 2) == 0 ? 2 : 1;
}

void tsdl_next(struct parser *p)
{
	if (p->m->arena.bytes > MOST_BYTES)
		tsdl_fail(p, "more types and names than is sensible");
	skip_blank(p);
	p->text = p->at;
	p->len = 0;
	p->token = END;
	if (p->at >= p->end || p->m->why)
		return;
	const char *at = p->at;
	if (is_of_word(*at)) {
		p->token = is_digit(*at) ? NUMBER : WORD;
		while (at < p->end && is_of_word(*at))
			at++;
	} else if (is_sign(*at)) {
		p->token = SIGN;
		at += sign_length(at, (size_t)(p->end - at));
	} else if (*at == '"') {
		next_text(p);
		return;
	} else {
		tsdl_fail(p, "a sign that is not understood");
		return;
	}
	p->len = (size_t)(at - p->at);
	p->at = at;
}

char *tsdl_keep(struct parser *p)
{
	char *copy = ctf_text(&p->m->arena, p->text, p->len);
	size_t n = 0;
	for (size_t i = 0; i < p->len && p->token == TEXT; i++) {
		i += copy[i] == '\\' && i + 1 < p->len;
		copy[n++] = copy[i];
	}
	copy[p->token == TEXT ? n : p->len] = '\0';
	tsdl_next(p);
	return copy;
}

/* As C writes them, up to a suffix; false: it is none, or too large. */
static bool value_of(const char *text, size_t len, uint64_t *v)
{
	const bool is_hex = len > 1 && *text == '0' && (text[1] | 32) == 'x';
	const unsigned base = is_hex ? 16 : *text == '0' ? 8 : 10;
	const size_t first = is_hex ? 2 : 0;
	size_t i = first;
	*v = 0;
	for (; i < len && (text[i] | 32) != 'u' && (text[i] | 32) != 'l'; i++) {
		const int digit = is_digit(text[i]) ? text[i] - '0' : (text[i] | 32) - 'a' + 10;
		if (digit >= (int)base || __builtin_mul_overflow(*v, base, v) || __builtin_add_overflow(*v, digit, v))
			return false;
	}
	return i > first;
}

uint64_t tsdl_number(struct parser *p)
{
	uint64_t v = 0;
	const bool negative = tsdl_accept(p, "-");
	if (!negative)
		tsdl_accept(p, "+");
	if (p->token != NUMBER || p->len > LONGEST_NUMBER || !value_of(p->text, p->len, &v)) {
		tsdl_fail(p, "a number that is not understood");
		return 0;
	}
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
	size_t len = 0;
	while (p->token == WORD) {
		char *longer = ctf_alloc(&p->m->arena, len + p->len + 2);
		memcpy(longer, all, len);
		memcpy(longer + len, p->text, p->len);
		len += p->len;
		all = longer;
		tsdl_next(p);
		if (!tsdl_is(p, "."))
			return all;
		all[len++] = '.';
		tsdl_next(p);
	}
	tsdl_fail(p, "a name that is not understood");
	return all;
}
