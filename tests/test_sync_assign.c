/* Results derived from an estimated clock: error bounds, containment, delays, vCPU numbers, migrated VMs. */
#include "test.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "sync/assign/containment.h"
#include "sync/assign/pair_delays.h"
#include "sync/assign/vcpu_numbering.h"
#include "sync/fit/error_bounds.h"
#include "sync/search/step_placement.h"

#define NAME_0 2  /* string id */

static struct trace *make_trace(enum trace_role role, const struct event *ev, size_t n)
{
	static const char *const strings[] = { "", "qemu:One", "CPU 0/KVM", "CPU 1/KVM" };
	return trace_from_events(role == ROLE_HOST ? "h" : "g", role, ev, n, strings, COUNT(strings));
}

static struct event make_event(int64_t ts, enum event_kind kind, int tid)
{
	struct event ev = { .ts = ts, .kind = (uint16_t)kind, .tid = tid, .pid = tid < 0 ? -1 : tid / 10 * 10 };
	for (int i = 0; i < 6; i++)
		ev.arg[i] = EVENT_ABSENT;
	return ev;
}

/* ---- error bounds */

/* Between its points a bound is rounded down, however steeply it falls and however far the points are apart. */
static void test_edges(void **state)
{
	(void)state;
	static const struct { struct clock_point a, b; int64_t t, want; } at[] = {
		{ { 0, 100 }, { 10, 107 }, 5, 103 }, { { 0, 100 }, { 10, 93 }, 5, 96 }, { { 0, 100 }, { 10, 90 }, 5, 95 },
		{ { 0, -7 }, { 2, 0 }, 1, -4 }, { { 0, 0 }, { INT64_C(1) << 62, -7 }, INT64_C(1) << 61, -4 },
		{ { 0, 0 }, { INT64_C(1) << 62, 7 }, INT64_C(1) << 61, 3 },
	};
	for (size_t i = 0; i < COUNT(at); i++) {
		struct clock_point point[2] = { at[i].a, at[i].b };
		const struct clock_bound e = { .point = point, .points = 2 };
		assert_int_equal(clock_bound_at(&e, at[i].t), at[i].want);
	}
}

static struct clock_bound flat_bound(struct clock_point *point, int64_t host)
{
	*point = (struct clock_point){ 0, host };
	return (struct clock_bound){ .left = { 0, host, 0 }, .right = { 0, host, 0 }, .point = point, .points = 1 };
}

/* Lines are rounded to the ns: the error bounds are 1 ns wider on both sides than the polylines. */
static void test_band(void **state)
{
	(void)state;
	struct clock_point point[2];
	struct clock_segment piece = { .low = flat_bound(&point[0], 100), .high = flat_bound(&point[1], 103) };
	const struct clock_map map = { .segment = &piece, .segments = 1 };
	int64_t low, high;
	assert_true(clock_map_bounds(&map, 7, &low, &high));
	assert_int_equal(low, 106);
	assert_int_equal(high, 111);
	assert_int_equal(clock_map_error_width(&map, 7), 5);
	point[1].host = piece.high.left.ref_host = piece.high.right.ref_host = 97;
	assert_false(clock_map_bounds(&map, 7, &low, &high));
	point[1].host = piece.high.left.ref_host = piece.high.right.ref_host = 98;
	assert_true(clock_map_bounds(&map, 7, &low, &high));
}

/* For a nested guest the bounds are 2 ns wider, for the rounding of two steps and of the composed line. */
static void test_composed(void **state)
{
	(void)state;
	struct clock_point point[2];
	struct clock_segment outer = { .low = flat_bound(&point[0], 1000), .high = flat_bound(&point[1], 1010),
		.line = { 0, 1005, 0 } };
	struct clock_map map = { .segment = mem_new(1, sizeof *map.segment), .segments = 1 };
	int64_t low, high;
	map.segment[0] = (struct clock_segment){ .line = { 0, 102, 0 }, .low = flat_bound(mem_new(1, sizeof *point), 100),
		.high = flat_bound(mem_new(1, sizeof *point), 104) };
	clock_map_compose(&map, &(struct clock_map){ .segment = &outer, .segments = 1 });
	assert_true(clock_map_bounds(&map, 7, &low, &high));
	assert_int_equal(low, 7 + 1100 - 2 - 1);
	assert_int_equal(high, 7 + 1114 + 2 + 1);
	clock_map_release(&map);
}

