#include "base/text.h"
#include "report/report.h"

/* Columns of csv and json. Text has the thread's columns if the rows are per thread, or if the thread of the vCPUs
 * had several names. */
#define EXIT_COLUMNS(tid_heading, name_heading) { \
	{ "machine", "machine", COL_TEXT }, { "vcpu", "vCPU", COL_INT }, { "tid", tid_heading, COL_INT }, \
	{ "name", name_heading, COL_TEXT }, { "isa", NULL, COL_TEXT }, { "reason", "reason", COL_TEXT }, \
	{ "count", "count", COL_INT }, { "total_ns", "total", COL_DURATION }, { "min_ns", NULL, COL_DURATION }, \
	{ "mean_ns", "mean", COL_DURATION }, { "p99_ns", "p99", COL_DURATION }, { "max_ns", "max", COL_DURATION }, \
	{ "max_at", "max at", COL_CLOCK }, { "share", "share", COL_SHARE }, { "timed", NULL, COL_INT }, \
}
#define EXIT_DROPPABLE "mean_ns p99_ns max_at share max_ns"
static const struct column columns[] = EXIT_COLUMNS(NULL, NULL);
static const struct column thread_columns[] = EXIT_COLUMNS("TID", "name");

static const struct column bin_columns[] = {
	{ "machine", "machine", COL_TEXT }, { "vcpu", "vCPU", COL_INT }, { "tid", "TID", COL_INT },
	{ "name", "name", COL_TEXT }, { "reason", "reason", COL_TEXT }, { "from_ns", "from", COL_DURATION },
	{ "to_ns", NULL, COL_DURATION }, { "count", "count", COL_INT },
};

static struct value exit_text(const struct exit_list *l, uint32_t name)
{
	return VAL_TEXT(name < l->names ? l->name[name] : NULL);
}

/* Returns the share of the row in the exit time of its vCPU. */
static double exit_share(const struct exit_list *l, const struct exit_row *row)
{
	double all = 0;
	for (size_t i = 0; i < l->rows; i++)
		all += l->row[i].vcpu == row->vcpu ? (double)l->row[i].total : 0;
	return all > 0 ? (double)row->total / all : 0;
}

/* Returns the instruction set of the machine at the time of the longest exit; it determines the names of the exit
 * reasons. */
static struct value exit_isa(const struct catalog *catalog, const struct exit_row *row)
{
	const struct history *h = catalog->h;
	struct interval iv = { .value = HISTORY_NULL };
	uint32_t isa = history_parent(h, history_parent(h, history_parent(h, catalog->cpu[row->vcpu].exit)));
	isa = history_child_named(h, isa, machine_schema[MACHINE_ISA].name);
	if (isa == HISTORY_NONE || history_type(h, isa) != HISTORY_STRING)
		return VAL_NONE;
	if (history_stab(h, isa, row->max_at ? row->max_at : history_end(h), &iv, NULL) < 0 || iv.value == HISTORY_NULL)
		return VAL_NONE;
	return VAL_TEXT(history_string(h, iv.value));
}

static struct value value_if_timed(const struct exit_row *row, int64_t value)
{
	return row->timed ? VAL_INT(value) : VAL_NONE;
}

static void report_rows(struct report *r, const struct catalog *catalog, const struct exit_list *l)
{
	for (size_t i = 0; i < l->rows; i++) {
		const struct exit_row *e = &l->row[i];
		const struct catalog_cpu *cpu = &catalog->cpu[e->vcpu];
		int64_t mean = e->timed ? e->total / (int64_t)e->timed : 0;
		report_row(r, (struct value[]){
			VAL_TEXT(catalog->machine[cpu->machine].name), VAL_INT(cpu->number), value_tid(e->tid), exit_text(l, e->name),
			exit_isa(catalog, e), exit_text(l, e->reason), VAL_INT((int64_t)e->count), VAL_INT(e->total),
			value_if_timed(e, e->min), value_if_timed(e, mean), value_if_timed(e, e->p99), value_if_timed(e, e->max),
			value_if_timed(e, e->max_at),
			VAL_REAL(exit_share(l, e)), VAL_INT((int64_t)e->timed) });
	}
}

static void report_bins(struct report *r, const struct catalog *catalog, const struct exit_list *l)
{
	for (size_t i = 0; i < l->rows; i++) {
		const struct exit_row *e = &l->row[i];
		const struct catalog_cpu *cpu = &catalog->cpu[e->vcpu];
		for (unsigned b = 0; b < LENGTH_BINS; b++) {
			if (!e->bin[b])
				continue;
			int64_t from = INT64_C(1) << b;
			report_row(r, (struct value[]){
				VAL_TEXT(catalog->machine[cpu->machine].name), VAL_INT(cpu->number), value_tid(e->tid),
				exit_text(l, e->name), exit_text(l, e->reason), VAL_INT(b ? from : 0), VAL_INT(from - 1 + from),
				VAL_INT((int64_t)e->bin[b]) });
		}
	}
}

static bool names_differ(const struct exit_list *l)
{
	size_t i = 1;
	while (i < l->rows && l->row[i].name == l->row[0].name)
		i++;
	return i < l->rows;
}

/* Returns true if there are exits, but none has a time. */
static bool has_no_times(const struct exit_list *l)
{
	for (size_t i = 0; i < l->rows; i++)
		if (l->row[i].timed)
			return false;
	return l->rows > 0;
}

/* Warns about vCPUs without recorded VM exits; the note names the events that are needed. */
static void warn_no_exit_events(FILE *out, struct report_how how, const struct catalog *catalog, const struct exit_list *l,
                                struct origin *o)
{
	struct notes notes = { 0 };
	char which[64];
	text_count_of_all(which, l->silent, l->vcpus, "vCPU");
	if ((!l->vcpus || l->silent) && catalog->has_run_states)
		note_add(&notes, HYPERVISOR_SILENT, NULL, "VM exits of", which);
	else if (!l->vcpus || l->silent)
		note_add(&notes, NO_EXIT_EVENTS, NULL, which);
	if (has_no_times(l))
		note_add(&notes, EXIT_TIMES_UNKNOWN, NULL);
	report_warn(out, how, o, &notes);
}

int report_exits(FILE *out, struct report_how how, const struct catalog *catalog, const struct exit_list *l,
                 bool by_thread, bool histogram, struct origin *o, struct error *err)
{
	static const struct report_shape plain = REPORT_SHAPE_DROPPING("exits", columns, EXIT_DROPPABLE),
	                                 threads = REPORT_SHAPE_DROPPING("exits", thread_columns, EXIT_DROPPABLE),
	                                 bins = REPORT_SHAPE("exits-histogram", bin_columns);
	warn_no_exit_events(out, how, catalog, l, o);
	struct report *r = report_begin(out, how, histogram ? &bins : by_thread || names_differ(l) ? &threads : &plain, o);
	if (histogram)
		report_bins(r, catalog, l);
	else
		report_rows(r, catalog, l);
	return report_end(r, err);
}
