/* Runs a recording: prepares all machines, starts the host before the guests, stops the host after the guests, then
 * fetches the buffers of the guests and writes the metadata. A flight recording repeats this for each snapshot. */
#include "record/record.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "record/disk_space.h"
#include "record/guest_only.h"
#include "record/metadata.h"
#include "record/recording_dir.h"
#include "record/journal.h"
#include "record/participants.h"
#include "record/transport.h"
#include "record/trigger.h"

#define TICK (NS_PER_S / 10)
#define KEEPALIVE_PERIOD 15   /* s between two keep-alive messages to guests */
#define KEEPALIVE_TIMEOUT 60  /* s without a keep-alive message after which a guest ends */
#define SHORT_GRACE 30        /* the same after the end of a recording that is shorter, s */
#define COMMAND_TIMEOUT 30    /* s for a guest to execute a command: its CPUs may be contended */
#define TERM_TIMEOUT 5        /* s for the user's command to end after SIGTERM */

struct recording {
	const struct record_options *o;
	struct participants participants;
	struct journal journal;
	bool created;        /* this process created the output directory */
	int dir;             /* descriptor of the directory of the recording, or of the current snapshot; -1: none */
	struct triggers *triggers;  /* NULL: no flight recording */
	const char *fired;   /* text of the trigger that fired; NULL: none */
	int64_t keepalive_sent;  /* time of the last keep-alive message, monotonic ns */
	uint64_t reserve;    /* bytes of the disk that the recording leaves free */
	pid_t command;       /* the user's command; 0: does not run */
	int command_status;  /* its wait status */
	const char *early_end;  /* reason why the recording ended early; NULL: it did not */
};

/* level: 1: end the recording; 2: without fetching the guests' buffers. */
static bool stop_requested(const struct recording *r, int level)
{
	return r->o->stop && *r->o->stop >= level;
}

/* ---- waiting: handles data from guests, and reads the host's buffers */

/* Returns the ns to wait for messages from guests before the next check. Long waits are better: each wakeup costs the
 * traced machines CPU time. */
static int64_t wait_limit(const struct recording *r)
{
	const struct host *h = &r->participants.host;
	const bool reads = h->dir >= 0 && !h->hold;
	const int64_t due = reads ? h->next_check - now_ns() : TICK;
	if (r->triggers || r->command > 0 || due < TICK || h->quotas)
		return TICK;
	return due < NS_PER_S / 2 ? due : NS_PER_S / 2;
}

static int poll_once(struct recording *r, int64_t until, struct error *err)
{
	const int64_t remaining = until - now_ns(), limit = wait_limit(r);
	participants_poll(&r->participants, remaining < 0 ? 0 : remaining < limit ? remaining : limit);
	if (now_ns() - r->keepalive_sent > KEEPALIVE_PERIOD * NS_PER_S) {
		r->keepalive_sent = now_ns();
		participants_send_command(&r->participants, GUEST_READY, "more", 3600);
		participants_send_command(&r->participants, GUEST_STARTED, "more", 0);
	}
	return r->participants.host.dir >= 0 ? host_tick(&r->participants.host, err) : 0;
}

/* Waits until all guests have reached a state or failed, or until a stop is requested at this level. */
static int await_guests(struct recording *r, enum guest_state state, int stop_level, struct error *err)
{
	while (participants_pending(&r->participants, state) && !stop_requested(r, stop_level))
		if (poll_once(r, INT64_MAX, err))
			return -1;
	return 0;
}

/* ---- preparation */

static int write_journal(struct recording *r, struct error *err)
{
	char *real = realpath(r->o->output, NULL);
	r->journal.dir = real ? real : mem_dup(r->o->output);
	for (size_t i = 0; i < r->participants.vms; i++) {
		const struct guest *g = r->participants.guest[i];
		char *transport = transport_text(&g->transport);
		if (g->state == GUEST_NONE && g->transport.kind != TRANSPORT_NONE)
			journal_add_guest(&r->journal, g->vm->name, transport);
		free(transport);
	}
	return journal_write(r->o->root, &r->journal, err);
}

