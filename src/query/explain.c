/* A flow in plain sentences: what it did, what delayed it, how sure that is, where to look next.
 *
 * One sentence per line.  Every number comes from the flow of the window; every name is escaped by
 * party_text() and topo_subject_text(). */
#include "query/explain.h"
#include "query/top_culprit.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/timefmt.h"

#define NOTABLE 0.01     /* share of the window from which a kind of delay gets a sentence of its own */

double story_share(const struct story *s, int64_t ns)
{
	return (double)ns / ((double)(s->f->end - s->f->start) + 1);
}

const char *story_amount(const struct story *s, int64_t ns, char buf[64])
{
	char d[TIME_TEXT], part[24] = "";
	if (story_share(s, ns) >= 0.0005)
		snprintf(part, sizeof part, " (%.1f %%)", 100 * story_share(s, ns));
	snprintf(buf, 64, "%s%s", time_duration(d, ns), part);
	return buf;
}

static const char *party(const struct story *s, const struct flow_entry *e, char buf[NAME_TEXT])
{
	if (e->who.kind == FLOW_IDLE_CPU && !advice_stayed_idle(e))
		return "waking up, or moving to another CPU";
	if (e == &s->whole && e->who.kind == FLOW_PREEMPTING && !*thief_own(s->topo, &s->subject, &e->who))
		return s->topo->machine[e->who.system].kind == MACHINE_HOST ? "the host"
		                                             : text_escape(buf, NAME_TEXT, s->topo->machine[e->who.system].name);
	return explain_party(s->topo, &e->who, s->f->name[e->who.name], &s->subject, buf, NAME_TEXT);
}

static bool is_of_first(const struct story *s, const struct flow_entry *e)
{
	return s->is_whole ? thief_group(s->topo, &s->subject, &e->who) == thief_group(s->topo, &s->subject, &s->first->who)
	                   : e == s->first;
}

static void tell_doing(struct story *s)
{
	char at[TIME_TEXT], to[TIME_TEXT], d[TIME_TEXT], a[64], b[64], c[64];
	const struct demand *is = &s->demand;
	fprintf(s->to, "%s, %s .. %s (%s): ran %s, lost %s%s, slept %s", s->name, time_date(at, s->f->start, 6),
	        time_clock(to, s->f->end, 6), time_duration(d, s->f->end - s->f->start + 1), story_amount(s, is->ran, a),
	        topo_is_watched(s->topo, &s->subject) ? story_amount(s, is->lost, b) : "unknown",
	        s->alone && s->subject.kind == SUBJECT_THREAD && is->ran ? " or more" : "", story_amount(s, is->slept, c));
	if (is->served)
		fprintf(s->to, "; during %s of what it lost, the hypervisor worked for it", story_amount(s, is->served, a));
	fputs(".\n", s->to);
}

static uint32_t status_attribute(const struct topo *topo, const struct subject *s)
{
	if (s->kind == SUBJECT_THREAD)
		return topo->thread[s->index].status;
	const struct topo_cpu *cpu = &topo->cpu[s->index];
	return topo->machine[cpu->machine].kind == MACHINE_VM ? cpu->status : cpu->current;
}

/* Does the trace of the machine that runs the vCPU tell of that moment? */
static int is_traced(const struct topo *topo, const struct topo_cpu *vcpu, int64_t t, struct error *err)
{
	const struct topo_machine *host = &topo->machine[topo->thread[vcpu->host].machine];
	struct interval iv = { .value = HISTORY_NULL };
	for (uint32_t i = 0; i < host->cpus && iv.value == HISTORY_NULL; i++) {
		const uint32_t current = topo->cpu[host->cpu + i].current;
		if (current != HISTORY_NONE && history_stab(topo->h, current, t, &iv, err) < 0)
			return -1;
	}
	return iv.value != HISTORY_NULL;
}

