/* Fuzz target: input as the messages of a decoder process (decoder_process.h) with overwritten memory.
 *
 * The first byte selects the kind of source. Then messages follow in a shorter form, so that fuzzing reaches more code:
 * type, number of bytes that follow, the bytes; the rest of the message is zeros. With bit 7 of the first byte set, the
 * rest of the input is used unchanged. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "trace/isolation/ipc_receiver.h"
#include "fuzz_replay.h"

#define MAX_TASKS 4

static const size_t payload_size[IPC_MESSAGES] = {  /* 0: any size */
	[IPC_LAYOUT] = sizeof(struct ipc_layout), [IPC_TRACE] = sizeof(struct metadata),
	[IPC_SESSION] = sizeof(struct ipc_session),
	[IPC_TASK] = 4, [IPC_STREAM] = sizeof(struct ipc_stream), [IPC_COVERAGE] = sizeof(struct ipc_coverage),
	[IPC_FAULTS] = sizeof(struct faults), [IPC_PROGRESS] = 8, [IPC_ERROR] = sizeof(struct ipc_error),
};

struct bytes {
	uint8_t *data;
	size_t len, cap;
};

static void append_bytes(struct bytes *b, const void *data, size_t n)
{
	while (b->cap < b->len + n)
		b->data = mem_resize(b->data, b->cap = 2 * (b->cap + n), 1);
	if (n)
		memcpy(b->data + b->len, data, n);
	b->len += n;
}

static struct bytes expand_messages(const uint8_t *data, size_t size)
{
	static const uint8_t zeros[sizeof(struct ipc_error)];
	struct bytes all = { 0 };
	while (size >= 2) {
		const uint32_t type = data[0] % (IPC_MESSAGES + 1U);
		size_t n = data[1] < size - 2 ? data[1] : size - 2;
		const size_t whole = type < IPC_MESSAGES && payload_size[type] ? payload_size[type] : n;
		n = n < whole ? n : whole;
		append_bytes(&all, &(struct ipc_header){ type, (uint32_t)whole }, sizeof(struct ipc_header));
		append_bytes(&all, data + 2, n);
		append_bytes(&all, zeros, whole - n);
		data += 2 + n;
		size -= 2 + n;
	}
	return all;
}

/* Receives the messages as decoder_process.c does, in chunks of at most `step` bytes. */
static void receive_all(struct ipc_receiver *e, const uint8_t *data, size_t size, size_t step)
{
	bool is_valid = true;
	for (size_t n; size && is_valid; data += n, size -= n) {
		n = IPC_BUFFER_SIZE - e->used;
		n = n < step ? n : step;
		n = n < size ? n : size;
		memcpy(e->buf + e->used, data, n);
		e->used += n;
		is_valid = ipc_receiver_parse(e) && !e->has_error && !e->status && !e->has_ended;
	}
	if (e->has_error || e->status) {
		if (!e->err.text[0] || e->err.status == STATUS_OK)
			abort();
	} else if (!e->has_ended && e->has_begun) {
		ipc_receiver_mark_damaged(e, "died");
	} else if (!e->has_ended && e->next) {
		ipc_receiver_give_up(e, "died");
	}
	ipc_receiver_finish_task(e);
}

/* Checks that the resulting records can be read. */
static void check_records(const struct task *t, struct store *store)
{
	struct error err = ERROR_INIT;
	for (size_t i = 0; i < t->outs; i++) {
		struct reader r;
		const struct event *ev;
		uint64_t events = 0;
		int more;
		reader_open(&r, store, &t->out[i]->records, 0, 1);
		while ((more = reader_next(&r, &ev, &err)) > 0)
			events += ev->kind != EV_LOST;
		if (more || events != t->out[i]->records.events)
			abort();
		reader_close(&r);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2 || size > 1U << 16)
		return 0;
	const unsigned flags = data[0];
	struct error err = ERROR_INIT;
	struct string_table names;
	struct store *store = store_new(1U << 22, NULL, &err);
	_Atomic uint64_t bytes = 0;
	const struct trace_reader reader = { .isolated = true, .endless = flags & 2 };
	const struct trace_location location = { .path = (char *)"place" }, *locations[] = { &location };
	struct source_stream streams[MAX_TASKS] = { { .bytes = 100 } };
	struct source source = { .reader = &reader, .location = locations, .locations = 1, .mapping.names = &names,
		.mapping.layouts = 3, .stream = flags & 1 ? streams : NULL, .streams = flags & 1 ? MAX_TASKS : 0 };
	struct task task[MAX_TASKS] = { { .source = &source, .bytes = 100 } }, *tasks[MAX_TASKS];
	struct decoder_job job = { .source = &source, .task = tasks };
	for (; job.tasks < (flags & 1 ? MAX_TASKS : 1); job.tasks++) {
		task[job.tasks] = (struct task){ .source = &source, .bytes = 100 };
		tasks[job.tasks] = &task[job.tasks];
	}
	string_table_init(&names);
	const struct decoder_run run = { store, &bytes, 1, NULL, NULL };
	struct bytes all = { 0 };
	if (flags & 0x80)
		append_bytes(&all, data + 1, size - 1);
	else
		all = expand_messages(data + 1, size - 1);
	struct ipc_receiver e;
	ipc_receiver_open(&e, &job, &run);
	receive_all(&e, all.data, all.len, 1 + (flags >> 2 & 31) * 97);
	if (e.has_ended && !e.status && flags & 4) {  /* another child continues */
		ipc_receiver_next_child(&e);
		receive_all(&e, all.data, all.len, 4096);
	}
	ipc_receiver_release(&e);
	for (size_t i = 0; i < job.tasks; i++) {
		check_records(&task[i], store);
		task_release_results(&task[i], store);
	}
	free(job.session);
	free(source.trace);
	free(source.truncation);
	free(all.data);
	string_table_release(&names);
	store_unref(store);
	return 0;
}