/* Raises the limit of open files, since each CPU needs several. */
static void raise_file_limit(void)
{
	struct rlimit l;
	if (getrlimit(RLIMIT_NOFILE, &l) == 0 && l.rlim_cur < l.rlim_max) {
		l.rlim_cur = l.rlim_max < 65536 ? l.rlim_max : 65536;
		setrlimit(RLIMIT_NOFILE, &l);
	}
}

static int check_free_space(struct recording *r, struct error *err)
{
	const int64_t duration = r->o->duration ? r->o->duration : 10 * NS_PER_S;
	const uint64_t free_bytes = dir_free_bytes(r->dir);
	uint64_t bytes = r->participants.host.forecast.rate * (uint64_t)(duration / 1000000) / 1000;
	char time[TIME_TEXT];
	time_duration(time, duration);
	r->reserve = forecast_disk_reserve(dir_disk_size(r->dir), bytes);
	if (free_bytes < r->reserve || free_bytes - r->reserve < bytes)
		return error_set(err, STATUS_SYSTEM, "use a shorter -t, or -o on another disk",
		                 "%s: too little disk space: the recording needs about %llu MB; %llu MB are free, "
		                 "of which %llu MB are reserved",
		                 r->o->output, (unsigned long long)(bytes >> 20) + 1, (unsigned long long)(free_bytes >> 20),
		                 (unsigned long long)(r->reserve >> 20));
	bytes += disk_space_select_guests(&r->participants, duration, free_bytes - r->reserve - bytes);
	report_progress(r->o, "recording%s%s: about %llu MB", r->o->duration ? " " : "", r->o->duration ? time : "",
	    (unsigned long long)((bytes >> 20) + 1));
	return 0;
}

static void read_settings(struct participants *p, bool after)
{
	for (size_t i = p->host.xen ? p->vms : 0; i <= p->vms; i++) {  /* domains of Xen have no control groups */
		struct cgroups **c = after ? &p->after[i] : &p->before[i];
		cgroups_free(*c);
		*c = i < p->vms ? cgroups_read_vm(p->o->root, &p->vm[i]) : cgroups_read_host(p->o->root, p->vm, p->vms);
	}
	for (size_t i = 0; i < p->vms; i++)
		vm_read_tsc(p->o->root, &p->vm[i], after ? p->guest[i]->after : p->guest[i]->before);
}

static int prepare_machines(struct recording *r, struct error *err)
{
	const int64_t t = r->o->hold ? r->o->hold : r->o->duration;
	r->participants.host.hold = r->o->hold;
	const unsigned seconds = t ? (unsigned)((t + NS_PER_S - 1) / NS_PER_S) : 0;
	raise_file_limit();
	if (write_journal(r, err))
		return -1;
	participants_start(&r->participants, "trace", seconds ? seconds + 1 : 2,
	             seconds && seconds + SHORT_GRACE < KEEPALIVE_TIMEOUT ? seconds + SHORT_GRACE : KEEPALIVE_TIMEOUT,
	           r->o->hold > 0);
	r->keepalive_sent = now_ns();
	if (host_prepare(&r->participants.host, t, err) || await_guests(r, GUEST_READY, 1, err))
		return -1;
	return stop_requested(r, 1) ? error_set(err, STATUS_CANCELLED, NULL, "the recording was stopped before it began")
	                            : check_free_space(r, err);
}

/* ---- recording */

static void start_command(struct recording *r)
{
	char *const *argv = r->o->command;
	if (!argv || r->command > 0)
		return;
	fflush(NULL);
	r->command = fork();
	if (r->command == 0) {
		signal(SIGPIPE, SIG_DFL);
		execvp(argv[0], argv);
		fprintf(stderr, "stealscope: %s: %s\n", argv[0], strerror(errno));
		_exit(errno == ENOENT ? 127 : 126);
	}
}

static bool command_ended(struct recording *r)
{
	if (r->command <= 0 || waitpid(r->command, &r->command_status, WNOHANG) != r->command)
		return false;
	r->command = 0;
	return true;
}

static void end_command(struct recording *r)
{
	if (r->command > 0)
		r->command_status = child_end(r->command, 0);
	r->command = 0;
}