/* When the thread of a vCPU began and ended, as the host's trace tells. */
static int tell_life(struct story *s, struct error *err)
{
	const struct topo *topo = s->topo;
	const int64_t from = s->f->start, to = s->f->end;
	char a[64], at[TIME_TEXT];
	struct interval first, last;
	const struct topo_cpu *vcpu = s->subject.kind == SUBJECT_CPU ? &topo->cpu[s->subject.index] : NULL;
	if (!vcpu || vcpu->host < 0)
		return 0;
	const uint32_t attr = status_attribute(topo, &s->subject);
	if (history_stab(topo->h, attr, from, &first, err) < 0 || history_stab(topo->h, attr, to, &last, err) < 0)
		return -1;
	const int began = first.value == HISTORY_NULL && first.end < to ? is_traced(topo, vcpu, first.end, err) : 0;
	const int ended = last.value == HISTORY_NULL && last.start > from ? is_traced(topo, vcpu, last.start, err) : 0;
	if (began < 0 || ended < 0)
		return -1;
	const int64_t absent = (began ? first.end - from + 1 : 0) + (ended ? to - last.start + 1 : 0);
	if (!absent)
		return 0;
	fprintf(s->to, "It was not there for %s of that:", story_amount(s, absent, a));
	if (began)
		fprintf(s->to, " it began at %s%s", time_clock(at, first.end + 1, 6), ended ? ", and" : "");
	if (ended)
		fprintf(s->to, " it ended at %s", time_clock(at, last.start, 6));
	fputs(".\n", s->to);
	s->unknown -= absent < s->unknown ? absent : s->unknown;
	return 0;
}

/* Some by name, and what all the rest makes. */
struct naming {
	const char *before;
	size_t told, rest;
	int64_t rest_ns;
};

static void list_one(struct story *s, struct naming *l, const struct flow_entry *e)
{
	char who[NAME_TEXT], a[64];
	if (l->told < 3 && story_share(s, e->lost) >= NOTABLE / 10) {
		fprintf(s->to, "%s%s: %s", l->told ? "; " : l->before, party(s, e, who), story_amount(s, e->lost, a));
		l->told++;
	} else {
		l->rest++;
		l->rest_ns += e->lost;
	}
}

static void list_end(struct story *s, const struct naming *l)
{
	char a[64];
	if (l->told && l->rest)
		fprintf(s->to, "; %zu other%s: %s", l->rest, l->rest == 1 ? "" : "s", story_amount(s, l->rest_ns, a));
}

/* The thief: one of the culprits, or several of a machine, which follow. */
static void tell_culprit(struct story *s)
{
	char who[NAME_TEXT], a[64], d[TIME_TEXT], at[TIME_TEXT], cpu[24] = "";
	const struct flow_entry *e = s->first;
	struct naming l = { .before = "; of that " };
	fprintf(s->to, "What delayed it most %swas %s: %s", s->slept_for ? "while it wanted to run " : "", party(s, e, who),
	        story_amount(s, e->lost, a));
	for (size_t i = 0; s->is_whole && i < s->culprits; i++)
		if (is_of_first(s, &s->culprit[i]))
			list_one(s, &l, &s->culprit[i]);
	list_end(s, &l);
	if (!s->is_whole && e->longest.pcpu >= 0)
		snprintf(cpu, sizeof cpu, " on CPU%d", e->longest.pcpu);
	if (!s->is_whole && e->lost == e->duration)
		fprintf(s->to, " in %" PRIu64 " piece%s, the longest %s at %s%s", e->pieces, e->pieces == 1 ? "" : "s",
		        time_duration(d, e->longest.ns), time_clock(at, e->longest.start, 6), cpu);
	fputs(".\n", s->to);
}

static void tell_others(struct story *s)
{
	struct naming l = { .before = "Then " };
	for (size_t i = 0; i < s->culprits; i++)
		if (!is_of_first(s, &s->culprit[i]))
			list_one(s, &l, &s->culprit[i]);
	list_end(s, &l);
	if (l.told)
		fputs(".\n", s->to);
}

/* The widest error band of the guest's clock within the window, or -1. */
static int64_t clock_band(const struct story *s, uint32_t machine)
{
	char path[600];
	struct history_cursor c;
	struct interval iv;
	int64_t widest = -1;
	history_path(path, sizeof path, SCHEMA_VMS, s->topo->machine[machine].name, machine_schema[MACHINE_BAND].name, NULL);
	uint32_t attr = history_find(s->topo->h, path);
	if (attr == HISTORY_NONE || history_type(s->topo->h, attr) != HISTORY_INT ||
	    history_range(&c, s->topo->h, attr, s->f->start, s->f->end, NULL) < 0)
		return -1;
	while (history_range_next(&c, &iv, NULL) > 0)
		if (iv.value != HISTORY_NULL && iv.value > widest)
			widest = iv.value;
	return widest;
}

