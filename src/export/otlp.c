/* Makes spans from requests.
 *
 * A span that was read from a file keeps all its members; its attributes stealscope.* are set anew. A request of the
 * recording becomes a trace of its own. The gaps of the server thread of at least GAP_MIN become child spans, in a scope
 * of their own, which spans_parse() skips: a written file contains the same requests as the file that was read.
 *
 * Spans of one source follow each other in one ResourceSpans; a message has up to BATCH spans. Cost: one flow for each
 * request and gap. */
#include "export/otlp.h"

#include "base/atomic_file.h"
#include "base/base.h"
#include "base/hash.h"
#include "base/int128.h"
#include "base/otlp_json.h"

#define GAP_MIN NS_PER_MS
#define BATCH 256        /* spans */
#define KIND_INTERNAL 1  /* SPAN_KIND_INTERNAL, SPAN_KIND_SERVER */
#define KIND_SERVER 2
#define NAME_SIZE 512    /* bytes of an escaped name */
#define OWN_PREFIX "stealscope."

struct otlp {
	const struct catalog *catalog;
	const struct export_spans *in;
	int64_t run;
	int (*send)(void *arg, const char *text, size_t size, struct error *err);
	void *arg;
	struct json_object *message, *entry;  /* message; its last ResourceSpans (borrowed), NULL: none */
	uint64_t source;         /* of the entry: any number that differs between sources */
	size_t batch;            /* spans of the message */
	uint64_t written, gaps;
	struct error *err;
};

/* A span that is being made: of a request, or of a file without a request. */
struct work {
	const struct request *r; /* NULL: none */
	const struct span *s;
	int thread;              /* the server thread's index; -1: unknown */
	struct json_object *o;   /* the span, borrowed */
};

static int flush(struct otlp *w)
{
	if (!w->message)
		return 0;
	const char *text = json_object_to_json_string_ext(w->message, JSON_C_TO_STRING_PLAIN | JSON_C_TO_STRING_NOSLASHESCAPE);
	const int rc = w->send(w->arg, text, strlen(text), w->err);
	json_object_put(w->message);
	w->message = w->entry = NULL;
	w->batch = 0;
	return rc;
}

/* Begins a ResourceSpans, unless the last one has the same source. Returns true if it is new. */
static bool begin_entry(struct otlp *w, uint64_t source)
{
	if (!w->message) {
		w->message = json_new_object();
		json_put_array(w->message, "resourceSpans");
	}
	if (w->entry && w->source == source)
		return false;
	w->entry = json_append_object(json_member_array(w->message, "resourceSpans"));
	w->source = source;
	return true;
}

/* Returns the list of spans of a scope of the entry: 0: of the source, 1: own, for gaps. */
static struct json_object *scope_spans(struct otlp *w, size_t scope)
{
	struct json_object *scopes = json_put_array(w->entry, "scopeSpans");
	while (json_object_array_length(scopes) <= scope)
		json_put_array(json_append_object(scopes), "spans");
	struct json_object *o = json_object_array_get_idx(scopes, scope), *known;
	if (scope == 1 && !json_object_object_get_ex(o, "scope", &known))
		json_put_text(json_put_object(o, "scope"), "name", SPAN_OWN_SCOPE);
	return json_member_array(o, "spans");
}

/* Parses JSON that spans_parse() wrote. */
static struct json_object *parse(const char *text)
{
	struct json_object *o = text ? json_tokener_parse(text) : NULL;
	return o ? o : json_new_object();
}

static void put_id(char *id, uint64_t hash)
{
	snprintf(id, SPAN_ID + 1, "%016" PRIx64, hash_end(hash) | 1);  /* ids of zeros mean none */
}

/* ---- Attributes --------------------------------------------------------------------------------------------- */

static void drop_own_attributes(struct json_object *list)
{
	for (size_t i = json_object_array_length(list); i-- > 0;)
		if (strncmp(json_member_text(json_object_array_get_idx(list, i), "key"), OWN_PREFIX, strlen(OWN_PREFIX)) == 0)
			json_object_array_del_idx(list, i, 1);
}

