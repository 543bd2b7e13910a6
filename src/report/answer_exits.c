#include "report/report.h"

/* One table; in text, threads are shown where the rows are theirs, and of one thread where it had several names. */
#define EXIT_COLUMNS(tid_heading, name_heading) { \
	{ "machine", "machine", COL_TEXT }, { "vcpu", "vCPU", COL_INT }, { "tid", tid_heading, COL_INT }, \
	{ "name", name_heading, COL_TEXT }, { "isa", NULL, COL_TEXT }, { "reason", "reason", COL_TEXT }, \
	{ "count", "count", COL_INT }, { "total_ns", "total", COL_DURATION }, { "min_ns", NULL, COL_DURATION }, \
	{ "mean_ns", "mean", COL_DURATION }, { "p99_ns", "p99", COL_DURATION }, { "max_ns", "max", COL_DURATION }, \
	{ "max_at", "max at", COL_CLOCK }, { "share", "share", COL_SHARE }, { "timed", NULL, COL_INT }, \
}
#define SPARED "mean_ns p99_ns max_at"
static const struct column columns[] = EXIT_COLUMNS(NULL, NULL);
static const struct column thread_columns[] = EXIT_COLUMNS("TID", "name");

static const struct column bin_columns[] = {
	{ "machine", "machine", COL_TEXT }, { "vcpu", "vCPU", COL_INT }, { "tid", "TID", COL_INT },
	{ "name", "name", COL_TEXT }, { "reason", "reason", COL_TEXT }, { "from_ns", "from", COL_DURATION },
	{ "to_ns", NULL, COL_DURATION }, { "count", "count", COL_INT },
};

static struct value text_of(const struct exit_list *l, uint32_t name)
{
	return VAL_TEXT(name < l->names ? l->name[name] : NULL);
}

/* Of all exits of its vCPU. */
static double share_of(const struct exit_list *l, const struct exit_row *row)
{
	double all = 0;
	for (size_t i = 0; i < l->rows; i++)
		all += l->row[i].vcpu == row->vcpu ? (double)l->row[i].total : 0;
	return all > 0 ? (double)row->total / all : 0;
}

/* Whose names the reasons have: of the machine, from some moment on. */
static struct value isa_of(const struct topo *topo, const struct exit_row *row)
{
	const struct history *h = topo->h;
	struct interval iv = { .value = HISTORY_NULL };
	uint32_t isa = history_parent(h, history_parent(h, history_parent(h, topo->cpu[row->vcpu].exit)));
	isa = history_child_named(h, isa, machine_schema[MACHINE_ISA].name);
	if (isa == HISTORY_NONE || history_type(h, isa) != HISTORY_STRING)
		return VAL_NONE;
	if (history_stab(h, isa, row->max_at ? row->max_at : history_end(h), &iv, NULL) < 0 || iv.value == HISTORY_NULL)
		return VAL_NONE;
	return VAL_TEXT(history_string(h, iv.value));
}

static struct value if_timed(const struct exit_row *row, int64_t value)
{
	return row->timed ? VAL_INT(value) : VAL_NONE;
}

static void report_rows(struct report *r, const struct topo *topo, const struct exit_list *l)
{
	for (size_t i = 0; i < l->rows; i++) {
		const struct exit_row *e = &l->row[i];
		const struct topo_cpu *cpu = &topo->cpu[e->vcpu];
		int64_t mean = e->timed ? e->total / (int64_t)e->timed : 0;
		report_row(r, (struct value[]){
			VAL_TEXT(topo->machine[cpu->machine].name), VAL_INT(cpu->number), value_tid(e->tid), text_of(l, e->name),
			isa_of(topo, e), text_of(l, e->reason), VAL_INT((int64_t)e->count), VAL_INT(e->total), if_timed(e, e->min),
			if_timed(e, mean), if_timed(e, e->p99), if_timed(e, e->max), if_timed(e, e->max_at),
			VAL_REAL(share_of(l, e)), VAL_INT((int64_t)e->timed) });
	}
}

static void report_bins(struct report *r, const struct topo *topo, const struct exit_list *l)
{
	for (size_t i = 0; i < l->rows; i++) {
		const struct exit_row *e = &l->row[i];
		const struct topo_cpu *cpu = &topo->cpu[e->vcpu];
		for (unsigned b = 0; b < LENGTH_BINS; b++) {
			if (!e->bin[b])
				continue;
			int64_t from = INT64_C(1) << b;
			report_row(r, (struct value[]){
				VAL_TEXT(topo->machine[cpu->machine].name), VAL_INT(cpu->number), value_tid(e->tid), text_of(l, e->name),
				text_of(l, e->reason), VAL_INT(b ? from : 0), VAL_INT(from - 1 + from), VAL_INT((int64_t)e->bin[b]) });
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

int report_exits(FILE *out, struct report_how how, const struct topo *topo, const struct exit_list *l,
                  bool by_thread, bool histogram, const struct origin *o, struct error *err)
{
	static const struct report_shape plain = REPORT_SHAPE_SPARING("exits", columns, SPARED),
	                                 threads = REPORT_SHAPE_SPARING("exits", thread_columns, SPARED),
	                                 bins = REPORT_SHAPE("exits-histogram", bin_columns);
	struct report *r = report_begin(out, how, histogram ? &bins : by_thread || names_differ(l) ? &threads : &plain, o);
	if (histogram)
		report_bins(r, topo, l);
	else
		report_rows(r, topo, l);
	return report_end(r, err);
}
