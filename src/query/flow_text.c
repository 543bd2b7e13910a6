/* The flow as text, like the paper's Fig. 14: machine > thread, duration, share (Eq. 3) and a bar lane.
 *
 * A lane cell is a part of the window. Its mark shows the row's share of that part: the letter of the kind for at least
 * 1/2, ':' for at least 1/10, ',' for less. Waiting is a separate group, because no machine takes that time. Cost: one
 * pass over the cells. Memory: the printed rows' lanes. */
#include "query/query_internal.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/order.h"
#include "base/text.h"
#include "base/timefmt.h"

#define WIDTH_MIN 60
#define LABEL_MAX 44
#define FIGURES 21        /* columns of duration and share, and of the lane's edges */
#define LABEL_TEXT 600

static const char letters[FLOW_KIND_COUNT] = { '#', '!', '%', 'i', '-', '.', '=', '?', '!' };

enum { GROUP_WAITING = -2, GROUP_IDLE = -3, GROUP_UNKNOWN = -4, GROUP_LIMITED = -5 };

struct lane_row {
	const struct flow_entry *entry;  /* NULL: a group */
	int32_t group;
	int64_t duration;
	uint32_t lane;                   /* the lane's index */
	uint32_t kind;                   /* kind whose letter the lane shows */
};

struct page {
	const struct catalog *catalog;
	const struct flow *f;
	FILE *to;
	struct lane_row *row;
	size_t rows, row_cap;
	int64_t *lane;                   /* time per cell, ns; one lane of `cells` cells after the other */
	int width, cells, label;         /* columns */
	size_t hidden_entries;
	int64_t hidden_ns;
};

static int32_t group_of(int32_t system, uint32_t kind)
{
	return kind == FLOW_WAITING ? GROUP_WAITING : kind == FLOW_IDLE_CPU ? GROUP_IDLE :
	       kind == FLOW_LIMITED ? GROUP_LIMITED : kind == FLOW_UNKNOWN ? GROUP_UNKNOWN : system;
}

ORDER_BY(compare_rows, struct lane_row, FALLING(duration) FALLING(group))

static size_t find_group(const struct lane_row *group, size_t groups, int32_t id)
{
	size_t g = 0;
	while (g < groups && group[g].group != id)
		g++;
	return g;
}

/* Sorts the groups by their time, each followed by its printed entries. */
static void page_layout(struct page *p, double threshold)
{
	const struct flow *f = p->f;
	struct lane_row *group = NULL;
	size_t groups = 0, cap = 0;
	for (size_t i = 0; i < f->entries; i++) {
		const struct flow_entry *e = &f->entry[i];
		int32_t id = group_of(e->actor.machine, e->actor.kind);
		size_t g = find_group(group, groups, id);
		if (g == groups)
			*ARRAY_PUSH(group, groups, cap) = (struct lane_row){ .group = id, .kind = e->actor.kind };
		group[g].duration += e->duration;
	}
	ARRAY_SORT(group, groups, compare_rows);
	double span = (double)(f->end - f->start) + 1;
	for (size_t g = 0; g < groups; g++) {
		if ((double)group[g].duration / span >= threshold)
			*ARRAY_PUSH(p->row, p->rows, p->row_cap) = group[g];
		for (size_t i = 0; i < f->entries; i++) {
			const struct flow_entry *e = &f->entry[i];
			if (group_of(e->actor.machine, e->actor.kind) != group[g].group)
				continue;
			if (e->share < threshold) {
				p->hidden_entries++;
				p->hidden_ns += e->duration;
			} else {
				*ARRAY_PUSH(p->row, p->rows, p->row_cap) = (struct lane_row){ .entry = e,
					.group = group[g].group, .duration = e->duration, .kind = e->actor.kind };
			}
		}
	}
	free(group);
}

static int64_t cell_start(const struct page *p, int cell)
{
	return flow_column(p->f->start, p->f->end, (unsigned)cell, (unsigned)p->cells);
}

/* Fills the printed rows' lanes: an entry's time is added to the lanes of the entry and of its group. */
static void page_paint(struct page *p)
{
	const struct flow *f = p->f;
	uint32_t *own = mem_new(f->entries, sizeof *own), *group = mem_new(f->entries, sizeof *group);
	for (size_t i = 0; i < f->entries; i++)
		own[i] = group[i] = UINT32_MAX;
	for (uint32_t i = 0; i < p->rows; i++) {
		struct lane_row *r = &p->row[i];
		r->lane = i;
		if (r->entry)
			own[r->entry - f->entry] = i;
		for (size_t k = 0; !r->entry && k < f->entries; k++)
			if (group_of(f->entry[k].actor.machine, f->entry[k].actor.kind) == r->group)
				group[k] = i;
	}
	p->lane = mem_new(p->rows * (size_t)p->cells, sizeof *p->lane);
	flow_paint(f, own, (unsigned)p->cells, p->lane);
	flow_paint(f, group, (unsigned)p->cells, p->lane);
	free(own);
	free(group);
}

