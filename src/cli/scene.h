/* What every command that asks flow/ needs: a history, who is in it, and a window. */
#ifndef STEALSCOPE_CLI_SCENE_H
#define STEALSCOPE_CLI_SCENE_H

#include "cli/report.h"
#include "cli/window.h"
#include "flow/flow.h"

struct scene {
	struct history *h;
	struct topo topo;
	struct window window;
};

/* Opens WHAT and parses the window.  Call scene_close() in any case: it returns rc, or -1
 * when the answer rests on a damaged history. */
int scene_open(struct scene *s, char *what, const struct window_options *when, struct error *err);
int scene_close(struct scene *s, int rc, struct error *err);

/* Fields of a report: the system's name and a TID; nobody is an empty field. */
struct value value_system(const struct topo *topo, int32_t system);
struct value value_tid(int32_t tid);

#endif
