/* What the provider took from a guest without a host trace, by the guest's steal clock: from the attributes "Out By" and
 * "Steal Bound" of its vCPUs. */
#include "base/base.h"
#include "query/explain.h"

#include <time.h>

#define PERIODS_MAX 4096
#define REQUEST_SHARE 0.001  /* smaller shares of the time of the vCPUs are not worth a request to the provider */

/* Gaps of one reason. */
struct taken { int64_t ns; uint64_t gaps; };

struct provider_sums {
	struct taken by[OUT_REASON_COUNT];
	struct taken all;
	struct interval longest;
	uint32_t longest_cpu;
	int64_t period[PERIODS_MAX];  /* distances of the ends of successive quota gaps of a vCPU, ns */
	double ran[PERIODS_MAX];      /* share of these distances in which the vCPU ran */
	size_t periods;
	int64_t bound;                /* error bound of the longest gap, ns */
};

static bool is_provider(unsigned reason)
{
	return reason >= OUT_PROVIDER && reason < OUT_VCPU_TAKEN;
}

static void add_gap(struct provider_sums *p, uint32_t cpu, const struct interval *iv, unsigned reason)
{
	const int64_t ns = iv->end - iv->start + 1;
	p->by[reason].ns += ns;
	p->by[reason].gaps++;
	p->all.ns += ns;
	p->all.gaps++;
	if (ns > p->longest.end - p->longest.start + 1) {
		p->longest = *iv;
		p->longest_cpu = cpu;
	}
}

static int sum_vcpu(const struct catalog *catalog, uint32_t cpu, int64_t from, int64_t to, struct provider_sums *p,
                    struct error *err)
{
	const struct catalog_cpu *c = &catalog->cpu[cpu];
	struct history_cursor cursor;
	struct interval iv;
	int64_t last = INT64_MIN;
	int got = 0;
	if (c->steal_bound == HISTORY_NONE || c->out_by == HISTORY_NONE)
		return 0;
	if (history_range(&cursor, catalog->h, c->out_by, from, to, err) < 0)
		return -1;
	while ((got = history_range_next(&cursor, &iv, err)) > 0) {
		const bool is_known = iv.value >= 0 && iv.value < HISTORY_STATES;
		const unsigned reason = is_known ? catalog->out_reason[iv.value] : OUT_REASON_COUNT;
		if (!is_provider(reason))
			continue;
		iv.start = iv.start < from ? from : iv.start;
		iv.end = iv.end > to ? to : iv.end;
		add_gap(p, cpu, &iv, reason);
		if (reason != OUT_PROVIDER_QUOTA)
			continue;
		if (last != INT64_MIN && p->periods < PERIODS_MAX && iv.start > last) {
			p->ran[p->periods] = (double)(iv.start - last) / (double)(iv.end - last);
			p->period[p->periods++] = iv.end - last;
		}
		last = iv.end;
	}
	if (got < 0 || p->longest_cpu != cpu || p->all.gaps == 0)
		return got;
	if (history_stab(catalog->h, c->steal_bound, p->longest.start, &iv, err) < 0)
		return -1;
	p->bound = iv.value == HISTORY_NULL ? 0 : iv.value;
	return 0;
}

static void write_reasons(FILE *to, struct provider_sums *p, unsigned vcpus)
{
	static const char *const reason[OUT_REASON_COUNT] = {
		[OUT_PROVIDER] = "for an unknown reason", [OUT_PROVIDER_QUOTA] = "by a CPU quota",
		[OUT_PROVIDER_PAUSE] = "while the VM was paused", [OUT_PROVIDER_MIGRATION] = "while the VM migrated",
		[OUT_PROVIDER_NEIGHBOUR] = "for a neighbour on the same CPU",
	};
	char d[TIME_TEXT];
	bool first = true;
	for (unsigned i = 0; i < OUT_REASON_COUNT; i++) {
		if (!reason[i] || !p->by[i].gaps)
			continue;
		fprintf(to, "%s%s %s in %" PRIu64 " gap%s", first ? ": " : "; ", time_duration(d, p->by[i].ns), reason[i],
		        p->by[i].gaps, p->by[i].gaps == 1 ? "" : "s");
		first = false;
		if (i != OUT_PROVIDER_QUOTA || p->periods == 0)
			continue;
		qsort(p->period, p->periods, sizeof *p->period, order_int64);
		qsort(p->ran, p->periods, sizeof *p->ran, order_double);
		fprintf(to, " (period %s", time_duration(d, p->period[p->periods / 2]));
		if (vcpus == 1)
			fprintf(to, ", limit %.0f to %.0f %% of a CPU", 100 * p->ran[p->periods / 10],
			        100 * p->ran[p->periods - 1 - p->periods / 10]);
		fputc(')', to);
	}
	fputs(".\n", to);
}