/* Adds the request's results. */
static int add_results(struct otlp *w, const struct work *k)
{
	struct json_object *list = json_put_array(k->o, "attributes");
	drop_own_attributes(list);
	otlp_add_integer(list, OWN_PREFIX "stolen_ns.low", k->r->low);
	otlp_add_integer(list, OWN_PREFIX "stolen_ns.high", k->r->high);
	if (k->r->unknown)
		otlp_add_integer(list, OWN_PREFIX "unknown_ns", k->r->unknown);
	if (k->r->culprit)
		otlp_add_text(list, OWN_PREFIX "culprit", k->r->culprit);
	if (k->thread < 0 || w->catalog->machine[w->catalog->thread[k->thread].machine].kind != MACHINE_VM)
		return 0;
	const uint32_t thread = (uint32_t)k->thread;
	struct request_parts parts = { { 0 } };
	if (request_parts_add(w->catalog, &thread, 1, k->r->start, k->r->end, &parts, w->err))
		return -1;
	otlp_add_integer(list, OWN_PREFIX "throttled_ns", parts.ns[PART_THROTTLED]);
	return 0;
}

/* ---- Gaps --------------------------------------------------------------------------------------------------- */

/* Converts a time of the host's clock within the request to its span's clock. */
static int64_t to_span(const struct work *k, int64_t t)
{
	const int64_t length = k->r->end + 1 - k->r->start;
	return k->s->start + (int64_t)((int128)(t - k->r->start) * (k->s->end - k->s->start) / length);
}

static int add_gap(struct otlp *w, const struct work *k, const struct gap *gap, int64_t start, int64_t end)
{
	struct request in = { .machine = k->r->machine, .tid = k->r->tid, .start = start, .end = end, .high = end - start + 1 };
	char id[SPAN_ID + 1], state[NAME_SIZE];
	if (request_find_culprit(w->catalog, &in, w->err))
		return -1;
	put_id(id, hash_number(hash_text(hash_text(HASH_BEGIN, k->s->trace), k->s->id), (uint64_t)to_span(k, start)));
	struct json_object *o = json_append_object(scope_spans(w, 1)), *list;
	const uint32_t attr = w->catalog->thread[k->thread].status;
	json_put_text(o, "traceId", k->s->trace);
	json_put_text(o, "spanId", id);
	json_put_text(o, "parentSpanId", k->s->id);
	json_put_text(o, "name", "gap");
	json_object_object_add(o, "kind", json_object_new_int(KIND_INTERNAL));
	otlp_put_integer(o, "startTimeUnixNano", to_span(k, start));
	otlp_put_integer(o, "endTimeUnixNano", to_span(k, end + 1));
	list = json_put_array(o, "attributes");
	otlp_add_text(list, OWN_PREFIX "state",
	              text_escape(state, sizeof state, history_state_name(w->catalog->h, attr, (unsigned)gap->state)));
	if (in.culprit)
		otlp_add_text(list, OWN_PREFIX "culprit", in.culprit);
	free(in.culprit);
	free(in.sharer);
	w->gaps++;
	w->batch++;
	return 0;
}

/* Adds the server thread's gaps, cut to the request. */
static int add_gaps(struct otlp *w, const struct work *k)
{
	const struct target target = { TARGET_THREAD, (uint32_t)k->thread };
	struct gap gap;
	int found = k->thread < 0 ? 0 : gap_at(w->catalog, &target, k->r->start, &gap, w->err);
	if (found == 0 && k->thread >= 0)
		found = gap_find(w->catalog, &target, k->r->start, 1, &gap, w->err);
	for (; found > 0 && gap.start <= k->r->end; found = gap_find(w->catalog, &target, gap.end, 1, &gap, w->err)) {
		const int64_t start = max64(gap.start, k->r->start), end = min64(gap.end, k->r->end);
		if (end - start + 1 >= GAP_MIN && add_gap(w, k, &gap, start, end))
			return -1;
	}
	return found < 0 ? -1 : 0;
}

