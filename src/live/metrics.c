/* Counters in the OpenMetrics text format. The number of series is bounded: series beyond METRICS_SERIES are added to one
 * whose names are "other", so that the sums stay right. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/text.h"
#include "live/live.h"

#define METRICS_SERIES 4096
#define LABELS 4
#define LABEL_SIZE LIVE_NAME

enum { FAMILY_VCPU, FAMILY_WAITS, FAMILY_STOLEN, FAMILY_SHARED, FAMILIES };

static const struct {
	const char *name, *unit, *help, *label[LABELS];
} family[FAMILIES] = {
	{ "stealscope_vcpu_seconds", "seconds", "Time of a vCPU by state.", { "machine", "vcpu", "state", NULL } },
	{ "stealscope_vcpu_waits", NULL, "Waits of a vCPU for a physical CPU that have ended.",
	  { "machine", "vcpu", NULL, NULL } },
	{ "stealscope_stolen_seconds", "seconds", "Time that a culprit had the physical CPU of a waiting vCPU.",
	  { "machine", "kind", "culprit", NULL } },
	{ "stealscope_shared_core_seconds", "seconds", "Time that a vCPU ran while the other CPU of its core was busy.",
	  { "machine", "vcpu", NULL, NULL } },
};

struct live_series {
	int family;
	char label[LABELS][LABEL_SIZE];
	uint64_t value;  /* ns, or a count */
};

struct live_metrics {
	struct live_series *series;
	size_t len, cap;
	uint64_t periods;
	double cost_ns;
	bool has_bpf, has_flight, flight_runs;
};

struct live_metrics *live_metrics_new(void)
{
	return mem_new(1, sizeof(struct live_metrics));
}

void live_metrics_free(struct live_metrics *m)
{
	if (m)
		free(m->series);
	free(m);
}

static void count(struct live_metrics *m, int kind, const char *const label[LABELS], int64_t value)
{
	struct live_series want = { .family = kind };
	const bool full = m->len >= METRICS_SERIES;
	if (value <= 0 && kind != FAMILY_VCPU)
		return;
	for (int i = 0; i < LABELS && family[kind].label[i]; i++)
		text_cut(want.label[i], LABEL_SIZE, label[i]);
	for (int pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < m->len; i++) {
			struct live_series *s = &m->series[i];
			if (s->family == kind && memcmp(s->label, want.label, sizeof want.label) == 0) {
				s->value += value > 0 ? (uint64_t)value : 0;
				return;
			}
		}
		if (!full || pass)
			break;
		memset(want.label, 0, sizeof want.label);
		for (int i = 0; i < LABELS && family[kind].label[i]; i++)
			snprintf(want.label[i], LABEL_SIZE, "%s", strcmp(family[kind].label[i], "state") == 0 ? label[i] : "other");
	}
	want.value = value > 0 ? (uint64_t)value : 0;
	*ARRAY_PUSH(m->series, m->len, m->cap) = want;
}

/* Returns the name of a culprit without its PID, which would be a new series for each process. */
static const char *label_of_culprit(const struct live_culprit *c)
{
	const char *space = strchr(c->name, ' ');
	if (c->machine[0])
		return c->machine;
	return (c->kind == LIVE_PROCESS || c->kind == LIVE_KERNEL) && space ? space + 1 : c->name;
}

void live_metrics_add(struct live_metrics *m, const struct live_sample *s)
{
	for (size_t i = 0; i < s->vcpus; i++) {
		const struct live_vcpu *v = &s->vcpu[i];
		char number[16];
		snprintf(number, sizeof number, "%d", v->number);
		const struct { const char *state; int64_t ns; } part[] = {
			{ "ran", v->ns.ran }, { "stolen", v->ns.stolen }, { "throttled", v->ns.throttled }, { "paused", v->ns.paused },
			{ "blocked", v->ns.blocked }, { "unknown", v->ns.unknown },
		};
		for (size_t k = 0; k < sizeof part / sizeof *part; k++)
			count(m, FAMILY_VCPU, (const char *const[LABELS]){ v->machine, number, part[k].state }, part[k].ns);
		count(m, FAMILY_WAITS, (const char *const[LABELS]){ v->machine, number }, (int64_t)v->waits);
		count(m, FAMILY_SHARED, (const char *const[LABELS]){ v->machine, number }, v->shared);
	}
	for (size_t i = 0; i < s->pairs; i++) {
		const struct live_culprit *c = &s->culprit[s->pair[i].culprit];
		count(m, FAMILY_STOLEN, (const char *const[LABELS]){ s->vcpu[s->pair[i].vcpu].machine, live_kind_name[c->kind],
		      label_of_culprit(c) }, s->pair[i].ns);
	}
	m->periods++;
	m->cost_ns = s->cost_ns;
	m->has_bpf = s->has_bpf;
}

void live_metrics_set_flight(struct live_metrics *m, bool runs)
{
	m->has_flight = true;
	m->flight_runs = runs;
}

static void write_label(FILE *f, const char *name, const char *value, bool is_first)
{
	fprintf(f, "%s%s=\"", is_first ? "{" : ",", name);
	for (; *value; value++) {
		if (*value == '\\' || *value == '"')
			fputc('\\', f);
		fputc(*value == '\n' ? ' ' : *value, f);
	}
	fputc('"', f);
}

static void write_family(FILE *f, const struct live_metrics *m, int kind)
{
	fprintf(f, "# TYPE %s counter\n", family[kind].name);
	if (family[kind].unit)
		fprintf(f, "# UNIT %s %s\n", family[kind].name, family[kind].unit);
	fprintf(f, "# HELP %s %s\n", family[kind].name, family[kind].help);
	for (size_t i = 0; i < m->len; i++) {
		const struct live_series *s = &m->series[i];
		if (s->family != kind)
			continue;
		fprintf(f, "%s_total", family[kind].name);
		for (int k = 0; k < LABELS && family[kind].label[k]; k++)
			write_label(f, family[kind].label[k], s->label[k], k == 0);
		if (family[kind].unit)
			fprintf(f, "} %llu.%09llu\n", (unsigned long long)(s->value / 1000000000),
			        (unsigned long long)(s->value % 1000000000));
		else
			fprintf(f, "} %llu\n", (unsigned long long)s->value);
	}
}

char *live_metrics_text(const struct live_metrics *m, size_t *len)
{
	char *text = NULL;
	*len = 0;
	FILE *f = open_memstream(&text, len);
	if (!f)
		return NULL;
	for (int i = 0; i < FAMILIES; i++)
		write_family(f, m, i);
	fputs("# TYPE stealscope_periods counter\n# HELP stealscope_periods Periods collected since the start.\n", f);
	fprintf(f, "stealscope_periods_total %llu\n", (unsigned long long)m->periods);
	fputs("# TYPE stealscope_bpf gauge\n"
	      "# HELP stealscope_bpf 1: exact sums by BPF; 0: schedstat, culprits are lower bounds.\n", f);
	fprintf(f, "stealscope_bpf %d\n", m->has_bpf);
	if (m->has_flight)
		fprintf(f, "# TYPE stealscope_flight gauge\n# HELP stealscope_flight 1: the flight recording of --trigger runs.\n"
		           "stealscope_flight %d\n", m->flight_runs);
	fputs("# TYPE stealscope_switch_cost_seconds gauge\n# UNIT stealscope_switch_cost_seconds seconds\n"
	      "# HELP stealscope_switch_cost_seconds Cost of the collector per context switch.\n", f);
	fprintf(f, "stealscope_switch_cost_seconds %.9f\n# EOF\n", m->cost_ns / 1e9);
	fclose(f);
	return text;
}
