#include "live/bpf_maps.h"

#include <errno.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/membarrier.h>

#define GRACE_US 20000  /* longer than a run of the program; used where membarrier(2) is not available */
#define BATCH 1024

static int ignore_message(enum libbpf_print_level level, const char *format, va_list ap)
{
	(void)level, (void)format, (void)ap;
	return 0;
}

void bpf_quiet(void)
{
	libbpf_set_print(ignore_message);
	libbpf_set_strict_mode(LIBBPF_STRICT_ALL);
}

int bpf_load(struct bpf_object *o, struct error *err)
{
	const int rc = bpf_object__load(o);
	if (rc == 0)
		return 0;
	if (access("/sys/kernel/btf/vmlinux", R_OK))
		return error_set(err, STATUS_SYSTEM, BPF_REMEDY, "this kernel has no BTF (/sys/kernel/btf/vmlinux)");
	errno = -rc;
	return error_system(err, BPF_REMEDY, "loading the BPF program");
}

void *bpf_map_memory(struct bpf_object *o, const char *name, size_t *bytes)
{
	struct bpf_map *map = NULL, *m;
	bpf_object__for_each_map(m, o)
		if (strstr(bpf_map__name(m), name))
			map = m;
	if (!map)
		return NULL;
	const size_t page = (size_t)sysconf(_SC_PAGESIZE), size = (bpf_map__value_size(map) + 7u) & ~(size_t)7;
	*bytes = (size * bpf_map__max_entries(map) + page - 1) / page * page;
	void *p = mmap(NULL, *bytes, PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);
	return p == MAP_FAILED ? NULL : p;
}

void bpf_grace(void)
{
	if (syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0))
		usleep(GRACE_US);
}

void *bpf_take_map(int map, size_t key, size_t value, size_t stride, size_t *n)
{
	char *all = NULL, *keys = mem_new(BATCH, key), *values = mem_new(BATCH, value);
	uint64_t from[2] = { 0 }, next[2] = { 0 };  /* of the batch; a hash map uses 4 bytes */
	bool is_first = true;
	uint32_t count;
	int rc;
	*n = 0;
	do {
		count = BATCH;
		rc = bpf_map_lookup_and_delete_batch(map, is_first ? NULL : from, next, keys, values, &count, NULL);
		if (rc && errno != ENOENT)
			break;
		all = mem_resize(all, *n + count + 1, stride);
		for (uint32_t i = 0; i < count; i++, (*n)++) {
			memcpy(all + *n * stride, keys + i * key, key);
			memcpy(all + (*n + 1) * stride - value, values + i * value, value);
		}
		memcpy(from, next, sizeof from);
		is_first = false;
	} while (!rc);
	free(keys);
	free(values);
	return all;
}

bool bpf_cost(const int *program, int n, uint64_t *ns, uint64_t *runs)
{
	*ns = *runs = 0;
	for (int i = 0; i < n; i++) {
		struct bpf_prog_info info = { 0 };
		uint32_t size = sizeof info;
		if (bpf_obj_get_info_by_fd(program[i], &info, &size))
			return false;
		*ns += info.run_time_ns;
		if (i == 0)
			*runs = info.run_cnt;
	}
	return true;
}

void bpf_measure(int *stats, bool on)
{
	if (on && *stats < 0)
		*stats = bpf_enable_stats(BPF_STATS_RUN_TIME);
	if (!on && *stats >= 0) {
		close(*stats);
		*stats = -1;
	}
}
