/* Requests from spans of distributed tracing.
 *
 * Machine: the attributes of span_host_key are compared with the names of the machines; different answers mean none.
 * Server: the thread in thread.id, if it belongs to the process in process.pid (thread.id may also be a number of a
 * runtime environment); else all threads of the process; else all CPUs of the machine. A pid of a container's own
 * numbering is not used.
 *
 * A span has the times of CLOCK_REALTIME, the trace those of the tracer's clock; they differ by at most E
 * (span_clock.error, and the precision of the file). The bounds hold for all differences:
 *
 * - low: loss of the thread within [start + E, end - E], as of a request that executes; 0 without a thread, and for
 *   threads that work for several traces in turns, because the loss may have hit another request.
 * - high: loss within [start - E, end + E], for a process the sum over its threads; at most the latency.
 *
 * The culprit is that of [start + E, end - E]. Cost: up to three attributions for each span and thread. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/mem.h"
#include "base/number.h"
#include "base/text.h"
#include "base/timefmt.h"
#include "latency/attribution.h"

#define NO_MACHINE (-1)

/* The server of a span: a thread, the threads of a process, or a machine. */
struct span_place {
	uint32_t machine;
	uint32_t *thread;        /* indices into the catalog */
	size_t threads, cap;     /* 0: the machine as a whole */
	bool is_known_thread;    /* thread[0] is the thread of the span itself */
};

struct span_reading {
	const struct catalog *catalog;
	const struct spans *spans;
	const struct span_clocks *clocks;
	const struct requests_options *options;
	struct requests *out;
	bool *interleaved;       /* of each span: its thread works for other traces meanwhile */
	int32_t *machine;        /* of each source: index, or NO_MACHINE */
	size_t unplaced, without_clock, of_machine, shared_threads;
	int64_t error;           /* largest E */
	struct span_place place; /* of the current span; the memory is reused */
	struct error *err;
};

/* ---- Machines ----------------------------------------------------------------------------------------------- */

/* Returns true if the text is the name, or the name with a domain. */
static bool is_name(const char *text, const char *name)
{
	const size_t n = name ? strlen(name) : 0;
	return n && strncasecmp(text, name, n) == 0 && (text[n] == '\0' || text[n] == '.');
}

/* Returns true if the text names machine m. "host" is the name that every history gives to its host: only the host name
 * in its trace counts. */
static bool names_machine(const struct span_reading *rd, const char *text, uint32_t m)
{
	const struct catalog_machine *machine = &rd->catalog->machine[m];
	return is_name(text, rd->clocks->machine[m].hostname) ||
	       (machine->kind != MACHINE_HOST && is_name(text, machine->name));
}

static int32_t find_machine(const struct span_reading *rd, const struct span_source *s)
{
	int32_t found = NO_MACHINE;
	for (size_t k = 0; k < SPAN_HOST_KEYS; k++) {
		for (uint32_t m = 0; s->host[k] && m < rd->catalog->machines; m++) {
			if (!names_machine(rd, s->host[k], m))
				continue;
			if (found != NO_MACHINE && found != (int32_t)m)
				return NO_MACHINE;
			found = (int32_t)m;
		}
	}
	return found;
}

/* ---- Threads ------------------------------------------------------------------------------------------------ */

/* Returns 1 if the thread belongs to the process at any time within [t0, t1], 0 or -1. */
static int belongs_to(const struct span_reading *rd, const struct catalog_thread *t, int32_t pid, int64_t t0, int64_t t1)
{
	struct history_cursor c;
	struct interval iv;
	int more, found = t->tid == pid;
	if (t->status == HISTORY_NONE)
		return 0;
	if (!found && t->pid != HISTORY_NONE) {
		if (history_range(&c, rd->catalog->h, t->pid, t0, t1, rd->err))
			return -1;
		while (!found && (more = history_range_next(&c, &iv, rd->err)) != 0) {
			if (more < 0)
				return -1;
			found = iv.value == pid;
		}
	}
	if (!found)
		return 0;
	if (history_range(&c, rd->catalog->h, t->status, t0, t1, rd->err))
		return -1;
	while ((more = history_range_next(&c, &iv, rd->err)) > 0)
		if (iv.value != HISTORY_NULL)
			return 1;
	return more;
}

/* Determines the server of a span for [t0, t1]. */
static int find_place(struct span_reading *rd, const struct span *s, uint32_t machine, int64_t t0, int64_t t1)
{
	const struct span_source *source = &rd->spans->source[s->source];
	const struct catalog_machine *m = &rd->catalog->machine[machine];
	struct span_place *p = &rd->place;
	p->machine = machine;
	p->threads = 0;
	p->is_known_thread = false;
	if (source->pid < 0 || (source->in_container && m->kind != MACHINE_CONTAINER))
		return 0;
	for (uint32_t i = m->thread; i < m->thread + m->threads; i++) {
		const bool is_own = rd->catalog->thread[i].tid == s->tid;
		int belongs = belongs_to(rd, &rd->catalog->thread[i], source->pid, t0, t1);
		if (belongs < 0)
			return -1;
		if (!belongs)
			continue;
		if (is_own)
			p->threads = 0;
		*ARRAY_PUSH(p->thread, p->threads, p->cap) = i;
		p->is_known_thread = is_own;
		if (is_own)
			break;
	}
	return 0;
}

