/* Fuzz target: any bytes as what a child tells of its source (told.h), which may have overwritten its memory.
 *
 * The first byte says what kind of source it is; then come messages in a shorter form, so that fuzzing gets far: which one,
 * how many bytes of it follow (the rest is zeros), the bytes.  With bit 7 of the first byte the rest is taken as it is. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "trace/isolation/ipc_receiver.h"
#include "fuzz_replay.h"

#define MOST_TASKS 4

static const size_t size_of[TELLS] = {  /* 0: as many as there are */
	[TELL_LAYOUT] = sizeof(struct tell_layout), [TELL_TRACE] = sizeof(struct metadata), [TELL_SESSION] = sizeof(struct tell_session),
	[TELL_STRETCH] = 4, [TELL_STREAM] = sizeof(struct tell_stream), [TELL_COVERS] = sizeof(struct tell_coverage),
	[TELL_FAULTS] = sizeof(struct faults), [TELL_AT] = 8, [TELL_REFUSE] = sizeof(struct tell_refusal),
};

struct bytes {
	uint8_t *data;
	size_t len, cap;
};

static void add(struct bytes *b, const void *data, size_t n)
{
	while (b->cap < b->len + n)
		b->data = mem_resize(b->data, b->cap = 2 * (b->cap + n), 1);
	if (n)
		memcpy(b->data + b->len, data, n);
	b->len += n;
}

static struct bytes expand(const uint8_t *data, size_t size)
{
	static const uint8_t zeros[sizeof(struct tell_refusal)];
	struct bytes all = { 0 };
	while (size >= 2) {
		const uint32_t tell = data[0] % (TELLS + 1U);
		size_t n = data[1] < size - 2 ? data[1] : size - 2;
		const size_t whole = tell < TELLS && size_of[tell] ? size_of[tell] : n;
		n = n < whole ? n : whole;
		add(&all, &(struct tell_head){ tell, (uint32_t)whole }, sizeof(struct tell_head));
		add(&all, data + 2, n);
		add(&all, zeros, whole - n);
		data += 2 + n;
		size -= 2 + n;
	}
	return all;
}

/* As told.c does, with a child that writes no more than is said here. */
static void hear(struct ear *e, const uint8_t *data, size_t size, size_t step)
{
	bool goes_on = true;
	for (size_t n; size && goes_on; data += n, size -= n) {
		n = EAR_BUFFER - e->used;
		n = n < step ? n : step;
		n = n < size ? n : size;
		memcpy(e->buf + e->used, data, n);
		e->used += n;
		goes_on = ear_take(e) && !e->refused && !e->status && !e->ended;
	}
	if (e->refused || e->status) {
		if (!e->err.text[0] || e->err.status == STATUS_OK)
			abort();
	} else if (!e->ended && e->begun) {
		ear_broken(e, "died");
	} else if (!e->ended && e->next) {
		ear_give_up(e, "died");
	}
	ear_leave(e);
}

/* What came of it can be read again. */
static void walk(const struct task *t, struct store *store)
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
	const unsigned how = data[0];
	struct error err = ERROR_INIT;
	struct names names;
	struct store *store = store_new(1U << 22, NULL, &err);
	_Atomic uint64_t bytes = 0;
	const struct trace_reader reader = { .apart = true, .endless = how & 2 };
	const struct place place = { .path = (char *)"place" }, *places[] = { &place };
	struct source_stream streams[MOST_TASKS] = { { .bytes = 100 } };
	struct source source = { .reader = &reader, .place = places, .places = 1, .meaning.names = &names,
		.meaning.layouts = 3, .stream = how & 1 ? streams : NULL, .streams = how & 1 ? MOST_TASKS : 0 };
	struct task task[MOST_TASKS] = { { .source = &source, .bytes = 100 } }, *tasks[MOST_TASKS];
	struct told told = { .source = &source, .task = tasks };
	for (; told.tasks < (how & 1 ? MOST_TASKS : 1); told.tasks++) {
		task[told.tasks] = (struct task){ .source = &source, .bytes = 100 };
		tasks[told.tasks] = &task[told.tasks];
	}
	names_init(&names);
	const struct told_work work = { store, &bytes, 1, NULL, NULL };
	struct bytes all = { 0 };
	if (how & 0x80)
		add(&all, data + 1, size - 1);
	else
		all = expand(data + 1, size - 1);
	struct ear e;
	ear_open(&e, &told, &work);
	hear(&e, all.data, all.len, 1 + (how >> 2 & 31) * 97);
	if (e.ended && !e.status && how & 4) {  /* another child goes on */
		ear_next_child(&e);
		hear(&e, all.data, all.len, 4096);
	}
	ear_release(&e);
	for (size_t i = 0; i < told.tasks; i++) {
		walk(&task[i], store);
		task_forget(&task[i], store);
	}
	free(told.session);
	free(source.trace);
	free(source.cut);
	free(all.data);
	names_release(&names);
	store_unref(store);
	return 0;
}
