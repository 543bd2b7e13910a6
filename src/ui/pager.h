/* A list of lines over the rows: help, details, bookmarks, themes, requests.  Scrolls, filters, picks. */
#ifndef STEALSCOPE_UI_PAGER_H
#define STEALSCOPE_UI_PAGER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "ui/screen.h"
#include "ui/theme.h"

enum pager_kind { PAGER_HELP, PAGER_DETAILS, PAGER_BOOKMARKS, PAGER_THEMES, PAGER_REQUESTS };
enum pager_result { PAGER_STAYS, PAGER_CLOSED, PAGER_PICKED, PAGER_DROPPED, PAGER_MOVED, PAGER_SEARCH, PAGER_UNKNOWN };

struct pager {
	enum pager_kind kind;
	char title[128];
	struct pager_line {
		char *text;    /* escaped */
		int64_t tag;   /* what picking it means; -1: it cannot be picked */
		struct style sample;  /* drawn before the text when has_sample */
		bool has_sample, heading;
	} *line;
	size_t len, cap;
	bool picks;            /* a line is selected and can be picked with Enter */
	size_t at, top;        /* selected, first shown; indices into the shown lines */
	char filter[64];       /* only lines that contain it, any case */
};

void pager_open(struct pager *p, enum pager_kind kind, bool picks, const char *title);
void pager_release(struct pager *p);
struct pager_line *pager_add(struct pager *p, int64_t tag, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* PICKED, DROPPED (bookmarks) and MOVED leave the tag of the selected line in *tag. */
enum pager_result pager_key(struct pager *p, uint32_t key, int height, int64_t *tag);
void pager_draw(struct pager *p, struct screen *s, int y, int height, const struct palette *palette);

#endif