/* What is known of the clock, unless that is in doubt. */
static void tell_clock(struct story *s, const struct notes *doubts)
{
	char d[TIME_TEXT];
	int64_t band = clock_band(s, s->machine);
	for (size_t i = 0; i < doubts->len; i++)
		if (doubts->item[i].kind == NOTE_CLOCK)
			return;
	if (band >= 0)
		fprintf(s->to, "; the guest's times are known to within %s", time_duration(d, band));
	else
		fputs("; nothing tells how far the guest's clock is off", s->to);
}

/* With every doubt that there is about what was recorded. */
static void tell_trust(struct story *s)
{
	char a[64], text[NOTE_TEXT];
	struct notes notes = { 0 };
	const struct topo_machine *m = &s->topo->machine[s->machine];
	const bool untraced = m->kind == MACHINE_VM && m->threads == 0;
	doubts_of(s->topo, &s->subject, s->f->start, s->f->end, &notes);
	if (s->unknown)
		fprintf(s->to, "How sure: %s of it is unknown and blamed on nobody, since events are missing or %s",
		        story_amount(s, s->unknown, a), untraced ? "do not tell it" : "contradict each other");
	else
		fprintf(s->to, "How sure: the trace tells all of it%s", s->alone ? " that happened inside the guest" : "");
	if (untraced)
		fputs("; the guest was not traced: whether a vCPU wanted to run while it was out is judged by how it left", s->to);
	else if (m->kind == MACHINE_VM)
		tell_clock(s, &notes);
	for (size_t i = 0; i < notes.len; i++)
		fprintf(s->to, "%s%s", i ? "; " : "; yet it is in doubt: ", note_text(&notes.item[i], text));
	fputs(".\n", s->to);
	notes_release(&notes);
	bool host = s->topo->machine[0].kind == MACHINE_HOST;
	if (s->alone)
		fprintf(s->to, "%s: what a host took from its vCPUs is not seen, and counts as running.\n",
		        host ? "No thread of the host is known to be its vCPU" : "Its host was not traced");
}

static uint32_t machine_of(const struct topo *topo, const struct subject *s)
{
	return s->kind == SUBJECT_CPU ? topo->cpu[s->index].machine : topo->thread[s->index].machine;
}

static int by_lost(const void *a, const void *b)
{
	const struct flow_entry *x = a, *y = b;
	if (x->lost != y->lost)
		return x->lost < y->lost ? 1 : -1;
	return (x->longest.start > y->longest.start) - (x->longest.start < y->longest.start);
}

static void know_first(struct story *s)
{
	struct thief thief;
	flow_thief(s->topo, &s->subject, s->culprit, s->culprits, &thief);
	s->whole = (struct flow_entry){ .who = thief.who, .lost = thief.ns };
	s->is_whole = thief.parties > 1;
	s->first = &s->whole;
	for (size_t i = 0; !s->is_whole && i < s->culprits; i++)
		if (party_same(&s->culprit[i].who, &thief.who))
			s->first = &s->culprit[i];
}

/* Whoever had the CPU while it lost, most first. */
static void know(struct story *s)
{
	s->culprit = mem_new(s->f->entries, sizeof *s->culprit);
	for (size_t i = 0; i < s->f->entries; i++) {
		const struct flow_entry *e = &s->f->entry[i];
		s->unknown += e->who.kind == FLOW_UNKNOWN ? e->duration : 0;
		if (e->lost)
			s->culprit[s->culprits++] = *e;
	}
	if (s->culprits)
		qsort(s->culprit, s->culprits, sizeof *s->culprit, by_lost);
	know_first(s);
	s->machine = machine_of(s->topo, &s->subject);
	s->alone = topo_is_alone(s->topo, &s->subject);
	topo_subject_text(s->topo, &s->subject, s->name, sizeof s->name);
}

/* The largest comes first. */
static int tell_story(struct story *s, const char *opening, struct error *err)
{
	const bool sleeper = s->demand.slept > s->demand.lost;
	if (opening)
		fputs(opening, s->to);
	else
		tell_doing(s);
	if (!opening && tell_life(s, err) < 0)
		return -1;
	if (sleeper && story_waits(s, err) < 0)
		return -1;
	if (s->culprits) {
		tell_culprit(s);
		tell_others(s);
	} else {
		fprintf(s->to, "Nothing %skept it from running while it wanted to.\n",
		        s->alone ? "that was recorded " : "");
	}
	if (!sleeper && story_waits(s, err) < 0)
		return -1;
	if (story_locks(s, err) < 0)
		return -1;
	tell_trust(s);
	story_advise(s);
	return 0;
}

