/* The execution flow: pieces of the resolver joined into intervals, summed into entries (paper, Eq. 3).
 *
 * Cost: linear in the intervals touched; long windows are cut in parts, one per processor.
 * Memory: 32 bytes per interval of the result, which the caller owns; running out of it is an error, not the end of the
 * program, since it grows with the trace. */
#include "flow/flow_private.h"
#include "flow/parts.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define FLOW_NAME(code, name) name,
const char *const flow_kind_name[FLOW_KIND_COUNT] = { FLOW_KINDS(FLOW_NAME) };
#undef FLOW_NAME

/* The last few entries, since neighbours in time alternate between few threads. */
#define RECENT 32

struct collect {
	struct flow *flow;
	struct piece last;
	size_t interval_cap, entry_cap;
	struct map entry_by_key;  /* hash of the key, probed upwards -> index into entry */
	uint32_t recent[RECENT];  /* index into entry, + 1 */
	struct error *err;
};

static uint64_t entry_hash(const struct flow_interval *p)
{
	uint64_t h = (uint64_t)(uint32_t)p->tid << 32 | p->name;
	h = (h ^ (uint64_t)(uint32_t)p->system << 8 ^ p->kind) * 0x9E3779B97F4A7C15ULL;
	return h ^ h >> 29;
}

static bool entry_is(const struct flow_entry *e, const struct flow_interval *p)
{
	return e->tid == p->tid && e->name == p->name && e->system == p->system && e->kind == p->kind;
}

/* The entry with the identity of p, made when it is new. */
static struct flow_entry *entry_of(struct collect *c, const struct flow_interval *p)
{
	struct flow *f = c->flow;
	uint64_t hash = entry_hash(p);
	uint32_t *recent = &c->recent[hash % RECENT];
	if (*recent && entry_is(&f->entry[*recent - 1], p))
		return &f->entry[*recent - 1];
	for (;; hash++) {
		bool is_new;
		uint64_t *at = map_put(&c->entry_by_key, hash, &is_new);
		if (is_new) {
			*at = f->entries;
			*ARRAY_PUSH(f->entry, f->entries, c->entry_cap) = (struct flow_entry){
				.system = p->system, .tid = p->tid, .name = p->name, .kind = p->kind };
		}
		if (entry_is(&f->entry[*at], p)) {
			*recent = (uint32_t)*at + 1;
			return &f->entry[*at];
		}
	}
}

static int room(struct collect *c, size_t more)
{
	struct flow *f = c->flow;
	size_t cap = c->interval_cap ? c->interval_cap : 64;
	if (f->intervals + more <= c->interval_cap)
		return 0;
	while (cap < f->intervals + more)
		cap *= 2;
	void *p = cap < SIZE_MAX / sizeof *f->interval ? realloc(f->interval, cap * sizeof *f->interval) : NULL;
	if (!p)
		return error_set(c->err, STATUS_SYSTEM, "ask for a shorter window",
		                 "execution flow: out of memory after %zu intervals", f->intervals);
	f->interval = p;
	c->interval_cap = cap;
	return 0;
}

static int add_piece(void *arg, const struct piece *p, int64_t start, int64_t end)
{
	struct collect *c = arg;
	struct flow *f = c->flow;
	if (f->intervals && piece_same(&c->last, p)) {
		f->interval[f->intervals - 1].end = end;
		return 0;
	}
	if (room(c, 1) < 0)
		return -1;
	c->last = *p;
	f->interval[f->intervals++] = (struct flow_interval){ .start = start, .end = end, .system = p->system,
		.tid = p->tid, .name = p->name, .pcpu = p->pcpu, .kind = p->kind };
	return 0;
}

int flow_entry_order(const void *a, const void *b)
{
	const struct flow_entry *x = a, *y = b;
	if (x->duration != y->duration)
		return x->duration < y->duration ? 1 : -1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	if (x->system != y->system)
		return x->system < y->system ? -1 : 1;
	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	return (x->name > y->name) - (x->name < y->name);
}

static void sum_up(struct collect *c)
{
	struct flow *f = c->flow;
	for (size_t i = 0; i < f->intervals; i++) {
		const struct flow_interval *p = &f->interval[i];
		entry_of(c, p)->duration += p->end - p->start + 1;
	}
	map_release(&c->entry_by_key);
}

static void put_in_order(struct flow *f)
{
	for (size_t i = 0; i < f->entries; i++)
		f->entry[i].share = (double)f->entry[i].duration / ((double)(f->end - f->start) + 1);
	if (f->entries)
		qsort(f->entry, f->entries, sizeof *f->entry, flow_entry_order);
}

static int collect_part(struct resolver *r, const struct subject *s, int64_t from, int64_t to, struct flow *out)
{
	struct collect c = { .flow = out, .err = r->err };
	*out = (struct flow){ .start = from, .end = to };
	if (resolve_walk(r, s, from, to, add_piece, &c) < 0) {
		flow_release(out);
		return -1;
	}
	sum_up(&c);
	return 0;
}

int flow_collect(struct resolver *r, const struct subject *s, int64_t from, int64_t to, struct flow *out)
{
	if (collect_part(r, s, from, to, out) < 0)
		return -1;
	put_in_order(out);
	return 0;
}

void resolver_give_names(struct resolver *r, char ***name, size_t *names)
{
	*name = r->names.str;
	*names = r->names.len;
	r->names.str = NULL;
	r->names.len = r->names.cap = 0;
}

struct parts {
	const struct topo *topo;
	const struct subject *subject;
	int64_t from, to;
	size_t n;
	struct resolver r[PARTS_MAX];
	struct flow flow[PARTS_MAX];
	struct error err[PARTS_MAX];
};

