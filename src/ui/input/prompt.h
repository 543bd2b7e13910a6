/* A line of input at the screen's bottom: command line, searches, file names. Pure state, except for drawing. */
#pragma once

#include "base/base.h"
#include "ui/terminal/screen.h"

#define PROMPT_MAX_BYTES 512  /* size of the line with the final 0 */
#define PROMPT_HISTORY 32   /* lines remembered for each kind of prompt */

enum prompt_kind {
	PROMPT_COMMAND, PROMPT_SEARCH, PROMPT_FILTER, PROMPT_EXPORT, PROMPT_PAGER, PROMPT_NOTE, PROMPT_PANE, PROMPT_KINDS
};
enum prompt_result { PROMPT_EDITING, PROMPT_CHANGED, PROMPT_DONE, PROMPT_CANCELLED };

struct prompt {
	enum prompt_kind kind;
	char text[PROMPT_MAX_BYTES];  /* UTF-8 */
	size_t at;                  /* the cursor's position, byte offset */
	char *history[PROMPT_KINDS][PROMPT_HISTORY];  /* earlier lines of each kind of prompt, the newest last; NULL: none */
	int recall;                 /* lines that the user went back in the history; 0: the new line */
};

void prompt_open(struct prompt *p, enum prompt_kind kind, const char *initial);
void prompt_release(struct prompt *p);
/* Handles a key. After PROMPT_DONE the line is in text and in the history. */
enum prompt_result prompt_key(struct prompt *p, uint32_t key);
void prompt_insert(struct prompt *p, const char *text);
/* Draws the prompt over line y and moves the terminal's cursor there. */
void prompt_draw(const struct prompt *p, struct screen *s, int y, struct style style);
