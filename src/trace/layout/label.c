
#include "base/base.h"
#include "trace/layout/layout.h"

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Returns true for name characters; bytes of other scripts are such characters. */
static bool is_word(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || (c & 0x80);
}

/* Returns the length of the string at the start of a text that is quoted as in PostgreSQL, $tag$ ... $tag$; 0: none. */
static size_t dollar_quoted_length(const char *text, size_t len)
{
	size_t tag = 1;
	while (tag < len && is_word(text[tag]) && text[tag] != '$')
		tag++;
	if (tag == len || text[tag++] != '$' || is_digit(text[1]))
		return 0;
	for (size_t n = tag; n + tag <= len; n++)
		if (memcmp(text + n, text, tag) == 0)
			return n + tag;
	return len;
}

/* Returns the length of the literal at a text's start: a quoted string or a number; 0: there is none. */
static size_t literal_length(const char *text, size_t len)
{
	size_t n = 1;
	if (*text == '\'' || *text == '"') {
		while (n < len && text[n] != *text)
			n += text[n] == '\\' && n + 1 < len ? 2 : 1;
		return n < len ? n + 1 : len;
	}
	if (*text == '$')
		return dollar_quoted_length(text, len);
	if (!is_digit(*text))
		return 0;
	while (n < len && (is_word(text[n]) || text[n] == '.'))
		n++;
	return n;
}

/* Returns the length without a UTF-8 character that is cut off at the end. */
static size_t whole_characters(const char *text, size_t len)
{
	size_t first = len;
	while (first && (text[first - 1] & 0xc0) == 0x80)
		first--;
	if (!first || !(text[first - 1] & 0x80))
		return first;
	const unsigned char lead = (unsigned char)text[first - 1];
	const size_t bytes = lead >= 0xf0 ? 4 : lead >= 0xe0 ? 3 : 2;
	return first - 1 + bytes <= len ? len : first - 1;
}

size_t layout_label(char out[LABEL_MAX + 1], const char *text, size_t max_len)
{
	const size_t len = strnlen(text, max_len);
	size_t n = 0;
	for (size_t at = 0, used = 1; at < len && n < LABEL_MAX; at += used) {
		const bool in_word = at > 0 && is_digit(text[at]) && is_word(text[at - 1]);
		const size_t literal = in_word ? 0 : literal_length(text + at, len - at);
		const bool blank = (text[at] & 0xe0) == 0 || text[at] == ' ' || text[at] == 0x7f;
		used = literal ? literal : 1;
		if (literal && n && out[n - 1] == '?' && at > 0 && (text[at - 1] == '\'' || text[at - 1] == '"'))
			continue;  /* a quote within a string, written twice */
		if (!blank || (n && out[n - 1] != ' '))
			out[n++] = literal ? '?' : blank ? ' ' : text[at];
	}
	n = whole_characters(out, n);
	if (n && out[n - 1] == ' ')
		n--;
	out[n] = '\0';
	return n;
}
