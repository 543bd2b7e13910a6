/* Builder: receives changes in order of time and writes them as chunks by attribute.
 *
 * - Each attribute holds back its last closed interval (a change at its start may still replace it), and stores earlier
 *   ones in a chain of slabs. A full chain is written as a chunk.
 * - An attribute that has filled a chunk is hot: it gets an array (a row) instead of the chain, and chunks of twice the
 *   length unless it has states.
 * - When no slabs are left, the longest chains are written until half of the pool is free. So frequently changing
 *   attributes get full chunks, rarely changing ones few.
 *
 * A change costs O(1) plus its share of a chunk. Memory: the pool, the rows, and the resident pages of names and
 * attributes (paged_table.h). */
#include "base/base.h"
#include "history/history.h"

#include <sys/stat.h>
#include <unistd.h>

#include "history/builder.h"
#include "history/chunk.h"

#define MEMORY_DEFAULT ((size_t)128 << 20)
#define MEMORY_MIN ((size_t)64 << 10)
#define NAME_QUOTED 256  /* maximum bytes of a name in a message */
#define HOT_SHARE 16  /* memory for rows, and for the leader starts: each 1/HOT_SHARE of the memory limit */

void builder_free_hot(struct history_builder *b)
{
	free(b->hot);
	b->hot = NULL;
}

static void free_builder(struct history_builder *b)
{
	out_discard(&b->out);
	pool_release(&b->pool);
	builder_free_hot(b);
	for (uint32_t i = 0; i < b->hot_rows; i++)
		free(b->row[i].starts);
	free(b->row);
	tree_release(&b->tree);
	paged_release(&b->leaf);
	pages_release(&b->pager);
	for (size_t i = 0; i < b->metas; i++) {
		free(b->meta[i].key);
		free(b->meta[i].value);
	}
	if (b->scratch >= 0)
		close(b->scratch);
	free(b->meta);
	free(b->set);
	free(b->spill);
	free(b);
}

struct history_builder *history_create(const char *path, const struct history_options *options, struct error *err)
{
	static const struct history_options none = { 0 };
	const struct history_options *o = options ? options : &none;
	unsigned block = o->block ? o->block : BLOCK_DEFAULT;
	struct history_builder *b = mem_new(1, sizeof *b);
	b->scratch = -1;
	b->now = INT64_MAX;
	b->memory = o->memory ? o->memory : MEMORY_DEFAULT;
	if (b->memory < MEMORY_MIN)
		b->memory = MEMORY_MIN;
	b->chunk = o->chunk && o->chunk < CHUNK_MAX ? o->chunk : o->chunk ? CHUNK_MAX : CHUNK_DEFAULT;
	b->long_chunk = 2 * b->chunk < CHUNK_MAX ? 2 * b->chunk : CHUNK_MAX;
	pages_init(&b->pager, b->memory / 2, &b->out, &b->failed, &b->failure);
	tree_init(&b->tree, &b->pager);
	paged_init(&b->leaf, &b->pager);
	if (block < BLOCK_MIN || block > BLOCK_MAX || block & (block - 1)) {
		error_set(err, STATUS_USAGE, NULL, "cannot create %s: blocks of %u bytes", path, block);
		b->out = (struct out){ .fd = -1, .dir_fd = -1 };
		free_builder(b);
		return NULL;
	}
	if (out_open(&b->out, path, block, o->named, err) || (b->scratch = out_scratch(&b->out, err)) < 0) {
		free_builder(b);
		return NULL;
	}
	if (o->owner_only)
		fchmod(b->out.fd, S_IRUSR | S_IWUSR);
	if (pool_init(&b->pool, b->memory / 2)) {
		error_system(err, NULL, "cannot create %s", path);
		free_builder(b);
		return NULL;
	}
	b->spill = mem_new(SPILL_BUFFER, 1);
	b->hot_limit = (uint32_t)(b->memory / HOT_SHARE / (b->long_chunk * sizeof *b->hot));
	b->hot = mem_new((size_t)b->hot_limit * (b->long_chunk + 3) + 1, sizeof *b->hot);
	b->row = mem_new((size_t)b->hot_limit + 1, sizeof *b->row);
	b->leader_limit = (uint32_t)(b->memory / HOT_SHARE / (STARTS_MAX * sizeof *b->row->starts));
	return b;
}

