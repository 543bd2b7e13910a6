#include "flow/sweep.h"

#include <stdlib.h>

#include "base/mem.h"
#include "flow/flow_private.h"

struct lane_piece {
	int64_t start;         /* it lasts to the start of the next */
	int32_t host_thread;   /* index into topo->thread, or -1 */
	uint16_t thief;
};

struct lane {
	struct lane_piece *piece;
	size_t len, cap;
};

struct row {
	struct subject subject;
	uint32_t victim;       /* machine */
	struct gap_walk walk;
	struct interval part;  /* read, not yet summed up; start > end: none */
	int lane;              /* hint: where its last gap ended */
	size_t at;
	bool done;
};

struct run {
	struct sweep *s;
	const struct topo *topo;
	struct resolver r;
	struct lane *lane;     /* by CPU of topo; the host's are used */
	size_t pieces;
	struct row *row;
	size_t rows, row_cap;
	uint32_t victim;       /* of the row at hand */
	int64_t from, to, slice_end;
	struct error *err;
};

void sweep_init(struct sweep *s, const struct topo *topo)
{
	*s = (struct sweep){ .topo = topo, .thieves = topo->machines + THIEF_OTHERS,
		.pieces = SWEEP_PIECES };
	s->ns = mem_new(topo->machines * s->thieves, sizeof *s->ns);
}

void sweep_release(struct sweep *s)
{
	free(s->ns);
	*s = (struct sweep){ 0 };
}

static uint16_t thief_of(const struct topo *topo, const struct piece *p)
{
	if (p->kind == FLOW_WAITING)
		return (uint16_t)(topo->machines + THIEF_WAITING);
	if (p->system >= 0)
		return (uint16_t)p->system;
	return (uint16_t)(topo->machines + (p->kind == FLOW_IDLE_CPU ? THIEF_IDLE : THIEF_UNKNOWN));
}

void sweep_add(struct sweep *s, uint32_t victim, const struct piece *p, int64_t ns)
{
	s->ns[victim * s->thieves + thief_of(s->topo, p)] += ns;
}

/* ---- lanes */

static void add_to_lane(struct run *run, struct lane *lane, const struct piece *p, int64_t t)
{
	uint16_t thief = thief_of(run->topo, p);
	if (lane->len && lane->piece[lane->len - 1].thief == thief &&
	    lane->piece[lane->len - 1].host_thread == p->host_thread)
		return;
	*ARRAY_PUSH(lane->piece, lane->len, lane->cap) = (struct lane_piece){ t, p->host_thread, thief };
	run->pieces++;
}

/* Who had each pCPU within [from, to].  1 = done, 0 = more pieces than allowed. */
static int fill_lanes(struct run *run, int64_t from, int64_t to)
{
	run->pieces = 0;
	for (uint32_t i = 0; i < run->topo->cpus; i++) {
		struct subject s = { SUBJECT_CPU, i };
		struct lane *lane = &run->lane[i];
		lane->len = 0;
		if (run->topo->machine[run->topo->cpu[i].machine].kind != MACHINE_HOST)
			continue;
		for (int64_t t = from;; t = run->r.until + 1) {
			struct piece p;
			run->r.until = to;
			if (resolve_subject(&run->r, &s, t, &p) < 0)
				return -1;
			add_to_lane(run, lane, &p, t);
			if (run->pieces > run->s->pieces)
				return 0;
			if (run->r.until >= to)
				break;
		}
	}
	return 1;
}

/* The piece of the lane that holds t: near the last one, or by bisection. */
static size_t lane_at(const struct lane *lane, size_t hint, int64_t t)
{
	size_t lo = 0, hi = lane->len;
	if (hint < lane->len && lane->piece[hint].start <= t) {
		lo = hint;
		for (int i = 0; i < 16; i++, lo++)
			if (lo + 1 == lane->len || lane->piece[lo + 1].start > t)
				return lo;
	}
	while (hi - lo > 1) {
		size_t mid = lo + (hi - lo) / 2;
		*(lane->piece[mid].start <= t ? &lo : &hi) = mid;
	}
	return lo;
}

