#include "record/participants.h"

#include <poll.h>
#include <stdarg.h>
#include <time.h>

#include "base/base.h"
#include "record/events.h"
#include "record/guest_only.h"
#include "record/proc.h"

#define LEAVE_TIMEOUT 4000000000  /* ns for the scripts to end */
#define STOP_TIMEOUT 1500000000   /* the same after a request to stop: their shells end by themselves, too */

void report_progress(const struct record_options *o, const char *fmt, ...)
{
	char line[1024];
	va_list ap;
	va_start(ap, fmt);
	vsnprintf(line, sizeof line, fmt, ap);
	va_end(ap);
	if (o->on_message)
		o->on_message(o->arg, line);
}

/* ---- available and selected VMs */

enum vm_match { MATCH_NONE, MATCH_PID, MATCH_UUID, MATCH_NAME };

static enum vm_match match_vm(const struct vm *vm, const char *text)
{
	uint64_t pid;
	if (strcmp(vm->name, text) == 0)
		return MATCH_NAME;
	if (vm->uuid && strcmp(vm->uuid, text) == 0)
		return MATCH_UUID;
	return proc_parse_number(text, INT32_MAX, &pid) && (int32_t)pid == vm->pid ? MATCH_PID : MATCH_NONE;
}

/* Returns the VM that the user means: names take precedence over UUIDs, and UUIDs over PIDs, since a VM may have the PID of
 * another one as its name. NULL: none. *n: number of VMs that match equally well. */
static const struct vm *find_vm(const struct participants *p, const char *text, size_t *n)
{
	const struct vm *found = NULL;
	enum vm_match best = MATCH_NONE;
	*n = 0;
	for (size_t i = 0; i < p->vms; i++) {
		const enum vm_match match = match_vm(&p->vm[i], text);
		if (match > best) {
			best = match;
			found = &p->vm[i];
			*n = 0;
		}
		*n += match && match == best;
	}
	return found;
}

static int refuse_name(const struct participants *p, const char *name, struct error *err)
{
	char all[240] = "";
	for (size_t i = 0; i < p->vms; i++) {
		const size_t used = strlen(all);
		snprintf(all + used, sizeof all - used, "%s%s", i ? ", " : "running VMs: ", p->vm[i].name);
	}
	return error_set(err, STATUS_INPUT, *all ? all : "list VMs with virsh list or ps",
	                 "%s: no running virtual machine has this name, UUID or PID",
	                 name);
}

static int check_requests(const struct participants *p, struct error *err)
{
	for (size_t i = 0; i < p->o->n_requested; i++) {
		size_t n;
		const char *name = p->o->requested[i].name;
		if (!find_vm(p, name, &n))
			return refuse_name(p, name, err);
		if (n > 1)
			return error_set(err, STATUS_INPUT, "use the names or PIDs that record --check lists",
			                 "%s: %zu running virtual machines have this UUID", name, n);
	}
	if (p->vms == 0 && !p->o->host_only && !p->host.xen)
		return error_set(err, STATUS_INPUT, p->hidden ? "run as root, or with CAP_SYS_PTRACE"
		                                              : "start a VM, or record the host alone with --host-only",
		                 "no running virtual machine found%s%s", p->hidden ? " (without access to all processes)" : "",
		                 vms_have_gvisor(p->o->root) ? "; the vCPUs of gVisor have no fixed threads" : "");
	return 0;
}

static const struct record_request *find_request(const struct participants *p, const struct vm *vm)
{
	size_t n;
	for (size_t i = 0; i < p->o->n_requested; i++)
		if (find_vm(p, p->o->requested[i].name, &n) == vm)
			return &p->o->requested[i];
	return NULL;
}

static void fail_without_transport(struct guest *g)
{
	const char *vm = g->vm->name;
	char *remedy = mem_printf("use %.40s=ssh:root@HOST, =qga:, =vsock::PORT or =cmd:COMMAND; "
	                          "%.40s=none skips it", vm, vm);
	guest_fail(g, remedy, "no way to reach the guest is configured");
	free(remedy);
}

static int add_guest(struct participants *p, size_t i, struct error *err)
{
	const struct vm *vm = &p->vm[i];
	const struct record_request *request = find_request(p, vm);
	struct transport by = { 0 };
	if (request && request->transport) {
		if (transport_parse(request->transport, &by, err))
			return -1;
	} else {
		by = transport_default(vm);
	}
	struct guest *g = p->guest[i] = mem_new(1, sizeof *g);
	guest_init(g, vm, by);
	const bool excluded = request && request->transport && by.kind == TRANSPORT_NONE;
	g->requested = !p->o->host_only && !excluded && (request || p->o->n_requested == 0);
	if (!g->requested)
		g->transport.kind = TRANSPORT_NONE;
	struct error why = ERROR_INIT;
	if (transport_resolve(&g->transport, vm, p->o->root, &why))
		guest_fail(g, why.remedy, "%s", why.text);
	else if (g->requested && g->transport.kind == TRANSPORT_NONE)
		fail_without_transport(g);
	return 0;
}

