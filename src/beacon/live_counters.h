/* Internals of the marking library: counters of threads and requests in the running service. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/published_page.h"
#include "beacon/stealscope-mark.h"

/* ---- The page of a publisher (live_page.c) */

/* The page's address; its bytes are 0 while there is no publisher. NULL: there never was one. */
const struct published_header *live_page(void);
/* Returns true if the page's publisher is alive. now: CLOCK_MONOTONIC, ns. */
bool live_page_is_valid(int64_t now);
/* Connects if necessary, and registers the TID with the publisher if the page has no entry of it. Never blocks. Returns the
 * entry; 0: none yet. *retry: time before which another call is useless; *sent: memory of the thread for this function. */
uint32_t live_page_register(uint32_t tid, int64_t now, int64_t *retry, int64_t *sent);
/* The connection's descriptor; -1: none. */
int live_page_connection(void);
/* Sets the socket's path; NULL: STEALSCOPE_LIVE, or the default. */
void live_page_set_path(const char *path);
void live_page_forget_parent(void);

/* ---- Threads (live_thread.c) */

struct mark_thread;

/* Counters of one thread at one time. */
struct live_counters {
	int64_t now;               /* CLOCK_MONOTONIC, ns */
	int64_t value[PUBLISHED_COUNTERS];
	int64_t lag;               /* the counters may lack the last time up to now, ns */
	uint64_t session;          /* of the publisher; two counters are comparable if source and session are equal */
	uint32_t source, flags;
};

/* Returns the calling thread, which is added if it is new; NULL: too many threads. */
struct mark_thread *live_thread_self(void);
/* Returns a number that changes when another thread takes the place of t; 0: t is NULL. */
uint64_t live_thread_generation(const struct mark_thread *t);
/* Returns the best source for a thread now. */
uint32_t live_thread_source(struct mark_thread *t, int64_t now);
/* Reads the counters of a thread of this process. t may be NULL. c->source: NONE if it cannot be read. */
void live_thread_read(struct mark_thread *t, uint32_t source, struct live_counters *c);
/* Waits until the calling thread is registered with a publisher, at most 1 s. Returns the source for it. */
uint32_t live_thread_wait(void);
void live_thread_forget_parent(void);

/* ---- Memory that the host of this VM shares (live_shared.c) */

/* Maps the memory; path NULL: of this VM's memory device. Nothing happens if it does not exist or is mapped. */
void live_shared_open(const char *path);
/* Returns true if the host shares this vCPU's counters. */
bool live_shared_has(unsigned cpu, int64_t now);
/* Reads a vCPU's counters. c->now must be set. Returns false if there are none. */
bool live_shared_read(unsigned cpu, struct live_counters *c);
/* Returns the main culprit of a vCPU in the host's last period; "": none. */
void live_shared_culprit(unsigned cpu, int64_t now, char name[128]);

/* ---- Requests (live_request.c) */

enum live_mark { LIVE_START, LIVE_YIELD, LIVE_RESUME, LIVE_END };
/* Returns true after srbn_live() or the first srbn_read(). */
bool live_is_on(void);
void live_request_mark(srbn_t request, enum live_mark mark);
/* Resets the state in the child after fork(). */
void live_forget_parent(void);

/* ---- Model (live_model.c) */

/* The model's inputs, in the order of latency/latency.h, REQUEST_FEATURES. NaN: unknown. */
enum { LIVE_OUT_OWN, LIVE_OUT_FLIGHT, LIVE_VMM, LIVE_WAIT, LIVE_BLOCKED, LIVE_SWITCHES, LIVE_EXITS, LIVE_WAKEUPS,
       LIVE_INPUTS };
/* Fills the prediction of data, and its flags, if a model is loaded. */
void live_model_predict(const double input[LIVE_INPUTS], struct srbn_data *data);