unsigned history_state_set(struct history_builder *b, const char *name, const char *const *state, unsigned n)
{
	struct state_set set = { .n = n < HISTORY_STATES ? n : HISTORY_STATES - 1 };
	set.name = tree_string(&b->tree, name, &b->failure);
	b->failed |= set.name == NONE;
	for (unsigned i = 0; i < set.n; i++) {
		set.state[i] = tree_string(&b->tree, state[i], &b->failure);
		b->failed |= set.state[i] == NONE;
	}
	for (size_t i = 0; i < b->sets; i++)
		if (!memcmp(&b->set[i], &set, sizeof set))
			return (unsigned)i;
	*ARRAY_PUSH(b->set, b->sets, b->sets_cap) = set;
	return (unsigned)b->sets - 1;
}

/* Repeats the first failure (b->failure): after it every call fails with the same error. */
static int repeat_failure(struct history_builder *b, struct error *err)
{
	b->failed = true;
	if (err)
		*err = b->failure;
	return -1;
}

/* Returns the leaf for changes; the pointer is valid until the next access to any page. */
static inline struct leaf *leaf_at(struct history_builder *b, uint32_t id)
{
	return PAGED_EDIT(&b->leaf, struct leaf, id);
}

/* If the tables of attributes have grown beyond their memory, writes all chains and restarts the pool with a lower
 * limit, with a reserve for further growth. */
static int shrink_memory(struct history_builder *b, struct error *err);

uint32_t history_attribute(struct history_builder *b, const char *path, enum history_type type, unsigned set,
                           struct error *err)
{
	if (type != HISTORY_STATE)
		set = 0;
	if ((type == HISTORY_STATE && set >= b->sets) || set > UINT16_MAX || (unsigned)type > HISTORY_REF) {
		error_set(err, STATUS_INPUT, NULL, "attribute %.200s: no such type or state set", path);
		return HISTORY_NONE;
	}
	uint32_t node = tree_path(&b->tree, path, err);
	if (node == NONE)
		return HISTORY_NONE;
	uint32_t id = tree_node(&b->tree, node).leaf;
	if (id != NONE) {
		const struct leaf *leaf = PAGED_READ(&b->leaf, struct leaf, id);
		if (leaf->type == type && leaf->set == set)
			return id;
		error_set(err, STATUS_INPUT, NULL, "attribute %.200s: it is already of another type", path);
		return HISTORY_NONE;
	}
	if (b->leaves % 1024 == 0 && shrink_memory(b, err))
		return HISTORY_NONE;
	id = (uint32_t)b->leaves++;
	PAGED_EDIT(&b->tree.node, struct node, node)->leaf = id;
	PAGED_GROW(&b->leaf, struct leaf, b->leaves);
	*leaf_at(b, id) = (struct leaf){
		.start = UNSET, .value = HISTORY_NULL, .type = (uint8_t)type, .set = (uint16_t)set, .node = node,
		.states = type == HISTORY_STATE ? (uint8_t)b->set[set].n : 0,
	};
	return b->failed ? (uint32_t)repeat_failure(b, err) : id;
}

int builder_flush_spill(struct history_builder *b, struct error *err)
{
	if (write_all(b->scratch, b->spill, b->spill_len, -1))
		return out_cannot_write(&b->out, err);
	b->spill_len = 0;
	return 0;
}

static int spill_chunk(struct history_builder *b, const struct spilled_row *s, const int64_t *sums, struct error *err)
{
	if (b->spill_len + SPILL_MAX > SPILL_BUFFER && builder_flush_spill(b, err))
		return -1;
	memcpy(b->spill + b->spill_len, s, sizeof *s);
	b->spill_len += sizeof *s;
	for (uint32_t rest = s->mask; rest; rest &= rest - 1) {
		memcpy(b->spill + b->spill_len, &sums[__builtin_ctz(rest)], sizeof *sums);
		b->spill_len += sizeof *sums;
	}
	return 0;
}