/* The row waited for the lane's pCPU during [t, end]. */
static void walk_lane(struct run *run, struct row *row, int cpu, int32_t self, int64_t t, int64_t end)
{
	const struct lane *lane = &run->lane[cpu];
	int64_t *ns = run->s->ns + row->victim * run->s->thieves;
	size_t i = lane_at(lane, row->lane == cpu ? row->at : SIZE_MAX, t);
	for (;; i++) {
		const struct lane_piece *p = &lane->piece[i];
		bool last = i + 1 == lane->len || p[1].start > end;
		int64_t next = last ? end + 1 : p[1].start;
		/* What waits for itself contradicts itself. */
		ns[self >= 0 && p->host_thread == self ? run->topo->machines + THIEF_UNKNOWN : p->thief] += next - t;
		t = next;
		if (last)
			break;
	}
	row->lane = cpu;
	row->at = i;
}

/* ---- rows */

static int add_row(void *arg, const struct subject *subject)
{
	struct run *run = arg;
	struct row row = { .subject = *subject, .victim = run->victim, .part = { 1, 0, 0 }, .lane = -1 };
	int r = gap_walk_start(&row.walk, run->topo, subject, run->from, run->to, run->err);
	if (r <= 0)
		return r;
	if (run->rows == SWEEP_ROWS)
		return 1;
	*ARRAY_PUSH(run->row, run->rows, run->row_cap) = row;
	return 0;
}

static int add_piece(void *arg, const struct piece *p, int64_t start, int64_t end)
{
	struct run *run = arg;
	sweep_add(run->s, run->victim, p, end - start + 1);
	return 0;
}

/* A part of a gap, within the slice. */
static int sum_part(struct run *run, struct row *row, int64_t t, int64_t end, int64_t state)
{
	run->victim = row->victim;
	while (t <= end) {
		int cpu;
		int32_t self;
		run->r.until = end;
		int simple = resolve_waits_for(&run->r, &row->subject, state, t, &cpu, &self);
		int64_t until = run->r.until;
		if (simple < 0)
			return -1;
		if (simple)
			walk_lane(run, row, cpu, self, t, until);
		else if (resolve_walk(&run->r, &row->subject, t, until, add_piece, run) < 0)
			return -1;
		t = until + 1;
	}
	return 0;
}

static int sum_row(struct run *run, struct row *row, int64_t from, int64_t to)
{
	while (!row->done) {
		if (row->part.start > row->part.end) {
			int r = gap_walk_part(&row->walk, &row->part, run->err);
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
		if (sum_part(run, row, start, end, row->part.value) < 0)
			return -1;
		if (row->part.end > to)
			break;
		row->part = (struct interval){ 1, 0, 0 };
	}
	row->lane = -1;
	return 0;
}

/* Slice by slice, each as long as its lanes allow. */
static int sweep_slices(struct run *run)
{
	int64_t length = run->to - run->from;
	for (int64_t t = run->from;;) {
		int64_t end = length < run->to - t ? t + length : run->to;
		int full = fill_lanes(run, t, end);
		if (full < 0)
			return -1;
		if (full == 0 && end > t) {
			length = (end - t) / 2;
			continue;
		}
		for (size_t i = 0; i < run->rows; i++)
			if (sum_row(run, &run->row[i], t, end) < 0)
				return -1;
		if (end >= run->to)
			return 0;
		t = end + 1;
		if (run->pieces < run->s->pieces / 4)
			length = length < INT64_MAX / 2 ? 2 * length + 1 : length;
	}
}

static int find_rows(struct run *run, const struct subject *only)
{
	const struct topo *topo = run->topo;
	if (only) {
		run->victim = only->kind == SUBJECT_MACHINE ? only->index : only->kind == SUBJECT_CPU
			? topo->cpu[only->index].machine : topo->thread[only->index].machine;
		return gap_each_row(topo, only, add_row, run);
	}
	int r = 0;
	for (run->victim = 0; run->victim < topo->machines && r == 0; run->victim++) {
		struct subject machine = { SUBJECT_MACHINE, run->victim };
		r = gap_each_row(topo, &machine, add_row, run);
	}
	return r;
}

int sweep_run(struct sweep *s, const struct subject *only, int64_t from, int64_t to, struct error *err)
{
	struct run run = { .s = s, .topo = s->topo, .from = from, .to = to, .err = err };
	resolver_init(&run.r, s->topo, from, to, err);
	run.r.shallow = true;
	run.lane = mem_new(s->topo->cpus, sizeof *run.lane);
	int r = find_rows(&run, only);
	if (r == 0 && run.rows)
		r = sweep_slices(&run);
	for (uint32_t i = 0; i < s->topo->cpus; i++)
		free(run.lane[i].piece);
	free(run.lane);
	free(run.row);
	resolver_release(&run.r);
	return r < 0 ? -1 : r == 0;
}
