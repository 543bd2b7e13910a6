/* Removes the remains of killed recorders: on the host, in the guests listed in their journals, and in guests named by
 * the user. */
#include <unistd.h>

#include "base/base.h"
#include "record/journal.h"
#include "record/participants.h"
#include "record/probe_definitions.h"
#include "record/record.h"
#include "record/tracer.h"

#define TICK 100000000       /* ns to wait for data before the stop flag is checked */
#define KEEPALIVE_TIMEOUT 60  /* s without a keep-alive message after which a guest ends */

/* Waits until all guests have cleaned up, and reports the results. requested: the user named the guests; reports also
 * that nothing was found. */
static void await_cleaned(struct participants *p, bool requested)
{
	const struct record_options *o = p->o;
	struct guest **guest = p->guest;
	const size_t n = p->vms;
	while (participants_pending(p, GUEST_ENDED) && !(o->stop && *o->stop))
		participants_poll(p, TICK);
	for (size_t i = 0; i < n; i++) {
		if (guest[i]->removed)
			report_progress(o, "%s: removed the remains of %u recording%s", guest[i]->vm->name, guest[i]->removed,
			    guest[i]->removed == 1 ? "" : "s");
		if (guest[i]->not_removed || guest[i]->state == GUEST_FAILED)
			report_progress(o, "%s: %s", guest[i]->vm->name,
			                guest[i]->not_removed ? "some remains are in use and were not removed"
			                                      : guest[i]->failure.text);
		else if (requested && guest[i]->state == GUEST_ENDED && !guest[i]->removed)
			report_progress(o, "%s: no remains found", guest[i]->vm->name);
	}
}

static bool is_connected(const struct participants *p, const struct transport *by)
{
	char *text = transport_text(by);
	bool found = false;
	for (size_t i = 0; i < p->vms && !found; i++) {
		char *other = transport_text(&p->guest[i]->transport);
		found = strcmp(text, other) == 0;
		free(other);
	}
	free(text);
	return found;
}

/* Starts the script in a guest of a dead recorder; only its name and transport are known. vm: storage for its
 * description. */
static void clean_guest(struct participants *p, const struct journal_guest *s, struct vm *vm)
{
	static const struct guest_settings settings = { .task = "clean", .clocks = "", .hold = 1, .limit = KEEPALIVE_TIMEOUT };
	struct transport by;
	if (transport_parse(s->transport, &by, NULL))
		return;
	if (is_connected(p, &by)) {
		transport_release(&by);
		return;
	}
	vm->name = s->name;
	struct guest *g = p->guest[p->vms++] = mem_new(1, sizeof *g);
	guest_init(g, vm, by);
	guest_start(g, &settings);
}

/* Cleans up the guests of all dead recorders in parallel. */
static void clean_guests(const struct record_options *o, const struct journal *stale, size_t n)
{
	size_t max_guests = 0;
	for (size_t i = 0; i < n; i++)
		max_guests += stale[i].guests;
	if (!max_guests)
		return;
	struct vm *vm = mem_new(max_guests, sizeof *vm);
	struct participants p = { .o = o, .guest = mem_new(max_guests, sizeof *p.guest) };
	report_progress(o, "cleaning up after a killed recording");
	for (size_t i = 0; i < n; i++)
		for (size_t k = 0; k < stale[i].guests; k++)
			clean_guest(&p, &stale[i].guest[k], &vm[p.vms]);
	await_cleaned(&p, false);
	for (size_t i = 0; i < p.vms; i++) {
		guest_release(p.guest[i]);
		free(p.guest[i]);
	}
	free(p.guest);
	free(vm);
}

/* Cleans up the guests that the user named. */
static int clean_requested(const struct record_options *o, struct error *err)
{
	struct participants p;
	const int rc = participants_init(&p, o, err);
	if (rc == 0) {
		participants_start(&p, "clean", 1, KEEPALIVE_TIMEOUT, false);
		await_cleaned(&p, true);
	}
	participants_release(&p);
	return rc;
}

int record_cleanup(const struct record_options *o, struct error *err)
{
	size_t n, failed;
	struct journal *stale = journal_stale(o->root, &n);
	size_t probes_failed = 0;
	const size_t removed = tracer_clean(o->root, &failed);
	const char *tracefs = tracer_find_tracefs(o->root, false, NULL);
	const size_t probes = tracefs ? probes_clean(o->root, tracefs, &probes_failed) : 0;
	if (probes)
		report_progress(o, "removed %zu probe%s of killed recordings", probes, probes == 1 ? "" : "s");
	failed += probes_failed;
	if (removed)
		report_progress(o, "host: removed the remains of %zu recording%s", removed, removed == 1 ? "" : "s");
	else if (err && !failed)
		report_progress(o, "host: no remains found");
	clean_guests(o, stale, n);
	for (size_t i = 0; i < n; i++) {
		if (!(o->stop && *o->stop))
			unlink(stale[i].path);
		journal_release(&stale[i]);
	}
	free(stale);
	if (err && o->n_requested && clean_requested(o, err))
		return -1;
	if (failed)
		return error_set(err, STATUS_SYSTEM, "end the processes that use them: fuser -v /sys/kernel/tracing/instances/*",
		                 "host: %zu tracefs instance%s of killed recorders still in use", failed,
		                 failed == 1 ? " is" : "s are");
	return 0;
}
