/* Draws the screen of `stealscope top` into a grid of cells. */
#include "base/base.h"
#include "ui/top/top.h"

#define NOTICE 0.05        /* shares from here on are yellow */
#define ALARM 0.20         /* and bold */
#define SPARKS 8           /* a sparkline's levels */

static struct style part(const struct top *t, enum part p)
{
	return t->palette.part[p];
}

static struct style style_of_share(const struct top *t, double share, struct style normal)
{
	if (share < NOTICE)
		return normal;
	struct style s = part(t, PART_STEAL);
	if (share >= ALARM)
		s.attr |= ATTR_BOLD;
	return s;
}

static void draw_header(const struct top *t, const struct live_sample *s, struct screen *out)
{
	char left[256], right[160], clock[TIME_TEXT], cost[48];
	unsigned machines = 0, vcpus = 0;
	for (size_t i = 0; i < s->groups; i++)
		machines += s->group[i].kind == LIVE_VM;
	for (size_t i = 0; i < s->vcpus; i++)
		vcpus += s->vcpu[i].number >= 0;
	if (s->cost_ns > 0)
		snprintf(cost, sizeof cost, " %.2f us/switch", s->cost_ns / 1000);
	else
		snprintf(cost, sizeof cost, " %.1f%% CPU", 100 * s->own_share);
	int n = snprintf(left, sizeof left, "stealscope top  %s  %zu CPUs  ", t->host, s->cpus);
	if (machines)
		n += snprintf(left + n, sizeof left - (size_t)n, "%u VMs  %u vCPUs  ", machines, vcpus);
	else
		n += snprintf(left + n, sizeof left - (size_t)n, "no VMs  %zu groups  ", s->groups);
	n += snprintf(left + n, sizeof left - (size_t)n, "load %.1f", s->load);
	if (s->pressure >= 0)
		snprintf(left + n, sizeof left - (size_t)n, "  PSI %.0f%%", 100 * s->pressure);
	snprintf(right, sizeof right, "%s%s  %s%.3gs  %s", s->source, cost, t->frozen ? "FROZEN " : "every ",
	         (double)t->period / 1e9, time_clock(clock, s->wall, 0));
	if (out->w < 70)
		snprintf(right, sizeof right, "%s%s", t->frozen ? "FROZEN " : "", clock);
	screen_fill(out, 0, 0, out->w, ' ', part(t, PART_HEADER));
	const int width = text_width(right);
	screen_clip(out, 0, 0, out->w - width - 2, part(t, PART_HEADER), left);
	screen_text(out, out->w - width, 0, width, part(t, PART_HEADER), right);
}

/* Draws "CPU0 #####....  97% web, db" into columns [x, x + w). */
static void draw_cpu(const struct top *t, const struct live_sample *s, unsigned cpu, struct screen *out, int x, int y,
                     int w)
{
	const struct live_cpu_use *u = &s->cpu[cpu];
	const double busy = (double)u->busy / (double)s->period;
	const int bar = w >= 60 ? 20 : w >= 38 ? 10 : 5;
	char names[200] = "";
	size_t used = 0;
	for (int k = 0; k < 3 && u->top[k] >= 0 && used < sizeof names; k++)
		used += (size_t)snprintf(names + used, sizeof names - used, "%s%s %.0f", k ? ", " : "",
		                         top_short_name(&s->culprit[u->top[k]]),
		                         100 * (double)u->top_ns[k] / (double)s->period);
	int at = x + screen_printf(out, x, y, w, part(t, PART_LABEL), "CPU%-3u", cpu);
	for (int i = 0; i < bar; i++)
		screen_put(out, at + i, y, (i + 0.5) / bar < busy ? (t->blocks ? 0x2588 : '#') : '.',
		           (i + 0.5) / bar < busy ? part(t, PART_NORMAL) : part(t, PART_DIM));
	at += bar;
	at += screen_printf(out, at, y, x + w - at, part(t, PART_NORMAL), " %3.0f%% ", 100 * (busy > 1 ? 1 : busy));
	screen_clip(out, at, y, x + w - at - 1, part(t, PART_DIM), *names ? names : "-");
}

