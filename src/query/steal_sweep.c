#include "query/steal_sweep.h"

#include <stdlib.h>

#include "base/bisect.h"
#include "base/mem.h"

struct lane_piece {
	int64_t start;         /* it lasts to the start of the next */
	int32_t host_thread;   /* index into topo->thread, or -1 */
	uint16_t thief;
};

struct lane {
	struct lane_piece *piece;
	size_t len, cap;
};

struct sweep_row {
	struct subject subject;
	uint32_t victim;       /* machine */
	struct gap_walk walk;
	struct interval part;  /* read, not yet summed up; start > end: none */
	int lane;              /* hint: where its last gap ended */
	size_t at;
	bool done;
};

static uint16_t thief_of(const struct resolver *r, const struct piece *p)
{
	const struct topo *topo = r->topo;
	int reason = 0;
	while (p->who.kind == FLOW_LIMITED && reason < OUT_REASON_COUNT && r->limit[reason] != p->who.name)
		reason++;
	if (p->who.kind == FLOW_LIMITED)
		return (uint16_t)(topo->machines + THIEF_LIMIT + (unsigned)reason);
	if (p->who.kind == FLOW_WAITING)
		return (uint16_t)(topo->machines + THIEF_WAITING);
	if (p->who.system >= 0)
		return (uint16_t)p->who.system;
	return (uint16_t)(topo->machines + (p->who.kind == FLOW_IDLE_CPU ? THIEF_IDLE : THIEF_UNKNOWN));
}

/* ---- lanes */

static void add_to_lane(struct sweep *s, struct lane *lane, const struct piece *p, int64_t t)
{
	uint16_t thief = thief_of(&s->r, p);
	if (lane->len && lane->piece[lane->len - 1].thief == thief &&
	    lane->piece[lane->len - 1].host_thread == p->host_thread)
		return;
	*ARRAY_PUSH(lane->piece, lane->len, lane->cap) = (struct lane_piece){ t, p->host_thread, thief };
	s->lane_pieces++;
}

/* Who had each pCPU within [from, to].  1 = done, 0 = more pieces than allowed. */
static int fill_lanes(struct sweep *s, int64_t from, int64_t to)
{
	s->lane_pieces = 0;
	for (uint32_t i = 0; i < s->topo->cpus; i++) {
		struct subject cpu = { SUBJECT_CPU, i };
		struct lane *lane = &s->lane[i];
		lane->len = 0;
		if (s->topo->machine[s->topo->cpu[i].machine].kind != MACHINE_HOST)
			continue;
		for (int64_t t = from;; t = s->r.until + 1) {
			struct piece p;
			s->r.until = to;
			if (resolve_subject(&s->r, &cpu, t, &p) < 0)
				return -1;
			add_to_lane(s, lane, &p, t);
			if (s->lane_pieces > s->pieces)
				return 0;
			if (s->r.until >= to)
				break;
		}
	}
	return 1;
}

/* The piece of the lane that holds t: near the last one, or by bisection. */
static size_t lane_at(const struct lane *lane, size_t hint, int64_t t)
{
	size_t at = hint;
	if (hint < lane->len && lane->piece[hint].start <= t)
		for (int i = 0; i < 16; i++, at++)
			if (at + 1 == lane->len || lane->piece[at + 1].start > t)
				return at;
	BISECT(at, lane->len, lane->piece[at].start <= t);
	return at > 0 ? at - 1 : 0;
}

/* The row waited for the lane's pCPU during [t, end]. */
static void walk_lane(struct sweep *s, struct sweep_row *row, int cpu, int32_t self, int64_t t, int64_t end)
{
	const struct lane *lane = &s->lane[cpu];
	int64_t *ns = s->ns + row->victim * s->thieves;
	size_t i = lane_at(lane, row->lane == cpu ? row->at : SIZE_MAX, t);
	for (;; i++) {
		const struct lane_piece *p = &lane->piece[i];
		bool last = i + 1 == lane->len || p[1].start > end;
		int64_t next = last ? end + 1 : p[1].start;
		/* What waits for itself contradicts itself. */
		ns[self >= 0 && p->host_thread == self ? s->topo->machines + THIEF_UNKNOWN : p->thief] += next - t;
		t = next;
		if (last)
			break;
	}
	row->lane = cpu;
	row->at = i;
}

