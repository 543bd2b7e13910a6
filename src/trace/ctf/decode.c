/* One thread's walk through packets.
 *
 * A window of the file is in memory, from some byte of the packet on; it is read, not mapped, as a file may be cut short
 * meanwhile.  An event that goes on behind the window is decoded again once the window begins with it. */
#include "trace/ctf/decode.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "trace/loss_placement.h"

#define WINDOW ((size_t)256 << 10)  /* bytes */
#define SLACK 1000000000U           /* cycles that an event's time may be behind its packet's end (old tracers' quirk) */
#define MOST_DAMAGE 100             /* damaged packets of a stream after which the rest is given up */

struct ctf_worker {
	struct ctf_machine machine;  /* first: it is what fields are read from */
	const struct ctf_classes *classes;
	struct name_cache names;
	const struct stream_file *file;  /* the open one */
	int fd;
	unsigned char *window;
	size_t window_size;
	uint64_t from, filled;       /* bytes of the packet: what the window holds */
	bool is_stopped;             /* an error of the system, or of the outlet: *err says it */
};

/* ---- fields */

static int64_t number(const struct field_path *p, const void *event)
{
	const struct ctf_machine *m = event;
	return p->leaf == LEAF_NONE ? EVENT_ABSENT : m->value[p->slot].number;
}

static const char *text(const struct field_path *p, const void *event, size_t *most)
{
	const struct ctf_machine *m = event;
	if (p->leaf != LEAF_TEXT)
		return NULL;
	*most = (size_t)m->value[p->slot].number;
	return m->value[p->slot].text;
}

static const struct field_source values = { ctf_find_field, number, text };

/* ---- the window */

struct ctf_worker *ctf_worker_new(const struct ctf_classes *c, struct meaning *meaning)
{
	struct ctf_worker *w = mem_new(1, sizeof *w);
	w->machine.value = mem_new(c->slots, sizeof *w->machine.value);
	w->classes = c;
	w->fd = -1;
	name_cache_init(&w->names, meaning->names);
	return w;
}

static void close_file(struct ctf_worker *w)
{
	if (w->fd >= 0)
		close(w->fd);
	w->fd = -1;
	w->file = NULL;
}

void ctf_worker_free(struct ctf_worker *w)
{
	close_file(w);
	name_cache_release(&w->names);
	free(w->machine.value);
	free(w);
}

static int cannot_read(struct ctf_worker *w, const struct stream_file *f, struct outlet *out)
{
	w->is_stopped = true;
	return error_read(out->err, NULL, "%s/%s", f->dir, f->name);
}

static int open_file(struct ctf_worker *w, const struct stream_file *f, struct outlet *out)
{
	if (w->file == f)
		return 0;
	close_file(w);
	char *path = mem_printf("%s/%s", f->dir, f->name);
	w->fd = open(path, O_RDONLY | O_CLOEXEC);
	free(path);
	w->file = f;
	return w->fd < 0 ? cannot_read(w, f, out) : 0;
}

/* Fills the window from the packet's byte `from` on: 0, or -1 and out->err. */
static int fill(struct ctf_worker *w, const struct ctf_packet *p, uint64_t from, struct outlet *out)
{
	const uint64_t all = (p->content + 7) / 8 - from;
	if (from == w->from && w->filled == w->window_size) {  /* one event is longer than the window */
		w->window_size *= 2;
		w->window = mem_resize(w->window, w->window_size, 1);
	}
	const size_t wanted = all < w->window_size ? (size_t)all : w->window_size;
	w->from = from;
	w->filled = 0;
	while (w->filled < wanted) {
		const ssize_t n = pread(w->fd, w->window + w->filled, wanted - w->filled, (off_t)(p->offset + from + w->filled));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return cannot_read(w, p->file, out);
		if (n == 0)
			break;  /* the file was cut short meanwhile */
		w->filled += (uint64_t)n;
	}
	struct ctf_machine *m = &w->machine;
	const uint64_t end = 8 * (from + w->filled);
	m->packet = w->window - from;
	m->end = end < p->content ? end : p->content;
	return 0;
}

/* ---- packets */

/* One event, from machine.at on.  `ev` is filled but for what the layout does not want. */
static enum ctf_run read_event(struct ctf_worker *w, const struct ctf_stream_class *sc, const struct ctf_class **class,
                               const char **why)
{
	struct ctf_machine *m = &w->machine;
	m->has_id = false;
	const enum ctf_run status = ctf_run(&sc->header, m);
	*why = "an event's header cannot be read";
	if (status != CTF_RUN_DONE)
		return status;
	*class = !m->has_id ? sc->only : m->id < sc->classes ? &sc->class[m->id] : NULL;
	*why = "an event of an unknown class";
	if (!*class || !(*class)->bound)
		return CTF_RUN_WRONG;
	*why = "an event's fields cannot be read";
	return ctf_run(&(*class)->program, m);
}

static int put_event(struct ctf_worker *w, const struct ctf_stream_class *sc, const struct ctf_class *class,
                     struct course *course)
{
	struct event ev;
	ev.ts = ctf_time(sc, w->machine.clock);
	if (ev.ts == INT64_MIN) {
		course->outlet->faults.untimed++;
		return 0;
	}
	rules_event(class->bound, &values, &w->names, w, course->cpu, &ev);
	return course_event(course, &ev);
}