/* The segment boundary is ambiguous from ambiguous_from to before ambiguous_to. */
static void test_unsure(void **state)
{
	(void)state;
	struct clock_segment piece[2] = { { .from = INT64_MIN }, { .from = 50, .ambiguous_from = 40, .ambiguous_to = 60 } };
	const struct clock_map map = { .segment = piece, .segments = 2 };
	for (int64_t t = 0; t < 100; t++)
		assert_int_equal(clock_map_is_ambiguous(&map, t), t >= 40 && t < 60);
}

/* ---- time of a step */

struct world {
	struct trace *host, *guest;
	struct host_timeline timeline;
	struct vm_list vms;
};

static void world_open(struct world *s, const struct event *host, size_t hosts, const struct event *guest,
                       size_t guests)
{
	struct error err = ERROR_INIT;
	s->host = make_trace(ROLE_HOST, host, hosts);
	s->guest = make_trace(ROLE_GUEST, guest, guests);
	assert_int_equal(host_timeline_load(&s->timeline, s->host, NULL, 1, NULL, &err), 0);
	vm_list_make(&s->timeline, &s->vms);
}

static void world_close(struct world *s)
{
	vm_list_release(&s->vms);
	host_timeline_release(&s->timeline);
	trace_free(s->host);
	trace_free(s->guest);
}

/* Windows for a step: until 250 us the guest's clock equals the host's, after 350 us it is 50 us behind. */
static const struct event near_step[] = {
	{ .ts = 0, .kind = EV_OTHER, .tid = 1, .pid = 1 },
	{ .ts = 100000, .kind = EV_VCPU_ENTRY, .tid = 11, .pid = 10 },
		{ .ts = 110000, .kind = EV_VCPU_EXIT, .tid = 11, .pid = 10 },
	{ .ts = 200000, .kind = EV_VCPU_ENTRY, .tid = 11, .pid = 10 },
		{ .ts = 210000, .kind = EV_VCPU_EXIT, .tid = 11, .pid = 10 },
	{ .ts = 300000, .kind = EV_VCPU_ENTRY, .tid = 11, .pid = 10 },
		{ .ts = 310000, .kind = EV_VCPU_EXIT, .tid = 11, .pid = 10 },
	{ .ts = 350000, .kind = EV_VCPU_ENTRY, .tid = 11, .pid = 10 },
		{ .ts = 360000, .kind = EV_VCPU_EXIT, .tid = 11, .pid = 10 },
	{ .ts = 450000, .kind = EV_VCPU_ENTRY, .tid = 11, .pid = 10 },
		{ .ts = 460000, .kind = EV_VCPU_EXIT, .tid = 11, .pid = 10 },
	{ .ts = 550000, .kind = EV_VCPU_ENTRY, .tid = 11, .pid = 10 },
		{ .ts = 560000, .kind = EV_VCPU_EXIT, .tid = 11, .pid = 10 },
	{ .ts = 900000, .kind = EV_OTHER, .tid = 1, .pid = 1 },
};

/* Checks that the step is ambiguous from after the last event that only the earlier segment allows in guest mode, to the
 * first event that only the later segment allows; if no event is in between, it is placed. low: smallest possible
 * setback. */
