#include <stdio.h>
#include <string.h>

#include "base/text.h"
#include "base/timefmt.h"
#include "report/report.h"

static const struct column raw_columns[] = {
	{ "start", NULL, COL_CLOCK },        { "end", NULL, COL_CLOCK },       { "wait_ns", NULL, COL_DURATION },
	{ "system", NULL, COL_TEXT },        { "tid", NULL, COL_INT },         { "name", NULL, COL_TEXT },
	{ "lock", NULL, COL_TEXT },          { "how", NULL, COL_TEXT },        { "holder_tid", NULL, COL_INT },
	{ "holder_name", NULL, COL_TEXT },   { "suspicion", NULL, COL_SHARE }, { "taken_ns", NULL, COL_DURATION },
	{ "thief_system", NULL, COL_TEXT },  { "thief_tid", NULL, COL_INT },   { "thief_name", NULL, COL_TEXT },
	{ "own_taken_ns", NULL, COL_DURATION }, { "suspects", NULL, COL_TEXT },
};
/* As wide as a terminal of 80 columns: less is said of each wait. */
static const struct column text_columns[] = {
	{ NULL, "start", COL_CLOCK },  { NULL, "waited", COL_DURATION }, { NULL, "who", COL_TEXT },
	{ NULL, "lock", COL_TEXT },    { NULL, "held by", COL_TEXT },    { NULL, "taken", COL_WHOLE },
	{ NULL, "by", COL_TEXT },
};

static void raw_row(struct report *r, const struct topo *topo, const struct lock_list *l, const struct lock_wait *w)
{
	const bool held = w->holder.system >= 0, taken = w->thief.system >= 0;
	report_row(r, (struct value[]){
		VAL_INT(w->start), VAL_INT(w->end), VAL_INT(w->end - w->start + 1), value_system(topo, w->waiter.system),
		value_tid(w->waiter.tid), VAL_TEXT(l->name[w->waiter.name]), VAL_TEXT(l->name[w->kind]),
		VAL_TEXT(w->spins ? "spun" : "slept"), held ? value_tid(w->holder.tid) : VAL_NONE,
		held ? VAL_TEXT(l->name[w->holder.name]) : VAL_NONE, w->suspicion > 0 ? VAL_REAL(w->suspicion) : VAL_NONE,
		VAL_INT(w->taken), taken ? value_system(topo, w->thief.system) : VAL_NONE,
		taken ? value_tid(w->thief.tid) : VAL_NONE, taken ? VAL_TEXT(l->name[w->thief.name]) : VAL_NONE,
		VAL_INT(w->own_taken), w->suspects ? VAL_TEXT(l->name[w->suspects]) : VAL_NONE });
}

/* "Debian/164 mutex-0"; "164 mutex-0" where the machine (NULL) is clear. */
static void thread_text(const char *machine, int32_t tid, const char *name, char *buf, size_t size)
{
	char number[16] = "", system[256] = "", shown[256];
	if (tid >= 0)
		snprintf(number, sizeof number, "%d ", tid);
	if (machine)
		text_escape(system, sizeof system, machine);
	snprintf(buf, size, "%s%s%s%s", system, machine ? "/" : "", number, text_escape(shown, sizeof shown, name));
}

bool lock_takes_own(const struct lock_wait *w)
{
	return w->taken == 0 && w->own_taken > 0;
}

void lock_cells(const struct topo *topo, const struct lock_list *l, const struct lock_wait *w, bool machine,
                struct lock_cells *out)
{
	char ns[TIME_TEXT], kind[64];
	const bool own = lock_takes_own(w), pauses = strcmp(l->name[w->kind], "pause") == 0;
	*out = (struct lock_cells){ .holder = "" };
	thread_text(machine ? topo->machine[w->waiter.system].name : NULL, w->waiter.tid, l->name[w->waiter.name], out->who,
	            sizeof out->who);
	snprintf(out->lock, sizeof out->lock, "%s%s", text_escape(kind, sizeof kind, l->name[w->kind]),
	         w->spins && !pauses ? ", spun" : "");
	snprintf(out->taken, sizeof out->taken, "%s%s", time_duration(ns, own ? w->own_taken : w->taken), own ? "*" : "");
	if (w->thief.system >= 0)
		party_shown(topo, &w->thief, l->name[w->thief.name], out->thief, sizeof out->thief);
	if (w->suspects)
		snprintf(out->holder, sizeof out->holder, "%s", l->name[w->suspects]);
	else if (w->holder.system >= 0)  /* of the waiter's machine */
		thread_text(NULL, w->holder.tid, l->name[w->holder.name], out->holder, sizeof out->holder);
	const size_t used = strlen(out->holder);
	if (w->suspicion > 0)
		snprintf(out->holder + used, sizeof out->holder - used, ", %.0f%%?", 100 * w->suspicion);
}

/* Does a waiter's machine have to be told?  Not where there is but one guest. */
static bool is_machine_told(const struct topo *topo, int32_t system)
{
	uint32_t guests = 0;
	for (uint32_t i = 0; i < topo->machines; i++)
		guests += topo->machine[i].kind != MACHINE_HOST;
	return guests != 1 || topo->machine[system].kind == MACHINE_HOST;
}

static void text_row(struct report *r, const struct topo *topo, const struct lock_list *l, const struct lock_wait *w)
{
	struct lock_cells c;
	lock_cells(topo, l, w, is_machine_told(topo, w->waiter.system), &c);
	report_row(r, (struct value[]){
		VAL_INT(w->start), VAL_INT(w->end - w->start + 1), VAL_SHOWN(c.who), VAL_SHOWN(c.lock),
		*c.holder ? VAL_SHOWN(c.holder) : VAL_NONE, VAL_SHOWN(c.taken), *c.thief ? VAL_SHOWN(c.thief) : VAL_NONE });
}

static void write_totals(FILE *out, const struct lock_list *l, size_t shown)
{
	char waited[TIME_TEXT], from_holders[TIME_TEXT];
	int64_t all = 0, taken = 0;
	bool own = false;
	for (size_t i = 0; i < l->waits; i++) {
		all += l->wait[i].end - l->wait[i].start + 1;
		taken += l->wait[i].taken;
		own = own || (i < shown && lock_takes_own(&l->wait[i]));
	}
	if (l->waits)
		fprintf(out, "\n%zu lock wait%s, %s in all, %s taken from holders\n", l->waits, l->waits == 1 ? "" : "s",
		        time_duration(waited, all), time_duration(from_holders, taken));
	if (own)
		fprintf(out, "* from who waited, where its holder lost nothing\n");
	if (shown < l->waits)
		fprintf(out, "shown: the %zu longest (--top)\n", shown);
}

int report_locks(FILE *out, struct report_how how, const struct topo *topo, const struct lock_list *l, size_t top,
                 const struct origin *o, struct error *err)
{
	static const struct report_shape raw = REPORT_SHAPE("gaps-locks", raw_columns);
	static const struct report_shape text = REPORT_SHAPE_SPARING("gaps-locks", text_columns, "lock");
	const bool people = how.format == FORMAT_TEXT;
	struct report *r = report_begin(out, how, people ? &text : &raw, o);
	const size_t shown = top && top < l->waits ? top : l->waits;
	for (size_t i = 0; i < shown; i++)
		(people ? text_row : raw_row)(r, topo, l, &l->wait[i]);
	if (report_end(r, err))
		return -1;
	if (people)
		write_totals(out, l, shown);
	return 0;
}
