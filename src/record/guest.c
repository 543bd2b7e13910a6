#include "record/guest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <unistd.h>

#include "base/base.h"
#include "record/events.h"
#include "record/recording_dir.h"
#include "record/buffer_sizing.h"
#include "record/guest_script.h"
#include "record/proc.h"
#include "record/tracer.h"

#define SETUP_TIMEOUT 40     /* s until the guest's buffers are set up */
#define SILENCE_MAX 30       /* s without a byte while the guest sends its data */
#define RATE_MIN 512         /* minimum average rate of sending, bytes/s */
#define SETUP_RATE 65536     /* minimum rate at which programs are read, bytes/s */
#define OTHER_BYTES_MAX (80 << 20)  /* bytes in frames other than pages: more than the limits of all kinds together */
#define RATE_MAX (4 << 20)     /* KiB/s of a CPU: ten times as much as Linux can record */
#define SEND_RATE 16384      /* KiB/s that every vCPU may send: about 400,000 events/s */
#define STEAL_PROBES_MAX 128   /* probes of 64 CPUs */
#define LOST_MAX 1000000000000000  /* a guest's lost events */
#define REMEDY_REMAINS "the next recording, or record --cleanup, removes the remains in the guest"

void guest_init(struct guest *g, const struct vm *vm, struct transport transport)
{
	*g = (struct guest){ .vm = vm, .transport = transport, .channel = CHANNEL_INIT, .dir = -1, .pages = -1 };
	g->before = mem_new(vm->vcpus, sizeof *g->before);
	g->after = mem_new(vm->vcpus, sizeof *g->after);
}

static void close_pages(struct guest *g)
{
	if (g->pages >= 0)
		close(g->pages);
	g->pages = -1;
}

void guest_release(struct guest *g)
{
	channel_end(&g->channel);
	transport_release(&g->transport);
	frames_release(&g->frames);
	close_pages(g);
	if (g->dir >= 0)
		close(g->dir);
	char *const text[] = { g->about, g->header_page, g->header_event, g->formats, g->threads, g->cmdlines, g->tgids };
	for (size_t i = 0; i < sizeof text / sizeof *text; i++)
		free(text[i]);
	free(g->before);
	free(g->after);
	guest_requests_free(g->requests);
}

bool guest_is_open(const struct guest *g)
{
	return g->state > GUEST_NONE && g->state < GUEST_ENDED;
}

char *guest_field(const struct guest *g, const char *key)
{
	return g->about ? proc_field(g->about, key) : NULL;
}

void guest_fail(struct guest *g, const char *remedy, const char *fmt, ...)
{
	char text[512];
	va_list ap;
	if (g->state == GUEST_FAILED)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	error_repeat(&g->failure, STATUS_INPUT, remedy, "%s", text);  /* it may be an error's text */
	channel_drop(&g->channel);
	close_pages(g);
	g->state = GUEST_FAILED;
}

static void send_text(struct guest *g, const char *text)
{
	const size_t len = strlen(text);
	/* EPIPE is no failure here: handle_end_of_output() reports why the shell ended. */
	if (g->channel.in >= 0 && write(g->channel.in, text, len) != (ssize_t)len && errno != EPIPE)
		guest_fail(g, REMEDY_REMAINS, "the guest's shell does not read its input: the pipe to it is full");
}

/* ---- frames from the guest */

static bool is_trace(const struct guest *g)
{
	return strcmp(g->settings->task, "trace") == 0;
}

/* Failures that the script reports: code sent in the frame `refuse`, message, remedy. */
static const struct { const char *code, *why, *remedy; } refusals[] = {
	{ "root", "the shell in the guest does not run as root", "log in as root, or allow sudo without a password" },
	{ "tracefs", "the guest's kernel has no tracefs",
	  "use a kernel with CONFIG_FTRACE; containers are traced on their host" },
	{ "mount", "tracefs cannot be mounted in the guest", "mount -t tracefs tracefs /sys/kernel/tracing in the guest" },
	{ "instance", "cannot create a tracefs instance in the guest", "use Linux 3.10 or newer, without lockdown" },
	{ "clock", "the guest's kernel has none of the requested trace clocks", "use --clock mono, and --sync containment" },
	{ "events", "the guest's kernel has no scheduler events", "use a kernel with CONFIG_SCHED_TRACER or CONFIG_FTRACE" },
	{ "memory", "the guest has too little memory for trace buffers", "give it more memory, or record for a shorter time" },
	{ "watchdog", "the watchdog process did not start in the guest", "check the guest's load" },
};

