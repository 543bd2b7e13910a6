
#include "base/base.h"
#include "base/terminal_type.h"
#include "report/report.h"

/* Text and json have the whole culprit as one column. */
#define GAP_COLUMNS(target_heading) { \
	{ "start", "at", COL_CLOCK }, { "end", NULL, COL_INT }, { "duration_ns", "length", COL_DURATION }, \
	{ "target", target_heading, COL_TEXT }, { "state", "state", COL_UNCUT }, { "culprit", "culprit", COL_ACTOR }, \
	{ "culprit_machine", NULL, COL_TEXT }, { "culprit_tid", NULL, COL_INT }, { "culprit_name", NULL, COL_TEXT }, \
	{ "culprit_ns", "taken", COL_DURATION }, \
}
static const struct column gap_columns[] = GAP_COLUMNS("target");
static const struct column columns_of_one[] = GAP_COLUMNS(NULL);

static const struct column length_columns[] = {
	{ "target", "target", COL_TEXT },          { "gaps", "gaps", COL_INT },
	{ "total_ns", "total", COL_DURATION },  { "p50_ns", "p50", COL_DURATION },
	{ "p90_ns", "p90", COL_DURATION },       { "p99_ns", "p99", COL_DURATION },
	{ "longest_ns", "longest", COL_DURATION },
};

static const struct column bin_columns[] = {
	{ "target", "target", COL_TEXT },        { "from_ns", "from", COL_DURATION },
	{ "to_ns", NULL, COL_DURATION },       { "count", "gaps", COL_INT },
	{ NULL, "", COL_LANE },
};

/* ---- One by one */

/* Removes "Debian/" from "Debian/vCPU0" if the common target is Debian, because text names Debian below the table. */
static void strip_common(const struct catalog *catalog, const struct target *common, char *target)
{
	char machine[ACTOR_TEXT];
	const size_t n = strlen(catalog_target_text(catalog, common, machine, sizeof machine));
	if (n && strncmp(target, machine, n) == 0 && target[n] == '/')
		memmove(target, target + n + 1, strlen(target + n));
}

/* A gap and one of its culprits. */
struct gap_record {
	const struct gap *gap;
	const struct actor *culprit;
	const char *name;          /* raw, of the culprit */
	int64_t ns;                /* ns of the gap that the culprit had the CPU */
};

/* Writes a row. common: target of all rows, which text names below the table; NULL: none. is_linked: the time is a link. */
static void write_gap(struct report *r, const struct catalog *catalog, const struct gap_record *row,
                      const struct target *common, struct report_how how, bool is_linked)
{
	const bool text = how.format == FORMAT_TEXT, is_one = text && common && common->kind != TARGET_MACHINE;
	char target[ACTOR_TEXT] = "", name[ACTOR_TEXT], shown[ACTOR_TEXT];
	const struct gap *gap = row->gap;
	const bool has_culprit = row->culprit->kind != FLOW_RUNNING;
	const struct actor_ref ref = { catalog, row->culprit, row->name };
	if (!is_one)
		catalog_target_text(catalog, &gap->target, target, sizeof target);
	if (text && common && !is_one)
		strip_common(catalog, common, target);
	char at[24], victim[ACTOR_TEXT], *link = NULL;
	snprintf(at, sizeof at, "%" PRId64, gap->start);
	if (is_linked)
		link = place_link_make(history_file(catalog->h), catalog_operand_text(catalog, &gap->target, victim, sizeof victim),
		                       at);
	report_row(r, (struct value[]){
		{ .integer = gap->start, .link = link }, VAL_INT(gap->end), VAL_INT(gap->end - gap->start + 1), VAL_SHOWN(target),
		VAL_TEXT(target_state_name(catalog, &gap->target, gap->state)),
		!has_culprit ? VAL_NONE : VAL_WHO(actor_text(catalog, row->culprit, row->name, text ? ACTOR_SHOWN : ACTOR_PLAIN,
		                                             text ? &gap->target : NULL, shown, sizeof shown), &ref),
		has_culprit ? value_machine(catalog, row->culprit->machine) : VAL_NONE,
		has_culprit ? value_tid(row->culprit->tid) : VAL_NONE,
		has_culprit ? VAL_TEXT(actor_name_text(row->culprit, row->name, name)) : VAL_NONE,
		has_culprit ? VAL_INT(row->ns) : VAL_NONE });
	free(link);
}

