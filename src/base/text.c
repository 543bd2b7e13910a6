
#include <ctype.h>
#include <wchar.h>

#include "base/base.h"
#include "base/hash.h"

#define MACHINE_HEAD_COLUMNS 3   /* columns kept at a shortened machine name's start */
#define MACHINE_TAIL_COLUMNS 2   /* columns kept at its end */

size_t text_decode(const char *s, uint32_t *ch)
{
	static const uint32_t smallest[] = { 0, 0, 0x80, 0x800, 0x10000 };
	unsigned char lead = (unsigned char)s[0];
	size_t len = lead < 0x80 ? 1 : lead >> 5 == 6 ? 2 : lead >> 4 == 14 ? 3 : lead >> 3 == 30 ? 4 : 0;
	if (len == 0)
		return 0;
	uint32_t c = len == 1 ? lead : lead & (0x7fU >> len);
	for (size_t i = 1; i < len; i++) {
		if (((unsigned char)s[i] & 0xc0) != 0x80)
			return 0;
		c = c << 6 | ((unsigned char)s[i] & 0x3f);
	}
	if (len > 1 && (c < smallest[len] || c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff)))
		return 0;
	*ch = c;
	return len;
}

/* Characters that would move the cursor, hide text or reverse it. */
static bool is_unprintable(uint32_t c)
{
	return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0xad || c == 0x061c || (c >= 0x200b && c <= 0x200f) ||
	       (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) || c == 0xfeff ||
	       (c >= 0xe0000 && c <= 0xe007f);
}

static size_t escape_one(char out[16], const char *s, bool keep_backslash, size_t *used)
{
	uint32_t c;
	size_t len = text_decode(s, &c);
	*used = len ? len : 1;
	if (len && !is_unprintable(c) && (c != '\\' || keep_backslash)) {
		memcpy(out, s, len);
		return len;
	}
	const char *name = !len ? NULL : c == '\n' ? "\\n" : c == '\t' ? "\\t" : c == '\r' ? "\\r" : c == 27 ? "\\e"
	                   : c == '\\' ? "\\\\" : NULL;
	int n;
	if (name)
		n = snprintf(out, 16, "%s", name);
	else if (!len || c < 0x80)
		n = snprintf(out, 16, "\\x%02x", (unsigned)(unsigned char)s[0]);
	else
		n = snprintf(out, 16, "\\u{%x}", (unsigned)c);
	return n > 0 ? (size_t)n : 0;
}

static char *escape(char *dst, size_t size, const char *src, bool keep_backslashes)
{
	size_t used = 0;
	while (size && *src) {
		char out[16];
		size_t step;
		size_t n = escape_one(out, src, keep_backslashes, &step);
		if (used + n >= size)
			break;
		memcpy(dst + used, out, n);
		used += n;
		src += step;
	}
	if (size)
		dst[used] = '\0';
	return dst;
}

char *text_escape(char *dst, size_t size, const char *src)
{
	return escape(dst, size, src, false);
}

char *text_sanitize(char *dst, size_t size, const char *src)
{
	return escape(dst, size, src, true);
}

char *text_cut(char *dst, size_t size, const char *src)
{
	size_t n = strlen(src);
	if (n < size)
		return memcpy(dst, src, n + 1);
	const uint64_t hash = hash_text(HASH_BEGIN, src);
	n = size - sizeof "~12345678";
	while (n > 0 && ((unsigned char)src[n] & 0xc0) == 0x80)
		n--;
	memcpy(dst, src, n);
	snprintf(dst + n, size - n, "~%08x", (unsigned)(hash ^ hash >> 32));
	return dst;
}

/* Returns the length in bytes of the character at s; *columns: its width on a terminal. */
static size_t next_char(const char *s, int *columns)
{
	uint32_t c;
	size_t len = text_decode(s, &c);
	int w = len ? wcwidth((wchar_t)c) : 1;
	*columns = w < 0 ? 1 : w;
	return len ? len : 1;
}

size_t text_fit(const char *s, int cells)
{
	size_t used = 0;
	int w;
	for (size_t len; s[used] && (len = next_char(s + used, &w), w <= cells); used += len)
		cells -= w;
	return used;
}

/* Finds the start of a target's name in a heading such as "flow of instance-0000002f/151 nginx"; NULL: there is none. */
static char *find_target_name(char *text)
{
	static const char *const before[] = { "", " of ", " for " };
	for (size_t i = 0; i < sizeof before / sizeof *before; i++) {
		char *at = strstr(text, before[i]);
		if (at && at[strlen(before[i]) + strcspn(at + strlen(before[i]), "/ ")] == '/')
			return at + strlen(before[i]);
	}
	return NULL;
}

char *text_shorten_machine(char *name, int w)
{
	char *text = find_target_name(name);
	if (!text || text_width(name) <= w)
		return name;
	size_t end = strcspn(text, "/");
	text[end] = '\0';
	int all = text_width(text);
	size_t head = text_fit(text, MACHINE_HEAD_COLUMNS), tail = head;
	while (tail < end) {
		int columns;
		size_t len = next_char(text + tail, &columns);
		if (columns > 0 && text_width(text + tail) <= MACHINE_TAIL_COLUMNS)
			break;
		tail += len;
	}
	text[end] = '/';
	if (all > MACHINE_HEAD_COLUMNS + 1 + MACHINE_TAIL_COLUMNS) {
		text[head] = '~';
		memmove(text + head + 1, text + tail, strlen(text + tail) + 1);
	}
	return name;
}

