/* Explains a flow in plain sentences, one per line: the activity of the target, its delays, the confidence, and the next
 * steps.
 *
 * All numbers come from the flow of the window; actor_text() and catalog_target_text() escape all names. */
#include "query/explain.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/timefmt.h"

#define NOTABLE 0.01     /* minimum share of the window for a sentence on a kind of delay */
#define NAMED_MAX 3      /* actors or causes that are named; the others are summed */

double explanation_share(const struct explanation *s, int64_t ns)
{
	return (double)ns / ((double)(s->f->end - s->f->start) + 1);
}

const char *explanation_amount(const struct explanation *s, int64_t ns, char buf[64])
{
	char d[TIME_TEXT], part[24] = "";
	if (explanation_share(s, ns) >= 0.0005)
		snprintf(part, sizeof part, " (%.1f %%)", 100 * explanation_share(s, ns));
	snprintf(buf, 64, "%s%s", time_duration(d, ns), part);
	return buf;
}

static void write_doing(struct explanation *s)
{
	char at[TIME_TEXT], to[TIME_TEXT], d[TIME_TEXT], a[64], b[64], c[64];
	const struct demand *demand = &s->demand;
	fprintf(s->to, "%s, %s .. %s (%s): ran %s, lost %s%s, slept %s", s->name, time_date(at, s->f->start, 6),
	        time_end(to, s->f->start, s->f->end, 6), time_duration(d, s->f->end - s->f->start + 1),
	        explanation_amount(s, demand->ran, a),
	        catalog_has_host_trace(s->catalog, &s->target) ? explanation_amount(s, demand->lost, b) : "unknown",
	        s->alone && s->target.kind == TARGET_THREAD && demand->ran ? " or more" : "",
	        explanation_amount(s, demand->slept, c));
	if (demand->vmm_ns)
		fprintf(s->to, "; %s of the lost time in VM exits", explanation_amount(s, demand->vmm_ns, a));
	fputs(".\n", s->to);
}

static uint32_t status_attribute(const struct catalog *catalog, const struct target *s)
{
	if (s->kind == TARGET_THREAD)
		return catalog->thread[s->index].status;
	const struct catalog_cpu *cpu = &catalog->cpu[s->index];
	return catalog->machine[cpu->machine].kind == MACHINE_VM ? cpu->status : cpu->current;
}

/* Returns 1 if the trace of the machine that runs the vCPU covers t. */
static int is_host_traced_at(const struct catalog *catalog, const struct catalog_cpu *vcpu, int64_t t, struct error *err)
{
	const struct catalog_machine *host = &catalog->machine[catalog->thread[vcpu->host].machine];
	struct interval iv = { .value = HISTORY_NULL };
	for (uint32_t i = 0; i < host->cpus && iv.value == HISTORY_NULL; i++) {
		const uint32_t current = catalog->cpu[host->cpu + i].current;
		if (current != HISTORY_NONE && history_stab(catalog->h, current, t, &iv, err) < 0)
			return -1;
	}
	return iv.value != HISTORY_NULL;
}

/* Writes the start and end of the vCPU's thread, according to the host's trace. */
static int write_lifetime(struct explanation *s, struct error *err)
{
	const struct catalog *catalog = s->catalog;
	const int64_t from = s->f->start, to = s->f->end;
	char a[64], at[TIME_TEXT];
	struct interval first, last;
	const struct catalog_cpu *vcpu = s->target.kind == TARGET_CPU ? &catalog->cpu[s->target.index] : NULL;
	if (!vcpu || vcpu->host < 0)
		return 0;
	const uint32_t attr = status_attribute(catalog, &s->target);
	if (history_stab(catalog->h, attr, from, &first, err) < 0 || history_stab(catalog->h, attr, to, &last, err) < 0)
		return -1;
	int started = first.value == HISTORY_NULL && first.end < to, ended = last.value == HISTORY_NULL && last.start > from;
	started = started ? is_host_traced_at(catalog, vcpu, first.end, err) : 0;
	ended = ended ? is_host_traced_at(catalog, vcpu, last.start, err) : 0;
	if (started < 0 || ended < 0)
		return -1;
	const int64_t absent = (started ? first.end - from + 1 : 0) + (ended ? to - last.start + 1 : 0);
	if (!absent)
		return 0;
	fprintf(s->to, "It did not exist for %s of that:", explanation_amount(s, absent, a));
	if (started)
		fprintf(s->to, " it started at %s%s", time_clock(at, first.end + 1, 6), ended ? " and" : "");
	if (ended)
		fprintf(s->to, "%s ended at %s", started ? "" : " it", time_clock(at, last.start, 6));
	fputs(".\n", s->to);
	s->unknown -= absent < s->unknown ? absent : s->unknown;
	return 0;
}

