/* stealscope latency traces: where distributed traces spent their time, machine by machine. */
#include "base/base.h"
#include "cli/latency_cmd.h"
#include "cli/query_context.h"

static const struct column columns[] = {
	/* not in the text by machine */
	{ "trace", "trace", COL_UNCUT },               { "span", "span", COL_TEXT },
	{ "start", "start", COL_CLOCK },
#define OF_SPANS 3
	{ "machine", "machine", COL_TEXT },
	{ "latency_ns", "latency", COL_DURATION },     { "service_ns", "service", COL_DURATION },
	{ "stolen_ns", "stolen", COL_DURATION },       { "throttled_ns", "throttled", COL_DURATION },
	{ "wait_ns", "runqueue", COL_DURATION },       { "between_ns", "between", COL_DURATION },
	{ "unknown_ns", "unknown", COL_DURATION },     { "of_process_ns", "of process", COL_DURATION },
	{ "culprit", "culprit", COL_TEXT },
};
#define COLUMNS (sizeof columns / sizeof *columns)

#define SHOWN_DIGITS 16  /* of an id, in text */

enum { BY_TRACE, BY_MACHINE, BY_SPAN };
static const char *const groupings[] = { "trace", "machine", "span", NULL };

struct traces_options {
	struct span_options spans;
	const char *trace;       /* id; NULL: all */
	int by;                  /* BY_... */
	unsigned top;            /* 0: all rows */
	struct report_how how;
};

/* A row of the answer. */
struct trace_row {
	const char *trace;       /* id; NULL: all traces */
	const char *span;        /* name; NULL: none */
	int32_t machine;         /* -1: none */
	int64_t start;           /* ns; -1: none */
	struct request_parts parts;
	int64_t of_process;      /* ns */
	const char *culprit;     /* of most time stolen or throttled, escaped; NULL: none, or unknown */
	int64_t culprit_ns;      /* ns of the steps of which it is the top culprit */
};

/* Time that a row lost in a step, and the top culprit of the step. */
struct trace_loss { size_t row; const char *culprit; int64_t ns; };

struct trace_answer {
	const struct catalog *catalog;
	const struct spans *spans;
	const struct traces *traces;
	struct trace_row *row;
	size_t len, cap;
	struct trace_loss *loss;
	size_t losses, losses_cap;
};

static int64_t row_latency(const struct trace_row *r)
{
	int64_t ns = 0;
	for (unsigned i = 0; i < REQUEST_PART_COUNT; i++)
		ns += r->parts.ns[i];
	return ns;
}

static void add_parts(struct trace_row *r, const struct trace_step *s)
{
	for (unsigned i = 0; i < REQUEST_PART_COUNT; i++)
		r->parts.ns[i] += s->parts.ns[i];
	r->of_process += s->by_process ? s->end - s->start + 1 : 0;
}

static void add_step(struct trace_answer *a, size_t row, const struct trace_step *s)
{
	add_parts(&a->row[row], s);
	if (s->culprit)
		*ARRAY_PUSH(a->loss, a->losses, a->losses_cap) = (struct trace_loss){
			row, s->culprit, s->parts.ns[PART_STOLEN] + s->parts.ns[PART_THROTTLED] };
}

ORDER_BY(by_culprit, struct trace_loss, RISING(row) RISING_TEXT(culprit))

/* Fills the culprits of all rows. */
static void find_culprits(struct trace_answer *a)
{
	ARRAY_SORT(a->loss, a->losses, by_culprit);
	for (size_t i = 0, end; i < a->losses; i = end) {
		struct trace_row *row = &a->row[a->loss[i].row];
		int64_t ns = 0;
		for (end = i; end < a->losses && by_culprit(&a->loss[i], &a->loss[end]) == 0; end++)
			ns += a->loss[end].ns;
		if (ns > row->culprit_ns) {
			row->culprit = a->loss[i].culprit;
			row->culprit_ns = ns;
		}
	}
}

