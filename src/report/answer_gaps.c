#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/timefmt.h"
#include "report/report.h"

static const struct column gap_columns[] = {
	{ "start", "at", COL_CLOCK },         { "end", NULL, COL_INT },
	{ "duration_ns", "length", COL_DURATION }, { "subject", "who", COL_TEXT },
	{ "state", "state", COL_WHOLE },      { "culprit_system", "culprit", COL_TEXT },
	{ "culprit_tid", "TID", COL_INT },    { "culprit_name", "name", COL_TEXT },
	{ "culprit_ns", "part", COL_DURATION },
};

#define COLUMN_WHO 3

static const struct column length_columns[] = {
	{ "subject", "who", COL_TEXT },          { "gaps", "gaps", COL_INT },
	{ "total_ns", "in all", COL_DURATION },  { "p50_ns", "p50", COL_DURATION },
	{ "p90_ns", "p90", COL_DURATION },       { "p99_ns", "p99", COL_DURATION },
	{ "longest_ns", "longest", COL_DURATION },
};

static const struct column bin_columns[] = {
	{ "subject", "who", COL_TEXT },        { "from_ns", "from", COL_DURATION },
	{ "to_ns", NULL, COL_DURATION },       { "count", "gaps", COL_INT },
	{ NULL, "", COL_LANE },
};

/* ---- One by one */

static const char *state_of(const struct topo *topo, const struct gap *g)
{
	uint32_t attr = g->subject.kind == SUBJECT_CPU ? topo->cpu[g->subject.index].status
	                                               : topo->thread[g->subject.index].status;
	return history_state_name(topo->h, attr, (unsigned)g->state);
}

/* For people, who would else read that a thread kept itself from running, or nothing. */
static const char *culprit_name(const struct topo *topo, const struct gap_list *list, const struct gap *g,
                                const struct party *who, struct report_how how)
{
	static const char *const instead[FLOW_KIND_COUNT] = {
		[FLOW_PREEMPTING] = "(its threads)", [FLOW_HYPERVISOR] = "(hypervisor)", [FLOW_IDLE_CPU] = "(idle CPU)",
		[FLOW_UNKNOWN] = "(unknown)", [FLOW_WAITING] = "(asleep on the host)",
	};
	const char *name = list->name[who->name], *other = instead[who->kind];
	const bool is_whole = who->tid < 0 && !*name;
	if (how.format != FORMAT_TEXT || !other || (who->kind != FLOW_HYPERVISOR && !is_whole))
		return name;
	return *thief_own(topo, &g->subject, who) ? "(other threads)" : other;
}

/* "vCPU0" where all rows are of Debian, and that is said below; else "Debian/vCPU0". */
static char *subject_text(const struct topo *topo, const struct subject *s, const struct subject *of, char buf[PARTY_TEXT])
{
	char machine[PARTY_TEXT];
	topo_subject_text(topo, s, buf, PARTY_TEXT);
	const size_t n = of ? strlen(topo_subject_text(topo, of, machine, sizeof machine)) : 0;
	if (n && strncmp(buf, machine, n) == 0 && buf[n] == '/')
		memmove(buf, buf + n + 1, strlen(buf + n));
	return buf;
}

/* of: who all rows are of, in text, or NULL. */
static void gap_row(struct report *r, const struct topo *topo, const struct gap_list *list, const struct gap_item *item,
                    const struct party *who, int64_t ns, const struct subject *of, struct report_how how)
{
	char subject[PARTY_TEXT];
	const struct gap *g = &item->gap;
	const bool known = who->kind != FLOW_RUNNING;
	subject_text(topo, &g->subject, how.format == FORMAT_TEXT ? of : NULL, subject);
	report_row(r, (struct value[]){
		VAL_INT(g->start), VAL_INT(g->end), VAL_INT(g->end - g->start + 1), VAL_SHOWN(subject), VAL_TEXT(state_of(topo, g)),
		known ? value_system(topo, who->system) : VAL_NONE, known ? value_tid(who->tid) : VAL_NONE,
		known ? VAL_TEXT(culprit_name(topo, list, g, who, how)) : VAL_NONE, known ? VAL_INT(ns) : VAL_NONE });
}

static void write_totals(FILE *out, const struct topo *topo, const struct gap_list *list, const struct subject *who)
{
	const struct gap_lengths *all = &list->all;
	char total[TIME_TEXT], p50[TIME_TEXT], p90[TIME_TEXT], p99[TIME_TEXT], longest[TIME_TEXT], name[PARTY_TEXT] = "";
	if (!all->count)
		return;
	fprintf(out, "\n%" PRIu64 " gap%s%s%s, %s in all\nlength: p50 %s, p90 %s, p99 %s, longest %s\n", all->count,
	        all->count == 1 ? "" : "s", who ? " of " : "", who ? topo_subject_text(topo, who, name, sizeof name) : "",
	        time_duration(total, all->total), time_duration(p50, all->p50), time_duration(p90, all->p90),
	        time_duration(p99, all->p99), time_duration(longest, all->longest));
	if (all->count > list->items)
		fprintf(out, "shown: the %zu longest (--top)\n", list->items);
}

