/* Decodes packets, for one thread.
 *
 * Part of the file (the window) is in memory. It is read with pread(), not mapped: access to a mapped file that was
 * truncated would kill the process. If an event extends beyond the window, the window is moved to the start of the
 * event, and the event is decoded again. */
#include "trace/ctf/decode.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/base.h"
#include "trace/loss_placement.h"

#define WINDOW_SIZE ((size_t)256 << 10)  /* bytes */
#define MAX_EVENT_DELAY \
	1000000000U                /* Maximum time from the end of a packet to one of its events, cycles: old tracers record
                                * such events. */
#define MAX_DAMAGE 100         /* most damaged packets per stream; then the rest of the stream is skipped */

struct ctf_worker {
	struct ctf_interpreter interpreter;  /* first member, because a pointer to it is passed as the event */
	const struct ctf_classes *classes;
	struct string_cache names;
	const struct stream_file *file;  /* file opened as fd; NULL: none */
	int fd;
	unsigned char *window;
	size_t window_size;
	uint64_t from, filled;  /* start of the window in the packet, and number of valid bytes in the window */
	bool is_stopped;        /* the system or the event sink failed, and *err is set */
};

/* ---- fields */

static int64_t field_number(const struct field_path *p, const void *event)
{
	const struct ctf_interpreter *m = event;
	return p->leaf == LEAF_NONE ? EVENT_ABSENT : m->value[p->slot].number;
}

static const char *field_text(const struct field_path *p, const void *event, size_t *max_len)
{
	const struct ctf_interpreter *m = event;
	if (p->leaf != LEAF_TEXT)
		return NULL;
	*max_len = (size_t)m->value[p->slot].number;
	return m->value[p->slot].text;
}

static const struct field_source values = { ctf_find_field, field_number, field_text };

/* ---- the window */

struct ctf_worker *ctf_worker_new(const struct ctf_classes *c, struct event_mapping *mapping)
{
	struct ctf_worker *w = mem_new(1, sizeof *w);
	w->interpreter.value = mem_new(c->slots, sizeof *w->interpreter.value);
	w->classes = c;
	w->fd = -1;
	string_cache_init(&w->names, mapping->names);
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
	string_cache_release(&w->names);
	free(w->interpreter.value);
	free(w);
}

static int fail_read(struct ctf_worker *w, const struct stream_file *f, struct event_sink *out)
{
	w->is_stopped = true;
	return error_read(out->err, NULL, "%s/%s", f->dir, f->name);
}

static int open_file(struct ctf_worker *w, const struct stream_file *f, struct event_sink *out)
{
	if (w->file == f)
		return 0;
	close_file(w);
	char *path = mem_printf("%s/%s", f->dir, f->name);
	w->fd = open(path, O_RDONLY | O_CLOEXEC);
	free(path);
	w->file = f;
	return w->fd < 0 ? fail_read(w, f, out) : 0;
}

/* Reads the window, starting at byte `from` of the packet. Returns 0, or -1 with out->err set. */
static int fill_window(struct ctf_worker *w, const struct ctf_packet *p, uint64_t from, struct event_sink *out)
{
	const uint64_t remaining = (p->content + 7) / 8 - from;
	if (from == w->from && w->filled == w->window_size) {  /* an event is longer than the window */
		w->window_size *= 2;
		w->window = mem_resize(w->window, w->window_size, 1);
	}
	const size_t wanted = remaining < w->window_size ? (size_t)remaining : w->window_size;
	w->from = from;
	w->filled = 0;
	while (w->filled < wanted) {
		const ssize_t n = pread(w->fd, w->window + w->filled, wanted - w->filled, (off_t)(p->offset + from + w->filled));
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return fail_read(w, p->file, out);
		if (n == 0)
			break;  /* the file was truncated during reading */
		w->filled += (uint64_t)n;
	}
	struct ctf_interpreter *m = &w->interpreter;
	const uint64_t end = 8 * (from + w->filled);
	m->packet = w->window - from;
	m->end = end < p->content ? end : p->content;
	return 0;
}

/* ---- packets */

/* Decodes the event at interpreter.at. Sets *class, or *reason on failure. */
static enum ctf_run read_event(struct ctf_worker *w, const struct ctf_stream_class *sc,
                               const struct ctf_event_class **class, const char **reason)
{
	struct ctf_interpreter *m = &w->interpreter;
	m->has_id = false;
	const enum ctf_run status = ctf_run(&sc->header, m);
	*reason = "invalid event header";
	if (status != CTF_RUN_DONE)
		return status;
	*class = !m->has_id ? sc->single_class : m->id < sc->classes ? &sc->class[m->id] : NULL;
	*reason = "unknown event class";
	if (!*class || !(*class)->bound)
		return CTF_RUN_INVALID;
	*reason = "invalid event fields";
	return ctf_run(&(*class)->program, m);
}

static int put_event(struct ctf_worker *w, const struct ctf_stream_class *sc, const struct ctf_event_class *class,
                     struct loss_placer *loss_placer)
{
	struct event ev, counters;
	ev.ts = ctf_time(sc, w->interpreter.clock);
	if (ev.ts == INT64_MIN) {
		loss_placer->event_sink->faults.untimed++;
		return 0;
	}
	rules_event(class->bound, &values, &w->names, w, loss_placer->cpu, &ev);
	if (rules_counters(class->bound, &values, w, &ev, &counters) && loss_placer_event(loss_placer, &counters))
		return -1;
	return loss_placer_event(loss_placer, &ev);
}

/* Decodes a packet's events; its header was decoded before. Returns NULL on success, the damage found, or "" if the
 * system or the sink failed. */
