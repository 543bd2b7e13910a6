/* The interactive timeline of a ticket: the data of its lanes and the script that draws them (ticket_timeline.js). */
#pragma once

#include <stdio.h>

#include "query/query.h"

#define TIMELINE_PLACES 16  /* most places with all details */

/* What the timeline shows; times in ns. */
struct ticket_timeline {
	const struct catalog *catalog;
	const struct target *target;    /* its first lane, or machine; NULL: all machines */
	const struct target *victim;    /* of the moment: a lane, too; NULL: none */
	int64_t from, to;
	int64_t place[TIMELINE_PLACES][2];  /* start and end of the moment, then of listed waits: with more details */
	size_t places;
};

/* Writes the timeline's elements, its data and its script. Intervals far from the places are summed in blocks, so that
 * the data stays below about 50 kB; sums of blocks are exact. Returns 0, or -1. */
int ticket_timeline_write(FILE *out, const struct ticket_timeline *t, struct error *err);
/* Writes the value of script-src in the page's Content-Security-Policy: the script's hash. */
void ticket_timeline_write_policy(FILE *out);
