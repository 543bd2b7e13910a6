/* Fuzz target: any bytes as a trace, as in fuzz_ctf.c, read by both readers of CTF.  What our own reads, libbabeltrace2 (in a
 * child, as ever) reads alike: the same events in each stream, each with its time, CPU and fields.
 *
 * Where a trace is damaged they may see it at different events: the one then has what the other has, and more. */
#include <stdlib.h>
#include <string.h>

#include "trace/internal.h"
#include "trace/trace.h"
#include "fuzz_replay.h"

static const char cut[] = "\n----\n";

struct twin {
	struct trace *trace;
	struct notes notes;
	struct error err;
	int status;
	bool is_damaged;
};

static void load(const char *dir, enum trace_reading reader, struct twin *t)
{
	const struct trace_spec spec = { .dir = dir };
	const struct trace_options options = { .reader = reader, .workers = 1 };
	*t = (struct twin){ .err = ERROR_INIT };
	t->status = trace_load(&spec, 1, &options, &t->trace, &t->notes, &t->err);
	for (size_t i = 0; i < t->notes.len; i++)
		t->is_damaged |= t->notes.item[i].kind == NOTE_DAMAGE;
}

static void unload(struct twin *t)
{
	if (!t->status)
		trace_free(t->trace);
	notes_release(&t->notes);
}

static bool same_text(const struct trace *a, int64_t x, const struct trace *b, int64_t y)
{
	return (x == EVENT_ABSENT) == (y == EVENT_ABSENT) && strcmp(trace_string(a, x), trace_string(b, y)) == 0;
}

static bool same_event(const struct trace *a, const struct event *x, const struct trace *b, const struct event *y)
{
	if (x->ts != y->ts || x->kind != y->kind || x->cpu != y->cpu || x->tid != y->tid || x->pid != y->pid ||
	    !same_text(a, x->comm, b, y->comm))
		return false;
	for (unsigned i = 0; i < event_args[x->kind] && x->kind != EV_LOST; i++) {
		const struct role *role = layout_role((enum event_kind)x->kind, i);
		if (role && role->is_text ? !same_text(a, x->arg[i], b, y->arg[i]) : x->arg[i] != y->arg[i])
			return false;
	}
	return true;
}

static void compare_streams(const struct twin *a, const struct twin *b, size_t i)
{
	struct reader x, y;
	struct error err = ERROR_INIT;
	const struct event *ex, *ey;
	const bool is_damaged = a->is_damaged || b->is_damaged;
	reader_open(&x, a->trace->store, &a->trace->stream[i], 0, 1);
	reader_open(&y, b->trace->store, &b->trace->stream[i], 0, 1);
	for (;;) {
		const int more = reader_next(&x, &ex, &err), also = reader_next(&y, &ey, &err);
		if (is_damaged && (more < 1 || also < 1 || ex->kind == EV_LOST || ey->kind == EV_LOST))
			break;
		if (more != also || (more == 1 && !same_event(a->trace, ex, b->trace, ey)))
			abort();
		if (more < 1)
			break;
	}
	reader_close(&x);
	reader_close(&y);
}

static void compare(const struct twin *a, const struct twin *b)
{
	const bool is_damaged = a->is_damaged || b->is_damaged;
	if (b->status || a->trace->streams != b->trace->streams) {
		if (!is_damaged && b->err.status != STATUS_SYSTEM)
			abort();
		return;
	}
	for (size_t i = 0; i < a->trace->streams; i++)
		compare_streams(a, b, i);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *dashes = memmem(data, size, cut, sizeof cut - 1);
	const size_t text = dashes ? (size_t)(dashes - data) : size, begin = dashes ? text + sizeof cut - 1 : size;
	const struct replay_file file[] = { { "metadata", data, text }, { "stream_0", data + begin, size - begin } };
	struct twin a, b;
	if (text == 0 || *data == 0x1e)  /* CTF 2: not every libbabeltrace2 reads it */
		return 0;
	const char *dir = replay_folder(file, 2);
	load(dir, READER_NATIVE, &a);
	if (!a.status) {
		load(dir, READER_BABELTRACE, &b);
		compare(&a, &b);
		unload(&b);
	}
	unload(&a);
	return 0;
}