/* The events of a packet whose header was read.  NULL: all of them; else why the rest cannot be. */
static const char *decode_events(struct ctf_worker *w, const struct ctf_flow *f, const struct ctf_packet *p,
                                 struct course *course)
{
	struct ctf_machine *m = &w->machine;
	const uint64_t latest = p->end && p->end <= UINT64_MAX - SLACK ? p->end + SLACK : UINT64_MAX;
	while (m->at < p->content) {
		const struct ctf_class *class;
		const char *why;
		const uint64_t at = m->at, clock = m->clock;
		const enum ctf_run status = read_event(w, f->class, &class, &why);
		if (status == CTF_RUN_SHORT && m->end < p->content) {
			m->at = at;
			m->clock = clock;
			if (fill(w, p, at / 8, course->outlet))
				return "";
			if (m->end < p->content && w->filled < w->window_size)
				return "the file ends within a packet";
			continue;
		}
		if (status != CTF_RUN_DONE)
			return status == CTF_RUN_SHORT ? "the packet ends within an event" : why;
		if (m->at == at)
			return "events take no room, so that they have no end";
		if (m->clock > latest)
			return "an event's time lies far behind its packet's end";
		if (put_event(w, f->class, class, course)) {
			w->is_stopped = true;
			return "";
		}
	}
	return NULL;
}

/* What the packet's header counts as lost, since the packet before it; NULL: this is the first. */
static int tell_losses(const struct ctf_flow *f, const struct ctf_packet *p, const struct ctf_packet *before,
                       struct course *course)
{
	const int64_t begin = ctf_time(f->class, p->begin), end = ctf_time(f->class, p->end);
	const int64_t last = before ? ctf_time(f->class, before->end) : begin;
	const uint64_t lost = p->discarded - (before ? before->discarded : 0);
	if (f->has_discarded && lost) {
		const bool is_counted = before || (f->has_sequence && p->sequence == 0);
		if (course_lost(course, last, end, is_counted ? (int64_t)(lost & INT64_MAX) : EVENT_ABSENT))
			return -1;
	}
	const uint64_t step = before ? p->sequence - before->sequence : 0;
	return f->has_sequence && step > 1 ? course_lost_packets(course, last, begin, step - 1) : 0;
}

/* 0; -1: stopped; 1: *why it is damaged. */
static int decode_packet(struct ctf_worker *w, const struct ctf_flow *f, const struct ctf_packet *p,
                         const struct ctf_packet *before, struct course *course, const char **why)
{
	struct ctf_machine *m = &w->machine;
	m->at = 0;
	w->filled = 0;
	*why = "the packet's header cannot be read any more";
	if (open_file(w, p->file, course->outlet) || fill(w, p, 0, course->outlet))
		return -1;
	if (ctf_run(&w->classes->packet_header, m) != CTF_RUN_DONE || ctf_run(&f->class->context, m) != CTF_RUN_DONE)
		return 1;
	m->clock = p->begin;
	if (tell_losses(f, p, before, course) ||
	    course_packet(course, f->class->cpu.leaf ? number(&f->class->cpu, w) : -1, ctf_time(f->class, p->begin)))
		return -1;
	*why = decode_events(w, f, p, course);
	if (w->is_stopped)
		return -1;
	return *why ? 1 : course_packet_end(course, ctf_time(f->class, p->end));
}

static int decode_packets(struct ctf_worker *w, const struct ctf_flow *f, size_t from, size_t to, bool lost_tail,
                          struct outlet *out)
{
	struct course course;
	unsigned damages = 0;
	bool is_broken = false;
	uint64_t bytes = 0;
	course_begin(&course, out);
	course.lost_tail = lost_tail;
	w->is_stopped = false;
	for (size_t i = from; i < to; i++) {
		const struct ctf_packet *p = &f->packet[i];
		const char *why = NULL;
		if (outlet_at(out, bytes))
			return -1;
		if (is_broken && course.ts != NO_TIME && course_gap(&course, course.ts, ctf_time(f->class, p->begin)))
			return -1;
		const int status = decode_packet(w, f, p, i ? p - 1 : NULL, &course, &why);
		if (status < 0)
			return -1;
		is_broken = status > 0;
		const bool goes_on = i + 1 < f->packets && (damages += is_broken) <= MOST_DAMAGE;
		if (is_broken && (course_broken(&course) || outlet_damaged(out, why, goes_on)))
			return -1;
		if (is_broken && !goes_on)
			return 0;
		bytes += p->size / 8;
	}
	return 0;
}

/* The window is there meanwhile only: a worker is kept for each trace and thread, and there may be hundreds of traces. */
int ctf_decode(struct ctf_worker *w, const struct ctf_flow *f, size_t from, size_t to, bool lost_tail, struct outlet *out)
{
	w->window_size = WINDOW;
	w->window = mem_resize(NULL, w->window_size, 1);
	const int status = decode_packets(w, f, from, to, lost_tail, out);
	free(w->window);
	w->window = NULL;
	return status;
}
