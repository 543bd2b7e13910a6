/* Untrusted names: escaping, and width on a terminal.
 *
 * Names in traces come from programs on the traced machines. Before a name is written to a screen, report or message,
 * the following become visible escapes: control characters, DEL, C1 controls, bidirectional overrides, line and
 * paragraph separators, and bytes that are not UTF-8. Escapes: \t \e \xHH \u{HHHH}. A backslash is doubled, so that
 * escapes are unambiguous. Everything else is copied. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Writes src, escaped, into dst (size bytes, always terminated, cut at a character boundary). Returns dst. Do not escape
 * twice: backslashes would be doubled. */
char *text_escape(char *dst, size_t size, const char *src);

/* Like text_escape(), but keeps backslashes: for messages that may contain escaped text. May be repeated. */
char *text_sanitize(char *dst, size_t size, const char *src);

/* Copies a name. A name of more than size - 1 bytes is cut at a character, and gets "~" and the 8 digits of a hash of the
 * whole name, so that names with the same beginning stay different. Returns dst. size: more than 16. */
char *text_cut(char *dst, size_t size, const char *src);

#define TEXT_ESCAPED 4  /* maximum growth of a text by escaping: \xHH for one byte, \u{HHHH} for two or three bytes */

/* Decodes one UTF-8 character of s (NUL terminated) into *ch. Returns its length in bytes, or 0 for invalid bytes
 * (overlong forms and surrogates included). */
size_t text_decode(const char *s, uint32_t *ch);

/* Returns the width of s (UTF-8, escaped) on a terminal in the current locale, columns. */
int text_width(const char *s);

/* Returns the length in bytes of the longest prefix of s that takes at most `cells` columns. */
size_t text_fit(const char *s, int cells);

/* Shortens the machine in a name, if the text is wider than w columns: "instance-0000002f/151 nginx" becomes "ins~2f/151
 * nginx", always the same form. A heading may precede the name: "gaps of instance-0000002f/151 nginx in 2 s". In place;
 * returns the text, which may still be wider. */
char *text_shorten_machine(char *text, int w);

/* Shortens a name to w columns, with '~' at the cut. Names and paths are cut in the middle, since both ends matter. Of a
 * thread the machine is shortened, then the name's end is cut; of a vCPU only the machine is shortened. In place;
 * returns text. */
char *text_shorten(char *text, int w);

/* Returns true if a line may be broken at this space: not between a number and its unit ("48.7 %", "12.0 ms"). */
bool text_may_break_at(const char *s, size_t space);
/* Returns the number of bytes of s for a line of `cells` columns, up to a space where the line may be broken if there is
 * one. */
size_t text_line_bytes(const char *s, int cells);

/* Formats a share: "48.7%"; "<0.1%" for small shares above 0. */
char *text_share(char buf[16], double share);

/* Formats a count: "2 of 5 vCPUs", "all 5 vCPUs", "the only vCPU"; "any vCPU" if all is 0. */
char *text_count_of_all(char buf[64], uint64_t n, uint64_t all, const char *one);

/* Returns the length of a command in parentheses, "(stealscope gaps FILE 'my VM')", at the start of text; 0: there is
 * none. */
size_t text_command_bytes(const char *text);
/* Replaces FILE by the file's name in all commands of a text, so that users can paste them; file NULL: no change. The
 * caller frees the result. */
char *text_insert_file_name(const char *text, const char *file);

/* Quotes a text for a shell, as one word. The caller frees the result. */
char *shell_word(const char *text);
