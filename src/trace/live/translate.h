/* Translates the libbabeltrace2 messages of one stream to events, with a layout. */
#pragma once

#include <babeltrace2/babeltrace.h>

#include "trace/live/field_binding.h"
#include "trace/loss_placement.h"

/* State shared by all streams. */
struct translator {
	struct event_mapping *mapping;
	struct string_cache names;
	const struct layout *layout;
	struct binder *binder;  /* NULL until the first stream begins */
};

struct translation {
	struct loss_placer loss_placer;
};

void translator_init(struct translator *t, struct event_mapping *mapping);

/* Translates a message. Returns 0, or -1 if the event sink failed. */
int translate(struct translator *t, struct translation *j, const bt_message *msg);
