
#include "base/base.h"
#include "report/report.h"

static const struct column interval_columns[] = {
	{ "start", "at", COL_CLOCK }, { "end", NULL, COL_CLOCK }, { NULL, "actor", COL_TEXT },
	{ "machine", NULL, COL_TEXT }, { "tid", NULL, COL_INT }, { "name", NULL, COL_TEXT }, { "kind", "kind", COL_UNCUT },
	{ "culprit", "culprit", COL_ACTOR }, { "culprit_machine", NULL, COL_TEXT }, { "culprit_tid", NULL, COL_INT },
	{ "culprit_name", NULL, COL_TEXT },
	{ "edge", "edge", COL_UNCUT }, { "evidence", "evidence", COL_UNCUT }, { "duration_ns", "time", COL_DURATION },
};

static const struct column sum_columns[] = {
	{ "duration_ns", "time", COL_DURATION }, { "share", "share", COL_SHARE }, { NULL, "actor", COL_TEXT },
	{ "machine", NULL, COL_TEXT }, { "tid", NULL, COL_INT }, { "name", NULL, COL_TEXT }, { "kind", "kind", COL_UNCUT },
	{ "culprit", "culprit", COL_ACTOR }, { "culprit_machine", NULL, COL_TEXT }, { "culprit_tid", NULL, COL_INT },
	{ "culprit_name", NULL, COL_TEXT },
	{ "segments", "intervals", COL_INT },
};

static struct value actor_name(const struct path *p, const struct actor *actor)
{
	return actor->name && actor->name < p->names ? VAL_TEXT(p->name[actor->name]) : VAL_NONE;
}

/* Returns an actor or culprit for people: "Debian/3525 critical_task", "host timer interrupt"; of a culprit also its limit.
 * Nothing if there is none. */
static struct value actor_value(const struct catalog *catalog, const struct path *p, struct actor actor, bool is_culprit,
                                struct report_how how, char buf[ACTOR_TEXT])
{
	const bool is_handler = actor.tid < 0 && (actor.kind == FLOW_WAITING || actor.kind == FLOW_IRQ);
	const char *name = actor.name < p->names ? p->name[actor.name] : NULL;
	if (actor.machine < 0 && actor.tid < 0 && !(name && *name))
		return VAL_NONE;
	if (!is_culprit || (actor.kind != FLOW_CURRENT && actor.kind != FLOW_LIMITED))
		actor.kind = is_handler ? FLOW_IRQ : FLOW_RUNNING;
	return VAL_SHOWN(actor_text(catalog, &actor, name, how.format == FORMAT_TEXT ? ACTOR_SHOWN : ACTOR_PLAIN, NULL, buf,
	                            ACTOR_TEXT));
}

static struct value culprit_value(const struct catalog *catalog, const struct path *p, const struct actor *culprit,
                                  struct report_how how, char buf[ACTOR_TEXT], struct actor_ref *ref)
{
	struct value v = actor_value(catalog, p, *culprit, true, how, buf);
	const bool is_named = culprit->name && culprit->name < p->names;
	*ref = (struct actor_ref){ catalog, culprit, is_named ? p->name[culprit->name] : NULL };
	v.who = ref;
	return v;
}

static struct value kind_name(const struct actor *actor)
{
	return VAL_SHOWN(actor->kind == FLOW_WAITING ? PATH_WAIT : flow_kind_name[actor->kind]);
}

static struct value evidence_text(const struct path_interval *interval, char buf[32])
{
	if (interval->evidence == PATH_PROVEN || interval->evidence == PATH_NO_EVIDENCE)
		return VAL_SHOWN(interval->evidence == PATH_PROVEN ? "proven" : "none");
	snprintf(buf, 32, "nearest:%" PRId64, interval->evidence);
	return VAL_SHOWN(buf);
}

/* Returns the time of the path in a VM without known threads, ns; 0 for other machines. */
static int64_t machine_time(const struct catalog *catalog, const struct path *p, uint32_t machine)
{
	int64_t ns = 0;
	if (catalog->machine[machine].kind != MACHINE_VM || catalog->machine[machine].threads)
		return 0;
	for (size_t i = 0; i < p->sums; i++)
		if (p->sum[i].actor.machine == (int32_t)machine && p->sum[i].actor.kind != FLOW_UNKNOWN)
			ns += p->sum[i].duration;
	return ns;
}