static struct cause_interval interval_of(const struct explanation *s, const struct flow_entry *e)
{
	return (struct cause_interval){ s->target, e->actor, e->actor.name < s->f->names ? s->f->name[e->actor.name] : NULL,
	                                e->longest.start, e->longest.start + e->longest.ns - 1 };
}

static int compare_by_lost(const void *a, const void *b)
{
	const struct flow_entry *const *p = a, *const *q = b, *x = *p, *y = *q;
	if (x->lost != y->lost)
		return x->lost < y->lost ? 1 : -1;
	return (x->longest.start > y->longest.start) - (x->longest.start < y->longest.start);
}

/* Writes ", of this host/216 burnP6: 2.10 s; ...": the actors that the main cause joins. */
static void write_members(const struct explanation *s)
{
	const struct flow_entry **member = mem_new(s->f->entries, sizeof *member);
	char actor[NAME_TEXT], a[64];
	size_t n = 0;
	for (size_t i = 0; i < s->f->entries; i++) {
		const struct cause_interval interval = interval_of(s, &s->f->entry[i]);
		if (s->f->entry[i].lost && cause_contains(&s->causes, s->main, &interval))
			member[n++] = &s->f->entry[i];
	}
	if (n > 1)
		qsort(member, n, sizeof *member, compare_by_lost);
	for (size_t i = 0; n > 1 && i < n && i < NAMED_MAX && explanation_share(s, member[i]->lost) >= NOTABLE / 10; i++)
		fprintf(s->to, "%s%s: %s", i ? "; " : ", of this ",
		        actor_text(s->catalog, &member[i]->actor, interval_of(s, member[i]).name, ACTOR_SENTENCE, &s->target, actor,
		                   sizeof actor), explanation_amount(s, member[i]->lost, a));
	if (n > NAMED_MAX)
		fprintf(s->to, "; %zu other%s", n - NAMED_MAX, n == NAMED_MAX + 1 ? "" : "s");
	free(member);
}

static void write_main_cause(struct explanation *s)
{
	struct finding f = { .base = "" };
	char d[TIME_TEXT], command[ACTOR_TEXT], cpu[24] = "";
	const struct cause *c = s->main;
	finding_of_rank(&f, &s->causes, c, s->demand.ran + s->demand.lost);
	if (s->main_entry->longest.pcpu >= 0)
		snprintf(cpu, sizeof cpu, " on CPU%d", s->main_entry->longest.pcpu);
	fprintf(s->to, "Main delay%s: %s, in %" PRIu64 " interval%s, longest %s%s (stealscope %s)",
	        s->slept_for ? " while runnable" : "", f.text, c->intervals, c->intervals == 1 ? "" : "s",
	        time_duration(d, c->longest.end - c->longest.start + 1), cpu,
	        catalog_view_command(s->catalog, &s->target, c->longest.start, command, sizeof command));
	write_members(s);
	fputs(".\n", s->to);
}

static void write_other_causes(struct explanation *s)
{
	char name[ACTOR_TEXT], a[64];
	size_t named = 0, rest = 0;
	int64_t rest_ns = 0;
	for (size_t i = 0; i < s->causes.len; i++) {
		const struct cause *c = &s->causes.cause[i];
		if (c == s->main)
			continue;
		if (named < NAMED_MAX && explanation_share(s, c->ns) >= NOTABLE / 10)
			fprintf(s->to, "%s%s: %s", named++ ? "; " : "Further delays: ", cause_name(&s->causes, c, name),
			        explanation_amount(s, c->ns, a));
		else
			rest++, rest_ns += c->ns;
	}
	if (named && rest)
		fprintf(s->to, "; %zu other%s: %s", rest, rest == 1 ? "" : "s", explanation_amount(s, rest_ns, a));
	if (named)
		fputs(".\n", s->to);
}

/* Returns the largest clock error bound of the guest within the window, ns; -1: none. */
static int64_t clock_error_bound(const struct explanation *s, uint32_t machine)
{
	char path[600];
	struct history_cursor c;
	struct interval iv;
	int64_t widest = -1;
	history_path(path, sizeof path, SCHEMA_VMS, s->catalog->machine[machine].name,
	             machine_schema[MACHINE_CLOCK_ERROR].name, NULL);
	uint32_t attr = history_find(s->catalog->h, path);
	if (attr == HISTORY_NONE || history_type(s->catalog->h, attr) != HISTORY_INT ||
	    history_range(&c, s->catalog->h, attr, s->f->start, s->f->end, NULL) < 0)
		return -1;
	while (history_range_next(&c, &iv, NULL) > 0)
		if (iv.value != HISTORY_NULL && iv.value > widest)
			widest = iv.value;
	return widest;
}