/* Writes a time in UTC, as providers log it; or a time since boot. */
static const char *utc_text(char buf[TIME_TEXT], int64_t t)
{
	const time_t s = (time_t)(t / 1000000000);
	struct tm tm;
	if (t < WALL_CLOCK_MIN)
		snprintf(buf, TIME_TEXT, "%" PRId64 ".%03d s", t / 1000000000, (int)(t % 1000000000 / 1000000));
	else if (!gmtime_r(&s, &tm) || !strftime(buf, TIME_TEXT, "%Y-%m-%d %H:%M:%S", &tm))
		snprintf(buf, TIME_TEXT, "%" PRId64, t);
	return buf;
}

/* Writes " (id 4c4c4544-...)": the identity of the machine at its provider; "" if it was not recorded. */
static const char *id_text(const struct catalog *catalog, uint32_t machine, char buf[NAME_TEXT])
{
	char path[600], id[NAME_TEXT - 16];
	struct interval iv;
	history_path(path, sizeof path, SCHEMA_VMS, catalog->machine[machine].name, machine_schema[MACHINE_VM_ID].name, NULL);
	const uint32_t attr = history_find(catalog->h, path);
	buf[0] = '\0';
	if (attr != HISTORY_NONE && history_type(catalog->h, attr) == HISTORY_STRING &&
	    history_stab(catalog->h, attr, history_last(catalog->h), &iv, NULL) == 0 && iv.value != HISTORY_NULL)
		snprintf(buf, NAME_TEXT, " (id %s)", text_escape(id, sizeof id, history_string(catalog->h, iv.value)));
	return buf;
}

static void write_request(FILE *to, const struct catalog *catalog, uint32_t machine, int64_t from, int64_t until,
                          const struct provider_sums *p)
{
	char name[NAME_TEXT], id[NAME_TEXT], a[TIME_TEXT], b[TIME_TEXT], c[TIME_TEXT], d[TIME_TEXT], e[TIME_TEXT];
	text_escape(name, sizeof name, catalog->machine[machine].name);
	fprintf(to, "Ask the provider: \"Our VM %s%s lost %s of CPU time between %s and %s (%s), longest %s from %s. ", name,
	        id_text(catalog, machine, id), time_duration(a, p->all.ns), utc_text(b, from), utc_text(c, until),
	        from < WALL_CLOCK_MIN ? "after its boot" : "UTC",
	        time_duration(d, p->longest.end - p->longest.start + 1), utc_text(e, p->longest.start));
	if (p->by[OUT_PROVIDER_QUOTA].gaps)
		fputs("Which CPU limit does it have? ", to);
	if (p->by[OUT_PROVIDER_PAUSE].gaps || p->by[OUT_PROVIDER_MIGRATION].gaps)
		fputs("Was it stopped or migrated then? ", to);
	if (p->by[OUT_PROVIDER_NEIGHBOUR].gaps || p->by[OUT_PROVIDER].gaps)
		fputs("What else ran on its CPUs, and how far are they overcommitted? ", to);
	fputs("Which host was it on?\"\n", to);
	if (from < WALL_CLOCK_MIN)
		fprintf(to, "The recording lacks the date: add the time at which %s booted (\"uptime -s\") to these times.\n",
		        name);
}

int explain_provider(FILE *to, const struct catalog *catalog, uint32_t machine, int64_t from, int64_t until,
                     struct error *err)
{
	const struct catalog_machine *m = &catalog->machine[machine];
	struct provider_sums *p = mem_new(1, sizeof *p);
	char d[TIME_TEXT], e[TIME_TEXT], command[ACTOR_TEXT];
	unsigned vcpus = 0;
	int status = 0;
	p->longest.end = -1;
	for (uint32_t i = 0; i < m->cpus && status == 0; i++) {
		vcpus += catalog->cpu[m->cpu + i].steal_bound != HISTORY_NONE;
		status = sum_vcpu(catalog, m->cpu + i, from, until, p, err);
	}
	if (status == 0 && vcpus && p->all.gaps == 0) {
		fputs("The provider took nothing, according to the guest's steal clock.\n", to);
	} else if (status == 0 && vcpus) {
		fprintf(to, "The provider took %s in %" PRIu64 " gap%s, according to the guest's steal clock",
		        time_duration(d, p->all.ns), p->all.gaps, p->all.gaps == 1 ? "" : "s");
		write_reasons(to, p, vcpus);
		fprintf(to, "Longest: %s (stealscope %s); it may have begun and ended up to %s earlier. Sums are as exact as the "
		        "counter.\n", time_duration(d, p->longest.end - p->longest.start + 1),
		        catalog_view_command(catalog, &(struct target){ TARGET_CPU, p->longest_cpu }, p->longest.start, command,
		                             sizeof command), time_duration(e, p->bound));
		if ((double)p->all.ns >= REQUEST_SHARE * vcpus * ((double)until - (double)from))
			write_request(to, catalog, machine, from, until, p);
	}
	free(p);
	return status;
}
