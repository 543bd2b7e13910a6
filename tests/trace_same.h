/* Compares two traces, event by event, with the texts of the string ids. */
#pragma once

#include "test.h"

#include "trace/layout/layout.h"
#include "trace/trace.h"

/* Asserts that the events of these kinds are equal. Returns their number. */
static size_t assert_same_events(const struct trace *a, const struct trace *b, event_kinds kinds)
{
	struct error err = ERROR_INIT;
	struct trace_cursor *x = trace_cursor_open(a, kinds, -1, &err), *y = trace_cursor_open(b, kinds, -1, &err);
	struct event p, q;
	size_t n = 0;
	for (;; n++) {
		const int more = trace_cursor_next(x, &p, &err);
		assert_int_equal(trace_cursor_next(y, &q, &err), more);
		if (more <= 0)
			break;
		assert_int_equal(p.ts, q.ts);
		assert_int_equal(p.kind, q.kind);
		assert_int_equal(p.cpu, q.cpu);
		assert_int_equal(p.tid, q.tid);
		assert_int_equal(p.pid, q.pid);
		assert_string_equal(trace_string(a, p.comm), trace_string(b, q.comm));
		for (unsigned i = 0; i < EVENT_ARGS; i++) {
			const struct role *role = layout_role(p.kind, i);
			if (role && role->is_text)  /* ids depend on the order of the threads */
				assert_string_equal(trace_string(a, p.arg[i]), trace_string(b, q.arg[i]));
			else
				assert_int_equal(p.arg[i], q.arg[i]);
		}
	}
	trace_cursor_close(x);
	trace_cursor_close(y);
	return n;
}
