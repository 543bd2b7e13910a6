/* One line of input at the foot of the screen: the command line, searches, file names.  Pure. */
#ifndef STEALSCOPE_UI_INPUT_PROMPT_H
#define STEALSCOPE_UI_INPUT_PROMPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ui/terminal/screen.h"

#define PROMPT_LONGEST 512  /* bytes */
#define PROMPT_HISTORY 32   /* lines kept for each kind of prompt */

enum prompt_kind {
	PROMPT_COMMAND, PROMPT_SEARCH, PROMPT_FILTER, PROMPT_EXPORT, PROMPT_PAGER, PROMPT_NOTE, PROMPT_PANE, PROMPT_KINDS
};
enum prompt_result { PROMPT_EDITING, PROMPT_CHANGED, PROMPT_DONE, PROMPT_CANCELLED };

struct prompt {
	enum prompt_kind kind;
	char text[PROMPT_LONGEST];  /* UTF-8 */
	size_t at;                  /* byte where the cursor stands */
	char *past[PROMPT_KINDS][PROMPT_HISTORY];  /* newest last; NULL where there is none */
	int recall;                 /* lines back in the past; 0 = the text being written */
};

void prompt_open(struct prompt *p, enum prompt_kind kind, const char *initial);
void prompt_release(struct prompt *p);
/* Takes a key; DONE leaves the line in text and remembers it. */
enum prompt_result prompt_key(struct prompt *p, uint32_t key);
void prompt_insert(struct prompt *p, const char *text);
/* Draws it over line y and puts the terminal's cursor there. */
void prompt_draw(const struct prompt *p, struct screen *s, int y, struct style style);

#endif
