/* sync/: the parts, one by one, on hand-made events. */
#include "test.h"

#include <math.h>

#include "base/mem.h"
#include "sync/search/fft.h"
#include "sync/estimate/fit.h"
#include "sync/estimate/pairing.h"
#include "sync/seen/vm_view.h"
#include "sync_sim.h"

/* ---- the Fourier transform against its definition */

static void test_fft(void **state)
{
	(void)state;
	enum { N = 64 };
	struct fft f;
	struct fft_value v[N], want[N];
	uint64_t seed = 3;
	fft_init(&f, N);
	for (int i = 0; i < N; i++)
		v[i] = (struct fft_value){ (float)sim_uniform(&seed) - 0.5f, (float)sim_uniform(&seed) };
	for (int k = 0; k < N; k++) {
		want[k] = (struct fft_value){ 0, 0 };
		for (int i = 0; i < N; i++) {
			double angle = -2 * acos(-1) * i * k / N;
			want[k].re += v[i].re * (float)cos(angle) - v[i].im * (float)sin(angle);
			want[k].im += v[i].re * (float)sin(angle) + v[i].im * (float)cos(angle);
		}
	}
	struct fft_value back[N];
	memcpy(back, v, sizeof v);
	fft_forward(&f, back);
	for (int k = 0; k < N; k++) {
		int reversed = 0;
		for (int bit = 1; bit < N; bit *= 2)
			reversed = 2 * reversed + ((k & bit) != 0);
		assert_float_equal(back[reversed].re, want[k].re, 1e-5);
		assert_float_equal(back[reversed].im, want[k].im, 1e-5);
	}
	fft_inverse(&f, back);
	for (int i = 0; i < N; i++) {
		assert_float_equal(back[i].re / N, v[i].re, 1e-6);
		assert_float_equal(back[i].im / N, v[i].im, 1e-6);
	}
	fft_release(&f);
}

/* ---- pairs by chance */

/* So many pairs, one side after the other: y is off x by `clock`, and by some noise of up to `noise`. */
static void add_pairs(struct pair_list *l, int n, int64_t clock, int64_t noise, uint64_t *r)
{
	for (int i = 0; i < n; i++) {
		const enum hull_side side = i % 2 == 0 ? HULL_UPPER : HULL_LOWER;
		const int64_t x = (int64_t)l->len * 1000000, delay = side == HULL_UPPER ? 5000 : -5000;
		*ARRAY_PUSH(l->pair, l->len, l->cap) =
			(struct pair){ x, x + clock + delay + (noise > 0 ? sim_below(r, noise) : 0), side, 0, 0, PAIR_GOOD };
	}
}

/* Conflicts are no more than what a fit rejects, or takes for the begin of a piece. */
static void test_conflicts(void **state)
{
	(void)state;
	struct pair_list l = { 0 };
	struct clock_map clock;
	uint64_t r = 1;
	assert_int_equal(fit_conflicts(&l), 0);
	add_pairs(&l, 200, 0, 8000, &r);
	assert_int_equal(fit_conflicts(&l), 0);
	add_pairs(&l, 200, 300000000, 8000, &r);
	add_pairs(&l, 200, 0, 8000, &r);
	assert_int_equal(fit_conflicts(&l), 2);  /* where it steps */
	l.pair[100].y -= 300000;
	l.pair[151].y += 300000;
	assert_int_equal(fit_conflicts(&l), 4);
	fit_pairs(&l, 0, &clock);
	assert_int_equal(clock.pieces, 3);
	size_t rejected = 0;
	for (size_t i = 0; i < l.len; i++)
		rejected += l.pair[i].rejected != PAIR_GOOD;
	assert_int_equal(rejected, 2);
	clock_map_release(&clock);
	add_pairs(&l, 600, 0, 100000000, &r);
	assert_in_range(fit_conflicts(&l), 4 + 120, 4 + 300);
	pairs_release(&l);
}

/* ---- matching: the stream finds what the sort finds */