/* Whom all gaps are of: who was asked about, or the only VM. */
static const struct subject *whose(const struct topo *topo, const struct subject *who, struct subject *only)
{
	uint32_t vms = 0;
	for (uint32_t i = 0; !who && i < topo->machines; i++)
		if (topo->machine[i].kind == MACHINE_VM && vms++ == 0)
			*only = (struct subject){ SUBJECT_MACHINE, i };
	return vms == 1 ? only : who;
}

/* If `who` is one row's, the text tells it once, below; and of one machine's rows the machine. */
int report_gaps(FILE *out, struct report_how how, const struct topo *topo, const struct gap_list *list,
                 const struct subject *who, bool every, const struct origin *o, struct error *err)
{
	struct column column[sizeof gap_columns / sizeof *gap_columns];
	const struct report_shape shape = REPORT_SHAPE_SPARING("gaps", column, "culprit_tid culprit_ns state");
	struct subject only;
	const struct subject *of = whose(topo, who, &only);
	memcpy(column, gap_columns, sizeof column);
	if (who && who->kind != SUBJECT_MACHINE)
		column[COLUMN_WHO].heading = NULL;
	struct report *r = report_begin(out, how, &shape, o);
	report_losses(r, topo, who);
	for (size_t i = 0; i < list->items; i++) {
		const struct gap_item *item = &list->item[i];
		const struct flow_entry *culprit = list->culprit + item->culprit;
		if (!every || !item->culprits)
			gap_row(r, topo, list, item, &item->thief.who, item->thief.ns, of, how);
		for (size_t k = 0; every && k < item->culprits; k++)
			gap_row(r, topo, list, item, &culprit[k].who, culprit[k].duration, of, how);
	}
	int rc = report_end(r, err);
	if (rc == 0 && how.format == FORMAT_TEXT)
		write_totals(out, topo, list, of);
	return rc;
}

/* ---- By length */

int report_gap_lengths(FILE *out, struct report_how how, const struct topo *topo, const struct gap_list *list,
                       const struct subject *who, const struct origin *o, struct error *err)
{
	static const struct report_shape shape = REPORT_SHAPE_SPARING("gaps-lengths", length_columns, "p90_ns p50_ns");
	struct report *r = report_begin(out, how, &shape, o);
	report_losses(r, topo, who);
	for (size_t i = 0; i < list->rows; i++) {
		const struct gap_lengths *l = &list->row[i];
		char subject[PARTY_TEXT];
		report_row(r, (struct value[]){
			VAL_SHOWN(topo_subject_text(topo, &l->who, subject, sizeof subject)), VAL_INT((int64_t)l->count),
			VAL_INT(l->total), VAL_INT(l->p50), VAL_INT(l->p90), VAL_INT(l->p99), VAL_INT(l->longest) });
	}
	return report_end(r, err);
}

#define MOST INT64_C(1000000)  /* the number of the longest bar; others are in proportion */

static int draw_bar(void *arg, int64_t number, unsigned columns, char *lane)
{
	(void)arg;
	const size_t cells = (size_t)((number * columns + MOST / 2) / MOST);
	memset(lane, '#', cells || !number ? cells : 1);
	return 0;
}

static void bin_row(struct report *r, const struct topo *topo, const struct gap_lengths *l, unsigned bin, uint64_t most)
{
	const int64_t from = INT64_C(1) << bin;
	const double share = (double)l->bin[bin] / (double)most;
	char subject[PARTY_TEXT];
	report_row(r, (struct value[]){
		VAL_SHOWN(topo_subject_text(topo, &l->who, subject, sizeof subject)), VAL_INT(bin ? from : 0),
		VAL_INT(from - 1 + from), VAL_INT((int64_t)l->bin[bin]),
		VAL_INT(l->bin[bin] ? 1 + (int64_t)(share * (double)(MOST - 1)) : 0) });
}

int report_gap_histogram(FILE *out, struct report_how how, const struct topo *topo, const struct gap_list *list,
                         const struct subject *who, const struct origin *o, struct error *err)
{
	static const struct report_shape shape = REPORT_SHAPE("gaps-histogram", bin_columns);
	struct report *r = report_begin(out, how, &shape, o);
	report_losses(r, topo, who);
	report_lanes(r, draw_bar, NULL);
	for (size_t i = 0; i < list->rows; i++) {
		const struct gap_lengths *l = &list->row[i];
		unsigned first = LENGTH_BINS, last = 0;
		uint64_t most = 0;
		for (unsigned b = 0; b < LENGTH_BINS; b++) {
			if (l->bin[b]) {
				first = first < b ? first : b;
				last = b;
			}
			most = l->bin[b] > most ? l->bin[b] : most;
		}
		for (unsigned b = first; b <= last; b++)
			bin_row(r, topo, l, b, most);
	}
	return report_end(r, err);
}
