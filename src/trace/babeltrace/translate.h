/* libbabeltrace2's messages of one data stream -> events, as a layout has it. */
#ifndef STEALSCOPE_TRACE_BABELTRACE_TRANSLATE_H
#define STEALSCOPE_TRACE_BABELTRACE_TRANSLATE_H

#include <babeltrace2/babeltrace.h>

#include "trace/babeltrace/field_binding.h"
#include "trace/loss_placement.h"
#include "trace/babeltrace/graph.h"

/* What the streams of one graph share. */
struct translator {
	struct meaning *shared;
	struct name_cache names;
	const struct layout *layout;
	struct binder *binder;  /* made with the first stream */
};

struct translation {
	const struct decode *what;
	struct passage *how;
	struct course course;
};

void translator_init(struct translator *t, struct meaning *shared);
void translator_release(struct translator *t);

/* 0, or what the outlet said. */
int translate(struct translator *t, struct translation *j, const bt_message *msg);
/* The stream cannot be read further.  Says why in how->broken, by libbabeltrace2's error, unless that is set already. */
int translate_broken(struct translation *j);

#endif
