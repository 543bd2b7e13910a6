#include "stream_history.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "../stream.h"

#define ROWS 60
#define CELLS 200

const struct golden stream_golden[4] = {
	{ 1000, 2000000, 1700000012010277894, 0xee6e355caf96d49f, 0x6e375316d0809868,
	  { { 12000, 0x43e1836c8355d710 }, { 8589, 0x80e57f6b3352a5f5 }, { 195, 0x61111a34dabf5116 } },
	  { { 0, 0 }, { 14832, 0x36bbdd3b22dfb067 }, { 196, 0x25899015059c80f1 } } },
	{ 20000, 2000000, 1700000012010277894, 0x96d809d851618d41, 0xc2ced7c712dbf7d0,
	  { { 12000, 0xf0b53b6f7b369ee3 }, { 8589, 0xe9781ebfae775f3b }, { 195, 0xeffc2a284dd1590e } },
	  { { 0, 0 }, { 14832, 0x0305736dce4d6cca }, { 196, 0xb474a00878ae88e9 } } },
	{ 1000, 20000000, 1700000120032103457, 0x46ef89e3859f25ea, 0xd081a54a6fd95d66,
	  { { 12000, 0x654c33433df7ec3e }, { 12000, 0x7489a570976101f7 }, { 1447, 0x28297f45bc365c95 } },
	  { { 0, 0 }, { 150130, 0x197f0f6021baf8bc }, { 1543, 0xa8c1fb77be01bf0a } } },
	{ 20000, 20000000, 1700000120032103457, 0x7a11ff8c1e9c4a49, 0xfe4eb4c4e8e4be1c,
	  { { 12000, 0xad6879c8a78f330b }, { 12000, 0x4a2b4ee396bd267d }, { 1447, 0xf34ae703b0ecdceb } },
	  { { 0, 0 }, { 150130, 0xcc58cda98c811f6d }, { 1543, 0x7c8e8f316f980aed } } },
};

static void attribute_name(char *buf, size_t size, uint32_t i)
{
	snprintf(buf, size, "/%s%" PRIu32, i < 64 ? "cpu" : "thr", i);
}

int stream_build(const char *path, uint32_t attributes, uint64_t changes, const struct history_options *options,
                 uint64_t *checksum, struct error *err)
{
	static const char *const names[STREAM_STATES] = { "S0", "S1", "S2", "S3", "S4", "S5" };
	struct change_stream g;
	struct history_builder *b = history_create(path, options, err);
	uint32_t *id = malloc(attributes * sizeof *id);
	if (!b || !id || !stream_init(&g, attributes)) {
		history_abort(b);
		return -1;
	}
	unsigned set = history_state_set(b, "status", names, STREAM_STATES);
	for (uint32_t i = 0; i < attributes; i++) {
		char name[32];
		attribute_name(name, sizeof name, i);
		id[i] = history_attribute(b, name, i < 64 && i & 1 ? HISTORY_INT : HISTORY_STATE, set, err);
	}
	uint64_t h = STREAM_HASH;
	int result = 0;
	for (uint64_t i = 0; i < changes && !result; i++) {
		stream_next(&g);
		if (checksum)
			h = stream_hash(stream_hash(stream_hash(h, (uint64_t)g.t), g.attr), (uint64_t)g.value);
		result = history_set(b, g.t, id[g.attr], g.value, err);
	}
	free(g.cur);
	free(id);
	if (checksum)
		*checksum = h;
	if (!result)
		return history_finish(b, STREAM_START, g.t + 1000, err);
	history_abort(b);
	return -1;
}

uint32_t *stream_attributes(const struct history *h, uint32_t attributes)
{
	uint32_t *id = malloc(attributes * sizeof *id);
	for (uint32_t i = 0; id && i < attributes; i++) {
		char name[32];
		attribute_name(name, sizeof name, i);
		id[i] = history_find(h, name);
	}
	return id;
}

