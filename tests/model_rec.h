/* Sink that records every change, and hand-made events, for the tests of the model. */
#pragma once

#include <inttypes.h>

#include "base/mem.h"
#include "base/strtab.h"
#include "model/state/feed.h"
#include "test.h"

struct recorded_change {
	int64_t t, value;  /* a string: its id in rec->strings */
};

struct rec_attr {
	enum history_type type;
	unsigned set;
	struct recorded_change *change;
	size_t len, cap;
};

struct rec {
	struct strtab paths, strings; /* id of a path = index in attr */
	struct rec_attr *attr;
	size_t attrs, attr_cap;
	unsigned sets, states[8];
	char owner[32][64];
	int fail_after;               /* number of the write that fails; 0: none */
};

static unsigned rec_state_set(void *to, const char *name, const char *const *state, unsigned n)
{
	struct rec *r = to;
	assert_true(n < HISTORY_STATES);
	if (!strcmp(name, "owner"))
		for (unsigned i = 0; i < n; i++)
			snprintf(r->owner[i], sizeof r->owner[i], "%s", state[i]);
	r->states[r->sets] = n;
	return r->sets++;
}

static uint32_t rec_attribute(void *to, const char *path, enum history_type type, unsigned set, struct error *err)
{
	struct rec *r = to;
	(void)err;
	assert_int_equal(path[0], '/');
	uint32_t id = strtab_put(&r->paths, path);
	while (r->attrs <= id)
		*ARRAY_PUSH(r->attr, r->attrs, r->attr_cap) = (struct rec_attr){ .set = 99 };
	if (r->attr[id].set == 99)
		r->attr[id] = (struct rec_attr){ .type = type, .set = set };
	assert_int_equal(r->attr[id].type, type);
	return id;
}

static int rec_set(void *to, int64_t t, uint32_t attr, int64_t value, struct error *err)
{
	struct rec *r = to;
	assert_true(attr < r->attrs);
	struct rec_attr *a = &r->attr[attr];
	assert_true(!a->len || t >= a->change[a->len - 1].t);
	if (a->type == HISTORY_STATE && value != HISTORY_NULL)
		assert_in_range(value, 0, r->states[a->set] - 1);
	if (r->fail_after && --r->fail_after == 0)
		return error_set(err, STATUS_SYSTEM, NULL, "disk: full");
	if (a->len && a->change[a->len - 1].t == t)
		a->change[a->len - 1].value = value;
	else
		*ARRAY_PUSH(a->change, a->len, a->cap) = (struct recorded_change){ t, value };
	return 0;
}

static int64_t rec_id(void *to, const char *text, struct error *err)
{
	(void)err;
	return strtab_put(&((struct rec *)to)->strings, text);
}

static const struct model_sink_ops rec_ops = { rec_state_set, rec_attribute, rec_set, rec_id };

static void rec_init(struct rec *r)
{
	*r = (struct rec){ .fail_after = 0 };
	strtab_init(&r->paths);
	strtab_init(&r->strings);
}

static void rec_release(struct rec *r)
{
	for (size_t i = 0; i < r->attrs; i++)
		free(r->attr[i].change);
	free(r->attr);
	strtab_release(&r->paths);
	strtab_release(&r->strings);
}

static const struct rec_attr *rec_find(struct rec *r, const char *path)
{
	uint32_t id = strtab_put(&r->paths, path);
	return id < r->attrs && r->attr[id].set != 99 ? &r->attr[id] : NULL;
}

/* Returns the value at t; null if there is no such attribute. */
static int64_t rec_at(struct rec *r, int64_t t, const char *path)
{
	const struct rec_attr *a = rec_find(r, path);
	size_t lo = 0, hi = a ? a->len : 0;
	while (lo < hi) {
		size_t mid = (lo + hi) / 2;
		if (a->change[mid].t <= t)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo ? a->change[lo - 1].value : HISTORY_NULL;
}

__attribute__((unused))
static const char *rec_text(struct rec *r, int64_t t, const char *path)
{
	static char ref[64];
	int64_t id = rec_at(r, t, path);
	if (id == HISTORY_NULL)
		return "(null)";
	if (rec_find(r, path)->type != HISTORY_REF)
		return strtab_get(&r->strings, (uint32_t)id);
	snprintf(ref, sizeof ref, "%s/%" PRIu32, strtab_get(&r->strings, (uint32_t)history_ref_text(id)),
	         history_ref_number(id));
	return ref;
}

/* Returns the time with that value in [t0, t1], ns. */
__attribute__((unused))
static int64_t rec_sum(struct rec *r, const char *path, int64_t value, int64_t t0, int64_t t1)
{
	const struct rec_attr *a = rec_find(r, path);
	int64_t sum = 0, from = t0, now = HISTORY_NULL;
	for (size_t i = 0; a && i <= a->len; i++) {
		int64_t to = i < a->len ? a->change[i].t : t1 + 1;
		to = to > t1 + 1 ? t1 + 1 : to < from ? from : to;
		if (now == value)
			sum += to - from;
		from = to;
		if (i < a->len)
			now = a->change[i].value;
	}
	return a ? sum : value == HISTORY_NULL ? t1 - t0 + 1 : 0;
}
