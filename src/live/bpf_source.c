/* Loads the BPF program that is compiled into stealscope, and reads its maps. */
#include "base/base.h"
#include "live/source.h"

#include <errno.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <bpf/btf.h>
#if defined __x86_64__
#include <asm/kvm_para.h>
#include <cpuid.h>
#endif

#include "base/mem.h"
#include "live/bpf_maps.h"
#include "live/collector_object.h"
#include "live/victims.h"

#define PROGRAMS 5
#define TIMER_PROGRAM 4  /* loaded if the steal clock is read */

static const char *const program_name[PROGRAMS] = { "on_switch", "on_wakeup", "on_wakeup_new", "on_migrate", "on_timer" };

struct bpf_source {
	struct bpf_object *object;
	struct bpf_link *link[PROGRAMS];
	int program[PROGRAMS], flush, write_page, pairs[2], pages, stats;
	unsigned cpus;
	bool steal_clock, has_siblings;
	struct live_victim *victim;
	char *cpu;
	size_t cpu_size, victims_bytes, cpus_bytes, table_bytes;
	volatile struct live_table *table;
	unsigned char used[LIVE_VICTIMS];  /* number of times that the victim was added */
	u32 tid[LIVE_VICTIMS];   /* of the used slots */
	u32 spaces;              /* victims with a PID namespace as their own work */
	bool has_new;            /* victims were added since the last flush */
};

/* Finds the distance of two per-CPU variables of the kernel. Returns false if the kernel does not describe them. */
static bool per_cpu_distance(const char *from, const char *to, int64_t *distance)
{
	struct btf *kernel = btf__load_vmlinux_btf();
	const int section = kernel ? btf__find_by_name_kind(kernel, ".data..percpu", BTF_KIND_DATASEC) : -1;
	const struct btf_type *t = section > 0 ? btf__type_by_id(kernel, (u32)section) : NULL;
	int64_t offset[2] = { -1, -1 };
	for (u32 i = 0; t && i < btf_vlen(t); i++) {
		const struct btf_var_secinfo *v = &btf_var_secinfos(t)[i];
		const struct btf_type *variable = btf__type_by_id(kernel, v->type);
		const char *name = variable ? btf__name_by_offset(kernel, variable->name_off) : NULL;
		if (name && strcmp(name, from) == 0)
			offset[0] = v->offset;
		if (name && strcmp(name, to) == 0)
			offset[1] = v->offset;
	}
	btf__free(kernel);
	*distance = offset[1] - offset[0];
	return offset[0] >= 0 && offset[1] >= 0;
}

static int load_programs(struct bpf_source *b, const u32 *sibling, struct error *err)
{
	bpf_quiet();
	b->object = bpf_object__open_mem(collector_object, sizeof collector_object, NULL);
	if (!b->object)
		return error_system(err, NULL, "BPF program");
	struct bpf_map *cpus = bpf_object__find_map_by_name(b->object, "cpus");
	bpf_map__set_max_entries(cpus, b->cpus);
	bpf_program__set_autoload(bpf_object__find_program_by_name(b->object, program_name[TIMER_PROGRAM]), b->steal_clock);
	struct live_constants constants = { b->steal_clock, b->has_siblings, 0 };
	int64_t distance;
	struct bpf_map *rodata = bpf_object__find_map_by_name(b->object, ".rodata");
	if (b->steal_clock && !per_cpu_distance("runqueues", "steal_time", &distance))
		return error_set(err, STATUS_SYSTEM, NULL, "the BPF program cannot find the steal clock");
	constants.steal_distance = b->steal_clock ? distance : 0;
	if (!rodata || bpf_map__set_initial_value(rodata, &constants, sizeof constants))
		return error_set(err, STATUS_SYSTEM, NULL, "the BPF program lacks its constants");
	if (bpf_load(b->object, err))
		return -1;
	for (int i = 0; i < PROGRAMS; i++)
		b->program[i] = bpf_program__fd(bpf_object__find_program_by_name(b->object, program_name[i]));
	b->flush = bpf_program__fd(bpf_object__find_program_by_name(b->object, "account_now"));
	b->write_page = bpf_program__fd(bpf_object__find_program_by_name(b->object, "write_page"));
	b->pairs[0] = bpf_object__find_map_fd_by_name(b->object, "pairs_even");
	b->pairs[1] = bpf_object__find_map_fd_by_name(b->object, "pairs_odd");
	b->pages = bpf_object__find_map_fd_by_name(b->object, "pages");
	b->cpu_size = (sizeof(struct live_cpu) + 7u) & ~(size_t)7;
	b->victim = bpf_map_memory(b->object, "victims", &b->victims_bytes);
	b->cpu = bpf_map_memory(b->object, "cpus", &b->cpus_bytes);
	b->table = bpf_map_memory(b->object, ".bss", &b->table_bytes);
	if (!b->victim || !b->cpu || !b->table)
		return error_system(err, NULL, "mapping the maps of the BPF program");
	for (unsigned i = 0; i < b->cpus && sibling; i++)
		bpf_source_cpu(b, i)->sibling = sibling[i];
	for (int i = 0; i < PROGRAMS; i++) {
		if (i == TIMER_PROGRAM && !b->steal_clock)
			continue;
		b->link[i] = bpf_program__attach(bpf_object__find_program_by_name(b->object, program_name[i]));
		if (!b->link[i])
			return error_system(err, BPF_REMEDY, "attaching the BPF program %s", program_name[i]);
	}
	return 0;
}

