/* history/: random histories against a brute-force model, with tiny chunks and blocks. */
#include "test.h"

#include <inttypes.h>
#include <unistd.h>

#include "base/mem.h"
#include "history/history.h"
#include "history_walk.h"

struct rng { uint64_t s; };

static uint64_t random_next(struct rng *r)
{
	uint64_t z = r->s += 0x9E3779B97F4A7C15ULL;
	z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9ULL;
	z = (z ^ z >> 27) * 0x94D049BB133111EBULL;
	return z ^ z >> 31;
}

static uint64_t random_below(struct rng *r, uint64_t n)
{
	return random_next(r) % n;
}

/* ---- The model: every interval in an array -------------------------------------------------------------- */

struct world_row {
	char path[64];
	enum history_type type;
	uint32_t attr;                /* id in the builder, later in the reader */
	struct interval *iv;
	size_t len, cap;
	/* For HISTORY_STRING iv.value is an index into `string` + 1; for HISTORY_REF that is above bit 32. */
	char **string;
	size_t strings, strings_cap;
};

struct world {
	struct world_row row[24];
	size_t rows;
	int64_t begin, end;
	unsigned states;
};

/* Until model_seal(), intervals have only a start. */
static void model_set(struct world *w, struct world_row *r, int64_t t, int64_t value)
{
	if (!r->len)
		*ARRAY_PUSH(r->iv, r->len, r->cap) = (struct interval){ w->begin, 0, HISTORY_NULL };
	struct interval *last = &r->iv[r->len - 1];
	if (last->start == t)
		last->value = value;
	else
		*ARRAY_PUSH(r->iv, r->len, r->cap) = (struct interval){ t, 0, value };
}

static void model_seal(struct world *w)
{
	for (size_t i = 0; i < w->rows; i++) {
		struct world_row *r = &w->row[i];
		if (!r->len)
			*ARRAY_PUSH(r->iv, r->len, r->cap) = (struct interval){ w->begin, 0, HISTORY_NULL };
		size_t n = 0;
		for (size_t k = 0; k < r->len; k++)
			if (!n || r->iv[n - 1].value != r->iv[k].value)
				r->iv[n++] = r->iv[k];
		r->len = n;
		for (size_t k = 0; k < n; k++)
			r->iv[k].end = k + 1 < n ? r->iv[k + 1].start - 1 : w->end;
	}
}

static void world_release(struct world *w)
{
	for (size_t i = 0; i < w->rows; i++) {
		free(w->row[i].iv);
		for (size_t s = 0; s < w->row[i].strings; s++)
			free(w->row[i].string[s]);
		free(w->row[i].string);
	}
}

static int64_t random_int(struct rng *r)
{
	switch (random_below(r, 6)) {
	case 0: return (int64_t)random_below(r, 4);
	case 1: return (int64_t)random_below(r, 100000);
	case 2: return INT64_MIN + 1 + (int64_t)random_below(r, 3);
	case 3: return INT64_MAX - (int64_t)random_below(r, 3);
	case 4: return -(int64_t)random_below(r, 70000);
	default: return HISTORY_NULL;
	}
}

static int64_t random_gap(struct rng *r)
{
	static const int shift[] = { 0, 0, 1, 3, 5, 8, 16, 24, 33, 44 };
	uint64_t gap = random_below(r, 3) ? 0 : random_below(r, UINT64_C(1) << shift[random_below(r, COUNT(shift))]);
	return (int64_t)gap + (int64_t)random_below(r, 3);
}

/* Picks a random string of the row. Returns its index + 1. */
static int64_t random_text(struct rng *r, struct world_row *row, char text[32])
{
	snprintf(text, 32, "s%" PRIu64, random_below(r, 5));
	size_t k = 0;
	while (k < row->strings && strcmp(row->string[k], text) != 0)
		k++;
	if (k == row->strings)
		*ARRAY_PUSH(row->string, row->strings, row->strings_cap) = mem_dup(text);
	return (int64_t)k + 1;
}