static uint64_t interval_digest(uint32_t attr, const struct interval *iv)
{
	uint64_t value = iv->value == HISTORY_NULL ? UINT64_MAX : (uint64_t)iv->value;
	return stream_hash(stream_hash(stream_hash(stream_hash(STREAM_HASH, (uint64_t)iv->start), attr), value),
	                   (uint64_t)iv->end);
}

uint64_t stream_digest_full(const struct history *h, const uint32_t *id, uint32_t attributes)
{
	uint64_t sum = 0, span = (uint64_t)(history_end(h) - history_begin(h));
	int64_t *value = malloc(history_attribute_count(h) * sizeof *value);
	for (uint64_t k = 0; value && k < 16; k++) {
		int64_t t = history_begin(h) + (int64_t)(span / 16 * k);
		if (history_full(h, t, value, NULL))
			break;
		for (uint32_t a = 0; a < attributes; a++) {
			struct interval iv;
			if (history_stab(h, id[a], t, &iv, NULL) || iv.value != value[id[a]])
				break;
			sum += interval_digest(a, &iv);
		}
	}
	free(value);
	return sum;
}

uint64_t stream_digest_grid(const struct history *h, const uint32_t *id, uint64_t div, uint64_t *intervals)
{
	uint64_t sum = 0, span = (uint64_t)(history_end(h) - history_begin(h)), step = span / div / CELLS;
	*intervals = 0;
	for (uint32_t a = 0; a < ROWS; a++) {
		int64_t last = INT64_MIN;
		for (uint64_t i = 0; i < CELLS; i++) {
			struct interval iv;
			int64_t t = history_begin(h) + (int64_t)((div == 1 ? 0 : span / 2) + i * step);
			if (history_stab(h, id[a], t, &iv, NULL))
				return 0;
			if (iv.start == last)
				continue;
			last = iv.start;
			++*intervals;
			sum += interval_digest(a, &iv);
		}
	}
	return sum;
}

uint64_t stream_digest_range(const struct history *h, const uint32_t *id, uint64_t div, uint64_t *intervals)
{
	uint64_t sum = 0, span = (uint64_t)(history_end(h) - history_begin(h));
	int64_t t0 = history_begin(h) + (int64_t)(div == 1 ? 0 : span / 2), t1 = t0 + (int64_t)(span / div) - 1;
	*intervals = 0;
	for (uint32_t a = 0; a < ROWS; a++) {
		struct history_cursor c;
		struct interval iv;
		if (history_range(&c, h, id[a], t0, t1, NULL))
			return 0;
		while (history_range_next(&c, &iv, NULL) == 1) {
			++*intervals;
			sum += interval_digest(a, &iv);
		}
	}
	return sum;
}

static bool check_value(const char *label, uint64_t div, uint64_t got, uint64_t want)
{
	if (got != want)
		fprintf(stderr, "%s, 1/%" PRIu64 " of the span: %" PRIx64 " instead of %" PRIx64 "\n", label, div, got, want);
	return got == want;
}

bool stream_check(const struct history *h, const struct golden *g)
{
	uint32_t *id = stream_attributes(h, g->attributes);
	bool ok = id && check_value("end", 1, (uint64_t)history_end(h), (uint64_t)g->last + 1000) &&
		check_value("intervals", 1, history_intervals(h), g->changes + g->attributes) &&
		check_value("full", 1, stream_digest_full(h, id, g->attributes), g->full);
	uint64_t div = 1, n;
	for (unsigned i = 0; i < 3 && ok; i++, div *= 100) {
		ok = check_value("grid", div, stream_digest_grid(h, id, div, &n), g->grid[i].digest) &&
			check_value("grid intervals", div, n, g->grid[i].intervals);
		if (i && ok)
			ok = check_value("range", div, stream_digest_range(h, id, div, &n), g->range[i].digest) &&
				check_value("range intervals", div, n, g->range[i].intervals);
	}
	free(id);
	return ok;
}
