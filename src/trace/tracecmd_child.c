/* The child's half: libtracecmd -> what is told through the pipe. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <trace-cmd.h>

#include "base/mem.h"
#include "trace/internal.h"
#include "trace/tracecmd.h"
#include "trace/tracecmd_bind.h"

#define BATCH (TELL_LONGEST / sizeof(struct event))
#define MEMORY (2ULL << 30)  /* bytes of address space, beside what the file needs */
#define EXPANSION 64         /* how much larger than the file its contents may be */

struct child {
	const struct dat *dat;
	int fd;
	struct tracecmd_input *input;
	struct tep_handle *tep;
	struct tep_binder *binder;
	struct names names;
	struct name_cache cache;
	size_t told;             /* names that the parent knows */
	struct event batch[BATCH];
	size_t used;
	uint32_t stream, first;
	uint64_t done;           /* bytes of pages of the streams before */
};

/* ---- telling */

static void put_bytes(int fd, const void *data, size_t len)
{
	const char *at = data;
	while (len) {
		ssize_t n = write(fd, at, len);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			_exit(0);  /* nobody listens any more */
		at += n;
		len -= (size_t)n;
	}
}

static void tell(const struct child *c, enum tell what, const void *data, size_t len)
{
	const struct tell_head head = { what, (uint32_t)len };
	put_bytes(c->fd, &head, sizeof head);
	put_bytes(c->fd, data, len);
}

static void tell_text(const struct child *c, enum tell what, const char *text)
{
	tell(c, what, text, strlen(text));
}

/* Names first: events mean nothing without them. */
static void flush(struct child *c, uint64_t at)
{
	for (; c->told + 1 < c->names.tab.len; c->told++)
		tell_text(c, TELL_NAME, strtab_get(&c->names.tab, (uint32_t)c->told + 1));
	if (c->used)
		tell(c, TELL_EVENTS, c->batch, c->used * sizeof *c->batch);
	c->used = 0;
	at += c->done;
	tell(c, TELL_AT, &at, sizeof at);
}

static void put(struct child *c, const struct event *ev, uint64_t at)
{
	c->batch[c->used++] = *ev;
	if (c->used == BATCH)
		flush(c, at);
}

/* ---- decoding */

/* The time that was recorded; < 0: none that is possible. */
static int64_t time_of(const struct child *c, const struct tep_record *rec)
{
	const int64_t ts = rec->ts > INT64_MAX ? -1 : (int64_t)rec->ts;
	const bool shifted = rec->cpu >= 0 && (size_t)rec->cpu < c->dat->shifts;
	return ts >= 0 && shifted ? shift_undo(&c->dat->shift[rec->cpu], ts) : ts;
}

/* The record before this one is not the one that the kernel wrote before it. */
static void put_lost(struct child *c, const struct tep_record *rec, int64_t now, int64_t last, uint64_t at)
{
	const struct event ev = { .ts = last == INT64_MIN || last > now ? now : last, .kind = EV_LOST,
		.cpu = (uint16_t)rec->cpu, .tid = -1, .pid = -1,
		.lost = { now, rec->missed_events > 0 ? rec->missed_events : EVENT_ABSENT } };
	put(c, &ev, at);
}

/* Switches name the threads; until a CPU's first one, the table of names that trace-cmd saved does.  (Later it would be
 * wrong for threads that changed their name while they were traced.) */
static void name_current(struct child *c, struct event *ev, bool *switched)
{
	*switched |= ev->kind == EV_SWITCH;
	if (*switched || ev->comm || ev->tid <= 0)
		return;
	const char *name = tep_data_comm_from_pid(c->tep, ev->tid);
	if (name && *name && *name != '<')
		ev->comm = name_cache_put(&c->cache, name);
}