static int walk_part(void *arg, size_t i)
{
	struct parts *p = arg;
	int64_t start, end;
	parts_cut(p->from, p->to, i, p->n, &start, &end);
	resolver_init(&p->r[i], p->topo, start, end, &p->err[i]);
	return collect_part(&p->r[i], p->subject, start, end, &p->flow[i]);
}

static bool joins(const struct flow_interval *a, const struct flow_interval *b)
{
	return a->kind == b->kind && a->tid == b->tid && a->system == b->system && a->name == b->name &&
	       a->pcpu == b->pcpu;
}

/* Appends a part, whose names have numbers of their own. */
static int append_part(struct collect *c, struct resolver *names, struct flow *part, const struct resolver *from)
{
	struct flow *f = c->flow;
	uint32_t *id = mem_new(from->names.len, sizeof *id);
	for (size_t i = 0; i < from->names.len; i++)
		id[i] = strtab_put(&names->names, from->names.str[i]);
	int status = room(c, part->intervals);
	size_t first = f->intervals;
	for (size_t i = 0; i < part->intervals && status == 0; i++) {
		struct flow_interval iv = part->interval[i];
		iv.name = id[iv.name];
		if (i == 0 && first && joins(&f->interval[first - 1], &iv))
			f->interval[first - 1].end = iv.end;
		else
			f->interval[f->intervals++] = iv;
	}
	for (size_t i = 0; i < part->entries && status == 0; i++) {
		const struct flow_entry *e = &part->entry[i];
		struct flow_interval key = { .system = e->system, .tid = e->tid, .name = id[e->name], .kind = e->kind };
		entry_of(c, &key)->duration += e->duration;
	}
	free(id);
	return status;
}

static int join_parts(struct parts *p, struct flow *out, struct error *err)
{
	struct collect c = { .flow = out, .err = err };
	int status = 0;
	*out = (struct flow){ .start = p->from, .end = p->to };
	for (size_t i = 0; i < p->n && status == 0; i++) {
		status = append_part(&c, &p->r[0], &p->flow[i], &p->r[i]);
		flow_release(&p->flow[i]);
	}
	map_release(&c.entry_by_key);
	if (status < 0) {
		flow_release(out);
		return -1;
	}
	put_in_order(out);
	return 0;
}

static int flow_of(const struct topo *topo, const struct subject *s, int64_t from, int64_t to, struct flow *out,
                   struct error *err)
{
	struct parts *p = mem_new(1, sizeof *p);
	*p = (struct parts){ .topo = topo, .subject = s, .from = from, .to = to };
	p->n = parts_of(topo->h, from, to);
	int status = parts_walk(p->n, walk_part, p);
	if (status == 0 && p->n > 1) {
		status = join_parts(p, out, err);
	} else if (status == 0) {
		*out = p->flow[0];
		put_in_order(out);
	}
	for (size_t i = 0; status < 0 && i < p->n && err; i++)
		if (p->err[i].text[0])
			*err = p->err[i];
	if (status == 0)
		resolver_give_names(&p->r[0], &out->name, &out->names);
	for (size_t i = 0; i < p->n; i++) {
		resolver_release(&p->r[i]);
		if (status < 0)
			flow_release(&p->flow[i]);
	}
	free(p);
	return status;
}

/* First and last moment at which the attribute is not null: 1, 0 = never, -1 = error. */
int flow_life(const struct topo *topo, uint32_t attr, int64_t *start, int64_t *end, struct error *err)
{
	struct interval iv;
	if (attr == HISTORY_NONE)
		return 0;
	if (history_stab(topo->h, attr, history_begin(topo->h), &iv, err) < 0)
		return -1;
	if (iv.value == HISTORY_NULL && iv.end >= history_end(topo->h))
		return 0;
	*start = iv.value == HISTORY_NULL ? iv.end + 1 : iv.start;
	if (history_stab(topo->h, attr, history_end(topo->h), &iv, err) < 0)
		return -1;
	*end = iv.value == HISTORY_NULL ? iv.start - 1 : iv.end;
	if (*start < history_begin(topo->h))
		*start = history_begin(topo->h);
	if (*end > history_end(topo->h))
		*end = history_end(topo->h);
	return *start <= *end;
}

int flow_of_thread(const struct topo *topo, uint32_t thread, int64_t from, int64_t to, struct flow *out,
                   struct error *err)
{
	struct subject s = { SUBJECT_THREAD, thread };
	char name[256];
	int64_t start = 0, end = -1;
	*out = (struct flow){ 0 };
	int lives = flow_life(topo, topo->thread[thread].status, &start, &end, err);
	if (lives < 0)
		return -1;
	if (!lives)
		return error_set(err, STATUS_INPUT, NULL, "%s: nothing is known of its states",
		                 topo_subject_text(topo, &s, name, sizeof name));
	if (from > end || to < start || from > to)
		return error_set(err, STATUS_INPUT, "choose a window that meets its life", "%s: not alive in that window",
		                 topo_subject_text(topo, &s, name, sizeof name));
	return flow_of(topo, &s, from > start ? from : start, to < end ? to : end, out, err);
}

int flow_of_gap(const struct topo *topo, const struct gap *gap, struct flow *out, struct error *err)
{
	*out = (struct flow){ 0 };
	int64_t from = gap->start, to = gap->end;
	if (from < history_begin(topo->h))
		from = history_begin(topo->h);
	if (to > history_end(topo->h))
		to = history_end(topo->h);
	if (from > to)
		return error_set(err, STATUS_INPUT, NULL, "gap: the window is outside the history");
	return flow_of(topo, &gap->subject, from, to, out, err);
}

void flow_release(struct flow *f)
{
	for (size_t i = 0; i < f->names; i++)
		free(f->name[i]);
	free(f->name);
	free(f->interval);
	free(f->entry);
	*f = (struct flow){ 0 };
}
