#include <stdio.h>
#include <string.h>

#include "base/timefmt.h"
#include "report/report.h"

static const struct column raw_columns[] = {
	{ "start", NULL, COL_CLOCK },        { "end", NULL, COL_CLOCK },       { "wait_ns", NULL, COL_DURATION },
	{ "system", NULL, COL_TEXT },        { "tid", NULL, COL_INT },         { "name", NULL, COL_TEXT },
	{ "lock", NULL, COL_TEXT },          { "how", NULL, COL_TEXT },        { "holder_tid", NULL, COL_INT },
	{ "holder_name", NULL, COL_TEXT },   { "suspicion", NULL, COL_SHARE }, { "taken_ns", NULL, COL_DURATION },
	{ "thief_system", NULL, COL_TEXT },  { "thief_tid", NULL, COL_INT },   { "thief_name", NULL, COL_TEXT },
	{ "own_taken_ns", NULL, COL_DURATION },
};
/* As wide as a terminal of 80 columns: less is said of each wait. */
static const struct column text_columns[] = {
	{ NULL, "start", COL_CLOCK },  { NULL, "waited", COL_DURATION }, { NULL, "who", COL_TEXT },
	{ NULL, "lock", COL_TEXT },    { NULL, "held by", COL_TEXT },    { NULL, "taken", COL_TEXT },
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
		VAL_INT(w->own_taken) });
}

/* "Debian/164 mutex-0"; "164 mutex-0" where the machine (NULL) is clear. */
static char *thread_text(const char *machine, int32_t tid, const char *name, char *buf, size_t size)
{
	char number[16] = "";
	if (tid >= 0)
		snprintf(number, sizeof number, "%d ", tid);
	snprintf(buf, size, "%s%s%s%s", machine ? machine : "", machine ? "/" : "", number, name);
	return buf;
}

/* The machine of a waiter, unless there is but one guest. */
static const char *machine_text(const struct topo *topo, int32_t system)
{
	uint32_t guests = 0;
	for (uint32_t i = 0; i < topo->machines; i++)
		guests += topo->machine[i].kind != MACHINE_HOST;
	return guests == 1 && topo->machine[system].kind != MACHINE_HOST ? NULL : topo->machine[system].name;
}

static void text_row(struct report *r, const struct topo *topo, const struct lock_list *l, const struct lock_wait *w)
{
	char who[600], holder[300], name[280], by[600], lock[100], ns[TIME_TEXT], lost[TIME_TEXT + 1], doubt[16] = "";
	const bool own = w->taken == 0 && w->own_taken > 0, pauses = strcmp(l->name[w->kind], "pause") == 0;
	snprintf(lock, sizeof lock, "%s%s", l->name[w->kind], w->spins && !pauses ? ", spun" : "");
	snprintf(lost, sizeof lost, "%s%s", time_duration(ns, own ? w->own_taken : w->taken), own ? "*" : "");
	if (w->suspicion > 0)
		snprintf(doubt, sizeof doubt, ", %.0f%%?", 100 * w->suspicion);
	thread_text(machine_text(topo, w->waiter.system), w->waiter.tid, l->name[w->waiter.name], who, sizeof who);
	thread_text(NULL, w->holder.tid, l->name[w->holder.name], name, sizeof name);  /* of the waiter's machine */
	snprintf(holder, sizeof holder, "%s%s", name, doubt);
	report_row(r, (struct value[]){
		VAL_INT(w->start), VAL_INT(w->end - w->start + 1), VAL_TEXT(who), VAL_TEXT(lock),
		w->holder.system >= 0 ? VAL_TEXT(holder) : VAL_NONE, VAL_SHOWN(lost),
		w->thief.system >= 0 ? VAL_SHOWN(party_shown(topo, &w->thief, l->name[w->thief.name], by, sizeof by)) : VAL_NONE });
}

int report_locks(FILE *out, struct report_how how, const struct topo *topo, const struct lock_list *l,
                  const struct origin *o, struct error *err)
{
	static const struct report_shape raw = REPORT_SHAPE("gaps-locks", raw_columns);
	static const struct report_shape text = REPORT_SHAPE("gaps-locks", text_columns);
	const bool people = how.format == FORMAT_TEXT;
	struct report *r = report_begin(out, how, people ? &text : &raw, o);
	for (size_t i = 0; i < l->waits; i++)
		(people ? text_row : raw_row)(r, topo, l, &l->wait[i]);
	return report_end(r, err);
}
