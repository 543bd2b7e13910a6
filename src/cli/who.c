#include "cli/who.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"

#define LISTED 20  /* of those that may be meant */

struct candidate {
	struct subject who;
	int64_t start, end, lost;
};

static const struct column columns[] = {
	{ "subject", "who", COL_TEXT },
	{ "start", "from", COL_CLOCK },
	{ "end", "to", COL_CLOCK },
	{ "lost_ns", "lost", COL_DURATION },
};

static int by_loss(const void *pa, const void *pb)
{
	const struct candidate *a = pa, *b = pb;
	if (a->lost != b->lost)
		return (a->lost < b->lost) - (a->lost > b->lost);
	return (a->start > b->start) - (a->start < b->start);
}

static int list(const struct scene *s, const struct subject *found, size_t n, struct error *err)
{
	static const struct report_shape shape = REPORT_SHAPE("who", columns);
	struct candidate *c = mem_new(n, sizeof *c);
	int rc = 0;
	for (size_t i = 0; i < n && rc == 0; i++) {
		c[i] = (struct candidate){ .who = found[i], .start = history_begin(s->h), .end = history_end(s->h) };
		if (topo_life(&s->topo, &found[i], &c[i].start, &c[i].end, err) < 0)
			rc = -1;
		else
			rc = steal_time(&s->topo, &found[i], c[i].start, c[i].end, &c[i].lost, err);
	}
	if (rc == 0) {
		qsort(c, n, sizeof *c, by_loss);
		struct report *r = report_begin(stderr, FORMAT_TEXT, &shape, NULL);
		for (size_t i = 0; i < n && i < LISTED; i++) {
			char name[300];
			report_row(r, (struct value[]){ VAL_SHOWN(topo_subject_text(&s->topo, &c[i].who, name, sizeof name)),
			                                VAL_INT(c[i].start), VAL_INT(c[i].end), VAL_INT(c[i].lost) });
		}
		report_end(r);
		if (n > LISTED)
			fprintf(stderr, "and %zu more, that lost less\n", n - LISTED);
	}
	free(c);
	return rc;
}

int who_parse(const struct scene *s, const char *text, struct subject *out, struct error *err)
{
	struct subject *found = NULL;
	size_t n = 0;
	int rc = topo_find_subjects(&s->topo, text, &found, &n, err);
	if (rc == 0 && n > 1)
		rc = list(s, found, n, err);
	if (rc == 0)
		rc = topo_one_subject(&s->topo, text, found, n, out, err);
	free(found);
	return rc;
}
