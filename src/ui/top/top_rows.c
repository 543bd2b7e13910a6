/* Rows and the sentence of `stealscope top`, made from a sample. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "base/timefmt.h"
#include "ui/top/top.h"

#define IDLE_SHARE 0.001   /* a vCPU with less of each is idle */
#define UNFOLD_SHARE 0.10  /* VMs whose worst vCPU lost more are unfolded */
#define HEALTHY_SHARE 0.05

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
	const char *kind = v->number >= 0 ? "vCPU" : with_machine ? "" : "TID ";
	snprintf(all, sizeof all, "%s%s%s%d", with_machine ? v->machine : "", with_machine ? "/" : "", kind,
	         v->number >= 0 ? v->number : v->tid);
	text_cut(name, size, all);
}

static struct top_row row_of_vcpu(const struct live_sample *s, size_t i, bool with_machine)
{
	const struct live_vcpu *v = &s->vcpu[i];
	struct top_row r = { .vcpu = (int32_t)i, .culprit = -1, .cpu = v->cpu, .top = v->top, .longest = v->longest };
	name_vcpu(r.name, sizeof r.name, v, with_machine);
	r.run = share(v->ns.ran, s->period);
	r.steal = share(v->ns.stolen, s->period);
	r.throttled = share(v->ns.throttled, s->period);
	r.pause = share(v->ns.paused, s->period);
	r.vmm = v->vmm < 0 ? -1 : share(v->vmm, s->period);
	r.worst = r.steal + r.throttled;
	r.top_share = v->ns.stolen > 0 ? fmin(1, (double)v->top_ns / (double)v->ns.stolen) : 0;
	if (v->ns.throttled > v->ns.stolen)
		r.top = -1;
	return r;
}

/* Sums the vCPUs of the machine of vCPU `first`. */
static struct top_row row_of_machine(const struct live_sample *s, size_t first)
{
	struct top_row m = row_of_vcpu(s, first, false);
	const char *name = s->vcpu[first].machine;
	double worst = m.worst;
	snprintf(m.name, sizeof m.name, "%s", name);
	m.is_machine = true;
	m.vcpus = 1;
	m.cpu = -1;
	for (size_t i = first + 1; i < s->vcpus; i++) {
		if (strcmp(s->vcpu[i].machine, name) != 0)
			continue;
		const struct top_row r = row_of_vcpu(s, i, false);
		m.vcpus++;
		m.run += r.run;
		m.steal += r.steal;
		m.throttled += r.throttled;
		m.pause += r.pause;
		m.vmm = m.vmm < 0 ? r.vmm : m.vmm + fmax(r.vmm, 0);
		m.longest = r.longest > m.longest ? r.longest : m.longest;
		if (r.worst > worst) {
			worst = r.worst;
			m.vcpu = r.vcpu;
			m.top = r.top;
			m.top_share = r.top_share;
		}
	}
	m.worst = worst;
	m.steal /= m.vcpus;
	m.throttled /= m.vcpus;
	m.pause /= m.vcpus;
	m.vmm = m.vmm < 0 ? -1 : m.vmm / m.vcpus;
	return m;
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

/* Sorts rows [from, rows) by insertion: stable, and the number of rows is small. */
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
	const bool idle = r->run < IDLE_SHARE && r->worst < IDLE_SHARE;
	if ((idle && !t->show_idle) || (t->filter[0] && !strstr(r->name, t->filter)))
		return;
	*ARRAY_PUSH(t->row, t->rows, t->rows_cap) = *r;
}

static bool is_first_of_machine(const struct live_sample *s, size_t i)
{
	for (size_t k = 0; k < i; k++)
		if (strcmp(s->vcpu[k].machine, s->vcpu[i].machine) == 0)
			return false;
	return true;
}

static void add_machines(struct top *t, const struct live_sample *s)
{
	for (size_t i = 0; i < s->vcpus; i++) {
		if (!is_first_of_machine(s, i))
			continue;
		const struct top_row m = row_of_machine(s, i);
		add_row(t, &m);
	}
	sort_rows(t, 0);
	const size_t machines = t->rows;
	struct top_row *machine = mem_new(machines + 1, sizeof *machine);
	memcpy(machine, t->row, machines * sizeof *machine);
	t->rows = 0;
	for (size_t m = 0; m < machines; m++) {
		*ARRAY_PUSH(t->row, t->rows, t->rows_cap) = machine[m];
		const size_t from = t->rows;
		for (size_t i = 0; i < s->vcpus && machine[m].worst > UNFOLD_SHARE; i++) {
			if (strcmp(s->vcpu[i].machine, machine[m].name) != 0)
				continue;
			struct top_row r = row_of_vcpu(s, i, false);
			char name[sizeof r.name + 2];
			snprintf(name, sizeof name, "  %s", r.name);
			text_cut(r.name, sizeof r.name, name);
			*ARRAY_PUSH(t->row, t->rows, t->rows_cap) = r;
		}
		sort_rows(t, from);
	}
	free(machine);
}

