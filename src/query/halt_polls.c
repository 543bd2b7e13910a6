/* Halt polling: how often it paid, how soon the guest went on, and who waited for the pCPU meanwhile.
 *
 * Cost: one walk over the polls, and one over all gaps where there is any.  Memory: a record per poll. */
#include "query/query_internal.h"

#include <stdlib.h>

#include "base/bisect.h"
#include "base/mem.h"

struct poll_span {
	int64_t from, to;           /* closed */
	int64_t pcpu;               /* of the host; -1: of another machine */
	size_t row;
	int64_t latency;            /* -1: not known */
};

struct poll_survey {
	const struct topo *topo;
	struct resolver r;
	struct poll_list *out;
	size_t row_cap;
	struct poll_span *span;          /* by vCPU, later by pCPU; by time */
	size_t spans, span_cap;
	struct map waited;          /* row << 32 | victim -> ns */
	int64_t from, to;
};

/* ---- Until it went on */

/* The moment from t on at which the thread of the vCPU was woken; INT64_MAX: not known. */
static int woken_at(struct poll_survey *y, struct who *host, int64_t t, int64_t *at)
{
	struct row_track *own = &resolver_own(&y->r, host)[OWN_STATUS];
	*at = INT64_MAX;
	for (bool slept = false; t <= history_end(y->topo->h); t = own->iv.end + 1) {
		int64_t status;
		if (track_at(&y->r, own, t, &status) < 0)
			return -1;
		enum thread_state state = status < 0 || status >= HISTORY_STATES ? THREAD_UNKNOWN
		                        : (enum thread_state)y->topo->thread_state[status];
		if (state == THREAD_UNKNOWN)
			return 0;
		if (slept) {
			*at = t;
			return 0;
		}
		slept = state == THREAD_BLOCKED;
	}
	return 0;
}

/* The first moment from t on at which the vCPU is in guest mode; -1: it sleeps again before, or nothing tells. */
static int entered_at(struct poll_survey *y, uint32_t vcpu, struct who *host, int64_t t, int64_t *at)
{
	const struct topo *topo = y->topo;
	*at = -1;
	for (int64_t status, sched; t <= history_end(topo->h); t = y->r.until + 1) {
		y->r.until = INT64_MAX;
		if (track_at(&y->r, &resolver_cpu(&y->r, vcpu)->status, t, &status) < 0 ||
		    track_at(&y->r, &resolver_own(&y->r, host)[OWN_STATUS], t, &sched) < 0)
			return -1;
		if (status < 0 || status >= HISTORY_STATES || sched < 0 || sched >= HISTORY_STATES)
			return 0;
		if (topo->vcpu_state[status] == VCPU_UNKNOWN || topo->thread_state[sched] == THREAD_BLOCKED)
			return 0;
		const bool in = topo->thread_state[sched] == THREAD_RUNNING;
		if (in && topo->vcpu_state[status] != VCPU_VMM) {
			*at = t;
			return 0;
		}
	}
	return 0;
}

static int latency_of(struct poll_survey *y, uint32_t vcpu, const struct interval *iv, enum poll_outcome outcome,
                      int64_t *ns)
{
	struct who *host;
	int64_t woken = iv->end + 1, at;
	*ns = -1;
	if (resolver_host(&y->r, vcpu, iv->start, &host) < 0 || !host)
		return host ? -1 : 0;
	if (outcome != POLL_WON && woken_at(y, host, iv->end + 1, &woken) < 0)
		return -1;
	if (woken > history_end(y->topo->h))
		return 0;
	if (entered_at(y, vcpu, host, woken, &at) < 0)
		return -1;
	*ns = at < 0 ? -1 : at - woken;
	return 0;
}

/* ---- Rows */

static size_t row_for(struct poll_survey *y, uint32_t vcpu, enum poll_outcome outcome)
{
	struct poll_list *l = y->out;
	size_t i = l->rows;
	while (i && l->row[i - 1].vcpu == vcpu) {
		if (l->row[--i].outcome == outcome)
			return i;
	}
	*ARRAY_PUSH(l->row, l->rows, y->row_cap) = (struct poll_row){ .vcpu = vcpu, .outcome = outcome };
	return l->rows - 1;
}