static void report_refusal(struct guest *g, const char *text)
{
	for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
		const size_t n = strlen(refusals[i].code);
		if (strncmp(text, refusals[i].code, n) == 0 && (text[n] == ' ' || !text[n])) {
			guest_fail(g, refusals[i].remedy, "%s%s%s", refusals[i].why, text[n] ? ":" : "", text + n);
			return;
		}
	}
	guest_fail(g, NULL, "the guest cannot be recorded: %.200s", text);
}

static uint64_t about_number(const char *text, const char *key, uint64_t max)
{
	char *value = proc_field(text, key);
	uint64_t n = 0;
	if (!value || !proc_parse_number(value, max, &n))
		n = 0;
	free(value);
	return n;
}

/* Parses "kilobytes 1024 rate 12 page 4096". */
static int parse_ready(struct guest *g, const char *text, struct error *err)
{
	static const struct { const char *key; uint64_t low, high; } fields[] = {
		{ "kilobytes ", 1, FORECAST_KB_MAX }, { " rate ", 0, RATE_MAX }, { " page ", 1024, 1 << 20 },
	};
	uint64_t value[3];
	for (size_t i = 0; i < 3; i++) {
		const size_t n = strlen(fields[i].key);
		char number[24] = "";
		if (strncmp(text, fields[i].key, n) == 0)
			snprintf(number, sizeof number, "%.*s", (int)strspn(text + n, "0123456789"), text + n);
		if (!proc_parse_number(number, fields[i].high, &value[i]) || value[i] < fields[i].low)
			return error_set(err, STATUS_INPUT, NULL, "protocol error: the guest sent malformed buffer sizes");
		text += n + strlen(number);
	}
	g->kilobytes = value[0];
	g->rate = value[1];
	g->page = (unsigned)value[2];
	g->state = GUEST_READY;
	return 0;
}

static bool has_word(const char *words, const char *word)
{
	const size_t n = strlen(word);
	for (const char *at = words; *at; at += strcspn(at, " "), at += strspn(at, " "))
		if (strcspn(at, " ") == n && strncmp(at, word, n) == 0)
			return true;
	return false;
}

/* Returns true if the word occurs in the text before `at`. */
static bool is_repeated(const char *text, const char *at, const char *word)
{
	char *before = mem_printf("%.*s", (int)(at - text), text);
	const bool is = has_word(before, word);
	free(before);
	return is;
}

/* Checks and stores a guest's description: its clock and each of its events must have been requested, each event once. */
static int handle_about(struct guest *g, const char *text, struct error *err)
{
	const struct guest_settings *o = g->settings;
	char *clock = proc_field(text, "clock"), *events = proc_field(text, "events"), *rest = NULL;
	char *copy = mem_dup(events ? events : "");
	size_t probes = 0;
	bool *seen = mem_new(o->events, sizeof *seen);
	int rc = 0;
	if (clock && *o->clocks && !has_word(o->clocks, clock))
		rc = error_set(err, STATUS_INPUT, NULL, "protocol error: the guest uses a clock that was not requested");
	for (char *e = events ? strtok_r(events, " ", &rest) : NULL; e && rc == 0; e = strtok_r(NULL, " ", &rest)) {
		size_t i = 0;
		while (i < o->events && (strcmp(o->event[i], e) != 0 || seen[i]))
			i++;
		if (i == o->events && o->steal && event_is_steal_probe(e) && probes++ < STEAL_PROBES_MAX &&
		    !is_repeated(copy, copy + (e - events), e))
			continue;
		if (i == o->events && g->requests && guest_requests_accept(g->requests, e))
			continue;
		if (i == o->events)
			rc = error_set(err, STATUS_INPUT, NULL, "protocol error: the guest recorded events that were not requested");
		else
			seen[i] = true;
	}
	free(seen);
	free(clock);
	free(events);
	free(copy);
	free(g->about);
	g->about = rc ? NULL : mem_dup(text);
	return rc;
}

