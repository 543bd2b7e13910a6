/* A list of lines over the rows: help, details, bookmarks, themes, requests.  Scrolls, filters, picks. */
#ifndef STEALSCOPE_UI_PANES_PAGER_H
#define STEALSCOPE_UI_PANES_PAGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ui/terminal/screen.h"
#include "ui/widgets/theme.h"

enum pager_result {
	PAGER_STAYS, PAGER_CLOSED, PAGER_PICKED, PAGER_DROPPED, PAGER_EDITS, PAGER_MOVED, PAGER_SEARCH, PAGER_UNKNOWN
};

struct pager {
	char title[128];
	struct pager_line {
		char *text;    /* escaped */
		int64_t tag;   /* what picking it means; -1: it cannot be picked */
		struct glyph sample;  /* drawn before the text, unless its ch is 0 */
		bool heading;
		bool more;     /* goes on with the line before */
	} *line;
	size_t len, cap;
	bool picks;            /* a line is selected and can be picked with Enter */
	bool edits;            /* and dropped with d, its note written with e */
	size_t at, top;        /* selected, first shown; indices into the shown lines */
	char filter[64];       /* only lines that contain it, any case */
};

void pager_open(struct pager *p, bool picks, const char *title);
void pager_release(struct pager *p);
struct pager_line *pager_add(struct pager *p, int64_t tag, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
void pager_wrap(struct pager *p, int w);   /* what is wider than a screen of w goes on in further lines */
/* The place of the selected line, however they are wrapped; and to the line of that place. */
size_t pager_place(const struct pager *p);
void pager_go(struct pager *p, size_t place);
/* PICKED, DROPPED, EDITS and MOVED leave the tag of the selected line in *tag. */
enum pager_result pager_key(struct pager *p, uint32_t key, int height, int64_t *tag);
int64_t pager_tag(const struct pager *p);  /* of the selected line; -1: there is none */
void pager_draw(struct pager *p, struct screen *s, int y, int height, const struct palette *palette);

#endif