static void add_culprits(struct top *t, const struct live_sample *s)
{
	for (size_t i = 0; i < s->culprits; i++) {
		const struct live_culprit *c = &s->culprit[i];
		if (c->took <= 0 || (t->filter[0] && !strstr(c->name, t->filter)))
			continue;
		struct top_row r = { .vcpu = -1, .culprit = (int32_t)i, .cpu = -1, .top = -1, .vmm = -1 };
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
		struct top_row r = { .vcpu = -1, .culprit = -1, .cpu = (int32_t)i, .top = s->cpu[i].top[0], .vmm = -1 };
		snprintf(r.name, sizeof r.name, "CPU%zu", i);
		r.run = share(s->cpu[i].busy, s->period);
		r.steal = share(s->cpu[i].stolen, s->period);
		r.top_share = fmin(1, share(s->cpu[i].top_ns[0], s->period));
		*ARRAY_PUSH(t->row, t->rows, t->rows_cap) = r;
	}
}

void top_make_rows(struct top *t)
{
	const struct live_sample *s = top_shown(t);
	t->rows = 0;
	if (!s)
		return;
	if (t->view == TOP_VMS) {
		add_machines(t, s);
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
	for (size_t i = 0; t->selected[0] && i < t->rows; i++)
		if (strcmp(t->row[i].name, t->selected) == 0)
			t->cursor = i;
	t->selected[0] = '\0';
	const size_t all = t->rows + top_listed(t);
	if (t->cursor >= all)
		t->cursor = all ? all - 1 : 0;
}

static void guest_sentence(const struct live_sample *s, char *buf, size_t size)
{
	int64_t stolen = 0;
	for (size_t i = 0; i < s->cpus; i++)
		stolen += s->cpu[i].stolen;
	const double part = share(stolen, s->period * (int64_t)s->cpus);
	snprintf(buf, size, "no VM runs here; the host of this machine took %.1f %% of its CPU time%s", 100 * part,
	         part > HEALTHY_SHARE ? ": ask the provider, or run stealscope on the host" : "");
}

void top_sentence(const struct live_sample *s, char *buf, size_t size)
{
	struct top_row worst = { .vcpu = -1 };
	if (s->is_guest) {
		guest_sentence(s, buf, size);
		return;
	}
	for (size_t i = 0; i < s->vcpus; i++) {
		const struct top_row r = row_of_vcpu(s, i, true);
		if (worst.vcpu < 0 || r.worst > worst.worst)
			worst = r;
	}
	if (worst.vcpu < 0 || worst.worst <= HEALTHY_SHARE) {
		snprintf(buf, size, "no vCPU waits more than 5 %%");
		return;
	}
	char text[TIME_TEXT];
	const struct live_vcpu *v = &s->vcpu[worst.vcpu];
	if (worst.throttled > worst.steal)
		snprintf(buf, size, "%s was throttled %.0f %% of the time by its CPU quota", worst.name, 100 * worst.throttled);
	else if (v->top < 0 || (!s->has_bpf && s->culprit[v->top].kind == LIVE_NOBODY))
		snprintf(buf, size, "%s waited %.0f %% of the time; without BPF the culprit is unknown", worst.name,
		         100 * worst.steal);
	else if (s->culprit[v->top].inferred)
		snprintf(buf, size, "%s waited %.0f %% for CPU%d; at least %.0f %% of it for %s", worst.name, 100 * worst.steal,
		         v->cpu, 100 * worst.top_share, s->culprit[v->top].name);
	else
		snprintf(buf, size, "%s waited %.0f %% for CPU%d (longest %s); %.0f %% of it for %s", worst.name, 100 * worst.steal,
		         v->cpu, time_duration(text, v->longest), 100 * worst.top_share, s->culprit[v->top].name);
}
