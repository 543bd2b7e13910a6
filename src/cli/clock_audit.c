#include "cli/clock_audit.h"

#include "base/base.h"

#define MIN_CONTAINMENT 0.98  /* minimum share of events within guest mode */

static const struct column columns[] = {
	{ "guest", "guest", COL_TEXT },
	{ "made_by", "clock of", COL_TEXT },
	{ "events", "events", COL_INT },
	{ "outside", "outside", COL_INT },
	{ "outside_share", "share", COL_SHARE },
	{ "worst_violation_ns", "worst", COL_DURATION },
	{ "verdict", "verdict", COL_TEXT },
};

static const char *clock_source(const struct input *in, const struct sync_vm *vm)
{
	const struct trace_info *info = trace_info(vm->guest);
	if (vm->method == SYNC_TSC)
		return "TSC";
	for (size_t i = 0; i < in->hints; i++)
		if (in->hint[i].has_offset && strcmp(in->hint[i].guest, info->machine) == 0)
			return "session";
	if (!info->corrected)
		return "the traces";
	return strcmp(info->reader, "perfetto") == 0 ? "Perfetto" : "trace-cmd";
}

static const char *clock_verdict(const struct sync_vm *vm)
{
	if (vm->containment < 0)
		return "unknown";
	return vm->outside == 0 ? "holds" : vm->containment >= MIN_CONTAINMENT ? "nearly holds" : "refuted";
}

int clock_audit(const struct input *in, const struct sync_result *sync, struct report_how how, struct error *err)
{
	static const struct report_shape shape = REPORT_SHAPE("sync-audit", columns);
	struct report *r = report_begin(stdout, how, &shape, NULL);
	const char *violated = NULL;
	for (size_t i = 0; i < sync->vms; i++) {
		const struct sync_vm *vm = &sync->vm[i];
		const bool known = vm->containment >= 0;
		if (!vm->guest)
			continue;
		report_row(r, (struct value[]){ VAL_TEXT(vm->name), VAL_TEXT(clock_source(in, vm)),
			VAL_INT((int64_t)(vm->inside + vm->outside)), VAL_INT((int64_t)vm->outside),
			known ? VAL_REAL(1 - vm->containment) : VAL_NONE, known ? VAL_INT(vm->worst_violation) : VAL_NONE,
			VAL_TEXT(clock_verdict(vm)) });
		violated = known && vm->containment < MIN_CONTAINMENT ? vm->name : violated;
	}
	if (report_end(r, err))
		return -1;
	return violated ? error_set(err, STATUS_ASSERTION, "stealscope sync without --audit computes a clock from events",
	                           "%s: events contradict the recorded clock", violated) : 0;
}
