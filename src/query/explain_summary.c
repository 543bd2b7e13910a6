/* A summary in plain sentences, one per line: for each machine its running time, its lost time, the main culprit, and
 * its waits; then the threads that lost most. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/timefmt.h"
#include "query/explain.h"

#define MACHINES_MAX 5     /* limit of machines with sentences of their own; the others are summed */
#define THREADS_MAX 3

struct summary_text {
	const struct catalog *catalog;
	const struct summary *s;
	FILE *to;
};

static double percent(int64_t part, int64_t whole)
{
	return whole > 0 ? 100 * (double)part / (double)whole : 0;
}

static const char *target_name(const struct summary_text *t, const struct target *actor, char buf[NAME_TEXT])
{
	return catalog_target_text(t->catalog, actor, buf, NAME_TEXT);
}

/* Writes "was taken by host/216 burnP6". Returns false if there is no culprit. */
static bool write_culprit(const struct summary_text *t, const struct summary_row *row, char buf[NAME_TEXT + 40])
{
	char actor[NAME_TEXT];
	const struct actor *p = &row->culprit;
	if (p->kind == FLOW_RUNNING)
		return false;
	actor_text(t->catalog, p, p->name < t->s->names ? t->s->name[p->name] : NULL,
	           ACTOR_SENTENCE, &row->target, actor, sizeof actor);
	if (p->kind == FLOW_IDLE_CPU)
		snprintf(buf, NAME_TEXT + 40, "was wakeup latency");
	else
		snprintf(buf, NAME_TEXT + 40, "%s %s", p->kind == FLOW_LIMITED || (p->kind == FLOW_CURRENT && p->tid == 0)
		         ? "was due to" : "was taken by", actor);
	return true;
}

static void write_waits(const struct summary_text *t, const struct summary_row *row)
{
	char actor[NAME_TEXT], longest[TIME_TEXT], p99[TIME_TEXT], at[TIME_TEXT];
	time_duration(longest, row->longest.end - row->longest.start + 1);
	target_name(t, &row->longest.target, actor);
	time_clock(at, row->longest.start, 6);
	if (row->gaps == 1)
		fprintf(t->to, "1 wait, %s (%s at %s).\n", longest, actor, at);
	else
		fprintf(t->to, "%" PRIu64 " waits, longest %s (%s at %s), p99 %s.\n", row->gaps, longest, actor, at,
		        time_duration(p99, row->p99));
}

static void write_machine(const struct summary_text *t, const struct summary_row *row)
{
	char name[NAME_TEXT], culprit[NAME_TEXT + 40], from[TIME_TEXT], to[TIME_TEXT], d[TIME_TEXT];
	char ran[TIME_TEXT], lost[TIME_TEXT];
	const struct demand *m = &row->demand;
	fprintf(t->to, "%s, %s .. %s (%s): ", target_name(t, &row->target, name), time_date(from, row->start, 6),
	        time_end(to, row->start, row->end, 6), time_duration(d, row->end - row->start + 1));
	if (!catalog_has_host_trace(t->catalog, &row->target)) {
		fprintf(t->to, "ran %s%s; time taken by the host is unknown.\n",
		        m->ran ? time_duration(ran, m->ran) : "for an unknown time", m->ran ? " or less" : "");
		return;
	}
	if (m->lost == 0) {
		fprintf(t->to, "ran %s, lost nothing.\n", time_duration(ran, m->ran));
		return;
	}
	fprintf(t->to, "ran %s and lost %s, %.1f %% of its runnable time.\n", time_duration(ran, m->ran),
	        time_duration(lost, m->lost), percent(m->lost, m->ran + m->lost));
	if (write_culprit(t, row, culprit))
		fprintf(t->to, "%.1f %% of the lost time %s.\n", percent(row->culprit_ns, m->lost), culprit);
	if (row->gaps)
		write_waits(t, row);
}

static void write_thread(const struct summary_text *t, const struct summary_row *row, bool first)
{
	char name[NAME_TEXT], culprit[NAME_TEXT + 40], lost[TIME_TEXT];
	const struct demand *d = &row->demand;
	fprintf(t->to, "%s %s lost %s, %.1f %% of its runnable time", first ? "Most delayed thread:" : "Then",
	        target_name(t, &row->target, name), time_duration(lost, d->lost), percent(d->lost, d->ran + d->lost));
	if (write_culprit(t, row, culprit))
		fprintf(t->to, "; %.0f %% of it %s", percent(row->culprit_ns, d->lost), culprit);
	fputs(".\n", t->to);
}

/* Writes the sum of the lost time of rows [from, to). */
static void write_rest(const struct summary_text *t, size_t from, size_t to, const char *what)
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
		fprintf(t->to, "%zu other %s%s: %s.\n", n, what, n == 1 ? "" : "s", time_duration(lost, rest));
}

int explain_summary(const struct catalog *catalog, const struct summary *s, char **text, struct error *err)
{
	size_t size;
	struct summary_text t = { catalog, s, open_memstream(text, &size) };
	if (!t.to)
		return error_system(err, NULL, "explain");
	size_t machines = s->machines < MACHINES_MAX ? s->machines : MACHINES_MAX, i;
	int status = 0;
	for (i = 0; i < machines && status == 0; i++) {
		write_machine(&t, &s->row[i]);
		status = explain_provider(t.to, catalog, s->row[i].target.index, s->row[i].start, s->row[i].end, err);
	}
	write_rest(&t, machines, s->machines, "machine");
	for (i = s->machines; i < s->rows && i < s->machines + THREADS_MAX && s->row[i].demand.lost > 0; i++)
		write_thread(&t, &s->row[i], i == s->machines);
	write_rest(&t, i, s->rows, "thread");
	if (fclose(t.to) != 0 && status == 0)
		status = error_system(err, NULL, "explain");
	if (status) {
		free(*text);
		*text = NULL;
	}
	return status;
}