/* Finds the Xen host's domains, and sets *xen. */
static int find_domains(struct participants *p, struct xen_host **xen, struct error *err)
{
	if (p->o->hold)
		return error_set(err, STATUS_USAGE, "record without --flight",
		                 "--flight: xentrace cannot overwrite the oldest records of a Xen host");
	*xen = xen_host_new(p->o->xen_events, err);
	p->vm = *xen ? xen_host_domains(*xen, &p->vms, err) : NULL;
	if (p->vm)
		return 0;
	xen_host_free(*xen);
	return -1;
}

/* Programs write their marks to the main buffer, from where the instance gets a copy. */
static void report_stopped_marks(const struct participants *p)
{
	int64_t on;
	if (p->host.tracefs && proc_number("", &on, "%s/tracing_on", p->host.tracefs) && on == 0)
		report_progress(p->o, "tracing is off in %s: marks of programs are not recorded; echo 1 >%s/tracing_on",
		                p->host.tracefs, p->host.tracefs);
}

int participants_init(struct participants *p, const struct record_options *o, struct error *err)
{
	*p = (struct participants){ .o = o, .host.dir = -1 };
	for (size_t i = 0; i < o->events; i++)
		if (!event_is_name(o->event[i]))
			return error_set(err, STATUS_USAGE, "use -e SYSTEM:NAME, for example -e block:block_plug",
			                 "-e %s: not the name of an event", o->event[i]);
	if (guest_request_kinds_parse(&p->guest_requests, o->guest_request_spec, o->guest_request_specs, err))
		return -1;
	p->guest_requests.labels = o->request_labels;
	struct xen_host *xen = NULL;
	if (xen_host_is_here(o->root) && !o->guest_only) {
		if (find_domains(p, &xen, err))
			return -1;
	} else if (o->xen_events) {
		return error_set(err, STATUS_USAGE, "use it as root in dom0",
		                 "--xen-events: this machine is not dom0 of a Xen host");
	} else {
		p->vm = vms_find(o->root, &p->vms, &p->hidden);
	}
	const bool alone = !xen && guest_only_is_wanted(o, p->vms, p->hidden);
	if (alone) {
		vms_free(p->vm, p->vms);
		p->vm = NULL;
		p->vms = 0;
	}
	p->guest = mem_new(p->vms, sizeof *p->guest);
	p->before = mem_new(p->vms + 1, sizeof *p->before);
	p->after = mem_new(p->vms + 1, sizeof *p->after);
	if (alone && guest_only_init(&p->host, o, err))
		return -1;
	if (alone) {
		report_stopped_marks(p);
		return host_add_requests(&p->host, o, err);
	}
	p->host.xen = xen;
	if (check_requests(p, err))
		return -1;
	const int rc = host_init(&p->host, o->root, o->clock, o->event, o->events, err);
	p->host.xen = xen;  /* host_init() cleared it */
	if (rc)
		return -1;
	report_stopped_marks(p);
	if (host_add_requests(&p->host, o, err))
		return -1;
	for (size_t i = 0; i < p->vms; i++)
		if (add_guest(p, i, err))
			return -1;
	p->event = events_wanted(SIDE_GUEST, NULL, o->event, o->events, &p->events);
	return 0;
}

void participants_release(struct participants *p)
{
	for (size_t i = 0; i < p->vms; i++) {
		if (p->guest[i])
			guest_release(p->guest[i]);
		free(p->guest[i]);
	}
	for (size_t i = 0; p->before && i <= p->vms; i++) {
		cgroups_free(p->before[i]);
		cgroups_free(p->after[i]);
	}
	host_release(&p->host);
	events_free(p->event, p->events);
	guest_request_kinds_release(&p->guest_requests);
	free(p->guest);
	free(p->before);
	free(p->after);
	vms_free(p->vm, p->vms);
}

/* ---- communication with all guests */

static void say_of_guest(void *arg, const char *guest, const char *line)
{
	const struct participants *p = arg;
	report_progress(p->o, "%s: %s", guest, line);
}

void participants_start(struct participants *p, const char *task, unsigned hold, unsigned limit, bool overwrite)
{
	p->settings = (struct guest_settings){
		.task = task, .clocks = p->host.tsc ? "x86-tsc mono" : "mono",
		.event = (const char *const *)p->event, .events = p->events, .hold = hold, .limit = limit, .overwrite = overwrite,
		.steal = !p->o->steal || strcmp(p->o->steal, "none") != 0,
		.requests = strcmp(task, "trace") == 0 ? &p->guest_requests : NULL, .say = say_of_guest, .arg = p,
	};
	for (size_t i = 0; i < p->vms; i++)
		if (p->guest[i]->state == GUEST_NONE && p->guest[i]->transport.kind != TRANSPORT_NONE)
			guest_start(p->guest[i], &p->settings);
}

void participants_send_command(struct participants *p, enum guest_state state, const char *word, unsigned timeout)
{
	for (size_t i = 0; i < p->vms; i++)
		if (p->guest[i]->state == state)
			guest_send_command(p->guest[i], word, timeout);
}

