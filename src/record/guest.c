#include "record/guest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/clock.h"
#include "record/events.h"
#include "record/recording_dir.h"
#include "record/buffer_sizing.h"
#include "record/guest_text.h"
#include "record/proc.h"
#include "record/tracer.h"

#define SECOND 1000000000LL
#define CALL_PATIENCE 40     /* s until its buffers stand */
#define SILENCE 30           /* s without a byte while it sends, */
#define SLOWEST 512          /* and bytes/s in the long run */
#define MORE_MOST (80 << 20)  /* bytes that it may send beside its pages: more than frames.h allows of each kind */
#define EVENTS_MOST 4096

void guest_init(struct guest *g, const struct vm *vm, struct transport by)
{
	*g = (struct guest){ .vm = vm, .by = by, .channel = CHANNEL_INIT, .folder = -1, .pages = -1 };
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
	transport_release(&g->by);
	frames_release(&g->frames);
	close_pages(g);
	if (g->folder >= 0)
		close(g->folder);
	char *const text[] = { g->about, g->header_page, g->header_event, g->formats, g->threads, g->cmdlines, g->tgids };
	for (size_t i = 0; i < sizeof text / sizeof *text; i++)
		free(text[i]);
	free(g->before);
	free(g->after);
}

bool guest_is_open(const struct guest *g)
{
	return g->state > GUEST_NONE && g->state < GUEST_ENDED;
}

char *guest_field(const struct guest *g, const char *key)
{
	return g->about ? proc_field(g->about, key) : NULL;
}

void guest_fail(struct guest *g, const char *mend, const char *fmt, ...)
{
	char text[512];
	va_list ap;
	if (g->state == GUEST_FAILED)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof text, fmt, ap);
	va_end(ap);
	error_set(&g->why, STATUS_INPUT, mend, "%s", text);
	channel_drop(&g->channel);
	close_pages(g);
	g->state = GUEST_FAILED;
}

/* ---- the script */

static char *quoted(const char *text)
{
	char *q = mem_new(4 * strlen(text) + 3, 1), *to = q;
	*to++ = '\'';
	for (; *text; text++) {
		if (*text == '\'') {
			memcpy(to, "'\\''", 4);
			to += 4;
		} else {
			*to++ = *text;
		}
	}
	*to = '\'';
	return q;
}

static char *events_of(const struct guest_order *o)
{
	char *all = mem_dup("");
	for (size_t i = 0; i < o->events; i++) {
		char *longer = mem_printf("%s %s", all, o->event[i]);
		free(all);
		all = longer;
	}
	return all;
}

static char *script_of(const struct guest *g)
{
	const struct guest_order *o = g->order;
	size_t len = 1;
	char *events = events_of(o), *event = quoted(events), *clocks = quoted(o->clocks);
	char *head = mem_printf("key=%s task=%s hold=%u limit=%u turn=%d ceiling=%d root='' clocks=%s events=%s\n",
	                        g->frames.key, o->task, o->hold, o->limit, o->turn, FORECAST_KB_MOST, clocks, event);
	for (const char *const *line = guest_text; *line; line++)
		len += strlen(*line);
	char *text = mem_new(strlen(head) + len, 1), *at = text + strlen(head);
	memcpy(text, head, strlen(head));
	for (const char *const *line = guest_text; *line; line++) {
		memcpy(at, *line, strlen(*line));
		at += strlen(*line);
	}
	free(events);
	free(event);
	free(clocks);
	free(head);
	return text;
}

static void send_text(struct guest *g, const char *text)
{
	const size_t len = strlen(text);
	/* Where nobody reads any more, the end of what it sends will tell. */
	if (g->channel.in >= 0 && write(g->channel.in, text, len) != (ssize_t)len && errno != EPIPE)
		guest_fail(g, "the next recording, or record --cleanup, removes what may be left there",
		           "its shell does not listen");
}

/* ---- what it says */

/* What a script that gives up says -> what a person can do about it. */
static const struct { const char *code, *why, *mend; } refusals[] = {
	{ "root", "the shell there is not root's", "go in as root, or let sudo do without a password" },
	{ "tracefs", "its kernel has no tracefs", "a kernel with CONFIG_FTRACE; in a container: that of the host is traced" },
	{ "mount", "tracefs cannot be mounted there", "mount -t tracefs tracefs /sys/kernel/tracing in the guest" },
	{ "instance", "no instance of tracefs can be made there", "a kernel from 3.10 on, not in lockdown" },
	{ "clock", "it has no clock that is asked for", "--sync containment with --clock mono" },
	{ "events", "its kernel cannot trace the scheduler", "a kernel with CONFIG_SCHED_TRACER or CONFIG_FTRACE" },
	{ "memory", "it has no memory for buffers", "more memory, or a shorter recording" },
	{ "turn", "an agent of trace-cmd cannot let its buffers turn over",
	  "without --flight, or through a shell: vsock:, ssh:, qga: or cmd:" },
	{ "watchdog", "no watchdog could be started there", "look at the guest's load" },
};