/* Returns why the stream ends too early, or NULL. */
static const char *decode(struct child *c, struct tracecmd_input *in, unsigned cpu, uint64_t bytes)
{
	struct tep_record *rec;
	const uint64_t page = c->dat->page ? c->dat->page : 4096;
	uint64_t base = 0, at = 0, last_offset = 0;
	int64_t last = INT64_MIN;
	bool switched = false;
	const char *why = NULL;
	while (!why && (rec = tracecmd_read_data(in, (int)cpu))) {
		struct event ev;
		const int64_t now = time_of(c, rec);
		if (!last_offset)
			base = rec->offset - rec->offset % page;
		at = rec->offset - base;
		if (rec->offset <= last_offset || at > bytes)
			why = "an event lies where none should be";
		else if (now < 0 || rec->cpu != (int)cpu)
			why = "an event without a possible time";
		last_offset = rec->offset;
		if (!why && rec->missed_events)
			put_lost(c, rec, now, last, at);
		if (!why && tep_binder_event(c->binder, rec, &ev)) {
			ev.ts = last = now;
			name_current(c, &ev, &switched);
			put(c, &ev, at);
		}
		tracecmd_free_record(rec);
	}
	/* libtracecmd does not tell the end from a page that it cannot read. */
	if (!why && bytes >= page && (!last_offset || at / page + 1 < bytes / page))
		why = "a page cannot be read";
	flush(c, bytes);
	return why;
}

static void decode_buffer(struct child *c, struct tracecmd_input *in, unsigned buffer)
{
	for (size_t i = 0; in && i < c->dat->cpus; i++) {
		const struct dat_cpu *d = &c->dat->cpu[i];
		if (d->buffer != buffer)
			continue;
		const struct tell_stream s = { c->stream, buffer, d->cpu };
		if (c->stream++ >= c->first) {
			tell(c, TELL_STREAM, &s, sizeof s);
			const char *why = decode(c, in, d->cpu, d->bytes);
			if (why)
				tell_text(c, TELL_BROKEN, why);
		}
		c->done += d->bytes;
	}
}

static void choose_layout(struct child *c, const struct layout *const *layout, size_t layouts)
{
	size_t best = 0, best_score = 0;
	for (size_t i = 0; i < layouts; i++) {
		size_t score = tep_binder_score(c->tep, layout[i]);
		if (score > best_score) {
			best = i;
			best_score = score;
		}
	}
	const uint32_t chosen = best_score ? (uint32_t)best + 1 : 0;
	tell(c, TELL_LAYOUT, &chosen, sizeof chosen);
	c->binder = tep_binder_new(c->tep, layout[best], &c->cache);
}

static const struct rlimit *lowered(struct rlimit *r, rlim_t most)
{
	if (r->rlim_cur == RLIM_INFINITY || r->rlim_cur > most)
		r->rlim_cur = most;
	return r;
}

static void confine(uint64_t bytes)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	struct rlimit r;
	const rlim_t most = MEMORY + EXPANSION * bytes;
	if (getrlimit(RLIMIT_CORE, &r) == 0)
		setrlimit(RLIMIT_CORE, lowered(&r, 0));
#ifndef __SANITIZE_ADDRESS__  /* whose shadow needs terabytes of addresses */
	if (getrlimit(RLIMIT_AS, &r) == 0)
		setrlimit(RLIMIT_AS, lowered(&r, most));
#endif
	if (getrlimit(RLIMIT_FSIZE, &r) == 0)
		setrlimit(RLIMIT_FSIZE, lowered(&r, most));
	child_begin();
	int null = open("/dev/null", O_RDWR);
	if (null < 0)
		return;
	dup2(null, 0);
	dup2(null, 1);
	dup2(null, 2);
}

void tracecmd_child(const struct dat *d, const struct layout *const *layout, size_t layouts, uint32_t first, int fd)
{
	struct child *c = mem_new(1, sizeof *c);
	c->dat = d;
	c->fd = fd;
	c->first = first;
	confine(d->bytes);
	names_init(&c->names);
	name_cache_init(&c->cache, &c->names);
	tracecmd_set_loglevel(TEP_LOG_NONE);
	c->input = tracecmd_open(d->path, TRACECMD_FL_LOAD_NO_PLUGINS);
	c->tep = c->input ? tracecmd_get_tep(c->input) : NULL;
	if (!c->tep) {
		tell_text(c, TELL_REFUSE, "libtracecmd cannot read it");
		return;
	}
	choose_layout(c, layout, layouts);
	decode_buffer(c, c->input, 0);
	const int instances = tracecmd_buffer_instances(c->input);
	for (int i = 0; i < instances; i++) {
		struct tracecmd_input *in = tracecmd_buffer_instance_handle(c->input, i);
		decode_buffer(c, in, (unsigned)i + 1);
		tracecmd_close(in);
	}
	tell(c, TELL_END, NULL, 0);
}