int builder_check_offset(struct history_builder *b, struct error *err)
{
	const uint64_t at = out_offset(&b->out);
	if (at == LOCATION_OFFSET(at))
		return 0;
	return error_set(err, STATUS_INPUT, NULL, "cannot write %s: it would be larger than 256 TiB", b->out.path);
}

int builder_write_chunk(struct history_builder *b, struct leaf *leaf, uint32_t attr, const struct change *row, unsigned n,
                        const uint64_t *skipped, struct error *err)
{
	int64_t sums[HISTORY_STATES];
	struct spilled_row s = { .attr = attr, .start = row->start };
	uint8_t *p = out_reserve(&b->out, CHUNK_BYTES_MAX + 8, err);
	if (!p)
		return -1;
	uint64_t offset = out_offset(&b->out);
	if (builder_check_offset(b, err))
		return -1;
	size_t size = leaf->type == HISTORY_STATE ? chunk_put_states(p, row, n, leaf->states, sums, &s.mask)
	                                          : chunk_put(p, row, n, skipped);
	out_commit(&b->out, size);
	s.location = offset | (uint64_t)size << 48;
	leaf->mask |= s.mask;
	leaf->chunks++;
	b->chunks++;
	b->intervals += n;
	return spill_chunk(b, &s, sums, err);
}

/* Writes the intervals of the chain as one chunk. */
static int flush_chain(struct history_builder *b, struct leaf *leaf, uint32_t id, struct error *err)
{
	struct change row[CHUNK_MAX + 1];
	const unsigned n = leaf->pending;
	leaf->pending = 0;
	pool_take(&b->pool, &leaf->chain, row, n, leaf->has_prev ? leaf->prev_start : leaf->start);
	return builder_write_chunk(b, leaf, id, row, n, NULL, err);
}

/* Writes all chains with at least min_pending intervals. */
static int flush_chains(struct history_builder *b, unsigned min_pending, struct error *err)
{
	for (size_t i = 0; i < b->leaves; i++) {
		const struct leaf *has = PAGED_READ(&b->leaf, struct leaf, i);
		if (!has->pending || has->pending < min_pending || has->is_hot)
			continue;
		struct leaf *leaf = leaf_at(b, (uint32_t)i);
		if (flush_chain(b, leaf, (uint32_t)i, err))
			return -1;
	}
	return 0;
}

/* Writes the longest chains until at least half of the pool is free. */
static int flush_longest_chains(struct history_builder *b, struct error *err)
{
	size_t record_reader[CHUNK_MAX + 1] = { 0 }, all = 0;
	for (size_t i = 0; i < b->leaves; i++) {
		const struct leaf *leaf = PAGED_READ(&b->leaf, struct leaf, i);
		if (!leaf->is_hot)
			record_reader[leaf->pending] += leaf->pending;
	}
	for (unsigned n = 1; n <= CHUNK_MAX; n++)
		all += record_reader[n];
	unsigned min_pending = CHUNK_MAX;
	for (size_t sum = record_reader[min_pending]; min_pending > 1 && sum < all / 2; sum += record_reader[--min_pending])
		;
	return flush_chains(b, min_pending, err);
}

static int shrink_memory(struct history_builder *b, struct error *err)
{
	size_t attributes = pages_memory(&b->pager);
	size_t pool = b->pool.slabs_touched * sizeof *b->pool.slab, fixed = b->memory / 16;
	if (attributes + pool + fixed <= b->memory || b->pool.limit * sizeof *b->pool.slab <= b->memory / 16)
		return 0;
	if (flush_chains(b, 1, err))
		return -1;
	size_t needed = attributes + attributes / 4 + fixed;
	pool_reset(&b->pool, needed < b->memory ? b->memory - needed : b->memory / 16);
	return 0;
}

