/* The course of a recording: everybody gets ready; the host begins before its guests and ends after them; then what the
 * guests' buffers hold is fetched, and what was learned is written beside it. */
#include "record/record.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/clock.h"
#include "base/timefmt.h"
#include "record/metadata.h"
#include "record/recording_dir.h"
#include "record/journal.h"
#include "record/participants.h"
#include "record/proc.h"
#include "record/transport.h"
#include "record/trigger.h"

#define SECOND 1000000000LL
#define TICK (SECOND / 10)
#define LISTENED 15     /* s between two signs of life for guests */
#define LIMIT 60        /* s that a guest goes on without one */
#define GRACE 30        /* s beyond the recording, when that is shorter */
#define ANSWER 30       /* s that a guest may take for a word: it may hardly get a CPU */
#define END_PATIENCE 5  /* s that the command may take to end once it was asked to */

struct recording {
	const struct record_options *o;
	struct members members;
	struct journal journal;
	int folder;          /* descriptor, of the recording; of a flight: of what is kept of it */
	struct triggers *triggers;
	const char *fired;   /* the trigger that did, or NULL */
	int64_t listened;    /* when the guests were given a sign of life last */
	pid_t command;
	int command_status;
	const char *ended_by;  /* what ended it before its time, or NULL */
	struct error why;      /* and what of the host is missing for that */
};

static bool is_stopped(const struct recording *r, int how)
{
	return r->o->stop && *r->o->stop >= how;
}

/* ---- waiting: guests talk, the host's buffers are read */

/* ns until something must be looked at again; what guests say wakes it up anyway, and each time that it wakes up is taken
 * from somebody. */
static int64_t doze(const struct recording *r)
{
	const struct host *h = &r->members.host;
	const bool reads = h->folder >= 0 && !h->hold;
	const int64_t due = reads ? h->look_at - now_ns() : TICK;
	if (r->triggers || r->command > 0 || due < TICK)
		return TICK;
	return due < SECOND / 2 ? due : SECOND / 2;
}

static int tick(struct recording *r, int64_t until, struct error *err)
{
	const int64_t left = until - now_ns(), most = doze(r);
	members_listen(&r->members, left < 0 ? 0 : left < most ? left : most);
	if (now_ns() - r->listened > LISTENED * SECOND) {
		r->listened = now_ns();
		members_say(&r->members, GUEST_READY, "more", 3600);
		members_say(&r->members, GUEST_STARTED, "more", 0);
	}
	return r->members.host.folder >= 0 ? host_tick(&r->members.host, err) : 0;
}

/* Until all guests have got so far, or failed, or it was stopped so often. */
static int await(struct recording *r, enum guest_state state, int how, struct error *err)
{
	while (members_waits_for(&r->members, state) && !is_stopped(r, how))
		if (tick(r, INT64_MAX, err))
			return -1;
	return 0;
}

/* ---- before */

static int open_state(struct recording *r, struct error *err)
{
	char *real = realpath(r->o->output, NULL);
	r->journal.folder = real ? real : mem_dup(r->o->output);
	for (size_t i = 0; i < r->members.vms; i++) {
		const struct guest *g = r->members.guest[i];
		char *transport = transport_text(&g->by);
		if (g->state == GUEST_NONE && g->by.kind != TRANSPORT_NONE)
			journal_add_guest(&r->journal, g->vm->name, transport);
		free(transport);
	}
	return journal_write(r->o->root, &r->journal, err);
}

/* Each CPU takes some descriptors. */
static void raise_limits(void)
{
	struct rlimit l;
	if (getrlimit(RLIMIT_NOFILE, &l) == 0 && l.rlim_cur < l.rlim_max) {
		l.rlim_cur = l.rlim_max < 65536 ? l.rlim_max : 65536;
		setrlimit(RLIMIT_NOFILE, &l);
	}
}

