/* Loads the BPF program for all threads (machine.bpf.c), and reads its maps. */
#include "live/machine_source.h"

#include <errno.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "live/bpf_maps.h"
#include "live/machine_object.h"

#define LIST_BYTES (64 * 1024)
#define FRESH_NS 50000  /* sleep before a list: the clock of our run queue is then as old as this list */

enum { ON_SWITCH, ON_MIGRATE, ON_FORK, PROGRAMS };
static const char *const program_name[PROGRAMS] = { "on_switch", "on_migrate", "on_fork" };

struct machine_source {
	struct bpf_object *object;
	struct bpf_link *link[PROGRAMS], *list;
	int program[PROGRAMS], rows[2], ended[2], pairs[2], keys, stats;
	bool marks;
	volatile struct machine_control *control;
	size_t control_bytes;
	struct machine_period sums;      /* taken since the last period; no tasks */
	struct map row_at, ended_at, pair_at;  /* their keys -> index */
	size_t rows_cap, endeds_cap, pairs_cap;
	bool fills;                      /* the tables may be full before a period's end */
};

static int attach(struct machine_source *m, struct error *err)
{
	for (int i = 0; i < PROGRAMS; i++) {
		if (i == ON_FORK && !m->marks)
			continue;
		m->link[i] = bpf_program__attach(bpf_object__find_program_by_name(m->object, program_name[i]));
		if (!m->link[i])
			return error_system(err, BPF_REMEDY, "attaching the BPF program %s", program_name[i]);
	}
	m->list = bpf_program__attach(bpf_object__find_program_by_name(m->object, "list_tasks"));
	return m->list ? 0 : error_system(err, BPF_REMEDY, "attaching the BPF program that lists tasks");
}

static int load(struct machine_source *m, unsigned cpus, struct error *err)
{
	static const char *const map[] = { "rows_even", "rows_odd", "ended_even", "ended_odd", "pairs_even", "pairs_odd",
		                               "keys" };
	int *const fd[] = { &m->rows[0], &m->rows[1], &m->ended[0], &m->ended[1], &m->pairs[0], &m->pairs[1], &m->keys };
	bpf_quiet();
	m->object = bpf_object__open_mem(machine_object, sizeof machine_object, NULL);
	if (!m->object)
		return error_system(err, NULL, "BPF program");
	bpf_map__set_max_entries(bpf_object__find_map_by_name(m->object, "cpus"), cpus);
	bpf_program__set_autoload(bpf_object__find_program_by_name(m->object, program_name[ON_FORK]), m->marks);
	if (bpf_load(m->object, err))
		return -1;
	for (size_t i = 0; i < sizeof map / sizeof *map; i++)
		*fd[i] = bpf_object__find_map_fd_by_name(m->object, map[i]);
	for (int i = 0; i < PROGRAMS; i++)
		m->program[i] = bpf_program__fd(bpf_object__find_program_by_name(m->object, program_name[i]));
	m->control = bpf_map_memory(m->object, ".bss", &m->control_bytes);
	return m->control ? 0 : error_system(err, NULL, "mapping the maps of the BPF program");
}

struct machine_source *machine_source_open(unsigned cpus, u32 root, struct error *err)
{
	struct machine_source *m = mem_new(1, sizeof *m);
	m->stats = -1;
	m->marks = root != 0;
	m->fills = true;  /* until the first period shows it */
	if (load(m, cpus, err) == 0) {
		m->control->root = root;
		if (attach(m, err) == 0)
			return m;
	}
	machine_source_close(m);
	return NULL;
}

void machine_source_close(struct machine_source *m)
{
	if (!m)
		return;
	machine_source_measure(m, false);
	bpf_link__destroy(m->list);
	for (int i = 0; i < PROGRAMS; i++)
		bpf_link__destroy(m->link[i]);
	if (m->control)
		munmap((void *)(uintptr_t)m->control, m->control_bytes);
	bpf_object__close(m->object);
	machine_period_release(&m->sums);
	map_release(&m->row_at);
	map_release(&m->ended_at);
	map_release(&m->pair_at);
	free(m);
}

/* Runs the program on each task. Appends what it prints to *task; task NULL: it prints nothing. */
static void run_list(struct machine_source *m, struct machine_task **task, size_t *tasks)
{
	const struct timespec fresh = { .tv_nsec = FRESH_NS };
	size_t have = 0, cap = 0;
	char *bytes = NULL;
	nanosleep(&fresh, NULL);
	m->control->lists = task != NULL;
	const int fd = bpf_iter_create(bpf_link__fd(m->list));
	ssize_t n = 1;
	while (fd >= 0 && n > 0) {
		if (cap - have < LIST_BYTES)
			bytes = mem_resize(bytes, cap = 2 * cap + LIST_BYTES, 1);
		n = read(fd, bytes + have, cap - have);
		have += n > 0 ? (size_t)n : 0;
		if (n < 0 && (errno == EAGAIN || errno == EINTR))
			n = 1;
	}
	if (fd >= 0)
		close(fd);
	if (!task) {
		free(bytes);
		return;
	}
	*task = (struct machine_task *)(void *)bytes;
	*tasks = have / sizeof **task;
}

