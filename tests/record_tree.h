/* A made-up machine for the tests of record/: /proc, /sys and /run below a temporary folder, where tracefs makes instances
 * as the kernel does (this program's mkdir() and rmdir() see to that, also for libtracefs). */
#ifndef STEALSCOPE_TESTS_RECORD_TREE_H
#define STEALSCOPE_TESTS_RECORD_TREE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct record_tree { char root[64]; };

void tree_begin(struct record_tree *t);
/* The same, and a host on it that has a TSC and tracefs, as tree_tracefs() makes that. */
void tree_host(struct record_tree *t, unsigned pages);
void tree_end(struct record_tree *t);
void tree_text(const struct record_tree *t, const char *path, const char *text);
void tree_bytes(const struct record_tree *t, const char *path, const void *data, size_t len);
void tree_link(const struct record_tree *t, const char *path, const char *target);
char *tree_read(const struct record_tree *t, const char *path);  /* NULL: it is not there; the caller frees */
size_t tree_count(const struct record_tree *t, const char *path);  /* names in a folder */

bool tree_is_tracing(const struct record_tree *t, const char *prefix);  /* Is an instance of that machine at work? */

/* A process with that command line (NUL between arguments), QEMU's, and `vcpus` vCPU threads from pid + 10 on. */
void tree_vm(const struct record_tree *t, int pid, const char *cmdline, size_t len, unsigned vcpus);
/* KVM's folder in debugfs for it. */
void tree_debugfs(const struct record_tree *t, int pid, unsigned vcpus, int64_t offset);

/* tracefs at PREFIX/sys/kernel/tracing: `pages` pages for each of two CPUs in every instance. */
void tree_tracefs(const struct record_tree *t, const char *prefix, unsigned pages);
/* The same for the script of a guest, with PREFIX as its root: PREFIX/machine.sh, read first, sees to that, and PREFIX/bin,
 * first in its PATH. */
void tree_guest(const struct record_tree *t, const char *prefix, unsigned pages);

#endif