static void test_pairing(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 5; seed++) {
		struct mark_list guest = { 0 }, host = { 0 };
		struct pairing p;
		struct pair_list sorted = { 0 };
		uint64_t r = seed;
		pairing_init(&p);
		for (int64_t i = 0; i < 30000; i++) {
			int64_t t = i * 1000000;
			struct sync_mark m[6] = {
				{ (uint64_t)(2 * i), t, EVENT_ABSENT, 0, SYNC_A, 0 },
				{ (uint64_t)(2 * i), t + 5000 + sim_below(&r, 90000), EVENT_ABSENT, 0, SYNC_B, 0 },
				{ (uint64_t)(2 * i + 1), t + 100000, EVENT_ABSENT, 0, SYNC_C, 0 },
				{ (uint64_t)(2 * i + 1), t + 110000 + sim_below(&r, 90000), EVENT_ABSENT, 0, SYNC_D, 0 },
				{ (uint64_t)i, t + 200000, EVENT_ABSENT, 0, SYNC_NET_SEND, 0 },
				{ (uint64_t)i, t + 300000 + sim_below(&r, 90000), EVENT_ABSENT, 0, SYNC_NET_RECEIVE, 0 },
			};
			static const bool of_host[6] = { false, true, true, false, false, true };
			for (int k = 0; k < 6; k++) {
				if (sim_uniform(&r) < 0.1)
					continue;  /* lost */
				mark_list_add(of_host[k] ? &host : &guest, &m[k]);
				pairing_offer(&p, of_host[k], &m[k]);
			}
		}
		pairing_finish(&p);
		mark_list_sort(&guest);
		mark_list_sort(&host);
		pairs_match(&guest, &host, NULL, &sorted);
		assert_int_equal(p.matched, sorted.len);
		assert_true(p.pairs.len < sorted.len / 10);
		struct hull a, b;
		hull_init(&a);
		hull_init(&b);
		for (size_t i = 0; i < sorted.len; i++)
			assert_int_not_equal(hull_add(&a, sorted.pair[i].side, sorted.pair[i].x, sorted.pair[i].y), HULL_CONTRADICTS);
		for (size_t i = 0; i < p.pairs.len; i++)
			hull_add(&b, p.pairs.pair[i].side, p.pairs.pair[i].x, p.pairs.pair[i].y);
		for (int64_t x = -INT64_C(1000000000); x < 31 * INT64_C(1000000000); x += INT64_C(1000000000) / 3) {
			int64_t la, ha, lb, hb;
			assert_true(hull_bounds(&a, x, 0, &la, &ha));
			assert_true(hull_bounds(&b, x, 0, &lb, &hb));
			assert_int_equal(la, lb);
			assert_int_equal(ha, hb);
		}
		hull_release(&a);
		hull_release(&b);
		pairs_release(&sorted);
		pairing_release(&p);
		mark_list_release(&guest);
		mark_list_release(&host);
	}
}

/* Ends that never find a partner do not pile up. */
static void test_pairing_bounded(void **state)
{
	(void)state;
	struct pairing p;
	pairing_init(&p);
	for (uint64_t i = 0; i < 5 * PAIRING_WAITING; i++) {
		struct sync_mark m = { i, (int64_t)i, EVENT_ABSENT, 0, SYNC_A, 0 };
		pairing_offer(&p, false, &m);
	}
	assert_int_equal(p.guest.waiting[PAIRING_AB].len, PAIRING_WAITING);
	assert_int_equal(p.unmatched, 4 * PAIRING_WAITING);
	pairing_finish(&p);
	assert_int_equal(p.matched, 0);
	assert_int_equal(p.unmatched, 5 * PAIRING_WAITING);
	pairing_release(&p);
}

