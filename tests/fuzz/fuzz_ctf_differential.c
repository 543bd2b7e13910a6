/* Fuzz target: input as a trace (format: fuzz_ctf.c) for both CTF readers. If the native reader can read the trace,
 * libbabeltrace2 (in a child process) must read the same events in each stream, with equal times, CPUs and fields.
 *
 * In a damaged trace, the readers may detect the damage at different events: then the events of one reader are the first
 * events of the other. */
#include <stdlib.h>
#include <string.h>

#include "trace/internal.h"
#include "trace/trace.h"
#include "fuzz_replay.h"

static const char separator[] = "\n----\n";

struct reading {
	struct trace *trace;
	struct notes notes;
	struct error err;
	int status;
	bool is_damaged;
};

static void load_trace(const char *dir, enum trace_decoder reader, struct reading *t)
{
	const struct trace_spec spec = { .dir = dir };
	const struct trace_options options = { .reader = reader, .workers = 1 };
	*t = (struct reading){ .err = ERROR_INIT };
	t->status = trace_load(&spec, 1, &options, &t->trace, &t->notes, &t->err);
	for (size_t i = 0; i < t->notes.len; i++)
		t->is_damaged |= t->notes.item[i].kind == NOTE_KIND_DAMAGE;
}

static void release_reading(struct reading *t)
{
	if (!t->status)
		trace_free(t->trace);
	notes_release(&t->notes);
}

static bool is_same_text(const struct trace *a, int64_t x, const struct trace *b, int64_t y)
{
	return (x == EVENT_ABSENT) == (y == EVENT_ABSENT) && strcmp(trace_string(a, x), trace_string(b, y)) == 0;
}

static bool is_same_event(const struct trace *a, const struct event *x, const struct trace *b, const struct event *y)
{
	if (x->ts != y->ts || x->kind != y->kind || x->cpu != y->cpu || x->tid != y->tid || x->pid != y->pid ||
	    !is_same_text(a, x->comm, b, y->comm))
		return false;
	for (unsigned i = 0; i < event_args[x->kind] && x->kind != EV_LOST; i++) {
		const struct role *role = layout_role((enum event_kind)x->kind, i);
		if (role && role->is_text ? !is_same_text(a, x->arg[i], b, y->arg[i]) : x->arg[i] != y->arg[i])
			return false;
	}
	return true;
}

static void compare_streams(const struct reading *a, const struct reading *b, size_t i)
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
		if (more != also || (more == 1 && !is_same_event(a->trace, ex, b->trace, ey)))
			abort();
		if (more < 1)
			break;
	}
	reader_close(&x);
	reader_close(&y);
}

static void compare_readings(const struct reading *a, const struct reading *b)
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
	const uint8_t *dashes = memmem(data, size, separator, sizeof separator - 1);
	const size_t text = dashes ? (size_t)(dashes - data) : size, begin = dashes ? text + sizeof separator - 1 : size;
	const struct replay_file file[] = { { "metadata", data, text }, { "stream_0", data + begin, size - begin } };
	struct reading a, b;
	if (text == 0 || *data == 0x1e)  /* CTF 2: older versions of libbabeltrace2 cannot read it */
		return 0;
	const char *dir = replay_dir(file, 2);
	load_trace(dir, READER_NATIVE, &a);
	if (!a.status) {
		load_trace(dir, READER_BABELTRACE, &b);
		compare_readings(&a, &b);
		release_reading(&b);
	}
	release_reading(&a);
	return 0;
}
