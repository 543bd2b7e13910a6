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

struct page {
	const struct catalog *catalog;
	const struct flow *f;
	FILE *to;
	struct flow_tree tree;
	int64_t *lane;                   /* time per cell, ns; one lane of `cells` cells per row after the other */
	int width, cells, label;         /* columns */
};

static int32_t group_of(int32_t system, uint32_t kind)
{
	return kind == FLOW_WAITING ? GROUP_WAITING : kind == FLOW_IDLE_CPU ? GROUP_IDLE :
	       kind == FLOW_LIMITED ? GROUP_LIMITED : kind == FLOW_UNKNOWN ? GROUP_UNKNOWN : system;
}

ORDER_BY(compare_rows, struct flow_row, FALLING(duration) FALLING(group))

static size_t find_group(const struct flow_row *group, size_t groups, int32_t id)
{
	size_t g = 0;
	while (g < groups && group[g].group != id)
		g++;
	return g;
}

/* Groups of idle and lost time have no threads. */
static bool is_redundant(const struct flow *f, const struct flow_entry *e)
{
	return (e->actor.kind == FLOW_IDLE_CPU || e->actor.kind == FLOW_UNKNOWN) && !*f->name[e->actor.name];
}

void flow_tree_make(struct flow_tree *t, const struct flow *f, double threshold)
{
	struct flow_row *group = NULL;
	size_t groups = 0, cap = 0, row_cap = 0;
	*t = (struct flow_tree){ 0 };
	for (size_t i = 0; i < f->entries; i++) {
		const struct flow_entry *e = &f->entry[i];
		int32_t id = group_of(e->actor.machine, e->actor.kind);
		size_t g = find_group(group, groups, id);
		if (g == groups)
			*ARRAY_PUSH(group, groups, cap) = (struct flow_row){ .group = id, .kind = e->actor.kind };
		group[g].duration += e->duration;
	}
	if (groups)
		qsort(group, groups, sizeof *group, compare_rows);
	double span = (double)(f->end - f->start) + 1;
	for (size_t g = 0; g < groups; g++) {
		if ((double)group[g].duration / span >= threshold)
			*ARRAY_PUSH(t->row, t->rows, row_cap) = group[g];
		for (size_t i = 0; i < f->entries; i++) {
			const struct flow_entry *e = &f->entry[i];
			if (group_of(e->actor.machine, e->actor.kind) != group[g].group)
				continue;
			if (e->share < threshold) {
				t->hidden_entries++;
				t->hidden_ns += e->duration;
			} else if (!is_redundant(f, e)) {
				*ARRAY_PUSH(t->row, t->rows, row_cap) = (struct flow_row){ .entry = e,
					.group = group[g].group, .duration = e->duration, .kind = e->actor.kind };
			}
		}
	}
	free(group);
}

void flow_tree_release(struct flow_tree *t)
{
	free(t->row);
	*t = (struct flow_tree){ 0 };
}

bool flow_row_contains(const struct flow_row *r, const struct flow_entry *e)
{
	return r->entry ? r->entry == e : group_of(e->actor.machine, e->actor.kind) == r->group;
}

static int64_t cell_start(const struct page *p, int cell)
{
	return flow_column(p->f->start, p->f->end, (unsigned)cell, (unsigned)p->cells);
}

/* Fills the rows' lanes: an entry's time is added to the lanes of the entry and of its group. */
static void page_paint(struct page *p)
{
	const struct flow *f = p->f;
	uint32_t *own = mem_new(f->entries, sizeof *own), *group = mem_new(f->entries, sizeof *group);
	for (size_t i = 0; i < f->entries; i++)
		own[i] = group[i] = UINT32_MAX;
	for (uint32_t i = 0; i < p->tree.rows; i++) {
		const struct flow_row *r = &p->tree.row[i];
		for (size_t k = 0; k < f->entries; k++)
			if (flow_row_contains(r, &f->entry[k]))
				(r->entry ? own : group)[k] = i;
	}
	p->lane = mem_new(p->tree.rows * (size_t)p->cells, sizeof *p->lane);
	flow_paint(f, own, (unsigned)p->cells, p->lane);
	flow_paint(f, group, (unsigned)p->cells, p->lane);
	free(own);
	free(group);
}