/* ---- Spans of a file ---------------------------------------------------------------------------------------- */

static int find_thread(const struct otlp *w, const struct request *r)
{
	const int machine = r ? catalog_find_machine(w->catalog, r->machine) : -1;
	return machine < 0 || r->tid < 0 ? -1 : catalog_find_thread(w->catalog, (uint32_t)machine, r->tid);
}

static int add_work(struct otlp *w, const struct work *k)
{
	w->written++;
	w->batch++;
	if (k->r && (add_results(w, k) || add_gaps(w, k)))
		return -1;
	return w->batch >= BATCH ? flush(w) : 0;
}

static int add_span_of_file(struct otlp *w, const struct span *s, const struct request *r)
{
	const struct span_source *source = &w->in->spans->source[s->source];
	struct work k = { r, s, find_thread(w, r), parse(s->json) };
	if (begin_entry(w, s->source)) {
		if (source->resource)
			json_object_object_add(w->entry, "resource", parse(source->resource));
		scope_spans(w, 0);
		if (source->scope)
			json_object_object_add(json_object_array_get_idx(json_member_array(w->entry, "scopeSpans"), 0), "scope",
			                       parse(source->scope));
	}
	/* Ids in the form that OTLP requires. */
	json_put_text(k.o, "traceId", s->trace);
	json_put_text(k.o, "spanId", s->id);
	if (*s->parent)
		json_put_text(k.o, "parentSpanId", s->parent);
	json_object_array_add(scope_spans(w, 0), k.o);
	return add_work(w, &k);
}

static int add_spans_of_file(struct otlp *w)
{
	const struct spans *spans = w->in->spans;
	const struct request **of = mem_new(spans->len + 1, sizeof *of);
	int rc = 0;
	for (size_t i = 0; i < w->in->requests->len; i++)
		of[w->in->requests->row[i].span] = &w->in->requests->row[i];
	for (size_t i = 0; i < spans->len && rc == 0; i++)
		rc = add_span_of_file(w, &spans->span[i], of[i]);
	free(of);
	return rc;
}

/* ---- Requests of the recording ------------------------------------------------------------------------------ */

/* Reads the process and its name at the request's start. *pid: -1: unknown. */
static int find_process(struct otlp *w, const struct request *r, int thread, int64_t *pid, char *name, size_t size)
{
	const struct history *h = w->catalog->h;
	struct interval iv;
	*pid = -1;
	*name = '\0';
	if (thread < 0)
		return 0;
	const struct catalog_thread *t = &w->catalog->thread[thread];
	if (t->pid != HISTORY_NONE) {
		if (history_stab(h, t->pid, r->start, &iv, w->err))
			return -1;
		*pid = iv.value > 0 && iv.value <= INT32_MAX ? iv.value : -1;
	}
	const int main_thread = *pid < 0 ? -1 : catalog_find_thread(w->catalog, t->machine, (int32_t)*pid);
	const uint32_t attr = w->catalog->thread[main_thread < 0 ? thread : main_thread].name;
	if (attr == HISTORY_NONE)
		return 0;
	if (history_stab(h, attr, r->start, &iv, w->err))
		return -1;
	if (iv.value != HISTORY_NULL)
		text_escape(name, size, history_string(h, iv.value));
	return 0;
}