/* One key of three VMs, of which two are one that has moved, and of nobody. */
static void test_owners(void **state)
{
	(void)state;
	static const struct { struct mark_owners vm; int64_t y[3]; size_t pairs; } cases[] = {
		{ { { 1, 0 } }, { 210, 0, 0 }, 1 }, { { { 2, 0 } }, { 220, 0, 0 }, 1 }, { { { 1, 3 } }, { 205, 210, 0 }, 2 },
		{ { { 0, 0 } }, { 0, 0, 0 }, 0 },
	};
	for (size_t c = 0; c < sizeof cases / sizeof *cases; c++) {
		struct mark_list guest = { 0 }, host = { 0 };
		struct pair_list pairs = { 0 };
		static const struct sync_mark of_host[] = {
			{ 7, 205, EVENT_ABSENT, 2, SYNC_B, 3 }, { 7, 210, EVENT_ABSENT, 0, SYNC_B, 1 }, { 7, 220, EVENT_ABSENT, 1, SYNC_B, 2 },
		};
		for (size_t i = 0; i < sizeof of_host / sizeof *of_host; i++)
			mark_list_add(&host, &of_host[i]);
		for (size_t i = 0; i < (cases[c].pairs == 2 ? 2 : 1); i++)
			mark_list_add(&guest, &(struct sync_mark){ 7, 100 + (int64_t)i, EVENT_ABSENT, 0, SYNC_A, 0 });
		mark_list_sort(&guest);
		mark_list_sort(&host);
		pairs_match(&guest, &host, &cases[c].vm, &pairs);
		assert_int_equal(pairs.len, cases[c].pairs);
		assert_int_equal(pairs.unmatched, cases[c].pairs == 0 ? 1 : 0);
		for (size_t i = 0; i < pairs.len; i++)
			assert_int_equal(pairs.pair[i].y, cases[c].y[i]);
		pairs_release(&pairs);
		mark_list_release(&guest);
		mark_list_release(&host);
	}
}

static void test_uid(void **state)
{
	(void)state;
	struct mark_list guest = { 0 }, host = { 0 };
	struct pair_list pairs = { 0 };
	struct sync_mark a = { 7, 100, 1111, 0, SYNC_A, 0 }, b = { 7, 200, 2222, -1, SYNC_B, 0 };
	mark_list_add(&guest, &a);
	mark_list_add(&host, &b);
	mark_list_sort(&guest);
	mark_list_sort(&host);
	pairs_match(&guest, &host, NULL, &pairs);
	assert_int_equal(pairs.len, 0);  /* another VM's key */
	assert_int_equal(pairs.unmatched, 2);
	pairs_release(&pairs);
	host.mark[0].uid = 1111;
	pairs_match(&guest, &host, NULL, &pairs);
	assert_int_equal(pairs.len, 1);
	assert_int_equal(pairs.pair[0].x, 100);
	assert_int_equal(pairs.pair[0].y, 200);
	assert_int_equal(pairs.pair[0].side, HULL_UPPER);
	pairs_release(&pairs);
	mark_list_release(&guest);
	mark_list_release(&host);
}

/* ---- the host's walk */

static struct event make(int64_t ts, enum event_kind kind, unsigned cpu, int tid)
{
	struct event ev = { .ts = ts, .kind = (uint16_t)kind, .cpu = (uint16_t)cpu, .tid = tid, .pid = tid < 0 ? -1 : 10 };
	for (int i = 0; i < 6; i++)
		ev.arg[i] = EVENT_ABSENT;
	return ev;
}

static struct event lost(int64_t ts, int64_t to, unsigned cpu)
{
	struct event ev = make(ts, EV_LOST, cpu, -1);
	ev.lost.end = to;
	ev.lost.count = 1;
	return ev;
}

static const struct map *known_tids;

static void load_view(struct host_view *v, const struct event *ev, size_t n, struct trace **trace)
{
	static const char *const strings[] = { "", "qemu:One", "CPU 0/KVM", "CPU 1/KVM" };
	struct error err = ERROR_INIT;
	*trace = trace_from_events("h", ROLE_HOST, ev, n, strings, COUNT(strings));
	assert_int_equal(host_view_load(v, *trace, known_tids, 1, NULL, &err), 0);
}

static enum guest_mode mode_at(const struct host_view *v, int tid, int64_t t)
{
	for (size_t i = 0; i < v->threads; i++) {
		size_t near = 0;
		if (v->thread[i].tid == tid && v->thread[i].from <= t && t <= v->thread[i].to)
			return vthread_mode(&v->thread[i], t, &near);
	}
	fail_msg("no thread %d at %lld", tid, (long long)t);
	return MODE_OUT;
}

