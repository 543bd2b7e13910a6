/* Rows and the sentence of `stealscope top`, made from a sample. */
#include <math.h>

#include "base/base.h"
#include "query/query.h"
#include "ui/top/top.h"

#define IDLE_SHARE 0.001   /* a vCPU with less of each is idle */
#define UNFOLD_SHARE 0.10  /* VMs whose worst vCPU lost more are unfolded */
#define MEMBER_SHARE 0.01  /* processes with less of each are hidden in their group */

const struct live_sample *top_shown(const struct top *t)
{
	if (!t->samples)
		return NULL;
	return &t->sample[(t->newest + TOP_SAMPLES - t->back) % TOP_SAMPLES];
}

const struct live_sample *top_before(const struct top *t, size_t back)
{
	if (t->back + back >= t->samples)
		return NULL;
	return &t->sample[(t->newest + 2 * TOP_SAMPLES - t->back - back) % TOP_SAMPLES];
}

static double share(int64_t ns, int64_t period)
{
	return period > 0 && ns > 0 ? (double)ns / (double)period : 0;
}

static void name_vcpu(char *name, size_t size, const struct live_vcpu *v, bool with_machine)
{
	char all[LIVE_NAME + 32];
	if (v->number >= 0)
		snprintf(all, sizeof all, "%s%svCPU%d", with_machine ? v->machine : "", with_machine ? "/" : "", v->number);
	else
		snprintf(all, sizeof all, "%d %s", v->tid, v->machine);
	text_cut(name, size, all);
}

static struct top_row row_of_vcpu(const struct live_sample *s, size_t i, bool with_machine)
{
	const struct live_vcpu *v = &s->vcpu[i];
	struct top_row r = { .vcpu = (int32_t)i, .culprit = -1, .group = -1, .cpu = v->cpu, .top = v->top,
		                 .longest = v->longest };
	name_vcpu(r.name, sizeof r.name, v, with_machine);
	r.run = share(v->ns.ran, v->period);
	r.steal = share(v->ns.stolen, v->period);
	r.throttled = share(v->ns.throttled, v->period);
	r.pause = share(v->ns.paused, v->period);
	r.vmm = v->vmm < 0 ? -1 : share(v->vmm, v->period);
	r.unknown = share(v->ns.unknown, v->period);
	r.worst = r.steal + r.throttled;
	r.top_share = v->ns.stolen > 0 ? fmin(1, (double)v->top_ns / (double)v->ns.stolen) : 0;
	if (v->ns.throttled > v->ns.stolen)
		r.top = -1;
	return r;
}

static void add_to_group(struct top_row *m, const struct top_row *r)
{
	m->vcpus++;
	m->run += r->run;
	m->steal += r->steal;
	m->throttled += r->throttled;
	m->pause += r->pause;
	m->vmm = m->vmm < 0 ? r->vmm : m->vmm + fmax(r->vmm, 0);
	m->longest = r->longest > m->longest ? r->longest : m->longest;
	m->unknown = fmax(m->unknown, r->unknown);
	if (m->vcpu < 0 || r->worst > m->worst) {
		m->worst = r->worst;
		m->vcpu = r->vcpu;
		m->top = r->top;
		m->top_share = r->top_share;
	}
}

/* Returns a row for each group of the sample; the caller frees. A VM's mean does not count its VMM. */
static struct top_row *rows_of_groups(const struct live_sample *s)
{
	struct top_row *group = mem_new(s->groups + 1, sizeof *group);
	for (size_t i = 0; i < s->groups; i++) {
		group[i] = (struct top_row){ .vcpu = -1, .culprit = -1, .cpu = -1, .top = -1, .vmm = -1, .group = (int32_t)i };
		snprintf(group[i].name, sizeof group[i].name, "%s", s->group[i].name);
	}
	for (size_t i = 0; i < s->vcpus; i++) {
		const struct top_row r = row_of_vcpu(s, i, false);
		if (s->group[s->vcpu[i].group].kind != LIVE_VM || s->vcpu[i].number >= 0)
			add_to_group(&group[s->vcpu[i].group], &r);
	}
	for (size_t i = 0; i < s->groups; i++) {
		struct top_row *m = &group[i];
		if (s->group[i].kind != LIVE_VM || !m->vcpus)
			continue;
		m->steal /= m->vcpus;
		m->throttled /= m->vcpus;
		m->pause /= m->vcpus;
		m->vmm = m->vmm < 0 ? -1 : m->vmm / m->vcpus;
	}
	return group;
}

void top_row_id(const struct top *t, const struct top_row *r, char *buf, size_t size)
{
	const struct live_sample *s = top_shown(t);
	if (r->group >= 0)
		snprintf(buf, size, "group %s", r->name);
	else if (r->culprit >= 0)
		snprintf(buf, size, "culprit %d %.80s", s->culprit[r->culprit].pid, r->name);
	else if (r->vcpu >= 0)
		snprintf(buf, size, "thread %d", s->vcpu[r->vcpu].tid);
	else
		snprintf(buf, size, "%s", r->name);
}