static void check_step(int64_t *t, size_t n, int64_t low, enum sync_quality quality, bool placed)
{
	struct world s;
	struct clock_point point[4];
	struct clock_segment piece[2] = {
		{ .from = 0, .low = flat_bound(&point[0], -1), .high = flat_bound(&point[1], 1), .quality = SYNC_ACCURATE },
		{ .from = 300000, .line = { 0, 50000, 0 }, .low = flat_bound(&point[2], low), .high = flat_bound(&point[3], 50001),
		  .quality = quality },
	};
	struct clock_map clock = { .segment = piece, .segments = 2 };
	struct activity_cpu cpu = { .ts = t, .len = n };
	const struct activity activity = { .cpu = &cpu, .cpus = 1, .len = n, .begin = 0, .end = 800000 };
	const struct event ev = make_event(0, EV_OTHER, -1);
	world_open(&s, near_step, COUNT(near_step), &ev, 1);
	const struct evidence evidence = { &s.timeline, &s.vms.vm[0], &activity };
	assert_true(steps_place(&evidence, &(struct pair_list){ 0 }, &clock));
	assert_int_equal(piece[1].ambiguous_from, 205001);
	assert_int_equal(piece[1].from, 205001);
	assert_int_equal(piece[1].ambiguous_to, 405000);
	assert_int_equal(piece[1].placed, placed);
	world_close(&s);
}

static void test_step(void **state)
{
	(void)state;
	check_step((int64_t[]){ 105000, 205000, 405000, 505000 }, 4, 49999, SYNC_ACCURATE, true);
	/* the event at 305000 may be before or after the step */
	check_step((int64_t[]){ 105000, 205000, 305000, 405000, 505000 }, 5, 49999, SYNC_ACCURATE, false);
	/* an ambiguous segment may begin with a step between overlapping bounds */
	check_step((int64_t[]){ 105000, 205000, 405000, 505000 }, 4, 20001, SYNC_APPROXIMATE, true);
}

/* ---- error bounds of clocks that wander */

/* A pair that contradicts the line widens the bounds around it: by its distance outside, and by the width that pairs of
 * other times yield. */
static void test_contradicting_pair(void **state)
{
	(void)state;
	enum { N = 320, AT = 165 };
	static struct pair pair[2 * N];
	struct clock_map clock = { .segment = mem_new(1, sizeof *clock.segment), .segments = 1 };
	int64_t low, high;
	*clock.segment = (struct clock_segment){ .low = flat_bound(mem_new(1, sizeof(struct clock_point)), -100),
		.high = flat_bound(mem_new(1, sizeof(struct clock_point)), 100) };
	for (int i = 0; i < N; i++) {
		const int64_t x = 1000000 * i;
		pair[2 * i] = (struct pair){ .x = x, .y = x + 100, .side = HULL_UPPER };
		pair[2 * i + 1] = (struct pair){ .x = x, .y = x - 100, .side = HULL_LOWER };
	}
	pair[2 * AT + 1].y += 230;
	pair[2 * AT + 1].rejected = PAIR_SUSPECT;
	error_bounds_widen(pair, (size_t)2 * N, &(struct error_bounds_drift){ 0 }, 0, clock.segment);
	assert_true(clock_map_bounds(&clock, 1000000 * AT, &low, &high));
	assert_int_equal(high - 1000000 * AT, 330 + 1);
	assert_int_equal(low - 1000000 * AT, -101 - 1);
	assert_true(clock_map_bounds(&clock, 50000000, &low, &high));
	assert_int_equal(high - 50000000, 101 + 1);
	clock_map_release(&clock);
}

/* ---- containment */

static int64_t least_distance(const struct containment *c, int side)
{
	int64_t ns = INT64_MAX;
	for (size_t i = 0; i < SYNC_DELAY_SLICES; i++)
		ns = c->nearest->ns[side][i] < ns ? c->nearest->ns[side][i] : ns;
	return ns;
}

/* Host traced from 1000 to 2000; its vCPU is in guest mode until 1050, in 1100-1200, 1300-1400, and after 1500. */
static const struct event stays[] = {
	{ .ts = 1000, .kind = EV_OTHER, .tid = 1, .pid = 1 },
	{ .ts = 1050, .kind = EV_VCPU_EXIT, .tid = 11, .pid = 10 },
	{ .ts = 1100, .kind = EV_VCPU_ENTRY, .tid = 11, .pid = 10 }, { .ts = 1200, .kind = EV_VCPU_EXIT, .tid = 11, .pid = 10 },
	{ .ts = 1300, .kind = EV_VCPU_ENTRY, .tid = 11, .pid = 10 }, { .ts = 1400, .kind = EV_VCPU_EXIT, .tid = 11, .pid = 10 },
	{ .ts = 1500, .kind = EV_VCPU_ENTRY, .tid = 11, .pid = 10 },
	{ .ts = 2000, .kind = EV_OTHER, .tid = 1, .pid = 1 },
};