void machine_source_add(struct machine_source *m, u32 tid)
{
	const u32 key = CULPRIT_VICTIM + tid;
	if (bpf_map_update_elem(m->keys, &tid, &key, BPF_NOEXIST) == 0)
		m->control->keys++;
}

void machine_source_remove(struct machine_source *m, u32 tid)
{
	if (bpf_map_delete_elem(m->keys, &tid) == 0)
		m->control->keys--;
}

static void add_row(struct machine_source *m, u32 key, const struct machine_row *r)
{
	bool is_new;
	uint64_t *at = map_put(&m->row_at, key, &is_new);
	if (is_new) {
		*at = m->sums.rows;
		struct machine_period_row *to = ARRAY_PUSH(m->sums.row, m->sums.rows, m->rows_cap);
		to->key = key;
		to->value = *r;
		return;
	}
	struct machine_row *to = &m->sums.row[*at].value;
	to->throttled += r->throttled;
	to->waits += r->waits;
	to->lost += r->lost;
	for (int i = 0; i < MACHINE_BINS; i++)
		to->bin[i] += r->bin[i];
	if (r->longest > to->longest) {
		to->longest = r->longest;
		to->longest_culprit = r->longest_culprit;
	}
}

static void add_ended(struct machine_source *m, u32 key, const struct machine_ended *e)
{
	bool is_new;
	uint64_t *at = map_put(&m->ended_at, key, &is_new);
	if (is_new) {
		*at = m->sums.endeds;
		struct machine_period_ended *to = ARRAY_PUSH(m->sums.ended, m->sums.endeds, m->endeds_cap);
		to->key = key;
		to->value = *e;
	} else {
		m->sums.ended[*at].value.ran += e->ran;
	}
}

static void add_pair(struct machine_source *m, const struct live_pair_key *key, u64 ns)
{
	bool is_new;
	uint64_t *at = map_put(&m->pair_at, (uint64_t)key->victim << 32 | key->culprit, &is_new);
	if (is_new) {
		*at = m->sums.pairs;
		*ARRAY_PUSH(m->sums.pair, m->sums.pairs, m->pairs_cap) = (struct machine_period_pair){ *key, 0 };
	}
	m->sums.pair[*at].ns += ns;
}

/* Begins new tables for the tasks that the next list visits. */
static void change_tables(struct machine_source *m)
{
	__atomic_store_n(&m->control->epoch, m->control->epoch + 1, __ATOMIC_RELEASE);
}

/* Adds the sums of the kernel's earlier tables to m->sums, after a list. */
static void take_tables(struct machine_source *m)
{
	const unsigned epoch = ~m->control->epoch & 1;
	struct machine_period p = { 0 };
	bpf_grace();
	p.row = bpf_take_map(m->rows[epoch], sizeof(u32), sizeof(struct machine_row), sizeof *p.row, &p.rows);
	p.ended = bpf_take_map(m->ended[epoch], sizeof(u32), sizeof(struct machine_ended), sizeof *p.ended, &p.endeds);
	p.pair = bpf_take_map(m->pairs[epoch], sizeof(struct live_pair_key), sizeof(u64), sizeof *p.pair, &p.pairs);
	for (size_t i = 0; i < p.rows; i++)
		add_row(m, p.row[i].key, &p.row[i].value);
	for (size_t i = 0; i < p.endeds; i++)
		add_ended(m, p.ended[i].key, &p.ended[i].value);
	for (size_t i = 0; i < p.pairs; i++)
		add_pair(m, &p.pair[i].key, p.pair[i].ns);
	m->fills = p.rows > MACHINE_ROWS / 16 || p.endeds > MACHINE_ROWS / 16 || p.pairs > LIVE_PAIRS / 16;
	machine_period_release(&p);
}

void machine_source_flush(struct machine_source *m)
{
	const bool fills = m->fills;
	if (fills)
		change_tables(m);
	run_list(m, NULL, NULL);
	if (fills)
		take_tables(m);
}

void machine_source_take(struct machine_source *m, struct machine_period *p)
{
	struct machine_task *task = NULL;
	size_t tasks = 0;
	change_tables(m);
	run_list(m, &task, &tasks);
	const int64_t end = now_ns();
	take_tables(m);
	*p = m->sums;
	p->end = end;
	p->task = task;
	p->tasks = tasks;
	m->sums = (struct machine_period){ 0 };
	m->rows_cap = m->endeds_cap = m->pairs_cap = 0;
	struct map *const map[] = { &m->row_at, &m->ended_at, &m->pair_at };
	for (size_t i = 0; i < sizeof map / sizeof *map; i++) {
		map_release(map[i]);
		*map[i] = (struct map)MAP_INIT;
	}
}

void machine_period_release(struct machine_period *p)
{
	free(p->task);
	free(p->row);
	free(p->ended);
	free(p->pair);
}

bool machine_source_cost(struct machine_source *m, u64 *ns, u64 *runs)
{
	return bpf_cost(m->program, m->marks ? PROGRAMS : ON_FORK, ns, runs);
}

void machine_source_measure(struct machine_source *m, bool on)
{
	bpf_measure(&m->stats, on);
}
