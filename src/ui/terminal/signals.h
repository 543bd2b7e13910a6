/* Signals of the viewer.  Those it lives on after become flags that one pselect() loop consumes; those it dies of
 * first bring the terminal back, by nothing but write() and tcsetattr(). */
#ifndef STEALSCOPE_UI_TERMINAL_SIGNALS_H
#define STEALSCOPE_UI_TERMINAL_SIGNALS_H

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>

/* Blocks SIGWINCH, SIGCONT, SIGTSTP and SIGINT and catches them; *during is the mask to wait with. */
void signals_begin(sigset_t *during);
/* From now on a fatal signal writes `restore` to fd and gives it the settings it had at signals_begin(). */
void signals_guard(int fd, const char *restore);
void signals_end(void);           /* everything as it was */
/* From now on, in every thread, memory of a file that was cut short reads as zeros instead of ending the program. */
void signals_guard_reads(void);
bool signals_take_torn(void);     /* true once after that was so */
void signals_end_reads(void);
bool signals_take(int signal);    /* true once after it arrived */
void signals_stop_self(void);     /* stops as ^Z does; returns after the continue */
/* Starts a thread that leaves all signals to the viewer, but for those of a crash.  0, or -1. */
int signals_start_thread(pthread_t *thread, void *(*run)(void *), void *arg);

#endif