static void measure_events(const int64_t *t, size_t n, const struct clock_segment *piece, struct containment *out)
{
	for (unsigned workers = 1; workers <= 3; workers += 2) {
		struct event ev[16];
		struct world s;
		struct error err = ERROR_INIT;
		struct clock_segment copy = *piece;
		const struct clock_map clock = { .segment = &copy, .segments = 1 };
		for (size_t i = 0; i < n; i++)
			ev[i] = make_event(t[i], EV_OTHER, -1);
		containment_release(out);
		world_open(&s, stays, COUNT(stays), ev, n);
		assert_int_equal(s.vms.len, 1);
		assert_int_equal(containment_measure(&s.timeline, &s.vms.vm[0], s.guest, &clock, workers, NULL, out, &err), 0);
		world_close(&s);
	}
}

static void test_containment(void **state)
{
	(void)state;
	const struct clock_segment sure = { .from = INT64_MIN };
	struct containment c = { 0 };
	measure_events((int64_t[]){ 1020, 1150, 1210, 1270, 1295, 1900 }, 6, &sure, &c);
	assert_int_equal(c.inside, 3);
	assert_int_equal(c.outside, 3);
	assert_int_equal(c.contradictions, 3);
	assert_int_equal(c.worst, 30);  /* event at 1270: closer to the next window than to the previous one */
	assert_int_equal(least_distance(&c, SYNC_ABOVE), 30);
	assert_int_equal(least_distance(&c, SYNC_BELOW), 50);
	assert_float_equal(containment_share(&c), 0.5, 0);
	assert_float_equal(containment_possible_share(&c), 0.5, 0);
	measure_events((int64_t[]){ 1020 }, 1, &sure, &c);  /* an entry or exit outside the trace bounds nothing */
	assert_int_equal(least_distance(&c, SYNC_ABOVE), 30);
	assert_true(least_distance(&c, SYNC_BELOW) == INT64_MAX);
	measure_events((int64_t[]){ 1900 }, 1, &sure, &c);
	assert_true(least_distance(&c, SYNC_ABOVE) == INT64_MAX);
	assert_int_equal(least_distance(&c, SYNC_BELOW), 400);
	assert_int_equal(c.worst, 0);
	measure_events((int64_t[]){ 10, 999, 2001, 3000 }, 4, &sure, &c);  /* outside the host's trace */
	assert_int_equal(c.inside + c.outside, 0);
	assert_float_equal(containment_share(&c), -1, 0);
	measure_events((int64_t[]){ 1000, 2000 }, 2, &sure, &c);
	assert_int_equal(c.inside, 2);
	containment_release(&c);
}

/* An event that may be in guest mode for some clock within the bounds is no contradiction. */
static void test_contradictions(void **state)
{
	(void)state;
	struct clock_point point[2];
	const struct clock_segment piece = { .from = INT64_MIN, .low = flat_bound(&point[0], -14),
		.high = flat_bound(&point[1], 14) };
	struct containment c = { 0 };
	measure_events((int64_t[]){ 1215, 1216, 1284, 1285 }, 4, &piece, &c);
	assert_int_equal(c.outside, 4);
	assert_int_equal(c.contradictions, 2);
	assert_float_equal(containment_possible_share(&c), 0.5, 0);
	containment_release(&c);
}

/* ---- delays */

