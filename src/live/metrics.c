/* Counters in the OpenMetrics text format. Labels are names: never a PID. The number of series is bounded: series beyond
 * METRICS_SERIES are added to one whose names are "other", so that the sums stay right. A series whose names have not
 * occurred for KEEP_NS is dropped: what ended leaves nothing behind. */
#include "base/base.h"
#include "live/live.h"

#define METRICS_SERIES 4096
#define LABELS 4
#define LABEL_SIZE LIVE_NAME

#define KEEP_NS (300 * NS_PER_S)     /* without a sample that contains the names */
#define LONGEST_NS (30 * NS_PER_S)   /* the longest wait is that of the last one to two of these times */

enum { FAMILY_VCPU, FAMILY_WAITS, FAMILY_PROCESS, FAMILY_PROCESS_WAITS, FAMILY_STOLEN, FAMILY_CONTENTION, FAMILY_SHARED,
       FAMILY_LONGEST, FAMILY_PROCESS_LONGEST, FAMILIES };

static const struct {
	const char *name, *unit, *help, *label[LABELS];
	bool is_gauge;
} family[FAMILIES] = {
	{ "stealscope_vcpu_seconds", "seconds", "Time of a vCPU by state.", { "machine", "vcpu", "state", NULL }, false },
	{ "stealscope_vcpu_waits", NULL, "Waits of a vCPU for a physical CPU that have ended.",
	  { "machine", "vcpu", NULL, NULL }, false },
	{ "stealscope_process_seconds", "seconds", "Time of the processes with a name in a control group, by state.",
	  { "group", "process", "state", NULL }, false },
	{ "stealscope_process_waits", NULL, "Waits of these processes for a CPU that have ended.",
	  { "group", "process", NULL, NULL }, false },
	{ "stealscope_stolen_seconds", "seconds", "Time that a culprit had the CPU of a waiting vCPU or process.",
	  { "machine", "kind", "culprit", NULL }, false },
	{ "stealscope_contention_seconds", "seconds",
	  "Time that a group or VM waited while other groups had its CPU; its own quota and its own threads do not count.",
	  { "group", NULL, NULL, NULL }, false },
	{ "stealscope_shared_core_seconds", "seconds", "Time that a vCPU ran while the other CPU of its core was busy.",
	  { "machine", "vcpu", NULL, NULL }, false },
	{ "stealscope_vcpu_longest_wait_seconds", "seconds", "Longest wait of a vCPU in the last 30 to 60 s.",
	  { "machine", "vcpu", NULL, NULL }, true },
	{ "stealscope_process_longest_wait_seconds", "seconds", "Longest wait of these processes in the last 30 to 60 s.",
	  { "group", "process", NULL, NULL }, true },
};

struct live_series {
	int family;
	char label[LABELS][LABEL_SIZE];
	uint64_t value;            /* ns, or a count; of a gauge: since the last turn */
	uint64_t before;           /* of a gauge: between the last two turns */
	int64_t seen;              /* end of the last sample that contains the names, ns */
};

struct live_metrics {
	struct live_series *series;
	size_t len, cap;
	struct map by_hash;        /* hash of family and labels -> 1 + index */
	uint64_t periods;
	int64_t now, turn;         /* end of the last sample, and of the last turn of gauges, since the first sample, ns */
	double cost_ns;
	bool has_bpf, has_flight, flight_runs;
};

struct live_metrics *live_metrics_new(void)
{
	return mem_new(1, sizeof(struct live_metrics));
}

void live_metrics_free(struct live_metrics *m)
{
	if (m) {
		free(m->series);
		map_release(&m->by_hash);
	}
	free(m);
}

static uint64_t hash_of(const struct live_series *s)
{
	uint64_t h = 0xcbf29ce484222325u + (uint64_t)s->family;
	for (int i = 0; i < LABELS; i++)
		for (const char *c = s->label[i]; ; c++) {
			h = (h ^ (unsigned char)*c) * 0x100000001b3u;
			if (!*c)
				break;
		}
	return h;
}

static bool same_names(const struct live_series *a, const struct live_series *b)
{
	return a->family == b->family && memcmp(a->label, b->label, sizeof a->label) == 0;
}

/* Returns the series with the names of `want`; NULL: there is none, and no place for it. */
static struct live_series *find_series(struct live_metrics *m, const struct live_series *want, size_t limit)
{
	for (uint64_t hash = hash_of(want);; hash++) {
		bool is_new;
		uint64_t *at = map_put(&m->by_hash, hash, &is_new);
		if (is_new && m->len >= limit) {
			map_remove(&m->by_hash, hash);
			return NULL;
		}
		if (is_new) {
			*at = 1 + m->len;
			*ARRAY_PUSH(m->series, m->len, m->cap) = *want;
		}
		if (same_names(&m->series[*at - 1], want))
			return &m->series[*at - 1];
	}
}

static void add_to(struct live_metrics *m, struct live_series *s, int64_t value)
{
	const uint64_t n = value > 0 ? (uint64_t)value : 0;
	s->seen = m->now;
	if (family[s->family].is_gauge)
		s->value = n > s->value ? n : s->value;
	else
		s->value += n;
}