/* Writes the final intervals of a row: all but the last two, the held-back and the open one. For a follower with a
 * CHUNK_LINKED, only the intervals with starts that its leader has recorded. */
static int flush_row(struct history_builder *b, struct leaf *leaf, uint32_t id, struct error *err)
{
	uint64_t skipped[CHUNK_MAX];
	struct hot_row *const row = leaf->row;
	struct change *const first = row->first;
	unsigned n = (unsigned)(leaf->open - first) - 1;
	const unsigned echo = linked_prefix(row, first, n, skipped);
	n = echo ? echo : n;
	row->has_linked_chunk |= echo != 0;
	leader_record_starts(row, first, n);
	if (builder_write_chunk(b, leaf, id, first, n, echo ? skipped : NULL, err))
		return -1;
	leaf->open -= n;
	memmove(first, first + n, (size_t)(leaf->open + 1 - first) * sizeof *first);
	return 0;
}

/* Gives a row to an attribute that has filled its first chunk. Returns the leaf, which may have moved. */
static struct leaf *make_hot(struct history_builder *b, struct leaf *leaf, uint32_t id)
{
	const struct change held_back = { leaf->prev_start, leaf->prev_value }, open = { leaf->start, leaf->value };
	struct hot_row *const row = &b->row[b->hot_rows];
	*row = (struct hot_row){ .leaf = id, .first = b->hot + (size_t)b->hot_rows++ * (b->long_chunk + 3) };
	row->first[0] = held_back;
	row->first[1] = open;
	leaf->is_hot = true;
	leaf->has_prev = false;
	leaf->row = row;
	leaf->open = &row->first[1];
	leaf->full = &row->first[builder_chunk(b, leaf) + 1];
	linked_choose_leader(b, id);
	return leaf_at(b, id);
}

/* Makes the open interval the held-back one, and appends the held-back one to the chain. If the chain is full, writes
 * it; then, if a row is free, the leaf becomes hot and stays as it is otherwise. Returns the leaf, which may have moved;
 * NULL on failure. */
static struct leaf *hold_back(struct history_builder *b, struct leaf *leaf, uint32_t id, struct error *err)
{
	if (leaf->has_prev && leaf->pending == b->chunk) {
		if (flush_chain(b, leaf, id, err))
			return NULL;
		if (b->hot_rows < b->hot_limit)
			return make_hot(b, leaf, id);
	}
	if (leaf->has_prev) {
		if (pool_is_full(&b->pool)) {
			if (flush_longest_chains(b, err))
				return NULL;
			leaf = leaf_at(b, id);
		}
		pool_push(&b->pool, &leaf->chain, (uint64_t)leaf->start - (uint64_t)leaf->prev_start, leaf->prev_value);
		leaf->pending++;
	}
	leaf->has_prev = true;
	leaf->prev_start = leaf->start;
	leaf->prev_value = leaf->value;
	return leaf;
}

/* Replaces the open interval's value: at the first change, or at a change at the open interval's start. No
 * interval is closed. */
static void replace_open_value(struct leaf *leaf, int64_t t, int64_t value)
{
	if (leaf->is_hot) {
		*leaf->open = (struct change){ t, value };
		leaf->open -= leaf->open > leaf->row->first && leaf->open[-1].value == value;
		return;
	}
	leaf->start = t;
	leaf->value = value;
	if (leaf->has_prev && leaf->prev_value == value) {
		leaf->start = leaf->prev_start;
		leaf->has_prev = false;
	} else if (value == HISTORY_NULL && !leaf->has_prev && !leaf->pending && !leaf->chunks) {
		leaf->start = UNSET;
	}
}

/* Returns the open interval's start. */
static inline int64_t leaf_start(const struct leaf *leaf)
{
	return leaf->is_hot ? leaf->open->start : leaf->start;
}