static void add_trace_rows(struct trace_answer *a, const struct trace_path *t, int by)
{
	const bool is_one = t->span != SIZE_MAX;
	const struct trace_row whole = { .trace = t->id, .span = is_one ? a->spans->span[t->span].name : NULL,
	                           .machine = -1, .start = t->start };
	if (by == BY_TRACE)
		*ARRAY_PUSH(a->row, a->len, a->cap) = whole;
	for (size_t i = t->step; i < t->step + t->steps; i++) {
		const struct trace_step *s = &a->traces->step[i];
		if (by == BY_SPAN)
			*ARRAY_PUSH(a->row, a->len, a->cap) = (struct trace_row){
				.trace = t->id, .span = s->span == SIZE_MAX ? NULL : a->spans->span[s->span].name, .machine = s->machine,
				.start = s->start };
		if (by == BY_TRACE && s->span == t->span)
			a->row[a->len - 1].machine = s->machine;
		add_step(a, a->len - 1, s);
	}
}

/* Adds the rows of all machines on a path, and of the time between the first spans. */
static void add_machine_rows(struct trace_answer *a, const char *trace)
{
	const size_t n = a->catalog->machines + 1;
	a->row = mem_new(n, sizeof *a->row);
	for (size_t i = 0; i < n; i++)
		a->row[i] = (struct trace_row){ .trace = trace, .machine = (int32_t)i - 1, .start = -1 };
	for (size_t i = 0; i < a->traces->steps; i++)
		add_step(a, (size_t)(a->traces->step[i].machine + 1), &a->traces->step[i]);
	find_culprits(a);
	for (size_t i = 0; i < n; i++)
		if (row_latency(&a->row[i]) > 0)
			a->row[a->len++] = a->row[i];
}

static int by_latency(const void *pa, const void *pb)
{
	const struct trace_row *a = pa, *b = pb;
	const int64_t la = row_latency(a), lb = row_latency(b);
	return la != lb ? (la < lb) - (la > lb) : (a->start > b->start) - (a->start < b->start);
}

static struct value text_or_none(const char *text)
{
	return text && *text ? VAL_TEXT(text) : VAL_NONE;
}

/* Adds a row without the first `skipped` columns. is_text: only the id's end, which --trace accepts. */
static void put_row(struct report *out, const struct catalog *catalog, const struct trace_row *r, size_t skipped,
                    bool is_text)
{
	const size_t n = r->trace ? strlen(r->trace) : 0, hidden = is_text && n > SHOWN_DIGITS ? n - SHOWN_DIGITS : 0;
	const struct request_parts *p = &r->parts;
	const struct value value[] = {
		text_or_none(r->trace ? r->trace + hidden : NULL), text_or_none(r->span),
		r->start < 0 ? VAL_NONE : VAL_INT(r->start),
		r->machine < 0 ? VAL_NONE : VAL_TEXT(catalog->machine[r->machine].name), VAL_INT(row_latency(r)),
		VAL_INT(p->ns[PART_SERVICE]), VAL_INT(p->ns[PART_STOLEN]), VAL_INT(p->ns[PART_THROTTLED]),
		VAL_INT(p->ns[PART_WAIT]), VAL_INT(p->ns[PART_BETWEEN]), VAL_INT(p->ns[PART_UNKNOWN]), VAL_INT(r->of_process),
		r->culprit ? VAL_SHOWN(r->culprit) : VAL_NONE };
	report_row(out, value + skipped);
}

/* Takes the notes. */
static int print_traces(struct query_context *s, struct trace_answer *a, const struct traces_options *o,
                        struct notes *notes, struct error *err)
{
	const size_t skipped = o->by == BY_MACHINE && o->how.format == FORMAT_TEXT ? OF_SPANS : 0;
	const struct report_shape shape = { "latency-traces", columns + skipped, COLUMNS - skipped,
	                                    o->by == BY_SPAN ? "trace of_process_ns unknown_ns throttled_ns"
	                                                     : "of_process_ns unknown_ns throttled_ns start",
	                                    o->by == BY_SPAN ? "start" : NULL };
	struct trace_row all = { 0 };
	for (size_t i = 0; i < a->traces->steps; i++)
		add_parts(&all, &a->traces->step[i]);
	if (o->by != BY_SPAN)
		qsort(a->row, a->len, sizeof *a->row, by_latency);
	const size_t n = o->top && o->top < a->len ? o->top : a->len;
	query_context_about(s, NULL, o->how);
	query_context_note_omitted(s, n, a->len, "rows", o->how);
	if (o->how.format == FORMAT_CSV)
		print_notes(notes);
	origin_add_warnings(&s->origin, notes);
	struct report *out = report_begin(stdout, o->how, &shape, &s->origin);
	for (size_t i = 0; i < n; i++)
		put_row(out, a->catalog, &a->row[i], skipped, o->how.format == FORMAT_TEXT);
	if (report_end(out, err))
		return -1;
	if (o->how.format != FORMAT_TEXT)
		return 0;
	char latency[TIME_TEXT];
	printf("\n%zu trace%s, %s:", a->traces->len, a->traces->len == 1 ? "" : "s", time_duration(latency, row_latency(&all)));
	for (unsigned i = 0; i < REQUEST_PART_COUNT; i++)
		if (all.parts.ns[i])
			printf(" %s %.1f%%", request_part_name[i], 100 * (double)all.parts.ns[i] / (double)row_latency(&all));
	putchar('\n');
	if (n < a->len)
		printf("shown: %zu of %zu (--top)\n", n, a->len);
	return 0;
}