/* ---- rows */

static int add_piece(void *arg, const struct piece *p, int64_t start, int64_t end)
{
	struct sweep *s = arg;
	s->ns[s->victim * s->thieves + thief_of(&s->r, p)] += end - start + 1;
	return 0;
}

/* A part of a gap, within the slice. */
static int sum_part(struct sweep *s, struct sweep_row *row, int64_t t, int64_t end, int64_t state)
{
	s->victim = row->victim;
	while (t <= end) {
		int cpu;
		int32_t self;
		s->r.until = end;
		int simple = resolve_waits_for(&s->r, &row->subject, state, t, &cpu, &self);
		int64_t until = s->r.until;
		if (simple < 0)
			return -1;
		if (simple)
			walk_lane(s, row, cpu, self, t, until);
		else if (resolve_walk(&s->r, &row->subject, t, until, add_piece, s) < 0)
			return -1;
		t = until + 1;
	}
	return 0;
}

static int sum_row(struct sweep *s, struct sweep_row *row, int64_t from, int64_t to)
{
	while (!row->done) {
		if (row->part.start > row->part.end) {
			int r = gap_walk_part(&row->walk, &row->part, s->err);
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
		if (sum_part(s, row, start, end, row->part.value) < 0)
			return -1;
		if (row->part.end > to)
			break;
		row->part = (struct interval){ 1, 0, 0 };
	}
	row->lane = -1;
	return 0;
}

static int find_rows(struct sweep *s)
{
	for (size_t i = 0; i < s->rows->len; i++) {
		const struct gap_row *is = &s->rows->row[i];
		struct sweep_row row = { .subject = is->subject, .victim = is->victim, .part = { 1, 0, 0 }, .lane = -1 };
		int r = gap_walk_start(&row.walk, s->topo, &is->subject, s->from, s->to, s->err);
		if (r < 0)
			return -1;
		if (r == 0)
			continue;
		if (s->row_len == SWEEP_ROWS)
			return 0;
		*ARRAY_PUSH(s->row, s->row_len, s->row_cap) = row;
	}
	return 1;
}

int sweep_open(struct sweep *s, const struct topo *topo, const struct gap_rows *rows, int64_t from, int64_t to,
               struct error *err)
{
	*s = (struct sweep){ .topo = topo, .rows = rows, .from = from, .to = to, .at = from, .length = to - from,
		.thieves = topo->machines + THIEF_OTHERS, .pieces = SWEEP_PIECES, .err = err };
	s->ns = mem_new(topo->machines * s->thieves, sizeof *s->ns);
	s->lane = mem_new(topo->cpus, sizeof *s->lane);
	resolver_init(&s->r, topo, from, to, err);
	s->r.shallow = true;
	return find_rows(s);
}

/* Each slice is as long as its lanes allow. */
int sweep_step(struct sweep *s)
{
	int64_t end;
	for (;;) {
		end = s->row_len && s->length < s->to - s->at ? s->at + s->length : s->to;
		int full = s->row_len ? fill_lanes(s, s->at, end) : 1;
		if (full < 0)
			return -1;
		if (full || end == s->at)
			break;
		s->length = (end - s->at) / 2;
	}
	for (size_t i = 0; i < s->row_len; i++)
		if (sum_row(s, &s->row[i], s->at, end) < 0)
			return -1;
	if (end >= s->to)
		return 1;
	s->at = end + 1;
	if (s->lane_pieces < s->pieces / 4)
		s->length = s->length < INT64_MAX / 2 ? 2 * s->length + 1 : s->length;
	return 0;
}

void sweep_release(struct sweep *s)
{
	for (uint32_t i = 0; s->lane && i < s->topo->cpus; i++)
		free(s->lane[i].piece);
	free(s->lane);
	free(s->row);
	free(s->ns);
	if (s->topo)
		resolver_release(&s->r);
	*s = (struct sweep){ 0 };
}