/* Draws the CPUs in two columns. Returns the next line. */
static int draw_cpus(const struct top *t, const struct live_sample *s, struct screen *out, int y)
{
	const int most = out->h / 4, lines = (int)(s->cpus + 1) / 2 < most ? (int)(s->cpus + 1) / 2 : most;
	if (t->view == TOP_CPUS || out->h < 14)
		return y;
	for (int i = 0; i < lines; i++)
		for (int k = 0; k < 2; k++)
			if ((size_t)(i + k * lines) < s->cpus)
				draw_cpu(t, s, (unsigned)(i + k * lines), out, k * (out->w / 2), y + i, out->w / 2);
	return y + lines;
}

/* Returns the stolen and throttled share of a row `back` samples before the shown one; -1: unknown. */
static double share_before(const struct top *t, const struct top_row *r, size_t back)
{
	const struct live_sample *now = top_shown(t), *s = top_before(t, back);
	if (!s || r->vcpu < 0)
		return -1;
	const struct live_vcpu *want = &now->vcpu[r->vcpu];
	const char *group = now->group[want->group].name;
	double sum = 0;
	unsigned n = 0;
	for (size_t i = 0; i < s->vcpus; i++) {
		const struct live_vcpu *v = &s->vcpu[i];
		if (r->group >= 0 ? strcmp(s->group[v->group].name, group) != 0 : v->tid != want->tid)
			continue;
		sum += (double)(v->ns.stolen + v->ns.throttled) / (double)s->period;
		n += n == 0 || want->number >= 0;
	}
	return n ? sum / n : -1;
}

static void draw_spark(const struct top *t, const struct top_row *r, struct screen *out, int x, int y, int w,
                       struct style style)
{
	for (int i = 0; i < w; i++) {
		const double v = share_before(t, r, (size_t)(w - 1 - i));
		int level = v < 0 ? -1 : (int)(v * SPARKS * 2);
		if (level >= SPARKS)
			level = SPARKS - 1;
		static const char ascii[] = "_.:-=+*#";
		if (level >= 0)
			screen_put(out, x + i, y, t->blocks ? 0x2581 + (uint32_t)level : (uint32_t)ascii[level], style);
	}
}

static void name_victim(char *buf, size_t size, const struct live_vcpu *v)
{
	if (v->number >= 0)
		snprintf(buf, size, "%.60s/vCPU%d", v->machine, v->number);
	else
		snprintf(buf, size, "%d %.60s", v->tid, v->machine);
}

static void draw_table_row(const struct top *t, const struct live_sample *s, const struct top_row *r, struct screen *out,
                           int y, bool selected)
{
	char longest[TIME_TEXT] = "", name[LIVE_NAME + 16], vmm[16] = "-";
	const struct style normal = selected ? part(t, PART_SELECTED) : part(t, PART_NORMAL);
	const int wide = out->w >= 100 ? 28 : out->w >= 60 ? 16 : 12;
	screen_fill(out, 0, y, out->w, ' ', normal);
	if (r->group >= 0)
		snprintf(name, sizeof name, "%s %s", r->worst > 0.10 ? "v" : ">", r->name);
	else
		snprintf(name, sizeof name, "%s%s", t->view == TOP_VMS ? "  " : "", r->name);
	text_shorten(name, wide);
	screen_clip(out, 0, y, wide, normal, name);
	int x = wide;
	x += screen_printf(out, x, y, out->w - x, normal, " %4.0f", 100 * r->run);
	x += screen_printf(out, x, y, out->w - x, selected ? normal : style_of_share(t, r->steal, normal), " %6.1f",
	                   100 * r->steal);
	if (out->w >= 60 && t->view <= TOP_VCPUS) {
		x += screen_printf(out, x, y, out->w - x, selected ? normal : style_of_share(t, r->throttled, normal), " %7.1f",
		                   100 * r->throttled);
		if (r->vmm >= 0)
			snprintf(vmm, sizeof vmm, "~%.1f", 100 * r->vmm);
		if (out->w >= 100)
			x += screen_printf(out, x, y, out->w - x, normal, " %5s %6.1f", vmm, 100 * r->pause);
		x += screen_printf(out, x, y, out->w - x, normal, " %9s  ", r->longest ? time_duration(longest, r->longest) : "-");
	} else {
		x += screen_printf(out, x, y, out->w - x, normal, "  ");
	}
	const int spark = out->w >= 140 ? 30 : out->w >= 120 ? 14 : out->w >= 72 ? 6 : 0, rest = out->w - x - spark - 1;
	char by[LIVE_NAME + 16] = "-";
	if (t->view == TOP_CULPRITS && r->vcpu >= 0)
		name_victim(by, sizeof by, &s->vcpu[r->vcpu]);
	else if (r->throttled > r->steal)
		snprintf(by, sizeof by, "its own quota");
	else if (r->top >= 0)
		snprintf(by, sizeof by, "%s%s %.0f%%", s->culprit[r->top].inferred ? "~" : "", s->culprit[r->top].name,
		         100 * r->top_share);
	else if (r->unknown > FINDING_LIMIT)
		snprintf(by, sizeof by, "unknown for %.0f %%", 100 * r->unknown);
	if (rest > 0)
		screen_clip(out, x, y, rest, normal, by);
	draw_spark(t, r, out, out->w - spark, y, spark, normal);
}