static void count(struct live_metrics *m, int kind, const char *const label[LABELS], int64_t value)
{
	struct live_series want = { .family = kind };
	const bool is_new = value > 0 || kind == FAMILY_VCPU;  /* a series begins with a time */
	for (int i = 0; i < LABELS && family[kind].label[i]; i++)
		text_cut(want.label[i], LABEL_SIZE, label[i]);
	struct live_series *s = find_series(m, &want, is_new ? METRICS_SERIES : 0);
	if (!s && !is_new)
		return;
	if (!s) {
		memset(want.label, 0, sizeof want.label);
		for (int i = 0; i < LABELS && family[kind].label[i]; i++)
			snprintf(want.label[i], LABEL_SIZE, "%s", strcmp(family[kind].label[i], "state") == 0 ? label[i] : "other");
		s = find_series(m, &want, SIZE_MAX);
	}
	add_to(m, s, value);
}

/* Drops the series of what has ended, and turns the gauges. */
static void drop_ended(struct live_metrics *m)
{
	const bool turn = m->now - m->turn >= LONGEST_NS;
	size_t kept = 0;
	for (size_t i = 0; i < m->len; i++) {
		struct live_series s = m->series[i];
		if (m->now - s.seen > KEEP_NS)
			continue;
		if (turn && family[s.family].is_gauge) {
			s.before = s.value;
			s.value = 0;
		}
		m->series[kept++] = s;
	}
	m->turn = turn ? m->now : m->turn;
	if (kept == m->len)
		return;
	m->len = 0;
	map_release(&m->by_hash);
	m->by_hash = (struct map)MAP_INIT;
	for (size_t i = 0; i < kept; i++) {
		const struct live_series s = m->series[i];
		*find_series(m, &s, SIZE_MAX) = s;
	}
}

/* Writes the name of a culprit without its PID, which would be a new series for each process. */
static const char *name_culprit(char buf[LIVE_NAME], const struct live_culprit *c)
{
	const char *space = strncmp(c->name, "host/", 5) == 0 ? strchr(c->name, ' ') : NULL;
	snprintf(buf, LIVE_NAME, "%s", c->machine[0] ? c->machine : space ? space + 1 : c->name);
	if (c->kind == LIVE_KERNEL)
		buf[strcspn(buf, "/:")] = '\0';  /* "kworker/0:1H", "ksoftirqd/1" */
	return buf;
}

static void add_vcpu(struct live_metrics *m, const struct live_vcpu *v)
{
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
	count(m, FAMILY_LONGEST, (const char *const[LABELS]){ v->machine, number }, v->longest);
}

static void add_process(struct live_metrics *m, const struct live_sample *s, const struct live_vcpu *v)
{
	const struct live_group *g = &s->group[v->group];
	char name[LIVE_NAME];
	snprintf(name, sizeof name, "%s", v->machine);
	if (g->kind == LIVE_KERNEL_THREADS)
		name[strcspn(name, "/:")] = '\0';
	const struct { const char *state; int64_t ns; } part[] = {
		{ "ran", v->ns.ran }, { "stolen", v->ns.stolen }, { "throttled", v->ns.throttled },
	};
	for (size_t k = 0; k < sizeof part / sizeof *part; k++)
		count(m, FAMILY_PROCESS, (const char *const[LABELS]){ g->name, name, part[k].state }, part[k].ns);
	count(m, FAMILY_PROCESS_WAITS, (const char *const[LABELS]){ g->name, name }, (int64_t)v->waits);
	count(m, FAMILY_PROCESS_LONGEST, (const char *const[LABELS]){ g->name, name }, v->longest);
}

void live_metrics_add(struct live_metrics *m, const struct live_sample *s)
{
	m->now += s->period;
	for (size_t i = 0; i < s->vcpus; i++) {
		if (s->vcpu[i].number >= 0)
			add_vcpu(m, &s->vcpu[i]);
		else
			add_process(m, s, &s->vcpu[i]);
	}
	for (size_t i = 0; i < s->pairs; i++) {
		const struct live_culprit *c = &s->culprit[s->pair[i].culprit];
		const struct live_vcpu *v = &s->vcpu[s->pair[i].vcpu];
		const char *victim = v->number >= 0 || !s->groups ? v->machine : s->group[v->group].name;
		char name[LIVE_NAME];
		count(m, FAMILY_STOLEN, (const char *const[LABELS]){ victim, live_kind_name[c->kind], name_culprit(name, c) },
		      s->pair[i].ns);
		if (c->kind <= LIVE_KERNEL && c->group != v->group)
			count(m, FAMILY_CONTENTION, (const char *const[LABELS]){ victim }, s->pair[i].ns);
	}
	drop_ended(m);
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
	const bool is_gauge = family[kind].is_gauge;
	fprintf(f, "# TYPE %s %s\n", family[kind].name, is_gauge ? "gauge" : "counter");
	if (family[kind].unit)
		fprintf(f, "# UNIT %s %s\n", family[kind].name, family[kind].unit);
	fprintf(f, "# HELP %s %s\n", family[kind].name, family[kind].help);
	for (size_t i = 0; i < m->len; i++) {
		const struct live_series *s = &m->series[i];
		if (s->family != kind)
			continue;
		const uint64_t value = is_gauge && s->before > s->value ? s->before : s->value;
		fprintf(f, "%s%s", family[kind].name, is_gauge ? "" : "_total");
		for (int k = 0; k < LABELS && family[kind].label[k]; k++)
			write_label(f, family[kind].label[k], s->label[k], k == 0);
		if (family[kind].unit)
			fprintf(f, "} %llu.%09llu\n", (unsigned long long)(value / 1000000000),
			        (unsigned long long)(value % 1000000000));
		else
			fprintf(f, "} %llu\n", (unsigned long long)value);
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
