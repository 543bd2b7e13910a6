/* Distributed traces' critical paths.
 *
 * All times are the host's, to which the machines' clocks are synchronized. Spans of machines that were not
 * recorded have no such times: their children belong to the nearest recorded span above, and the time that this one waited
 * for them is its time between. A child counts as sequential if it ends before the next one starts, within the errors of
 * both clocks.
 *
 * The path is found without recursion, because spans may be nested to any depth; parent cycles are cut. Cost:
 * O(n log n) for n spans, and one request_parts_add() for each step. */
#include <strings.h>

#include "base/base.h"
#include "base/hash.h"
#include "latency/span_place.h"

#define NONE SIZE_MAX
#define KIND_SERVER 2    /* OTLP's number */
#define KIND_CONSUMER 5

/* A span in the recording, ordered by trace, then start. */
struct span_node {
	size_t span, parent;     /* parent: a node's index; NONE: the span is a first one */
	size_t child, children;  /* its children are order[child .. child + children - 1], sorted by end */
	size_t trace;            /* the trace's number */
	int32_t machine;
	int64_t start, end;      /* the host's ns, closed */
	int64_t error;           /* error in both, ns */
};

/* A part of the path: a node's and its children's, or (own) the node's alone. node NONE: between the first spans. */
struct span_interval { size_t node; int64_t from, to; bool own; };

struct path_search {
	const struct catalog *catalog;
	const struct spans *spans;
	const struct requests *requests;
	struct span_places *places;
	struct span_place place;
	struct span_node *node;
	size_t nodes;
	size_t *of_span;         /* each span's node, or NONE */
	size_t *order;           /* nodes: a node's children together; at the end the first spans, by trace */
	size_t first, firsts;    /* the current trace's first spans: order[first .. first + firsts - 1] */
	struct span_interval *stack; /* the earliest part is on top */
	size_t depth, depth_cap;
	struct traces *out;
	struct error *err;
};

/* ---- Parents ------------------------------------------------------------------------------------------------ */

static int compare_text(const char *a, const char *b)
{
	const int c = strcmp(a, b);
	return (c > 0) - (c < 0);
}

static int by_trace(const void *pa, const void *pb, void *arg)
{
	const struct spans *spans = arg;
	const struct span_node *a = pa, *b = pb;
	const int c = compare_text(spans->span[a->span].trace, spans->span[b->span].trace);
	if (c)
		return c;
	if (a->start != b->start)
		return a->start < b->start ? -1 : 1;
	if (a->end != b->end)
		return a->end > b->end ? -1 : 1;
	return (a->span > b->span) - (a->span < b->span);
}

static uint64_t span_key(const char *trace, const char *id)
{
	return hash_text(hash_text(HASH_BEGIN, trace), id);
}

/* Returns true if span a is span b's parent, by ids. */
static bool is_parent(const struct span *a, const struct span *b)
{
	return strcmp(a->id, b->parent) == 0 && strcmp(a->trace, b->trace) == 0;
}

/* Finds each span's parent in the file, by ids: parent[i] is an index, or NONE. Two spans may share an id (Zipkin:
 * client and server): then the server is the other one's child, and the children's parent. */
static void find_parents(const struct spans *spans, size_t *parent)
{
	struct map by_id = MAP_INIT;
	for (size_t i = 0; i < spans->len; i++) {
		const struct span *s = &spans->span[i];
		bool is_new;
		uint64_t *value = map_put(&by_id, span_key(s->trace, s->id), &is_new);
		const struct span *other = is_new ? NULL : &spans->span[*value];
		parent[i] = NONE;
		if (is_new || (s->kind == KIND_SERVER && other->kind != KIND_SERVER))
			*value = i;
	}
	for (size_t i = 0; i < spans->len; i++) {
		const struct span *s = &spans->span[i];
		const uint64_t *same = map_find(&by_id, span_key(s->trace, s->id));
		const uint64_t *up = map_find(&by_id, span_key(s->trace, s->parent));
		if (same && *same != i && s->kind != KIND_SERVER && strcmp(spans->span[*same].id, s->id) == 0)
			parent[*same] = i;
		if (*s->parent && up && *up != i && is_parent(&spans->span[*up], s) && parent[i] == NONE)
			parent[i] = *up;
	}
	map_release(&by_id);
}

/* Replaces each span's parent by the nearest one above that is a node; cuts cycles. */
static void skip_missing(const struct path_search *q, size_t *parent)
{
	enum { NEW, ON_WALK, DONE };
	unsigned char *state = mem_new(q->spans->len + 1, 1);
	size_t *walk = mem_new(q->spans->len + 1, sizeof *walk);
	for (size_t i = 0; i < q->spans->len; i++) {
		size_t n = 0, at = i;
		for (; at != NONE && state[at] == NEW; at = parent[at]) {
			state[at] = ON_WALK;
			walk[n++] = at;
		}
		if (at != NONE && state[at] == ON_WALK)
			at = NONE;  /* a cycle */
		while (n-- > 0) {
			parent[walk[n]] = at == NONE || q->of_span[at] != NONE ? at : parent[at];
			state[walk[n]] = DONE;
			at = walk[n];
		}
	}
	free(state);
	free(walk);
}

