/* Halt polling: its success rate, the time until the guest continued, and the threads that waited for the polling pCPU.
 *
 * Cost: one walk over the polls, and one over all gaps if there are polls. Memory: a record per poll. */
#include "base/base.h"
#include "query/query_internal.h"

#include "base/bisect.h"

struct poll {
	int64_t from, to;           /* ns, closed */
	int64_t pcpu;               /* host pCPU that polled; -1: a CPU of an outer guest (nested VM) */
	size_t row;
	int64_t latency;            /* ns from the end of the poll to the next VM entry; -1: unknown */
};

struct poll_survey {
	const struct catalog *catalog;
	struct resolver r;
	struct poll_list *out;
	size_t row_cap;
	struct poll *poll;          /* sorted by vCPU, later by pCPU; then by time */
	size_t polls_len, polls_cap;
	struct map wait_ns;          /* (row << 34 | victim) -> ns */
	int64_t from, to;
};

/* ---- Time to the next VM entry */

/* Finds the first ns at or after t at which the vCPU's thread was woken; INT64_MAX: unknown. */
static int find_wakeup(struct poll_survey *y, struct thread_ref *host, int64_t t, int64_t *at)
{
	struct row_track *track = &thread_tracks(&y->r, host)[TRACK_STATUS];
	*at = INT64_MAX;
	for (bool slept = false; t <= history_last(y->catalog->h); t = track->iv.end + 1) {
		int64_t status;
		if (track_at(&y->r, track, t, &status) < 0)
			return -1;
		enum thread_state state = status < 0 || status >= HISTORY_STATES ? THREAD_UNKNOWN
		                        : (enum thread_state)y->catalog->thread_state[status];
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

/* Finds the first ns at or after t at which the vCPU is in guest mode; -1: it blocks before that, or unknown. */
static int find_vm_entry(struct poll_survey *y, uint32_t vcpu, struct thread_ref *host, int64_t t, int64_t *at)
{
	const struct catalog *catalog = y->catalog;
	*at = -1;
	for (int64_t status, sched; t <= history_last(catalog->h); t = y->r.until + 1) {
		y->r.until = INT64_MAX;
		if (track_at(&y->r, &resolver_cpu(&y->r, vcpu)->status, t, &status) < 0 ||
		    track_at(&y->r, &thread_tracks(&y->r, host)[TRACK_STATUS], t, &sched) < 0)
			return -1;
		if (status < 0 || status >= HISTORY_STATES || sched < 0 || sched >= HISTORY_STATES)
			return 0;
		if (catalog->vcpu_state[status] == VCPU_UNKNOWN || catalog->thread_state[sched] == THREAD_BLOCKED)
			return 0;
		const bool in = catalog->thread_state[sched] == THREAD_RUNNING;
		if (in && catalog->vcpu_state[status] != VCPU_VMM) {
			*at = t;
			return 0;
		}
	}
	return 0;
}

static int poll_latency(struct poll_survey *y, uint32_t vcpu, const struct interval *iv, enum poll_outcome outcome,
                        int64_t *ns)
{
	struct thread_ref *host;
	int64_t woken = iv->end + 1, at;
	*ns = -1;
	if (resolver_vcpu_thread(&y->r, vcpu, iv->start, &host) < 0 || !host)
		return host ? -1 : 0;
	if (outcome != POLL_SUCCEEDED && find_wakeup(y, host, iv->end + 1, &woken) < 0)
		return -1;
	if (woken > history_last(y->catalog->h))
		return 0;
	if (find_vm_entry(y, vcpu, host, woken, &at) < 0)
		return -1;
	*ns = at < 0 ? -1 : at - woken;
	return 0;
}

/* ---- Rows */

static size_t poll_row_for(struct poll_survey *y, uint32_t vcpu, enum poll_outcome outcome)
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

static int survey_add_poll(struct poll_survey *y, uint32_t vcpu, const struct interval *iv)
{
	const struct catalog_machine *m = &y->catalog->machine[y->catalog->cpu[vcpu].machine];
	struct poll s = { .pcpu = -1 };
	enum poll_outcome outcome = (enum poll_outcome)y->catalog->poll_outcome[iv->value];
	s.from = iv->start > y->from ? iv->start : y->from;
	s.to = iv->end < y->to ? iv->end : y->to;
	s.row = poll_row_for(y, vcpu, outcome);
	if (poll_latency(y, vcpu, iv, outcome, &s.latency) < 0)
		return -1;
	if (m->parent >= 0 && y->catalog->machine[m->parent].kind == MACHINE_HOST &&
	    track_at(&y->r, &resolver_cpu(&y->r, vcpu)->pcpu, iv->start, &s.pcpu) < 0)
		return -1;
	y->out->row[s.row].count++;
	y->out->row[s.row].total += s.to - s.from + 1;
	*ARRAY_PUSH(y->poll, y->polls_len, y->polls_cap) = s;
	return 0;
}

static int64_t percentile(const int64_t *ns, size_t n, size_t percent)
{
	return n ? ns[percentile_index(n, percent)] : 0;
}

static void row_set_percentiles(struct poll_survey *y, size_t first_row, size_t first_poll)
{
	int64_t *ns = mem_new(y->polls_len - first_poll + 1, sizeof *ns);
	for (size_t i = first_row; i < y->out->rows; i++) {
		struct poll_row *row = &y->out->row[i];
		size_t n = 0;
		for (size_t k = first_poll; k < y->polls_len; k++)
			if (y->poll[k].row == i && y->poll[k].latency >= 0)
				ns[n++] = y->poll[k].latency;
		ARRAY_SORT(ns, n, order_int64);
		row->timed = n;
		row->p50 = percentile(ns, n, 50);
		row->p99 = percentile(ns, n, 99);
		row->max = percentile(ns, n, 100);
	}
	free(ns);
}

static void survey_add_unknown(struct poll_survey *y, const struct interval *iv, bool *is)
{
	y->out->unknown_vcpus += !*is;
	y->out->unknown_ns += (iv->end < y->to ? iv->end : y->to) - (iv->start > y->from ? iv->start : y->from) + 1;
	*is = true;
}

static int survey_add_vcpu(struct poll_survey *y, uint32_t vcpu, struct error *err)
{
	struct history_cursor c;
	struct interval iv;
	uint32_t attr = y->catalog->cpu[vcpu].polling;
	size_t row = y->out->rows, poll = y->polls_len;
	int got = 1;
	bool is_unknown = false;
	y->out->vcpus++;
	y->out->silent += attr == HISTORY_NONE;
	if (attr == HISTORY_NONE)
		return 0;
	if (history_range(&c, y->catalog->h, attr, y->from, y->to, err) < 0)
		return -1;
	while (got > 0 && (got = history_range_next(&c, &iv, err)) > 0) {
		if (iv.value < 0 || iv.value >= HISTORY_STATES)
			continue;
		if (y->catalog->poll_outcome[iv.value] == POLL_UNKNOWN)
			survey_add_unknown(y, &iv, &is_unknown);
		else if (survey_add_poll(y, vcpu, &iv) < 0)
			got = -1;
	}
	row_set_percentiles(y, row, poll);
	return got;
}

/* ---- Threads that waited for the polling pCPU */

ORDER_BY(compare_by_pcpu, struct poll, RISING(pcpu) RISING(from))

static int survey_add_wait(void *arg, const struct gap_interval *p)
{
	struct poll_survey *y = arg;
	size_t at;
	if (!p || !p->of_machine || p->pcpu < 0 || (p->actor.kind != FLOW_HYPERVISOR && p->actor.kind != FLOW_PREEMPTING))
		return 0;
	const struct target *target = &p->gap->target;
	BISECT(at, y->polls_len, y->poll[at].pcpu < p->pcpu || (y->poll[at].pcpu == p->pcpu && y->poll[at].to < p->start));
	for (; at < y->polls_len && y->poll[at].pcpu == p->pcpu && y->poll[at].from <= p->end; at++) {
		const struct poll *k = &y->poll[at];
		const int64_t from = k->from > p->start ? k->from : p->start, to = k->to < p->end ? k->to : p->end;
		const uint64_t victim = (uint64_t)target->index << 1 | (target->kind == TARGET_THREAD);
		if (target->kind == TARGET_CPU && target->index == y->out->row[k->row].vcpu)
			continue;
		*map_put(&y->wait_ns, (uint64_t)k->row << 34 | victim, NULL) += (uint64_t)(to - from + 1);
	}
	return 0;
}

static void survey_sum_waits(struct poll_survey *y)
{
	uint64_t key, ns;
	for (size_t at = 0; map_each(&y->wait_ns, &at, &key, &ns); ) {
		struct poll_row *row = &y->out->row[key >> 34];
		const uint64_t victim = key & ((UINT64_C(1) << 34) - 1);
		const struct target s = { victim & 1 ? TARGET_THREAD : TARGET_CPU, (uint32_t)(victim >> 1) };
		row->others_ns += (int64_t)ns;
		if ((int64_t)ns < row->victim_ns || ((int64_t)ns == row->victim_ns && s.index > row->victim.index))
			continue;
		row->victim = s;
		row->victim_ns = (int64_t)ns;
	}
}

static int survey_find_victims(struct poll_survey *y, struct error *err)
{
	static const struct progress no_progress;
	if (!y->polls_len)
		return 0;
	qsort(y->poll, y->polls_len, sizeof *y->poll, compare_by_pcpu);
	if (gap_each_interval(y->catalog, y->from, y->to, survey_add_wait, y, &no_progress, err) < 0)
		return -1;
	survey_sum_waits(y);
	return 0;
}

/* ---- Answer */

ORDER_BY(compare_rows, struct poll_row, RISING(vcpu) RISING(outcome))

bool vcpu_is_in_target(const struct catalog *catalog, const struct target *target, uint32_t vcpu)
{
	const uint32_t machine = catalog->cpu[vcpu].machine;
	if (catalog->machine[machine].kind != MACHINE_VM)
		return false;
	if (!target || (target->kind == TARGET_MACHINE && catalog->machine[target->index].kind == MACHINE_HOST))
		return true;
	return target->kind == TARGET_CPU ? target->index == vcpu : target->kind == TARGET_MACHINE && target->index == machine;
}

int polls_of(const struct catalog *catalog, const struct target *target, int64_t from, int64_t to, struct poll_list *out,
             struct error *err)
{
	struct poll_survey y = { .catalog = catalog, .out = out };
	int rc = 0;
	*out = (struct poll_list){ 0 };
	y.from = from > history_begin(catalog->h) ? from : history_begin(catalog->h);
	y.to = to < history_end(catalog->h) ? to : history_end(catalog->h);
	resolver_init(&y.r, catalog, y.from, y.to, err);
	for (uint32_t i = 0; i < catalog->cpus && rc == 0; i++)
		if (vcpu_is_in_target(catalog, target, i))
			rc = survey_add_vcpu(&y, i, err);
	if (rc == 0)
		rc = survey_find_victims(&y, err);
	ARRAY_SORT(out->row, out->rows, compare_rows);
	resolver_release(&y.r);
	map_release(&y.wait_ns);
	free(y.poll);
	if (rc < 0)
		polls_release(out);
	return rc;
}

void polls_release(struct poll_list *l)
{
	free(l->row);
	*l = (struct poll_list){ 0 };
}

int polled_time(const struct catalog *catalog, const struct target *target, int64_t t0, int64_t t1,
                int64_t ns[POLL_OUTCOME_COUNT], bool *is_recorded, struct error *err)
{
	int64_t sums[HISTORY_STATES];
	*is_recorded = false;
	for (int i = 0; i < POLL_OUTCOME_COUNT; i++)
		ns[i] = 0;
	for (uint32_t i = 0; i < catalog->cpus; i++) {
		if (!vcpu_is_in_target(catalog, target, i) || catalog->cpu[i].polling == HISTORY_NONE)
			continue;
		if (history_sums(catalog->h, catalog->cpu[i].polling, t0, t1, sums, err) < 0)
			return -1;
		*is_recorded = true;
		for (int k = 0; k < HISTORY_STATES - 1; k++)
			ns[catalog->poll_outcome[k]] += sums[k];
	}
	*is_recorded = *is_recorded && (ns[POLL_SUCCEEDED] || ns[POLL_FAILED] || !ns[POLL_UNKNOWN]);
	return 0;
}
