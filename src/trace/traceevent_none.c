/* Replaces the decoders of a build without libtraceevent: claims no files. */
#include "trace/pages/pages.h"
#include "trace/perf/perf.h"
#include "trace/tracecmd/tracecmd.h"

#define NO_DECODER(format) \
	enum claim format##_claims(const char *name, const unsigned char *head, size_t len) \
	{ \
		(void)name, (void)head, (void)len; \
		return CLAIM_NONE; \
	} \
	void *format##_enter(struct source *s, struct error *err) \
	{ \
		error_set(err, STATUS_SYSTEM, "build stealscope with libtraceevent", "%s: a trace", s->location[0]->path); \
		return NULL; \
	} \
	int format##_decode(void *state, const struct stream_part *p, struct event_sink *out) \
	{ \
		(void)state, (void)p, (void)out; \
		return -1; \
	}

NO_DECODER(pages)
NO_DECODER(perf)
NO_DECODER(tracecmd)
