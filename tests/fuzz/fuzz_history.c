/* Fuzz target: input as a history file.
 *
 *   libFuzzer    clang -fsanitize=fuzzer,address,undefined -DFUZZ_LIBFUZZER ...   ./fuzz_history tests/fuzz/corpus-history
 *   AFL++        CC=afl-clang-fast;   afl-fuzz -i tests/fuzz/corpus-history -o out -- ./fuzz_history @@
 *   replay       ./fuzz_history FILE...             (without files: the corpus, as a test of make check)
 *   make corpus  ./fuzz_history --make tests/fuzz/corpus-history      (after a change of the format)
 *
 * Checksums reject nearly every mutation, so the target also tries the file with corrected checksums, to reach the code
 * behind them. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../history_walk.h"
#include "fuzz_replay.h"

#define MAX_INPUT (1u << 20)  /* maximum size of an input, bytes */
#define MAX_QUERIES 300       /* number of queries of each kind */

static void query_history(const uint8_t *data, size_t size)
{
	char path[64];
	struct error err = ERROR_INIT;
	int fd = memfd_create("fuzz_history", MFD_CLOEXEC);
	if (fd < 0 || write(fd, data, size) != (ssize_t)size)
		abort();
	snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
	struct history *h = history_open(path, &err);
	if (h)
		history_walk(h, MAX_QUERIES, &err);
	else if (!err.text[0])
		abort();
	history_close(h);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size > MAX_INPUT)
		return 0;
	uint8_t *copy = malloc(size + 1);
	if (!copy)
		return 0;
	memcpy(copy, data, size);
	query_history(copy, size);
	history_repair_sums(copy, size);
	query_history(copy, size);
	free(copy);
	return 0;
}

#ifndef FUZZ_LIBFUZZER
/* Replays a corpus file, which must be valid: a file that is rejected immediately is useless for fuzzing. */
static int replay_valid(const char *path)
{
	struct error err = ERROR_INIT;
	struct history *h = history_open(path, &err);
	if (h && !history_verify(h, &err))
		history_walk(h, MAX_QUERIES, &err);
	history_close(h);
	if (err.status)
		fprintf(stderr, "%s\n", err.text);
	return err.status || replay(path);
}

/* Queries the k-th value of an attribute, and its duration. */
static int64_t any_state(unsigned k) { return k % 7 == 6 ? HISTORY_NULL : k * 5 % 6; }
static int64_t two_states(unsigned k) { return k & 1 ? 30 : 0; }
static int64_t wide(unsigned k) { return (int64_t)(0x9E3779B97F4A7C15u * (k + 1)) >> 1; }
static int64_t few_wide(unsigned k) { return wide(k % 3); }
static int64_t references(unsigned k) { return k % 11 ? history_ref(k % 2, k % 5 * 1000) : HISTORY_NULL; }
static int64_t near_constant(unsigned k) { return 1000 + k % 7; }
static int64_t with_outliers(unsigned k) { return k % 13 == 12 ? INT64_C(1) << 40 : 900 + k % 100; }

static const struct {
	const char *name;
	enum history_type type;
	unsigned changes;
	int64_t (*value)(unsigned k), (*duration)(unsigned k);
	struct history_options options;
} members[] = {
	{ "empty", HISTORY_STATE, 0, any_state, near_constant, { .block = 64 } },
	{ "small", HISTORY_STATE, 20, any_state, near_constant, { .block = 64, .chunk = 4 } },
	{ "dictionary", HISTORY_INT, 40, few_wide, near_constant, { .block = 64 } },
	{ "wide", HISTORY_INT, 20, wide, wide, { .block = 64 } },
	{ "references", HISTORY_REF, 40, references, near_constant, { .block = 64, .chunk = 8 } },
	{ "exceptions", HISTORY_STATE, 100, two_states, with_outliers, { .block = 64, .chunk = 50 } },
	{ "whole", HISTORY_STATE, 100, any_state, with_outliers, { .block = 128, .chunk = 32 } },
	{ "echo", HISTORY_STATE, 200, any_state, with_outliers, { .block = 128, .chunk = 4 } },
};

static int make_corpus_file(const char *dir, size_t m)
{
	static const char *const names[] = { "0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "10", "11", "12", "13", "14", "15",
		"16", "17", "18", "19", "20", "21", "22", "23", "24", "25", "26", "27", "28", "29", "30" };
	struct error err = ERROR_INIT;
	char path[4096];
	snprintf(path, sizeof path, "%s/%s", dir, members[m].name);
	struct history_builder *b = history_create(path, &members[m].options, &err);
	if (!b)
		return fprintf(stderr, "%s\n", err.text), 1;
	unsigned set = history_state_set(b, "states", names, sizeof names / sizeof *names);
	uint32_t a = history_attribute(b, "/a/value", members[m].type, set, &err);
	uint32_t name = history_attribute(b, "/a/name", HISTORY_STRING, 0, &err);
	int64_t t = 1000;
	for (unsigned k = 0; k < members[m].changes; k++) {
		history_set(b, t, a, members[m].value(k), &err);
		if (k % 5 == 0)
			history_set_string(b, t, name, k % 10 ? "odd" : "even", &err);
		t += 1 + (members[m].duration(k) & ((INT64_C(1) << 42) - 1));
	}
	history_meta_set(b, "key", "value", 5);
	if (history_finish(b, 0, t, &err))
		return fprintf(stderr, "%s\n", err.text), 1;
	return 0;
}

int main(int argc, char **argv)
{
	int failed = 0;
	if (argc == 3 && !strcmp(argv[1], "--make")) {
		for (size_t m = 0; m < sizeof members / sizeof *members; m++)
			failed |= make_corpus_file(argv[2], m);
		return failed;
	}
	for (int i = 1; i < argc; i++)
		failed |= replay(argv[i]);
	return argc > 1 ? failed : replay_all("tests/fuzz/corpus-history/*", replay_valid);
}
#endif