struct thread_span { uint32_t machine; int32_t pid, tid; size_t span; int64_t start, end; };

static int by_thread(const void *pa, const void *pb)
{
	const struct thread_span *a = pa, *b = pb;
	if (a->machine != b->machine)
		return a->machine < b->machine ? -1 : 1;
	if (a->pid != b->pid)
		return a->pid < b->pid ? -1 : 1;
	if (a->tid != b->tid)
		return a->tid < b->tid ? -1 : 1;
	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	return (a->end < b->end) - (a->end > b->end);
}

static bool is_same_thread(const struct thread_span *a, const struct thread_span *b)
{
	return a->machine == b->machine && a->pid == b->pid && a->tid == b->tid;
}

/* Returns true if span b, which begins within a, ends within a and is its child. */
static bool is_nested(const struct span_reading *rd, const struct thread_span *a, const struct thread_span *b)
{
	const struct span *outer = &rd->spans->span[a->span], *inner = &rd->spans->span[b->span];
	return b->end <= a->end && strcmp(outer->trace, inner->trace) == 0 && strcmp(outer->id, inner->parent) == 0;
}

/* Marks the spans of threads that work in turns: groups of overlapping spans in which one is not the child of the
 * innermost span around it. */
static void find_interleaved(struct span_reading *rd)
{
	struct thread_span *list = mem_new(rd->spans->len + 1, sizeof *list);
	size_t n = 0, *open = mem_new(rd->spans->len + 1, sizeof *open);  /* spans around the current one, outermost first */
	for (size_t i = 0; i < rd->spans->len; i++) {
		const struct span *s = &rd->spans->span[i];
		const struct span_source *source = &rd->spans->source[s->source];
		if (s->tid >= 0 && source->pid >= 0 && rd->machine[s->source] != NO_MACHINE)
			list[n++] = (struct thread_span){ (uint32_t)rd->machine[s->source], source->pid, s->tid, i, s->start,
			                                  s->end };
	}
	qsort(list, n, sizeof *list, by_thread);
	for (size_t i = 0, end; i < n; i = end) {
		int64_t last = list[i].end;
		size_t depth = 0;
		bool mixed = false;
		open[depth++] = i;
		for (end = i + 1; end < n && is_same_thread(&list[i], &list[end]) && list[end].start < last; end++) {
			while (depth && list[open[depth - 1]].end <= list[end].start)
				depth--;
			mixed = mixed || (depth && !is_nested(rd, &list[open[depth - 1]], &list[end]));
			open[depth++] = end;
			last = max64(last, list[end].end);
		}
		for (size_t k = i; mixed && k < end; k++)
			rd->interleaved[list[k].span] = true;
	}
	free(list);
	free(open);
}

/* ---- Bounds ------------------------------------------------------------------------------------------------- */

static int attribute_machine(const struct span_reading *rd, struct request *r)
{
	const struct target target = { TARGET_MACHINE, rd->place.machine };
	struct demand d;
	if (demand_of(rd->catalog, &target, r->start, r->end, &d, rd->err))
		return -1;
	r->unknown = d.alive - d.ran - d.lost - d.slept;
	if (d.rows == 0 || rd->catalog->machine[rd->place.machine].hides_stolen_time)
		r->unknown = r->end - r->start + 1;
	r->high = d.lost + r->unknown;
	return 0;
}

/* Fills the bounds and features of [r->start, r->end]: the sum over the threads of the place. */
static int attribute_place(const struct span_reading *rd, bool executing, struct request *r)
{
	if (rd->place.threads == 0)
		return attribute_machine(rd, r);
	for (size_t i = 0; i < rd->place.threads; i++)
		if (attribute_thread(rd->catalog, rd->place.thread[i], executing, r, rd->err))
			return -1;
	return 0;
}

/* Fills the bounds of a request for clocks that differ by up to E. */
static int find_bounds(const struct span_reading *rd, struct request *r, int64_t error, bool executing)
{
	const struct history *h = rd->catalog->h;
	struct request wide = { .start = max64(r->start - error, history_begin(h)),
	                        .end = min64(r->end + error, history_end(h)) };
	struct request inside = { .start = r->start + error, .end = r->end - error, .machine = r->machine, .shared = -1 };
	int rc = attribute_place(rd, executing, r);
	if (rc == 0 && error) {
		rc = attribute_place(rd, false, &wide);
		r->high = wide.high;
		r->unknown = wide.unknown;
		if (rc == 0 && executing && inside.start <= inside.end)
			rc = attribute_place(rd, true, &inside);
		r->low = inside.low;
	}
	r->unknown = min64(r->unknown, request_latency(r));
	r->high = min64(r->high, request_latency(r));
	if (rd->place.threads != 1)
		r->tid = -1;
	if (rc == 0 && rd->options->culprits && rd->place.threads == 1 && inside.start <= inside.end) {
		inside.tid = r->tid;
		inside.high = r->high;
		inside.unknown = r->unknown;
		rc = r->high > 0 ? request_find_culprit(rd->catalog, &inside, rd->err) : 0;
		r->culprit = inside.culprit;
		r->sharer = inside.sharer;
		r->shared = error ? -1 : inside.shared;
	}
	free(wide.container);
	free(inside.container);
	return rc;
}

