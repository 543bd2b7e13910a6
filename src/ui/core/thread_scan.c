/* What the list of rows must know of every thread, collected in steps; and sorting by it.  See rows.h. */
#include "ui/core/rows.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/clock.h"
#include "base/text.h"

#define BUSY_NS 10000000  /* a thread that wanted a CPU that long, or 0.1 % of the trace, is not idle */
#define PLACES 64  /* changes of CPU looked at to find where a thread lives */

void rows_survey_start(struct rows *r, int64_t from, int64_t to)
{
	r->survey.next = 0;
	r->survey.from = from;
	r->survey.to = to;
	if (r->topo->threads == 0) {
		rows_sort(r, r->sort);
		rows_build(r);
	}
}

bool rows_survey_done(const struct rows *r)
{
	return r->survey.next == r->topo->threads;
}

/* The vCPU on which a guest's thread was longest, among its first PLACES placements. */
static int find_home(const struct topo *topo, const struct topo_thread *thread, int32_t *home, struct error *err)
{
	const struct topo_machine *m = &topo->machine[thread->machine];
	*home = -1;
	if (m->kind != MACHINE_VM || m->cpus == 0 || thread->cpu == HISTORY_NONE)
		return 0;
	int64_t best = 0, ns[PLACES] = { 0 };
	int32_t cpu[PLACES];
	int n = 0, found;
	struct history_cursor cursor;
	struct interval iv;
	if (history_range(&cursor, topo->h, thread->cpu, history_begin(topo->h), history_end(topo->h), err) < 0)
		return -1;
	for (int i = 0; i < PLACES && (found = history_range_next(&cursor, &iv, err)) != 0; i++) {
		if (found < 0)
			return -1;
		if (iv.value < 0 || iv.value > UINT32_MAX)
			continue;
		int32_t c = topo_find_cpu(topo, thread->machine, (unsigned)iv.value);
		int k = 0;
		while (k < n && cpu[k] != c)
			k++;
		if (k == n)
			cpu[n++] = c;
		ns[k] += iv.end - iv.start;
		if (c >= 0 && ns[k] >= best) {
			best = ns[k];
			*home = c;
		}
	}
	return 0;
}

static int survey_one(struct rows *r, uint32_t t, struct error *err)
{
	const struct topo *topo = r->topo;
	const struct topo_thread *thread = &topo->thread[t];
	struct thread_info *info = &r->info[t];
	struct subject s = { SUBJECT_THREAD, t };
	if (thread->status != HISTORY_NONE && demand_of(topo, &s, r->survey.from, r->survey.to, &info->demand, err) < 0)
		return -1;
	if (info->name)
		return 0;
	char text[512];
	topo_subject_text(topo, &s, text, sizeof text);
	char machine[512];
	size_t n = strlen(text_escape(machine, sizeof machine, topo->machine[thread->machine].name));
	info->name = mem_dup(strncmp(text, machine, n) == 0 && text[n] == '/' ? text + n + 1 : text);
	if (thread->status != HISTORY_NONE) {
		int64_t sums[HISTORY_STATES];
		if (history_sums(topo->h, thread->status, history_begin(topo->h), history_end(topo->h), sums, err) < 0)
			return -1;
		int64_t wanted = 0, span = history_end(topo->h) - history_begin(topo->h);
		unsigned states = history_state_count(topo->h, thread->status);
		for (unsigned i = 0; i < states && i < HISTORY_STATES; i++) {
			const char *name = history_state_name(topo->h, thread->status, i);
			bool rest = strcmp(name, "BLOCKED") == 0 || strcmp(name, "UNKNOWN") == 0;
			wanted += rest ? 0 : sums[i];
		}
		int64_t least = span / 1000 < BUSY_NS ? span / 1000 : BUSY_NS;
		info->active = thread->tid != 0 && wanted > 0 && wanted >= least;
	}
	return find_home(topo, thread, &info->home, err);
}

int rows_survey_step(struct rows *r, int64_t budget_ns, struct error *err)
{
	int64_t until = now_ns() + budget_ns;
	while (r->survey.next < r->topo->threads) {
		if (survey_one(r, r->survey.next, err) < 0)
			return -1;
		r->survey.next++;
		if (r->survey.next % 16 == 0 && now_ns() > until)
			break;
	}
	if (r->survey.next < r->topo->threads)
		return 0;
	rows_sort(r, r->sort);
	rows_build(r);
	return 1;
}

static uint32_t bucket(const struct rows *r, uint32_t t)
{
	int32_t home = r->info[t].home;
	return home >= 0 ? (uint32_t)home : r->topo->cpus + r->topo->thread[t].machine;
}

/* What a thread is sorted by, side by side: comparing through the topology would miss the cache each time. */
struct sort_key {
	uint32_t bucket, thread;
	int64_t lost;
	const char *name;
	int32_t tid;
};

static int compare(const void *pa, const void *pb)
{
	const struct sort_key *a = pa, *b = pb;
	if (a->bucket != b->bucket)
		return a->bucket < b->bucket ? -1 : 1;
	if (a->lost != b->lost)
		return a->lost > b->lost ? -1 : 1;
	int d = a->name && b->name ? strcasecmp(a->name, b->name) : 0;
	if (d)
		return d;
	return (a->tid > b->tid) - (a->tid < b->tid);
}

