/* A server for the test of request probes: it has a static probe, a recursive function, and an event loop, and marks the
 * same requests with libstealscope-mark.
 *
 * usage: probe_server COUNT
 *
 * Prints a line "KIND ID" for each marked request, in order, and "semaphore N": number of requests that were served while
 * the semaphore of the static probe was set. */
#include <setjmp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "beacon/stealscope-mark.h"

/* Note of a static probe, as <sys/sdt.h> writes it: address, base, semaphore, provider, name and the argument. */
#define STRING_(x) #x
#define STRING(x) STRING_(x)
#define STATIC_PROBE(name, semaphore, arg) \
	__asm__ volatile("990: nop\n" \
	                 ".pushsection .note.stapsdt,\"\",\"note\"\n.balign 4\n" \
	                 ".4byte 992f-991f, 994f-993f, 3\n" \
	                 "991: .asciz \"stapsdt\"\n992: .balign 4\n" \
	                 "993: .8byte 990b, 0, " STRING(semaphore) "\n" \
	                 ".asciz \"stealscope_test\"\n.asciz \"" STRING(name) "\"\n.asciz \"8@%0\"\n994: .balign 4\n" \
	                 ".popsection" :: "r"((uint64_t)(arg)) : "memory")

__attribute__((section(".probes"), used)) volatile unsigned short probe_server_semaphore;

struct job { srbn_t mark; volatile uint64_t sum; };

void handle_call(struct job *job, int depth);
void job_begin(struct job *job, const char *text);
void job_step(struct job *job);
void job_pause(void);
void job_finish(struct job *job);

static jmp_buf failed;

static void work(struct job *job)
{
	for (int i = 0; i < 50000; i++)
		job->sum = job->sum * 6364136223846793005u + 1;
}

/* ---- the static probe */

static unsigned serve_static(struct job *job)
{
	const unsigned on = probe_server_semaphore != 0;
	STATIC_PROBE(request__start, probe_server_semaphore, (uintptr_t)job);
	job->mark = srbn_start();
	work(job);
	srbn_end(job->mark);
	STATIC_PROBE(request__done, probe_server_semaphore, (uintptr_t)job);
	printf("static %llu\n", (unsigned long long)job->mark);
	return on;
}

/* ---- the recursive function; depth < 0: it is left by longjmp */

__attribute__((noinline)) void handle_call(struct job *job, int depth)
{
	work(job);
	if (depth < 0)
		longjmp(failed, 1);
	if (depth > 0)
		handle_call(job, depth - 1);
	job->sum++;  /* not a tail call */
}

static void serve_call(struct job *job)
{
	job->mark = srbn_start();
	handle_call(job, 2);
	srbn_end(job->mark);
	printf("call %llu\n", (unsigned long long)job->mark);
}

static void fail_call(struct job *job)
{
	if (setjmp(failed) == 0)
		handle_call(job, -1);
}

/* ---- the event loop: two jobs in turns */

__attribute__((noinline)) void job_begin(struct job *job, const char *text)
{
	__asm__ volatile("" :: "r"(job), "r"(text) : "memory");
}

__attribute__((noinline)) void job_step(struct job *job) { __asm__ volatile("" :: "r"(job) : "memory"); }
__attribute__((noinline)) void job_pause(void) { __asm__ volatile("" ::: "memory"); }
__attribute__((noinline)) void job_finish(struct job *job) { __asm__ volatile("" :: "r"(job) : "memory"); }

static void start_job(struct job *job)
{
	job_begin(job, "order 17 of 'shop'");
	job->mark = srbn_start();
	printf("loop %llu\n", (unsigned long long)job->mark);
	work(job);
}

static void leave_job(struct job *job)
{
	srbn_yield(job->mark);
	job_pause();
}

static void continue_job(struct job *job)
{
	job_step(job);
	srbn_resume(job->mark);
	work(job);
}

static void finish_job(struct job *job)
{
	srbn_end(job->mark);
	job_finish(job);
}

static void serve_loop(struct job *a, struct job *b)
{
	const struct timespec pause = { 0, 1000000 };
	start_job(a);
	leave_job(a);
	start_job(b);
	leave_job(b);
	nanosleep(&pause, NULL);
	continue_job(a);
	finish_job(a);
	continue_job(b);
	finish_job(b);
}

int main(int argc, char **argv)
{
	const int count = argc > 1 ? atoi(argv[1]) : 1;
	struct job a = { 0, 1 }, b = { 0, 2 };
	unsigned on = 0;
	for (int i = 0; i < count; i++) {
		on += serve_static(&a);
		serve_call(&a);
		serve_loop(&a, &b);
		if (i % 4 == 0)
			fail_call(&a);
	}
	printf("semaphore %u\n", on);
	return 0;
}
