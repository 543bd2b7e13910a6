/* Parent side of decoder_process.h: converts the messages of a child to the results of its tasks. Trusts no message,
 * because damaged input may have overwritten the child's memory. */
#pragma once

#include "trace/isolation/decoder_process.h"

#define IPC_BUFFER_SIZE (4 * (IPC_MAX_LEN + sizeof(struct ipc_header)))

struct ipc_receiver {
	struct decoder_job *job;
	const struct decoder_run *run;
	struct event_sink_ops ops;
	unsigned char *buf;  /* IPC_BUFFER_SIZE bytes; the first `used` bytes are not parsed yet */
	size_t used;
	struct string_cache names;
	uint32_t *id;  /* string id in the parent, by string id of the child */
	size_t ids, ids_cap;
	size_t next;               /* index + 1 of the current task; 0: no task yet */
	struct recorder **stream;  /* streams of the current task, by number */
	size_t streams, streams_cap;
	struct recorder *current;
	uint64_t counted;  /* bytes of the current task already counted as progress */
		bool has_begun;  /* the current child has started a task */
	bool has_progress;  /* the child has reported progress */
	bool has_ended, has_error;
	struct error err;
	int status;
};

void ipc_receiver_open(struct ipc_receiver *e, struct decoder_job *t, const struct decoder_run *run);
/* Prepares for a new child: discards the string ids and the incomplete message of the previous one. */
void ipc_receiver_next_child(struct ipc_receiver *e);
/* Parses the complete messages in the buffer. Returns false if a message is invalid. */
bool ipc_receiver_parse(struct ipc_receiver *e);
/* Marks the rest of the current task's streams as damaged, because the child died. */
void ipc_receiver_mark_damaged(struct ipc_receiver *e, const char *reason);
/* Marks the remaining tasks as damaged, because no further child can be started. */
void ipc_receiver_give_up(struct ipc_receiver *e, const char *reason);
/* Discards the results of the current task, so that the next child can restart it. */
void ipc_receiver_discard_task(struct ipc_receiver *e);
/* Stores the results of the current task. */
void ipc_receiver_finish_task(struct ipc_receiver *e);
void ipc_receiver_release(struct ipc_receiver *e);
