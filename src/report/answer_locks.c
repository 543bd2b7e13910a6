
#include "base/base.h"
#include "report/report.h"

static const struct column raw_columns[] = {
	{ "start", NULL, COL_CLOCK },        { "end", NULL, COL_CLOCK },       { "wait_ns", NULL, COL_DURATION },
	{ "machine", NULL, COL_TEXT },        { "tid", NULL, COL_INT },         { "name", NULL, COL_TEXT },
	{ "lock", NULL, COL_TEXT },          { "how", NULL, COL_TEXT },        { "holder_tid", NULL, COL_INT },
	{ "holder_name", NULL, COL_TEXT },   { "suspicion", NULL, COL_SHARE }, { "culprit_ns", NULL, COL_DURATION },
	{ "culprit", NULL, COL_ACTOR },
	{ "culprit_machine", NULL, COL_TEXT },  { "culprit_tid", NULL, COL_INT },   { "culprit_name", NULL, COL_TEXT },
	{ "waiter_lost_ns", NULL, COL_DURATION }, { "suspects", NULL, COL_TEXT },
};
/* Text has fewer columns than csv, to fit a terminal of 80 columns. */
#define TEXT_COLUMNS(waiter) { \
	{ NULL, "start", COL_CLOCK }, { NULL, "waited", COL_DURATION }, { NULL, waiter, COL_TEXT }, \
	{ NULL, "lock", COL_TEXT }, { NULL, "holder", COL_TEXT }, { NULL, "taken", COL_UNCUT }, { NULL, "culprit", COL_TEXT }, \
}
static const struct column text_columns[] = TEXT_COLUMNS("waiter");
static const struct column text_columns_of_thread[] = TEXT_COLUMNS(NULL);  /* the waiter is the target */

static void raw_row(struct report *r, const struct catalog *catalog, const struct lock_list *l, const struct lock_wait *w)
{
	const bool has_holder = w->holder.machine >= 0, has_culprit = actor_is_known(&w->culprit);
	char buf[ACTOR_TEXT], plain[ACTOR_TEXT];
	const struct actor_ref ref = { catalog, &w->culprit, l->name[w->culprit.name] };
	const char *culprit = has_culprit ? actor_name_text(&w->culprit, l->name[w->culprit.name], buf) : "";
	report_row(r, (struct value[]){
		VAL_INT(w->start), VAL_INT(w->end), VAL_INT(w->end - w->start + 1), value_machine(catalog, w->waiter.machine),
		value_tid(w->waiter.tid), VAL_TEXT(l->name[w->waiter.name]), VAL_TEXT(l->name[w->kind]),
		VAL_TEXT(w->spins ? "spun" : "slept"), has_holder ? value_tid(w->holder.tid) : VAL_NONE,
		has_holder ? VAL_TEXT(l->name[w->holder.name]) : VAL_NONE, w->suspicion > 0 ? VAL_REAL(w->suspicion) : VAL_NONE,
		VAL_INT(w->culprit_ns),
		has_culprit ? VAL_WHO(actor_text(catalog, &w->culprit, l->name[w->culprit.name], ACTOR_PLAIN, NULL, plain,
		                                 sizeof plain), &ref) : VAL_NONE,
		has_culprit ? value_machine(catalog, w->culprit.machine) : VAL_NONE,
		has_culprit ? value_tid(w->culprit.tid) : VAL_NONE, has_culprit ? VAL_TEXT(culprit) : VAL_NONE,
		VAL_INT(w->waiter_lost_ns), w->suspects ? VAL_TEXT(l->name[w->suspects]) : VAL_NONE });
}

/* Writes "Debian/164 mutex-0", or "164 mutex-0" if machine is NULL. */
static void thread_text(const char *machine, int32_t tid, const char *name, char *buf, size_t size)
{
	char number[16] = "", machine_text[256] = "", shown[256];
	if (tid >= 0)
		snprintf(number, sizeof number, "%d ", tid);
	if (machine)
		text_escape(machine_text, sizeof machine_text, machine);
	snprintf(buf, size, "%s%s%s%s", machine_text, machine ? "/" : "", number,
	         text_escape(shown, sizeof shown, name));
}

/* Texts of a lock wait for people, escaped. */
struct lock_cells {
	char waiter[600];
	char lock[100];
	char holder[600];      /* holder, a suspected holder with its score; "": unknown */
	char taken[TIME_TEXT + 1];  /* time taken from the holder; if the holder lost nothing, time taken from the waiter,
	                             * marked with * */
	char culprit[600];       /* "": none */
};

/* Returns true if `taken` is time taken from the waiter. */
static bool lock_taken_is_waiters(const struct lock_wait *w)
{
	return w->culprit_ns == 0 && w->waiter_lost_ns > 0;
}

