#include "cli/ticket_timeline.h"

#include "base/base.h"
#include "cli/ticket_script.h"

#define LANES_MAX 16
#define VCPUS_MAX 6          /* lanes of vCPUs, of threads, and of physical CPUs */
#define THREADS_MAX 6
#define PCPUS_MAX 4
#define BYTES_MAX 25000      /* of all lanes */
#define BLOCK_BYTES 24       /* typical size of a block with its sums */
#define INTERVAL_BYTES 6     /* typical size of an interval */
#define MOMENT_COLUMNS 120   /* blocks of a lane at the moment, and at another wait, if it has too many intervals */
#define PLACE_COLUMNS 16
#define MARGIN 3             /* lengths of a place before and behind it that keep all details */

struct chosen_lanes { struct target item[LANES_MAX]; size_t len; };

static void add_lane(struct chosen_lanes *l, struct target target)
{
	for (size_t i = 0; i < l->len; i++)
		if (l->item[i].kind == target.kind && l->item[i].index == target.index)
			return;
	if (l->len < LANES_MAX)
		l->item[l->len++] = target;
}

static void add_cpus(struct chosen_lanes *l, const struct ticket_timeline *t, bool virtual, size_t most)
{
	const struct catalog *c = t->catalog;
	for (uint32_t i = 0; i < c->cpus && most; i++) {
		const struct target cpu = { TARGET_CPU, i };
		const bool is_vcpu = c->machine[c->cpu[i].machine].kind == MACHINE_VM;
		if (is_vcpu != virtual || (virtual && t->target && target_machine(c, t->target) != c->cpu[i].machine))
			continue;
		add_lane(l, cpu);
		most--;
	}
}

/* Adds the threads that lost most. */
static int add_threads(struct chosen_lanes *l, const struct ticket_timeline *t, struct error *err)
{
	const bool of_machine = t->target && t->target->kind == TARGET_MACHINE;
	const struct summary_options options = { .only = of_machine ? t->target : NULL, .from = t->from, .to = t->to };
	struct summary summary;
	size_t added = 0;
	if (query_answer(summary_open(t->catalog, &options), &summary, err))
		return -1;
	summary_sort(&summary, t->catalog, SUMMARY_BY_LOST);
	for (size_t i = 0; i < summary.rows && added < THREADS_MAX; i++)
		if (summary.row[i].target.kind == TARGET_THREAD) {
			add_lane(l, summary.row[i].target);
			added++;
		}
	summary_release(&summary);
	return 0;
}

static int choose_lanes(struct chosen_lanes *l, const struct ticket_timeline *t, struct error *err)
{
	l->len = 0;
	if (t->target && t->target->kind != TARGET_MACHINE)
		add_lane(l, *t->target);
	if (t->victim)
		add_lane(l, *t->victim);
	add_cpus(l, t, true, VCPUS_MAX);
	if (!t->target || t->target->kind == TARGET_MACHINE)
		if (add_threads(l, t, err))
			return -1;
	add_cpus(l, t, false, PCPUS_MAX);
	return 0;
}

/* ---- JSON */

/* Writes a json string that may stand inside an element: "<" is escaped, too. */
static void put_string(FILE *out, const char *text)
{
	putc('"', out);
	for (const unsigned char *c = (const unsigned char *)text; *c; c++)
		if (*c < 0x20 || *c == '"' || *c == '\\' || *c == '<' || *c == '&')
			fprintf(out, "\\u%04x", *c);
		else
			putc(*c, out);
	putc('"', out);
}

/* Digits of five bits, the lowest first; digits from 32 on continue. */
static size_t put_digits(FILE *out, uint64_t n)
{
	static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
	size_t digits = 1;
	for (; n > 31; n >>= 5, digits++)
		putc(digit[32 | (n & 31)], out);
	putc(digit[n], out);
	return digits;
}

static bool is_pcpu(const struct catalog *c, const struct target *target)
{
	return target->kind == TARGET_CPU && c->machine[c->cpu[target->index].machine].kind != MACHINE_VM;
}