/* Ends the user's command by SIGTERM; the recording continues until the command has ended, or TERM_TIMEOUT. */
static int terminate_command(struct recording *r, struct error *err)
{
	const int64_t end = now_ns() + TERM_TIMEOUT * NS_PER_S;
	if (r->command > 0)
		kill(r->command, SIGTERM);
	while (r->command > 0 && !command_ended(r) && now_ns() < end && !stop_requested(r, 2))
		if (poll_once(r, end, err))
			return -1;
	end_command(r);
	return 0;
}

/* Sets r->early_end if the disk cannot hold what the machines' buffers contain. Returns true then. */
static bool check_disk(struct recording *r)
{
	if (dir_free_bytes(r->dir) < r->reserve + disk_space_buffered(&r->participants))
		r->early_end = "the disk is nearly full";
	return r->early_end != NULL;
}

/* Sets r->fired. Returns true if a trigger fired. */
static bool check_triggers(struct recording *r)
{
	r->fired = r->triggers ? triggers_check(r->triggers, now_ns()) : NULL;
	if (r->triggers && !r->fired && r->o->fire && *r->o->fire)
		r->fired = "signal";
	return r->fired != NULL;
}

/* Returns 0 when the recording shall end, or when a trigger has fired (r->fired). */
static int record_until_end(struct recording *r, struct error *err)
{
	const int64_t end = r->o->duration ? now_ns() + r->o->duration : INT64_MAX;
	int64_t checked = now_ns();
	start_command(r);
	while (now_ns() < end && !stop_requested(r, 1) && !r->early_end && !command_ended(r)) {
		if (poll_once(r, end, err))
			return -1;
		if (check_triggers(r))
			return 0;
		if (now_ns() - checked < NS_PER_S)
			continue;
		checked = now_ns();
		check_disk(r);
	}
	return terminate_command(r, err);
}

static int open_host_dir(struct recording *r, struct error *err)
{
	const struct guest_only *alone = r->participants.host.alone;
	struct xen_host *xen = r->participants.host.xen;
	if (xen && xen_host_store_in(xen, r->dir, err))
		return -1;
	const int dir = dir_make_machine(r->dir, alone ? alone->dir_name : xen ? XEN_DOM0_DIR : "host", err);
	return dir < 0 ? -1 : host_store_in(&r->participants.host, dir, err);
}

/* Creates directories for the guests in this state. */
static void open_guest_dirs(struct recording *r, enum guest_state state)
{
	for (size_t i = 0; i < r->participants.vms; i++) {
		struct guest *g = r->participants.guest[i];
		struct error err = ERROR_INIT;
		if (g->state != state)
			continue;
		char *name = mem_printf("guest-%s", g->vm->dir);
		const int dir = dir_make_machine(r->dir, name, &err);
		free(name);
		if (dir < 0)
			guest_fail(g, err.remedy, "%s", err.text);
		else
			guest_store_in(g, dir);
	}
}

/* Allows each guest an equal share of the free disk space. */
static void share_disk(struct recording *r)
{
	const uint64_t free_bytes = dir_free_bytes(r->dir), reserved = r->reserve / 2;
	size_t guests = 0;
	for (size_t i = 0; i < r->participants.vms; i++)
		guests += guest_is_open(r->participants.guest[i]);
	for (size_t i = 0; i < r->participants.vms; i++) {
		struct guest *g = r->participants.guest[i];
		g->max_bytes = g->bytes + (guests && free_bytes > reserved ? (free_bytes - reserved) / guests : 0);
	}
}

static int start_recording(struct recording *r, struct error *err)
{
	read_settings(&r->participants, false);
	if (!r->o->hold) {
		if (open_host_dir(r, err))
			return -1;
		open_guest_dirs(r, GUEST_READY);
		share_disk(r);
	}
	if (host_start(&r->participants.host, r->participants.before[r->participants.vms], err))
		return -1;
	participants_send_command(&r->participants, GUEST_READY, "go", COMMAND_TIMEOUT);
	if (await_guests(r, GUEST_STARTED, 2, err))
		return -1;
	for (size_t i = 0; i < r->participants.vms; i++)
		r->participants.guest[i]->deadline = 0;
	return 0;
}

