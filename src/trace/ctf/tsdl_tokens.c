#include <string.h>

#include "trace/ctf/tsdl.h"

#define MAX_NUMBER_LENGTH 31          /* characters */
#define MAX_BYTES ((size_t)64 << 20)  /* maximum memory of parsed metadata; a kernel trace with all system calls needs 4
                                       * MiB */

void tsdl_fail(struct tsdl_parser *p, const char *reason)
{
	if (!p->m->reason)
		p->m->reason = reason;
	p->at = p->end;
	p->token = END;
	p->text = "";
	p->len = 0;
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static void skip_blanks(struct tsdl_parser *p)
{
	for (;;) {
		const char *at = p->at;
		while (at < p->end && is_blank(*at))
			at++;
		p->at = at;
		const size_t remaining = (size_t)(p->end - at);
		if (remaining >= 2 && at[0] == '/' && at[1] == '/') {
			const char *line = memchr(at, '\n', remaining);
			p->at = line ? line : p->end;
			if (!line)
				tsdl_fail(p, "unterminated comment");
		} else if (remaining >= 2 && at[0] == '/' && at[1] == '*') {
			const char *close = memmem(at + 2, remaining - 2, "*/", 2);
			p->at = close ? close + 2 : p->end;
		} else {
			return;
		}
	}
}

static void scan_string(struct tsdl_parser *p)
{
	const char *from = ++p->at;
	while (p->at < p->end && *p->at != '"')
		p->at += *p->at == '\\' ? 2 : 1;
	if (p->at >= p->end) {
		tsdl_fail(p, "unterminated string");
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

static bool is_word_char(char c)
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

/* Returns a sign's length: one character, "..." or ":=". */
static size_t sign_length(const char *at, size_t remaining)
{
	return remaining >= 3 && memcmp(at, "...", 3) == 0 ? 3 : remaining >= 2 && memcmp(at, ":=", 2) == 0 ? 2 : 1;
}

void tsdl_next(struct tsdl_parser *p)
{
	if (p->m->arena.bytes > MAX_BYTES)
		tsdl_fail(p, "metadata too large");
	skip_blanks(p);
	p->text = p->at;
	p->len = 0;
	p->token = END;
	if (p->at >= p->end || p->m->reason)
		return;
	const char *at = p->at;
	if (is_word_char(*at)) {
		p->token = is_digit(*at) ? NUMBER : WORD;
		while (at < p->end && is_word_char(*at))
			at++;
	} else if (is_sign(*at)) {
		p->token = SIGN;
		at += sign_length(at, (size_t)(p->end - at));
	} else if (*at == '"') {
		scan_string(p);
		return;
	} else {
		tsdl_fail(p, "unexpected character");
		return;
	}
	p->len = (size_t)(at - p->at);
	p->at = at;
}

char *tsdl_copy_token(struct tsdl_parser *p)
{
	char *copy = ctf_copy_text(&p->m->arena, p->text, p->len);
	size_t n = 0;
	for (size_t i = 0; i < p->len && p->token == TEXT; i++) {
		i += copy[i] == '\\' && i + 1 < p->len;
		copy[n++] = copy[i];
	}
	copy[p->token == TEXT ? n : p->len] = '\0';
	tsdl_next(p);
	return copy;
}

/* Parses an integer in C syntax, with an optional suffix. Returns false if it is invalid or too large. */
static bool parse_integer(const char *text, size_t len, uint64_t *v)
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

uint64_t tsdl_number(struct tsdl_parser *p)
{
	uint64_t v = 0;
	const bool negative = tsdl_accept(p, "-");
	if (!negative)
		tsdl_accept(p, "+");
	if (p->token != NUMBER || p->len > MAX_NUMBER_LENGTH || !parse_integer(p->text, p->len, &v)) {
		tsdl_fail(p, "invalid number");
		return 0;
	}
	tsdl_next(p);
	return negative ? -v : v;
}

bool tsdl_boolean(struct tsdl_parser *p)
{
	const bool value = tsdl_at(p, "true") || tsdl_at(p, "TRUE") || (p->token == NUMBER && *p->text != '0');
	if (!value && p->token != NUMBER && !tsdl_at(p, "false") && !tsdl_at(p, "FALSE"))
		tsdl_fail(p, "invalid boolean");
	tsdl_next(p);
	return value;
}

char *tsdl_path(struct tsdl_parser *p)
{
	char *path = ctf_copy_text(&p->m->arena, "", 0);
	size_t len = 0;
	while (p->token == WORD) {
		char *longer = ctf_alloc(&p->m->arena, len + p->len + 2);
		memcpy(longer, path, len);
		memcpy(longer + len, p->text, p->len);
		len += p->len;
		path = longer;
		tsdl_next(p);
		if (!tsdl_at(p, "."))
			return path;
		path[len++] = '.';
		tsdl_next(p);
	}
	tsdl_fail(p, "invalid name");
	return path;
}
