/* One guest while it is recorded: its script, what that has said, and its folder. */
#ifndef STEALSCOPE_RECORD_GUEST_H
#define STEALSCOPE_RECORD_GUEST_H

#include "record/frames.h"
#include "record/clock_sample.h"
#include "record/transport.h"

enum guest_state {
	GUEST_NONE,      /* nobody goes into it */
	GUEST_CALLED,    /* its shell was sent the script */
	GUEST_READY,     /* its buffers stand */
	GUEST_STARTED,
	GUEST_STOPPED,
	GUEST_SENT,      /* all is here */
	GUEST_ENDED,     /* it has said what it was asked, and goes (check, clean) */
	GUEST_FAILED,    /* see why */
};

struct guest_order {   /* what all guests are told */
	const char *task;      /* trace, check, clean */
	const char *clocks;
	const char *const *event;
	size_t events;
	unsigned hold, limit;  /* s */
	bool turn;
};

struct guest {
	const struct vm *vm;
	struct transport by;
	bool asked;            /* somebody wants it: if it cannot be, that is told */
	enum guest_state state;
	int64_t deadline;      /* ns, monotonic: until the next state, or the next bytes */
	struct channel channel;
	struct frames frames;
	int folder;            /* descriptor, or -1: nothing is kept */
	int pages;             /* descriptor of the file that was written last, or -1 */
	unsigned pages_cpu;
	const struct guest_order *order;
	char *about;           /* lines "key value" */
	char *header_page, *header_event, *formats, *threads;  /* when it was called; threads: lines "TID PROCESS NAME" */
	char *cmdlines, *tgids;  /* when it was stopped */
	unsigned page, cpus;   /* bytes; highest number + 1 */
	uint64_t kilobytes, rate;  /* of each CPU's buffer; KiB/s of its busiest CPU */
	uint64_t bytes, lost, most;  /* most: bytes that it may send */
	uint64_t received;           /* bytes since it was told to send, whatever they are */
	unsigned erased, left;       /* by clean */
	struct moment started, stopped;
	struct vm_tsc *before, *after;  /* [vm->vcpus] */
	char errors[512];      /* the last that its transport said */
	bool fell_silent;      /* that is why it failed, in midst of it all */
	struct error why;
};

void guest_init(struct guest *g, const struct vm *vm, struct transport by);
void guest_release(struct guest *g);

/* Starts its shell and sends the script.  What fails puts it into GUEST_FAILED, here and below, and `why` says it. */
void guest_call(struct guest *g, const struct guest_order *order);
/* What it will send goes to a folder, whose descriptor it takes, at most so many bytes of it. */
void guest_keep(struct guest *g, int folder, uint64_t most);
/* What it has sent is done with: it may be told to go once more. */
void guest_again(struct guest *g);
/* Sends a word; it may take so many s for the next state, 0: any time. */
void guest_say(struct guest *g, const char *word, unsigned patience);
/* What has come, from its output and errors; ends it where its time is over. */
void guest_listen(struct guest *g);
void guest_fail(struct guest *g, const char *mend, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

bool guest_is_open(const struct guest *g);
char *guest_field(const struct guest *g, const char *key);  /* of what it said of itself; the caller frees */

#endif
