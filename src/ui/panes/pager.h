/* A list of text lines over the rows (help, details, bookmarks, themes, requests): scrolls, filters and picks lines. */
#pragma once

#include "base/base.h"
#include "ui/terminal/screen.h"
#include "ui/widgets/theme.h"

enum pager_result {
	PAGER_UNCHANGED, PAGER_CLOSED, PAGER_PICKED, PAGER_DELETE, PAGER_EDIT, PAGER_MOVED, PAGER_SEARCH, PAGER_UNKNOWN
};

struct pager {
	char title[128];
	struct pager_line {
		char *text;    /* the line's text, escaped */
		int64_t tag;   /* value that identifies the line when it is picked; -1: the line cannot be picked */
		struct glyph sample;  /* coloured sample drawn before the text; ch 0: none */
		bool heading;
		bool continues;  /* the line continues the previous line (wrapped) */
	} *line;
	size_t len, cap;
	bool picks;            /* one line is selected, and Enter picks it */
	bool edits;            /* keys work on lines: d deletes a line, e edits its note */
	size_t at, top;        /* selected line and first line shown; indices into the lines that pass the filter */
	char filter[64];       /* only lines with this text are shown, ignoring case; "": all */
};

void pager_open(struct pager *p, bool picks, const char *title);
void pager_release(struct pager *p);
struct pager_line *pager_add(struct pager *p, int64_t tag, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void pager_wrap(struct pager *p, int w);  /* wraps lines that are wider than w columns */
/* Position of the selected line, independent of wrapping. The setter selects the line at that position. */
size_t pager_position(const struct pager *p);
void pager_set_position(struct pager *p, size_t position);
/* PICKED, DROPPED, EDITS and MOVED store the tag of the selected line in *tag. */
enum pager_result pager_key(struct pager *p, uint32_t key, int height, int64_t *tag);
int64_t pager_tag(const struct pager *p);  /* the selected line's tag; -1: none */
void pager_draw(struct pager *p, struct screen *s, int y, int height, const struct palette *palette);
