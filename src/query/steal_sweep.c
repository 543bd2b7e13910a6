#include "query/steal_sweep.h"

#include "base/base.h"

struct sweep_row {
	struct target target;
	uint32_t index;        /* the row's index in rows->row */
	struct gap_walk walk;
	struct interval part;  /* interval that was read but not added yet; start > end: none */
	int lane;              /* lane where the row's last gap ended ... */
	size_t at;             /* ... and its interval's index there: where the next search starts */
	bool done;
	int64_t gap_start, gap_end;  /* current gap, within the block; start > end: none */
	struct gap_sum sum;    /* in the block, without culprits and lengths */
	uint32_t *bucket;      /* for each gap in the block */
	size_t buckets, bucket_cap;
};

uint32_t sweep_find_culprit(struct sweep *s, const struct actor *actor)
{
	const uint32_t culprit = s->latest[actor->kind] = actors_put(&s->culprits, actor);
	while (s->sum_of_len < s->culprits.len)
		*ARRAY_PUSH(s->sum_of, s->sum_of_len, s->sum_of_cap) = 0;
	return culprit;
}

static uint32_t sweep_unknown(struct sweep *s)
{
	return sweep_put_culprit(s, &(struct actor){ -1, -1, 0, FLOW_UNKNOWN, 0 });
}

/* ---- Sums */

static bool is_row_itself(const struct sweep *s, const struct target *row, uint32_t culprit)
{
	const struct actor *p = &s->culprits.actor[culprit];
	if (row->kind != TARGET_THREAD || p->kind != FLOW_PREEMPTING)
		return false;
	const struct catalog_thread *th = &s->catalog->thread[row->index];
	return p->machine == (int32_t)th->machine && p->tid == th->tid;
}

/* Returns a culprit's sum in the current row, a new one if it has none. It is that of `unknown` if the culprit is the
 * row itself, because a thread that waits for itself is a contradiction. */
static __attribute__((noinline)) struct culprit_ns *row_new_sum(struct sweep *s, uint32_t culprit)
{
	struct row_sums *of = &s->sums_of[s->current_index];
	if (is_row_itself(s, &s->current, culprit))
		culprit = sweep_unknown(s);
	if (!s->sum_of[culprit]) {
		*ARRAY_PUSH(of->sum, of->len, of->cap) = (struct culprit_ns){ .culprit = culprit };
		s->sum_of[culprit] = (uint32_t)of->len;
		s->sums++;
	}
	return &of->sum[s->sum_of[culprit] - 1];
}

static inline struct culprit_ns *row_sum(struct sweep *s, uint32_t culprit)
{
	const uint32_t at = s->sum_of[culprit];
	return at ? &s->sums_of[s->current_index].sum[at - 1] : row_new_sum(s, culprit);
}

/* Counts the latest interval, unless it begins with the block: then it is the first one. */
static inline void row_end_interval(struct sweep *s, struct row_sums *of)
{
	const int64_t ns = of->end - of->start + 1;
	if (ns <= 0)
		return;
	if (of->start == s->block)
		of->first = (struct edge_interval){ of->culprit, ns };
	else
		culprit_add_later(row_sum(s, of->culprit), 1, ns, of->start);
	of->start = of->end + 1;
}

static inline void row_add(struct sweep *s, uint32_t culprit, int64_t start, int64_t end)
{
	struct row_sums *of = &s->sums_of[s->current_index];
	struct culprit_ns *sum = row_sum(s, culprit);
	sum->ns += end - start + 1;
	if (sum->culprit != of->culprit || start != of->end + 1) {
		row_end_interval(s, of);
		of->culprit = sum->culprit;
		of->start = start;
	}
	of->end = end;
}

void sweep_add(struct sweep *s, uint32_t culprit, int64_t start, int64_t end)
{
	row_add(s, culprit, start, end);
}

void sweep_begin_row(struct sweep *s, const struct target *row, uint32_t index)
{
	const struct row_sums *of = &s->sums_of[index];
	s->current = *row;
	s->current_index = index;
	for (size_t i = 0; i < of->len; i++)
		s->sum_of[of->sum[i].culprit] = (uint32_t)i + 1;
}

void sweep_end_row(struct sweep *s)
{
	const struct row_sums *of = &s->sums_of[s->current_index];
	for (size_t i = 0; i < of->len; i++)
		s->sum_of[of->sum[i].culprit] = 0;
}

/* ---- Walks along lanes */

/* Adds a lane's block, which no interval at its edges continues. Returns false if the row waited for itself there, a
 * contradiction. */