static void test_delays(void **state)
{
	(void)state;
	const struct event ev[] = { make_event(0, EV_OTHER, -1), make_event(6399, EV_OTHER, -1) };  /* 100 ns per slice */
	struct trace *guest = make_trace(ROLE_GUEST, ev, COUNT(ev));
	struct pair pair[] = {
		{ .x = 0, .y = 7, .side = HULL_UPPER }, { .x = 150, .y = 140, .side = HULL_UPPER },
		{ .x = 250, .y = 230, .side = HULL_LOWER }, { .x = 350, .y = 450, .side = HULL_LOWER },
		{ .x = 450, .y = 453, .side = HULL_UPPER, .rejected = PAIR_SUSPECT },
	};
	static const struct { enum sync_side side; int64_t ns; size_t span; enum sync_pair_kind what; } want[] = {
		{ SYNC_ABOVE, 7, 0, SYNC_PAIR_EVENT }, { SYNC_BELOW, 10, 1, SYNC_PAIR_OUTLIER },
		{ SYNC_BELOW, 20, 2, SYNC_PAIR_EVENT }, { SYNC_ABOVE, 100, 3, SYNC_PAIR_OUTLIER },
		{ SYNC_ABOVE, 3, 4, SYNC_PAIR_OUTLIER }, { SYNC_BELOW, 40, 5, SYNC_PAIR_CONTAINMENT },
	};
	struct clock_segment piece = { .from = INT64_MIN };
	struct window_distances nearest = { 0 };
	struct match m = { .candidate.clock = { .segment = &piece, .segments = 1 },
		.events = { .pair = pair, .len = COUNT(pair) },
		.inside_share = 1, .containment.nearest = &nearest };
	static struct sync_delays d;
	size_t seen = 0;
	for (int side = 0; side < 2; side++)
		for (size_t span = 0; span < SYNC_DELAY_SLICES; span++)
			nearest.ns[side][span] = side == SYNC_BELOW && span == 5 ? 40 : INT64_MAX;
	delays_fill(&d, &m, guest);
	for (size_t i = 0; i < sizeof d.seen; i++)
		seen += (&d.seen[0][0][0])[i] != 0;
	assert_int_equal(seen, COUNT(want));
	for (size_t i = 0; i < COUNT(want); i++)
		assert_int_equal(d.seen[want[i].side][sync_delay_step(want[i].ns)][want[i].span], want[i].what);
	trace_free(guest);
}

/* ---- vCPU numbers */

/* At least three of four keys received by a thread must come from one CPU; otherwise the thread keeps its number. */
static void check_votes(unsigned good, unsigned bad, bool proved)
{
	struct candidate_vcpu vcpu[2] = { { .number = 0, .evidence = VCPU_BY_ORDER, .thread = 0 },
	                           { .number = 1, .evidence = VCPU_BY_ORDER, .thread = 1 } };
	struct vm_candidate vm = { .vcpu = vcpu, .vcpus = 2 };
	struct pair pair[64];
	struct pair_list l = { .pair = pair };
	for (unsigned i = 0; i < good + bad; i++)
		pair[l.len++] = (struct pair){ .x = i, .y = i, .cpu = i < good, .thread = 0 };
	pair[l.len++] = (struct pair){ .cpu = 0, .thread = 0, .rejected = PAIR_GROSS };
	pair[l.len++] = (struct pair){ .cpu = -1, .thread = 0 };
	number_by_pairs(&vm, &l);
	for (size_t i = 0; i < 2; i++) {
		const bool first = vcpu[i].thread == 0;
		assert_int_equal(vcpu[i].number, proved ? first : !first);
		assert_int_equal(vcpu[i].evidence, proved && first ? VCPU_BY_SYNC : VCPU_BY_ORDER);
	}
}

static void test_votes(void **state)
{
	(void)state;
	check_votes(1, 0, true);
	check_votes(3, 1, true);
	check_votes(30, 10, true);
	check_votes(29, 10, false);
	check_votes(2, 1, false);
	check_votes(0, 0, false);
}

/* ---- live migration */

/* Counts migrations: a vCPU of one process ends at 200; a vCPU of another process begins at `first`, and its thread
 * exists since `born`. */
