/* Common code of the fuzz targets.
 *
 * A target consists of a file fuzz_NAME.c with LLVMFuzzerTestOneInput(), three lines in a part.mk (see
 * src/trace/part.mk), and a directory corpus-NAME with seeds and with every input that once failed.
 *
 * - `make check` replays the corpora.
 * - `make fuzz T=5m` runs libFuzzer for five minutes per target, `make fuzz T=1h TARGETS='ipc tracecmd'` for some
 *   targets.
 * - AFL++: build with CC=afl-clang-fast, then afl-fuzz -i tests/fuzz/corpus-NAME -o out -- tests/fuzz/fuzz_NAME @@ */
#pragma once

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Runs the target on the first MiB of the file. Returns an exit status, 0 or 1. */
int replay(const char *path);

/* Calls fn for each file below the source directory that matches. Returns 1 if a call returned 1 or if no file matches. */
int replay_all(const char *pattern, int (*fn)(const char *path));

/* Replays the given files, or else the corpus named after the program. */
int replay_main(int argc, char **argv);

/* Writes the files to a directory below $TMPDIR that exists until the process ends. A name may contain one subdirectory.
 * Files of earlier calls stay unless they are replaced. */
struct replay_file { const char *name; const uint8_t *data; size_t size; };
const char *replay_dir(const struct replay_file *file, size_t n);

/* Returns the path of an unlinked file with these bytes. The caller closes *fd. */
const char *replay_file(const uint8_t *data, size_t size, int *fd);
