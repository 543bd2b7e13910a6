/* Signals of the viewer. Non-fatal signals set flags that the pselect() loop reads; fatal signals restore the terminal
 * first, with only write() and tcsetattr(). */
#pragma once

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

/* Blocks and catches SIGWINCH, SIGCONT, SIGTSTP and SIGINT. *during: signal mask for pselect(), which admits them. */
void signals_begin(sigset_t *during);
/* After this call a fatal signal writes `restore` to fd and restores the terminal settings that signals_begin() saved. */
void signals_guard(int fd, const char *restore);
void signals_end(void);  /* restores handlers and mask */
/* After this call, reads beyond the end of a truncated mapped file return zeros in all threads, instead of a fatal
 * SIGBUS. */
void signals_guard_reads(void);
bool signals_take_truncated(void);  /* true: such a read happened since the last call */
void signals_end_reads(void);
bool signals_take(int signal);  /* true: the signal arrived since the last call */
void signals_stop_self(void);  /* stops the process as ^Z does; returns after SIGCONT */
/* Starts a thread that blocks all signals except those of crashes. Returns 0, or -1. */
int signals_start_thread(pthread_t *thread, void *(*run)(void *), void *arg);
