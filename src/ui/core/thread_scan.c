/* Thread scan: collects in steps the properties of each thread that the row list needs, and sorts the rows. See
 * rows.h. */
#include "base/base.h"
#include "ui/core/rows.h"

/* a thread that ran or was runnable for less, and for less than 0.1 % of the trace, is idle, ns */
#define ACTIVE_MIN_NS 10000000
#define PLACEMENTS_MAX 64  /* intervals of a thread's CPU attribute that are scanned for its home vCPU */

void rows_scan_start(struct rows *r, int64_t from, int64_t to)
{
	r->scan.next = 0;
	r->scan.from = from;
	r->scan.to = to;
	if (r->catalog->threads == 0) {
		rows_sort(r, r->sort);
		rows_build(r);
	}
}

bool rows_scan_done(const struct rows *r)
{
	return r->scan.next == r->catalog->threads;
}

/* Finds the vCPU on which a guest thread was placed longest, among its first PLACEMENTS_MAX intervals. Returns 0, or -1. */
static int find_home(const struct catalog *catalog, const struct catalog_thread *thread, int32_t *home, struct error *err)
{
	const struct catalog_machine *m = &catalog->machine[thread->machine];
	*home = -1;
	if (m->kind != MACHINE_VM || m->cpus == 0 || thread->cpu == HISTORY_NONE)
		return 0;
	int64_t worst = 0, ns[PLACEMENTS_MAX] = { 0 };
	int32_t cpu[PLACEMENTS_MAX];
	int n = 0, found;
	struct history_cursor cursor;
	struct interval iv;
	if (history_range(&cursor, catalog->h, thread->cpu, history_begin(catalog->h), history_end(catalog->h), err) < 0)
		return -1;
	for (int i = 0; i < PLACEMENTS_MAX && (found = history_range_next(&cursor, &iv, err)) != 0; i++) {
		if (found < 0)
			return -1;
		if (iv.value < 0 || iv.value > UINT32_MAX)
			continue;
		int32_t c = catalog_find_cpu(catalog, thread->machine, (unsigned)iv.value);
		int k = 0;
		while (k < n && cpu[k] != c)
			k++;
		if (k == n)
			cpu[n++] = c;
		ns[k] += iv.end - iv.start;
		if (c >= 0 && ns[k] >= worst) {
			worst = ns[k];
			*home = c;
		}
	}
	return 0;
}

static int scan_thread(struct rows *r, uint32_t t, struct error *err)
{
	const struct catalog *catalog = r->catalog;
	const struct catalog_thread *thread = &catalog->thread[t];
	struct thread_info *info = &r->info[t];
	struct target s = { TARGET_THREAD, t };
	int64_t first, last;
	if (thread->status != HISTORY_NONE && demand_of(catalog, &s, r->scan.from, r->scan.to, &info->demand, err) < 0)
		return -1;
	if (info->name)
		return 0;
	char text[512];
	catalog_target_text(catalog, &s, text, sizeof text);
	char machine[512];
	size_t n = strlen(text_escape(machine, sizeof machine, catalog->machine[thread->machine].name));
	const int alive = catalog_lifetime(catalog, &s, &first, &last, err);
	if (alive < 0)
		return -1;
	info->first = alive ? first : INT64_MAX;
	info->last = alive ? last : INT64_MIN;
	info->name = mem_dup(strncmp(text, machine, n) == 0 && text[n] == '/' ? text + n + 1 : text);
	if (thread->status != HISTORY_NONE) {
		int64_t sums[HISTORY_STATES];
		if (history_sums(catalog->h, thread->status, history_begin(catalog->h), history_end(catalog->h), sums, err) < 0)
			return -1;
		int64_t busy = 0, duration = history_end(catalog->h) - history_begin(catalog->h);
		unsigned states = history_state_count(catalog->h, thread->status);
		for (unsigned i = 0; i < states && i < HISTORY_STATES; i++) {
			const char *name = history_state_name(catalog->h, thread->status, i);
			bool is_inactive = strcmp(name, "BLOCKED") == 0 || strcmp(name, "UNKNOWN") == 0;
			busy += is_inactive ? 0 : sums[i];
		}
		int64_t min_busy = duration / 1000 < ACTIVE_MIN_NS ? duration / 1000 : ACTIVE_MIN_NS;
		info->active = thread->tid != 0 && busy > 0 && busy >= min_busy;
	}
	return find_home(catalog, thread, &info->home, err);
}

int rows_scan_step(struct rows *r, int64_t budget_ns, struct error *err)
{
	int64_t until = now_ns() + budget_ns;
	while (r->scan.next < r->catalog->threads) {
		if (scan_thread(r, r->scan.next, err) < 0)
			return -1;
		r->scan.next++;
		if (r->scan.next % 16 == 0 && now_ns() > until)
			break;
	}
	if (r->scan.next < r->catalog->threads)
		return 0;
	rows_sort(r, r->sort);
	rows_build(r);
	return 1;
}

