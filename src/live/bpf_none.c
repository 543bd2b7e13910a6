/* Stubs for builds without libbpf or clang: the source cannot be opened. */
#include "live/live.h"
#include "live/collection.h"
#include "live/machine_source.h"
#include "live/source.h"

#include <stddef.h>

bool bpf_source_has_steal_clock(void) { return false; }

struct bpf_source *bpf_source_open(unsigned cpus, bool steal_clock, const u32 *sibling, struct error *err)
{
	(void)cpus, (void)steal_clock, (void)sibling;
	error_set(err, STATUS_SYSTEM, "install libbpf and clang and build stealscope again",
	          "this stealscope was built without libbpf or clang");
	return NULL;
}

void bpf_source_close(struct bpf_source *b) { (void)b; }
bool bpf_source_has_siblings(const struct bpf_source *b) { (void)b; return false; }
int bpf_source_add(struct bpf_source *b, u32 tid, bool blocked) { (void)b, (void)tid, (void)blocked; return -1; }
void bpf_source_remove(struct bpf_source *b, int slot) { (void)b, (void)slot; }
int bpf_source_page(struct bpf_source *b, u32 client) { (void)b, (void)client; return -1; }
void bpf_source_page_close(struct bpf_source *b, u32 client) { (void)b, (void)client; }
void bpf_source_write_page(struct bpf_source *b, const u64 argument[8]) { (void)b, (void)argument; }

void bpf_source_publish(struct bpf_source *b, int slot, int client, u32 entry, u32 tgid, u32 space)
{
	(void)b, (void)slot, (void)client, (void)entry, (void)tgid, (void)space;
}

struct live_victim *bpf_source_victim(struct bpf_source *b, unsigned slot) { (void)b, (void)slot; return NULL; }
struct live_cpu *bpf_source_cpu(struct bpf_source *b, unsigned cpu) { (void)b, (void)cpu; return NULL; }
void bpf_source_flush(struct bpf_source *b) { (void)b; }

unsigned bpf_source_next_epoch(struct bpf_source *b) { (void)b; return 0; }

struct bpf_pair *bpf_source_take(struct bpf_source *b, unsigned epoch, size_t *n)
{
	(void)b, (void)epoch;
	*n = 0;
	return NULL;
}

struct machine_source *machine_source_open(unsigned cpus, u32 root, struct error *err)
{
	(void)root;
	return (struct machine_source *)(void *)bpf_source_open(cpus, false, NULL, err);
}

void machine_source_close(struct machine_source *m) { (void)m; }
void machine_source_add(struct machine_source *m, u32 tid) { (void)m, (void)tid; }
void machine_source_remove(struct machine_source *m, u32 tid) { (void)m, (void)tid; }

const struct live_source_ops thread_source = { 0 };
const struct live_source_ops machine_ops = { 0 };

bool bpf_source_cost(struct bpf_source *b, u64 *ns, u64 *runs) { (void)b, (void)ns, (void)runs; return false; }
void bpf_source_measure(struct bpf_source *b, bool on) { (void)b, (void)on; }

const struct live_counter live_hardware_counters[2] = { { 0, 0 }, { 0, 0 } };

struct counter_program *counter_program_open(const struct live_counter counter[2], struct error *err)
{
	(void)counter;
	error_set(err, STATUS_SYSTEM, "install libbpf and clang and build stealscope again",
	          "this stealscope was built without libbpf or clang");
	return NULL;
}

void counter_program_close(struct counter_program *c) { (void)c; }

struct throttle_program *throttle_program_open(struct error *err)
{
	error_set(err, STATUS_SYSTEM, NULL, "this stealscope was built without libbpf or clang");
	return NULL;
}

void throttle_program_close(struct throttle_program *p) { (void)p; }