static int by_end(const void *pa, const void *pb, void *arg)
{
	const struct span_node *node = arg, *a = &node[*(const size_t *)pa], *b = &node[*(const size_t *)pb];
	if (a->parent != b->parent)
		return a->parent < b->parent ? -1 : 1;
	if (a->trace != b->trace)
		return a->trace < b->trace ? -1 : 1;
	if (a->end != b->end)
		return a->end < b->end ? -1 : 1;
	return (a > b) - (a < b);
}

/* Makes the nodes, sorted by trace, and links them. */
static void make_nodes(struct path_search *q, const struct span_clocks *clocks)
{
	const struct spans *spans = q->spans;
	q->nodes = q->requests->len;
	q->node = mem_new(q->nodes + 1, sizeof *q->node);
	q->of_span = mem_new(spans->len + 1, sizeof *q->of_span);
	q->order = mem_new(q->nodes + 1, sizeof *q->order);
	size_t *parent = mem_new(spans->len + 1, sizeof *parent);
	memset(q->of_span, 0xff, spans->len * sizeof *q->of_span);
	for (size_t i = 0; i < q->nodes; i++) {
		const struct request *r = &q->requests->row[i];
		const struct span *s = &spans->span[r->span];
		const int32_t machine = span_machine(q->places, s);
		q->node[i] = (struct span_node){ .span = r->span, .parent = NONE, .machine = machine, .start = r->start,
		                                 .end = r->end, .error = clocks->machine[machine].error + s->precision };
	}
	qsort_r(q->node, q->nodes, sizeof *q->node, by_trace, (void *)(uintptr_t)spans);
	for (size_t i = 0; i < q->nodes; i++) {
		const char *id = spans->span[q->node[i].span].trace;
		q->of_span[q->node[i].span] = i;
		if (i)
			q->node[i].trace = q->node[i - 1].trace + (strcmp(id, spans->span[q->node[i - 1].span].trace) != 0);
	}
	find_parents(spans, parent);
	skip_missing(q, parent);
	for (size_t i = 0; i < q->nodes; i++) {
		const size_t up = parent[q->node[i].span];
		q->node[i].parent = up == NONE ? NONE : q->of_span[up];
		q->order[i] = i;
	}
	free(parent);
	qsort_r(q->order, q->nodes, sizeof *q->order, by_end, q->node);
	for (size_t i = 0; i < q->nodes; i++) {
		const size_t up = q->node[q->order[i]].parent;
		if (up != NONE && q->node[up].children++ == 0)
			q->node[up].child = i;
	}
}

/* ---- One path ----------------------------------------------------------------------------------------------- */

static void push(struct path_search *q, size_t node, int64_t from, int64_t to, bool own)
{
	if (from <= to)
		*ARRAY_PUSH(q->stack, q->depth, q->depth_cap) = (struct span_interval){ node, from, to, own };
}

/* Fills a step's culprit if its thread is known. */
static int find_culprit(const struct path_search *q, const struct span_node *n, struct trace_step *step)
{
	struct request r = { .machine = (char *)(uintptr_t)q->catalog->machine[n->machine].name, .start = step->start,
	                     .end = step->end, .tid = q->catalog->thread[q->place.thread[0]].tid,
	                     .high = step->parts.ns[PART_STOLEN] + step->parts.ns[PART_THROTTLED] };
	if (r.high == 0)
		return 0;
	const int rc = request_find_culprit(q->catalog, &r, q->err);
	step->culprit = r.culprit;
	free(r.sharer);
	return rc;
}

/* Adds a node's step, or a step without a node. */
static int add_step(struct path_search *q, size_t node, int64_t start, int64_t end)
{
	struct trace_step step = { .span = NONE, .machine = NO_MACHINE, .start = start, .end = end };
	if (node == NONE) {
		step.parts.ns[PART_BETWEEN] = end - start + 1;
	} else {
		const struct span_node *n = &q->node[node];
		step.span = n->span;
		step.machine = n->machine;
		if (span_place_find(q->places, n->span, n->start, n->end, n->error, &q->place, q->err))
			return -1;
		/* A thread that may not belong to the process says nothing about it. */
		const size_t threads = q->place.threads == q->place.members ? q->place.threads : 0;
		if (request_parts_add(q->catalog, q->place.thread, threads, start, end, &step.parts, q->err))
			return -1;
		step.by_process = !q->place.is_known_thread;
		if (!step.by_process && find_culprit(q, n, &step))
			return -1;
	}
	*ARRAY_PUSH(q->out->step, q->out->steps, q->out->steps_cap) = step;
	return 0;
}