bool bpf_source_has_steal_clock(void)
{
#if defined __x86_64__
	unsigned a, r[3];
	int64_t distance;
	__cpuid(0x40000000, a, r[0], r[1], r[2]);
	if (!live_machine_is_guest() || memcmp(r, "KVMKVMKVM\0\0\0", sizeof r) != 0)
		return false;
	__cpuid(0x40000001, a, r[0], r[1], r[2]);
	return a >> KVM_FEATURE_STEAL_TIME & 1 && per_cpu_distance("runqueues", "steal_time", &distance);
#else
	return false;
#endif
}

struct bpf_source *bpf_source_open(unsigned cpus, bool steal_clock, const u32 *sibling, struct error *err)
{
	struct bpf_source *b = mem_new(1, sizeof *b);
	b->cpus = cpus;
	b->stats = -1;
	b->steal_clock = steal_clock;
	for (unsigned i = 0; i < cpus && sibling; i++)
		b->has_siblings = b->has_siblings || sibling[i];
	if (load_programs(b, sibling, err) == 0)
		return b;
	bpf_source_close(b);
	return NULL;
}

void bpf_source_close(struct bpf_source *b)
{
	if (!b)
		return;
	bpf_source_measure(b, false);
	for (int i = 0; i < PROGRAMS; i++)
		bpf_link__destroy(b->link[i]);
	if (b->victim)
		munmap(b->victim, b->victims_bytes);
	if (b->cpu)
		munmap(b->cpu, b->cpus_bytes);
	if (b->table)
		munmap((void *)b->table, b->table_bytes);
	bpf_object__close(b->object);
	free(b);
}

bool bpf_source_has_siblings(const struct bpf_source *b)
{
	return b && b->has_siblings;
}

/* ---- victims */

#define ENDED (UINT64_MAX << 32)  /* entry of the table of TIDs that is free again */

int bpf_source_add(struct bpf_source *b, u32 tid, bool blocked)
{
	struct timespec now;
	u32 at = (u32)(tid * LIVE_HASH_FACTOR) >> LIVE_HASH_SHIFT;
	int slot = 0, probe = 0;
	for (u32 i = 0; i < b->table->slots; i++)
		if (b->used[i] && b->victim[i].tid == tid) {
			b->used[i]++;
			return (int)i;
		}
	while (slot < LIVE_VICTIMS && b->used[slot])
		slot++;
	while (probe < LIVE_PROBES && b->table->tid[(at + (u32)probe) % LIVE_HASH] != 0 &&
	       b->table->tid[(at + (u32)probe) % LIVE_HASH] != ENDED)
		probe++;
	if (slot == LIVE_VICTIMS || probe == LIVE_PROBES)
		return -1;
	clock_gettime(CLOCK_MONOTONIC, &now);
	struct live_victim *v = &b->victim[slot];
	memset(v, 0, sizeof *v);
	v->tid = tid;
	v->cpu = LIVE_SAME_CPU;
	v->mark = ((u64)now.tv_sec * 1000000000u + (u64)now.tv_nsec) << LIVE_MARK_BITS |
	          (blocked ? LIVE_BLOCKED : LIVE_UNKNOWN);
	b->used[slot] = 1;
	b->has_new = true;
	if ((u32)slot >= b->table->slots)
		b->table->slots = (u32)slot + 1;
	b->tid[slot] = tid;
	b->table->filter[tid % LIVE_FILTER / 64] |= UINT64_C(1) << tid % 64;
	__atomic_store_n(&b->table->tid[(at + (u32)probe) % LIVE_HASH], (u64)tid << 32 | (u32)slot, __ATOMIC_RELEASE);
	return slot;
}

/* Frees a slot's entry. Ended entries that no search needs to pass are free as well, so that searches stay short. */
static void remove_tid(struct bpf_source *b, u32 slot)
{
	for (u32 i = 0; i < LIVE_HASH; i++) {
		if (!b->table->tid[i] || b->table->tid[i] == ENDED || (u32)b->table->tid[i] != slot)
			continue;
		b->table->tid[i] = ENDED;
		for (u32 k = i; b->table->tid[k] == ENDED && !b->table->tid[(k + 1) % LIVE_HASH]; k = (k - 1) % LIVE_HASH)
			b->table->tid[k] = 0;
	}
}

