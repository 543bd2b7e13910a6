/* Sink openmetrics: writes the metrics of a run to a file for the textfile collector of node_exporter (Prometheus). The
 * file appears when it is complete. */
#include "base/atomic_file.h"
#include "base/base.h"
#include "base/strtab.h"
#include "export/sink.h"

/* Upper bounds of the buckets of the gap histogram, ns: 1, 2, 5, ... from 10 us to 10 s. */
static const int64_t bound[] = {
	10000, 20000, 50000, 100000, 200000, 500000, 1000000, 2000000, 5000000, 10000000, 20000000, 50000000, 100000000,
	200000000, 500000000, 1000000000, 2000000000, 5000000000, 10000000000,
};
#define BOUNDS (sizeof bound / sizeof *bound)

struct histogram { int64_t count[BOUNDS + 1], sum; };

struct steal_pair { uint32_t victim, culprit; int64_t ns; };

struct sink {
	struct save save;
	const struct export_shape *table;
	struct strtab names;          /* machines and culprit kinds */
	struct map pair_by_names;     /* victim << 32 | culprit (name ids) -> index in `pair` */
	struct steal_pair *pair;
	size_t pairs, pair_cap;
	struct histogram *gaps;       /* by id of the victim's name */
	size_t histograms, histogram_cap;
	char *text;                   /* metrics of the tables clock, loss and run, which follow in the file */
	size_t text_size;
	FILE *out;                    /* writes to `text` */
};

static struct sink *open_metrics(const char *target, const struct sink_run *run, struct error *err)
{
	struct sink *s = mem_new(1, sizeof *s);
	(void)run;
	if (atomic_file_begin(&s->save, target, err)) {
		free(s);
		return NULL;
	}
	strtab_init(&s->names);
	s->out = open_memstream(&s->text, &s->text_size);
	if (s->out)
		return s;
	error_system(err, NULL, "%s", target);
	atomic_file_end(&s->save, -1, err);
	strtab_release(&s->names);
	free(s);
	return NULL;
}

static void put_label(FILE *f, const char *name, const char *value)
{
	fprintf(f, "%s=\"", name);
	for (; *value; value++) {
		if (*value == '"' || *value == '\\')
			putc('\\', f);
		putc(*value, f);
	}
	putc('"', f);
}

static void put_seconds(FILE *f, int64_t ns)
{
	fprintf(f, " %" PRId64 ".%09" PRId64 "\n", ns / 1000000000, ns % 1000000000);
}

static void put_family(FILE *f, const char *name, const char *type, const char *unit, const char *help)
{
	fprintf(f, "# TYPE stealscope_%s %s\n", name, type);
	if (unit)
		fprintf(f, "# UNIT stealscope_%s %s\n", name, unit);
	fprintf(f, "# HELP stealscope_%s %s\n", name, help);
}

/* ---- Rows */

static void add_gap(struct sink *s, const struct table_cell *c)
{
	if (!c[COL_GAP_OF_MACHINE].number)
		return;
	uint32_t id = strtab_put(&s->names, c[COL_GAP_MACHINE].text);
	while (s->histograms <= id)
		*ARRAY_PUSH(s->gaps, s->histograms, s->histogram_cap) = (struct histogram){ { 0 }, 0 };
	int64_t ns = c[COL_GAP_DURATION].number;
	size_t i = 0;
	while (i < BOUNDS && ns > bound[i])
		i++;
	s->gaps[id].count[i]++;
	s->gaps[id].sum += ns;
}

static void add_steal(struct sink *s, const struct table_cell *c)
{
	if (!c[COL_STEAL_OF_MACHINE].number)
		return;
	bool is_new, no_machine = c[COL_STEAL_CULPRIT_MACHINE].absent;
	uint32_t victim = strtab_put(&s->names, c[COL_STEAL_MACHINE].text);
	uint32_t culprit = strtab_put(&s->names, c[no_machine ? COL_STEAL_KIND : COL_STEAL_CULPRIT_MACHINE].text);
	uint64_t *at = map_put(&s->pair_by_names, (uint64_t)victim << 32 | culprit, &is_new);
	if (is_new) {
		*at = s->pairs;
		*ARRAY_PUSH(s->pair, s->pairs, s->pair_cap) = (struct steal_pair){ victim, culprit, 0 };
	}
	s->pair[*at].ns += c[COL_STEAL_NS].number;
}

/* Writes the largest error bound of a clock segment; NaN if one of its bounds is unknown. */
static void put_clock(struct sink *s, const struct table_cell *c)
{
	int64_t widest = -1;
	for (size_t i = COL_CLOCK_BAND_START; i <= COL_CLOCK_BAND_END; i++) {
		if (c[i].absent)
			widest = INT64_MAX;
		else if (c[i].number > widest)
			widest = c[i].number;
	}
	fputs("stealscope_clock_band_seconds{", s->out);
	put_label(s->out, "machine", c[COL_CLOCK_MACHINE].text);
	fprintf(s->out, ",from=\"%" PRId64 "\",", c[COL_CLOCK_FROM].number);
	put_label(s->out, "quality", c[COL_CLOCK_QUALITY].text);
	putc('}', s->out);
	if (widest == INT64_MAX)
		fputs(" NaN\n", s->out);
	else
		put_seconds(s->out, widest);
}

