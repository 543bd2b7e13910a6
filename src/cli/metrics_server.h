/* A small HTTP server that answers GET /metrics. Never blocks. If more clients than METRICS_CLIENTS are connected, the one
 * that is connected longest without a request is disconnected. On the loopback address, it refuses requests with the name
 * of another host. */
#pragma once

#include <signal.h>

#include "base/base.h"
#include "live/live.h"

struct metrics_server;

/* Listens on "ADDR:PORT", "[ADDR]:PORT" or ":PORT" (loopback). Returns NULL with *err. */
struct metrics_server *metrics_server_open(const char *address, struct error *err);
void metrics_server_close(struct metrics_server *s);
/* Serves until the time `until` of now_ns(), until a signal of the mask arrives, or until the descriptor `wake` is readable
 * (-1: none). */
void metrics_server_run(struct metrics_server *s, const struct live_metrics *m, int64_t until, const sigset_t *during,
                        int wake);
