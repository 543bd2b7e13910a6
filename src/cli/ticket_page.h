/* The page of `stealscope ticket`: self-contained HTML, and the same as text. */
#pragma once

#include "base/base.h"

/* All texts are escaped for terminals, not for HTML. Times are in UTC. */
struct ticket_page {
	const char *subject;      /* the victim: "Debian/151 fibonacci"; "all machines" */
	const char *from, *to, *span;  /* window: dates and times, duration */
	const char *verdict;      /* one sentence */
	const char *explanation;  /* sentences, one per line */
	const char *culprits;     /* csv of `steal --by thread` */
	const char *gaps;         /* csv of `gaps`: waits for the verdict's culprit, if it has a moment */
	const char *moment;       /* SVG of the verdict's moment; NULL: none */
	const char *moment_title; /* its heading */
	const char *warnings;     /* lines on the trust in the answer */
	const char *recording;    /* output of `info` */
	const char *picture;      /* SVG */
	const char *timeline;     /* the interactive timeline's elements; "": none */
	int64_t start;            /* of the window, ns: links to places count from here */
	const char *target;       /* operand for commands; "": none */
	bool has_victims;         /* the tables name who waited: the subject has several threads */
	const void *history;      /* content of the cut history to embed; NULL: it lies beside the page, or is left out */
	size_t history_bytes;
	const char *history_name; /* NULL: left out */
	const char *history_part; /* length of its window around the first wait; "" or NULL: the whole window */
	bool has_aliases;         /* names were replaced */
};

/* Reads start and end of the waits from the csv of `gaps`, at most `most`. Returns their number. */
size_t ticket_page_places(const char *gaps, int64_t (*place)[2], size_t most);
/* Returns the csv of the first `most` gaps with these fields of the main culprit ("": any), allocated; of all gaps if there
 * is none. */
char *ticket_page_waits_for(const char *gaps, const char *machine, const char *tid, const char *name, size_t most);
void ticket_page_write_html(FILE *out, const struct ticket_page *p);
void ticket_page_write_text(FILE *out, const struct ticket_page *p);
