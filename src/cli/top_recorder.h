/* Recordings that `stealscope top` starts: this program in child processes. */
#pragma once

#include <sys/types.h>

#include "base/base.h"

/* One flight recording at a time. Snapshots of earlier ones stay in the list. */
struct top_recorder {
	pid_t flight;              /* the flight's recorder; 0: none */
	int output;                /* its stdout and stderr, read end; -1: none */
	char trigger[160], dir[128], line[512], state[800];
	size_t line_len;
	char **snapshot;           /* directories */
	size_t snapshots, cap;
};
#define TOP_RECORDER_INIT { .output = -1 }

/* See struct ui_top_actions; arg is the recorder. */
int top_recorder_record(void *arg, int32_t tid, struct error *err);
int top_recorder_arm(void *arg, const char *trigger, struct error *err);
size_t top_recorder_flight(void *arg, const char **state);
const char *top_recorder_snapshot(void *arg, size_t i);
int top_recorder_open(void *arg, size_t i, int32_t tid, struct error *err);
/* Ends the flight, waits for it, and frees the list. */
void top_recorder_close(struct top_recorder *r);