/* Draws a pCPU: its shares, and its last minute. */
static void draw_lane(struct top *t, const struct top_row *r, struct screen *out, int y, bool selected)
{
	const struct style normal = selected ? part(t, PART_SELECTED) : part(t, PART_NORMAL);
	screen_fill(out, 0, y, out->w, ' ', normal);
	const int x = screen_printf(out, 0, y, out->w, normal, "%-7s %4.0f %6.1f ", r->name, 100 * r->run, 100 * r->steal) + 1;
	if (x < out->w)
		top_lane(t, (unsigned)r->cpu, out, x, y, out->w - x, normal);
}

/* Draws the names of the letters into the lines below the lanes. */
static void draw_legend(const struct top *t, struct screen *out, int y, int end)
{
	char text[TOP_LETTERS * 32];
	top_legend(t, text, sizeof text);
	for (const char *at = text; *at && y < end; y++) {
		size_t n = strlen(at);
		while (n > (size_t)out->w - 2)  /* breaks between two names */
			for (n--; n && strncmp(at + n, "  ", 2) != 0; n--)
				continue;
		screen_printf(out, 2, y, out->w - 2, part(t, PART_DIM), "%.*s", (int)n, at);
		at += n + strspn(at + n, " ");
		if (!n)
			break;
	}
}

static void draw_heading(const struct top *t, struct screen *out, int y)
{
	const struct live_sample *s = top_shown(t);
	const char *const first[] = { "", s->is_guest ? "group" : "VM", s->is_guest ? "process" : "vCPU", "pCPU", "culprit" };
	const char *const wait = s->is_guest ? "  %WAIT" : " %STEAL";
	const int wide = out->w >= 100 ? 28 : out->w >= 60 ? 16 : 12;
	char text[200];
	if (t->view == TOP_CPUS)
		snprintf(text, sizeof text, "%-7s %%RUN %%STEAL  who had it in the last 60 s", first[t->view]);
	else if (t->view == TOP_CULPRITS)
		snprintf(text, sizeof text, "%-*s %%CPU  %%TOOK  most from", wide, first[t->view]);
	else if (out->w >= 60 && t->view <= TOP_VCPUS)
		snprintf(text, sizeof text, "%-*s %%RUN%s %%THROTL%s  max wait  taken by", wide, first[t->view],
		         wait, out->w >= 100 ? "  %VMM %PAUSE" : "");
	else
		snprintf(text, sizeof text, "%-*s %%RUN%s  taken by", wide, first[t->view], wait);
	screen_fill(out, 0, y, out->w, ' ', part(t, PART_TITLE));
	screen_clip(out, 0, y, out->w, part(t, PART_TITLE), text);
}

/* Draws the running time beside a busy CPU of the core. */
static void draw_shared_time(const struct top *t, const struct live_sample *s, const struct live_vcpu *v,
                             struct screen *out, int y)
{
	char ran[TIME_TEXT], shared[TIME_TEXT];
	const int x = screen_printf(out, 1, y, out->w - 1, part(t, PART_NORMAL),
	                            "ran %s, of that %s (%.0f %%) beside a busy CPU of its core", time_duration(ran, v->ns.ran),
	                            time_duration(shared, v->shared),
	                            v->ns.ran > 0 ? 100 * (double)v->shared / (double)v->ns.ran : 0) + 1;
	if (v->sharer >= 0 && x < out->w)
		screen_printf(out, x, y, out->w - x, part(t, PART_NORMAL), ": %s %s", s->culprit[v->sharer].name,
		              time_duration(ran, v->sharer_ns));
}

