/* Clocks moved by hand while the viewer shows them: each time another history, made of the same traces. */
#ifndef STEALSCOPE_CLI_NUDGE_H
#define STEALSCOPE_CLI_NUDGE_H

#include "cli/input.h"
#include "history/history.h"
#include "ui/ui.h"

struct nudger {
	struct history *first;         /* what the viewer began with */
	char *session;                /* the session file in use, or NULL */
	unsigned jobs;
	struct ui_clocks clocks;      /* for the viewer */
};

/* `in` is what the user asked for, h what was opened for it; both are borrowed until nudger_release(). */
void nudger_init(struct nudger *n, struct history *h, const struct input *in);
void nudger_release(struct nudger *n);

#endif