/* with_machine: the waiter's text contains its machine. */
static void lock_cells(const struct catalog *catalog, const struct lock_list *l, const struct lock_wait *w,
                       bool with_machine, struct lock_cells *out)
{
	char ns[TIME_TEXT], kind[64];
	const bool is_waiters = lock_taken_is_waiters(w), pauses = strcmp(l->name[w->kind], "pause") == 0;
	*out = (struct lock_cells){ .holder = "" };
	thread_text(with_machine ? catalog->machine[w->waiter.machine].name : NULL, w->waiter.tid, l->name[w->waiter.name],
	            out->waiter, sizeof out->waiter);
	snprintf(out->lock, sizeof out->lock, "%s%s", text_escape(kind, sizeof kind, l->name[w->kind]),
	         w->spins && !pauses ? ", spun" : "");
	snprintf(out->taken, sizeof out->taken, "%s%s", time_duration(ns, is_waiters ? w->waiter_lost_ns : w->culprit_ns),
	         is_waiters ? "*" : "");
	if (actor_is_known(&w->culprit))
		actor_text(catalog, &w->culprit, l->name[w->culprit.name], ACTOR_SHOWN, NULL, out->culprit, sizeof out->culprit);
	if (w->suspects)
		snprintf(out->holder, sizeof out->holder, "%s", l->name[w->suspects]);
	else if (w->holder.machine >= 0)  /* the holder belongs to the waiter's machine */
		thread_text(NULL, w->holder.tid, l->name[w->holder.name], out->holder, sizeof out->holder);
	const size_t used = strlen(out->holder);
	if (w->suspicion > 0)
		snprintf(out->holder + used, sizeof out->holder - used, ", %.0f%%?", 100 * w->suspicion);
}

/* Returns true if rows have to name the waiter's machine: there are several guests. */
static bool is_machine_shown(const struct catalog *catalog, int32_t machine)
{
	uint32_t guests = 0;
	for (uint32_t i = 0; i < catalog->machines; i++)
		guests += catalog->machine[i].kind != MACHINE_HOST;
	return guests != 1 || catalog->machine[machine].kind == MACHINE_HOST;
}

static void text_row(struct report *r, const struct catalog *catalog, const struct lock_list *l, const struct lock_wait *w)
{
	struct lock_cells c;
	lock_cells(catalog, l, w, is_machine_shown(catalog, w->waiter.machine), &c);
	struct value taken = VAL_SHOWN(c.taken);
	taken.integer = w->culprit_ns;
	report_row(r, (struct value[]){
		VAL_INT(w->start), VAL_INT(w->end - w->start + 1), VAL_SHOWN(c.waiter), VAL_SHOWN(c.lock),
		*c.holder ? VAL_SHOWN(c.holder) : VAL_NONE, taken, *c.culprit ? VAL_SHOWN(c.culprit) : VAL_NONE });
}

static void write_totals(FILE *out, const struct lock_list *l, size_t shown)
{
	char waited[TIME_TEXT], from_holders[TIME_TEXT];
	int64_t all = 0, taken_ns = 0;
	bool is_waiters = false;
	for (size_t i = 0; i < l->waits; i++) {
		all += l->wait[i].end - l->wait[i].start + 1;
		taken_ns += l->wait[i].culprit_ns;
		is_waiters = is_waiters || (i < shown && lock_taken_is_waiters(&l->wait[i]));
	}
	if (l->waits)
		fprintf(out, "\n%zu lock wait%s, %s in total, %s taken from holders\n", l->waits, l->waits == 1 ? "" : "s",
		        time_duration(waited, all), time_duration(from_holders, taken_ns));
	if (is_waiters)
		fprintf(out, "* lost by the waiter itself; its holder lost nothing\n");
	if (shown < l->waits)
		fprintf(out, "%zu longest of %zu shown (--top 0: all)\n", shown, l->waits);
}

/* Warns about VMs without recorded lock events. */
static void warn_no_lock_events(FILE *out, struct report_how how, const struct catalog *catalog,
                                const struct target *target, struct origin *o)
{
	struct notes notes = { 0 };
	for (uint32_t i = 0; i < catalog->machines; i++) {
		const struct catalog_machine *m = &catalog->machine[i];
		if (m->kind == MACHINE_VM && (!target || target_machine(catalog, target) == i) && !locks_have_events(catalog, i))
			note_add(&notes, NO_LOCK_EVENTS, m->name);
	}
	report_warn(out, how, o, &notes);
}

int report_locks(FILE *out, struct report_how how, const struct catalog *catalog, const struct lock_list *l,
                 const struct target *target, size_t top, struct origin *o, struct error *err)
{
	static const struct report_shape raw = REPORT_SHAPE("gaps-locks", raw_columns);
	static const struct report_shape text = REPORT_SHAPE_DROPPING("gaps-locks", text_columns, "lock start");
	static const struct report_shape of_thread = REPORT_SHAPE_DROPPING("gaps-locks", text_columns_of_thread, "lock start");
	const bool is_thread = target && target->kind == TARGET_THREAD;
	const bool people = how.format == FORMAT_TEXT;
	const size_t shown = top && top < l->waits ? top : l->waits;
	warn_no_lock_events(out, how, catalog, target, o);
	report_warn_omitted(out, how, o, shown, l->waits, "lock waits, the longest,");
	struct report *r = report_begin(out, how, !people ? &raw : is_thread ? &of_thread : &text, o);
	for (size_t i = 0; i < shown; i++)
		(people ? text_row : raw_row)(r, catalog, l, &l->wait[i]);
	if (report_end(r, err))
		return -1;
	if (people)
		write_totals(out, l, shown);
	return 0;
}