static int run_traces(struct query_context *s, const struct traces_options *o, int64_t error, struct error *err)
{
	const struct requests_options wanted = { .from = s->window.from, .to = s->window.to };
	struct requests requests = { 0 };
	struct spans spans = { 0 };
	struct traces traces = { 0 };
	struct notes notes = { NULL, 0, 0 };
	struct trace_answer a = { .catalog = &s->catalog, .spans = &spans, .traces = &traces };
	struct span_clocks *clocks = span_clocks_open(&s->catalog, &o->spans, error, err);
	int rc = clocks ? span_requests_read(&s->catalog, &o->spans, &wanted, &spans, &requests, &notes, err) : -1;
	if (rc == 0)
		rc = traces_read(&s->catalog, &spans, clocks, &requests, o->trace, &traces, err);
	if (rc == 0 && traces.len == 0)
		rc = o->trace && requests.len ? error_set(err, STATUS_INPUT, NULL, "%s: no trace %s", o->spans.file, o->trace)
		                              : span_requests_none(o->spans.file, &notes, err);
	if (rc == 0) {
		char count[64];
		if (traces.asynchronous)
			note_add(&notes, SPANS_ASYNCHRONOUS, NULL, text_count_of_all(count, traces.asynchronous, spans.len, "span"));
		if (o->by == BY_MACHINE)
			add_machine_rows(&a, o->trace);
		for (size_t i = 0; i < traces.len && o->by != BY_MACHINE; i++)
			add_trace_rows(&a, &traces.trace[i], o->by);
		if (o->by != BY_MACHINE)
			find_culprits(&a);
		rc = print_traces(s, &a, o, &notes, err);
	}
	free(a.row);
	free(a.loss);
	traces_release(&traces);
	span_clocks_close(clocks);
	requests_release(&requests);
	spans_release(&spans);
	notes_release(&notes);
	return rc;
}

int latency_traces(int argc, char **argv, struct error *err)
{
	static const struct window_options whole = { 0 };
	struct traces_options o = { .by = -1, .how = REPORT_HOW };
	const struct opt opt[] = {
		SPAN_OPTIONS(&o.spans),
		{ "trace", 0, OPT_TEXT, "ID", "only this trace: its id, or the end of it", &o.trace, NULL },
		{ "by", 0, OPT_CHOICE, "ROWS", "trace (default), machine, or span (of one trace)", &o.by, groupings },
		{ "top", 0, OPT_COUNT, "N", "only the first N rows (default: all)", &o.top, NULL },
		ANSWER_OPTIONS(&o.how),
	};
	const struct opts opts = { "latency traces RECORDING --spans FILE",
	                           "Show where distributed traces spent their time, along their critical paths.", opt,
	                           sizeof opt / sizeof *opt, 1, 1 };
	struct query_context s;
	int first;
	int64_t error;
	if (opts_parse(&opts, argc, argv, &first, err) || span_options_check(&o.spans, &error, err))
		return -1;
	if (!o.spans.file)
		return error_set(err, STATUS_USAGE, "stealscope latency traces RECORDING --spans FILE", "--spans is missing");
	if (o.by < 0)
		o.by = o.trace ? BY_SPAN : BY_TRACE;
	int rc = query_context_open(&s, argv[first], &whole, err);
	if (rc == 0)
		rc = run_traces(&s, &o, error, err);
	return query_context_close(&s, rc, err);
}
