/* A summary, by what was lost, in plain sentences: of the machines what they ran and lost, to whom, how long they had to
 * wait; then the threads that lost most.  One sentence per line. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/timefmt.h"
#include "query/explain.h"

#define MACHINES 5     /* told of; of the others their sum */
#define THREADS 3

struct telling {
	const struct topo *topo;
	const struct summary *s;
	FILE *to;
};

static double percent(int64_t part, int64_t whole)
{
	return whole > 0 ? 100 * (double)part / (double)whole : 0;
}

static const char *name_of(const struct telling *t, const struct subject *who, char buf[NAME_TEXT])
{
	return topo_subject_text(t->topo, who, buf, NAME_TEXT);
}

/* "went to host/216 burnP6"; false: nobody took it. */
static bool thief_of(const struct telling *t, const struct summary_row *row, char buf[NAME_TEXT + 40])
{
	char who[NAME_TEXT];
	const struct party *p = &row->thief;
	if (p->kind == FLOW_RUNNING)
		return false;
	explain_party(t->topo, p, p->name < t->s->names ? t->s->name[p->name] : NULL, &row->who, who, sizeof who);
	if (p->kind == FLOW_IDLE_CPU)
		snprintf(buf, NAME_TEXT + 40, "passed although its CPU was idle");
	else
		snprintf(buf, NAME_TEXT + 40, "%s %s", p->kind == FLOW_LIMITED ? "is due to" : "went to", who);
	return true;
}

static void tell_waits(const struct telling *t, const struct summary_row *row)
{
	char who[NAME_TEXT], longest[TIME_TEXT], p99[TIME_TEXT], at[TIME_TEXT];
	time_duration(longest, row->longest.end - row->longest.start + 1);
	name_of(t, &row->longest.subject, who);
	time_clock(at, row->longest.start, 6);
	if (row->gaps == 1)
		fprintf(t->to, "It had to wait once, for %s (%s at %s).\n", longest, who, at);
	else
		fprintf(t->to, "It had to wait %" PRIu64 " times, at most for %s (%s at %s); 99 %% of the waits are no longer than "
		        "%s.\n", row->gaps, longest, who, at, time_duration(p99, row->p99));
}

static void tell_machine(const struct telling *t, const struct summary_row *row)
{
	char name[NAME_TEXT], thief[NAME_TEXT + 40], from[TIME_TEXT], to[TIME_TEXT], d[TIME_TEXT];
	char ran[TIME_TEXT], lost[TIME_TEXT];
	const struct demand *m = &row->demand;
	fprintf(t->to, "%s, %s .. %s (%s): ", name_of(t, &row->who, name), time_date(from, row->start, 6),
	        time_clock(to, row->end, 6), time_duration(d, row->end - row->start + 1));
	if (!topo_is_watched(t->topo, &row->who)) {
		fprintf(t->to, "ran %s, less what a host took from it, which is not seen.\n", time_duration(ran, m->ran));
		return;
	}
	if (m->lost == 0) {
		fprintf(t->to, "ran %s, and lost nothing.\n", time_duration(ran, m->ran));
		return;
	}
	fprintf(t->to, "ran %s and lost %s, %.1f %% of the time it wanted to run.\n", time_duration(ran, m->ran),
	        time_duration(lost, m->lost), percent(m->lost, m->ran + m->lost));
	if (thief_of(t, row, thief))
		fprintf(t->to, "Of that, %.1f %% %s.\n", percent(row->thief_ns, m->lost), thief);
	if (row->gaps)
		tell_waits(t, row);
}

static void tell_thread(const struct telling *t, const struct summary_row *row, bool first)
{
	char name[NAME_TEXT], thief[NAME_TEXT + 40], lost[TIME_TEXT];
	const struct demand *d = &row->demand;
	fprintf(t->to, "%s %s: %s, %.1f %% of the time it wanted to run", first ? "The thread that lost most is" : "Then",
	        name_of(t, &row->who, name), time_duration(lost, d->lost), percent(d->lost, d->ran + d->lost));
	if (thief_of(t, row, thief))
		fprintf(t->to, "; %.0f %% of it %s", percent(row->thief_ns, d->lost), thief);
	fputs(".\n", t->to);
}

/* What the rows from..to - 1 lost that are not told of one by one. */
static void tell_rest(const struct telling *t, size_t from, size_t to, const char *what)
{
	int64_t rest = 0;
	size_t n = 0;
	char lost[TIME_TEXT];
	for (size_t i = from; i < to; i++) {
		int64_t ns = t->s->row[i].demand.lost;
		n += ns > 0;
		rest += ns < INT64_MAX - rest ? ns : 0;
	}
	if (n)
		fprintf(t->to, "%zu other %s%s lost %s together.\n", n, what, n == 1 ? "" : "s", time_duration(lost, rest));
}

int explain_summary(const struct topo *topo, const struct summary *s, char **text, struct error *err)
{
	size_t size;
	struct telling t = { topo, s, open_memstream(text, &size) };
	if (!t.to)
		return error_system(err, NULL, "explain");
	size_t machines = s->machines < MACHINES ? s->machines : MACHINES, i;
	for (i = 0; i < machines; i++)
		tell_machine(&t, &s->row[i]);
	tell_rest(&t, machines, s->machines, "machine");
	for (i = s->machines; i < s->rows && i < s->machines + THREADS && s->row[i].demand.lost > 0; i++)
		tell_thread(&t, &s->row[i], i == s->machines);
	tell_rest(&t, i, s->rows, "thread");
	if (fclose(t.to) != 0) {
		free(*text);
		*text = NULL;
		return error_system(err, NULL, "explain");
	}
	return 0;
}
