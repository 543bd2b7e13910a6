/* A flow put together from slices of its window.  See ask.h. */
#include <stdlib.h>
#include <time.h>

#include "base/mem.h"
#include "ui/ask.h"

#define FIRST_NS 10000000  /* a window that short takes no longer than a slice may */

static int64_t now_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (int64_t)ts.tv_sec * 1000000000 + ts.tv_nsec;
}

/* The window within the thread's life: 1, or 0 when it was not alive there, or -1. */
static int cut_to_life(const struct topo *topo, uint32_t thread, int64_t *from, int64_t *to, struct error *err)
{
	uint32_t attr = topo->thread[thread].status;
	int64_t begin = history_begin(topo->h), end = history_end(topo->h);
	struct interval iv;
	if (attr == HISTORY_NONE)
		return 0;
	if (history_stab(topo->h, attr, begin, &iv, err) < 0)
		return -1;
	if (iv.value == HISTORY_NULL)
		begin = iv.end < end ? iv.end + 1 : INT64_MAX;
	if (history_stab(topo->h, attr, end, &iv, err) < 0)
		return -1;
	if (iv.value == HISTORY_NULL)
		end = iv.start - 1;
	*from = *from > begin ? *from : begin;
	*to = *to < end ? *to : end;
	return *from <= *to;
}

int flow_slices_begin(struct flow_slices *f, const struct topo *topo, const struct subject *s, int64_t from, int64_t to,
                      struct error *err)
{
	char name[256];
	*f = (struct flow_slices){ .subject = *s };
	strtab_init(&f->names);
	int lives = s->kind == SUBJECT_THREAD ? cut_to_life(topo, s->index, &from, &to, err) : 1;
	if (lives < 0)
		return -1;
	if (!lives)
		return error_set(err, STATUS_INPUT, "choose a window that meets its life", "%s: not alive in that window",
		                 topo_subject_text(topo, s, name, sizeof name));
	slices_begin(&f->s, from, to);
	f->s.len = f->s.len > FIRST_NS ? f->s.len : FIRST_NS;
	f->flow.start = from;
	return 0;
}

static bool joins(const struct flow_interval *a, const struct flow_interval *b)
{
	return a->kind == b->kind && a->tid == b->tid && a->system == b->system && a->name == b->name &&
	       a->pcpu == b->pcpu;
}

static void append(struct flow_slices *f, const struct flow *part)
{
	struct flow *all = &f->flow;
	uint32_t *id = mem_new(part->names, sizeof *id);
	for (size_t i = 0; i < part->names; i++)
		id[i] = strtab_put(&f->names, part->name[i]);
	for (size_t i = 0; i < part->intervals; i++) {
		struct flow_interval iv = part->interval[i];
		iv.name = iv.name < part->names ? id[iv.name] : 0;
		if (i == 0 && all->intervals && joins(&all->interval[all->intervals - 1], &iv))
			all->interval[all->intervals - 1].end = iv.end;
		else
			*ARRAY_PUSH(all->interval, all->intervals, f->interval_cap) = iv;
	}
	free(id);
}

int flow_slices_step(struct flow_slices *f, const struct topo *topo, struct error *err)
{
	struct flow part;
	int64_t began = now_ns();
	struct gap window = { f->subject, f->s.at, slices_end(&f->s), 0 };
	if (flow_of_gap(topo, &window, &part, err) < 0)
		return -1;
	append(f, &part);
	flow_release(&part);
	slices_next(&f->s, now_ns() - began);
	return f->s.at > f->s.to || f->flow.intervals > ASK_PIECES;
}

static uint64_t hash_of(const struct flow_interval *iv)
{
	uint64_t h = (uint64_t)(uint32_t)iv->tid << 32 | iv->name;
	h = (h ^ (uint64_t)(uint32_t)iv->system << 8 ^ iv->kind) * UINT64_C(0x9E3779B97F4A7C15);
	return h ^ h >> 29;
}

static struct flow_entry *entry_of(struct flow *flow, size_t *cap, struct map *by_key, const struct flow_interval *iv)
{
	for (uint64_t hash = hash_of(iv);; hash++) {
		bool is_new;
		uint64_t *at = map_put(by_key, hash, &is_new);
		if (is_new) {
			*at = flow->entries;
			*ARRAY_PUSH(flow->entry, flow->entries, *cap) = (struct flow_entry){ .system = iv->system,
				.tid = iv->tid, .name = iv->name, .kind = iv->kind };
		}
		struct flow_entry *e = &flow->entry[*at];
		if (e->system == iv->system && e->tid == iv->tid && e->name == iv->name && e->kind == iv->kind)
			return e;
	}
}

void flow_slices_finish(struct flow_slices *f, struct flow *out, bool *cut)
{
	struct map by_key = MAP_INIT;
	size_t cap = 0;
	*out = f->flow;
	*cut = f->s.at <= f->s.to;
	out->end = f->s.at - 1;
	for (size_t i = 0; i < out->intervals; i++)
		entry_of(out, &cap, &by_key, &out->interval[i])->duration += out->interval[i].end - out->interval[i].start + 1;
	map_release(&by_key);
	for (size_t i = 0; i < out->entries; i++)
		out->entry[i].share = (double)out->entry[i].duration / ((double)(out->end - out->start) + 1);
	if (out->entries)
		qsort(out->entry, out->entries, sizeof *out->entry, flow_entry_order);
	out->name = f->names.str;
	out->names = f->names.len;
	f->names.str = NULL;
	f->names.len = f->names.cap = 0;
	f->flow = (struct flow){ 0 };
}

void flow_slices_release(struct flow_slices *f)
{
	flow_release(&f->flow);
	strtab_release(&f->names);
	*f = (struct flow_slices){ 0 };
}