static const char *decode_events(struct ctf_worker *w, const struct ctf_data_stream *f, const struct ctf_packet *p,
                                 struct loss_placer *loss_placer)
{
	struct ctf_interpreter *m = &w->interpreter;
	const uint64_t latest = p->end && p->end <= UINT64_MAX - MAX_EVENT_DELAY ? p->end + MAX_EVENT_DELAY : UINT64_MAX;
	while (m->at < p->content) {
		const struct ctf_event_class *class;
		const char *reason;
		const uint64_t at = m->at, clock = m->clock;
		const enum ctf_run status = read_event(w, f->class, &class, &reason);
		if (status == CTF_RUN_SHORT && m->end < p->content) {
			if (w->filled < w->window_size)
				return "the file ends within a packet";
			m->at = at;
			m->clock = clock;
			if (fill_window(w, p, at / 8, loss_placer->event_sink))
				return "";
			continue;
		}
		if (status != CTF_RUN_DONE)
			return status == CTF_RUN_SHORT ? "the packet ends within an event" : reason;
		if (m->at == at)
			return "events of size zero";
		if (m->clock > latest)
			return "event time is long after the end of its packet";
		if (put_event(w, f->class, class, loss_placer)) {
			w->is_stopped = true;
			return "";
		}
	}
	return NULL;
}

/* Returns NO_TIME if packets have no begin. */
static int64_t begin_time(const struct ctf_stream_class *sc, const struct ctf_packet *p)
{
	return sc->field_slot[CTF_BEGIN_TIME] == CTF_NO_SLOT ? NO_TIME : ctf_time(sc, p->begin);
}

/* Adds the losses between the previous packet (`before`, NULL: none) and this one, from the counters in the packet
 * headers. Returns 0 or -1. */
static int put_losses(const struct ctf_data_stream *f, const struct ctf_packet *p, const struct ctf_packet *before,
                      struct loss_placer *loss_placer)
{
	const int64_t begin = begin_time(f->class, p), end = ctf_time(f->class, p->end);
	const int64_t last = before ? ctf_time(f->class, before->end) : begin;
	const uint64_t lost = p->discarded - (before ? before->discarded : 0);
	if (f->has_discarded && lost) {
		const bool is_counted = before || (f->has_sequence && p->sequence == 0);
		if (loss_placer_lost(loss_placer, last, end, is_counted ? (int64_t)(lost & INT64_MAX) : EVENT_ABSENT))
			return -1;
	}
	const uint64_t step = before ? p->sequence - before->sequence : 0;
	return f->has_sequence && step > 1 ? loss_placer_lost_packets(loss_placer, last, begin, step - 1) : 0;
}

/* Returns 0; -1: the system or the sink failed; 1: the packet is damaged, with *reason set. */
static int decode_packet(struct ctf_worker *w, const struct ctf_data_stream *f, const struct ctf_packet *p,
                         const struct ctf_packet *before, struct loss_placer *loss_placer, const char **reason)
{
	struct ctf_interpreter *m = &w->interpreter;
	m->at = 0;
	w->filled = 0;
	*reason = p->damage ? p->damage : "invalid packet header";
	if (p->damage)
		return 1;
	if (open_file(w, p->file, loss_placer->event_sink) || fill_window(w, p, 0, loss_placer->event_sink))
		return -1;
	if (ctf_run(&w->classes->packet_header, m) != CTF_RUN_DONE || ctf_run(&f->class->context, m) != CTF_RUN_DONE)
		return 1;
	m->clock = p->begin;
	if (put_losses(f, p, before, loss_placer) ||
	    loss_placer_packet(loss_placer, f->class->cpu.leaf ? field_number(&f->class->cpu, w) : -1,
	                       begin_time(f->class, p)))
		return -1;
	*reason = decode_events(w, f, p, loss_placer);
	if (w->is_stopped)
		return -1;
	return *reason ? 1 : loss_placer_packet_end(loss_placer, ctf_time(f->class, p->end));
}

static int decode_packets(struct ctf_worker *w, const struct ctf_data_stream *f, size_t from, size_t to, bool lost_tail,
                          struct event_sink *out)
{
	struct loss_placer loss_placer;
	unsigned damages = 0;
	bool is_broken = false;
	uint64_t bytes = 0;
	loss_placer_init(&loss_placer, out);
	loss_placer.lost_tail = lost_tail;
	w->is_stopped = false;
	for (size_t i = from; i < to; i++) {
		const struct ctf_packet *p = &f->packet[i];
		const char *reason = NULL;
		if (event_sink_report_progress(out, bytes))
			return -1;
		if (is_broken && loss_placer.ts != NO_TIME &&
		    loss_placer_gap(&loss_placer, loss_placer.ts, begin_time(f->class, p)))
			return -1;
		const int status = decode_packet(w, f, p, i ? p - 1 : NULL, &loss_placer, &reason);
		if (status < 0)
			return -1;
		is_broken = status > 0;
		const bool continues = i + 1 < f->packets && (damages += is_broken) <= MAX_DAMAGE;
		if (is_broken && (loss_placer_broken(&loss_placer) || event_sink_report_damage(out, reason, continues)))
			return -1;
		if (is_broken && !continues)
			return 0;
		bytes += p->size / 8;
	}
	return 0;
}

/* The window exists only during a call: there is one worker per trace and thread, and there may be hundreds of traces. */
int ctf_decode(struct ctf_worker *w, const struct ctf_data_stream *f, size_t from, size_t to, bool lost_tail,
               struct event_sink *out)
{
	w->window_size = WINDOW_SIZE;
	w->window = mem_resize(NULL, w->window_size, 1);
	const int status = decode_packets(w, f, from, to, lost_tail, out);
	free(w->window);
	w->window = NULL;
	return status;
}