/* Warns about parts of the path without a known reason, and in VMs without a trace. */
static void warn_unknown(FILE *out, struct report_how how, const struct catalog *catalog, const struct path *p,
                         struct origin *o)
{
	struct notes notes = { 0 };
	char part[TIME_TEXT], all[TIME_TEXT];
	time_duration(all, p->end - p->start + 1);
	if (p->unknown)
		note_add(&notes, PATH_UNKNOWN, NULL, time_duration(part, p->unknown), all);
	for (uint32_t m = 0; m < catalog->machines; m++) {
		const int64_t inside = machine_time(catalog, p, m);
		if (inside)
			note_add(&notes, PATH_UNTRACED, NULL, time_duration(part, inside), all, catalog->machine[m].name);
	}
	report_warn(out, how, o, &notes);
}

static int longest_first(const void *a, const void *b)
{
	const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
	return (x < y) - (x > y);
}

/* Returns the length of the shortest interval that is one of the `top` longest (0: all); of equal ones all are. */
static int64_t length_of_top(const struct path *p, size_t top)
{
	if (top == 0 || top >= p->intervals)
		return 0;
	int64_t *length = mem_new(p->intervals, sizeof *length);
	for (size_t i = 0; i < p->intervals; i++)
		length[i] = p->interval[i].end - p->interval[i].start + 1;
	qsort(length, p->intervals, sizeof *length, longest_first);
	const int64_t least = length[top - 1];
	free(length);
	return least;
}

static int report_path_intervals(FILE *out, struct report_how how, const struct catalog *catalog, const struct path *p,
                                 size_t top, const struct origin *o, struct error *err)
{
	static const struct report_shape shape = REPORT_SHAPE_DROPPING("path", interval_columns,
	                                                              "edge evidence kind");
	const int64_t least = length_of_top(p, top);
	struct report *r = report_begin(out, how, &shape, o);
	for (size_t i = 0; i < p->intervals && !report_is_full(r); i++) {
		const struct path_interval *e = &p->interval[i];
		char evidence[32], actor[ACTOR_TEXT], culprit[ACTOR_TEXT];
		struct actor_ref ref;
		if (e->end - e->start + 1 < least)
			continue;
		report_row(r, (struct value[]){
			VAL_INT(e->start), VAL_INT(e->end), actor_value(catalog, p, e->actor, false, how, actor),
			value_machine(catalog, e->actor.machine), value_tid(e->actor.tid), actor_name(p, &e->actor),
			kind_name(&e->actor), culprit_value(catalog, p, &e->culprit, how, culprit, &ref),
			value_machine(catalog, e->culprit.machine), value_tid(e->culprit.tid), actor_name(p, &e->culprit),
			VAL_SHOWN(path_edge_name[e->edge]), evidence_text(e, evidence), VAL_INT(e->end - e->start + 1) });
	}
	return report_end(r, err);
}

int report_path(FILE *out, struct report_how how, const struct catalog *catalog, const struct path *p, bool sums,
                size_t top, struct origin *o, struct error *err)
{
	static const struct report_shape shape = REPORT_SHAPE_DROPPING("path-sums", sum_columns, "segments share kind");
	const size_t rows = sums ? p->sums : p->intervals;
	if (o) {
		o->from = p->start;
		o->to = p->end;
	}
	warn_unknown(out, how, catalog, p, o);
	report_warn_omitted(out, how, o, top ? top : rows, rows, sums ? "sums, the longest," : "intervals, the longest,");
	if (!sums)
		return report_path_intervals(out, how, catalog, p, top, o, err);
	struct report *r = report_begin(out, how, &shape, o);
	for (size_t i = 0; i < p->sums && (!top || i < top); i++) {
		const struct path_sum *e = &p->sum[i];
		char actor[ACTOR_TEXT], culprit[ACTOR_TEXT];
		struct actor_ref ref;
		report_row(r, (struct value[]){
			VAL_INT(e->duration), VAL_REAL(e->share), actor_value(catalog, p, e->actor, false, how, actor),
			value_machine(catalog, e->actor.machine), value_tid(e->actor.tid), actor_name(p, &e->actor),
			kind_name(&e->actor), culprit_value(catalog, p, &e->culprit, how, culprit, &ref),
			value_machine(catalog, e->culprit.machine), value_tid(e->culprit.tid), actor_name(p, &e->culprit),
			VAL_INT((int64_t)e->intervals) });
	}
	return report_end(r, err);
}