static int tell(const struct topo *topo, const struct subject *subject, const struct flow *f, const char *opening,
                char **text, struct error *err)
{
	struct story s = { .topo = topo, .subject = *subject, .f = f, .kept = { .thief = { .system = -1 } } };
	size_t size = 0;
	int rc = demand_of(topo, subject, f->start, f->end, &s.demand, err);
	if (rc < 0)
		return -1;
	s.to = open_memstream(text, &size);
	if (!s.to)
		return error_system(err, NULL, "explain");
	know(&s);
	rc = tell_story(&s, opening, err);
	free(s.culprit);
	free(s.kept.who_name);
	free(s.kept.thief_name);
	if (fclose(s.to) != 0)
		rc = error_system(err, NULL, "explain");
	if (rc < 0) {
		free(*text);
		*text = NULL;
	}
	return rc;
}

/* Only who wants to run can be delayed. */
static int check_subject(const struct topo *topo, const struct subject *s, struct error *err)
{
	char name[NAME_TEXT];
	bool is_pcpu = s->kind == SUBJECT_CPU && topo->machine[topo->cpu[s->index].machine].kind != MACHINE_VM;
	if (s->kind != SUBJECT_MACHINE && !is_pcpu)
		return 0;
	return error_set(err, STATUS_USAGE, "name a vCPU or a thread", "%s: %s cannot be explained",
	                 topo_subject_text(topo, s, name, sizeof name), is_pcpu ? "a physical CPU" : "a whole machine");
}

int explain_window(const struct topo *topo, const struct subject *s, int64_t from, int64_t to, char **text,
                   struct error *err)
{
	struct flow f;
	*text = NULL;
	if (check_subject(topo, s, err) < 0)
		return -1;
	if (flow_of(topo, s, from, to, &(struct flow_options){ 0 }, &f, err) < 0)
		return -1;
	int status = tell(topo, s, &f, NULL, text, err);
	flow_release(&f);
	return status;
}

int explain_moment(const struct topo *topo, const struct subject *s, int64_t t, struct gap *out, struct error *err)
{
	struct interval iv;
	uint32_t attr = status_attribute(topo, s);
	int in_gap = gap_at(topo, s, t, out, err);
	if (in_gap != 0)
		return in_gap;
	if (attr == HISTORY_NONE) {
		char name[NAME_TEXT];
		return error_set(err, STATUS_INPUT, NULL, "%s: nothing is known of its states",
		                 topo_subject_text(topo, s, name, sizeof name));
	}
	if (history_stab(topo->h, attr, t, &iv, err) < 0)
		return -1;
	*out = (struct gap){ .subject = *s, .start = iv.start, .end = iv.end, .state = iv.value };
	return 0;
}

const char *explain_state_name(const struct topo *topo, const struct subject *s, int64_t state)
{
	uint32_t attr = status_attribute(topo, s);
	if (state == HISTORY_NULL)
		return "not alive";
	if (attr == HISTORY_NONE || history_type(topo->h, attr) != HISTORY_STATE || state < 0 ||
	    state >= (int64_t)history_state_count(topo->h, attr))
		return "";
	return history_state_name(topo->h, attr, (unsigned)state);
}

int explain_at_of(const struct topo *topo, const struct gap *moment, const struct flow *f, char **text,
                  struct error *err)
{
	const struct subject *s = &moment->subject;
	char name[NAME_TEXT], state[64], at[TIME_TEXT], d[TIME_TEXT];
	*text = NULL;
	if (check_subject(topo, s, err) < 0)
		return -1;
	text_escape(state, sizeof state, explain_state_name(topo, s, moment->state));
	char *opening = mem_printf("%s was %s for %s from %s.\n", topo_subject_text(topo, s, name, sizeof name),
	                           *state ? state : "in use", time_duration(d, moment->end - moment->start + 1),
	                           time_clock(at, moment->start, 6));
	int status = tell(topo, s, f, opening, text, err);
	free(opening);
	return status;
}

int explain_at(const struct topo *topo, const struct subject *s, int64_t t, char **text, struct error *err)
{
	struct gap moment;
	struct flow f;
	*text = NULL;
	if (check_subject(topo, s, err) < 0)
		return -1;
	if (explain_moment(topo, s, t, &moment, err) < 0 ||
	    flow_of(topo, s, moment.start, moment.end, &(struct flow_options){ 0 }, &f, err) < 0)
		return -1;
	int status = explain_at_of(topo, &moment, &f, text, err);
	flow_release(&f);
	return status;
}