static bool row_add_block(struct sweep *s, const struct lane_level *l, size_t block, int32_t self)
{
	const struct lane_sum *first = &l->sum[l->first[block]], *end = &l->sum[l->first[block + 1]];
	for (const struct lane_sum *p = first; p < end; p++)
		if ((p->host_thread == self && self >= 0) ||
		    (!s->sum_of[p->taken.culprit] && is_row_itself(s, &s->current, p->taken.culprit)))
			return false;
	row_end_interval(s, &s->sums_of[s->current_index]);
	for (const struct lane_sum *p = first; p < end; p++) {
		const struct culprit_ns *taken = &p->taken;
		struct culprit_ns *sum = row_sum(s, taken->culprit);
		sum->ns += taken->ns;
		culprit_add_later(sum, taken->intervals, taken->longest, taken->longest_start);
	}
	return true;
}

/* Adds the blocks that start at the lane's interval i and end by `end`, the largest first. Returns the index of the next
 * interval: i if there is no such block. */
static size_t row_walk_blocks(struct sweep *s, const struct lane *lane, int32_t self, size_t i, int64_t end)
{
	while (i % LANE_BLOCK == 0) {
		const struct lane_level *found = NULL;
		size_t size = 1, next = i, block = 0, at = i;
		for (int k = 0; k < LANE_LEVELS && at % LANE_BLOCK == 0; k++) {
			at /= LANE_BLOCK;
			size *= LANE_BLOCK;
			if (at >= lane->level[k].blocks || lane->interval[i + size].start > end ||
			    lane->level[k].first[at] == lane->level[k].first[at + 1])
				break;
			found = &lane->level[k];
			block = at;
			next = i + size;
		}
		if (!found || !row_add_block(s, found, block, self))
			break;
		i = next;
	}
	return i;
}

/* Adds the culprits in [t, end], in which the row waited for the lane's pCPU. */
static void row_walk_lane(struct sweep *s, struct sweep_row *row, int cpu, int32_t self, int64_t t, int64_t end)
{
	const struct lane *lane = &s->lane[cpu];
	size_t i = lane_find(lane, row->lane == cpu ? row->at : SIZE_MAX, t);
	for (;;) {
		const struct lane_interval *p = &lane->interval[i];
		const bool last = i + 1 == lane->len || p[1].start > end;
		const int64_t next = last ? end + 1 : p[1].start;
		row_add(s, self >= 0 && p->host_thread == self ? sweep_unknown(s) : p->culprit, t, next - 1);
		t = next;
		if (last)
			break;
		i = row_walk_blocks(s, lane, self, i + 1, end);
		t = lane->interval[i].start;
	}
	row->lane = cpu;
	row->at = i;
}

/* ---- Rows */

/* Adds a gap's part within the slice; row->part: the row's status interval that contains it. */
static int sweep_add_part(struct sweep *s, struct sweep_row *row, int64_t t, int64_t end)
{
	while (t <= end) {
		struct resolution p;
		int cpu;
		int32_t self;
		resolver_trim(&s->r);
		s->r.until = end;
		const int waits = resolve_gap(&s->r, &row->target, &row->part, t, &p, &cpu, &self);
		const int64_t until = s->r.until;
		if (waits < 0)
			return -1;
		if (waits)
			row_walk_lane(s, row, cpu, self, t, until);
		else
			row_add(s, sweep_put_culprit(s, &p.actor), t, until);
		t = until + 1;
	}
	return 0;
}

/* Ends the row's current gap. Within the block, it is a separate gap unless it touches the block's edge. */
static void row_end_gap(struct sweep *s, struct sweep_row *row)
{
	const int64_t ns = row->gap_end - row->gap_start + 1;
	if (ns <= 0)
		return;
	if (row->gap_start == s->block) {
		row->sum.head = ns;
	} else {
		*ARRAY_PUSH(row->bucket, row->buckets, row->bucket_cap) = length_bucket(ns);
		row->sum.gaps++;
		if (ns > row->sum.longest) {
			row->sum.longest = ns;
			row->sum.longest_start = row->gap_start;
		}
	}
	row->gap_start = row->gap_end + 1;
}

static void row_add_gap(struct sweep *s, struct sweep_row *row, int64_t start, int64_t end)
{
	if (start != row->gap_end + 1) {
		row_end_gap(s, row);
		row->gap_start = start;
	}
	row->gap_end = end;
}

/* Adds the row's time within the slice. */
static int sweep_add_row(struct sweep *s, struct sweep_row *row, int64_t from, int64_t to)
{
	sweep_begin_row(s, &row->target, row->index);
	while (!row->done) {
		if (row->part.start > row->part.end) {
			int r = gap_walk_next_state(&row->walk, &row->part, s->err);
			if (r < 0)
				return -1;
			if (r == 0) {
				row->done = true;
				break;
			}
		}
		int64_t start = row->part.start > from ? row->part.start : from;
		int64_t end = row->part.end < to ? row->part.end : to;
		if (start > to)
			break;
		s->read++;
		row_add_gap(s, row, start, end);
		if (sweep_add_part(s, row, start, end) < 0)
			return -1;
		if (row->part.end > to)
			break;
		row->part = (struct interval){ 1, 0, 0 };
	}
	row->lane = -1;
	sweep_end_row(s);
	return 0;
}