static uint32_t sort_group_of(const struct rows *r, uint32_t t)
{
	int32_t home = r->info[t].home;
	return home >= 0 ? (uint32_t)home : r->catalog->cpus + r->catalog->thread[t].machine;
}

/* Sort key of a thread or machine. The keys are in one array, because lookups in the catalog during each comparison
 * would miss the cache. */
struct sort_key {
	uint32_t group, thread;
	int64_t lost;
	const char *name;
	int32_t tid;
};

static int compare_threads(const void *pa, const void *pb)
{
	const struct sort_key *a = pa, *b = pb;
	if (a->group != b->group)
		return a->group < b->group ? -1 : 1;
	if (a->lost != b->lost)
		return a->lost > b->lost ? -1 : 1;
	int d = a->name && b->name ? strcasecmp(a->name, b->name) : 0;
	if (d)
		return d;
	return (a->tid > b->tid) - (a->tid < b->tid);
}

static struct sort_key sort_key_of(const struct rows *r, uint32_t t)
{
	const struct thread_info *info = &r->info[t];
	bool by_loss = r->sort == SORT_LOST || r->sort == SORT_WINDOW;
	const char *space = info->name ? strchr(info->name, ' ') : NULL;
	return (struct sort_key){ sort_group_of(r, t), t, by_loss ? info->demand.lost : 0,
		r->sort == SORT_NAME && info->name ? space ? space : info->name : NULL, r->catalog->thread[t].tid };
}

/* Returns the time that a machine lost: for a VM the sum of its vCPUs, for others the sum of their threads. */
static int64_t machine_loss(const struct rows *r, uint32_t m)
{
	const struct catalog_machine *machine = &r->catalog->machine[m];
	struct target s = { TARGET_MACHINE, m };
	struct demand d = { 0 };
	if (machine->kind == MACHINE_VM && machine->cpus > 0 &&
	    demand_of(r->catalog, &s, r->scan.from, r->scan.to, &d, NULL) == 0)
		return d.lost;
	for (uint32_t t = machine->thread; t < machine->thread + machine->threads; t++)
		d.lost += r->info[t].demand.lost;
	return d.lost;
}

ORDER_BY(compare_machines, struct sort_key, RISING(group) FALLING(lost) RISING(thread))

/* Sorts VMs, then containers, then the host; each group by lost time or in catalog order. */
static void sort_machines(struct rows *r)
{
	static const uint32_t rank[] = { [MACHINE_VM] = 0, [MACHINE_CONTAINER] = 1, [MACHINE_HOST] = 2 };
	struct sort_key *key = mem_new(r->catalog->machines, sizeof *key);
	bool by_loss = rows_scan_done(r) && (r->sort == SORT_LOST || r->sort == SORT_WINDOW);
	for (uint32_t m = 0; m < r->catalog->machines; m++)
		key[m] = (struct sort_key){ .group = rank[r->catalog->machine[m].kind], .thread = m,
			.lost = by_loss ? machine_loss(r, m) : 0 };
	ARRAY_SORT(key, r->catalog->machines, compare_machines);
	for (uint32_t m = 0; m < r->catalog->machines; m++)
		r->machine_order[m] = key[m].thread;
	free(key);
}

void rows_sort(struct rows *r, enum row_sort sort)
{
	const struct catalog *catalog = r->catalog;
	uint32_t groups = catalog->cpus + catalog->machines;
	struct sort_key *key = mem_new(catalog->threads, sizeof *key);
	r->sort = sort;
	for (uint32_t t = 0; t < catalog->threads; t++)
		key[t] = sort_key_of(r, t);
	ARRAY_SORT(key, catalog->threads, compare_threads);
	memset(r->group_count, 0, groups * sizeof *r->group_count);
	for (uint32_t i = 0; i < catalog->threads; i++) {
		uint32_t b = key[i].group;
		r->thread_order[i] = key[i].thread;
		if (r->group_count[b]++ == 0)
			r->group_first[b] = i;
	}
	free(key);
	sort_machines(r);
}

struct row_id rows_of_victim(const struct rows *r, const struct target *target)
{
	const struct catalog *catalog = r->catalog;
	const uint32_t machine = target->kind == TARGET_CPU ? catalog->cpu[target->index].machine : target->index;
	struct row_id worst = { target->kind == TARGET_CPU ? ROW_CPU : ROW_MACHINE, target->index };
	int64_t largest = 0;
	if (target->kind == TARGET_THREAD)
		return (struct row_id){ ROW_THREAD, target->index };
	const struct catalog_machine *m = &catalog->machine[machine];
	for (uint32_t t = m->thread; t < m->thread + m->threads; t++)
		if (catalog->thread[t].tid != 0 && r->info[t].demand.lost > largest) {
			largest = r->info[t].demand.lost;
			worst = (struct row_id){ ROW_THREAD, t };
		}
	if (worst.kind == ROW_MACHINE && m->cpus)
		worst = (struct row_id){ ROW_CPU, m->cpu };
	return worst;
}
