/* Fake machine for the tests of record/: /proc, /sys and /run below a temporary directory. record_tree.c replaces
 * mkdir() and rmdir() of the test program, so that they create and remove tracefs instances as the kernel does. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct record_tree { char root[64]; };

/* Creates the temporary directory, with /proc/meminfo; tree_end() removes it. */
void tree_begin(struct record_tree *t);
/* Calls tree_begin() and adds a TSC and tracefs (see tree_tracefs()). */
void tree_host(struct record_tree *t, unsigned pages);
void tree_end(struct record_tree *t);
/* Create files and a symbolic link below the root, with their directories. */
void tree_text(const struct record_tree *t, const char *path, const char *text);
void tree_bytes(const struct record_tree *t, const char *path, const void *data, size_t len);
void tree_link(const struct record_tree *t, const char *path, const char *target);
/* Returns the content of a file, which the caller frees; NULL: no such file. */
char *tree_read(const struct record_tree *t, const char *path);
/* Returns the number of entries of a directory, without hidden ones. */
size_t tree_count(const struct record_tree *t, const char *path);

/* Returns true if tracing is on in an instance of the machine in PREFIX. */
bool tree_is_tracing(const struct record_tree *t, const char *prefix);

/* Adds a QEMU process with this command line (NUL between arguments) and `vcpus` vCPU threads with the TIDs pid + 10,
 * pid + 11, ... */
void tree_vm(const struct record_tree *t, int pid, const char *cmdline, size_t len, unsigned vcpus);
/* Adds the debugfs directory of KVM for this process, with the TSC offset `offset` of each vCPU. */
void tree_debugfs(const struct record_tree *t, int pid, unsigned vcpus, int64_t offset);

/* Creates tracefs at PREFIX/sys/kernel/tracing, with `pages` pages for each of two CPUs in every instance. */
void tree_tracefs(const struct record_tree *t, const char *prefix, unsigned pages);
/* Creates tracefs for the guest script, with PREFIX as the script's root. PREFIX/machine.sh must be read first, and
 * PREFIX/bin must be the first directory in PATH. */
void tree_guest(const struct record_tree *t, const char *prefix, unsigned pages);
