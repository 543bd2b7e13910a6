/* A directory's recordings, a line each: when, how long, who, share lost, verdict. A cache keeps the lines. */
#pragma once

#include <stdio.h>

#include "index/index.h"
#include "ui/ui.h"

struct recording_line {
	const struct recording_entry *recording;
	struct ui_recording shown;
	char *texts[3];           /* owned: name, who, verdict */
	bool from_cache;
};

struct recording_lines {
	const char *dir;
	struct recording_line *line;
	size_t lines;
	struct ui_recording *row;  /* one per line, in the same order */
	size_t unread;             /* lines without an answer */
};

/* Makes a line for each recording, the newest first, and fills those that the cache holds. Borrows `dir` and `found`. */
void recording_lines_begin(struct recording_lines *r, const char *dir, const struct recordings *found);
/* Fills a line from the output of `summary --format json`, which is changed: the answer after notes, or an error. */
void recording_lines_take(struct recording_lines *r, size_t i, char *text);
void recording_lines_print(const struct recording_lines *r, FILE *f);
void recording_lines_end(struct recording_lines *r);  /* saves the cache */