static size_t count_migrations(int64_t born, int64_t first)
{
	struct event ev[] = {
		make_event(0, EV_OTHER, 1), make_event(100, EV_VCPU_ENTRY, 11), make_event(200, EV_VCPU_EXIT, 11),
		make_event(born, EV_FORK, 1), make_event(first, EV_VCPU_ENTRY, 21), make_event(first + 10, EV_VCPU_EXIT, 21),
		make_event(first + 1000, EV_OTHER, 1),
	};
	ev[3].fork.parent_tid = 20;
	ev[3].fork.child_tid = 21;
	ev[3].fork.child_pid = 20;
	ev[1].comm = ev[2].comm = ev[4].comm = ev[5].comm = NAME_0;
	if (born < 200) {  /* sorted by time */
		const struct event fork = ev[3];
		memmove(&ev[2], &ev[1], 2 * sizeof *ev);
		ev[1] = fork;
	}
	struct world s;
	world_open(&s, ev, COUNT(ev), ev, 1);
	const size_t before = s.vms.len;
	assert_int_equal(before, 2);
	vm_list_add_migrated(&s.timeline, &s.vms);
	const size_t moves = s.vms.len - before;
	if (moves) {
		assert_true(vm_is_migrated(&s.vms.vm[2]));
		assert_int_equal(s.timeline.thread[s.vms.vm[2].vcpu[1].thread].from, 201);
	}
	world_close(&s);
	return moves;
}

static void test_migrations(void **state)
{
	(void)state;
	const int64_t most = INT64_C(60000000000);
	assert_int_equal(count_migrations(50, 400), 1);
	assert_int_equal(count_migrations(50, 200 + most), 1);
	assert_int_equal(count_migrations(50, 201 + most), 0);  /* the downtime is too long */
	assert_int_equal(count_migrations(300, 400), 0);        /* no thread of the destination existed before */
}

/* ---- two VMs that a guest fits by a given clock */

enum { PERIODS = 64, PERIOD = 100000 };

/* Returns the PID of the guest's VM; 0: neither. VM 10 is entered right before the guest's events and left right after
 * them; VM 20 `wider` ns earlier and later. *noted: number of notes that contain the reason. */
static int32_t vm_of_guest(int64_t wider, size_t *noted)
{
	static struct event host[4 * PERIODS], guest[2 * PERIODS];
	size_t h = 0, g = 0;
	for (int64_t t = PERIOD; t <= (int64_t)PERIODS * PERIOD; t += PERIOD) {
		host[h++] = make_event(t - wider, EV_VCPU_ENTRY, 21);
		host[h++] = make_event(t, EV_VCPU_ENTRY, 11);
		guest[g++] = make_event(t + 300, EV_OTHER, 1);
		guest[g++] = make_event(t + 5000, EV_OTHER, 1);
		host[h++] = make_event(t + 5300, EV_VCPU_EXIT, 11);
		host[h++] = make_event(t + 5300 + wider, EV_VCPU_EXIT, 21);
	}
	for (size_t i = 0; i < h; i++)
		host[i].cpu = host[i].tid == 21;
	struct trace *trace[] = { make_trace(ROLE_HOST, host, h), make_trace(ROLE_GUEST, guest, g) };
	const struct sync_options options = { .method = SYNC_NONE, .workers = 1 };
	struct sync_result result;
	struct notes notes = { NULL, 0, 0 };
	struct error err = ERROR_INIT;
	int32_t pid = 0;
	assert_int_equal(sync_run(trace, 2, &options, &result, &notes, &err), 0);
	for (size_t i = 0; i < result.vms; i++)
		if (result.vm[i].guest && result.vm[i].vcpus > 0)
			pid = result.vm[i].host_pid;
	*noted = 0;
	for (size_t i = 0; i < notes.len; i++)
		*noted += notes.item[i].code == NOTE_VM_UNKNOWN &&
			strstr(notes.item[i].text, sync_reason_row[SYNC_REASON_SEVERAL_VMS].text) != NULL;
	sync_result_release(&result);
	notes_release(&notes);
	trace_free(trace[0]);
	trace_free(trace[1]);
	return pid;
}