static void test_windows(void **state)
{
	(void)state;
	const struct event ev[] = {
		make(0, EV_OTHER, 0, 1),
		make(50, EV_KVM_EXIT, 0, 11),    /* was in the guest when the trace began */
		make(100, EV_KVM_ENTRY, 0, 11), make(200, EV_KVM_EXIT, 0, 11),
		make(300, EV_KVM_ENTRY, 0, 11),  /* and is when it ends */
		make(310, EV_KVM_ENTRY, 1, 12), make(320, EV_KVM_EXIT, 1, 12),
		make(1000, EV_OTHER, 0, 1),
	};
	struct host_view v;
	struct trace *t;
	load_view(&v, ev, COUNT(ev), &t);
	static const struct { int tid; int64_t at; enum guest_mode mode; } want[] = {
		{ 11, 10, MODE_IN }, { 11, 50, MODE_IN }, { 11, 51, MODE_OUT }, { 11, 99, MODE_OUT }, { 11, 100, MODE_IN },
		{ 11, 200, MODE_IN }, { 11, 201, MODE_OUT }, { 11, 300, MODE_IN }, { 11, 999, MODE_IN },
		{ 12, 5, MODE_BLIND }, { 12, 49, MODE_BLIND },  /* nobody's entries may be recorded yet */
		{ 12, 50, MODE_OUT }, { 12, 315, MODE_IN }, { 12, 900, MODE_OUT },
	};
	for (size_t i = 0; i < COUNT(want); i++)
		assert_int_equal(mode_at(&v, want[i].tid, want[i].at), want[i].mode);
	host_view_release(&v);
	trace_free(t);
}

/* What lost events hide is not known; what they cannot hide is. */
static void test_losses(void **state)
{
	(void)state;
	const struct event ev[] = {
		make(0, EV_OTHER, 0, 1), make(0, EV_OTHER, 1, 1),
		make(100, EV_KVM_ENTRY, 0, 11), make(110, EV_KVM_ENTRY, 1, 12),
		make(120, EV_KVM_ENTRY, 2, 13), make(130, EV_KVM_EXIT, 2, 13),
		lost(200, 300, 0),
		make(250, EV_KVM_EXIT, 1, 12),   /* may go to CPU 0 now */
		make(400, EV_KVM_EXIT, 0, 11),   /* was in the guest since some time in the loss */
		make(500, EV_KVM_ENTRY, 1, 12),  /* was out of it since some time in the loss */
		make(600, EV_KVM_ENTRY, 2, 13), make(610, EV_KVM_EXIT, 2, 13),
		make(1000, EV_OTHER, 0, 1),
	};
	struct host_view v;
	struct trace *t;
	load_view(&v, ev, COUNT(ev), &t);
	static const struct { int tid; int64_t at; enum guest_mode mode; } want[] = {
		{ 11, 150, MODE_IN }, { 11, 199, MODE_IN }, { 11, 250, MODE_BLIND }, { 11, 301, MODE_IN }, { 11, 400, MODE_IN },
		{ 11, 450, MODE_OUT },
		{ 12, 150, MODE_IN }, { 12, 240, MODE_IN }, { 12, 260, MODE_BLIND }, { 12, 310, MODE_OUT }, { 12, 501, MODE_IN },
		{ 13, 125, MODE_IN }, { 13, 150, MODE_OUT }, { 13, 250, MODE_BLIND }, { 13, 350, MODE_OUT }, { 13, 605, MODE_IN },
	};
	for (size_t i = 0; i < COUNT(want); i++)
		assert_int_equal(mode_at(&v, want[i].tid, want[i].at), want[i].mode);
	host_view_release(&v);
	trace_free(t);
}

static struct event fork_of(int64_t ts, int child, int pid)
{
	struct event ev = make(ts, EV_FORK, 3, 1);
	ev.fork.parent_tid = 1;
	ev.fork.child_tid = child;
	ev.fork.child_pid = pid;
	return ev;
}

/* TID 11 belongs to one VM, then to another one; nothing but scheduling tells who runs on a CPU.  Between its exit and its
 * last switch a thread is preempted, which is no other thread. */
