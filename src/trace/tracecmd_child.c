/* In the child: libtracecmd -> what is told through the pipe. */
#include "trace/tracecmd.h"

#include <stdlib.h>
#include <string.h>

#include <trace-cmd.h>

#include "base/mem.h"
#include "trace/tracecmd_bind.h"

struct child {
	const struct dat *dat;
	struct teller *teller;
	struct tracecmd_input *input;
	struct tep_handle *tep;
	struct tep_binder *binder;
	struct name_cache cache;
	struct event batch[TELL_BATCH];
	size_t used;
	uint32_t stream, first;
	uint64_t done;           /* bytes of pages of the streams before */
	double ratio;            /* of the file's bytes to those of pages, which may be compressed in it */
};

/* ---- telling */

static void flush(struct child *c, uint64_t at)
{
	tell_events(c->teller, c->batch, c->used);
	c->used = 0;
	at = (uint64_t)((double)(at + c->done) * c->ratio);
	tell(c->teller, TELL_AT, &at, sizeof at);
}

static void put(struct child *c, const struct event *ev, uint64_t at)
{
	c->batch[c->used++] = *ev;
	if (c->used == TELL_BATCH)
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
		const struct tell_stream s = { c->stream, buffer, d->cpu, c->stream };
		if (c->stream++ >= c->first) {
			tell(c->teller, TELL_STREAM, &s, sizeof s);
			const char *why = decode(c, in, d->cpu, d->bytes);
			if (why)
				tell_text(c->teller, TELL_BROKEN, why);
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
	tell(c->teller, TELL_LAYOUT, &chosen, sizeof chosen);
	c->binder = tep_binder_new(c->tep, layout[best], &c->cache);
}

static void child(const struct told *t, uint32_t first, struct teller *teller)
{
	struct child *c = mem_new(1, sizeof *c);
	double pages = 1;
	c->dat = t->source;
	c->teller = teller;
	c->first = first;
	for (size_t i = 0; i < c->dat->cpus; i++)
		pages += (double)c->dat->cpu[i].bytes;
	c->ratio = (double)c->dat->bytes / pages;
	name_cache_init(&c->cache, &teller->names);
	tracecmd_set_loglevel(TEP_LOG_NONE);
	c->input = tracecmd_open(c->dat->path, TRACECMD_FL_LOAD_NO_PLUGINS);
	c->tep = c->input ? tracecmd_get_tep(c->input) : NULL;
	if (!c->tep) {
		tell_refuse(teller, tracecmd_kind.mend, "libtracecmd cannot read it");
		return;
	}
	choose_layout(c, t->ctf.layout, t->ctf.layouts);
	decode_buffer(c, c->input, 0);
	const int instances = tracecmd_buffer_instances(c->input);
	for (int i = 0; i < instances; i++) {
		struct tracecmd_input *in = tracecmd_buffer_instance_handle(c->input, i);
		decode_buffer(c, in, (unsigned)i + 1);
		tracecmd_close(in);
	}
	tell(teller, TELL_END, NULL, 0);
}

bool tracecmd_is_built(void)
{
	return true;
}

#define DIED "libtracecmd does not survive reading it"
const struct told_kind tracecmd_kind = {
	.child = child, .patience = 60, .resumes = true, .died = DIED, .silent = DIED,
	.mend = "copy the file again, when trace-cmd has ended",
};