/* Records a change of an attribute that has no row, or that needs more than appending to its row. */
static __attribute__((noinline)) int change_value_slowly(struct history_builder *b, struct leaf *leaf, uint32_t id,
                                                          int64_t t, int64_t value, struct error *err)
{
	if (!leaf->is_hot && leaf->value == value)
		return 0;
	if (t <= leaf_start(leaf)) {
		replace_open_value(leaf, t, value);
		return 0;
	}
	if (leaf->is_hot ? flush_row(b, leaf, id, &b->failure) : !(leaf = hold_back(b, leaf, id, &b->failure)))
		return repeat_failure(b, err);
	if (leaf->is_hot)
		*++leaf->open = (struct change){ t, value };
	else
		leaf->start = t, leaf->value = value;
	return 0;
}

/* Records a change; most changes only append to a row. */
static inline int change_value(struct history_builder *b, struct leaf *leaf, uint32_t id, int64_t t, int64_t value,
                         struct error *err)
{
	if (!leaf->is_hot)
		return change_value_slowly(b, leaf, id, t, value, err);
	struct change *const open = leaf->open;
	if (open->value == value)
		return 0;
	if (open == leaf->full || t <= open->start)
		return change_value_slowly(b, leaf, id, t, value, err);
	open[1] = (struct change){ t, value };
	leaf->open = open + 1;
	return 0;
}

/* Writes the name of an attribute for a message, cut at NAME_QUOTED bytes. Returns name. */
static const char *leaf_name(struct history_builder *b, uint32_t attr, char name[NAME_QUOTED])
{
	tree_text(&b->tree, tree_node(&b->tree, leaf_at(b, attr)->node).name, name, NAME_QUOTED);
	name[NAME_QUOTED - 1] = '\0';
	return name;
}

static int check_time(struct history_builder *b, int64_t t, uint32_t attr, struct error *err)
{
	if (b->failed)
		return repeat_failure(b, err);
	if (attr >= b->leaves)
		return error_set(err, STATUS_INPUT, NULL, "history %s: there is no attribute %u", b->out.path, attr);
	if (t < -TIME_LIMIT || t > TIME_LIMIT)
		return error_set(err, STATUS_INPUT, NULL, "history %s: the time %lld is out of range", b->out.path,
		                 (long long)t);
	const int64_t start = leaf_start(leaf_at(b, attr));
	char name[NAME_QUOTED];
	if (start != UNSET && t < start)
		return error_set(err, STATUS_INPUT, NULL, "history %s: attribute %s changes at %lld, after a change at %lld",
		                 b->out.path, leaf_name(b, attr, name), (long long)t, (long long)start);
	if (!b->begun || t < b->first)
		b->first = t;
	if (!b->begun || t > b->now)
		b->now = t;
	b->begun = true;
	return 0;
}

static int refuse_value(struct history_builder *b, uint32_t attr, int64_t value, struct error *err)
{
	char name[NAME_QUOTED];
	if (leaf_at(b, attr)->type == HISTORY_STATE)
		return error_set(err, STATUS_INPUT, NULL, "history %s: attribute %s has no state %lld", b->out.path,
		                 leaf_name(b, attr, name), (long long)value);
	return error_set(err, STATUS_INPUT, NULL, "history %s: attribute %s takes ids of strings only", b->out.path,
	                 leaf_name(b, attr, name));
}

/* Returns true if the value is valid for an attribute without states. */
static bool is_value(const struct history_builder *b, const struct leaf *leaf, int64_t value)
{
	return value == HISTORY_NULL || leaf->type == HISTORY_INT ||
	       (leaf->type == HISTORY_STRING && (uint64_t)value < b->tree.bytes_len) ||
	       (leaf->type == HISTORY_REF && (uint64_t)history_ref_text(value) < b->tree.bytes_len);
}

/* Records a change after its time was checked. */
static inline int set_value(struct history_builder *b, struct leaf *leaf, int64_t t, uint32_t attr, int64_t value,
                      struct error *err)
{
	if ((uint64_t)value >= leaf->states && !is_value(b, leaf, value))
		return refuse_value(b, attr, value, err);
	return change_value(b, leaf, attr, t, value, err);
}