static void test_lives(void **state)
{
	(void)state;
	struct event first_end = make(300, EV_EXIT, 0, -1);
	first_end.exit.tid = 11;
	struct event in = make(90, EV_SWITCH, 0, -1);
	in.sw.next_tid = 11;
	struct event process = make(1, EV_PROCESS, 0, -1), dying = make(310, EV_SWITCH, 0, -1);
	process.process.tid = dying.sw.prev_tid = 11;
	process.process.pid = 10;
	dying.sw.prev_comm = 2;  /* "CPU 0/KVM" */
	struct event ev[] = {
		make(0, EV_OTHER, 0, 1), process, in, make(100, EV_KVM_ENTRY, 0, -1), make(200, EV_KVM_EXIT, 0, -1), first_end,
		dying, fork_of(400, 11, 40), make(500, EV_KVM_ENTRY, 1, 11), make(600, EV_KVM_EXIT, 1, 11), make(1000, EV_OTHER, 0, 1),
	};
	ev[8].pid = ev[9].pid = 40;
	struct host_view v;
	struct trace *t;
	struct vm_list vms;
	load_view(&v, ev, COUNT(ev), &t);
	assert_int_equal(v.threads, 2);
	assert_int_equal(v.thread[0].to, 300);
	assert_int_equal(v.thread[1].from, 400);
	vm_list_make(&v, &vms);
	assert_int_equal(vms.len, 2);
	assert_int_equal(vms.vm[0].pid, 10);
	assert_int_equal(vms.vm[1].pid, 40);
	assert_ptr_equal(vm_thread_at(&v, &vms.vm[1], 0, 550), &v.thread[1]);
	assert_null(vm_thread_at(&v, &vms.vm[0], 1, 150));
	vm_list_release(&vms);
	host_view_release(&v);
	trace_free(t);
}

/* Where events were lost, a life may begin and end unseen: what is seen last and first tells who took whose place. */
static void test_lives_and_losses(void **state)
{
	(void)state;
	struct event other = make(450, EV_RENAME, 1, 21);
	other.rename.tid = 21;
	other.rename.comm = 1;
	struct event ev[] = {
		make(0, EV_OTHER, 0, 1), make(100, EV_KVM_ENTRY, 0, 11), make(200, EV_KVM_EXIT, 0, 11), lost(300, 400, 0), other,
		make(500, EV_KVM_ENTRY, 1, 12), make(600, EV_KVM_EXIT, 1, 12), lost(610, 620, 0),
		make(650, EV_KVM_ENTRY, 0, 21), make(700, EV_KVM_EXIT, 0, 21), fork_of(800, 12, 40), make(1000, EV_OTHER, 0, 1),
	};
	for (size_t i = 1; i < 10; i++)
		ev[i].comm = ev[i].kind == EV_LOST ? 0 : ev[i].kind == EV_RENAME ? 1 : 2;  /* 2: "CPU 0/KVM" */
	struct host_view v;
	struct trace *t;
	struct vm_list vms;
	load_view(&v, ev, COUNT(ev), &t);
	assert_int_equal(v.threads, 3);
	assert_int_equal(v.thread[0].to, INT64_MAX);
	assert_int_equal(v.thread[1].from, 500);
	assert_int_equal(v.thread[1].earliest, 0);    /* never seen before */
	assert_int_equal(v.thread[1].to, 600);        /* it was not seen again, and its TID is used by another thread */
	assert_int_equal(v.thread[2].from, 650);
	assert_int_equal(v.thread[2].earliest, 451);  /* then another thread had the TID, perhaps */
	assert_int_equal(mode_at(&v, 12, 550), MODE_IN);
	assert_true(vthread_blind(&v.thread[1], 450, 450));
	vm_list_make(&v, &vms);
	assert_int_equal(vms.len, 1);
	for (unsigned i = 0; i < 3; i++) {
		assert_int_equal(vms.vm[0].vcpu[i].number, 0);
		assert_int_equal(vms.vm[0].vcpu[i].evidence, VCPU_BY_NAME);
	}
	assert_int_equal(v.thread[0].to, 200);
	assert_int_equal(v.thread[2].to, INT64_MAX);
	vm_list_release(&vms);
	host_view_release(&v);
	trace_free(t);
}

/* Numbers of vCPUs: by name, also of one that never ran; by a plausible hint; else in the order of TIDs. */
static void check_numbers(int comm, int64_t hint, unsigned first, unsigned second, enum vcpu_evidence evidence)
{
	struct event ev[] = {
		make(0, EV_OTHER, 0, 1), make(100, EV_KVM_ENTRY, 0, 12), make(150, EV_KVM_EXIT, 0, 12),
		make(200, EV_KVM_ENTRY, 1, 11), make(250, EV_KVM_EXIT, 1, 11), make(900, EV_OTHER, 0, 1),
	};
	for (int i = 1; i < 5; i++) {
		ev[i].comm = (uint32_t)(comm == 0 ? 1 : i < 3 ? comm : 5 - comm);
		ev[i].kvm.vcpu = hint < 0 ? EVENT_ABSENT : i < 3 ? hint : hint == 7 ? 7 : 1 - hint;
	}
	struct host_view v;
	struct trace *t;
	struct vm_list vms;
	load_view(&v, ev, COUNT(ev), &t);
	vm_list_make(&v, &vms);
	assert_int_equal(vms.len, 1);
	assert_int_equal(vms.vm[0].vcpus, 2);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(vms.vm[0].vcpu[i].number, i);
		assert_int_equal(vms.vm[0].vcpu[i].evidence, evidence);
		assert_int_equal(v.thread[vms.vm[0].vcpu[i].thread].tid, i == 0 ? first : second);
	}
	vm_list_release(&vms);
	host_view_release(&v);
	trace_free(t);
}

