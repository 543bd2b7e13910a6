/* Loading BPF programs and reading their maps (private to live/). */
#pragma once

#include "base/base.h"

#define BPF_REMEDY "BPF needs root, and Linux 5.12 or later with BTF in /sys/kernel/btf/vmlinux"

struct bpf_object;
void bpf_quiet(void);  /* libbpf prints nothing from now on */
int bpf_load(struct bpf_object *o, struct error *err);
/* Maps the memory of the last map with this text in its name. NULL: errno. */
void *bpf_map_memory(struct bpf_object *o, const char *name, size_t *bytes);
/* Returns after all runs of BPF programs that go on now. */
void bpf_grace(void);
/* Takes all entries of a hash map. Returns an array of elements of `stride` bytes, key first and value last, which the
 * caller frees; *n: their number. */
void *bpf_take_map(int map, size_t key, size_t value, size_t stride, size_t *n);
/* Sums the time of programs by the kernel's statistics, ns; *runs: of the first one. */
bool bpf_cost(const int *program, int n, uint64_t *ns, uint64_t *runs);
/* Switches the kernel's statistics on or off. *stats: -1: off. */
void bpf_measure(int *stats, bool on);