static void apply_change(struct world *w, struct history_builder *b, struct rng *r, struct world_row *row, int64_t t)
{
	struct error err = ERROR_INIT;
	char text[32];
	int64_t value;
	if (row->type == HISTORY_REF) {
		uint32_t number = (uint32_t)(UINT32_MAX * random_below(r, 2) ^ random_below(r, 40));
		value = random_text(r, row, text);
		int64_t id = history_text(b, text, &err);
		assert_int_equal(history_text(b, text, &err), id);
		assert_int_equal(history_set(b, t, row->attr, history_ref(id, number), &err), 0);
		value = history_ref(value, number);
	} else if (row->type == HISTORY_STRING) {
		value = random_text(r, row, text);
		bool null = !random_below(r, 5);
		value = null ? HISTORY_NULL : value;
		assert_int_equal(history_set_string(b, t, row->attr, null ? NULL : text, &err), 0);
	} else {
		value = row->type == HISTORY_INT ? random_int(r) : (int64_t)random_below(r, w->states + 1);
		if (row->type == HISTORY_STATE && value == (int64_t)w->states)
			value = HISTORY_NULL;
		assert_int_equal(history_set(b, t, row->attr, value, &err), 0);
	}
	model_set(w, row, t, value);
}

static const char *const letters[] = { "A", "B", "C", "D", "E", "F", "G", "H", "I", "J", "K", "L", "M", "N", "O",
	"P", "Q", "R", "S", "T", "U", "V", "W", "X", "Y", "Z", "a", "b", "c", "d", "e" };

static void build_world(struct world *w, const char *path, uint64_t seed, size_t changes, struct history_options options)
{
	struct rng r = { seed };
	struct error err = ERROR_INIT;
	struct history_builder *b = history_create(path, &options, &err);
	assert_non_null(b);
	*w = (struct world){ 0 };
	w->states = (unsigned)(random_below(&r, 2) ? 1 + random_below(&r, 31) : 3);
	unsigned set = history_state_set(b, "letters", letters, w->states);
	int64_t t = random_below(&r, 2) ? 1700000000000000000 : -500;
	const bool together = random_below(&r, 2);
	w->begin = t - (int64_t)random_below(&r, 2) * 1000;
	size_t max_rows = 1 + random_below(&r, COUNT(w->row));
	for (size_t i = 0; i < changes || w->rows < max_rows; i++) {
		t += random_gap(&r);
		size_t k = random_below(&r, max_rows);
		if (k >= w->rows) {  /* attributes may be declared at any time */
			struct world_row *row = &w->row[w->rows++];
			*row = (struct world_row){ .type = (enum history_type)random_below(&r, 4) };
			snprintf(row->path, sizeof row->path, "/m%zu/a%%2fb/x%zu", w->rows % 3, w->rows);
			row->attr = history_attribute(b, row->path, row->type, set, &err);
			assert_int_not_equal(row->attr, HISTORY_NONE);
			assert_int_equal(history_attribute(b, row->path, row->type, set, &err), row->attr);
			continue;
		}
		struct world_row *row = &w->row[k];
		int64_t last = row->len ? row->iv[row->len - 1].start : t, late = t - random_gap(&r);
		const int64_t at = random_below(&r, 3) ? t : late > last ? late : last;
		apply_change(w, b, &r, row, at);
		/* Attributes of other types that change together with a state. */
		for (size_t o = k % 3; together && row->type == HISTORY_STATE && o < w->rows; o += 3) {
			struct world_row *other = &w->row[o];
			if (other->type != HISTORY_STATE && random_below(&r, 2) &&
			    (!other->len || other->iv[other->len - 1].start <= at))
				apply_change(w, b, &r, other, at);
		}
	}
	w->end = t + (int64_t)random_below(&r, 2) * 77;
	assert_int_equal(history_meta_set(b, "seed", &seed, sizeof seed), 0);
	assert_int_equal(history_finish(b, w->begin, w->end, &err), 0);
	model_seal(w);
}

static void check_value(const struct history *h, const struct world_row *row, const struct interval *want,
                        const struct interval *got)
{
	assert_int_equal(got->start, want->start);
	assert_int_equal(got->end, want->end);
	if (row->type == HISTORY_STRING && want->value != HISTORY_NULL) {
		assert_string_equal(history_string(h, got->value), row->string[want->value - 1]);
	} else if (row->type == HISTORY_REF && want->value != HISTORY_NULL) {
		assert_string_equal(history_string(h, history_ref_text(got->value)), row->string[(want->value >> 32) - 1]);
		assert_int_equal(history_ref_number(got->value), (uint32_t)want->value);
	} else {
		assert_int_equal(got->value, want->value);
	}
}

static size_t model_find(const struct world_row *row, int64_t t)
{
	size_t i = 0;
	while (i + 1 < row->len && row->iv[i].end < t)
		i++;
	return i;
}

