/* The parent's half of decoder_process.h: what one child says -> what came of its tasks. Nothing that a child says is
 * believed: what it read may have made it overwrite its memory before it died. */
#ifndef STEALSCOPE_TRACE_ISOLATION_IPC_RECEIVER_H
#define STEALSCOPE_TRACE_ISOLATION_IPC_RECEIVER_H

#include "trace/isolation/decoder_process.h"

#define EAR_BUFFER (4 * (TELL_LONGEST + sizeof(struct tell_head)))

struct ear {
	struct told *told;
	const struct told_work *work;
	struct outlet_ops ops;
	unsigned char *buf;       /* EAR_BUFFER bytes, of which `used` are not understood yet */
	size_t used;
	struct name_cache names;
	uint32_t *id;             /* ours, of each string of the child */
	size_t ids, ids_cap;
	size_t next;              /* the task after the current one; 0: none has begun */
	struct recorder **stream; /* the current task's, by number */
	size_t streams, streams_cap;
	struct recorder *current;
	uint64_t counted;         /* bytes of the current task */
	size_t traces;            /* told of */
	bool begun;               /* this child has begun a task */
	bool alive;               /* it has said that it reads */
	bool ended, refused;
	struct error err;
	int status;
};

void ear_open(struct ear *e, struct told *t, const struct told_work *work);
/* Forgets what an earlier child said of its names, and half of. */
void ear_next_child(struct ear *e);
/* Takes the whole messages in the buffer. False: a child that is to be trusted would not say this. */
bool ear_take(struct ear *e);
/* The child ended in the middle of its task. */
void ear_broken(struct ear *e, const char *why);
/* No child gets as far as to the tasks that are left. */
void ear_give_up(struct ear *e, const char *why);
/* What came of the task that this child was in is void: the next child begins it anew. */
void ear_forget(struct ear *e);
/* No more comes of the current task. */
void ear_leave(struct ear *e);
void ear_release(struct ear *e);

#endif