ORDER_BY(compare_waiting, struct waiting_row, RISING(first) RISING(index))

/* Lists the rows that lose time by their first gaps. */
static int sweep_find_rows(struct sweep *s)
{
	for (size_t i = 0; i < s->rows->len; i++) {
		struct waiting_row row = { .index = (uint32_t)i };
		const int r = gap_first_time(s->catalog, &s->rows->row[i].target, s->from, s->to, &row.first, s->err);
		if (r < 0)
			return -1;
		if (r)
			*ARRAY_PUSH(s->waiting, s->waiting_len, s->waiting_cap) = row;
	}
	ARRAY_SORT(s->waiting, s->waiting_len, compare_waiting);
	return 0;
}

/* Starts to walk the rows with a first gap up to t. */
static int sweep_start_rows(struct sweep *s, int64_t t)
{
	for (; s->waiting_at < s->waiting_len && s->waiting[s->waiting_at].first <= t; s->waiting_at++) {
		const struct waiting_row *next = &s->waiting[s->waiting_at];
		struct sweep_row *row = *ARRAY_PUSH(s->row, s->row_len, s->row_cap) = mem_new(1, sizeof *row);
		*row = (struct sweep_row){ .target = s->rows->row[next->index].target, .index = next->index, .part = { 1, 0, 0 },
			.lane = -1, .gap_start = INT64_MIN + 1, .gap_end = INT64_MIN };
		if (gap_walk_start(&row->walk, s->catalog, &row->target, next->first, s->to, s->err) < 0)
			return -1;
	}
	return 0;
}

static void sweep_row_free(struct sweep_row *row)
{
	free(row->bucket);
	free(row);
}

void sweep_init(struct sweep *s, const struct catalog *catalog, const struct gap_rows *rows, int64_t from, int64_t to,
                struct error *err)
{
	const double span = (double)history_end(catalog->h) - (double)history_begin(catalog->h) + 1;
	const double per_ns = (double)history_intervals(catalog->h) / span;
	const double length = SWEEP_INTERVALS / per_ns;
	*s = (struct sweep){ .catalog = catalog, .rows = rows, .from = from, .to = to, .at = from, .block = from,
		.length = length < (double)(to - from) ? (int64_t)length : to - from, .capacity = SWEEP_INTERVALS, .err = err };
	s->sums_of = mem_new(rows->len, sizeof *s->sums_of);
	for (size_t i = 0; i < rows->len; i++)
		s->sums_of[i].start = (s->sums_of[i].end = INT64_MIN) + 1;
	s->lane = mem_new(catalog->cpus, sizeof *s->lane);
	resolver_init(&s->r, catalog, from, to, err);
}

int sweep_open(struct sweep *s, const struct catalog *catalog, const struct gap_rows *rows, int64_t from, int64_t to,
               struct error *err)
{
	sweep_init(s, catalog, rows, from, to, err);
	return sweep_find_rows(s);
}

/* Each slice is as long as the lanes' capacity allows. */
int sweep_begin_slice(struct sweep *s, bool fill, int64_t *end)
{
	for (;;) {
		*end = fill && s->length < s->to - s->at ? s->at + s->length : s->to;
		resolver_hold(&s->r, s->at, *end);
		const int full = fill ? sweep_fill_lanes(s, s->at, *end) : 1;
		if (full < 0)
			return -1;
		if (full || *end == s->at)
			return 0;
		s->length = (*end - s->at) / 2;
	}
}

int sweep_end_slice(struct sweep *s, int64_t end)
{
	const int64_t start = s->at;
	s->at = end + 1;
	if (end >= s->to)
		return 1;
	/* The next slice should fill 3/4 of the lanes, and is at most 4 times as long as this one. */
	const double growth = 0.75 * (double)s->capacity / (double)(s->lane_intervals + 1);
	const double length = (double)(end - start + 1) * (growth < 4 ? growth : 4);
	s->length = length < 0x1p62 ? (int64_t)length : INT64_C(1) << 62;
	return 0;
}

