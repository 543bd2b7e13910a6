/* Order of the events of a perf file. Private to perf/.
 *
 * perf empties the buffers of the CPUs one after the other; a round's end is marked. An interrupt may store its
 * events before the event that it interrupted, so that even the events of one CPU are not in the order of their times.
 * When a round ends, no later record is older than the newest one of the round before. The queue holds the events of up
 * to two rounds, and passes them on by CPU, sorted by time. A file without rounds (perf record --overwrite) is held as a
 * whole, up to PERF_QUEUE_MAX events; beyond that the older half is passed on, and the sink reports events that are out
 * of order.
 *
 * Lost events: a record LOST follows the last event that was stored. The loss extends from that event to the next one. */
#pragma once

#include "trace/reader.h"

#ifndef PERF_QUEUE_MAX
#define PERF_QUEUE_MAX (4u << 20)
#endif

struct perf_cpu {
	uint16_t number;
	uint32_t stream;         /* number of the stream in the sink + 1; 0: no event was passed on yet */
	struct queued_event { struct event event; uint64_t order; bool is_sample; } *queued;
	size_t len, cap;
	bool is_unsorted;
	bool has_sample;         /* a sample was passed on: the CPU is recorded */
	bool has_switch;         /* a switch was added, so the names of the start are not used any more */
	int64_t newest;          /* latest time of an event added, ns; INT64_MIN: none */
	struct event lost;       /* loss before the next event */
	bool has_lost;
	uint64_t lost_counted;   /* lost events by records LOST */
	uint64_t lost_total;     /* lost events by perf's own counters */
};

struct perf_queue {
	struct event_sink *out;
	struct perf_cpu *cpu;    /* in the order of appearance */
	size_t cpus, cpus_cap;
	uint32_t *index;         /* [65536], index + 1 in cpu[] by number; 0: none */
	uint32_t streams;        /* streams in the sink */
	size_t len;              /* queued event count */
	uint64_t order;
	int64_t newest;          /* latest time of all events added, ns; INT64_MIN: none */
	int64_t limit;           /* events up to this time are passed on when the round ends, ns */
};

void perf_queue_open(struct perf_queue *q, struct event_sink *out);
/* Returns the CPU, which is valid until the next call. */
struct perf_cpu *perf_queue_cpu(struct perf_queue *q, uint16_t number);
/* The functions below return 0, or -1 with *out->err filled. */
int perf_queue_put(struct perf_queue *q, const struct event *ev);
/* Adds an event that perf records before and after the others. It is dropped if its CPU has no earlier sample. */
int perf_queue_put_sideband(struct perf_queue *q, const struct event *ev);
/* Adds a loss on one CPU that ended at time `at` (INT64_MIN: at the next event). count may be EVENT_ABSENT. */
void perf_queue_lose(struct perf_queue *q, uint16_t cpu, int64_t at, int64_t count);
void perf_queue_lose_all(struct perf_queue *q);  /* adds a loss until the next event on each CPU */
int perf_queue_end_round(struct perf_queue *q);
/* Passes all events on, with the losses that no record LOST contains. Releases the queue, also on failure. */
int perf_queue_close(struct perf_queue *q);
void perf_queue_release(struct perf_queue *q);