static int add_poll(struct poll_survey *y, uint32_t vcpu, const struct interval *iv)
{
	const struct topo_machine *m = &y->topo->machine[y->topo->cpu[vcpu].machine];
	struct poll_span s = { .pcpu = -1 };
	enum poll_outcome outcome = (enum poll_outcome)y->topo->poll_outcome[iv->value];
	s.from = iv->start > y->from ? iv->start : y->from;
	s.to = iv->end < y->to ? iv->end : y->to;
	s.row = row_for(y, vcpu, outcome);
	if (latency_of(y, vcpu, iv, outcome, &s.latency) < 0)
		return -1;
	if (m->parent >= 0 && y->topo->machine[m->parent].kind == MACHINE_HOST &&
	    track_at(&y->r, &resolver_cpu(&y->r, vcpu)->pcpu, iv->start, &s.pcpu) < 0)
		return -1;
	y->out->row[s.row].count++;
	y->out->row[s.row].total += s.to - s.from + 1;
	*ARRAY_PUSH(y->span, y->spans, y->span_cap) = s;
	return 0;
}

static int by_ns(const void *a, const void *b)
{
	const int64_t *x = a, *y = b;
	return (*x > *y) - (*x < *y);
}

static int64_t rank(const int64_t *ns, size_t n, size_t percent)
{
	return n ? ns[(n * percent + 99) / 100 - 1] : 0;
}

static void rank_latencies(struct poll_survey *y, size_t first_row, size_t first_span)
{
	int64_t *ns = mem_new(y->spans - first_span + 1, sizeof *ns);
	for (size_t i = first_row; i < y->out->rows; i++) {
		struct poll_row *row = &y->out->row[i];
		size_t n = 0;
		for (size_t k = first_span; k < y->spans; k++)
			if (y->span[k].row == i && y->span[k].latency >= 0)
				ns[n++] = y->span[k].latency;
		if (n)
			qsort(ns, n, sizeof *ns, by_ns);
		row->timed = n;
		row->p50 = rank(ns, n, 50);
		row->p99 = rank(ns, n, 99);
		row->max = rank(ns, n, 100);
	}
	free(ns);
}

static void add_untold(struct poll_survey *y, const struct interval *iv, bool *is)
{
	y->out->untold += !*is;
	y->out->untold_ns += (iv->end < y->to ? iv->end : y->to) - (iv->start > y->from ? iv->start : y->from) + 1;
	*is = true;
}

static int add_vcpu(struct poll_survey *y, uint32_t vcpu, struct error *err)
{
	struct history_cursor c;
	struct interval iv;
	uint32_t attr = y->topo->cpu[vcpu].polling;
	size_t row = y->out->rows, span = y->spans;
	int got = 1;
	bool untold = false;
	y->out->vcpus++;
	y->out->silent += attr == HISTORY_NONE;
	if (attr == HISTORY_NONE)
		return 0;
	if (history_range(&c, y->topo->h, attr, y->from, y->to, err) < 0)
		return -1;
	while (got > 0 && (got = history_range_next(&c, &iv, err)) > 0) {
		if (iv.value < 0 || iv.value >= HISTORY_STATES)
			continue;
		if (y->topo->poll_outcome[iv.value] == POLL_UNTOLD)
			add_untold(y, &iv, &untold);
		else if (add_poll(y, vcpu, &iv) < 0)
			got = -1;
	}
	rank_latencies(y, row, span);
	return got;
}

/* ---- Who waited meanwhile */

static int by_pcpu(const void *a, const void *b)
{
	const struct poll_span *x = a, *y = b;
	if (x->pcpu != y->pcpu)
		return x->pcpu < y->pcpu ? -1 : 1;
	return (x->from > y->from) - (x->from < y->from);
}

static int add_waited(void *arg, const struct gap_piece *p)
{
	struct poll_survey *y = arg;
	size_t at;
	if (!p || !p->of_machine || p->pcpu < 0 || (p->who.kind != FLOW_HYPERVISOR && p->who.kind != FLOW_PREEMPTING))
		return 0;
	const struct subject *s = &p->gap->subject;
	BISECT(at, y->spans, y->span[at].pcpu < p->pcpu || (y->span[at].pcpu == p->pcpu && y->span[at].to < p->start));
	for (; at < y->spans && y->span[at].pcpu == p->pcpu && y->span[at].from <= p->end; at++) {
		const struct poll_span *k = &y->span[at];
		const int64_t from = k->from > p->start ? k->from : p->start, to = k->to < p->end ? k->to : p->end;
		const uint64_t victim = (uint64_t)s->index << 1 | (s->kind == SUBJECT_THREAD);
		if (s->kind == SUBJECT_CPU && s->index == y->out->row[k->row].vcpu)
			continue;
		*map_put(&y->waited, (uint64_t)k->row << 34 | victim, NULL) += (uint64_t)(to - from + 1);
	}
	return 0;
}

