/* What the fuzz targets share.
 *
 * A target is a file fuzz_NAME.c with a function LLVMFuzzerTestOneInput(), three lines in a part.mk (see src/trace/part.mk),
 * and a folder corpus-NAME: seeds, and every input that once was too much.  `make check` replays them; `make fuzz T=5m`
 * lets libFuzzer try for five minutes each, `make fuzz T=1h TARGETS='told dat'` these.  For AFL++ build with
 * CC=afl-clang-fast: afl-fuzz -i tests/fuzz/corpus-NAME -o out -- tests/fuzz/fuzz_NAME @@ */
#ifndef STEALSCOPE_TESTS_FUZZ_REPLAY_H
#define STEALSCOPE_TESTS_FUZZ_REPLAY_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Gives the file's first MiB to the target.  0 or 1, like a program. */
int replay(const char *path);

/* Calls fn for each file below the source folder that matches; 1 when a call gave 1, or nothing matches. */
int replay_all(const char *pattern, int (*fn)(const char *path));

/* The files named, else the corpus of the program's name. */
int replay_main(int argc, char **argv);

/* The files, in a folder below $TMPDIR for as long as this process runs.  A name may be in one folder below; those of an
 * earlier call that are not among these stay. */
struct replay_file { const char *name; const uint8_t *data; size_t size; };
const char *replay_folder(const struct replay_file *file, size_t n);

/* The bytes as a file without a name, for those who want a path; *fd is to be closed. */
const char *replay_file(const uint8_t *data, size_t size, int *fd);

#endif