static void write_totals(FILE *out, const struct catalog *catalog, const struct gap_list *list, const struct target *target)
{
	const struct gap_lengths *all = &list->all;
	char total[TIME_TEXT], p50[TIME_TEXT], p90[TIME_TEXT], p99[TIME_TEXT], longest[TIME_TEXT], name[ACTOR_TEXT] = "";
	if (!all->count)
		return;
	if (target)
		catalog_target_text(catalog, target, name, sizeof name);
	fprintf(out, "\n%" PRIu64 " gap%s%s%s, %s in total\nlength: p50 %s, p90 %s, p99 %s, longest %s\n", all->count,
	        all->count == 1 ? "" : "s", target ? " of " : "", name,
	        time_duration(total, all->total), time_duration(p50, all->p50), time_duration(p90, all->p90),
	        time_duration(p99, all->p99), time_duration(longest, all->longest));
	if (all->count > list->items)
		fprintf(out, "%zu longest of %" PRIu64 " shown (--top 0: all)\n", list->items, all->count);
}

int report_vmm_time(FILE *out, struct report_how how, const struct catalog *catalog, const struct target *target,
                    int64_t from, int64_t to, bool separate, struct error *err)
{
	char d[TIME_TEXT], name[ACTOR_TEXT] = "it";
	int64_t vmm_ns = 0;
	unsigned vms = 0;
	if (how.format != FORMAT_TEXT || how.table || (target && target->kind == TARGET_THREAD))
		return 0;
	for (uint32_t i = 0; i < catalog->machines; i++) {
		const struct target machine = { TARGET_MACHINE, i }, *part = target ? target : &machine;
		struct demand demand;
		if (catalog->machine[i].kind != MACHINE_VM || target_machine(catalog, part) != i)
			continue;
		if (demand_of(catalog, part, from, to, &demand, err))
			return -1;
		vmm_ns += demand.vmm_ns;
		if (!target)
			catalog_target_text(catalog, part, name, sizeof name);
		vms++;
	}
	if (vmm_ns)
		fprintf(out, "%splus %s in VM exits of %s (stealscope exits)\n", separate ? "\n" : "", time_duration(d, vmm_ns),
		        vms > 1 ? "VMs" : name);
	return 0;
}

/* Returns the target of all gaps: the requested one, or the only VM. */
static const struct target *common_target(const struct catalog *catalog, const struct target *target,
                                          struct target *only)
{
	uint32_t vms = 0;
	for (uint32_t i = 0; !target && i < catalog->machines; i++)
		if (catalog->machine[i].kind == MACHINE_VM && vms++ == 0)
			*only = (struct target){ TARGET_MACHINE, i };
	return vms == 1 ? only : target;
}

int report_gaps(FILE *out, struct report_how how, const struct catalog *catalog, const struct gap_list *list,
                const struct target *target, bool all_culprits, struct origin *o, struct error *err)
{
	static const struct report_shape shape = REPORT_SHAPE_DROPPING("gaps", gap_columns, "culprit_ns state"),
	                                 of_one = REPORT_SHAPE_DROPPING("gaps", columns_of_one, "culprit_ns state");
	const bool is_linked = how.format == FORMAT_TEXT && !how.table && terminal_skips_osc(fileno(out));
	struct target only;
	const struct target *common = common_target(catalog, target, &only);
	report_warn_omitted(out, how, o, list->items, list->all.count, "gaps, the longest,");
	struct report *r = report_begin(out, how, !target || target->kind == TARGET_MACHINE ? &shape : &of_one, o);
	report_lost_time_of(r, catalog, target);
	for (size_t i = 0; i < list->items && !report_is_full(r); i++) {
		const struct gap_item *item = &list->item[i];
		const struct flow_entry *entry = list->culprit + item->culprit;
		const bool one = !all_culprits || !item->culprits;
		for (size_t k = 0; k < (one ? 1 : item->culprits); k++) {
			const struct actor *culprit = one ? &item->top.actor : &entry[k].actor;
			const struct gap_record row = { &item->gap, culprit, list->name[culprit->name],
			                                one ? item->top.ns : entry[k].duration };
			write_gap(r, catalog, &row, common, how, is_linked);
		}
	}
	int rc = report_end(r, err);
	if (rc == 0 && how.format == FORMAT_TEXT)
		write_totals(out, catalog, list, common);
	if (rc == 0 && o)
		rc = report_vmm_time(out, how, catalog, target, o->from, o->to, list->all.count == 0, err);
	return rc;
}