static void sum_waited(struct poll_survey *y)
{
	uint64_t key, ns;
	for (size_t at = 0; map_each(&y->waited, &at, &key, &ns); ) {
		struct poll_row *row = &y->out->row[key >> 34];
		const uint64_t victim = key & ((UINT64_C(1) << 34) - 1);
		const struct subject s = { victim & 1 ? SUBJECT_THREAD : SUBJECT_CPU, (uint32_t)(victim >> 1) };
		row->kept += (int64_t)ns;
		if ((int64_t)ns < row->victim_ns || ((int64_t)ns == row->victim_ns && s.index > row->victim.index))
			continue;
		row->victim = s;
		row->victim_ns = (int64_t)ns;
	}
}

static int find_victims(struct poll_survey *y, struct error *err)
{
	static const struct progress quiet;
	if (!y->spans)
		return 0;
	qsort(y->span, y->spans, sizeof *y->span, by_pcpu);
	if (gap_each_piece(y->topo, y->from, y->to, add_waited, y, &quiet, err) < 0)
		return -1;
	sum_waited(y);
	return 0;
}

/* ---- Answer */

static int by_outcome(const void *a, const void *b)
{
	const struct poll_row *x = a, *y = b;
	if (x->vcpu != y->vcpu)
		return x->vcpu < y->vcpu ? -1 : 1;
	return (x->outcome > y->outcome) - (x->outcome < y->outcome);
}

bool vcpu_is_asked(const struct topo *topo, const struct subject *s, uint32_t vcpu)
{
	const uint32_t machine = topo->cpu[vcpu].machine;
	if (topo->machine[machine].kind != MACHINE_VM)
		return false;
	if (!s || (s->kind == SUBJECT_MACHINE && topo->machine[s->index].kind == MACHINE_HOST))
		return true;
	return s->kind == SUBJECT_CPU ? s->index == vcpu : s->kind == SUBJECT_MACHINE && s->index == machine;
}

int polls_of(const struct topo *topo, const struct subject *s, int64_t from, int64_t to, struct poll_list *out,
             struct error *err)
{
	struct poll_survey y = { .topo = topo, .out = out };
	int rc = 0;
	*out = (struct poll_list){ 0 };
	y.from = from > history_begin(topo->h) ? from : history_begin(topo->h);
	y.to = to < history_end(topo->h) ? to : history_end(topo->h);
	resolver_init(&y.r, topo, y.from, y.to, err);
	for (uint32_t i = 0; i < topo->cpus && rc == 0; i++)
		if (vcpu_is_asked(topo, s, i))
			rc = add_vcpu(&y, i, err);
	if (rc == 0)
		rc = find_victims(&y, err);
	if (out->rows)
		qsort(out->row, out->rows, sizeof *out->row, by_outcome);
	resolver_release(&y.r);
	map_release(&y.waited);
	free(y.span);
	if (rc < 0)
		polls_release(out);
	return rc;
}

void polls_release(struct poll_list *l)
{
	free(l->row);
	*l = (struct poll_list){ 0 };
}

int polled_time(const struct topo *topo, const struct subject *s, int64_t t0, int64_t t1,
                int64_t ns[POLL_OUTCOME_COUNT], bool *told, struct error *err)
{
	int64_t sums[HISTORY_STATES];
	*told = false;
	for (int i = 0; i < POLL_OUTCOME_COUNT; i++)
		ns[i] = 0;
	for (uint32_t i = 0; i < topo->cpus; i++) {
		if (!vcpu_is_asked(topo, s, i) || topo->cpu[i].polling == HISTORY_NONE)
			continue;
		if (history_sums(topo->h, topo->cpu[i].polling, t0, t1, sums, err) < 0)
			return -1;
		*told = true;
		for (int k = 0; k < HISTORY_STATES - 1; k++)
			ns[topo->poll_outcome[k]] += sums[k];
	}
	*told = *told && (ns[POLL_WON] || ns[POLL_LOST] || !ns[POLL_UNTOLD]);
	return 0;
}