/* Name of a colour of the page. */
static const char *actor_class(const struct catalog *c, const struct target *target, const struct actor *a)
{
	const bool of_pcpu = is_pcpu(c, target);
	switch ((enum flow_kind)a->kind) {
	case FLOW_RUNNING: return "ran";
	case FLOW_WAITING: return "idle";
	case FLOW_HYPERVISOR: return "vmm";
	case FLOW_LIMITED: return "throttled";
	case FLOW_PREEMPTING: case FLOW_IRQ: case FLOW_CURRENT: case FLOW_IDLE_CPU:
		if (of_pcpu && a->kind == FLOW_IDLE_CPU)
			return "idle";
		if (of_pcpu)
			return a->machine >= 0 && c->machine[a->machine].kind == MACHINE_VM ? "ran" : "own";
		return a->machine == (int32_t)target_machine(c, target) ? "own" : "stolen";
	default: return "unknown";
	}
}

/* ---- lanes */

/* A lane under construction: the entries of all its parts, by actor and name. */
struct lane_data {
	const struct ticket_timeline *t;
	const struct target *target;
	FILE *blocks;
	struct { char *text; const char *class; } *entry;
	size_t entries, cap;
};

static size_t lane_entry(struct lane_data *l, const struct flow *f, uint32_t index)
{
	const struct actor *a = &f->entry[index].actor;
	const char *class = actor_class(l->t->catalog, l->target, a);
	char text[ACTOR_TEXT];
	if (a->kind == FLOW_RUNNING)
		snprintf(text, sizeof text, "runs");
	else if (a->kind == FLOW_WAITING)
		snprintf(text, sizeof text, "%s", l->target->kind == TARGET_CPU ? "idle" : "blocked");
	else
		actor_text(l->t->catalog, a, f->name[a->name], ACTOR_SHOWN, NULL, text, sizeof text);
	for (size_t i = 0; i < l->entries; i++)
		if (l->entry[i].class == class && strcmp(l->entry[i].text, text) == 0)
			return i;
	*ARRAY_PUSH(l->entry, l->entries, l->cap) = (__typeof__(*l->entry)){ mem_dup(text), class };
	return l->entries - 1;
}

/* Adds every interval of [from, to]. */
static void add_intervals(struct lane_data *l, const struct flow *f)
{
	for (size_t i = 0; i < f->intervals; i++) {
		const int64_t ns = f->interval[i].end - f->interval[i].start + 1;
		put_digits(l->blocks, (uint64_t)ns);
		put_digits(l->blocks, 1);
		put_digits(l->blocks, lane_entry(l, f, f->interval[i].entry));
		put_digits(l->blocks, (uint64_t)ns);
	}
}

/* Adds a block with sums per column. */
static void add_columns(struct lane_data *l, const struct flow *f)
{
	size_t cell = 0;
	for (unsigned c = 0; c < f->columns; c++) {
		const int64_t start = flow_column(f->start, f->end, c, f->columns);
		const int64_t next = flow_column(f->start, f->end, c + 1, f->columns);
		size_t end = cell;
		while (end < f->cells && f->cell[end].column == c)
			end++;
		if (next > start) {
			put_digits(l->blocks, (uint64_t)(next - start));
			put_digits(l->blocks, end - cell);
			for (size_t k = cell; k < end; k++) {
				put_digits(l->blocks, lane_entry(l, f, f->cell[k].entry));
				put_digits(l->blocks, (uint64_t)f->cell[k].ns);
			}
		}
		cell = end;
	}
}

/* Time before a thread's life and after it. */
static void add_nothing(struct lane_data *l, int64_t from, int64_t to)
{
	if (to < from)
		return;
	put_digits(l->blocks, (uint64_t)(to - from + 1));
	put_digits(l->blocks, 0);
}

/* Adds a part of the window: all intervals if they need no more space than `columns` blocks, otherwise these blocks. */
static int add_part(struct lane_data *l, int64_t from, int64_t to, unsigned columns, struct error *err)
{
	struct flow f;
	const size_t few = (size_t)columns * BLOCK_BYTES / INTERVAL_BYTES;
	const struct flow_options options = { .intervals = few, .columns = columns };
	int64_t start, end;
	if (to < from)
		return 0;
	const int alive = catalog_lifetime(l->t->catalog, l->target, &start, &end, err);
	if (alive < 0)
		return -1;
	if (!alive || start > to || end < from) {
		add_nothing(l, from, to);
		return 0;
	}
	if (query_answer(flow_open(l->t->catalog, l->target, from, to, &options, err), &f, err))
		return -1;
	add_nothing(l, from, f.start - 1);
	if (f.intervals)
		add_intervals(l, &f);
	else
		add_columns(l, &f);
	add_nothing(l, f.end + 1, to);
	flow_release(&f);
	return 0;
}

static int compare_places(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;
	return (x[0] > y[0]) - (x[0] < y[0]);
}

