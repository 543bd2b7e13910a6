/* Translates the libbabeltrace2 messages of one stream to events, with a layout. */
#ifndef STEALSCOPE_TRACE_BABELTRACE_TRANSLATE_H
#define STEALSCOPE_TRACE_BABELTRACE_TRANSLATE_H

#include <babeltrace2/babeltrace.h>

#include "trace/babeltrace/field_binding.h"
#include "trace/loss_placement.h"
#include "trace/babeltrace/graph.h"

/* State shared by all streams of a graph. */
struct translator {
	struct event_mapping *mapping;
	struct string_cache names;
	const struct layout *layout;
	struct binder *binder;  /* NULL until the first stream begins */
};

struct translation {
	const struct decode_request *request;
	struct decode_progress *progress;
	struct loss_placer loss_placer;
};

void translator_init(struct translator *t, struct event_mapping *mapping);
void translator_release(struct translator *t);

/* Translates a message. Returns 0, or -1 if the event sink failed. */
int translate(struct translator *t, struct translation *j, const bt_message *msg);
/* Ends a stream that cannot be read further. Sets progress->error_text from libbabeltrace2's error if it is not set.
 * Returns 0 or -1. */
int translate_broken(struct translation *j);

#endif