/* Writes only the thread, where the kind is already printed. */
static void thread_text(const struct page *p, const struct actor *actor, char *buf, size_t size)
{
	struct actor thread = *actor;
	thread.kind = actor->kind == FLOW_WAITING && actor->tid < 0 ? FLOW_IRQ : FLOW_PREEMPTING;
	actor_text(p->catalog, &thread, p->f->name[actor->name], ACTOR_PLAIN, NULL, buf, size);
}

static void row_label(const struct page *p, const struct lane_row *r, char *buf, size_t size)
{
	const struct flow_entry *e = r->entry;
	char name[256];
	if (!e) {
		text_escape(buf, size, r->group >= 0 ? p->catalog->machine[r->group].name :
		            r->group == GROUP_WAITING ? "waiting for a wakeup by" :
		            r->group == GROUP_LIMITED ? "limited by" :
		            r->group == GROUP_IDLE ? "idle CPU" : r->group == GROUP_UNKNOWN ? "unknown" : "?");
		return;
	}
	text_escape(name, sizeof name, p->f->name[e->actor.name]);
	if (e->actor.kind == FLOW_WAITING && e->actor.machine < 0)
		snprintf(buf, size, "%s", *name ? name : "unknown waker");
	else if (e->actor.kind == FLOW_WAITING)
		thread_text(p, &e->actor, buf, size);
	else if (e->actor.tid >= 0)
		snprintf(buf, size, "%" PRId32 "%s%s%s", e->actor.tid, *name ? " " : "", name,
		         e->actor.kind == FLOW_HYPERVISOR ? " (hypervisor)" : "");
	else
		snprintf(buf, size, "%s%s", name, e->actor.kind == FLOW_HYPERVISOR ? " (hypervisor)" :
		         e->actor.kind == FLOW_IRQ ? " (interrupt)" : "");
}

static double share_of(const struct flow *f, int64_t ns)
{
	return (double)ns / ((double)(f->end - f->start) + 1);
}

static void print_row(const struct page *p, const struct lane_row *r)
{
	char label[LABEL_TEXT], duration[TIME_TEXT], share[16];
	int indent = r->entry ? 2 : 0;
	row_label(p, r, label, sizeof label);
	const int pad = p->label - indent - text_width(text_shorten(label, p->label - indent));
	fprintf(p->to, "%*s%s%*s%10s %6s |", indent, "", label, pad, "", time_duration(duration, r->duration),
	        text_share(share, share_of(p->f, r->duration)));
	for (int c = 0; c < p->cells; c++) {
		int64_t ns = p->lane[(size_t)r->lane * (size_t)p->cells + (size_t)c];
		int64_t span = (c + 1 < p->cells ? cell_start(p, c + 1) : p->f->end + 1) - cell_start(p, c);
		fputc(ns == 0 ? ' ' : 2 * (double)ns >= (double)span ? letters[r->kind] :
		      10 * (double)ns >= (double)span ? ':' : ',', p->to);
	}
	fputs("|\n", p->to);
}

/* Groups of idle and lost time have no threads. */
static bool is_redundant(const struct page *p, const struct lane_row *r)
{
	return r->entry && (r->group == GROUP_IDLE || r->group == GROUP_UNKNOWN) && !*p->f->name[r->entry->actor.name];
}

static void print_summary(const struct page *p, const struct target *s)
{
	int64_t by_kind[FLOW_KIND_COUNT] = { 0 }, lost = 0;
	char target[LABEL_TEXT], from[TIME_TEXT], to[TIME_TEXT], d[TIME_TEXT], share[16];
	const struct flow *f = p->f;
	for (size_t i = 0; i < f->entries; i++) {
		by_kind[f->entry[i].actor.kind] += f->entry[i].duration;
		lost += f->entry[i].lost;
	}
	fprintf(p->to, "execution flow of %s\n", catalog_target_text(p->catalog, s, target, sizeof target));
	fprintf(p->to, "%s .. %s (%s), %zu %s\n", time_date(from, f->start, 9), time_end(to, f->start, f->end, 9),
	        time_duration(d, f->end - f->start + 1), f->entries, f->entries == 1 ? "entry" : "entries");
	const bool pcpu = s->kind == TARGET_CPU && p->catalog->machine[target_machine(p->catalog, s)].kind != MACHINE_VM;
	int column = pcpu ? 0  /* a pCPU is never runnable */
		: !catalog_has_host_trace(p->catalog, s) ? fprintf(p->to, "lost unknown")
		: fprintf(p->to, "lost %s (%s)%s", time_duration(d, lost), text_share(share, share_of(f, lost)),
		          catalog_lacks_host_trace(p->catalog, s) && by_kind[FLOW_RUNNING] ? " or more" : "");
	for (int k = 0; k < FLOW_KIND_COUNT; k++) {
		char item[64];
		if (!by_kind[k])
			continue;
		int n = snprintf(item, sizeof item, "%s %s", flow_kind_name[k], text_share(share, share_of(f, by_kind[k])));
		const char *between = !column ? "" : column + 3 + n > p->width ? ",\n" : ", ";
		column = (*between && between[1] == ' ' ? column + 2 : 0) + n;
		fprintf(p->to, "%s%s", between, item);
	}
	fputs("\n\n", p->to);
}