static int add_request(struct otlp *w, const struct request *r, uint32_t machine)
{
	char name[NAME_SIZE], service[NAME_SIZE], host[NAME_SIZE];
	const struct span_clocks *clocks = w->in->clocks;
	const uint64_t own = hash_number(hash_number(0, (uint64_t)w->run), (uint64_t)r->start);
	const uint64_t hash = hash_text(hash_text(own, r->machine), r->id);
	struct span s = { .name = name, .tid = r->tid };
	struct work k = { r, &s, find_thread(w, r), NULL };
	int64_t pid;
	if (find_process(w, r, k.thread, &pid, service, sizeof service))
		return -1;
	text_escape(name, sizeof name, r->id);
	snprintf(host, sizeof host, "%s", clocks->machine[machine].hostname ? clocks->machine[machine].hostname : "");
	put_id(s.trace, hash);
	put_id(s.trace + SPAN_ID, hash_number(hash, 1));
	put_id(s.id, hash_number(hash, 2));
	s.start = clocks->to_machine(clocks->arg, machine, r->start);
	s.end = max64(s.start, clocks->to_machine(clocks->arg, machine, r->end + 1));
	if (begin_entry(w, hash_text(hash_number(machine, (uint64_t)pid), service))) {
		struct json_object *list = json_put_array(json_put_object(w->entry, "resource"), "attributes");
		otlp_add_text(list, "service.name", *service ? service : "unknown_service");
		otlp_add_text(list, "host.name", *host ? host : text_escape(host, sizeof host, r->machine));
		if (pid > 0)
			otlp_add_integer(list, "process.pid", pid);
		if (r->container)
			otlp_add_text(list, OWN_PREFIX "container", text_escape(host, sizeof host, r->container));
	}
	k.o = json_append_object(scope_spans(w, 0));
	json_put_text(k.o, "traceId", s.trace);
	json_put_text(k.o, "spanId", s.id);
	json_put_text(k.o, "name", name);
	json_object_object_add(k.o, "kind", json_object_new_int(KIND_SERVER));
	otlp_put_integer(k.o, "startTimeUnixNano", s.start);
	otlp_put_integer(k.o, "endTimeUnixNano", s.end);
	if (r->tid >= 0)
		otlp_add_integer(json_put_array(k.o, "attributes"), "thread.id", r->tid);
	return add_work(w, &k);
}

/* Adds the requests of machines with times since the epoch. */
static int add_requests(struct otlp *w)
{
	int rc = 0;
	for (size_t i = 0; i < w->in->requests->len && rc == 0; i++) {
		const struct request *r = &w->in->requests->row[i];
		const int machine = catalog_find_machine(w->catalog, r->machine);
		if (machine >= 0 && w->in->clocks->machine[machine].known)
			rc = add_request(w, r, (uint32_t)machine);
	}
	if (rc == 0 && w->written == 0)
		rc = error_set(w->err, STATUS_INPUT, "record with LTTng, or stealscope record",
		               "the recording has no times since 1970, which spans require");
	return rc;
}

/* ---- All ---------------------------------------------------------------------------------------------------- */

int otlp_make(const struct catalog *catalog, const struct export_spans *spans, int64_t run,
              int (*send)(void *arg, const char *text, size_t size, struct error *err), void *arg,
              struct export_result *out, struct error *err)
{
	struct otlp w = { .catalog = catalog, .in = spans, .run = run, .send = send, .arg = arg, .err = err };
	int rc = spans->spans ? add_spans_of_file(&w) : add_requests(&w);
	if (rc == 0)
		rc = flush(&w);
	json_object_put(w.message);
	out->table = mem_new(2, sizeof *out->table);
	out->tables = 2;
	out->table[0] = (struct export_table){ "span", "request, or a span of the file", w.written };
	out->table[1] = (struct export_table){ "gap", "child span: the thread waited for a CPU for 1 ms or more", w.gaps };
	return rc;
}

static int write_line(void *arg, const char *text, size_t size, struct error *err)
{
	FILE *f = arg;
	(void)err;  /* atomic_file_end() reports errors of writing */
	fwrite(text, 1, size, f);
	putc('\n', f);
	return 0;
}

int otlp_write_file(const struct catalog *catalog, const struct export_spans *spans, int64_t run, const char *target,
                    struct export_result *out, struct error *err)
{
	struct save save;
	if (atomic_file_begin(&save, target, err))
		return -1;
	return atomic_file_end(&save, otlp_make(catalog, spans, run, write_line, save.f, out, err), err);
}
