/* Records that go from one thread to another, once.
 *
 * A line of memory that another core has read must be taken away from it before it is written again, and got from here to
 * be read.  Where the two share no cache either takes as long as memory does (160 ns instead of 26), writes behind it wait,
 * and a queue costs both threads more than what is done with what is in it.  So what is put into one is written past the
 * caches, where the processor can do that; in words, each as it was written, since a load of several writes that are still
 * on their way waits for all of them, and for those before. */
#ifndef STEALSCOPE_BASE_STREAMING_STORE_H
#define STEALSCOPE_BASE_STREAMING_STORE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#define PASS_ON_INLINE inline __attribute__((always_inline))

#ifdef __clang__
#define UNROLLED _Pragma("clang loop unroll(full)")
#else
#define UNROLLED _Pragma("GCC unroll 16")
#endif

/* One word, to a place that is aligned.  away: another thread is going to read it; else this one, soon. */
static PASS_ON_INLINE void pass_on_word(void *to, uint64_t word, bool away)
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

/* A record of whole words, both aligned. */
static PASS_ON_INLINE void pass_on(void *to, const void *from, size_t bytes, bool away)
{
	UNROLLED for (size_t i = 0; i < bytes / sizeof(uint64_t); i++) {
		uint64_t word;
		memcpy(&word, (const char *)from + i * sizeof word, sizeof word);
		__asm__("" : "+r"(word));  /* not two at a time */
		pass_on_word((char *)to + i * sizeof word, word, away);
	}
}

/* Before the other thread is told. */
static PASS_ON_INLINE void pass_on_all(void)
{
#if defined __SSE2__ && defined __x86_64__
	_mm_sfence();
#endif
}

#endif