/* Writes "05:30:48.350837765   1.31 ms  CPU1  preempting  host/216 burnP6". The kind shows already that the hypervisor
 * works for the thread, or that the actor is a waker. */
static void print_intervals(const struct page *p)
{
	char text[LABEL_TEXT], at[TIME_TEXT], d[TIME_TEXT];
	fputs("\n", p->to);
	for (size_t i = 0; i < p->f->intervals; i++) {
		const struct flow_interval *iv = &p->f->interval[i];
		const struct actor *actor = &p->f->entry[iv->entry].actor;
		char cpu[16] = "";
		if (actor->machine >= 0 && (actor->kind == FLOW_HYPERVISOR || actor->kind == FLOW_WAITING))
			thread_text(p, actor, text, sizeof text);
		else
			actor_text(p->catalog, actor, p->f->name[actor->name], ACTOR_PLAIN, NULL, text, sizeof text);
		if (iv->pcpu >= 0)
			snprintf(cpu, sizeof cpu, "CPU%d", iv->pcpu);
		int used = fprintf(p->to, "%s %9s  %-6s%-10s  ", time_clock(at, iv->start, 9),
		                   time_duration(d, iv->end - iv->start + 1), cpu, flow_kind_name[actor->kind]);
		fprintf(p->to, "%s\n", text_shorten(text, p->width - used));
	}
}

/* Writes the legend: the kinds that occur, with their letters. */
static void print_legend(const struct page *p)
{
	static const char *const meaning[FLOW_KIND_COUNT] = { [FLOW_RUNNING] = "ran", [FLOW_PREEMPTING] = "others",
		[FLOW_HYPERVISOR] = "hypervisor", [FLOW_IRQ] = "interrupt", [FLOW_WAITING] = "slept", [FLOW_IDLE_CPU] = "idle CPU",
		[FLOW_LIMITED] = "limit", [FLOW_UNKNOWN] = "unknown", [FLOW_CURRENT] = "others, or provider" };
	bool occurs[FLOW_KIND_COUNT] = { false };
	char text[256] = "";
	for (size_t i = 0; i < p->rows; i++)
		occurs[p->row[i].kind] = true;
	for (int k = 0; k < FLOW_KIND_COUNT; k++) {
		size_t used = strlen(text);
		if (occurs[k])
			snprintf(text + used, sizeof text - used, "%c %s  ", letters[k], meaning[k]);
	}
	size_t used = strlen(text);
	fprintf(p->to, "%.*s (>= 50 %%)%s: >= 10 %%  , less\n", (int)used - 2, text,
	        (int)used + 34 > p->width ? "\n" : "  ");
}

static void print_left_out(const struct page *p, double threshold)
{
	char d[TIME_TEXT], share[16];
	if (p->hidden_entries)
		fprintf(p->to, "left out: %zu %s below %g %% each, %s (%s) in total\n", p->hidden_entries,
		        p->hidden_entries == 1 ? "entry" : "entries", 100 * threshold,
		        time_duration(d, p->hidden_ns),
		        text_share(share, share_of(p->f, p->hidden_ns)));
}

static int page_width(int width)
{
	return width <= 0 ? 80 : width < WIDTH_MIN ? WIDTH_MIN : width;
}

static int label_width(int width)
{
	int rest = width - width / 3 - FIGURES;
	return rest < LABEL_MAX ? rest : LABEL_MAX;
}

unsigned flow_text_columns(int width)
{
	width = page_width(width);
	return (unsigned)(width - label_width(width) - FIGURES);
}

int flow_write_text(const struct catalog *catalog, const struct flow *f, const struct target *s,
                    const struct flow_text *options, FILE *to, struct error *err)
{
	struct page p = { .catalog = catalog, .f = f, .to = to };
	p.width = page_width(options->width);
	p.cells = (int)flow_text_columns(options->width);
	p.label = label_width(p.width);
	page_layout(&p, options->threshold);
	page_paint(&p);
	for (size_t i = 0; i < options->headers; i++)
		fprintf(to, "%s\n", options->header[i]);
	print_summary(&p, s);
	for (size_t i = 0; i < p.rows; i++)
		if (!is_redundant(&p, &p.row[i]))
			print_row(&p, &p.row[i]);
	if (p.rows)
		print_legend(&p);
	print_left_out(&p, options->threshold);
	if (options->intervals)
		print_intervals(&p);
	free(p.row);
	free(p.lane);
	if (fflush(to) != 0 || ferror(to))
		return error_system(err, "make room or choose another place", "writing the flow");
	return 0;
}