/* Draws the culprits of the selected row into the lower lines. Returns the first line in use. */
static int draw_detail(const struct top *t, const struct live_sample *s, struct screen *out)
{
	const struct top_row *r = top_selected(t);
	const int lines = out->h / 3, top = out->h - 1 - lines;
	int y = top;
	char text[TIME_TEXT];
	if (!t->detail || !r || r->vcpu < 0 || out->h < 12)
		return out->h - 1;
	const struct live_vcpu *v = &s->vcpu[r->vcpu];
	screen_fill(out, 0, y, out->w, ' ', part(t, PART_TITLE));
	char name[LIVE_NAME + 16];
	name_victim(name, sizeof name, v);
	screen_printf(out, 0, y++, out->w, part(t, PART_TITLE), "who had the CPU while %s waited (%s)   Esc closes", name,
	              time_duration(text, v->ns.stolen));
	for (size_t i = 0; i < s->pairs && y < out->h - 2 - (v->shared >= 0); i++) {
		if (s->pair[i].vcpu != r->vcpu)
			continue;
		const double share = v->ns.stolen > 0 ? (double)s->pair[i].ns / (double)v->ns.stolen : 0;
		screen_fill(out, 0, y, out->w, ' ', part(t, PART_NORMAL));
		int x = screen_printf(out, 1, y, out->w, part(t, PART_NORMAL), "%9s %5.1f%% ", time_duration(text, s->pair[i].ns),
		                      100 * share) + 1;
		if (s->culprit[s->pair[i].culprit].inferred)
			screen_put(out, x++, y, '~', part(t, PART_NORMAL));
		x += screen_clip(out, x, y, out->w - x - 20, part(t, PART_NORMAL), s->culprit[s->pair[i].culprit].name) + 1;
		for (int k = 0; k < (int)(share * 18); k++)
			screen_put(out, out->w - 19 + k, y, t->blocks ? 0x2588 : '#', part(t, PART_STEAL));
		y++;
	}
	if (v->shared >= 0)
		draw_shared_time(t, s, v, out, out->h - 3);
	if (!s->has_bpf || !v->waits) {
		screen_printf(out, 1, out->h - 2, out->w, part(t, PART_DIM), "%s", s->has_bpf ? "no wait ended in this period"
		              : "number and lengths of the waits: not known without BPF");
		return top;
	}
	uint64_t before = 0;
	unsigned p50 = 0, p99 = 0;
	for (unsigned i = 0; i < LIVE_LENGTHS; i++) {
		before += v->length[i];
		p50 = !p50 && before * 2 >= v->waits ? i + 1 : p50;
		p99 = !p99 && before * 100 >= v->waits * 99 ? i + 1 : p99;
	}
	char a[TIME_TEXT], b[TIME_TEXT];
	screen_printf(out, 1, out->h - 2, out->w, part(t, PART_DIM), 
	              "%llu waits, half of them below %s, 99 %% below %s, longest %s",
	              (unsigned long long)v->waits, time_duration(a, INT64_C(1) << (p50 < 62 ? p50 : 62)),
	              time_duration(b, INT64_C(1) << (p99 < 62 ? p99 : 62)), time_duration(text, v->longest));
	return top;
}

/* Draws the state of the flight recording and its newest saved recordings, above line `end`. Returns the first line in
 * use. */
static int draw_flight(const struct top *t, struct screen *out, int end)
{
	const int lines = (int)top_listed(t) + 1;
	if (!t->flight[0] || end - lines < out->h / 2)
		return end;
	int y = end - lines;
	screen_fill(out, 0, y, out->w, ' ', part(t, PART_TITLE));
	screen_clip(out, 0, y++, out->w, part(t, PART_TITLE), t->flight);
	for (size_t i = 0; i < top_listed(t); i++) {
		const struct style style = part(t, t->cursor == t->rows + i ? PART_SELECTED : PART_NORMAL);
		screen_fill(out, 0, y, out->w, ' ', style);
		const int x = screen_printf(out, 2, y, out->w - 2, style, "saved ") + 2;
		screen_clip(out, x, y++, out->w - x, style,
		            t->actions->snapshot(t->actions->arg, t->snapshots - top_listed(t) + i));
	}
	return end - lines;
}

