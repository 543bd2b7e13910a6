/* Machines in plain sentences, one per line: running time, lost time and waits, and what the provider took. The culprits
 * are findings. */
#include "base/base.h"
#include "query/explain.h"

#define MACHINES_MAX 5     /* limit of machines with sentences of their own; the others are summed */

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

static void write_waits(const struct summary_text *t, const struct summary_row *row)
{
	char actor[NAME_TEXT], longest[TIME_TEXT], p99[TIME_TEXT] = "", command[ACTOR_TEXT];
	time_duration(longest, row->longest.end - row->longest.start + 1);
	target_name(t, &row->longest.target, actor);
	if (row->gaps > 1)
		time_duration(p99, row->p99);
	fprintf(t->to, "%" PRIu64 " wait%s %s of %s%s%s (stealscope %s).\n", row->gaps, row->gaps == 1 ? "," : "s, longest",
	        longest, actor, *p99 ? ", p99 " : "", p99,
	        catalog_view_command(t->catalog, &row->longest.target, row->longest.start, command, sizeof command));
}

static void write_machine(const struct summary_text *t, const struct summary_row *row)
{
	char name[NAME_TEXT], from[TIME_TEXT], to[TIME_TEXT], d[TIME_TEXT];
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
	if (row->gaps)
		write_waits(t, row);
}

static int write_machines(struct summary_text *t, struct error *err)
{
	const size_t machines = t->s->machines < MACHINES_MAX ? t->s->machines : MACHINES_MAX;
	int64_t rest = 0;
	size_t others = 0;
	char lost[TIME_TEXT];
	for (size_t i = 0; i < t->s->machines; i++) {
		const struct summary_row *row = &t->s->row[i];
		if (i < machines)
			write_machine(t, row);
		if (i < machines && explain_provider(t->to, t->catalog, row->target.index, row->start, row->end, err))
			return -1;
		others += i >= machines && row->demand.lost > 0;
		rest += i >= machines ? row->demand.lost : 0;
	}
	if (others)
		fprintf(t->to, "%zu other machine%s: %s.\n", others, others == 1 ? "" : "s", time_duration(lost, rest));
	return 0;
}

int explain_machines(const struct catalog *catalog, const struct target *machine, int64_t from, int64_t to, char **text,
                     struct error *err)
{
	const struct summary_options options = { .only = machine, .from = from, .to = to, .gaps = true, .top = MACHINES_MAX,
	                                         .machines_only = true };
	struct summary summary;
	size_t size;
	*text = NULL;
	if (query_answer(summary_open(catalog, &options), &summary, err) < 0)
		return -1;
	struct summary_text t = { catalog, &summary, open_memstream(text, &size) };
	int status = t.to ? write_machines(&t, err) : error_system(err, NULL, "explain");
	if (t.to && fclose(t.to) != 0 && status == 0)
		status = error_system(err, NULL, "explain");
	summary_release(&summary);
	if (status) {
		free(*text);
		*text = NULL;
	}
	return status;
}