/* ---- end */

static int stop_recording(struct recording *r, struct error *err)
{
	participants_send_command(&r->participants, GUEST_STARTED, "stop", COMMAND_TIMEOUT);
	if (await_guests(r, GUEST_STOPPED, 2, err) || host_stop(&r->participants.host, err))
		return -1;
	read_settings(&r->participants, true);
	if (r->o->hold)
		open_guest_dirs(r, GUEST_STOPPED);
	share_disk(r);
	participants_send_command(&r->participants, GUEST_STOPPED, "send", COMMAND_TIMEOUT);
	return 0;
}

static void fetch_guests(struct recording *r)
{
	while (participants_pending(&r->participants, GUEST_SENT) && !stop_requested(r, 2))
		participants_poll(&r->participants, TICK);
	for (size_t i = 0; i < r->participants.vms; i++)
		if (guest_is_open(r->participants.guest[i]) && r->participants.guest[i]->state < GUEST_SENT)
			guest_fail(r->participants.guest[i], "press ^C only once: the second ^C does not wait for guests",
			           "the guest's trace was not transferred: interrupted by a second ^C");
	participants_explain_failures(&r->participants);
}

/* Removes the incomplete traces of guests that failed. */
static void remove_failed_guests(struct recording *r)
{
	for (size_t i = 0; i < r->participants.vms; i++) {
		const struct guest *g = r->participants.guest[i];
		char *name = mem_printf("guest-%s", g->vm->dir);
		if (g->state == GUEST_FAILED)
			dir_remove(r->dir, name);
		free(name);
	}
}

static int describe_recording(struct recording *r, struct error *err)
{
	struct participants *p = &r->participants;
	const struct session_metadata metadata = { &p->host, p->guest, p->before, p->after, p->vms, NULL };
	if (p->host.alone)
		return guest_only_describe(&p->host, p->before[p->vms], p->after[p->vms], r->dir, err);
	if (metadata_write_host(&p->host, err))
		return -1;
	for (size_t i = 0; i < p->vms; i++) {
		struct error why = ERROR_INIT;
		if (p->guest[i]->state == GUEST_SENT && metadata_write_guest(p->guest[i], &p->host, &why))
			guest_fail(p->guest[i], why.remedy, "%s", why.text);
	}
	remove_failed_guests(r);
	return metadata_write_session(&metadata, r->dir, err);
}

static int run_recording(struct recording *r, struct error *err)
{
	if (prepare_machines(r, err) || start_recording(r, err))
		return -1;
	const int rc = record_until_end(r, err);
	struct error later_err = ERROR_INIT;  /* after a failure, the data recorded before is stored all the same */
	if (stop_recording(r, rc ? &later_err : err))
		return -1;
	fetch_guests(r);
	return describe_recording(r, rc ? &later_err : err) ? -1 : rc;
}

/* ---- flight recordings */

/* Creates a snapshot's directory, named after the time: OUTPUT/20261122-063001, or with -2, -3, ... if it exists. */
static int make_snapshot_dir(struct recording *r, char **path, struct error *err)
{
	char name[32];
	const time_t now = time(NULL);
	struct tm tm;
	localtime_r(&now, &tm);
	strftime(name, sizeof name, "%Y%m%d-%H%M%S", &tm);
	*path = mem_printf("%s/%s", r->o->output, name);
	for (unsigned n = 2; access(*path, F_OK) == 0 && n < 100; n++) {
		free(*path);
		*path = mem_printf("%s/%s-%u", r->o->output, name, n);
	}
	if (r->dir >= 0)
		close(r->dir);
	bool created;
	r->dir = dir_make(*path, &created, err);
	return r->dir < 0 ? -1 : 0;
}