static void take_refusal(struct guest *g, const char *text)
{
	for (size_t i = 0; i < sizeof refusals / sizeof *refusals; i++) {
		const size_t n = strlen(refusals[i].code);
		if (strncmp(text, refusals[i].code, n) == 0 && (text[n] == ' ' || !text[n])) {
			guest_fail(g, refusals[i].mend, "%s%s%s", refusals[i].why, text[n] ? ":" : "", text + n);
			return;
		}
	}
	guest_fail(g, NULL, "it refuses: %.200s", text);
}

static uint64_t number_of(const char *text, const char *key, uint64_t most)
{
	char *value = proc_field(text, key);
	uint64_t n = 0;
	if (!value || !proc_is_number(value, most, &n))
		n = 0;
	free(value);
	return n;
}

/* "kilobytes 1024 rate 12 page 4096": one line. */
static int take_ready(struct guest *g, const char *text, struct error *err)
{
	unsigned long long kilobytes, rate;
	unsigned page;
	if (sscanf(text, "kilobytes %llu rate %llu page %u", &kilobytes, &rate, &page) != 3 || page < 1024 || page > 1 << 20)
		return error_set(err, STATUS_INPUT, NULL, "the guest's buffers are not understood");
	g->kilobytes = kilobytes;
	g->rate = rate;
	g->page = page;
	g->state = GUEST_READY;
	return 0;
}

static int take_pages(struct guest *g, unsigned cpu, const char *data, size_t len, struct error *err)
{
	char name[32];
	if (g->folder < 0 || g->bytes + len > g->most)
		return error_set(err, STATUS_INPUT, "a shorter recording, or more room",
		                 "the guest sends more than there is room for");
	if (g->pages < 0 || g->pages_cpu != cpu) {
		close_pages(g);
		snprintf(name, sizeof name, "pages/cpu%u", cpu);
		g->pages = openat(g->folder, name, O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600);
		g->pages_cpu = cpu;
		g->cpus = cpu + 1 > g->cpus ? cpu + 1 : g->cpus;
	}
	for (size_t at = 0; at < len;) {
		const ssize_t n = g->pages < 0 ? -1 : write(g->pages, data + at, len - at);
		if (n < 0)
			return error_system(err, NULL, "pages/cpu%u", cpu);
		at += (size_t)n;
	}
	g->bytes += len;
	return 0;
}

static int take_stats(struct guest *g, unsigned cpu, const char *text, size_t len, struct error *err)
{
	char name[32];
	const struct cpu_stats stats = cpu_stats_parse(text);
	const uint64_t lost = g->order->turn ? stats.dropped : cpu_stats_lost(&stats);
	g->lost = g->lost > UINT64_MAX - lost ? UINT64_MAX : g->lost + lost;
	g->cpus = cpu + 1 > g->cpus ? cpu + 1 : g->cpus;
	snprintf(name, sizeof name, "stats/cpu%u", cpu);
	return folder_put(g->folder, name, text, len, err);
}

static void replace(char **text, const char *by)
{
	free(*text);
	*text = mem_dup(by);
}

/* The format files follow each other in the order of the events that the guest said it has; it has none that it was not
 * asked for. */
static int put_formats(struct guest *g, struct error *err)
{
	char *events = guest_field(g, "events"), *rest = NULL;
	const char *text = g->formats ? g->formats : "";
	int rc = 0;
	size_t n = 0;
	for (char *name = events ? strtok_r(events, " ", &rest) : NULL; name && rc == 0; name = strtok_r(NULL, " ", &rest)) {
		bool wanted = false;
		for (size_t i = 0; i < g->order->events; i++)
			wanted |= strcmp(g->order->event[i], name) == 0;
		const char *next = strstr(text, "\nname: "), *end = next ? next + 1 : text + strlen(text);
		if (!wanted || !*text || n++ > EVENTS_MOST)
			rc = error_set(err, STATUS_INPUT, NULL, "the guest's events are not those that were asked for");
		else
			rc = folder_put_format(g->folder, name, text, (size_t)(end - text), err);
		text = end;
	}
	free(events);
	return rc;
}

/* Its last word: what explains the pages. */
static int take_end(struct guest *g, struct error *err)
{
	const char *page = g->header_page ? g->header_page : "", *event = g->header_event ? g->header_event : "";
	if (strcmp(g->order->task, "trace") != 0) {
		g->state = GUEST_ENDED;
		channel_close_input(&g->channel);
		return 0;
	}
	close_pages(g);
	g->state = GUEST_SENT;
	if (folder_put(g->folder, "header_page", page, strlen(page), err) ||
	    folder_put(g->folder, "header_event", event, strlen(event), err) || put_formats(g, err))
		return -1;
	return folder_put_threads(g->folder, g->threads, g->cmdlines, g->tgids, err);
}

