/* What a guest sends: frames, "KEY NAME BYTES", a line break, the bytes.
 *
 * The guest may be hostile: a name that is not expected, a length that its kind may not have, or text where a frame should
 * be ends it.  Only before the first frame something else may stand (greetings of login shells).  Memory is that of the
 * longest text; pages are passed on as they come. */
#ifndef STEALSCOPE_RECORD_FRAMES_H
#define STEALSCOPE_RECORD_FRAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/error.h"

#define FRAME_KEY 32  /* hexadecimal digits */
#define FRAME_CPUS 4096

/* X(code, name, bytes at most); a name that ends in '/' is followed by "cpuN". */
#define FRAMES(X) \
	X(FRAME_REFUSE, "refuse", 1024) \
	X(FRAME_CLEANED, "cleaned", 256) \
	X(FRAME_ABOUT, "about", 65536) \
	X(FRAME_HEADER_PAGE, "header_page", 16384) \
	X(FRAME_HEADER_EVENT, "header_event", 16384) \
	X(FRAME_FORMATS, "formats", 1 << 20) \
	X(FRAME_THREADS, "threads", 16 << 20) \
	X(FRAME_READY, "ready", 256) \
	X(FRAME_STARTED, "started", 4096) \
	X(FRAME_STOPPED, "stopped", 4096) \
	X(FRAME_PAGES, "pages/", 16 << 20) \
	X(FRAME_STATS, "stats/", 4096) \
	X(FRAME_CMDLINES, "saved_cmdlines", 16 << 20) \
	X(FRAME_TGIDS, "saved_tgids", 16 << 20) \
	X(FRAME_END, "end", 0)

#define FRAME_CODE(code, name, most) code,
enum frame { FRAMES(FRAME_CODE) FRAME_KINDS };
#undef FRAME_CODE

struct frames {
	char key[FRAME_KEY + 1];
	/* A whole text, NUL behind it; or a part of a CPU's pages, in order.  -1 with *err: give up. */
	int (*take)(void *arg, enum frame what, unsigned cpu, const char *data, size_t len, struct error *err);
	void *arg;
	/* private */
	char head[128];
	size_t head_len, skipped;
	bool in_body, begun;
	enum frame what;
	unsigned cpu;
	uint64_t left;
	char *text;
	size_t text_len;
};

/* Draws a key. */
int frames_init(struct frames *f, int (*take)(void *arg, enum frame what, unsigned cpu, const char *data, size_t len,
                                              struct error *err), void *arg, struct error *err);
void frames_release(struct frames *f);
/* The next bytes, cut anywhere. */
int frames_take(struct frames *f, const char *data, size_t len, struct error *err);
/* Is a frame only half there? */
bool frames_are_cut(const struct frames *f);

#endif