static __attribute__((noinline)) int check_and_set(struct history_builder *b, int64_t t, uint32_t attr, int64_t value,
                                                   struct error *err)
{
	return check_time(b, t, attr, err) ? -1 : set_value(b, leaf_at(b, attr), t, attr, value, err);
}

int history_set(struct history_builder *b, int64_t t, uint32_t attr, int64_t value, struct error *err)
{
	/* Fast path: the leaf's page is resident and changed, and t is not out of order. check_time() handles the other
	 * cases. */
	const size_t each = PAGED_EACH(struct leaf);
	const uintptr_t page = attr < b->leaves ? b->leaf.page[attr / each].data : PAGE_ABSENT;
	if (page & 1 || b->failed || t < b->now || t > TIME_LIMIT)
		return check_and_set(b, t, attr, value, err);
	b->now = t;
	return set_value(b, (struct leaf *)page + attr % each, t, attr, value, err);
}

int history_set_string(struct history_builder *b, int64_t t, uint32_t attr, const char *value, struct error *err)
{
	char name[NAME_QUOTED];
	if (check_time(b, t, attr, err))
		return -1;
	if (leaf_at(b, attr)->type != HISTORY_STRING)
		return error_set(err, STATUS_INPUT, NULL, "history %s: attribute %s does not take strings", b->out.path,
		                 leaf_name(b, attr, name));
	const int64_t id = value ? history_text(b, value, err) : HISTORY_NULL;
	return value && id < 0 ? -1 : change_value(b, leaf_at(b, attr), attr, t, id, err);
}

int64_t history_text(struct history_builder *b, const char *text, struct error *err)
{
	uint32_t id = b->failed ? NONE : tree_string(&b->tree, text, &b->failure);
	return id == NONE || b->failed ? repeat_failure(b, err) : (int64_t)id;
}

int history_meta_set(struct history_builder *b, const char *key, const void *value, size_t size)
{
	if (size > INT32_MAX || strlen(key) > INT32_MAX)
		return -1;
	struct meta *m = NULL;
	for (size_t i = 0; i < b->metas && !m; i++)
		if (!strcmp(b->meta[i].key, key))
			m = &b->meta[i];
	if (!m) {
		m = ARRAY_PUSH(b->meta, b->metas, b->metas_cap);
		*m = (struct meta){ .key = mem_dup(key) };
	}
	free(m->value);
	m->value = mem_new(size, 1);
	m->size = size;
	if (size)
		memcpy(m->value, value, size);
	return 0;
}

int history_set_window(struct history_builder *b, int64_t begin, int64_t end)
{
	uint8_t bytes[16];
	put64(bytes, (uint64_t)begin);
	put64(bytes + 8, (uint64_t)end);
	return history_meta_set(b, HISTORY_WINDOW, bytes, sizeof bytes);
}

void history_derive(struct history_builder *b, history_derive_fn *fn, void *arg)
{
	b->derive = fn;
	b->derive_arg = arg;
}

int history_write_derived(struct history_builder *b, const void *data, size_t size, struct error *err)
{
	return out_write(&b->out, data, size, err);
}

int history_finish(struct history_builder *b, int64_t begin, int64_t end, struct error *err)
{
	int result;
	if (b->failed) {
		result = repeat_failure(b, err);
	} else if (begin > end || begin < -TIME_LIMIT || end > TIME_LIMIT ||
	           (b->begun && (begin > b->first || end < b->now))) {
		result = error_set(err, STATUS_INPUT, NULL, "cannot write %s: its span [%lld, %lld] does not hold its changes",
		                   b->out.path, (long long)begin, (long long)end);
	} else {
		result = builder_write_tables(b, begin, end, err);
		if (!result)
			result = out_publish(&b->out, err);
	}
	free_builder(b);
	return result;
}

void history_abort(struct history_builder *b)
{
	if (b)
		free_builder(b);
}