void top_follow(struct top *t)
{
	t->selected[0] = '\0';
	if (t->cursor < t->rows)
		top_row_id(t, &t->row[t->cursor], t->selected, sizeof t->selected);
}

static double sort_key(const struct top_row *r, enum top_sort sort)
{
	switch (sort) {
	case SORT_STEAL: return r->steal + 1e-6 * r->run;
	case SORT_RUN: return r->run;
	case SORT_THROTTLED: return r->throttled;
	case SORT_LONGEST: return (double)r->longest;
	case SORT_NAME: case SORTS: break;
	}
	return 0;
}

/* Sorts rows [from, rows) by insertion: stable, and the row count is small. */
static void sort_rows(struct top *t, size_t from)
{
	for (size_t i = from + 1; i < t->rows; i++) {
		const struct top_row r = t->row[i];
		size_t k = i;
		for (; k > from; k--) {
			const double a = sort_key(&t->row[k - 1], t->sort), b = sort_key(&r, t->sort);
			const bool before = t->sort == SORT_NAME ? strcmp(r.name, t->row[k - 1].name) < 0 : b > a;
			const bool after = t->sort == SORT_NAME ? strcmp(r.name, t->row[k - 1].name) > 0 : b < a;
			if (t->inverted ? !after : !before)
				break;
			t->row[k] = t->row[k - 1];
		}
		t->row[k] = r;
	}
}

static void add_row(struct top *t, const struct top_row *r)
{
	const bool idle = r->run < IDLE_SHARE && r->worst < IDLE_SHARE && r->unknown <= FINDING_LIMIT;
	if ((idle && !t->show_idle) || (t->filter[0] && !strstr(r->name, t->filter)))
		return;
	*ARRAY_PUSH(t->row, t->rows, t->rows_cap) = *r;
}

/* Adds the rows of a group below its own. Of a large group only those that ran or waited for a percent. */
static void add_members(struct top *t, const struct live_sample *s, const struct top_row *group)
{
	const size_t from = t->rows;
	for (size_t i = 0; i < s->vcpus && group->worst > UNFOLD_SHARE; i++) {
		struct top_row r = row_of_vcpu(s, i, false);
		if (s->vcpu[i].group != group->group || (r.run < MEMBER_SHARE && r.worst < MEMBER_SHARE && s->vcpu[i].number < 0))
			continue;
		*ARRAY_PUSH(t->row, t->rows, t->rows_cap) = r;
	}
	sort_rows(t, from);
}

static void add_groups(struct top *t, const struct live_sample *s)
{
	struct top_row *group = rows_of_groups(s);
	for (size_t i = 0; i < s->groups; i++)
		add_row(t, &group[i]);
	sort_rows(t, 0);
	const size_t groups = t->rows;
	memcpy(group, t->row, groups * sizeof *group);
	t->rows = 0;
	for (size_t m = 0; m < groups; m++) {
		*ARRAY_PUSH(t->row, t->rows, t->rows_cap) = group[m];
		add_members(t, s, &group[m]);
	}
	free(group);
}

static void add_culprits(struct top *t, const struct live_sample *s)
{
	for (size_t i = 0; i < s->culprits; i++) {
		const struct live_culprit *c = &s->culprit[i];
		if (c->took <= 0 || (t->filter[0] && !strstr(c->name, t->filter)))
			continue;
		struct top_row r = { .vcpu = -1, .group = -1, .culprit = (int32_t)i, .cpu = -1, .top = -1, .vmm = -1 };
		snprintf(r.name, sizeof r.name, "%s", c->name);
		r.run = share(c->ran, s->period);
		r.steal = share(c->took, s->period);
		for (size_t k = 0; k < s->pairs && r.vcpu < 0; k++)
			r.vcpu = s->pair[k].culprit == (int32_t)i ? s->pair[k].vcpu : -1;
		*ARRAY_PUSH(t->row, t->rows, t->rows_cap) = r;
	}
	sort_rows(t, 0);
}

static void add_cpus(struct top *t, const struct live_sample *s)
{
	for (size_t i = 0; i < s->cpus; i++) {
		struct top_row r = { .vcpu = -1, .group = -1, .culprit = -1, .cpu = (int32_t)i, .top = s->cpu[i].top[0],
		                 .vmm = -1 };
		snprintf(r.name, sizeof r.name, "CPU%zu", i);
		r.run = share(s->cpu[i].busy, s->period);
		r.steal = share(s->cpu[i].stolen, s->period);
		r.top_share = fmin(1, share(s->cpu[i].top_ns[0], s->period));
		*ARRAY_PUSH(t->row, t->rows, t->rows_cap) = r;
	}
}

/* Moves the cursor to the row that it follows, or to the one that is wanted. */
static void find_cursor(struct top *t)
{
	const size_t all = t->rows + top_listed(t);
	bool found = false;
	for (size_t i = 0; t->wanted[0] && i < t->rows; i++) {
		if (strcmp(t->row[i].name, t->wanted) == 0) {
			t->cursor = i;
			top_follow(t);
		}
	}
	t->wanted[0] = '\0';
	for (size_t i = 0; t->selected[0] && i < t->rows && !found; i++) {
		char id[sizeof t->selected];
		top_row_id(t, &t->row[i], id, sizeof id);
		found = strcmp(id, t->selected) == 0;
		if (found)
			t->cursor = i;
	}
	if (t->selected[0] && !found) {
		snprintf(t->message, sizeof t->message, "the selected row has gone: it ended or is idle");
		t->selected[0] = '\0';
	}
	if (t->cursor >= all)
		t->cursor = all ? all - 1 : 0;
}