/* ---- By length */

int report_gap_lengths(FILE *out, struct report_how how, const struct catalog *catalog, const struct gap_list *list,
                       const struct target *target, const struct origin *o, struct error *err)
{
	static const struct report_shape shape = REPORT_SHAPE_DROPPING("gaps-lengths", length_columns, "p90_ns p50_ns");
	struct report *r = report_begin(out, how, &shape, o);
	report_lost_time_of(r, catalog, target);
	for (size_t i = 0; i < list->rows; i++) {
		const struct gap_lengths *l = &list->row[i];
		char name[ACTOR_TEXT];
		report_row(r, (struct value[]){
			VAL_SHOWN(catalog_target_text(catalog, &l->target, name, sizeof name)), VAL_INT((int64_t)l->count),
			VAL_INT(l->total), VAL_INT(l->p50), VAL_INT(l->p90), VAL_INT(l->p99), VAL_INT(l->longest) });
	}
	return report_end(r, err);
}

#define BAR_MAX INT64_C(1000000)  /* value of the longest bar; the values of other bars are proportional */

static int draw_bar(void *arg, int64_t number, unsigned columns, char *lane)
{
	(void)arg;
	const size_t cells = (size_t)((number * columns + BAR_MAX / 2) / BAR_MAX);
	memset(lane, '#', cells || !number ? cells : 1);
	return 0;
}

static void bin_row(struct report *r, const struct catalog *catalog, const struct gap_lengths *l, unsigned bin,
                    uint64_t max_count)
{
	const int64_t from = INT64_C(1) << bin;
	const double share = (double)l->bin[bin] / (double)max_count;
	char name[ACTOR_TEXT];
	report_row(r, (struct value[]){
		VAL_SHOWN(catalog_target_text(catalog, &l->target, name, sizeof name)), VAL_INT(bin ? from : 0),
		VAL_INT(from - 1 + from), VAL_INT((int64_t)l->bin[bin]),
		VAL_INT(l->bin[bin] ? 1 + (int64_t)(share * (double)(BAR_MAX - 1)) : 0) });
}

int report_gap_histogram(FILE *out, struct report_how how, const struct catalog *catalog, const struct gap_list *list,
                         const struct target *target, const struct origin *o, struct error *err)
{
	static const struct report_shape shape = REPORT_SHAPE("gaps-histogram", bin_columns);
	struct report *r = report_begin(out, how, &shape, o);
	report_lost_time_of(r, catalog, target);
	report_lanes(r, draw_bar, NULL);
	for (size_t i = 0; i < list->rows; i++) {
		const struct gap_lengths *l = &list->row[i];
		unsigned first = LENGTH_BINS, last = 0;
		uint64_t max_count = 0;
		for (unsigned b = 0; b < LENGTH_BINS; b++) {
			if (l->bin[b]) {
				first = first < b ? first : b;
				last = b;
			}
			max_count = l->bin[b] > max_count ? l->bin[b] : max_count;
		}
		for (unsigned b = first; b <= last; b++)
			bin_row(r, catalog, l, b, max_count);
	}
	return report_end(r, err);
}
