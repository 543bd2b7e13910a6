/* Fuzz target: input as events of a guest with hostile steal clocks and timers. */
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "fuzz_replay.h"
#include "model/inference/steal_clock.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct clock_map identity = { 0 };
	struct error err = ERROR_INIT;
	struct event *ev = mem_new(size / 10 + 1, sizeof *ev);
	int64_t t = 1, last[4] = { INT64_MIN, INT64_MIN, INT64_MIN, INT64_MIN };
	size_t n = 0;
	for (size_t at = 0; at + 10 <= size; at += 10, n++) {
		int64_t value;
		memcpy(&value, data + at + 2, sizeof value);
		t += (int64_t)data[at + 1] << (data[at] >> 3 & 31) % 28;
		ev[n] = (struct event){ .ts = t, .kind = data[at] & 4 ? EV_STEAL : EV_TIMER_ENTRY, .cpu = data[at] & 3,
		                        .tid = -1, .pid = -1 };
		for (size_t i = 0; i < EVENT_ARGS; i++)
			ev[n].arg[i] = EVENT_ABSENT;
		if (ev[n].kind == EV_STEAL) {
			ev[n].steal.ns = value & INT64_MAX;
			ev[n].steal.own = data[at] >> 7;
		} else {
			ev[n].timer.now = value;
		}
	}
	struct trace *trace = trace_from_events("web", ROLE_GUEST, ev, n, NULL, 0);
	struct steal_clock s;
	if (steal_clock_read(&s, trace, &identity, &err) == 0)
		for (size_t i = 0; i < s.gaps; i++) {
			const struct steal_gap *gap = &s.gap[i];
			if (gap->cpu > 3 || gap->begin >= gap->end || gap->begin < last[gap->cpu] || gap->bound < 0)
				abort();
			last[gap->cpu] = gap->end;
		}
	steal_clock_release(&s);
	trace_free(trace);
	free(ev);
	return 0;
}