/* Returns true for a thread's name, "Debian/151 fibonacci". */
static bool is_thread_name(const char *text)
{
	const char *slash = text + strcspn(text, "/ ");
	return *slash == '/' && isdigit((unsigned char)slash[1]);
}

/* Returns the longest suffix with at most w columns that does not begin within a number. */
static const char *longest_suffix(const char *text, int w)
{
	const char *tail = text;
	while (text_width(tail) > w || (tail > text && isdigit((unsigned char)*tail) && isdigit((unsigned char)tail[-1]))) {
		uint32_t c;
		size_t len = text_decode(tail, &c);
		tail += len ? len : 1;
	}
	return tail;
}

char *text_shorten(char *text, int w)
{
	if (w < 1)
		*text = '\0';
	if (w < 1 || text_width(text_shorten_machine(text, w)) <= w)
		return text;
	const bool thread = is_thread_name(text);
	const int front = thread ? w - 1 : (w - 1) / 2;
	size_t head = text_fit(text, front);
	const char *vcpu = strstr(text, "/vCPU"), *tail = thread ? "" : longest_suffix(text + head, w - 1 - front);
	if (!thread && vcpu && text_width(vcpu) < w) {
		tail = vcpu;
		head = text_fit(text, w - 1 - text_width(vcpu));
		head -= head && text[head - 1] == '~';
	}
	text[head] = '~';
	memmove(text + head + 1, tail, strlen(tail) + 1);
	return text;
}

bool text_may_break_at(const char *s, size_t space)
{
	static const char *const units[] = { "%", "ns", "us", "ms", "s", "min", "h" };
	const char *unit = s + space + 1;
	const size_t letters = strspn(unit, "%abcdefghijklmnopqrstuvwxyz");
	size_t number = space;
	while (number > 0 && strchr("0123456789.", s[number - 1]))
		number--;
	if (number == space || (number > 0 && !strchr(" (", s[number - 1])))
		return true;
	for (size_t i = 0; i < sizeof units / sizeof *units; i++)
		if (strlen(units[i]) == letters && strncmp(unit, units[i], letters) == 0)
			return false;
	return true;
}

size_t text_line_bytes(const char *s, int cells)
{
	size_t n = text_fit(s, cells), end = n;
	while (s[n] && end > 0 && (s[end] != ' ' || !text_may_break_at(s, end)))
		end--;
	return end ? end : n;
}

int text_width(const char *s)
{
	int width = 0, w;
	for (; *s >= ' ' && *s <= '~'; s++)  /* one column each; most texts have no others */
		width++;
	for (; *s; width += w)
		s += next_char(s, &w);
	return width;
}

char *text_share(char buf[16], double share)
{
	if (share > 0 && share < 0.0005)
		snprintf(buf, 16, "<0.1%%");
	else
		snprintf(buf, 16, "%.1f%%", 100 * share);
	return buf;
}

char *text_count_of_all(char buf[64], uint64_t n, uint64_t all, const char *one)
{
	if (n == all && all <= 1)
		snprintf(buf, 64, "%s %s", all ? "the only" : "any", one);
	else if (n == all)
		snprintf(buf, 64, "all %" PRIu64 " %ss", all, one);
	else
		snprintf(buf, 64, "%" PRIu64 " of %" PRIu64 " %s%s", n, all, one, all == 1 ? "" : "s");
	return buf;
}

char *shell_word(const char *text)
{
	static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.:@%+,/";
	char *word = mem_new(4 * strlen(text) + 3, 1), *to = word;
	if (*text && !text[strspn(text, plain)])
		return memcpy(word, text, strlen(text) + 1);
	*to++ = '\'';
	for (; *text; text++) {
		if (*text == '\'')
			to += snprintf(to, 4, "'\\'");
		*to++ = *text;
	}
	snprintf(to, 2, "'");
	return word;
}

size_t text_command_bytes(const char *text)
{
	bool quoted = false;
	size_t n = 0;
	if (strncmp(text, "(stealscope ", 12) != 0)
		return 0;
	for (; text[n] && text[n] != '\n' && (quoted || text[n] != ')'); n++)
		quoted ^= text[n] == '\'';
	return n + strcspn(text + n, " \n");
}

char *text_insert_file_name(const char *text, const char *file)
{
	static const char placeholder[] = " FILE";
	char *result = mem_dup(""), name[4096];
	char *word = shell_word(text_escape(name, sizeof name, file ? file : "FILE"));
	for (const char *at; *text; text = at) {
		const char *begin = strstr(text, "(stealscope ");
		const char *end = begin ? begin + text_command_bytes(begin) : text + strlen(text);
		const char *found = begin ? strstr(begin, placeholder) : NULL;
		at = end;
		char *more = found && found < end
			? mem_printf("%s%.*s %s%.*s", result, (int)(found - text), text, word,
			             (int)(end - found) - (int)sizeof placeholder + 1, found + sizeof placeholder - 1)
			: mem_printf("%s%.*s", result, (int)(end - text), text);
		free(result);
		result = more;
	}
	free(word);
	return result;
}