void participants_poll(struct participants *p, int64_t ns)
{
	struct pollfd *fd = mem_new(2 * p->vms + 1, sizeof *fd);
	nfds_t n = 0;
	for (size_t i = 0; i < p->vms; i++) {
		const struct guest *g = p->guest[i];
		if (guest_is_open(g) && g->state != GUEST_SENT)
			fd[n++] = (struct pollfd){ g->channel.out, POLLIN, 0 };
		if (guest_is_open(g) && guest_requests_fd(g->requests) >= 0)
			fd[n++] = (struct pollfd){ guest_requests_fd(g->requests), POLLIN, 0 };
	}
	const struct timespec t = { ns / 1000000000, ns % 1000000000 };
	ppoll(fd, n, &t, NULL);
	for (size_t i = 0; i < p->vms; i++)
		if (guest_is_open(p->guest[i]))
			guest_handle_output(p->guest[i]);
	free(fd);
}

bool participants_pending(const struct participants *p, enum guest_state state)
{
	for (size_t i = 0; i < p->vms; i++)
		if (guest_is_open(p->guest[i]) && p->guest[i]->state < state)
			return true;
	return false;
}

static bool has_ended(const struct participants *p, const struct vm *vm)
{
	char *state = proc_stat_word(p->o->root, vm->pid, vm->pid, 0);
	const bool ended = vm->pid > 0 && (!state || *state == 'Z' || *state == 'X');
	free(state);
	return ended;
}

void participants_explain_failures(struct participants *p)
{
	for (size_t i = 0; i < p->vms; i++) {
		struct guest *g = p->guest[i];
		if (g->state == GUEST_FAILED && g->fell_silent && has_ended(p, g->vm))
			error_set(&g->failure, STATUS_INPUT, "only its events on the host were recorded",
			          "the virtual machine ended during the recording");
	}
}

void participants_disconnect(struct participants *p)
{
	const int64_t timeout = now_ns() + (p->o->stop && *p->o->stop ? STOP_TIMEOUT : LEAVE_TIMEOUT);
	bool running = true;
	for (size_t i = 0; i < p->vms; i++) {
		if (!p->guest[i])
			continue;
		guest_send_command(p->guest[i], "bye", 0);
		channel_close_input(&p->guest[i]->channel);
	}
	while (running && now_ns() < timeout) {
		const struct timespec t = { 0, 5000000 };
		running = false;
		for (size_t i = 0; i < p->vms; i++) {
			int status;
			if (p->guest[i] && p->guest[i]->channel.pid)
				running |= !channel_ended(&p->guest[i]->channel, &status);
		}
		if (running)
			nanosleep(&t, NULL);
	}
}

/* ---- results */

static struct record_machine host_result(const struct participants *p)
{
	const struct host *h = &p->host;
	const char *name = h->alone ? h->alone->name : "host";
	struct record_machine m = { .name = mem_dup(name), .requested = true,
	                            .through = mem_dup(h->xen ? "xentrace, tracefs" : "tracefs"),
		.recorded = h->started.known, .bytes = h->bytes, .lost = h->lost, .cpus = h->tracer ? tracer_cpus(h->tracer) : 0 };
	m.about = h->forecast.kilobytes
		? mem_printf("%zu events, clock %s, %llu KiB per CPU", h->events, host_clock(h),
		             (unsigned long long)h->forecast.kilobytes)
		: mem_printf("%zu events, clock %s", h->events, host_clock(h));
	return m;
}

static struct record_machine guest_result(const struct guest *g)
{
	char *release = guest_field(g, "osrelease"), *clock = guest_field(g, "clock");
	struct record_machine m = { .name = mem_dup(g->vm->name), .through = transport_text(&g->transport),
		.requested = g->requested,
		.recorded = g->state == GUEST_SENT, .bytes = g->bytes, .lost = g->lost, .cpus = g->vm->vcpus, .why = g->failure };
	char *steal = guest_field(g, "steal");
	if (release && clock)
		m.about = mem_printf("Linux %.40s, clock %.20s%s", release, clock,
		                     steal && strcmp(steal, "event_probes") == 0 ? ", steal clock" : "");
	else
		m.about = mem_dup("");
	free(release);
	free(clock);
	free(steal);
	return m;
}

void participants_result(const struct participants *p, struct record_result *r)
{
	r->machine = mem_new(p->vms + 1, sizeof *r->machine);
	r->machines = 0;
	r->complete = true;
	r->machine[r->machines++] = host_result(p);
	for (size_t i = 0; i < p->vms; i++)
		if (p->guest[i])
			r->machine[r->machines++] = guest_result(p->guest[i]);
	for (size_t i = 0; i < r->machines; i++)
		r->complete &= !r->machine[i].requested || (r->machine[i].recorded && !r->machine[i].lost);
}

void record_release(struct record_result *r)
{
	for (size_t i = 0; i < r->machines; i++) {
		free(r->machine[i].name);
		free(r->machine[i].through);
		free(r->machine[i].about);
	}
	free(r->machine);
	r->machine = NULL;
	r->machines = 0;
}