static void test_two_vms(void **state)
{
	(void)state;
	size_t noted;
	assert_int_equal(vm_of_guest(2000, &noted), 10);
	assert_int_equal(noted, 0);
	assert_int_equal(vm_of_guest(-200, &noted), 20);
	assert_int_equal(noted, 0);
	assert_int_equal(vm_of_guest(0, &noted), 0);
	assert_int_equal(noted, 1);
}

/* ---- one VM and one guest without guest-mode information, or without common time */

static int32_t vm_of_unmeasured(uint32_t name, int64_t at)
{
	struct event host[] = { make_event(0, EV_PROCESS, 10), make_event(100, EV_VCPU_ENTRY, 11),
		make_event(200, EV_VCPU_EXIT, 11) };
	const struct event guest = make_event(at, EV_OTHER, 1);
	host[0].process.tid = host[0].process.pid = 10;
	host[0].process.comm = name;
	struct trace *trace[] = { make_trace(ROLE_HOST, host, COUNT(host)), make_trace(ROLE_GUEST, &guest, 1) };
	const struct sync_options options = { .method = SYNC_NONE, .workers = 1 };
	struct sync_result result;
	struct error err = ERROR_INIT;
	assert_int_equal(sync_run(trace, 2, &options, &result, NULL, &err), 0);
	const int32_t pid = result.vm[0].host_pid;
	sync_result_release(&result);
	trace_free(trace[0]);
	trace_free(trace[1]);
	return pid;
}

static void test_unmeasured_vm(void **state)
{
	(void)state;
	assert_int_equal(vm_of_unmeasured(0, 50), 10);
	assert_int_equal(vm_of_unmeasured(1, 50), -1);  /* the VM has another name */
	assert_int_equal(vm_of_unmeasured(0, 201), -1);
	assert_int_equal(vm_of_unmeasured(0, -1), -1);
}

/* A VM is closer by the number of slices in which its edges are closer; equal distances do not count, and only slices in
 * which both VMs contain events. */
static void test_closer(void **state)
{
	(void)state;
	static const struct { unsigned near, far, equal; bool inside, closer; } cases[] = {
		{ CLOSER_MIN, 0, 0, true, true }, { CLOSER_MIN - 1, 0, 1, true, false }, { CLOSER_MIN, 0, 0, false, false },
		{ 0, 0, SYNC_DELAY_SLICES, true, false }, { CLOSER_MIN * CLOSER_TIMES, CLOSER_MIN, 4, true, true },
		{ CLOSER_MIN * CLOSER_TIMES - 1, CLOSER_MIN, 0, true, false }, { 0, CLOSER_MIN, 0, true, false },
	};
	for (size_t i = 0; i < COUNT(cases); i++) {
		struct window_distances x, y;
		for (size_t k = 0; k < SYNC_DELAY_SLICES; k++) {
			const bool near = k < cases[i].near, far = !near && k < cases[i].near + cases[i].far;
			x.ns[0][k] = x.ns[1][k] = y.ns[0][k] = y.ns[1][k] = INT64_MAX;
			if (k < cases[i].near + cases[i].far + cases[i].equal) {
				x.ns[k % 2][k] = 100;
				y.ns[k % 2][k] = 100 + near - far;
			}
			x.has_inside[k] = y.has_inside[k] = cases[i].inside;
		}
		const struct containment a = { .nearest = &x }, b = { .nearest = &y }, none = { 0 };
		assert_int_equal(containment_closer(&a, &b), cases[i].closer);
		assert_false(containment_closer(&a, &none));
		assert_false(containment_closer(&none, &b));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_closer), cmocka_unit_test(test_edges), cmocka_unit_test(test_band), cmocka_unit_test(test_composed),
		cmocka_unit_test(test_unsure), cmocka_unit_test(test_step), cmocka_unit_test(test_contradicting_pair),
		cmocka_unit_test(test_containment), cmocka_unit_test(test_contradictions), cmocka_unit_test(test_delays),
		cmocka_unit_test(test_votes), cmocka_unit_test(test_migrations), cmocka_unit_test(test_two_vms),
		cmocka_unit_test(test_unmeasured_vm),
	};
	return cmocka_run_group_tests_name("sync assign", tests, NULL, NULL);
}