/* Bytes that guests' buffers may come to hold. */
static uint64_t expected_of_guests(const struct members *p, int64_t duration)
{
	uint64_t bytes = 0;
	for (size_t i = 0; i < p->vms; i++) {
		const struct guest *g = p->guest[i];
		if (g->state >= GUEST_READY && guest_is_open(g))
			bytes += (uint64_t)((double)g->rate * 1024 * (double)g->vm->vcpus * (double)duration / SECOND);
	}
	return bytes;
}

static int check_room(struct recording *r, struct error *err)
{
	const int64_t duration = r->o->duration ? r->o->duration : 10 * SECOND;
	const uint64_t room = folder_room(r->folder), guests = expected_of_guests(&r->members, duration);
	const uint64_t bytes = r->members.host.forecast.rate * (uint64_t)(duration / 1000000) / 1000 + guests;
	char time[TIME_TEXT];
	time_duration(time, duration);
	if (room < FORECAST_DISK_KEPT || room - FORECAST_DISK_KEPT < bytes)
		return error_set(err, STATUS_SYSTEM, "a shorter -t, or -o on another disk",
		                 "%s would take about %llu MB, and its disk has room for %llu, of which %llu are left to others",
		                 r->o->output, (unsigned long long)(bytes >> 20) + 1, (unsigned long long)(room >> 20),
		                 FORECAST_DISK_KEPT >> 20);
	say(r->o, "recording%s%s: about %llu MB", r->o->duration ? " " : "", r->o->duration ? time : "",
	    (unsigned long long)((bytes >> 20) + 1));
	return 0;
}

static void take_facts(struct members *p, bool after)
{
	for (size_t i = 0; i <= p->vms; i++) {
		struct cgroups **c = after ? &p->after[i] : &p->before[i];
		cgroups_free(*c);
		*c = i < p->vms ? cgroups_take(p->o->root, &p->vm[i]) : cgroups_take_host(p->o->root, p->vm, p->vms);
	}
	for (size_t i = 0; i < p->vms; i++)
		vm_read_tsc(p->o->root, &p->vm[i], after ? p->guest[i]->after : p->guest[i]->before);
}

static int prepare(struct recording *r, struct error *err)
{
	const int64_t t = r->o->hold ? r->o->hold : r->o->duration;
	r->members.host.hold = r->o->hold;
	const unsigned seconds = t ? (unsigned)((t + SECOND - 1) / SECOND) : 0;
	raise_limits();
	if (open_state(r, err))
		return -1;
	members_call(&r->members, "trace", seconds ? seconds + 1 : 2,
	             seconds && seconds + GRACE < LIMIT ? seconds + GRACE : LIMIT,
	           r->o->hold > 0);
	r->listened = now_ns();
	if (host_prepare(&r->members.host, t, err) || await(r, GUEST_READY, 1, err))
		return -1;
	return is_stopped(r, 1) ? error_set(err, STATUS_CANCELLED, NULL, "stopped before it began") : check_room(r, err);
}

/* ---- while it runs */

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

/* While it comes to its end, all is recorded on. */
static int dismiss_command(struct recording *r, struct error *err)
{
	const int64_t end = now_ns() + END_PATIENCE * SECOND;
	if (r->command > 0)
		kill(r->command, SIGTERM);
	while (r->command > 0 && !command_ended(r) && now_ns() < end && !is_stopped(r, 2))
		if (tick(r, end, err))
			return -1;
	end_command(r);
	return 0;
}

static bool has_fired(struct recording *r)
{
	r->fired = r->triggers ? triggers_look(r->triggers, now_ns()) : NULL;
	if (r->triggers && !r->fired && r->o->fire && *r->o->fire)
		r->fired = "signal";
	return r->fired != NULL;
}

