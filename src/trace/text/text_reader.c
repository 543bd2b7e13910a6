/* Reads texts line by line. All CPUs are in one file in the order of time, so each CPU becomes a stream, and its events
 * are collected until there are enough of them. Many texts have times in us: events of the same us get different times,
 * so that their order across CPUs is kept. Lines without an event are skipped. */
#include "trace/text/text_reader.h"

#include <fcntl.h>
#include <sys/stat.h>

#include "base/base.h"
#include "base/file_open.h"
#include "trace/isolation/decoder_process.h"
#include "trace/text/text_classes.h"

#define PROBE_BYTES (8U << 20)  /* part of a file in which the first event is searched */
#define BATCH 256               /* events of a CPU that are passed on together */
#define PROGRESS_LINES 4096

/* ---- lines */

struct text_lines {
	FILE *file;
	uint64_t at;                /* bytes read */
	size_t len;
	char line[TEXT_LINE_MAX];
};

/* Reads the next line; the part beyond TEXT_LINE_MAX is skipped. Returns false at the end. */
static bool next_line(struct text_lines *t)
{
	int c;
	t->len = 0;
	while ((c = getc_unlocked(t->file)) != EOF) {
		t->at++;
		if (c == '\n')
			break;
		if (t->len < sizeof t->line)
			t->line[t->len++] = (char)c;
	}
	if (t->len && t->line[t->len - 1] == '\r')
		t->len--;
	return c != EOF || t->len > 0;
}

static struct text_lines *lines_open(const char *path)
{
	FILE *f = file_open(path);
	if (!f)
		return NULL;
	struct text_lines *t = mem_new(1, sizeof *t);
	t->file = f;
	return t;
}

static void lines_close(struct text_lines *t)
{
	fclose(t->file);
	free(t);
}

/* ---- finding */

/* Reads up to the first event. Returns false if there is none in the first part of the file. */
static bool find_event(struct text_lines *t, struct text_line *l)
{
	while (t->at < PROBE_BYTES && next_line(t))
		if (text_line_parse(t->line, t->len, l))
			return true;
	return false;
}

bool text_reader_finds_event(const char *path)
{
	struct text_lines *t = lines_open(path);
	struct text_line l;
	const bool is_found = t && find_event(t, &l);
	if (t)
		lines_close(t);
	return is_found;
}

static enum claim claim_text(const char *name, const unsigned char *head, size_t len)
{
	static const char ftrace[] = "# tracer: ", report[] = "cpus=";
	(void)name;
	const bool is_ftrace = len >= sizeof ftrace - 1 && memcmp(head, ftrace, sizeof ftrace - 1) == 0;
	const bool is_report = len >= sizeof report && memcmp(head, report, sizeof report - 1) == 0 && head[5] >= '0' &&
	                       head[5] <= '9';
	return is_ftrace || is_report ? CLAIM_FILE : CLAIM_NONE;
}

static int describe_text(struct trace_location *p, struct error *err)
{
	struct text_lines *t = lines_open(p->path);
	struct text_line l;
	struct stat st;
	if (!t)
		return error_read(err, "make it readable for you", "%s", p->path);
	const bool is_found = find_event(t, &l) && fstat(fileno(t->file), &st) == 0;
	lines_close(t);
	if (!is_found)
		return error_set(err, STATUS_INPUT, "record the events sched_switch, sched_waking and sched_wakeup",
		                 "%s: a text of ftrace without events", p->path);
	p->bytes = (uint64_t)st.st_size;
	snprintf(p->meta.tracer, sizeof p->meta.tracer, "text of %s", l.is_perf ? "perf script" : "ftrace");
	return 0;
}

/* ---- decoding */

struct text_cpu {
	struct event *event;        /* BATCH events, not passed on yet */
	size_t events;
	uint32_t stream;            /* number of the stream + 1; 0: none yet */
	int64_t last;               /* time of its last event, ns; -1: none yet */
	int64_t lost;               /* events lost before the next one; -1: unknown; 0: none */
};

struct text_state {
	const struct source *source;
	struct string_cache names;
	struct text_classes *classes;
};

struct text_progress {
	struct text_state *state;
	struct event_sink *out;
	struct text_cpu *cpu;
	size_t cpus, cpus_cap;
	uint32_t streams;
	int64_t ns;                 /* time of the last line, and the last time that was given to an event */
};

static void *enter_text(struct source *s, struct error *err)
{
	struct text_lines *t = lines_open(s->location[0]->path);
	struct text_line l;
	if (!t) {
		error_read(err, "make it readable for you", "%s", s->location[0]->path);
		return NULL;
	}
	struct text_state *x = mem_new(1, sizeof *x);
	x->source = s;
	string_cache_init(&x->names, s->mapping.names);
	x->classes = text_classes_new(&s->mapping, &x->names);
	while (next_line(t))
		if (text_line_parse(t->line, t->len, &l))
			text_classes_add(x->classes, &l);
	lines_close(t);
	text_classes_choose(x->classes);
	return x;
}