static struct sort_key key_of(const struct rows *r, uint32_t t)
{
	const struct thread_info *info = &r->info[t];
	bool by_loss = r->sort == SORT_LOST || r->sort == SORT_WINDOW;
	const char *space = info->name ? strchr(info->name, ' ') : NULL;
	return (struct sort_key){ bucket(r, t), t, by_loss ? info->demand.lost : 0,
		r->sort == SORT_NAME && info->name ? space ? space : info->name : NULL, r->topo->thread[t].tid };
}

/* What a machine lost: a VM with its vCPUs, others with their threads. */
static int64_t machine_loss(const struct rows *r, uint32_t m)
{
	const struct topo_machine *machine = &r->topo->machine[m];
	struct subject s = { SUBJECT_MACHINE, m };
	struct demand d = { 0 };
	if (machine->kind == MACHINE_VM && machine->cpus > 0 &&
	    demand_of(r->topo, &s, r->survey.from, r->survey.to, &d, NULL) == 0)
		return d.lost;
	for (uint32_t t = machine->thread; t < machine->thread + machine->threads; t++)
		d.lost += r->info[t].demand.lost;
	return d.lost;
}

static int compare_machines(const void *pa, const void *pb)
{
	const struct sort_key *a = pa, *b = pb;
	if (a->bucket != b->bucket)
		return a->bucket < b->bucket ? -1 : 1;
	if (a->lost != b->lost)
		return a->lost > b->lost ? -1 : 1;
	return (a->thread > b->thread) - (a->thread < b->thread);
}

/* VMs, containers, the host; by what they lost, or by name as the topology has them. */
static void sort_machines(struct rows *r)
{
	static const uint32_t rank[] = { [MACHINE_VM] = 0, [MACHINE_CONTAINER] = 1, [MACHINE_HOST] = 2 };
	struct sort_key *key = mem_new(r->topo->machines, sizeof *key);
	bool by_loss = rows_survey_done(r) && (r->sort == SORT_LOST || r->sort == SORT_WINDOW);
	for (uint32_t m = 0; m < r->topo->machines; m++)
		key[m] = (struct sort_key){ .bucket = rank[r->topo->machine[m].kind], .thread = m,
			.lost = by_loss ? machine_loss(r, m) : 0 };
	if (r->topo->machines)
		qsort(key, r->topo->machines, sizeof *key, compare_machines);
	for (uint32_t m = 0; m < r->topo->machines; m++)
		r->machines[m] = key[m].thread;
	free(key);
}

void rows_sort(struct rows *r, enum row_sort sort)
{
	const struct topo *topo = r->topo;
	uint32_t buckets = topo->cpus + topo->machines;
	struct sort_key *key = mem_new(topo->threads, sizeof *key);
	r->sort = sort;
	for (uint32_t t = 0; t < topo->threads; t++)
		key[t] = key_of(r, t);
	if (topo->threads)
		qsort(key, topo->threads, sizeof *key, compare);
	memset(r->count, 0, buckets * sizeof *r->count);
	for (uint32_t i = 0; i < topo->threads; i++) {
		uint32_t b = key[i].bucket;
		r->order[i] = key[i].thread;
		if (r->count[b]++ == 0)
			r->first[b] = i;
	}
	free(key);
	sort_machines(r);
}

static struct row_id worst_thread(const struct rows *r, bool host, int64_t *most)
{
	struct row_id best = { ROW_THREAD, 0 };
	for (uint32_t t = 0; t < r->topo->threads; t++) {
		const struct topo_thread *thread = &r->topo->thread[t];
		bool is_host = r->topo->machine[thread->machine].kind == MACHINE_HOST;
		if (is_host == host && thread->tid != 0 && r->info[t].demand.lost > *most) {
			*most = r->info[t].demand.lost;
			best.index = t;
		}
	}
	return best;
}

static struct row_id worst_vcpu(const struct rows *r, int64_t *most)
{
	struct row_id best = { ROW_CPU, 0 };
	for (uint32_t c = 0; c < r->topo->cpus; c++) {
		struct subject s = { SUBJECT_CPU, c };
		int64_t ns = 0;
		if (!row_is_pcpu(r->topo, (struct row_id){ ROW_CPU, c }) && r->topo->cpu[c].status != HISTORY_NONE &&
		    steal_time(r->topo, &s, r->survey.from, r->survey.to, &ns, NULL) == 0 && ns > *most) {
			*most = ns;
			best.index = c;
		}
	}
	return best;
}

/* The thread that lost most; guests before the host; where no thread is known, the vCPU that lost most. */
struct row_id rows_worst(const struct rows *r)
{
	int64_t most = 0;
	struct row_id best = worst_thread(r, false, &most);
	if (most == 0)
		best = worst_vcpu(r, &most);
	if (most == 0)
		best = worst_thread(r, true, &most);
	return most > 0 || r->len == 0 ? best : r->row[0].id;
}