/* Writes only the thread, where the kind is already printed. */
static void thread_text(const struct catalog *catalog, const struct flow *f, const struct actor *actor, char *buf,
                        size_t size)
{
	struct actor thread = *actor;
	thread.kind = actor->kind == FLOW_WAITING && actor->tid < 0 ? FLOW_IRQ : FLOW_PREEMPTING;
	actor_text(catalog, &thread, f->name[actor->name], ACTOR_PLAIN, NULL, buf, size);
}

void flow_row_text(const struct catalog *catalog, const struct flow *f, const struct flow_row *r, char *buf, size_t size)
{
	const struct flow_entry *e = r->entry;
	char name[256];
	if (!e) {
		text_escape(buf, size, r->group >= 0 ? catalog->machine[r->group].name :
		            r->group == GROUP_WAITING ? "waiting for a wakeup by" :
		            r->group == GROUP_LIMITED ? "limited by" :
		            r->group == GROUP_IDLE ? "idle CPU" : r->group == GROUP_UNKNOWN ? "unknown" : "?");
		return;
	}
	text_escape(name, sizeof name, f->name[e->actor.name]);
	if (e->actor.kind == FLOW_WAITING && e->actor.machine < 0)
		snprintf(buf, size, "%s", *name ? name : "unknown waker");
	else if (e->actor.kind == FLOW_WAITING)
		thread_text(catalog, f, &e->actor, buf, size);
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

static void print_row(const struct page *p, size_t number)
{
	const struct flow_row *r = &p->tree.row[number];
	char label[LABEL_TEXT], duration[TIME_TEXT], share[16];
	int indent = r->entry ? 2 : 0;
	flow_row_text(p->catalog, p->f, r, label, sizeof label);
	const int pad = p->label - indent - text_width(text_shorten(label, p->label - indent));
	fprintf(p->to, "%*s%s%*s%10s %6s |", indent, "", label, pad, "", time_duration(duration, r->duration),
	        text_share(share, share_of(p->f, r->duration)));
	for (int c = 0; c < p->cells; c++) {
		int64_t ns = p->lane[number * (size_t)p->cells + (size_t)c];
		int64_t span = (c + 1 < p->cells ? cell_start(p, c + 1) : p->f->end + 1) - cell_start(p, c);
		fputc(ns == 0 ? ' ' : 2 * (double)ns >= (double)span ? letters[r->kind] :
		      10 * (double)ns >= (double)span ? ':' : ',', p->to);
	}
	fputs("|\n", p->to);
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
			thread_text(p->catalog, p->f, actor, text, sizeof text);
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
	for (size_t i = 0; i < p->tree.rows; i++)
		occurs[p->tree.row[i].kind] = true;
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
	if (p->tree.hidden_entries)
		fprintf(p->to, "left out: %zu %s below %g %% each, %s (%s) in total\n", p->tree.hidden_entries,
		        p->tree.hidden_entries == 1 ? "entry" : "entries", 100 * threshold,
		        time_duration(d, p->tree.hidden_ns),
		        text_share(share, share_of(p->f, p->tree.hidden_ns)));
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

int flow_write_text(const struct catalog *catalog, const struct flow *f, const struct target *target,
                    const struct flow_text *options, FILE *to, struct error *err)
{
	struct page p = { .catalog = catalog, .f = f, .to = to };
	p.width = page_width(options->width);
	p.cells = (int)flow_text_columns(options->width);
	p.label = label_width(p.width);
	flow_tree_make(&p.tree, f, options->threshold);
	page_paint(&p);
	for (size_t i = 0; i < options->headers; i++)
		fprintf(to, "%s\n", options->header[i]);
	print_summary(&p, target);
	for (size_t i = 0; i < p.tree.rows; i++)
		print_row(&p, i);
	if (p.tree.rows)
		print_legend(&p);
	print_left_out(&p, options->threshold);
	if (options->intervals)
		print_intervals(&p);
	flow_tree_release(&p.tree);
	free(p.lane);
	if (fflush(to) != 0 || ferror(to))
		return error_system(err, "make room or choose another place", "writing the flow");
	return 0;
}