static void draw_help(const struct top *t, struct screen *out)
{
	const char *key, *text;
	screen_clear(out, part(t, PART_NORMAL));
	screen_fill(out, 0, 0, out->w, ' ', part(t, PART_TITLE));
	screen_clip(out, 0, 0, out->w, part(t, PART_TITLE), "stealscope top: keys (any key closes)");
	for (size_t i = 0; top_help_line(i, &key, &text); i++) {
		screen_clip(out, 0, (int)i + 1, 11, part(t, PART_LABEL), key);
		screen_clip(out, 12, (int)i + 1, out->w - 12, part(t, PART_NORMAL), text);
	}
}

static void draw_footer(const struct top *t, struct screen *out)
{
	static const char *const label[] = { "", "filter: ", "search: ", "seconds: ", "keep the last 10 s when: " };
	const int y = out->h - 1;
	screen_fill(out, 0, y, out->w, ' ', part(t, PART_STATUS));
	if (t->ask != TOP_ASK_NOTHING) {
		const int x = screen_text(out, 0, y, out->w, part(t, PART_STATUS), label[t->ask]);
		screen_clip(out, x, y, out->w - x - 1, part(t, PART_STATUS), t->prompt.text);
		char before[PROMPT_MAX_BYTES];
		snprintf(before, sizeof before, "%.*s", (int)t->prompt.at, t->prompt.text);
		out->cursor_x = x + text_width(before) < out->w ? x + text_width(before) : out->w - 1;
		out->cursor_y = y;
	} else if (t->message[0]) {
		screen_clip(out, 0, y, out->w, part(t, PART_STATUS), t->message);
	} else {
		screen_phrases(out, 0, y, out->w, part(t, PART_STATUS),
		               "? help  Enter who took it  r record 10 s  T trigger  Space freeze  q quit  / search  \\ filter  "
		               "< > sort  g groups 3 CPUs 4 culprits  d delay  H idle  y copy  S svg");
	}
}

void top_draw(struct top *t, struct screen *out)
{
	const struct live_sample *s = top_shown(t);
	char sentence[300];
	screen_clear(out, part(t, PART_NORMAL));
	out->cursor_x = out->cursor_y = -1;
	if (!s) {
		screen_clip(out, 0, 0, out->w, part(t, PART_NORMAL), "stealscope top: collecting; the first figures come in 0.3 s");
		return;
	}
	const bool waits = top_sentence(s, sentence, sizeof sentence);
	if (out->w < 40 || out->h < 8) {
		screen_clip(out, 0, 0, out->w, part(t, PART_NORMAL), sentence);
		return;
	}
	if (t->help) {
		draw_help(t, out);
		return;
	}
	draw_header(t, s, out);
	int y = draw_cpus(t, s, out, 1);
	screen_put(out, 0, y, waits ? '!' : ' ', part(t, PART_ERROR));
	screen_clip(out, 2, y++, out->w - 2, part(t, waits ? PART_STEAL : PART_DIM), sentence);
	if (out->h >= 14)
		y++;
	top_make_rows(t);
	draw_heading(t, out, y++);
	const int end = draw_flight(t, out, draw_detail(t, s, out));
	t->first_line = y;
	t->lines = end - y;
	if (t->cursor < t->scroll)
		t->scroll = t->cursor;
	const size_t row = t->cursor < t->rows ? t->cursor : t->rows ? t->rows - 1 : 0;
	if (t->lines > 0 && row >= t->scroll + (size_t)t->lines)
		t->scroll = row - (size_t)t->lines + 1;
	for (size_t i = t->scroll; i < t->rows && y < end; i++, y++) {
		if (t->view == TOP_CPUS)
			draw_lane(t, &t->row[i], out, y, i == t->cursor);
		else
			draw_table_row(t, s, &t->row[i], out, y, i == t->cursor);
	}
	if (t->view == TOP_CPUS)
		draw_legend(t, out, y + 1, end);
	if (!t->rows)
		screen_clip(out, 2, y, out->w - 2, part(t, PART_DIM),
		            t->filter[0] ? "nothing matches the filter (\\ changes it)" :
		            "nothing runs or waits (H shows idle ones)");
	draw_footer(t, out);
}