void top_make_rows(struct top *t)
{
	const struct live_sample *s = top_shown(t);
	t->rows = 0;
	if (!s)
		return;
	if (t->view == TOP_VMS) {
		add_groups(t, s);
	} else if (t->view == TOP_VCPUS) {
		for (size_t i = 0; i < s->vcpus; i++) {
			const struct top_row r = row_of_vcpu(s, i, true);
			add_row(t, &r);
		}
		sort_rows(t, 0);
	} else if (t->view == TOP_CPUS) {
		add_cpus(t, s);
	} else {
		add_culprits(t, s);
	}
	find_cursor(t);
}

/* What the host took, where that is much; otherwise "". */
static void add_host_share(const struct live_sample *s, char *buf, size_t size)
{
	int64_t stolen = 0;
	for (size_t i = 0; i < s->cpus; i++)
		stolen += s->cpu[i].stolen;
	const double part = share(stolen, s->period * (int64_t)s->cpus);
	const size_t used = strlen(buf);
	if (part > FINDING_LIMIT)
		snprintf(buf + used, size - used, "; the host of this machine took %.0f %% of its CPU time", 100 * part);
}

static void name_target(const struct live_sample *s, const struct live_vcpu *v, char *buf, size_t size)
{
	const struct live_group *g = &s->group[v->group];
	if (v->number >= 0)
		snprintf(buf, size, "%.80s/vCPU%d", v->machine, v->number);
	else if (strcmp(g->name, "/") == 0 || strcmp(g->name, v->machine) == 0)
		snprintf(buf, size, "%.80s (%d)", v->machine, v->tid);
	else
		snprintf(buf, size, "%.60s (%d of %.60s)", v->machine, v->tid, g->name);
}

/* Returns true by the rules of findings (doc/findings.md): it lost much of the time that it wanted to run, and wanted to
 * run for long enough or had one long wait. */
static bool is_victim(const struct live_sample *s, const struct live_vcpu *v)
{
	const int64_t lost = v->ns.stolen + v->ns.throttled, wanted = v->ns.ran + lost;
	return share(lost, wanted) > FINDING_LIMIT &&
	       (share(wanted, s->period) >= FINDING_WANTED_MIN || v->longest >= FINDING_WAIT_MIN);
}

bool top_sentence(const struct live_sample *s, char *buf, size_t size)
{
	struct top_row worst = { .vcpu = -1 }, unclear = { .vcpu = -1 };
	char name[LIVE_NAME * 2], text[TIME_TEXT];
	for (size_t i = 0; i < s->vcpus; i++) {
		const struct top_row r = row_of_vcpu(s, i, true);
		if (is_victim(s, &s->vcpu[i]) && (worst.vcpu < 0 || r.worst > worst.worst))
			worst = r;
		if (r.unknown > unclear.unknown)
			unclear = r;
	}
	if (worst.vcpu < 0 && unclear.unknown > FINDING_LIMIT) {
		name_target(s, &s->vcpu[unclear.vcpu], name, sizeof name);
		snprintf(buf, size, "what %s did in %.0f %% of the time is unknown", name, 100 * unclear.unknown);
		return false;
	}
	if (worst.vcpu < 0) {
		snprintf(buf, size, "no %s lost more than 5 %% of the time it wanted to run", s->is_guest ? "process" : "vCPU");
		add_host_share(s, buf, size);
		return false;
	}
	const struct live_vcpu *v = &s->vcpu[worst.vcpu];
	const int64_t wanted = v->ns.ran + v->ns.stolen + v->ns.throttled;
	const double waited = 100 * share(v->ns.stolen, wanted), by = 100 * worst.top_share;
	name_target(s, v, name, sizeof name);
	if (worst.throttled > worst.steal)
		snprintf(buf, size, "%s was throttled %.0f %% of the time it wanted to run by its own quota", name,
		         100 * share(v->ns.throttled, wanted));
	else if (v->top < 0 || (!s->has_bpf && s->culprit[v->top].kind == LIVE_NOBODY))
		snprintf(buf, size, "%s waited %.0f %% of the time it wanted to run; without BPF the culprit is unknown", name,
		         waited);
	else if (s->culprit[v->top].inferred)
		snprintf(buf, size, "%s waited %.0f %% of the time it wanted to run; at least %.0f %% of it for %s", name, waited,
		         by, s->culprit[v->top].name);
	else
		snprintf(buf, size, "%s waited %.0f %% of the time it wanted to run, %.0f %% of it for %s (longest %s)", name,
		         waited, by, s->culprit[v->top].name, time_duration(text, v->longest));
	add_host_share(s, buf, size);
	return true;
}
