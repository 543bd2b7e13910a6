/* The flow as text, like the paper's Fig. 14: system > thread, duration, share (Eq. 3) and a bar lane.
 *
 * A lane cell is a stretch of the window; its mark tells how much of it the row had, computed from every interval:
 * the letter of the kind for at least half, ':' for at least a tenth, ',' for less.  Waiting is a group of its own,
 * since it is nobody's taking.  Cost: one pass over the intervals; memory: lanes of the printed rows. */
#include "flow/flow_private.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/int128.h"
#include "base/mem.h"
#include "base/text.h"
#include "base/timefmt.h"

#define NARROWEST 60
#define LABEL_TEXT 600

static const char letters[FLOW_KIND_COUNT] = { '#', '!', '%', 'i', '-', '.', '?' };

enum { GROUP_WAITING = -2, GROUP_IDLE = -3, GROUP_UNKNOWN = -4 };

struct row {
	const struct flow_entry *entry;  /* NULL: a group */
	int32_t group;
	int64_t duration;
	uint32_t lane;                   /* index of its lane */
	uint8_t kind;                    /* whose letter the lane shows */
};

struct page {
	const struct topo *topo;
	const struct flow *f;
	FILE *to;
	struct row *row;
	size_t rows, row_cap;
	int64_t *lane;                   /* ns per cell; lanes of `cells` each */
	int width, cells, label;         /* columns */
	size_t left_out;
	int64_t left_out_ns;
};

static int32_t group_of(int32_t system, uint8_t kind)
{
	return kind == FLOW_WAITING ? GROUP_WAITING : kind == FLOW_IDLE_CPU ? GROUP_IDLE :
	       kind == FLOW_UNKNOWN ? GROUP_UNKNOWN : system;
}

static int by_duration(const void *a, const void *b)
{
	const struct row *x = a, *y = b;
	if (x->duration != y->duration)
		return x->duration < y->duration ? 1 : -1;
	return (x->group < y->group) - (x->group > y->group);
}

static size_t find_group(const struct row *group, size_t groups, int32_t id)
{
	size_t g = 0;
	while (g < groups && group[g].group != id)
		g++;
	return g;
}

/* Groups by their time, each with its printed entries behind it. */
static void lay_out(struct page *p, double threshold)
{
	const struct flow *f = p->f;
	struct row *group = NULL;
	size_t groups = 0, cap = 0;
	for (size_t i = 0; i < f->entries; i++) {
		const struct flow_entry *e = &f->entry[i];
		int32_t id = group_of(e->system, e->kind);
		size_t g = find_group(group, groups, id);
		if (g == groups)
			*ARRAY_PUSH(group, groups, cap) = (struct row){ .group = id, .kind = e->kind };
		group[g].duration += e->duration;
	}
	if (groups)
		qsort(group, groups, sizeof *group, by_duration);
	double span = (double)(f->end - f->start) + 1;
	for (size_t g = 0; g < groups; g++) {
		if ((double)group[g].duration / span >= threshold)
			*ARRAY_PUSH(p->row, p->rows, p->row_cap) = group[g];
		for (size_t i = 0; i < f->entries; i++) {
			const struct flow_entry *e = &f->entry[i];
			if (group_of(e->system, e->kind) != group[g].group)
				continue;
			if (e->share < threshold) {
				p->left_out++;
				p->left_out_ns += e->duration;
			} else {
				*ARRAY_PUSH(p->row, p->rows, p->row_cap) = (struct row){ .entry = e,
					.group = group[g].group, .duration = e->duration, .kind = e->kind };
			}
		}
	}
	free(group);
}

static int64_t cell_start(const struct page *p, int cell)
{
	int128 span = (int128)p->f->end - p->f->start + 1;
	return p->f->start + (int64_t)(span * cell / p->cells);
}

/* Adds [start, end] to a lane. */
static void paint(const struct page *p, uint32_t lane, int64_t start, int64_t end)
{
	int128 span = (int128)p->f->end - p->f->start + 1;
	int cell = (int)(((int128)start - p->f->start) * p->cells / span);
	if (cell + 1 < p->cells && start >= cell_start(p, cell + 1))
		cell++;
	for (; start <= end && cell < p->cells; cell++) {
		int64_t last = cell + 1 < p->cells ? cell_start(p, cell + 1) - 1 : p->f->end;
		if (last > end)
			last = end;
		if (last >= start)
			p->lane[(size_t)lane * (size_t)p->cells + (size_t)cell] += last - start + 1;
		start = last + 1;
	}
}