static void leave_text(void *state)
{
	struct text_state *x = state;
	text_classes_free(x->classes);
	string_cache_release(&x->names);
	free(x);
}

/* Returns the CPU; NULL: its number is impossible. */
static struct text_cpu *find_cpu(struct text_progress *p, uint32_t number)
{
	if (number >= IPC_MAX_STREAMS)
		return NULL;
	while (p->cpus <= number)
		*ARRAY_PUSH(p->cpu, p->cpus, p->cpus_cap) = (struct text_cpu){ .last = -1 };
	return &p->cpu[number];
}

static int flush_cpu(struct text_progress *p, struct text_cpu *c)
{
	if (!c->events)
		return 0;
	if (!c->stream)
		c->stream = ++p->streams;
	if (event_sink_select_stream(p->out, c->stream - 1, (uint64_t)(c - p->cpu)))
		return -1;
	for (size_t i = 0; i < c->events; i++)
		if (event_sink_put(p->out, &c->event[i]))
			return -1;
	c->events = 0;
	return 0;
}

static int queue_event(struct text_progress *p, struct text_cpu *c, const struct event *ev)
{
	if (!c->event)
		c->event = mem_new(BATCH, sizeof *c->event);
	c->event[c->events++] = *ev;
	return c->events == BATCH ? flush_cpu(p, c) : 0;
}

/* Adds the loss before an event of the CPU at ts. */
static int queue_loss(struct text_progress *p, struct text_cpu *c, int64_t ts)
{
	struct event ev = { .ts = c->last < ts ? c->last : ts, .kind = EV_LOST, .cpu = (uint16_t)(c - p->cpu), .tid = -1,
		.pid = -1 };
	if (!c->lost)
		return 0;
	for (size_t i = 0; i < EVENT_ARGS; i++)
		ev.arg[i] = EVENT_ABSENT;
	ev.lost.end = ts;
	ev.lost.count = c->lost < 0 ? EVENT_ABSENT : c->lost;
	c->lost = 0;
	return c->last < 0 ? 0 : queue_event(p, c, &ev);
}

/* Returns a time for the line: later than that of the line before if both have the same unit of time, e.g. us. */
static int64_t time_of_line(struct text_progress *p, const struct text_line *l)
{
	const bool is_same_unit = l->precision > 1 && p->ns >= l->ns && p->ns - l->ns < l->precision - 1;
	p->ns = is_same_unit ? p->ns + 1 : l->ns;
	return p->ns;
}

static int put_line(struct text_progress *p, const struct text_line *l)
{
	struct text_cpu *c = find_cpu(p, l->cpu);
	struct event ev = { .kind = EV_OTHER };
	if (!c)
		return 0;
	text_classes_fill(p->state->classes, l, &ev);
	ev.ts = time_of_line(p, l);
	ev.cpu = (uint16_t)l->cpu;
	if (queue_loss(p, c, ev.ts))
		return -1;
	c->last = ev.ts;
	return queue_event(p, c, &ev);
}

/* Passes on the rest of the events. */
static int flush_cpus(struct text_progress *p)
{
	int status = 0;
	for (size_t i = 0; i < p->cpus && !status; i++)
		status = flush_cpu(p, &p->cpu[i]);
	return status;
}

static int decode_lines(struct text_progress *p, struct text_lines *t)
{
	int status = 0;
	for (uint64_t n = 1; !status && next_line(t); n++) {
		struct text_line l;
		uint32_t cpu;
		int64_t count;
		struct text_cpu *c;
		if (text_line_parse(t->line, t->len, &l))
			status = put_line(p, &l);
		else if (text_line_is_loss(t->line, t->len, &cpu, &count) && (c = find_cpu(p, cpu)))
			c->lost = count ? count : -1;
		if (!status && n % PROGRESS_LINES == 0)
			status = event_sink_report_progress(p->out, t->at);
	}
	if (!status && ferror(t->file))
		status = error_system(p->out->err, NULL, "%s", p->state->source->location[0]->path);
	return status ? status : flush_cpus(p);
}

static int decode_text(void *state, const struct stream_part *part, struct event_sink *out)
{
	struct text_progress p = { .state = state, .out = out, .ns = -1 };
	const char *path = p.state->source->location[0]->path;
	struct text_lines *t = lines_open(path);
	(void)part;
	if (!t)
		return error_read(out->err, "make it readable for you", "%s", path);
	const int status = decode_lines(&p, t);
	lines_close(t);
	for (size_t i = 0; i < p.cpus; i++)
		free(p.cpu[i].event);
	free(p.cpu);
	return status;
}

static void add_notes(const struct source *s, const char *machine, struct notes *notes)
{
	(void)s;
	note_add(notes, TEXT_TRACE, machine);
}

const struct trace_reader text_reader = {
	.name = "text",
	IN_CHILD("the reader of texts crashed or hung"),
	.is_whole_machine = true,
	.finds_streams = true,
	.remedy = "copy the file again",
	.unit = "line",
	.claims = claim_text,
	.describe = describe_text,
	.enter = enter_text,
	.decode = decode_text,
	.leave = leave_text,
	.add_notes = add_notes,
};
