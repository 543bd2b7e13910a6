/* The BPF source (private to live/). */
#pragma once

#include "base/base.h"
#include "live/collector.h"

struct bpf_source;

/* One pair of a period. */
struct bpf_pair { struct live_pair_key key; struct live_pair_value value; };

/* Loads and attaches the program. steal_clock: it reads this VM's steal clock. sibling: by CPU, 1 + the other CPU of
 * its core, or 0; NULL: no core has two CPUs. The kernel detaches it when the process
 * ends, however it ends. Returns NULL with *err. */
struct bpf_source *bpf_source_open(unsigned cpus, bool steal_clock, const u32 *sibling, struct error *err);
/* Returns true if this machine is a VM with a steal clock that BPF programs can read. */
bool bpf_source_has_steal_clock(void);
void bpf_source_close(struct bpf_source *b);
bool bpf_source_has_siblings(const struct bpf_source *b);  /* Returns true if shared time is counted. b may be NULL. */
/* Adds a thread as victim. Returns its slot, or -1 if there are too many. blocked: it is asleep now. A thread may be added
 * twice: then it has one slot, and is removed twice. */
int bpf_source_add(struct bpf_source *b, u32 tid, bool blocked);
void bpf_source_remove(struct bpf_source *b, int slot);
/* Returns the shared memory of a victim and of a CPU. */
struct live_victim *bpf_source_victim(struct bpf_source *b, unsigned slot);
struct live_cpu *bpf_source_cpu(struct bpf_source *b, unsigned cpu);
/* Creates a client's page, 0 .. LIVE_CLIENTS - 1. Returns a descriptor with which the page can be read, but not be
 * written, not even by this process; the caller closes it. -1: errno. */
int bpf_source_page(struct bpf_source *b, u32 client);
void bpf_source_page_close(struct bpf_source *b, u32 client);
/* Writes into a page; argument: enum page_action, client, entry, the action's arguments. */
void bpf_source_write_page(struct bpf_source *b, const u64 argument[8]);
/* Publishes the counters of a victim in an entry of a client's page, or no longer (client -1). Its own work is that of the
 * process tgid; of a PID namespace if space is not 0. */
void bpf_source_publish(struct bpf_source *b, int slot, int client, u32 entry, u32 tgid, u32 space);
/* Accounts the waits that go on up to now, and finds the added victims that run. */
void bpf_source_flush(struct bpf_source *b);
/* Accounts the waits that go on, and starts a new epoch. Returns the previous one: an index of live_cpu.run, whose entries
 * the caller clears after bpf_source_take(). */
unsigned bpf_source_next_epoch(struct bpf_source *b);
/* Returns the pairs of an epoch that has ended; the caller frees them. Waits until the last run that adds to it is over. */
struct bpf_pair *bpf_source_take(struct bpf_source *b, unsigned epoch, size_t *n);
/* Returns the time that the program took since the start by the kernel's statistics, ns, and the number of runs of the
 * switch program while they were on. */
bool bpf_source_cost(struct bpf_source *b, u64 *ns, u64 *runs);
/* Switches the kernel's statistics on or off; they cost time themselves. */
void bpf_source_measure(struct bpf_source *b, bool on);