/* Writes the error bound of the guest's clock, unless a warning concerns the clock. */
static void write_clock_error(struct explanation *s, const struct notes *warnings)
{
	char d[TIME_TEXT];
	int64_t band = clock_error_bound(s, s->machine);
	for (size_t i = 0; i < warnings->len; i++)
		if (warnings->item[i].kind == NOTE_KIND_CLOCK)
			return;
	if (band >= 0)
		fprintf(s->to, "; guest clock error <= %s", time_duration(d, band));
	else
		fputs("; guest clock error unknown", s->to);
}

/* Writes the warning that there is no source of stolen time: culprits inside the guest may be innocent. */
static void write_no_source(struct explanation *s)
{
	char text[NOTE_TEXT];
	struct notes notes = { 0 };
	warnings_of(s->catalog, &s->target, s->f->start, s->f->end, &notes);
	if (notes.len && note_code_hides_steal(notes.item[0].code))
		fprintf(s->to, "%s.\n", note_text(&notes.item[0], text));
	notes_release(&notes);
}

/* Writes the confidence, and all warnings on the input except that of write_no_source(). */
static void write_confidence(struct explanation *s)
{
	char a[64], text[NOTE_TEXT];
	struct notes notes = { 0 };
	const struct catalog_machine *m = &s->catalog->machine[s->machine];
	const bool untraced = m->kind == MACHINE_VM && m->threads == 0;
	warnings_of(s->catalog, &s->target, s->f->start, s->f->end, &notes);
	if (s->unknown)
		fprintf(s->to, "Confidence: reduced; %s is unknown and has no culprit: events are missing or %s",
		        explanation_amount(s, s->unknown, a), untraced ? "ambiguous" : "contradict each other");
	else
		fprintf(s->to, "Confidence: %s; nothing is unknown%s", notes.len || s->alone ? "reduced" : "high",
		        s->alone ? " inside the guest" : "");
	if (untraced)
		fputs("; the guest was not traced: whether a vCPU was runnable while off the CPU is inferred from its VM exits",
		      s->to);
	else if (m->kind == MACHINE_VM)
		write_clock_error(s, &notes);
	const size_t first = notes.len && note_code_hides_steal(notes.item[0].code);
	for (size_t i = first; i < notes.len; i++)
		fprintf(s->to, "%s%s", i > first ? "; " : ".\nHowever: ", note_text(&notes.item[i], text));
	fputs(".\n", s->to);
	notes_release(&notes);
	bool host = s->catalog->machine[0].kind == MACHINE_HOST;
	if (s->alone && host)
		fputs("No thread of the host is known to execute its vCPUs: time taken by the host is invisible and counts as "
		      "running.\n", s->to);
}

/* Collects the causes of the lost time. */
static void collect_causes(struct explanation *s)
{
	s->causes = (struct cause_list){ .catalog = s->catalog, .victim = s->target };
	for (size_t i = 0; i < s->f->entries; i++) {
		const struct flow_entry *e = &s->f->entry[i];
		const struct cause_interval interval = interval_of(s, e);
		s->unknown += e->actor.kind == FLOW_UNKNOWN ? e->duration : 0;
		if (e->lost)
			causes_add(&s->causes, &interval, e->lost, e->intervals);
	}
	causes_sort(&s->causes);
	s->main = causes_main(&s->causes, s->demand.ran + s->demand.lost);
	for (size_t i = 0; s->main && i < s->f->entries; i++) {
		const struct flow_entry *e = &s->f->entry[i];
		const struct cause_interval interval = interval_of(s, e);
		s->members += e->lost && cause_contains(&s->causes, s->main, &interval);
		if (actor_same(&e->actor, &s->main->longest.actor))
			s->main_entry = e;
	}
	s->machine = target_machine(s->catalog, &s->target);
	s->alone = catalog_lacks_host_trace(s->catalog, &s->target);
	catalog_target_text(s->catalog, &s->target, s->name, sizeof s->name);
}

/* Writes all sentences, starting with the largest delay. */
static int write_explanation(struct explanation *s, const char *opening, struct error *err)
{
	const bool sleeper = s->demand.slept > s->demand.lost;
	write_no_source(s);
	if (opening)
		fputs(opening, s->to);
	else
		write_doing(s);
	if (!opening && write_lifetime(s, err) < 0)
		return -1;
	if (sleeper && explain_waits(s, err) < 0)
		return -1;
	if (s->main) {
		write_main_cause(s);
		write_other_causes(s);
		if (explain_quota(s, err) < 0)
			return -1;
	} else {
		fprintf(s->to, "Nothing %sdelayed it while it was runnable.\n",
		        s->alone ? "that was recorded " : "");
	}
	if (!sleeper && explain_waits(s, err) < 0)
		return -1;
	if (explain_locks(s, err) < 0 || explain_cores(s, err) < 0)
		return -1;
	write_confidence(s);
	explain_next_steps(s);
	return 0;
}