static int run(struct recording *r, struct error *err)
{
	const int64_t end = r->o->duration ? now_ns() + r->o->duration : INT64_MAX;
	int64_t looked = now_ns();
	start_command(r);
	while (now_ns() < end && !is_stopped(r, 1) && !r->ended_by && !command_ended(r)) {
		if (tick(r, end, err))
			return -1;
		if (has_fired(r))
			return 0;
		if (now_ns() - looked < SECOND)
			continue;
		looked = now_ns();
		const uint64_t kept = FORECAST_DISK_KEPT + expected_of_guests(&r->members, 2 * SECOND);
		if (folder_room(r->folder) < kept)
			r->ended_by = "the disk is nearly full";
	}
	return dismiss_command(r, err);
}

static int keep_host(struct recording *r, struct error *err)
{
	const int folder = folder_make_machine(r->folder, "host", err);
	return folder < 0 ? -1 : host_keep(&r->members.host, folder, err);
}

static int start(struct recording *r, struct error *err)
{
	take_facts(&r->members, false);
	if ((!r->o->hold && keep_host(r, err)) || host_start(&r->members.host, err))
		return -1;
	members_say(&r->members, GUEST_READY, "go", ANSWER);
	if (await(r, GUEST_STARTED, 2, err))
		return -1;
	for (size_t i = 0; i < r->members.vms; i++)
		r->members.guest[i]->deadline = 0;
	return 0;
}

/* ---- after */

static void make_room(struct recording *r)
{
	size_t guests = 0;
	for (size_t i = 0; i < r->members.vms; i++)
		guests += r->members.guest[i]->state == GUEST_STOPPED;
	for (size_t i = 0; i < r->members.vms; i++) {
		struct guest *g = r->members.guest[i];
		struct error err = ERROR_INIT;
		if (g->state != GUEST_STOPPED)
			continue;
		char *name = mem_printf("guest-%s", g->vm->folder);
		const uint64_t room = folder_room(r->folder);
		const int folder = folder_make_machine(r->folder, name, &err);
		free(name);
		if (folder < 0)
			guest_fail(g, err.mend, "%s", err.text);
		else
			guest_keep(g, folder, room > FORECAST_DISK_KEPT / 2 ? (room - FORECAST_DISK_KEPT / 2) / guests : 0);
	}
}

static int stop(struct recording *r, struct error *err)
{
	members_say(&r->members, GUEST_STARTED, "stop", ANSWER);
	if (await(r, GUEST_STOPPED, 2, err) || host_stop(&r->members.host, err))
		return -1;
	take_facts(&r->members, true);
	make_room(r);
	members_say(&r->members, GUEST_STOPPED, "send", ANSWER);
	return 0;
}

static void fetch(struct recording *r)
{
	while (members_waits_for(&r->members, GUEST_SENT) && !is_stopped(r, 2))
		members_listen(&r->members, TICK);
	for (size_t i = 0; i < r->members.vms; i++)
		if (guest_is_open(r->members.guest[i]) && r->members.guest[i]->state < GUEST_SENT)
			guest_fail(r->members.guest[i], "one ^C ends the recording, another one does not wait for guests",
			           "what it recorded was not waited for");
	members_tell_ends(&r->members);
}

static int describe(struct recording *r, struct error *err)
{
	struct members *p = &r->members;
	const struct session_facts facts = { &p->host, p->guest, p->before, p->after, p->vms, NULL };
	if (about_host(&p->host, err))
		return -1;
	for (size_t i = 0; i < p->vms; i++)
		if (p->guest[i]->state == GUEST_SENT && about_guest(p->guest[i], &p->host, err))
			return -1;
	return about_session(&facts, r->folder, err);
}

static int course(struct recording *r, struct error *err)
{
	if (prepare(r, err) || start(r, err))
		return -1;
	const int rc = run(r, err);
	struct error again = ERROR_INIT;  /* whatever happened: what is there is kept */
	if (stop(r, rc ? &again : err))
		return -1;
	fetch(r);
	return describe(r, rc ? &again : err) ? -1 : rc;
}

/* ---- flights */