static int64_t random_time(struct rng *r, const struct world *w)
{
	const struct world_row *row = &w->row[random_below(r, w->rows)];
	const struct interval *iv = &row->iv[random_below(r, row->len)];
	switch (random_below(r, 5)) {
	case 0: return iv->start;
	case 1: return iv->end;
	case 2: return iv->start - 1;
	case 3: return iv->end + 1;
	default: return w->begin - 3 + (int64_t)random_below(r, (uint64_t)(w->end - w->begin) + 6);
	}
}

static void check_range(const struct history *h, const struct world_row *row, int64_t t0, int64_t t1)
{
	struct history_cursor c;
	struct error err = ERROR_INIT;
	struct interval iv;
	assert_int_equal(history_range(&c, h, row->attr, t0, t1, &err), 0);
	for (size_t i = 0; i < row->len; i++) {
		if (row->iv[i].end < t0 || row->iv[i].start > t1 || t1 < t0)
			continue;
		assert_int_equal(history_range_next(&c, &iv, &err), 1);
		check_value(h, row, &row->iv[i], &iv);
	}
	assert_int_equal(history_range_next(&c, &iv, &err), 0);
	assert_int_equal(history_range_next(&c, &iv, &err), 0);
}

static void model_sums(const struct world_row *row, int64_t t0, int64_t t1, int64_t sums[HISTORY_STATES])
{
	memset(sums, 0, HISTORY_STATES * sizeof *sums);
	for (size_t i = 0; i < row->len; i++) {
		int64_t a = row->iv[i].start > t0 ? row->iv[i].start : t0, b = row->iv[i].end < t1 ? row->iv[i].end : t1;
		if (a <= b)
			sums[row->iv[i].value == HISTORY_NULL ? HISTORY_STATES - 1 : row->iv[i].value] += b - a + 1;
	}
}

static void check_sums(const struct history *h, const struct world_row *row, int64_t t0, int64_t t1)
{
	struct error err = ERROR_INIT;
	int64_t want[HISTORY_STATES], got[HISTORY_STATES];
	model_sums(row, t0, t1, want);
	assert_int_equal(history_sums(h, row->attr, t0, t1, got, &err), 0);
	assert_memory_equal(got, want, sizeof want);
}

static void check_cells(const struct history *h, const struct world_row *row, struct rng *r, const struct world *w)
{
	struct error err = ERROR_INIT;
	int64_t edge[9], cells[8][HISTORY_STATES], want[HISTORY_STATES];
	for (size_t i = 0; i < COUNT(edge); i++) {
		edge[i] = random_time(r, w);
		for (size_t k = i; k && edge[k] < edge[k - 1]; k--) {
			int64_t x = edge[k];
			edge[k] = edge[k - 1];
			edge[k - 1] = x;
		}
	}
	assert_int_equal(history_sums_cells(h, row->attr, edge, 8, cells, &err), 0);
	for (size_t i = 0; i < 8; i++) {
		model_sums(row, edge[i], edge[i + 1] - 1, want);
		assert_memory_equal(cells[i], want, sizeof want);
	}
}

static void check_neighbours(const struct history *h, const struct world_row *row, int64_t t, uint64_t mask)
{
	struct error err = ERROR_INIT;
	struct interval iv;
	const struct interval *next = NULL, *prev = NULL;
	for (size_t i = 0; i < row->len; i++) {
		const struct interval *x = &row->iv[i];
		if (!(mask >> (x->value == HISTORY_NULL ? HISTORY_STATES - 1 : x->value) & 1))
			continue;
		if (x->start > t && !next)
			next = x;
		if (x->end < t)
			prev = x;
	}
	assert_int_equal(history_next(h, row->attr, t, mask, &iv, &err), next != NULL);
	if (next)
		check_value(h, row, next, &iv);
	assert_int_equal(history_prev(h, row->attr, t, mask, &iv, &err), prev != NULL);
	if (prev)
		check_value(h, row, prev, &iv);
}