static int explain_flow(const struct catalog *catalog, const struct target *target, const struct flow *f,
                        const char *opening, char **text, struct error *err)
{
	struct explanation s = { .catalog = catalog, .target = *target, .f = f,
	                        .delayed_waker = { .culprit = { .machine = -1 } } };
	size_t size = 0;
	int rc = demand_of(catalog, target, f->start, f->end, &s.demand, err);
	if (rc < 0)
		return -1;
	s.to = open_memstream(text, &size);
	if (!s.to)
		return error_system(err, NULL, "explain");
	collect_causes(&s);
	rc = write_explanation(&s, opening, err);
	causes_release(&s.causes);
	free(s.delayed_waker.actor_name);
	free(s.delayed_waker.culprit_name);
	if (fclose(s.to) != 0)
		rc = error_system(err, NULL, "explain");
	if (rc < 0) {
		free(*text);
		*text = NULL;
	}
	return rc;
}

/* Only a target that is runnable can be delayed. */
int explain_check_target(const struct catalog *catalog, const struct target *s, struct error *err)
{
	char name[NAME_TEXT];
	bool is_pcpu = s->kind == TARGET_CPU && catalog->machine[catalog->cpu[s->index].machine].kind != MACHINE_VM;
	if (s->kind != TARGET_MACHINE && !is_pcpu)
		return 0;
	return error_set(err, STATUS_USAGE, "name a vCPU or a thread", "%s: %s cannot be explained",
	                 catalog_target_text(catalog, s, name, sizeof name), is_pcpu ? "a physical CPU" : "a whole machine");
}

int explain_window(const struct catalog *catalog, const struct target *s, int64_t from, int64_t to, char **text,
                   struct error *err)
{
	struct flow f;
	*text = NULL;
	if (!s || s->kind == TARGET_MACHINE)
		return explain_machines(catalog, s, from, to, text, err);
	if (explain_check_target(catalog, s, err) < 0)
		return -1;
	if (flow_of(catalog, s, from, to, &(struct flow_options){ 0 }, &f, err) < 0)
		return -1;
	int status = explain_flow(catalog, s, &f, NULL, text, err);
	flow_release(&f);
	return status;
}

int explain_moment(const struct catalog *catalog, const struct target *s, int64_t t, struct gap *out, struct error *err)
{
	struct interval iv;
	uint32_t attr = status_attribute(catalog, s);
	int in_gap = gap_at(catalog, s, t, out, err);
	if (in_gap != 0)
		return in_gap;
	if (attr == HISTORY_NONE) {
		char name[NAME_TEXT];
		return error_set(err, STATUS_INPUT, NULL, "%s: no states were recorded",
		                 catalog_target_text(catalog, s, name, sizeof name));
	}
	if (history_stab(catalog->h, attr, t, &iv, err) < 0)
		return -1;
	*out = (struct gap){ .target = *s, .start = iv.start, .end = iv.end, .state = iv.value };
	return 0;
}

const char *target_state_name(const struct catalog *catalog, const struct target *s, int64_t state)
{
	uint32_t attr = status_attribute(catalog, s);
	if (state == HISTORY_NULL)
		return "not alive";
	if (attr == HISTORY_NONE || history_type(catalog->h, attr) != HISTORY_STATE || state < 0 ||
	    state >= (int64_t)history_state_count(catalog->h, attr))
		return "";
	return history_state_name(catalog->h, attr, (unsigned)state);
}

int explain_moment_text(const struct catalog *catalog, const struct gap *moment, const struct flow *f, char **text,
                        struct error *err)
{
	const struct target *s = &moment->target;
	char name[NAME_TEXT], state[64], at[TIME_TEXT], d[TIME_TEXT], bound[64];
	*text = NULL;
	text_escape(state, sizeof state, target_state_name(catalog, s, moment->state));
	char *opening = mem_printf("%s was %s for %s from %s%s.\n", catalog_target_text(catalog, s, name, sizeof name),
	                           *state ? state : "in use", time_duration(d, moment->end - moment->start + 1),
	                           time_clock(at, moment->start, 6), gap_bound_text(catalog, moment, bound));
	int status = explain_flow(catalog, s, f, opening, text, err);
	free(opening);
	return status;
}
