/* Fuzz target: input as an xentrace file, scanned and decoded; and as a text of xl. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "trace/string_table.h"
#include "trace/xen/xen.h"
#include "fuzz_replay.h"
#include "fuzz_sink.h"

struct sink { struct event_sink sink; uint64_t events; };

static bool is_exit_possible(const struct event *ev)
{
	const int64_t reason = ev->vcpu_exit.reason, call = ev->vcpu_exit.ret;
	if (ev->vcpu_exit.isa == EXIT_ISA_XEN_PV)
		return reason >= XEN_PV_TRAP && reason < XEN_PV_HYPERCALL + (1 << 20) && call == EVENT_ABSENT;
	return reason >= 0 && reason <= UINT32_MAX && (call == EVENT_ABSENT || (call >= 0 && call <= UINT8_MAX)) &&
	       (ev->vcpu_exit.isa == EXIT_ISA_VMX || ev->vcpu_exit.isa == EXIT_ISA_SVM);
}

static int put(struct event_sink *o, const struct event *ev)
{
	if (ev->ts < 0 || (ev->kind == EV_VCPU_STATE && (ev->vcpu_state.state >= VCPU_RUN_STATES ||
	                                                   ev->vcpu_state.state < 0)) ||
	    (ev->kind == EV_VCPU_EXIT && !is_exit_possible(ev)) ||
	    (ev->kind == EV_LOST && ev->lost.end < ev->ts))
		abort();
	((struct sink *)o)->events++;
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct event_sink_ops ops = { put, NULL, add_coverage, report_damage, report_progress };
	int fd;
	struct error err = ERROR_INIT;
	struct sink sink = { .sink = { .ops = &ops, .err = &err } };
	const char *path = replay_file(data, size, &fd);
	struct string_table names;
	struct string_cache cache;
	struct xen_file f = { .texts = { .millihertz = UINT64_C(2596128000000), .exit_isa = EXIT_ISA_VMX } };
	string_table_init(&names);
	string_cache_init(&cache, &names);
	char *text = malloc(size + 1);
	memcpy(text, data, size);
	text[size] = '\0';
	xen_texts_add(&f.texts, text);
	f.texts.has_idle_ns = true;
	free(text);
	uint64_t bytes = 0;
	if (xen_file_scan(&f, fd))
		abort();
	const struct clock_scale scale = { .millihertz = f.texts.millihertz, .is_tsc = true };
	f.texts.exit_isa = 0;
	const int isa = xen_find_exit_isa(&f, fd, path, &scale, &cache);
	if (isa && isa != EXIT_ISA_VMX && isa != EXIT_ISA_SVM)
		abort();
	f.texts.exit_isa = EXIT_ISA_VMX;
	for (size_t i = 0; i < f.pcpus; i++) {
		bytes += f.pcpu[i].bytes;
		if (xen_pcpu_decode(&f, &f.pcpu[i], fd, path, &scale, &cache, &sink.sink))
			abort();
	}
	if (bytes > size || sink.events * 4 > size)
		abort();
	xen_file_release(&f);
	string_cache_release(&cache);
	string_table_release(&names);
	close(fd);
	return 0;
}