int sweep_step(struct sweep *s)
{
	int64_t end;
	const int64_t first = s->waiting_at < s->waiting_len ? s->waiting[s->waiting_at].first : s->to + 1;
	if (s->row_len == 0 && first > s->at) {  /* no row waits until then */
		s->at = first;
		return first > s->to;
	}
	if (sweep_begin_slice(s, true, &end) < 0 || sweep_start_rows(s, end) < 0)
		return -1;
	s->read += s->lane_intervals;
	for (uint32_t i = 0; i < s->catalog->cpus; i++)
		lane_add_levels(s, &s->lane[i]);
	for (size_t i = 0; i < s->row_len; i++)
		if (sweep_add_row(s, s->row[i], s->at, end) < 0)
			return -1;
	return sweep_end_slice(s, end);
}

/* ---- Blocks */

/* Counts a row's gaps by length bucket. */
static void count_lengths(struct sweep *s, const struct sweep_row *row, struct gap_sum *out)
{
	uint64_t used[LENGTH_BUCKETS / 64] = { 0 };
	uint32_t n = 0;
	for (size_t i = 0; i < row->buckets; i++) {
		const uint32_t bucket = row->bucket[i];
		n += s->bucket_count[bucket]++ == 0;
		used[bucket / 64] |= UINT64_C(1) << bucket % 64;
	}
	out->length = mem_new(n, sizeof *out->length);
	for (uint32_t word = 0; word < LENGTH_BUCKETS / 64; word++)
		for (uint64_t bits = used[word]; bits; bits &= bits - 1) {
			const uint32_t bucket = 64 * word + (uint32_t)__builtin_ctzll(bits);
			out->length[out->lengths++] = (struct length_count){ bucket, s->bucket_count[bucket] };
			s->bucket_count[bucket] = 0;
		}
}

/* Moves a row's time by culprit in the block up to `end` to *out. */
static void row_take_culprits(struct sweep *s, struct sweep_row *row, int64_t end, struct gap_sum *out)
{
	struct row_sums *of = &s->sums_of[row->index];
	const bool open = of->end == end && of->start <= end;
	sweep_begin_row(s, &row->target, row->index);
	if (open)
		out->last = (struct edge_interval){ of->culprit, end - of->start + 1 };
	if (!open || of->start == s->block)
		row_end_interval(s, of);
	sweep_end_row(s);
	out->first = of->first;
	out->culprit = of->sum;
	out->culprits = (uint32_t)of->len;
	s->sums -= of->len;
	*of = (struct row_sums){ .culprit = of->culprit, .start = of->end + 1, .end = of->end };
}

/* Moves a row's sums in the block up to `end` to *out. */
static void row_take(struct sweep *s, struct sweep_row *row, int64_t end, struct gap_sum *out)
{
	const bool open = row->gap_end == end && row->gap_start <= end;
	if (open)
		row->sum.tail = end - row->gap_start + 1;
	if (!open || row->gap_start == s->block)
		row_end_gap(s, row);
	*out = row->sum;
	row_take_culprits(s, row, end, out);
	count_lengths(s, row, out);
	row->buckets = 0;
	row->sum = (struct gap_sum){ 0 };
	row->gap_start = row->gap_end + 1;
}

ORDER_BY(compare_block_rows, struct gap_block_row, RISING(row))

void sweep_take_block(struct sweep *s, struct gap_block *out)
{
	const int64_t end = s->at - 1;
	size_t n = 0;
	*out = (struct gap_block){ .start = s->block, .end = end };
	for (size_t i = 0; i < s->row_len; i++) {
		struct sweep_row *row = s->row[i];
		if (s->sums_of[row->index].len) {
			struct gap_block_row *to = ARRAY_PUSH(out->row, out->rows, out->cap);
			to->row = gap_row_number(s->catalog, &row->target);
			row_take(s, row, end, &to->sum);
		}
		if (row->done)
			sweep_row_free(row);
		else
			s->row[n++] = row;
	}
	s->row_len = n;
	s->read = 0;
	s->block = end + 1;
	ARRAY_SORT(out->row, out->rows, compare_block_rows);
}

void sweep_release(struct sweep *s)
{
	for (uint32_t i = 0; s->lane && i < s->catalog->cpus; i++) {
		free(s->lane[i].interval);
		for (int k = 0; k < LANE_LEVELS; k++) {
			free(s->lane[i].level[k].sum);
			free(s->lane[i].level[k].first);
		}
	}
	free(s->sum_at);
	free(s->lane);
	for (size_t i = 0; i < s->row_len; i++)
		sweep_row_free(s->row[i]);
	free(s->row);
	free(s->waiting);
	free(s->sum_of);
	for (size_t i = 0; s->sums_of && i < s->rows->len; i++)
		free(s->sums_of[i].sum);
	free(s->sums_of);
	actors_release(&s->culprits);
	if (s->catalog)
		resolver_release(&s->r);
	*s = (struct sweep){ 0 };
}