static void put_loss(struct sink *s, const struct table_cell *c)
{
	fputs("stealscope_lost_events_total{", s->out);
	put_label(s->out, "machine", c[COL_LOSS_MACHINE].text);
	fprintf(s->out, ",uuid=\"%s\"} %" PRId64 "\n", c[COL_LOSS_UUID].text, c[COL_LOSS_LOST].number);
}

static void put_run(struct sink *s, const struct table_cell *c)
{
	put_family(s->out, "run_start_time_seconds", "gauge", "seconds", "Start of the recording.");
	fputs("stealscope_run_start_time_seconds", s->out);
	put_seconds(s->out, c[COL_RUN_STARTED].number);
	put_family(s->out, "run_duration_seconds", "gauge", "seconds", "Length of the recording.");
	fputs("stealscope_run_duration_seconds", s->out);
	put_seconds(s->out, c[COL_RUN_SPAN].number);
}

static int metrics_begin(struct sink *s, const struct export_shape *t, struct error *err)
{
	(void)err;
	s->table = t;
	if (table_code(t) == TABLE_CLOCK)
		put_family(s->out, "clock_band_seconds", "gauge", "seconds",
		           "Error bound of a guest's clock (largest of the segment); NaN: unknown.");
	if (table_code(t) == TABLE_LOSS)
		put_family(s->out, "lost_events", "counter", NULL, "Events that a tracer lost.");
	return 0;
}

static int metrics_row(struct sink *s, const struct table_cell *c, struct error *err)
{
	static void (*const take[TABLE_COUNT])(struct sink *, const struct table_cell *) = {
		[TABLE_GAP] = add_gap, [TABLE_STEAL] = add_steal, [TABLE_CLOCK] = put_clock, [TABLE_LOSS] = put_loss,
		[TABLE_RUN] = put_run,
	};
	(void)err;
	take[table_code(s->table)](s, c);
	return 0;
}

static int metrics_end(struct sink *s, struct error *err)
{
	(void)s;
	(void)err;
	return 0;
}

/* ---- The file */

static void write_steal(struct sink *s)
{
	FILE *f = s->save.f;
	put_family(f, "steal_seconds", "counter", "seconds",
	           "CPU time lost by a machine, by culprit; a VM is the sum of its vCPUs.");
	for (size_t i = 0; i < s->pairs; i++) {
		fputs("stealscope_steal_seconds_total{", f);
		put_label(f, "victim", strtab_get(&s->names, s->pair[i].victim));
		putc(',', f);
		put_label(f, "culprit", strtab_get(&s->names, s->pair[i].culprit));
		putc('}', f);
		put_seconds(f, s->pair[i].ns);
	}
}

static void write_histogram(FILE *f, const char *machine, const struct histogram *h)
{
	int64_t below = 0;
	for (size_t i = 0; i <= BOUNDS; i++) {
		below += h->count[i];
		fputs("stealscope_gap_seconds_bucket{", f);
		put_label(f, "victim", machine);
		if (i < BOUNDS)
			fprintf(f, ",le=\"%g\"} %" PRId64 "\n", (double)bound[i] / 1e9, below);
		else
			fprintf(f, ",le=\"+Inf\"} %" PRId64 "\n", below);
	}
	fputs("stealscope_gap_seconds_sum{", f);
	put_label(f, "victim", machine);
	putc('}', f);
	put_seconds(f, h->sum);
	fputs("stealscope_gap_seconds_count{", f);
	put_label(f, "victim", machine);
	fprintf(f, "} %" PRId64 "\n", below);
}

static void write_gaps(struct sink *s)
{
	put_family(s->save.f, "gap_seconds", "histogram", "seconds", "Gaps: intervals in which the victim was runnable and did "
		"not run.");
	for (size_t i = 0; i < s->histograms; i++)
		if (s->gaps[i].sum > 0)
			write_histogram(s->save.f, strtab_get(&s->names, (uint32_t)i), &s->gaps[i]);
}

static int close_metrics(struct sink *s, int status, struct error *err)
{
	if (fclose(s->out) != 0 && status == 0)
		status = error_system(err, NULL, "%s", s->save.path);
	if (status == 0) {
		write_steal(s);
		write_gaps(s);
		fwrite(s->text, 1, s->text_size, s->save.f);
		fputs("# EOF\n", s->save.f);
	}
	status = atomic_file_end(&s->save, status, err);
	strtab_release(&s->names);
	map_release(&s->pair_by_names);
	free(s->pair);
	free(s->gaps);
	free(s->text);
	free(s);
	return status;
}

const struct sink_ops sink_metrics = {
	TABLE_BIT(TABLE_GAP) | TABLE_BIT(TABLE_STEAL) | TABLE_BIT(TABLE_CLOCK) | TABLE_BIT(TABLE_LOSS) | TABLE_BIT(TABLE_RUN),
	open_metrics, metrics_begin, metrics_row, metrics_end, close_metrics,
};
