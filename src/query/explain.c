/* Explains a flow in plain sentences, one per line: the activity of the target, its delays, the confidence, and the next
 * steps.
 *
 * All numbers come from the flow of the window; actor_text() and catalog_target_text() escape all names. */
#include "query/explain.h"

#include "base/base.h"

#define NAMED_MAX 3      /* findings after the first one */

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
	if (s->findings->item[0].kind == FINDING_NOTHING) {
		fprintf(s->to, "%s, %s .. %s.\n", s->name, time_date(at, s->f->start, 6),
		        time_end(to, s->f->start, s->f->end, 6));
		return;
	}
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

static uint32_t status_attribute(const struct catalog *catalog, const struct target *target)
{
	if (target->kind == TARGET_THREAD)
		return catalog->thread[target->index].status;
	const struct catalog_cpu *cpu = &catalog->cpu[target->index];
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

/* Writes what delayed the target: the findings. */
static void write_findings(struct explanation *s)
{
	const struct findings *l = s->findings;
	const struct finding *first = &l->item[0];
	char d[TIME_TEXT], cpu[24] = "";
	if (finding_is_healthy(first) && s->demand.lost == 0) {
		fputs("Nothing delayed it while it was runnable.\n", s->to);
		return;
	}
	if (s->main_entry && s->main == first && s->main_entry->longest.pcpu >= 0)
		snprintf(cpu, sizeof cpu, " on CPU%d", s->main_entry->longest.pcpu);
	if (*first->command)
		fprintf(s->to, "Main delay%s: %.*s, in %" PRIu64 " interval%s, longest %s%s (stealscope %s).\n",
		        s->slept_for && first->kind != FINDING_CHAIN ? " while runnable" : "", (int)first->main_bytes, first->text,
		        first->intervals, first->intervals == 1 ? "" : "s",
		        time_duration(d, first->moment.end - first->moment.start + 1), cpu, first->command);
	else
		fprintf(s->to, "Verdict: %s.\n", first->text);
	for (size_t i = 1; i < l->len && i <= NAMED_MAX; i++)
		fprintf(s->to, "%s%s", i == 1 ? "Further delays: " : "; ", l->item[i].text);
	if (l->len > 1)
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
	const struct finding *first = &s->findings->item[0];
	warnings_of(s->catalog, &s->target, s->f->start, s->f->end, &notes);
	const bool says_nothing = first->kind == FINDING_NOTHING;
	if (s->unknown)
		fprintf(s->to, "Confidence: %s; %s is unknown and has no culprit: events are missing or %s",
		        says_nothing ? "unknown" : "reduced", explanation_amount(s, s->unknown, a),
		        untraced ? "ambiguous" : "contradict each other");
	else if (says_nothing)
		fputs("Confidence: unknown", s->to);
	else
		fprintf(s->to, "Confidence: %s; nothing is unknown%s",
		        notes.len || s->alone || first->inferred ? "reduced" : "high", s->alone ? " inside the guest" : "");
	if (untraced)
		fputs("; the guest was not traced: whether a vCPU was runnable while off the CPU is inferred from its VM exits",
		      s->to);
	else if (m->kind == MACHINE_VM)
		write_clock_error(s, &notes);
	const size_t begin = notes.len && note_code_hides_steal(notes.item[0].code);
	for (size_t i = begin; i < notes.len; i++)
		fprintf(s->to, "%s%s", i > begin ? "; " : ".\nHowever: ", note_text(&notes.item[i], text));
	fputs(".\n", s->to);
	notes_release(&notes);
	bool host = s->catalog->machine[0].kind == MACHINE_HOST;
	if (s->alone && host)
		fputs("No thread of the host is known to execute its vCPUs: time taken by the host is invisible and counts as "
		      "running.\n", s->to);
}

/* Returns the actor of the flow that is the culprit in the moment of a finding; NULL: none. */
static const struct flow_entry *entry_of(const struct flow *f, const struct moment *m)
{
	const struct flow_entry *found = NULL;
	for (size_t i = 0; i < f->entries && m->end >= m->start; i++) {
		const struct flow_entry *e = &f->entry[i];
		if (e->lost && e->actor.kind == m->culprit.kind && e->actor.reason == m->culprit.reason &&
		    same_thread(&e->actor, &m->culprit) && (!found || e->longest.start == m->start))
			found = e;
	}
	return found;
}

static void find_main_entry(struct explanation *s)
{
	for (size_t i = 0; i < s->f->entries; i++)
		s->unknown += s->f->entry[i].actor.kind == FLOW_UNKNOWN ? s->f->entry[i].duration : 0;
	for (size_t i = 0; i < s->findings->len && !s->main_entry; i++) {
		s->main = &s->findings->item[i];
		s->main_entry = entry_of(s->f, &s->main->moment);
	}
}

/* Writes all sentences, starting with the largest delay. */
static int write_explanation(struct explanation *s, const char *opening, struct error *err)
{
	const bool sleeper = s->demand.slept > s->demand.lost, says_nothing = s->findings->item[0].kind == FINDING_NOTHING;
	write_no_source(s);
	if (opening)
		fputs(opening, s->to);
	else
		write_doing(s);
	if (!opening && write_lifetime(s, err) < 0)
		return -1;
	if (sleeper && !says_nothing && explain_waits(s, err) < 0)
		return -1;
	write_findings(s);
	if (s->main_entry && explain_quota(s, err) < 0)
		return -1;
	if (!sleeper && !says_nothing && explain_waits(s, err) < 0)
		return -1;
	if (explain_locks(s, err) < 0 || (!says_nothing && explain_cores(s, err) < 0))
		return -1;
	write_confidence(s);
	explain_next_steps(s);
	return 0;
}

static int explain_flow(const struct catalog *catalog, const struct target *target, const struct flow *f,
                        const struct findings *l, const char *opening, char **text, struct error *err)
{
	struct explanation s = { .catalog = catalog, .target = *target, .f = f, .findings = l,
		.machine = target_machine(catalog, target), .alone = catalog_lacks_host_trace(catalog, target) };
	size_t size = 0;
	int rc = demand_of(catalog, target, f->start, f->end, &s.demand, err);
	if (rc < 0)
		return -1;
	s.to = open_memstream(text, &size);
	if (!s.to)
		return error_system(err, NULL, "explain");
	catalog_target_text(catalog, target, s.name, sizeof s.name);
	find_main_entry(&s);
	rc = write_explanation(&s, opening, err);
	if (fclose(s.to) != 0)
		rc = error_system(err, NULL, "explain");
	if (rc < 0) {
		free(*text);
		*text = NULL;
	}
	return rc;
}

/* Only a target that is runnable can be delayed. */
int explain_check_target(const struct catalog *catalog, const struct target *target, struct error *err)
{
	char name[NAME_TEXT];
	bool is_pcpu = target->kind == TARGET_CPU && catalog->machine[catalog->cpu[target->index].machine].kind != MACHINE_VM;
	if (target->kind != TARGET_MACHINE && !is_pcpu)
		return 0;
	return error_set(err, STATUS_USAGE, "name a vCPU or a thread", "%s: %s cannot be explained",
	                 catalog_target_text(catalog, target, name, sizeof name),
	                 is_pcpu ? "a physical CPU" : "a whole machine");
}

int explain_window(const struct catalog *catalog, const struct target *target, int64_t from, int64_t to, char **text,
                   struct error *err)
{
	struct flow f;
	struct findings l = { 0 };
	*text = NULL;
	if (!target || target->kind == TARGET_MACHINE)
		return explain_machines(catalog, target, from, to, text, err);
	if (explain_check_target(catalog, target, err) < 0)
		return -1;
	if (query_answer(flow_open(catalog, target, from, to, &(struct flow_options){ 0 }, err), &f, err) < 0)
		return -1;
	int status = query_answer(findings_open(catalog, target, f.start, f.end), &l, err);
	if (status == 0)
		status = explain_flow(catalog, target, &f, &l, NULL, text, err);
	findings_release(&l);
	flow_release(&f);
	return status;
}

int explain_moment(const struct catalog *catalog, const struct target *target, int64_t t, struct gap *out,
                   struct error *err)
{
	struct interval iv;
	uint32_t attr = status_attribute(catalog, target);
	int in_gap = gap_at(catalog, target, t, out, err);
	if (in_gap != 0)
		return in_gap;
	if (attr == HISTORY_NONE) {
		char name[NAME_TEXT];
		return error_set(err, STATUS_INPUT, NULL, "%s: no states were recorded",
		                 catalog_target_text(catalog, target, name, sizeof name));
	}
	if (history_stab(catalog->h, attr, t, &iv, err) < 0)
		return -1;
	*out = (struct gap){ .target = *target, .start = iv.start, .end = iv.end, .state = iv.value };
	return 0;
}

const char *target_state_name(const struct catalog *catalog, const struct target *target, int64_t state)
{
	uint32_t attr = status_attribute(catalog, target);
	if (state == HISTORY_NULL)
		return "not alive";
	if (attr == HISTORY_NONE || history_type(catalog->h, attr) != HISTORY_STATE || state < 0 ||
	    state >= (int64_t)history_state_count(catalog->h, attr))
		return "";
	return history_state_name(catalog->h, attr, (unsigned)state);
}

int explain_moment_text(const struct catalog *catalog, const struct gap *moment, const struct flow *f,
                        const struct findings *l, char **text, struct error *err)
{
	const struct target *target = &moment->target;
	char name[NAME_TEXT], state[64], at[TIME_TEXT], d[TIME_TEXT], bound[64];
	*text = NULL;
	text_escape(state, sizeof state, target_state_name(catalog, target, moment->state));
	char *opening = mem_printf("%s was %s for %s from %s%s.\n", catalog_target_text(catalog, target, name, sizeof name),
	                           *state ? state : "in use", time_duration(d, moment->end - moment->start + 1),
	                           time_clock(at, moment->start, 6), gap_bound_text(catalog, moment, bound));
	int status = explain_flow(catalog, target, f, l, opening, text, err);
	free(opening);
	return status;
}