void bpf_source_remove(struct bpf_source *b, int slot)
{
	const u32 word = b->tid[slot] % LIVE_FILTER / 64, bit = b->tid[slot] % 64;
	bool shared = false;
	if (--b->used[slot])
		return;
	remove_tid(b, (u32)slot);
	for (int i = 0; i < LIVE_VICTIMS && !shared; i++)
		shared = i != slot && b->used[i] && b->tid[i] % LIVE_FILTER == b->tid[slot] % LIVE_FILTER;
	if (!shared)
		b->table->filter[word] &= ~(UINT64_C(1) << bit);
	__atomic_store_n(&b->victim[slot].mark, (u64)LIVE_BLOCKED, __ATOMIC_RELEASE);
}

struct live_victim *bpf_source_victim(struct bpf_source *b, unsigned slot)
{
	return &b->victim[slot];
}

struct live_cpu *bpf_source_cpu(struct bpf_source *b, unsigned cpu)
{
	return (struct live_cpu *)(void *)(b->cpu + cpu * b->cpu_size);
}

/* ---- pages */

int bpf_source_page(struct bpf_source *b, u32 client)
{
	LIBBPF_OPTS(bpf_map_create_opts, how, .map_flags = BPF_F_MMAPABLE);
	const int map = bpf_map_create(BPF_MAP_TYPE_ARRAY, "live_page", sizeof(u32), PUBLISHED_ENTRY_BYTES, PUBLISHED_ENTRIES,
	                               &how);
	if (map < 0 || (bpf_map_freeze(map) == 0 && bpf_map_update_elem(b->pages, &client, &map, BPF_ANY) == 0))
		return map;
	const int saved = errno;
	close(map);
	errno = saved;
	return -1;
}

void bpf_source_page_close(struct bpf_source *b, u32 client)
{
	bpf_map_delete_elem(b->pages, &client);
}

void bpf_source_write_page(struct bpf_source *b, const u64 argument[8])
{
	LIBBPF_OPTS(bpf_test_run_opts, o, .ctx_in = argument, .ctx_size_in = 8 * sizeof *argument);
	bpf_prog_test_run_opts(b->write_page, &o);
}

void bpf_source_publish(struct bpf_source *b, int slot, int client, u32 entry, u32 tgid, u32 space)
{
	struct live_victim *v = &b->victim[slot];
	b->spaces += (u32)(client >= 0 && space != 0) - (u32)(v->client != 0 && v->space != 0);
	b->table->spaces = b->spaces;
	__atomic_store_n(&v->client, 0, __ATOMIC_SEQ_CST);
	v->tgid = tgid;
	v->space = space;
	v->entry = entry;
	__atomic_store_n(&v->client, (u32)(client + 1), __ATOMIC_SEQ_CST);
}

/* ---- periods */

void bpf_source_flush(struct bpf_source *b)
{
	bool waits[1024] = { false };
	for (u32 i = 0; i < b->table->slots; i++) {
		const struct live_victim *v = &b->victim[i];
		const u32 state = __atomic_load_n(&v->mark, __ATOMIC_RELAXED) & (LIVE_STATES - 1);
		if (v->cpu >= b->cpus || v->cpu >= 1024)
			continue;
		const u32 sibling = bpf_source_cpu(b, v->cpu)->sibling;
		if (state == LIVE_WAITING || state == LIVE_THROTTLED)
			waits[v->cpu] = true;
		if (state == LIVE_RUNNING && sibling && sibling <= 1024)
			waits[sibling - 1] = true;
	}
	for (unsigned cpu = 0; cpu < b->cpus && cpu < 1024; cpu++) {
		LIBBPF_OPTS(bpf_test_run_opts, o, .flags = BPF_F_TEST_RUN_ON_CPU, .cpu = cpu);
		if (waits[cpu] || b->has_new)
			bpf_prog_test_run_opts(b->flush, &o);
	}
	b->has_new = false;
}

unsigned bpf_source_next_epoch(struct bpf_source *b)
{
	const unsigned epoch = b->table->epoch & 1;
	bpf_source_flush(b);
	__atomic_store_n(&b->table->epoch, b->table->epoch + 1, __ATOMIC_RELEASE);
	return epoch;
}

struct bpf_pair *bpf_source_take(struct bpf_source *b, unsigned epoch, size_t *n)
{
	bpf_grace();
	return bpf_take_map(b->pairs[epoch], sizeof(struct live_pair_key), sizeof(struct live_pair_value),
	                    sizeof(struct bpf_pair), n);
}

/* ---- cost */

bool bpf_source_cost(struct bpf_source *b, u64 *ns, u64 *runs)
{
	return bpf_cost(b->program, b->steal_clock ? PROGRAMS : TIMER_PROGRAM, ns, runs);
}

void bpf_source_measure(struct bpf_source *b, bool on)
{
	bpf_measure(&b->stats, on);
}