static void check_world(struct world *w, const char *path, uint64_t seed)
{
	struct rng r = { seed };
	struct error err = ERROR_INIT;
	struct history *h = history_open(path, &err);
	assert_non_null(h);
	assert_int_equal(history_begin(h), w->begin);
	assert_int_equal(history_end(h), w->end);
	uint64_t intervals = 0;
	for (size_t i = 0; i < w->rows; i++) {
		struct world_row *row = &w->row[i];
		row->attr = history_find(h, row->path);
		assert_int_not_equal(row->attr, HISTORY_NONE);
		assert_int_equal(history_type(h, row->attr), row->type);
		intervals += row->len;
		check_range(h, row, w->begin, w->end);
	}
	assert_int_equal(history_intervals(h), intervals);
	int64_t *full = mem_new(history_attribute_count(h), sizeof *full);
	for (int k = 0; k < 60; k++) {
		struct world_row *row = &w->row[random_below(&r, w->rows)];
		int64_t t0 = random_time(&r, w), t1 = random_time(&r, w);
		struct interval iv;
		assert_int_equal(history_stab(h, row->attr, t0, &iv, &err), 0);
		check_value(h, row, &row->iv[model_find(row, t0)], &iv);
		assert_int_equal(history_full(h, t0, full, &err), 0);
		assert_int_equal(full[row->attr], iv.value);
		assert_int_equal(full[0], HISTORY_NULL);
		check_range(h, row, t0, t1);
		if (row->type != HISTORY_STATE)
			continue;
		check_sums(h, row, t0, t1);
		check_cells(h, row, &r, w);
		check_neighbours(h, row, t0, random_next(&r) & random_next(&r));
		check_neighbours(h, row, t1, UINT64_C(1) << random_below(&r, 4));
		check_neighbours(h, row, t1, UINT64_C(1) << (HISTORY_STATES - 1));
	}
	free(full);
	assert_int_equal(history_verify(h, &err), 0);
	assert_int_equal(history_damage(h, &err), 0);
	history_close(h);
}

/* Returns the number of attributes of the file that refer to the intervals of another one. */
static unsigned count_echoes(const char *path)
{
	static uint8_t bytes[1 << 22];
	FILE *f = fopen(path, "rb");
	assert_non_null(f);
	assert_in_range(fread(bytes, 1, sizeof bytes, f), 1, sizeof bytes - 1);
	fclose(f);
	return history_echoes(bytes);
}

static void test_random(void **state)
{
	(void)state;
	unsigned echoing = 0;
	for (uint64_t seed = 1; seed <= 400; seed++) {
		struct rng r = { seed * 7919 };
		struct history_options options = {
			.memory = random_below(&r, 2) ? 65536 : 0, .chunk = (unsigned)(1 + random_below(&r, 2) * random_below(&r, 9)),
			.block = 64u << random_below(&r, 4),
		};
		if (!random_below(&r, 8))
			options = (struct history_options){ 0 };
		struct world w;
		const size_t changes = random_below(&r, 4) ? random_below(&r, 300) : random_below(&r, 8) ? 20 : 20000;
		build_world(&w, "test_history.tmp", seed, changes, options);
		check_world(&w, "test_history.tmp", seed);
		echoing += count_echoes("test_history.tmp");
		world_release(&w);
	}
	assert_in_range(echoing, 20, 4000);  /* smoke test: the worlds must contain some echoes; 4000 is no exact bound */
	unlink("test_history.tmp");
}

/* Writes a random history, and prints the intervals of the model: another reader must find the same. */
static int write_random_history(const char *path, uint64_t seed)
{
	struct rng r = { seed };
	struct history_options options = { .chunk = (unsigned)random_below(&r, 20), .block = 64u << random_below(&r, 9) };
	struct world w;
	build_world(&w, path, seed, random_below(&r, 3) ? 500 : 5000, options);
	printf("span %" PRId64 " %" PRId64 "\n", w.begin, w.end);
	for (size_t i = 0; i < w.rows; i++) {
		const struct world_row *row = &w.row[i];
		for (size_t k = 0; k < row->len; k++) {
			const struct interval *iv = &row->iv[k];
			printf("%s %" PRId64 " %" PRId64 " ", row->path, iv->start, iv->end);
			if (iv->value == HISTORY_NULL)
				printf("null\n");
			else if (row->type == HISTORY_STRING)
				printf("\"%s\"\n", row->string[iv->value - 1]);
			else if (row->type == HISTORY_REF)
				printf("\"%s\"/%" PRIu32 "\n", row->string[(iv->value >> 32) - 1], (uint32_t)iv->value);
			else if (row->type == HISTORY_STATE)
				printf("%s\n", letters[iv->value]);
			else
				printf("%" PRId64 "\n", iv->value);
		}
	}
	world_release(&w);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3)
		return write_random_history(argv[1], strtoull(argv[2], NULL, 10));
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_random),
	};
	return cmocka_run_group_tests(tests, NULL, NULL);
}