/* ---- Reading ------------------------------------------------------------------------------------------------ */

static bool is_wanted(const struct span_reading *rd, const struct span *s, uint32_t machine, int64_t start, int64_t end)
{
	const struct requests_options *o = rd->options;
	return request_in_window(o, start, end) &&
	       (!o->machine || strcmp(o->machine, rd->catalog->machine[machine].name) == 0) &&
	       (!o->id || strcmp(o->id, s->name) == 0 || strcmp(o->id, s->id) == 0);
}

static int add_span(struct span_reading *rd, size_t i)
{
	const struct span *s = &rd->spans->span[i];
	const int32_t machine = rd->machine[s->source];
	if (machine == NO_MACHINE) {
		rd->unplaced++;
		return 0;
	}
	const struct span_clock *clock = &rd->clocks->machine[machine];
	if (!clock->known) {
		rd->without_clock++;
		return 0;
	}
	if (s->start < clock->begin || s->end > clock->end) {
		rd->out->cut++;
		return 0;
	}
	const int64_t error = clock->error + s->precision;
	const int64_t start = rd->clocks->to_host(rd->clocks->arg, (uint32_t)machine, s->start);
	const int64_t end = max64(start, rd->clocks->to_host(rd->clocks->arg, (uint32_t)machine, s->end) - 1);
	if (start < history_begin(rd->catalog->h) || end > history_end(rd->catalog->h)) {
		rd->out->cut++;
		return 0;
	}
	if (!is_wanted(rd, s, (uint32_t)machine, start, end))
		return 0;
	if (find_place(rd, s, (uint32_t)machine, start, end))
		return -1;
	rd->error = max64(rd->error, error);
	rd->of_machine += rd->place.threads == 0;
	rd->shared_threads += rd->place.is_known_thread && rd->interleaved[i];
	struct request *r = ARRAY_PUSH(rd->out->row, rd->out->len, rd->out->cap);
	*r = (struct request){ .machine = mem_dup(rd->catalog->machine[machine].name), .tid = -1, .start = start, .end = end,
	                       .id = mem_printf("%s %s", s->name, s->id), .state = HISTORY_NONE, .thread = HISTORY_NONE,
	                       .shared = -1, .span = i };
	return find_bounds(rd, r, error, rd->place.is_known_thread && !rd->interleaved[i]);
}

static void add_notes(const struct span_reading *rd, struct notes *notes)
{
	char which[64], time[TIME_TEXT];
	const size_t all = rd->spans->len + rd->spans->incomplete;
	if (rd->unplaced)
		note_add(notes, SPANS_UNPLACED, NULL, text_count_of_all(which, rd->unplaced, all, "span"));
	if (rd->without_clock)
		note_add(notes, SPANS_WITHOUT_CLOCK, NULL, text_count_of_all(which, rd->without_clock, all, "span"));
	if (rd->spans->incomplete)
		note_add(notes, SPANS_INCOMPLETE, NULL, text_count_of_all(which, rd->spans->incomplete, all, "span"));
	if (rd->out->cut)
		note_add(notes, REQUESTS_CUT, NULL, rd->out->cut);
	if (rd->of_machine)
		note_add(notes, SPANS_OF_MACHINE, NULL, text_count_of_all(which, rd->of_machine, all, "span"));
	if (rd->shared_threads)
		note_add(notes, SPANS_INTERLEAVED, NULL, text_count_of_all(which, rd->shared_threads, all, "span"));
	if (rd->error)
		note_add(notes, SPANS_CLOCK_ERROR, NULL, time_duration(time, rd->error));
}

int spans_requests(const struct catalog *catalog, const struct spans *spans, const struct span_clocks *clocks,
                   const struct requests_options *options, struct requests *out, struct notes *notes, struct error *err)
{
	struct span_reading rd = { .catalog = catalog, .spans = spans, .clocks = clocks, .options = options, .out = out,
	                           .interleaved = mem_new(spans->len + 1, sizeof(bool)),
	                           .machine = mem_new(spans->sources + 1, sizeof(int32_t)), .err = err };
	int rc = 0;
	*out = (struct requests){ 0 };
	for (size_t i = 0; i < spans->sources; i++)
		rd.machine[i] = find_machine(&rd, &spans->source[i]);
	find_interleaved(&rd);
	for (size_t i = 0; i < spans->len && rc == 0; i++)
		rc = add_span(&rd, i);
	if (rc == 0) {
		requests_sort(out);
		add_notes(&rd, notes);
	} else {
		requests_release(out);
	}
	free(rd.place.thread);
	free(rd.interleaved);
	free(rd.machine);
	return rc;
}