/* Removes the directory of a snapshot that could not be saved, which no command can read. */
static void remove_snapshot(const struct recording *r, const char *path)
{
	const int parent = open(r->o->output, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (parent >= 0) {
		dir_remove(parent, strrchr(path, '/') + 1);
		close(parent);
	}
}

/* Stops tracing, saves the buffers of all machines in a new directory, and reports the snapshot. */
static int save_snapshot(struct recording *r, struct error *err)
{
	char *path = NULL;
	struct record_result result;
	report_progress(r->o, "%s: the last seconds were saved", r->fired);
	if (r->o->fire)
		*r->o->fire = 0;
	int rc = make_snapshot_dir(r, &path, err);
	if (rc == 0)
		rc = open_host_dir(r, err);
	if (rc == 0)
		rc = stop_recording(r, err);
	if (rc == 0) {
		fetch_guests(r);
		rc = describe_recording(r, err);
	}
	if (rc == 0) {
		participants_result(&r->participants, &result);
		if (r->o->on_snapshot)
			r->o->on_snapshot(r->o->arg, path, &result);
		record_release(&result);
	} else if (path && r->dir >= 0) {
		remove_snapshot(r, path);
	}
	free(path);
	return rc;
}

static int run_flight_recording(struct recording *r, struct error *err)
{
	const struct participants *p = &r->participants;
	r->triggers = triggers_new(r->o->root, r->o->trigger, r->o->triggers, p->vm, p->vms, err);
	if (!r->triggers || prepare_machines(r, err))
		return -1;
	for (size_t n = 0; !stop_requested(r, 1) && !r->early_end &&
	     (n == 0 || n < r->o->max_snapshots || !r->o->max_snapshots);
	     n++) {
		if (start_recording(r, err))
			return -1;
		triggers_arm(r->triggers, now_ns(), r->o->hold);
		if (record_until_end(r, err))
			return -1;
		if (!r->fired || check_disk(r))
			break;
		if (save_snapshot(r, err))
			return -1;
		for (size_t i = 0; i < p->vms; i++)
			guest_reset(p->guest[i]);
	}
	return 0;
}

/* ---- public functions */

static void end_recording(struct recording *r)
{
	end_command(r);
	triggers_free(r->triggers);
	participants_disconnect(&r->participants);
	participants_release(&r->participants);
	journal_remove(&r->journal);
	journal_release(&r->journal);
	if (r->dir >= 0)
		close(r->dir);
	if (r->created)
		rmdir(r->o->output);  /* succeeds only if nothing was recorded */
}

static void add_early_end(const struct recording *r, struct record_result *result)
{
	result->command_status = r->command_status;
	if (r->early_end && result->machines > 0) {
		result->complete = false;
		error_set(&result->machine[0].why, STATUS_INCOMPLETE, "use -o on another disk, or a shorter -t",
		          "the recording ended early: %s",
		          r->early_end);
	}
}

int record_run(const struct record_options *o, struct record_result *result, struct error *err)
{
	struct recording r = { .o = o, .dir = -1 };
	*result = (struct record_result){ 0 };
	signal(SIGPIPE, SIG_IGN);
	int rc = participants_init(&r.participants, o, err);
	if (rc == 0)
		rc = host_check_events(&r.participants.host, err);
	if (rc == 0) {
		record_cleanup(o, NULL);
		r.dir = dir_make(o->output, &r.created, err);
		rc = r.dir < 0 ? -1 : o->hold ? run_flight_recording(&r, err) : run_recording(&r, err);
	}
	if (r.dir >= 0) {
		participants_result(&r.participants, result);
		add_early_end(&r, result);
	}
	end_recording(&r);
	return rc;
}

int record_check(const struct record_options *o, struct record_result *result, struct error *err)
{
	struct participants p;
	*result = (struct record_result){ 0 };
	signal(SIGPIPE, SIG_IGN);
	int rc = participants_init(&p, o, err);
	if (rc == 0) {
		struct error why = ERROR_INIT;
		participants_start(&p, "check", 1, KEEPALIVE_TIMEOUT, false);
		while (participants_pending(&p, GUEST_ENDED) && !(o->stop && *o->stop))
			participants_poll(&p, TICK);
		participants_result(&p, result);
		result->machine[0].recorded = host_check_events(&p.host, &why) == 0;
		result->machine[0].why = why;
		for (size_t i = 0; i < p.vms; i++)
			result->machine[i + 1].recorded = p.guest[i]->state == GUEST_ENDED;
	}
	participants_release(&p);
	return rc;
}
