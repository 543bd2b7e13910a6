/* Untrusted names: escaping and terminal width.
 *
 * Names in traces come from whoever runs programs on the traced machines.  Before one reaches a screen, a report
 * or a message, control characters, DEL, C1 controls, bidirectional overrides, line and paragraph separators and
 * bytes that are not UTF-8 become visible escapes: \n \t \e \xHH \u{HHHH}; and so that these can be told from what was
 * written, a backslash becomes two.  Everything else stays as it is. */
#ifndef STEALSCOPE_BASE_TEXT_H
#define STEALSCOPE_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Writes src, escaped, into dst (size bytes, always terminated; cut at a character boundary).
 * Returns dst.  Once is enough: what is escaped already would get its backslashes doubled. */
char *text_escape(char *dst, size_t size, const char *src);

#define TEXT_ESCAPED 4  /* as many times as long a text becomes at most: \xHH of a byte, \u{HHHH} of two or three */

/* Decodes one UTF-8 character of s (NUL terminated) into *ch; returns its length in bytes,
 * or 0 when the bytes are not valid UTF-8 (overlong forms and surrogates included). */
size_t text_decode(const char *s, uint32_t *ch);

/* Columns that s (UTF-8, already escaped) takes on a terminal in the current locale. */
int text_width(const char *s);

/* Longest prefix of s, in bytes, that takes at most `cells` columns. */
size_t text_fit(const char *s, int cells);

/* Of "instance-0000002f/151 nginx", which does not go into w columns: "ins~2f/151 nginx".  Who of the machine is meant is
 * worth more than all of its name, which is short in one way alone.  That may stand behind "of" or "for": "gaps of
 * instance-0000002f/151 nginx in 2 s".  In place; returns text. */
char *text_squeeze(char *text, int w);

/* At most w columns of a name, the cut being a '~'.  Both ends of names and paths tell something, so it is in the middle;
 * of a thread the machine is shortened, and then the end goes: who it is stands in front; of a vCPU the machine alone.
 * In place; returns text. */
char *text_cut(char *text, int w);

/* May a line end at this space?  Not between a number and its unit: "48.7 %", "12.0 ms". */
bool text_breaks(const char *s, size_t space);
/* How much of s makes a line of that many cells: up to a space at which it may end, where there is one. */
size_t text_line(const char *s, int cells);

/* "48.7%", and "<0.1%" of what is little and not nothing. */
char *text_share(char buf[16], double share);

/* "2 of 5 vCPUs", "all 5 vCPUs", "the only vCPU", "any vCPU" of none: so many of all that there are. */
char *text_of_all(char buf[64], uint64_t n, uint64_t all, const char *one);

/* The length of a command in parentheses, "(stealscope gaps FILE 'my VM')", that text begins with; 0: none. */
size_t text_command(const char *text);
/* With the name of the file in the place of FILE in all of its commands, so that they can be pasted; NULL: as it is.  The
 * caller frees. */
char *text_commands(const char *text, const char *file);

/* What a shell reads as exactly this one word: in quotes where it would see more in it.  The caller frees. */
char *shell_word(const char *text);

#endif