static uint64_t row_hash(int32_t system, int32_t tid, uint32_t name, uint8_t kind)
{
	uint64_t h = (uint64_t)(uint32_t)tid << 32 | name;
	h = (h ^ (uint64_t)(uint32_t)system << 8 ^ kind) * 0x9E3779B97F4A7C15ULL;
	return h ^ h >> 31;
}

static bool row_is(const struct row *r, const struct flow_interval *iv)
{
	return r->entry && r->entry->system == iv->system && r->entry->tid == iv->tid && r->entry->name == iv->name &&
	       r->entry->kind == iv->kind;
}

/* The printed row of every group, NULL where none is, by group - GROUP_UNKNOWN. */
static struct row **find_group_rows(struct page *p)
{
	struct row **group = mem_new(p->topo->machines + 4 + 1, sizeof *group);
	for (size_t i = 0; i < p->rows; i++)
		if (!p->row[i].entry)
			group[p->row[i].group - GROUP_UNKNOWN] = &p->row[i];
	return group;
}

static void paint_all(struct page *p)
{
	struct map by_key = MAP_INIT;
	struct row **group = find_group_rows(p);
	for (size_t i = 0; i < p->rows; i++) {
		struct row *r = &p->row[i];
		r->lane = (uint32_t)i;
		if (!r->entry)
			continue;
		uint64_t key = row_hash(r->entry->system, r->entry->tid, r->entry->name, r->entry->kind);
		while (map_find(&by_key, key))
			key++;
		*map_put(&by_key, key, NULL) = i;
	}
	p->lane = mem_new(p->rows * (size_t)p->cells, sizeof *p->lane);
	for (size_t i = 0; i < p->f->intervals; i++) {
		const struct flow_interval *iv = &p->f->interval[i];
		uint64_t key = row_hash(iv->system, iv->tid, iv->name, iv->kind), *at;
		while ((at = map_find(&by_key, key)) && !row_is(&p->row[*at], iv))
			key++;
		if (at)
			paint(p, p->row[*at].lane, iv->start, iv->end);
		const struct row *g = group[group_of(iv->system, iv->kind) - GROUP_UNKNOWN];
		if (g)
			paint(p, g->lane, iv->start, iv->end);
	}
	map_release(&by_key);
	free(group);
}

static void row_label(const struct page *p, const struct row *r, char *buf, size_t size)
{
	const struct flow_entry *e = r->entry;
	char name[256];
	if (!e) {
		text_escape(buf, size, r->group >= 0 ? p->topo->machine[r->group].name :
		            r->group == GROUP_WAITING ? "waiting, until woken by" :
		            r->group == GROUP_IDLE ? "idle CPU" : r->group == GROUP_UNKNOWN ? "unknown (events lost)" : "?");
		return;
	}
	text_escape(name, sizeof name, p->f->name[e->name]);
	if (e->kind == FLOW_WAITING && e->system < 0)
		snprintf(buf, size, "%s", *name ? name : "nobody seen");
	else if (e->kind == FLOW_WAITING)
		flow_party_text(p->topo, e->system, e->tid, p->f->name[e->name], FLOW_PREEMPTING, buf, size);
	else if (e->tid >= 0)
		snprintf(buf, size, "%" PRId32 "%s%s%s", e->tid, *name ? " " : "", name,
		         e->kind == FLOW_HYPERVISOR ? " (hypervisor)" : "");
	else
		snprintf(buf, size, "%s%s", name, e->kind == FLOW_HYPERVISOR ? " (hypervisor)" :
		         e->kind == FLOW_IRQ ? " (interrupt)" : "");
}

static const char *share_text(char buf[16], double share)
{
	if (share > 0 && share < 0.0005)
		snprintf(buf, 16, "<0.1%%");
	else
		snprintf(buf, 16, "%.1f%%", 100 * share);
	return buf;
}

static void print_row(const struct page *p, const struct row *r)
{
	char label[LABEL_TEXT], duration[TIME_TEXT], share[16];
	int indent = r->entry ? 2 : 0;
	row_label(p, r, label, sizeof label);
	size_t fit = text_fit(label, p->label - indent);
	int pad = p->label - indent;
	label[fit] = '\0';
	pad -= text_width(label);
	fprintf(p->to, "%*s%s%*s%10s %6s |", indent, "", label, pad, "", time_duration(duration, r->duration),
	        share_text(share, (double)r->duration / ((double)(p->f->end - p->f->start) + 1)));
	for (int c = 0; c < p->cells; c++) {
		int64_t ns = p->lane[(size_t)r->lane * (size_t)p->cells + (size_t)c];
		int64_t span = (c + 1 < p->cells ? cell_start(p, c + 1) : p->f->end + 1) - cell_start(p, c);
		fputc(ns == 0 ? ' ' : 2 * (double)ns >= (double)span ? letters[r->kind] :
		      10 * (double)ns >= (double)span ? ':' : ',', p->to);
	}
	fputs("|\n", p->to);
}