/* DIR/20261122-063001; where that is taken: -2, ... */
static int make_flight(struct recording *r, char **path, struct error *err)
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
	if (r->folder >= 0)
		close(r->folder);
	r->folder = folder_make(*path, err);
	return r->folder < 0 ? -1 : 0;
}

/* What the buffers hold goes into a folder of its own. */
static int keep_flight(struct recording *r, struct error *err)
{
	char *path = NULL;
	struct record_result result;
	say(r->o, "%s: the last seconds are kept", r->fired);
	if (r->o->fire)
		*r->o->fire = 0;
	int rc = make_flight(r, &path, err);
	if (rc == 0)
		rc = keep_host(r, err);
	if (rc == 0)
		rc = stop(r, err);
	if (rc == 0) {
		fetch(r);
		rc = describe(r, err);
	}
	if (rc == 0) {
		members_result(&r->members, &result);
		if (r->o->kept)
			r->o->kept(r->o->arg, path, &result);
		record_release(&result);
	}
	free(path);
	return rc;
}

static int fly(struct recording *r, struct error *err)
{
	const struct members *p = &r->members;
	r->triggers = triggers_new(r->o->root, r->o->trigger, r->o->triggers, p->vm, p->vms, err);
	if (!r->triggers || prepare(r, err))
		return -1;
	for (size_t n = 0; !is_stopped(r, 1) && !r->ended_by && (n == 0 || n < r->o->most || !r->o->most); n++) {
		if (start(r, err))
			return -1;
		triggers_arm(r->triggers, now_ns());
		if (run(r, err))
			return -1;
		if (!r->fired)
			break;
		if (keep_flight(r, err))
			return -1;
		for (size_t i = 0; i < p->vms; i++)
			guest_again(p->guest[i]);
	}
	return 0;
}

/* ---- the whole */

static void leave(struct recording *r)
{
	end_command(r);
	triggers_free(r->triggers);
	members_leave(&r->members);
	members_release(&r->members);
	journal_remove(&r->journal);
	journal_release(&r->journal);
	if (r->folder >= 0)
		close(r->folder);
	rmdir(r->o->output);  /* where nothing was recorded */
}

static void put_ends(const struct recording *r, struct record_result *result)
{
	result->command_status = r->command_status;
	if (r->ended_by && result->machines > 0) {
		result->whole = false;
		error_set(&result->machine[0].why, STATUS_INCOMPLETE, "-o on another disk, or a shorter -t", "it ended early: %s",
		          r->ended_by);
	}
}

int record_run(const struct record_options *o, struct record_result *result, struct error *err)
{
	struct recording r = { .o = o, .folder = -1 };
	*result = (struct record_result){ 0 };
	signal(SIGPIPE, SIG_IGN);
	int rc = members_init(&r.members, o, err);
	if (rc == 0)
		rc = host_has_all(&r.members.host, err);
	if (rc == 0) {
		record_cleanup(o, NULL);
		r.folder = folder_make(o->output, err);
		rc = r.folder < 0 ? -1 : o->hold ? fly(&r, err) : course(&r, err);
	}
	if (r.folder >= 0) {
		members_result(&r.members, result);
		put_ends(&r, result);
	}
	leave(&r);
	return rc;
}

int record_check(const struct record_options *o, struct record_result *result, struct error *err)
{
	struct members p;
	*result = (struct record_result){ 0 };
	signal(SIGPIPE, SIG_IGN);
	int rc = members_init(&p, o, err);
	if (rc == 0) {
		struct error why = ERROR_INIT;
		members_call(&p, "check", 1, LIMIT, false);
		while (members_waits_for(&p, GUEST_ENDED) && !(o->stop && *o->stop))
			members_listen(&p, TICK);
		members_result(&p, result);
		result->machine[0].recorded = host_has_all(&p.host, &why) == 0;
		result->machine[0].why = why;
		for (size_t i = 0; i < p.vms; i++)
			result->machine[i + 1].recorded = p.guest[i]->state == GUEST_ENDED;
	}
	members_release(&p);
	return rc;
}
