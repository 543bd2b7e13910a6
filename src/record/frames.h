/* Parser for the frames that a guest sends: "KEY NAME BYTES", a line break, the bytes.
 *
 * The guest may be hostile: an unknown name, a length above the limit of the frame's kind, or text between frames is an
 * error that ends the session. Text before the first frame is skipped (greetings of login shells). The parser buffers one
 * frame at a time; the content of pages frames is not buffered but passed on as it arrives. */
#pragma once

#include "base/base.h"

#define FRAME_KEY 32     /* hexadecimal digits of the key, which is random for each session */
#define FRAME_CPUS 4096  /* most CPUs of a guest */

/* X(code, name, maximum bytes). A name that ends in '/' is followed by "cpuN" in the frame. */
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
	X(FRAME_PROGRAMS, "programs", 65536) \
	X(FRAME_PROGRAM, "program", 1 << 20) \
	X(FRAME_DEFINED, "defined", 256) \
	X(FRAME_END, "end", 0)

#define FRAME_CODE(code, name, max_bytes) code,
enum frame { FRAMES(FRAME_CODE) FRAME_KINDS };
#undef FRAME_CODE

struct frames {
	char key[FRAME_KEY + 1];
	/* Handles a complete text, NUL-terminated, or the next part of a CPU's pages. Returns -1 with *err to stop parsing. */
	int (*on_frame)(void *arg, enum frame kind, unsigned cpu, const char *data, size_t len, struct error *err);
	void *arg;
	/* private */
	char head[128];          /* incomplete header line */
	size_t head_len, skipped;  /* skipped: bytes before the first frame */
	bool in_body, begun;     /* begun: a frame was received */
	enum frame kind;
	unsigned cpu;
	uint64_t remaining;      /* bytes of the frame that have not arrived */
	char *text;              /* the frame's content; NULL for pages */
	size_t text_len;
};

/* Initializes the parser with a new random key. */
int frames_init(struct frames *f, int (*on_frame)(void *arg, enum frame kind, unsigned cpu, const char *data, size_t len,
                                              struct error *err), void *arg, struct error *err);
void frames_release(struct frames *f);
/* Parses the next bytes of the stream, which may end within a frame. Returns -1 with *err on a protocol error. */
int frames_feed(struct frames *f, const char *data, size_t len, struct error *err);
/* Returns the name of a kind of frame. */
const char *frame_name(enum frame kind);
/* Returns true if the stream stops within a frame. */
bool frames_incomplete(const struct frames *f);