static int take(void *arg, enum frame what, unsigned cpu, const char *data, size_t len, struct error *err)
{
	struct guest *g = arg;
	switch (what) {
	case FRAME_REFUSE:
		take_refusal(g, data);
		return 0;
	case FRAME_CLEANED:
		g->erased = (unsigned)number_of(data, "erased", 1000000);
		g->left = (unsigned)number_of(data, "left", 1000000);
		return 0;
	case FRAME_ABOUT:
		replace(&g->about, data);
		return 0;
	case FRAME_HEADER_PAGE:
		replace(&g->header_page, data);
		return 0;
	case FRAME_HEADER_EVENT:
		replace(&g->header_event, data);
		return 0;
	case FRAME_FORMATS:
		replace(&g->formats, data);
		return 0;
	case FRAME_THREADS:
		if (g->state < GUEST_STARTED)
			replace(&g->threads, data);
		return 0;
	case FRAME_READY:
		return take_ready(g, data, err);
	case FRAME_STARTED:
		g->started = moment_parse(data);
		g->state = GUEST_STARTED;
		return 0;
	case FRAME_STOPPED:
		g->stopped = moment_parse(data);
		g->state = GUEST_STOPPED;
		return 0;
	case FRAME_PAGES:
		return take_pages(g, cpu, data, len, err);
	case FRAME_STATS:
		return take_stats(g, cpu, data, len, err);
	case FRAME_CMDLINES:
		replace(&g->cmdlines, data);
		return 0;
	case FRAME_TGIDS:
		replace(&g->tgids, data);
		return 0;
	case FRAME_END:
		return take_end(g, err);
	case FRAME_KINDS:
		break;
	}
	return 0;
}

/* ---- the conversation */

void guest_keep(struct guest *g, int folder, uint64_t most)
{
	if (g->folder >= 0)
		close(g->folder);
	g->folder = folder;
	g->most = most;
	g->bytes = g->lost = g->received = 0;
	g->cpus = 0;
}

void guest_again(struct guest *g)
{
	if (g->state != GUEST_SENT)
		return;
	g->state = GUEST_READY;
	g->started = g->stopped = (struct moment){ 0 };
}

void guest_call(struct guest *g, const struct guest_order *order)
{
	struct error err = ERROR_INIT;
	g->order = order;
	g->deadline = now_ns() + CALL_PATIENCE * SECOND;
	if (frames_init(&g->frames, take, g, &err) || channel_open(&g->channel, &g->by, g->vm->name, &err)) {
		g->state = GUEST_FAILED;
		g->why = err;
		return;
	}
	g->state = GUEST_CALLED;
	char *script = script_of(g);
	send_text(g, script);
	free(script);
}

void guest_say(struct guest *g, const char *word, unsigned patience)
{
	char line[32];
	if (!guest_is_open(g))
		return;
	snprintf(line, sizeof line, "%s\n", word);
	g->deadline = patience ? now_ns() + patience * SECOND : 0;
	send_text(g, line);
}

/* The last of what its transport complains about. */
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

/* Nothing more comes. */
static void take_silence(struct guest *g)
{
	int status = 0;
	read_errors(g);
	channel_ended(&g->channel, &status);
	const bool never = g->state == GUEST_CALLED && !g->about;
	const char *mend = never ? transport_mend(&g->by)
	                         : "the next recording, or record --cleanup, removes what may be left there";
	g->fell_silent = !never;
	guest_fail(g, mend, "%s%s%s", never ? "no shell answers there" : "its shell ended too early",
	           *g->errors ? ": " : "", g->errors);
}

/* What sends has time for it, a byte at a time, but not for ever. */
static void take_note(struct guest *g, size_t len)
{
	if (g->state < GUEST_STOPPED)
		return;
	const int64_t latest = now_ns() + SILENCE * SECOND, earned = g->deadline + (int64_t)len * SECOND / SLOWEST;
	g->deadline = earned < latest ? earned : latest;
	g->received += len;
	if (g->received > g->bytes + MORE_MOST)
		guest_fail(g, NULL, "it sends without end");
}

void guest_listen(struct guest *g)
{
	const size_t room = 65536;
	char *buf = mem_resize(NULL, room, 1);
	struct error err = ERROR_INIT;
	ssize_t n = -1;
	read_errors(g);
	for (int i = 0; i < 64 && guest_is_open(g) && (n = read(g->channel.out, buf, room)) > 0; i++) {
		take_note(g, (size_t)n);
		if (guest_is_open(g) && frames_take(&g->frames, buf, (size_t)n, &err))
			guest_fail(g, err.mend, "%s", err.text);
	}
	free(buf);
	if (!guest_is_open(g) || g->state == GUEST_SENT)
		return;
	if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
		take_silence(g);
	} else if (g->deadline && now_ns() > g->deadline) {
		g->fell_silent = true;
		guest_fail(g, "is it under heavy load, or the way into it slow?", "it does not answer");
	}
}