/* Writes the window's blocks: places with their surroundings in full, sums between them. */
static int add_window(struct lane_data *l, unsigned columns, struct error *err)
{
	const struct ticket_timeline *t = l->t;
	int64_t place[TIMELINE_PLACES][3], at = t->from;
	for (size_t i = 0; i < t->places; i++) {
		const int64_t margin = MARGIN * (t->place[i][1] - t->place[i][0] + 1);
		place[i][0] = clamp64(t->place[i][0] - margin, t->from, t->to);
		place[i][1] = clamp64(t->place[i][1] + margin, t->from, t->to);
		place[i][2] = i == 0;  /* the moment */
	}
	qsort(place, t->places, sizeof *place, compare_places);
	for (size_t i = 0; i <= t->places; i++) {
		const int64_t before = (i < t->places ? place[i][0] : t->to + 1) - 1;
		const double share = before < at ? 0 : (double)(before - at + 1) / (double)(t->to - t->from + 1);
		if (add_part(l, at, before, 1 + (unsigned)(share * columns), err))
			return -1;
		at = before >= at ? before + 1 : at;
		if (i < t->places && add_part(l, at, place[i][1], place[i][2] ? MOMENT_COLUMNS : PLACE_COLUMNS, err))
			return -1;
		if (i < t->places && place[i][1] >= at)
			at = place[i][1] + 1;
	}
	return 0;
}

static int write_lane(FILE *out, const struct ticket_timeline *t, const struct target *target, unsigned columns,
                      struct error *err)
{
	char *text = NULL, name[ACTOR_TEXT];
	size_t bytes;
	struct lane_data l = { .t = t, .target = target, .blocks = open_memstream(&text, &bytes) };
	if (!l.blocks)
		abort();
	const int rc = add_window(&l, columns, err);
	fclose(l.blocks);
	fputs("{\"name\":", out);
	put_string(out, catalog_target_text(t->catalog, target, name, sizeof name));
	fprintf(out, ",\"cpu\":%s,\"entries\":[", is_pcpu(t->catalog, target) ? "true" : "false");
	for (size_t i = 0; i < l.entries; i++) {
		fprintf(out, "%s{\"kind\":\"%s\",\"name\":", i ? "," : "", l.entry[i].class);
		put_string(out, l.entry[i].text);
		putc('}', out);
		free(l.entry[i].text);
	}
	fprintf(out, "],\"blocks\":\"%s\"}", text);
	free(l.entry);
	free(text);
	return rc;
}

int ticket_timeline_write(FILE *out, const struct ticket_timeline *t, struct error *err)
{
	struct chosen_lanes lanes;
	int rc = choose_lanes(&lanes, t, err);
	const unsigned columns = BYTES_MAX / BLOCK_BYTES / (unsigned)(lanes.len ? lanes.len : 1);
	fputs("<div id=\"timeline\"><canvas id=\"lanes\" tabindex=\"0\" aria-label=\"timeline\"></canvas>\n"
	      "<p id=\"timeline-note\" class=\"soft\">Wheel or + and - zoom, arrows pan, drag measures, Enter zooms to the "
	      "range, 0 shows all.</p>\n<p id=\"timeline-range\"></p>\n<div class=\"wide\"><table><thead><tr><th>row</th>"
	      "<th class=\"n\">ran</th><th>lost to; of a CPU: users</th></tr></thead>"
	      "<tbody id=\"timeline-sums\"></tbody></table></div></div>\n"
	      "<script type=\"application/json\" id=\"timeline-data\">", out);
	fprintf(out, "{\"second\":%" PRId64 ",\"fraction\":%" PRId64 ",\"span\":%" PRId64 ",\"moment\":[%" PRId64 ",%" PRId64
	        "],\n\"rows\":[", t->from / 1000000000, t->from % 1000000000, t->to - t->from + 1,
	        t->places ? t->place[0][0] - t->from : 0,
	        t->places ? t->place[0][1] - t->place[0][0] + 1 : t->to - t->from + 1);
	for (size_t i = 0; i < lanes.len && rc == 0; i++) {
		fputs(i ? ",\n" : "\n", out);
		rc = write_lane(out, t, &lanes.item[i], columns, err);
	}
	fprintf(out, "]}</script>\n<script>%s</script>\n", shipped[0].text);
	return rc;
}

void ticket_timeline_write_policy(FILE *out)
{
	fputs("'" SCRIPT_HASH "'", out);
}
