/* libbabeltrace2's messages of one data stream -> events, as a layout has it. */
#ifndef STEALSCOPE_TRACE_TRANSLATE_H
#define STEALSCOPE_TRACE_TRANSLATE_H

#include <babeltrace2/babeltrace.h>

#include "trace/bind.h"
#include "trace/decoder.h"

/* What the streams of one graph share. */
struct translator {
	struct ctf *ctf;
	struct name_cache names;
	const struct layout *layout;
	struct binder *binder;  /* made with the first stream */
};

struct translation {
	const struct decode *what;
	struct decoded *out;  /* its counts, and `broken` */
	int (*put)(void *arg, const struct event *ev);  /* takes an event; other than 0 ends the translation */
	void *arg;
	int64_t ts;           /* the latest time of the events put, INT64_MIN: none yet */
	uint16_t cpu;         /* of the current packet */
	int64_t last_ts;      /* of the last event of the packet, INT64_MIN: none yet */
	struct event lost;    /* found at the beginning of a packet whose tail is missing; ts INT64_MIN: none */
};
#define TRANSLATION_INIT .ts = INT64_MIN, .last_ts = INT64_MIN, .lost = { .ts = INT64_MIN }

void translator_init(struct translator *t, struct ctf *ctf);
void translator_release(struct translator *t);

/* 0, or what put() said. */
int translate(struct translator *t, struct translation *j, const bt_message *msg);
/* The stream cannot be read further: what its CPU did from here on is unknown.  Says why in out->broken, by
 * libbabeltrace2's error, unless that is set already. */
int translate_broken(struct translation *j);

#endif
