/* Fuzz target: any bytes as a history file.
 *
 *   libFuzzer    clang -fsanitize=fuzzer,address,undefined -DFUZZ_LIBFUZZER ...   ./fuzz_history tests/fuzz/corpus-history
 *   AFL++        CC=afl-clang-fast;   afl-fuzz -i tests/fuzz/corpus-history -o out -- ./fuzz_history @@
 *   replay       ./fuzz_history FILE...             (without files: the corpus, as a test of make check)
 *
 * The checksums would stop nearly every mutation at the door, so the target also tries the file with its
 * checksums made right, which is where the code behind them is reached. */
#include <glob.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../history_walk.h"

#define LONGEST (1u << 20)  /* bytes of an input */
#define BUDGET 300          /* questions of each kind */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void ask(const uint8_t *data, size_t size)
{
	char path[64];
	struct error err = ERROR_INIT;
	int fd = memfd_create("fuzz_history", MFD_CLOEXEC);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	struct history *h = history_open(path, &err);
	if (h)
		history_walk(h, BUDGET, &err);
	else if (!err.text[0])
		abort();
	history_close(h);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size > LONGEST)
		return 0;
	uint8_t *copy = malloc(size + 1);
	if (!copy)
		return 0;
	memcpy(copy, data, size);
	ask(copy, size);
	history_repair_sums(copy, size);
	ask(copy, size);
	free(copy);
	return 0;
}

#ifndef FUZZ_LIBFUZZER
static int replay(const char *path)
{
	static uint8_t data[LONGEST];
	FILE *f = fopen(path, "rb");
	if (!f) {
		perror(path);
		return 1;
	}
	size_t n = fread(data, 1, sizeof data, f);
	fclose(f);
	LLVMFuzzerTestOneInput(data, n);
	return 0;
}

int main(int argc, char **argv)
{
	int failed = 0;
	for (int i = 1; i < argc; i++)
		failed |= replay(argv[i]);
	if (argc > 1)
		return failed;
	const char *srcdir = getenv("srcdir");
	char pattern[4096];
	glob_t g;
	snprintf(pattern, sizeof pattern, "%s/tests/fuzz/corpus-history/*", srcdir ? srcdir : ".");
	if (glob(pattern, 0, NULL, &g))
		return 1;
	for (size_t i = 0; i < g.gl_pathc; i++)
		failed |= replay(g.gl_pathv[i]);
	globfree(&g);
	return failed;
}
#endif
