/* What the fuzz targets share: an input from a file instead of from a fuzzer. */
#ifndef STEALSCOPE_TESTS_FUZZ_REPLAY_H
#define STEALSCOPE_TESTS_FUZZ_REPLAY_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Gives the file's first MiB to the target.  0 or 1, like a program. */
int replay(const char *path);

/* Calls fn for each file below the source folder that matches; 1 when a call gave 1, or nothing matches. */
int replay_all(const char *pattern, int (*fn)(const char *path));

#endif