static void test_numbers(void **state)
{
	(void)state;
	check_numbers(2, -1, 12, 11, VCPU_BY_NAME);   /* 12 is "CPU 0/KVM", 11 is "CPU 1/KVM" */
	check_numbers(3, 0, 11, 12, VCPU_BY_NAME);    /* names beat hints */
	check_numbers(0, 0, 12, 11, VCPU_BY_HINT);
	check_numbers(0, 7, 11, 12, VCPU_BY_ORDER);   /* the same hint twice: not plausible */
	check_numbers(0, -1, 11, 12, VCPU_BY_ORDER);
}

/* What the user names belongs together, though the trace tells the process of one thread alone; another VM's stay. */
static void test_named(void **state)
{
	(void)state;
	struct event seen = make(300, EV_SWITCH, 1, -1);
	seen.sw.prev_tid = 12;  /* all that is ever seen of it */
	struct event ev[] = {
		make(0, EV_OTHER, 0, 1), make(100, EV_KVM_ENTRY, 0, 11), make(200, EV_KVM_EXIT, 0, 11), seen,
		make(400, EV_KVM_ENTRY, 1, 41), make(500, EV_KVM_EXIT, 1, 41), make(900, EV_OTHER, 0, 1),
	};
	struct sync_hint_vcpu vcpu[] = { { 1, 11 }, { 0, 12 } };
	const struct sync_hint hint = { .guest = (char[]){ "One" }, .vcpu = vcpu, .vcpus = 2 };
	struct map known = MAP_INIT;
	struct host_view v;
	struct trace *t;
	struct vm_list vms;
	ev[4].pid = ev[5].pid = 40;
	map_put(&known, 11, NULL);
	map_put(&known, 12, NULL);
	known_tids = &known;
	load_view(&v, ev, COUNT(ev), &t);
	known_tids = NULL;
	vm_list_make(&v, &vms);
	assert_int_equal(vms.len, 3);
	vm_list_hint(&v, &vms, &hint, 1);
	assert_int_equal(vms.len, 2);
	for (size_t i = 0; i < vms.len; i++) {
		bool mine = vms.vm[i].pid == 10;
		assert_int_equal(vms.vm[i].pid, mine ? 10 : 40);
		assert_int_equal(vms.vm[i].vcpus, mine ? 2 : 1);
		assert_int_equal(vms.vm[i].given != NULL, mine);
		assert_int_equal(v.thread[vms.vm[i].vcpu[0].thread].tid, mine ? 12 : 41);
	}
	vm_list_release(&vms);
	host_view_release(&v);
	map_release(&known);
	trace_free(t);
}

/* The user says that TID 11 is a vCPU: of its two lives that one which executes a guest. */
static void test_named_twice(void **state)
{
	(void)state;
	struct event first_end = make(300, EV_EXIT, 0, 11);
	struct event ev[] = {
		make(0, EV_OTHER, 0, 1), fork_of(100, 11, 10), first_end, fork_of(400, 11, 10), make(500, EV_KVM_ENTRY, 1, 11),
		make(600, EV_KVM_EXIT, 1, 11), make(1000, EV_OTHER, 0, 1),
	};
	struct map known = MAP_INIT;
	struct host_view v;
	struct trace *t;
	struct vm_list vms;
	map_put(&known, 11, NULL);
	known_tids = &known;
	load_view(&v, ev, COUNT(ev), &t);
	known_tids = NULL;
	assert_int_equal(v.threads, 2);
	vm_list_make(&v, &vms);
	assert_int_equal(vms.len, 1);
	assert_int_equal(vms.vm[0].vcpus, 1);
	assert_int_equal(v.thread[vms.vm[0].vcpu[0].thread].from, 400);
	vm_list_release(&vms);
	host_view_release(&v);
	map_release(&known);
	trace_free(t);
}