/* Idle and lost time have no threads to list below them. */
static bool is_repetition(const struct page *p, const struct row *r)
{
	return r->entry && (r->group == GROUP_IDLE || r->group == GROUP_UNKNOWN) && !*p->f->name[r->entry->name];
}

static void print_summary(const struct page *p, const struct subject *s)
{
	int64_t by_kind[FLOW_KIND_COUNT] = { 0 };
	char subject[LABEL_TEXT], from[TIME_TEXT], to[TIME_TEXT], d[TIME_TEXT];
	const struct flow *f = p->f;
	for (size_t i = 0; i < f->entries; i++)
		by_kind[f->entry[i].kind] += f->entry[i].duration;
	fprintf(p->to, "execution flow of %s\n", topo_subject_text(p->topo, s, subject, sizeof subject));
	fprintf(p->to, "%s .. %s (%s), %zu entries\n", time_date(from, f->start, 9), time_clock(to, f->end, 9),
	        time_duration(d, f->end - f->start + 1), f->entries);
	int column = 0;
	for (int k = 0; k < FLOW_KIND_COUNT; k++) {
		char share[16], item[64];
		if (!by_kind[k])
			continue;
		int n = snprintf(item, sizeof item, "%s %s", flow_kind_name[k],
		                 share_text(share, (double)by_kind[k] / ((double)(f->end - f->start) + 1)));
		const char *between = column == 0 ? "" : column + 3 + n > p->width ? ",\n" : ", ";
		column = (*between == ',' && between[1] == ' ' ? column + 2 : 0) + n;
		fprintf(p->to, "%s%s", between, item);
	}
	fputs("\n\n", p->to);
}

/* "05:30:48.350837765   1.31 ms  CPU1  preempting  host/216 burnP6".  The kind has said what the hypervisor and those
 * who wake are for. */
static void print_intervals(const struct page *p)
{
	char party[LABEL_TEXT], at[TIME_TEXT], d[TIME_TEXT];
	fputs("\n", p->to);
	for (size_t i = 0; i < p->f->intervals; i++) {
		const struct flow_interval *iv = &p->f->interval[i];
		char cpu[16] = "";
		bool of_thread = iv->system >= 0 && (iv->kind == FLOW_HYPERVISOR || iv->kind == FLOW_WAITING);
		flow_party_text(p->topo, iv->system, iv->tid, p->f->name[iv->name],
		                of_thread ? FLOW_PREEMPTING : (enum flow_kind)iv->kind, party, sizeof party);
		if (iv->pcpu >= 0)
			snprintf(cpu, sizeof cpu, "CPU%d", iv->pcpu);
		int used = fprintf(p->to, "%s %9s  %-6s%-10s  ", time_clock(at, iv->start, 9),
		                   time_duration(d, iv->end - iv->start + 1), cpu, flow_kind_name[iv->kind]);
		party[text_fit(party, p->width - used)] = '\0';
		fprintf(p->to, "%s\n", party);
	}
}

static void print_left_out(const struct page *p, double threshold)
{
	char d[TIME_TEXT], share[16];
	if (p->left_out)
		fprintf(p->to, "left out: %zu %s below %g %% each, together %s (%s)\n", p->left_out,
		        p->left_out == 1 ? "entry" : "entries", 100 * threshold,
		        time_duration(d, p->left_out_ns),
		        share_text(share, (double)p->left_out_ns / ((double)(p->f->end - p->f->start) + 1)));
}

int flow_write_text(const struct topo *topo, const struct flow *f, const struct subject *s,
                    const struct flow_text *options, FILE *to, struct error *err)
{
	struct page p = { .topo = topo, .f = f, .to = to };
	int width = options->width > 0 ? options->width : 80;
	if (width < NARROWEST)
		width = NARROWEST;
	p.width = width;
	p.cells = width / 3;
	p.label = width - p.cells - 2 - 19;
	lay_out(&p, options->threshold);
	paint_all(&p);
	for (size_t i = 0; i < options->headers; i++)
		fprintf(to, "%s\n", options->header[i]);
	print_summary(&p, s);
	for (size_t i = 0; i < p.rows; i++)
		if (!is_repetition(&p, &p.row[i]))
			print_row(&p, &p.row[i]);
	print_left_out(&p, options->threshold);
	if (options->intervals)
		print_intervals(&p);
	free(p.row);
	free(p.lane);
	if (fflush(to) != 0 || ferror(to))
		return error_system(err, "make room or choose another place", "writing the flow");
	return 0;
}
