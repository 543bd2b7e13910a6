/* Process that waits for the recorder's end. If the recorder was killed, it removes the recorder's tracefs instance
 * and its probes: a probe costs the probed program time as long as it exists. */
#pragma once

#include <sys/types.h>

#include "base/base.h"

struct watchdog {
	int fd;     /* the watchdog ends when it is closed */
	pid_t pid;  /* 0: no watchdog */
};

/* Starts the watchdog. root, tracefs: borrowed until watchdog_end(). unmount: the recorder has mounted tracefs. */
int watchdog_start(struct watchdog *w, const char *root, const char *tracefs, bool unmount, struct error *err);
void watchdog_end(struct watchdog *w);  /* nothing happens without a watchdog */