/* ---- fits */

/* A clock that drifts differently from the middle on: two pieces, each within the truth. */
static void test_bend(void **state)
{
	(void)state;
	struct pair_list l = { 0 };
	uint64_t r = 8;
	int64_t half = 100000000000;
	for (int64_t x = 0; x < 2 * half; x += 50000000) {
		int64_t y = x < half ? x + x / 20000 : x + half / 20000 - (x - half) / 10000;
		bool up = sim_below(&r, 2) != 0;
		*ARRAY_PUSH(l.pair, l.len, l.cap) = (struct pair){ x, up ? y + 2000 + sim_below(&r, 50000) : y - 2000 - sim_below(&r, 50000),
			up ? HULL_UPPER : HULL_LOWER, 0, 0, PAIR_GOOD };
	}
	struct clock_map map;
	fit_pairs(&l, 0, &map);
	assert_int_equal(map.pieces, 2);
	assert_true(llabs(map.piece[1].from - half) < half / 10);
	for (int64_t x = 0; x < 2 * half; x += half / 7) {
		int64_t y = x < half ? x + x / 20000 : x + half / 20000 - (x - half) / 10000;
		if (llabs(x - half) > half / 10)
			assert_true(llabs(clock_map_at(&map, x) - y) < 60000);
	}
	clock_map_release(&map);
	pairs_release(&l);
}

/* Clocks that bend and swing: the corridor holds them all the time, and is not much wider than the delays. */
static void check_changing(uint64_t seed, bool bends)
{
	enum { PLACES = 500 };
	struct pair_list l = { 0 };
	uint64_t r = seed;
	struct sim_vm vm = { .to = INT64_C(1000000000) * (20 + sim_below(&r, 200)), .clock = { 0, 0, 100 } };
	int64_t least = 1000 + sim_below(&r, 20000), low, high;
	double width = 0;
	if (bends) {
		vm.bend_at = vm.to / 100 * (20 + sim_below(&r, 60));
		vm.bend_ppm = (sim_uniform(&r) - 0.5) * 100;
	} else {
		vm.wander_s = 100 + 1000 * sim_uniform(&r);
		vm.wander_ns = vm.wander_s * 48 * sim_uniform(&r);
	}
	for (int64_t host = 0; host < vm.to; host += (int64_t)sim_exp(&r, 3e7)) {
		bool up = sim_below(&r, 2) != 0;
		int64_t delay = least + (int64_t)sim_exp(&r, (double)least);
		*ARRAY_PUSH(l.pair, l.len, l.cap) = (struct pair){ sim_guest_time(&vm, host), up ? host + delay : host - delay,
			up ? HULL_UPPER : HULL_LOWER, 0, 0, PAIR_GOOD };
	}
	struct clock_map map;
	fit_pairs(&l, 0, &map);
	fit_open(&l, &map);
	for (int64_t host = 0; host < vm.to; host += vm.to / PLACES) {
		assert_true(clock_map_bounds(&map, sim_guest_time(&vm, host), &low, &high));
		if (low - 2 > host || host > high + 2)
			fail_msg("seed %d: %lld at %.3f", (int)seed, (long long)(host < low ? low - host : host - high), (double)host / (double)vm.to);
		width += (double)(high - low) / PLACES;
	}
	assert_true(width < 10 * (double)least);
	clock_map_release(&map);
	pairs_release(&l);
}

static void test_changing(void **state)
{
	(void)state;
	for (uint64_t seed = 1; seed <= 60; seed++)
		check_changing(seed, seed % 2 == 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_fft), cmocka_unit_test(test_pairing), cmocka_unit_test(test_pairing_bounded),
		cmocka_unit_test(test_uid), cmocka_unit_test(test_owners), cmocka_unit_test(test_conflicts),
		cmocka_unit_test(test_windows), cmocka_unit_test(test_losses),
		cmocka_unit_test(test_lives), cmocka_unit_test(test_lives_and_losses), cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_named), cmocka_unit_test(test_named_twice), cmocka_unit_test(test_bend),
		cmocka_unit_test(test_changing),
	};
	return cmocka_run_group_tests_name("sync parts", tests, NULL, NULL);
}