/* Returns how far two node events' order may err: on one machine the file's error. */
static int64_t order_error(const struct path_search *q, const struct span_node *a, const struct span_node *b)
{
	return a->machine == b->machine ? q->spans->span[a->span].precision : a->error + b->error;
}

/* Returns true if the parent does not wait for the child. */
static bool is_asynchronous(const struct path_search *q, const struct span_node *parent, const struct span_node *child)
{
	return q->spans->span[child->span].kind == KIND_CONSUMER || child->end > parent->end + order_error(q, parent, child);
}

/* Replaces a part of the path by the children's parts on it, and by the node's between them. */
static void split_part(struct path_search *q, struct span_interval part)
{
	const struct span_node *parent = part.node == NONE ? NULL : &q->node[part.node], *next = NULL;
	const size_t *child = q->order + (parent ? parent->child : q->first);
	int64_t cursor = part.to;  /* the node or a child before it */
	for (size_t i = parent ? parent->children : q->firsts; i-- > 0 && cursor >= part.from;) {
		const struct span_node *c = &q->node[child[i]];
		const int64_t start = max64(c->start, part.from), end = min64(c->end, cursor);
		if (parent && is_asynchronous(q, parent, c))
			q->out->asynchronous++;
		else if (start <= end && (!next || c->end <= cursor + order_error(q, c, next))) {
			push(q, part.node, end + 1, cursor, true);
			push(q, child[i], start, end, false);
			cursor = start - 1;
			next = c;
		}
	}
	push(q, part.node, part.from, cursor, true);
}

/* Adds the trace of the first spans order[q->first ..]. */
static int add_trace(struct path_search *q)
{
	struct span_node *first = &q->node[q->order[q->first]];
	struct trace_path t = { .span = q->firsts == 1 ? first->span : NONE, .start = first->start, .end = first->end,
	                        .step = q->out->steps };
	snprintf(t.id, sizeof t.id, "%s", q->spans->span[first->span].trace);
	for (size_t i = 0; i < q->firsts; i++) {
		t.start = min64(t.start, q->node[q->order[q->first + i]].start);
		t.end = max64(t.end, q->node[q->order[q->first + i]].end);
	}
	for (size_t i = (size_t)(first - q->node); i < q->nodes && q->node[i].trace == first->trace; i++)
		t.spans++;
	for (size_t i = (size_t)(first - q->node); i > 0 && q->node[i - 1].trace == first->trace; i--)
		t.spans++;
	push(q, q->firsts == 1 ? q->order[q->first] : NONE, t.start, t.end, false);
	while (q->depth) {
		const struct span_interval part = q->stack[--q->depth];
		if (!part.own)
			split_part(q, part);
		else if (add_step(q, part.node, part.from, part.to))
			return -1;
	}
	t.steps = q->out->steps - t.step;
	*ARRAY_PUSH(q->out->trace, q->out->len, q->out->cap) = t;
	return 0;
}

/* ---- All traces --------------------------------------------------------------------------------------------- */

ORDER_BY(by_start, struct trace_path, RISING(start) RISING_TEXT(id))

static bool has_end(const char *text, const char *end)
{
	const size_t n = strlen(text), k = strlen(end);
	return k > 0 && k <= n && strcasecmp(text + n - k, end) == 0;
}

int traces_read(const struct catalog *catalog, const struct spans *spans, const struct span_clocks *clocks,
                const struct requests *requests, const char *id, struct traces *out, struct error *err)
{
	struct path_search q = { .catalog = catalog, .spans = spans, .requests = requests, .out = out, .err = err,
	                         .places = span_places_open(catalog, spans, clocks) };
	int rc = 0;
	*out = (struct traces){ 0 };
	make_nodes(&q, clocks);
	while (q.first < q.nodes && q.node[q.order[q.first]].parent != NONE)
		q.first++;
	for (; q.first < q.nodes && rc == 0; q.first += q.firsts) {
		const struct span_node *n = &q.node[q.order[q.first]];
		q.firsts = 1;
		while (q.first + q.firsts < q.nodes && q.node[q.order[q.first + q.firsts]].trace == n->trace)
			q.firsts++;
		if (!id || has_end(spans->span[n->span].trace, id))
			rc = add_trace(&q);
	}
	ARRAY_SORT(out->trace, out->len, by_start);
	span_places_close(q.places);
	free(q.place.thread);
	free(q.node);
	free(q.of_span);
	free(q.order);
	free(q.stack);
	if (rc)
		traces_release(out);
	return rc;
}

void traces_release(struct traces *t)
{
	for (size_t i = 0; i < t->steps; i++)
		free(t->step[i].culprit);
	free(t->trace);
	free(t->step);
	*t = (struct traces){ 0 };
}
