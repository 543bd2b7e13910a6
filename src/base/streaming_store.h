/* Streaming stores: records that one thread writes once and another reads once.
 *
 * Writing a cache line that another core has read means fetching it back first. If the cores share no cache, that costs
 * as much as memory (160 ns instead of 26), delays later writes, and makes a queue more expensive for both threads than
 * the work in it. Non-temporal stores bypass the caches where the processor supports them. They write word by word: a
 * load that spans several pending stores waits for all of them. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define STREAMING_INLINE inline __attribute__((always_inline))

#ifdef __clang__
#define UNROLLED _Pragma("clang loop unroll(full)")
#else
#define UNROLLED _Pragma("GCC unroll 16")
#endif

/* Writes one aligned word. away: another thread reads it; otherwise this thread reads it soon, and the word is cached. */
static STREAMING_INLINE void store_word_streaming(void *to, uint64_t word, bool away)
{
#if defined __SSE2__ && defined __x86_64__
	if (away) {
		_mm_stream_si64(to, (long long)word);
		return;
	}
#endif
	(void)away;
	memcpy(to, &word, sizeof word);
}

/* Writes a record of whole words. Both pointers are aligned. */
static STREAMING_INLINE void store_streaming(void *to, const void *from, size_t bytes, bool away)
{
	UNROLLED for (size_t i = 0; i < bytes / sizeof(uint64_t); i++) {
		uint64_t word;
		memcpy(&word, (const char *)from + i * sizeof word, sizeof word);
		__asm__("" : "+r"(word));  /* prevents the compiler from merging two words */
		store_word_streaming((char *)to + i * sizeof word, word, away);
	}
}

/* Store fence, required before another thread is notified */
static STREAMING_INLINE void streaming_fence(void)
{
#if defined __SSE2__ && defined __x86_64__
	_mm_sfence();
#endif
}