/* Returns the bytes of pages that the guest can have recorded until now: the content of its buffers twice, since CPUs may
 * start late, and for each second of tracing once more, or SEND_RATE. */
static uint64_t plausible_bytes(const struct guest *g)
{
	const int64_t end = g->stop_time ? g->stop_time : now_ns();
	const int64_t traced = g->start_time && !g->settings->overwrite ? end - g->start_time : 0;
	const uint64_t rate = g->kilobytes > SEND_RATE ? g->kilobytes : SEND_RATE;
	return (2 * g->kilobytes + rate * (uint64_t)((traced + NS_PER_S - 1) / NS_PER_S)) * 1024 * g->vm->vcpus;
}

static int write_pages(struct guest *g, unsigned cpu, const char *data, size_t len, struct error *err)
{
	char name[32];
	const uint64_t plausible = plausible_bytes(g);
	if (g->dir < 0 || g->bytes + len > g->max_bytes)
		return error_set(err, STATUS_INPUT, "record for a shorter time, or free disk space",
		                 "the guest sent more data than fits on the disk (limit: %llu MB)",
		                 (unsigned long long)(g->max_bytes >> 20));
	if (g->bytes + len > plausible)
		return error_set(err, STATUS_INPUT, NULL,
		                 "protocol error: the guest sent more data than its buffers can have recorded (limit: %llu MB)",
		                 (unsigned long long)(plausible >> 20));
	if (g->pages < 0 || g->pages_cpu != cpu) {
		close_pages(g);
		snprintf(name, sizeof name, "pages/cpu%u", cpu);
		g->pages = openat(g->dir, name, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
		g->pages_cpu = cpu;
		g->cpus = cpu + 1 > g->cpus ? cpu + 1 : g->cpus;
	}
	for (size_t at = 0; at < len;) {
		const ssize_t n = g->pages < 0 ? -1 : write(g->pages, data + at, len - at);
		if (n < 0)
			return error_system(err, NULL, "cannot write pages/cpu%u", cpu);
		at += (size_t)n;
	}
	g->bytes += len;
	return 0;
}

static int handle_stats(struct guest *g, unsigned cpu, const char *text, size_t len, struct error *err)
{
	char name[32];
	const struct cpu_stats stats = cpu_stats_parse(text);
	const uint64_t lost = g->settings->overwrite ? stats.dropped : cpu_stats_lost(&stats);
	if (lost > LOST_MAX - g->lost)
		return error_set(err, STATUS_INPUT, NULL, "protocol error: the guest sent an impossible number of lost events");
	g->lost += lost;
	g->cpus = cpu + 1 > g->cpus ? cpu + 1 : g->cpus;
	snprintf(name, sizeof name, "stats/cpu%u", cpu);
	return dir_put(g->dir, name, text, len, err);
}

static void replace_text(char **text, const char *by)
{
	free(*text);
	*text = mem_dup(by);
}

/* Splits the received event formats, which are in the order of the guest's list of events, and stores them. */
static int put_formats(struct guest *g, struct error *err)
{
	char *events = guest_field(g, "events"), *rest = NULL;
	const char *text = g->formats ? g->formats : "";
	int rc = 0;
	for (char *name = events ? strtok_r(events, " ", &rest) : NULL; name && rc == 0; name = strtok_r(NULL, " ", &rest)) {
		const char *next = strstr(text, "\nname: "), *end = next ? next + 1 : text + strlen(text);
		rc = *text ? dir_put_format(g->dir, name, text, (size_t)(end - text), err)
		           : error_set(err, STATUS_INPUT, NULL, "protocol error: the guest sent too few formats of events");
		text = end;
	}
	free(events);
	return rc;
}

/* Handles the last frame: stores the metadata of the pages that arrived before. */
static int handle_end_frame(struct guest *g, struct error *err)
{
	const char *page = g->header_page ? g->header_page : "", *event = g->header_event ? g->header_event : "";
	if (!is_trace(g)) {
		g->state = GUEST_ENDED;
		channel_close_input(&g->channel);
		return 0;
	}
	close_pages(g);
	if (dir_put_header_page(g->dir, page, err) ||
	    dir_put(g->dir, "header_event", event, strlen(event), err) || put_formats(g, err))
		return -1;
	if (dir_put_threads(g->dir, g->threads, g->cmdlines, g->tgids, err))
		return -1;
	g->state = GUEST_SENT;
	return 0;
}

static void send_line(void *arg, const char *line)
{
	send_text(arg, line);
}

static void say_line(void *arg, const char *line)
{
	const struct guest *g = arg;
	if (g->settings->say)
		g->settings->say(g->settings->arg, g->vm->name, line);
}

static int handle_requests(struct guest *g, enum frame kind, const char *data, size_t len, struct error *err)
{
	if (!g->settings->requests || !g->settings->requests->n)
		return error_set(err, STATUS_INPUT, NULL, "protocol error: the guest sent programs that were not requested");
	if (!g->requests)
		g->requests = guest_requests_new(g->settings->requests, send_line, say_line, g);
	g->deadline += (int64_t)len * NS_PER_S / SETUP_RATE;
	return kind == FRAME_PROGRAMS ? guest_requests_list(g->requests, data, err)
	       : kind == FRAME_PROGRAM ? guest_requests_read(g->requests, data, len, err)
	                               : guest_requests_defined(g->requests, data, err);
}

static int handle_frame(void *arg, enum frame kind, unsigned cpu, const char *data, size_t len, struct error *err)
{
	struct guest *g = arg;
	if (kind == FRAME_STOPPED && g->state == GUEST_STARTED) {
		/* The script stops if its input ends: the transport broke, or the VM is being shut down. */
		g->fell_silent = true;
		guest_fail(g, REMEDY_REMAINS, "the guest ended too early: its script stopped without a command");
		return 0;
	}
	if (frame_order_check(&g->order, g->state, is_trace(g), g->settings->overwrite, kind, err))
		return -1;
	switch (kind) {
	case FRAME_REFUSE:
		report_refusal(g, data);
		return 0;
	case FRAME_CLEANED:
		g->removed = (unsigned)about_number(data, "removed", 1000000);
		g->not_removed = (unsigned)about_number(data, "failed", 1000000);
		return 0;
	case FRAME_PROGRAMS:
	case FRAME_PROGRAM:
	case FRAME_DEFINED:
		return handle_requests(g, kind, data, len, err);
	case FRAME_ABOUT:
		return handle_about(g, data, err);
	case FRAME_HEADER_PAGE:
		replace_text(&g->header_page, data);
		return 0;
	case FRAME_HEADER_EVENT:
		replace_text(&g->header_event, data);
		return 0;
	case FRAME_FORMATS:
		replace_text(&g->formats, data);
		return 0;
	case FRAME_THREADS:
		if (g->state == GUEST_CALLED)
			replace_text(&g->threads, data);
		return 0;
	case FRAME_READY:
		return parse_ready(g, data, err);
	case FRAME_STARTED:
		g->started = clock_sample_parse(data);
		g->state = GUEST_STARTED;
		return 0;
	case FRAME_STOPPED:
		g->stopped = clock_sample_parse(data);
		g->state = GUEST_STOPPED;
		return 0;
	case FRAME_PAGES:
		return write_pages(g, cpu, data, len, err);
	case FRAME_STATS:
		return handle_stats(g, cpu, data, len, err);
	case FRAME_CMDLINES:
		replace_text(&g->cmdlines, data);
		return 0;
	case FRAME_TGIDS:
		replace_text(&g->tgids, data);
		return 0;
	case FRAME_END:
		return handle_end_frame(g, err);
	case FRAME_KINDS:
		break;
	}
	return 0;
}

/* ---- the session */

void guest_store_in(struct guest *g, int dir)
{
	if (g->dir >= 0)
		close(g->dir);
	g->dir = dir;
	g->max_bytes = g->bytes = g->lost = g->received = 0;
	g->cpus = 0;
}

void guest_reset(struct guest *g)
{
	if (g->state != GUEST_SENT)
		return;
	g->state = GUEST_READY;
	g->started = g->stopped = (struct clock_sample){ 0 };
	frame_order_reset(&g->order);
}

void guest_start(struct guest *g, const struct guest_settings *settings)
{
	struct error err = ERROR_INIT;
	g->settings = settings;
	g->deadline = now_ns() + SETUP_TIMEOUT * NS_PER_S;
	if (frames_init(&g->frames, handle_frame, g, &err) || channel_open(&g->channel, &g->transport, g->vm->name, &err)) {
		g->state = GUEST_FAILED;
		g->failure = err;
		return;
	}
	g->state = GUEST_CALLED;
	char *script = guest_script(g);
	send_text(g, script);
	free(script);
}

void guest_send_command(struct guest *g, const char *word, unsigned timeout)
{
	static const struct { const char *word; enum guest_state next; } steps[] = {
		{ "go", GUEST_STARTING }, { "stop", GUEST_STOPPING }, { "send", GUEST_SENDING },
	};
	char line[32];
	if (!guest_is_open(g))
		return;
	for (size_t i = 0; i < sizeof steps / sizeof *steps; i++)
		if (strcmp(word, steps[i].word) == 0)
			g->state = steps[i].next;
	if (g->state == GUEST_STARTING) {
		g->start_time = now_ns();
		g->stop_time = 0;
	} else if (g->state == GUEST_STOPPING) {
		g->stop_time = now_ns();
	}
	snprintf(line, sizeof line, "%s\n", word);
	g->deadline = timeout ? now_ns() + timeout * NS_PER_S : 0;
	send_text(g, line);
}

/* Stores the last line that the transport wrote to standard error. */
static void read_errors(struct guest *g)
{
	char buf[4096];
	const ssize_t n = g->channel.err < 0 ? 0 : read(g->channel.err, buf, sizeof buf - 1);
	if (n <= 0)
		return;
	buf[n] = '\0';
	char *end = buf + strlen(buf);
	while (end > buf && (end[-1] == '\n' || end[-1] == '\r'))
		*--end = '\0';
	const char *line = strrchr(buf, '\n');
	snprintf(g->errors, sizeof g->errors, "%.500s", line ? line + 1 : buf);
}

/* Reports the end of the guest's output as a failure. */
static void handle_end_of_output(struct guest *g)
{
	int status = 0;
	read_errors(g);
	channel_ended(&g->channel, &status);
	const bool no_answer = g->state == GUEST_CALLED && !g->about;
	const char *remedy = no_answer ? transport_remedy(&g->transport)
	                         : REMEDY_REMAINS;
	g->fell_silent = !no_answer;
	guest_fail(g, remedy, "%s%s%s", no_answer ? "no shell answers in the guest" : "the shell in the guest ended too early",
	           *g->errors ? ": " : "", g->errors);
}

/* Limits the bytes in frames other than pages. Extends the deadline while the guest sends its data: at most to SILENCE_MAX
 * from now, and no more than the received bytes allow at RATE_MIN, so that single bytes do not extend it forever. */
static void extend_deadline(struct guest *g, size_t len)
{
	if (g->state < GUEST_STARTED)
		return;
	const int64_t latest = now_ns() + SILENCE_MAX * NS_PER_S, earned = g->deadline + (int64_t)len * NS_PER_S / RATE_MIN;
	if (g->state >= GUEST_STOPPED)
		g->deadline = earned < latest ? earned : latest;
	g->received += len;
	if (g->received > g->bytes + OTHER_BYTES_MAX)
		guest_fail(g, NULL, "protocol error: the guest sends data without end");
}

void guest_handle_output(struct guest *g)
{
	const size_t size = 65536;
	char *buf = mem_resize(NULL, size, 1);
	struct error err = ERROR_INIT;
	ssize_t n = -1;
	read_errors(g);
	guest_requests_poll(g->requests);
	for (int i = 0; i < 64 && guest_is_open(g) && (n = read(g->channel.out, buf, size)) > 0; i++) {
		extend_deadline(g, (size_t)n);
		if (guest_is_open(g) && frames_feed(&g->frames, buf, (size_t)n, &err))
			guest_fail(g, err.remedy, "%s", err.text);
	}
	free(buf);
	if (!guest_is_open(g) || g->state == GUEST_SENT)
		return;
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
		handle_end_of_output(g);
	} else if (g->deadline && now_ns() > g->deadline) {
		g->fell_silent = true;
		guest_fail(g, "check the load of the guest and its connection", "the guest stopped answering");
	}
}
